//! Removes runs, jobs and markers. A run goes as a whole or not at all: its manifest is put aside first, from which moment
//! on nothing of the run is there for anybody, then its jobs, each by one rename. What was in them is swept up when all
//! of that is on the disk. Nothing here needs room on the disk. [`super::unfinished`] finishes what was cut short.

use std::fs::File;
use std::io;

use rustix::fs::{AtFlags, FileType, OFlags, openat, renameat, unlinkat};
use rustix::io::Errno;
use tidewheel_core::job::{Artifact, JobId, RunId};

use super::beneath::{self, Root};
use super::folders::Folders;
use super::layout::{self, BIN, JOBS, RUNS};
use super::sweep;
use super::sync::Disk;
use crate::jobs::{JobStoreError, Removal, Removed};

/// Removes these, each as a whole or not at all, and returns what came of each.
pub(super) fn all(
    folders: &mut Folders<'_>,
    disk: &Disk,
    removals: &[Removal],
) -> Result<Vec<Removed>, JobStoreError> {
    let bin = Bin::open(folders);
    let mut results: Vec<Removed> = removals.iter().map(|_| Removed::default()).collect();
    let mut moves: Vec<Option<Moved>> = Vec::with_capacity(removals.len());
    for (removal, result) in removals.iter().zip(&mut results) {
        let moved = check(folders, removal).and_then(|()| Moved::manifest(folders, bin, removal));
        moves.push(moved.map_err(|refusal| result.refusal = Some(refusal)).ok());
    }
    // From here on these runs are not there, also if the power fails: what is left of them is collected then.
    if let Err(error) = folders.sync(disk) {
        moves.iter_mut().flatten().for_each(|moved| moved.undo(folders, bin));
        return Err(error);
    }
    for ((removal, result), slot) in removals.iter().zip(&mut results).zip(&mut moves) {
        let Some(moved) = slot else { continue };
        if let Err(refusal) = moved.jobs(folders, bin, removal) {
            moved.undo(folders, bin);
            *slot = None;
            result.refusal = Some(refusal);
            continue;
        }
        unmark_all(folders, &removal.unmarked, &mut result.errors);
    }
    folders.sync(disk)?;
    for (moved, result) in moves.into_iter().zip(&mut results) {
        moved.into_iter().for_each(|moved| moved.sweep(folders, bin, result));
    }
    for path in [JOBS, RUNS, layout::SHARED] {
        // These are long lists; who cleans up has the time to look through them.
        sweep::sweep(folders, path);
    }
    Ok(results)
}

/// Removes a job that was made just now and is not to be.
pub(super) fn new_job(folders: &mut Folders<'_>, id: &JobId) {
    let bin = Bin::open(folders);
    if let Ok(Some(name)) = put_aside(folders, bin, id) {
        drop(sweep_job(folders, bin.folder, &name));
    }
}

/// Removes a state that jobs shared.
pub(super) fn shared(folders: &mut Folders<'_>, name: &str) -> io::Result<()> {
    remove(folders, layout::SHARED, &layout::shared_name(name))
}

/// Removes the markers and payloads that jobs made of these artifacts.
pub(super) fn unmark_all(
    folders: &mut Folders<'_>,
    artifacts: &[(JobId, Artifact)],
    errors: &mut Vec<JobStoreError>,
) {
    for (id, artifact) in artifacts {
        if let Err(source) = unmark(folders, id, artifact) {
            errors.push(io_error(folders.root, layout::ARTIFACTS, source));
        }
    }
}

/// Removes the marker and the payload that a job made of an artifact.
pub(super) fn unmark(folders: &mut Folders<'_>, id: &JobId, artifact: &Artifact) -> io::Result<()> {
    let Artifact::Custom { type_id, key } = artifact else { return Ok(()) };
    for base in [layout::MARKERS, layout::PAYLOADS] {
        let folder = layout::artifact(base, type_id, key);
        remove(folders, &folder, &layout::made_by(id))?;
        sweep::sweep(folders, &folder);
        // Nobody else makes anything there without a turn; a directory that is not empty stays.
        let mut path = folder.as_str();
        while let Some((above, name)) = path.rsplit_once('/')
            && path != base
            && let Ok(open) = folders.get(above)
            && unlinkat(&*open, name, AtFlags::REMOVEDIR).is_ok()
        {
            folders.forget(path);
            folders.change(above);
            path = above;
        }
    }
    Ok(())
}

