//! Files that operations write: beside the record of the job for as long as they need them, or for others to find.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tidewheel_core::job::Slug;
use tidewheel_store::jobs::{Access, make_folders, open_regular, read_regular, split_data};

use super::node::Node;

/// Returns the path of a file in the directory of the job.
pub(super) fn of_job(node: &Node<'_>, name: &str) -> PathBuf {
    // A program that git runs may stand anywhere.
    let data = node.around.data();
    let data = data.canonicalize().unwrap_or_else(|_| data.to_owned());
    data.join("jobs").join(node.record.id.as_str()).join(name)
}

/// Where the sentinels are, beneath the data directory.
const SENTINELS: &str = "tmp/merge-conflicts";

/// Returns the path of the sentinel of a plan, from the data directory.
fn sentinel_of(data: &Path, slug: &Slug) -> PathBuf {
    data.join(SENTINELS).join(format!("{slug}.json"))
}

/// Reads the sentinel of a plan; `None` if there is none.
pub(super) fn read_sentinel(data: &Path, slug: &Slug) -> io::Result<Option<String>> {
    // A few names and a time.
    const MOST: u64 = 1 << 20;
    let bytes = read_regular(data, &Path::new(SENTINELS).join(format!("{slug}.json")), MOST)?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

/// Writes the sentinel of a plan, as a whole or not at all.
pub(super) fn write_sentinel(data: &Path, slug: &Slug, text: &str) -> io::Result<()> {
    // Another job may remove the directory, in which it has cleared the last sentinel, just before we write.
    const TRIES: usize = 16;
    let path = sentinel_of(data, slug);
    let mut tried = 0;
    loop {
        tried += 1;
        make_folders(data, Path::new(SENTINELS))?;
        beneath(data, &path)?;
        match write_whole(&path, text.as_bytes()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && tried < TRIES => {}
            written => return written,
        }
    }
}

/// Removes the sentinel of a plan, and with the last one the directory. Returns whether there was one.
pub(in crate::job) fn remove_sentinel(data: &Path, slug: &Slug) -> io::Result<bool> {
    let path = sentinel_of(data, slug);
    beneath(data, &path)?;
    let was_there = match fs::remove_file(&path) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(error),
    };
    if let Some(folder) = path.parent() {
        // One with something in it stays.
        fs::remove_dir(folder).ok();
    }
    Ok(was_there)
}

/// Writes a file beside its place, and puts it there when it is on the disk.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    use std::io::Write as _;
    let beside = path.with_added_extension("new");
    // What a killed process left, or a link that somebody put there.
    let _missing = fs::remove_file(&beside);
    let (directory, rest) = split_data(&beside);
    let mut file = open_regular(&directory, &rest, Access::New)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    put(&beside, path)
}

/// Puts a file that is on the disk at its place.
pub(super) fn put(file: &Path, at: &Path) -> io::Result<()> {
    fs::rename(file, at)?;
    at.parent().map_or(Ok(()), |folder| fs::File::open(folder)?.sync_all())
}

/// Checks that no link on the way leads out of the data directory.
fn beneath(data: &Path, path: &Path) -> io::Result<()> {
    let mut reached = data.to_owned();
    for part in path.strip_prefix(data).unwrap_or(path) {
        reached.push(part);
        if fs::symlink_metadata(&reached).is_ok_and(|found| found.is_symlink()) {
            let what = format!("{} is a link", reached.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
        }
    }
    Ok(())
}
