//! What stands where a file of ours should be and is none: a directory, a link, a pipe. Nothing is moved here.

use std::collections::BTreeMap;

use rustix::fs::FileType;
use tidewheel_core::job::JobId;

use super::beneath::Root;
use super::layout;

/// Something that is in the way of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// What it is, such as `a directory`.
    pub what: &'static str,
    /// Whether it is a directory without anything in it, so that nothing is lost if it goes.
    pub is_empty: bool,
}

/// Returns what is in the way of locks and of the index, beneath the data directory.
pub(super) fn obstacles<'i>(root: &Root, ids: impl Iterator<Item = &'i JobId>) -> BTreeMap<String, Obstacle> {
    let of_all = |name: &str| format!("{}/{name}", layout::JOBS);
    let locks = LOCKS.map(of_all).into_iter().chain(ids.map(|id| layout::of_job(id, layout::RUN_LOCK)));
    // Whatever else is in the place of the index is replaced by it.
    let index = INDEX.map(of_all).into_iter().filter(|path| is_folder(root, path));
    locks.chain(index).filter_map(|path| obstacle(root, &path).map(|found| (path, found))).collect()
}

/// Returns what stands in the place of rows, markers, payloads and directories of jobs, beneath the data directory.
pub(super) fn beside_jobs(root: &Root) -> BTreeMap<String, Obstacle> {
    let mut found = BTreeMap::new();
    // Markers and payloads lie beneath the digits of a type and of a key.
    let mut folders = vec![
        (layout::JOBS.to_owned(), 0),
        (layout::SHARED.to_owned(), 0),
        (layout::MARKERS.to_owned(), 2),
        (layout::PAYLOADS.to_owned(), 2),
    ];
    while let Some((folder, depth)) = folders.pop() {
        let Ok(names) = root.names(&folder) else {
            let what = kind(root, &folder).filter(|kind| *kind != FileType::Directory).map(in_words);
            found.extend(what.map(|what| (folder, Obstacle { what, is_empty: false })));
            continue;
        };
        for (name, kind) in names {
            let Ok(name) = String::from_utf8(name) else { continue };
            let path = format!("{folder}/{name}");
            let is_place = match depth {
                // A link may lead to the directory of a job, and any file may lie beside the jobs.
                0 if folder == layout::JOBS => {
                    let is_job = JobId::new(&name).is_ok() && !is_of_file(&name);
                    is_job && !matches!(kind, FileType::Directory | FileType::Symlink | FileType::RegularFile)
                }
                0 => name.ends_with(".json") && !name.starts_with('.'),
                _ if kind == FileType::Directory => {
                    folders.push((path, depth - 1));
                    continue;
                }
                _ => true,
            };
            if is_place && let Some(obstacle) = obstacle(root, &path) {
                found.insert(path, obstacle);
            }
        }
    }
    found
}

/// Tells whether a name in the directory of the jobs is that of a file of ours, and so of no job.
pub(super) fn is_of_file(name: &str) -> bool {
    LOCKS.contains(&name) || INDEX.contains(&name)
}

/// Tells whether a directory is at a path.
pub(super) fn is_folder(root: &Root, path: &str) -> bool {
    kind(root, path) == Some(FileType::Directory)
}

/// Says what is at a path where a file should be, if it is none.
pub(super) fn obstacle(root: &Root, path: &str) -> Option<Obstacle> {
    let kind = kind(root, path).filter(|kind| *kind != FileType::RegularFile)?;
    let is_empty = kind == FileType::Directory && root.names(path).is_ok_and(|names| names.is_empty());
    Some(Obstacle { what: in_words(kind), is_empty })
}

/// Says what something is.
pub(super) const fn in_words(kind: FileType) -> &'static str {
    match kind {
        FileType::RegularFile => "a file",
        FileType::Directory => "a directory",
        FileType::Symlink => "a link",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Unknown => "something else",
    }
}

const LOCKS: [&str; 2] = [layout::TURN_LOCK, layout::SERVER_LOCK];

/// The files of the index, and by way of which they are replaced.
const INDEX: [&str; 5] = [layout::DUE, "index.live", "index.done", "index.live.tmp", "index.done.tmp"];

fn kind(root: &Root, path: &str) -> Option<FileType> {
    root.look(path).ok().flatten().map(|found| found.kind)
}