/// Sweeps up a job that was put aside; returns the names of what is in it and was not made by us, which stays.
pub(super) fn sweep_job(folders: &mut Folders<'_>, folder: &str, name: &str) -> io::Result<Vec<String>> {
    let path = format!("{folder}/{name}");
    let inside = match folders.root.folder(&path) {
        Ok(inside) => File::from(inside),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut left = Vec::new();
    for (name, kind) in beneath::names(&inside)? {
        let text = String::from_utf8_lossy(&name).into_owned();
        // A directory with something in it is none of ours, whatever its name.
        let flags = if kind == FileType::Directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        let is_gone = layout::is_made_in_job(&text)
            && match unlinkat(&inside, text.as_str(), flags) {
                Ok(()) | Err(Errno::NOENT) => true,
                Err(Errno::NOTEMPTY | Errno::EXIST) => false,
                Err(error) => return Err(error.into()),
            };
        if !is_gone {
            left.push(text);
        }
    }
    if left.is_empty() {
        match unlinkat(&*folders.get(folder)?, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => folders.change(folder),
            Err(error) => return Err(error.into()),
        }
    }
    left.sort();
    Ok(left)
}

/// Where removed jobs are put aside until they are swept up.
#[derive(Clone, Copy)]
pub(super) struct Bin {
    pub(super) folder: &'static str,
    pub(super) prefix: &'static str,
}

impl Bin {
    /// Where removed jobs may be.
    pub(super) const ALL: [Self; 2] =
        [Self { folder: BIN, prefix: "" }, Self { folder: JOBS, prefix: layout::ASIDE }];

    /// Returns the directory for it; on a disk without room for one it is beside the jobs, under another name.
    pub(super) fn open(folders: &mut Folders<'_>) -> Self {
        let is_made = folders.make_all(BIN).and_then(|()| folders.get(BIN)).is_ok();
        let [bin, beside] = Self::ALL;
        if is_made { bin } else { beside }
    }

    /// Returns a name that is free in it, where nothing that a crash left is in the way.
    fn name(self, folders: &mut Folders<'_>, name: &str) -> io::Result<String> {
        let mut free = format!("{}{name}", self.prefix);
        for count in 1_u32.. {
            let path = format!("{}/{free}", self.folder);
            match folders.root.look(&path)?.map(|found| found.kind) {
                None => break,
                Some(FileType::Directory) if sweep_job(folders, self.folder, &free)?.is_empty() => break,
                Some(FileType::Directory) => free = format!("{}{name}.{count}", self.prefix),
                Some(_) => {
                    unlinkat(&*folders.get(self.folder)?, free.as_str(), AtFlags::empty())?;
                    break;
                }
            }
        }
        Ok(free)
    }
}

/// Why a removal was refused, and the job that was in the way.
pub(super) type Refusal = (Option<JobId>, JobStoreError);

/// What of a removal was put aside, by the names under which it is there.
#[derive(Default)]
pub(super) struct Moved {
    manifest: Option<(RunId, String)>,
    pub(super) jobs: Vec<(JobId, String)>,
}

impl Moved {
    /// Puts the manifest aside.
    fn manifest(folders: &mut Folders<'_>, bin: Bin, removal: &Removal) -> Result<Self, Refusal> {
        let mut moved = Self::default();
        let Some(run) = &removal.run else { return Ok(moved) };
        let mut put = || -> io::Result<Option<String>> {
            let from = match folders.get(RUNS) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                opened => opened?,
            };
            let found = folders.root.look(&layout::manifest(run))?.map(|found| found.kind);
            match found {
                None => return Ok(None),
                Some(FileType::RegularFile) => {}
                // It is none of ours, and it may have files in it.
                Some(_) => return Err(io::Error::other("it is no regular file")),
            }
            let name = bin.name(folders, &format!("{}{run}.json", layout::MANIFEST_ASIDE))?;
            let to = folders.get(bin.folder)?;
            match renameat(&*from, layout::manifest_name(run), &*to, name.as_str()) {
                Ok(()) => Ok(Some(name)),
                Err(Errno::NOENT) => Ok(None),
                Err(error) => Err(error.into()),
            }
        };
        match put() {
            Ok(None) => {}
            Ok(Some(name)) => {
                folders.change(RUNS);
                moved.manifest = Some((run.clone(), name));
            }
            Err(source) => {
                return Err((None, io_error(folders.root, &layout::manifest(run), source)));
            }
        }
        Ok(moved)
    }

    /// Puts the jobs aside.
    pub(super) fn jobs(
        &mut self,
        folders: &mut Folders<'_>,
        bin: Bin,
        removal: &Removal,
    ) -> Result<(), Refusal> {
        for id in &removal.jobs {
            match put_aside(folders, bin, id) {
                Ok(Some(name)) => self.jobs.push((id.clone(), name)),
                Ok(None) => {}
                Err(source) => {
                    return Err((Some(id.clone()), io_error(folders.root, &layout::job(id), source)));
                }
            }
        }
        Ok(())
    }

    /// Puts everything back, the manifest last: until then, nothing of the run is there.
    fn undo(&mut self, folders: &mut Folders<'_>, bin: Bin) {
        for (id, name) in self.jobs.drain(..) {
            put_back(folders, bin, &id, &name);
        }
        if let Some((run, name)) = self.manifest.take()
            && let (Ok(from), Ok(to)) = (folders.get(bin.folder), folders.get(RUNS))
            && renameat(&*from, name.as_str(), &*to, layout::manifest_name(&run)).is_ok()
        {
            folders.change(RUNS);
        }
    }

    /// Removes what was put aside. What we did not make goes back where it was.
    fn sweep(self, folders: &mut Folders<'_>, bin: Bin, result: &mut Removed) {
        for (id, name) in self.jobs {
            match sweep_job(folders, bin.folder, &name) {
                Ok(left) if left.is_empty() => {}
                Ok(left) => {
                    put_back(folders, bin, &id, &name);
                    result.left.extend(left.iter().map(|name| layout::of_job(&id, name)));
                }
                Err(source) => {
                    let path = format!("{}/{name}", bin.folder);
                    result.errors.push(io_error(folders.root, &path, source));
                }
            }
        }
        if let Some((_, name)) = self.manifest
            && let Err(source) = remove(folders, bin.folder, &name)
        {
            let path = format!("{}/{name}", bin.folder);
            result.errors.push(io_error(folders.root, &path, source));
        }
    }
}

/// Refuses a removal of a job whose supervisor lives.
pub(super) fn check(folders: &mut Folders<'_>, removal: &Removal) -> Result<(), Refusal> {
    for id in &removal.jobs {
        match is_held(folders, id) {
            Ok(false) => {}
            Ok(true) => return Err((Some(id.clone()), JobStoreError::Held { job: id.clone() })),
            Err(source) => {
                return Err((Some(id.clone()), io_error(folders.root, &layout::job(id), source)));
            }
        }
    }
    Ok(())
}

pub(super) fn io_error(root: &Root, path: &str, source: io::Error) -> JobStoreError {
    JobStoreError::Io { verb: "remove", path: root.path(path), source }
}

pub(super) fn remove(folders: &mut Folders<'_>, folder: &str, name: &str) -> io::Result<()> {
    let open = match folders.get(folder) {
        Ok(open) => open,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidFilename) => {
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    match unlinkat(&*open, name, AtFlags::empty()) {
        Ok(()) => {
            folders.change(folder);
            Ok(())
        }
        Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Returns whether a supervisor holds the run lock of a job. The holder of the turn keeps other processes from taking it.
fn is_held(folders: &mut Folders<'_>, id: &JobId) -> io::Result<bool> {
    const FLAGS: OFlags = OFlags::RDWR.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);
    let is_folder = |found: super::signature::Found| found.kind == FileType::Directory;
    if !folders.root.look(&layout::job(id))?.is_some_and(is_folder) {
        return Ok(false);
    }
    let folder = folders.root.folder(&layout::job(id))?;
    let file = match openat(folder, layout::RUN_LOCK, FLAGS, rustix::fs::Mode::empty()) {
        Ok(fd) => File::from(fd),
        // What is no file was never locked.
        Err(Errno::NOENT | Errno::LOOP | Errno::ISDIR | Errno::NXIO) => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    match file.try_lock() {
        Ok(()) => Ok(false),
        Err(std::fs::TryLockError::WouldBlock) => Ok(true),
        Err(std::fs::TryLockError::Error(error)) => Err(error),
    }
}

/// Puts a job aside; returns the name that it has there, or nothing if there is no job.
fn put_aside(folders: &mut Folders<'_>, bin: Bin, id: &JobId) -> io::Result<Option<String>> {
    let jobs = folders.get(JOBS)?;
    match folders.root.look(&layout::job(id))?.map(|found| found.kind) {
        None => return Ok(None),
        Some(FileType::Directory) => {}
        // What the link points to is none of ours.
        Some(_) => {
            unlinkat(&*jobs, id.as_str(), AtFlags::empty())?;
            folders.change(JOBS);
            return Ok(None);
        }
    }
    let name = bin.name(folders, id.as_str())?;
    renameat(&*jobs, id.as_str(), &*folders.get(bin.folder)?, name.as_str())?;
    folders.forget(&layout::job(id));
    folders.change(JOBS);
    folders.links -= i64::from(bin.folder != JOBS);
    Ok(Some(name))
}

/// Puts a job back where it was.
pub(super) fn put_back(folders: &mut Folders<'_>, bin: Bin, id: &JobId, name: &str) {
    if let (Ok(from), Ok(jobs)) = (folders.get(bin.folder), folders.get(JOBS))
        && renameat(&*from, name, &*jobs, id.as_str()).is_ok()
    {
        folders.change(JOBS);
        folders.links += i64::from(bin.folder != JOBS);
    }
}
