//! Files that operations write: beside the record of the job for as long as they need them, or for others to find.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tidewheel_core::job::Slug;

use super::node::Node;

/// Returns the path of a file in the directory of the job.
pub(super) fn of_job(node: &Node<'_>, name: &str) -> PathBuf {
    // A program that git runs may stand anywhere.
    let data = node.around.data();
    let data = data.canonicalize().unwrap_or_else(|_| data.to_owned());
    data.join("jobs").join(node.record.id.as_str()).join(name)
}

/// Returns the path of the sentinel of a plan, from the data directory.
fn sentinel_of(data: &Path, slug: &Slug) -> PathBuf {
    data.join("tmp").join("merge-conflicts").join(format!("{slug}.json"))
}

/// Reads the sentinel of a plan; `None` if there is none.
pub(super) fn read_sentinel(data: &Path, slug: &Slug) -> io::Result<Option<String>> {
    beneath(data, &sentinel_of(data, slug))?;
    match fs::read(sentinel_of(data, slug)) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes the sentinel of a plan, as a whole or not at all.
pub(super) fn write_sentinel(data: &Path, slug: &Slug, text: &str) -> io::Result<()> {
    let path = sentinel_of(data, slug);
    if let Some(folder) = path.parent() {
        beneath(data, &path)?;
        fs::create_dir_all(folder)?;
    }
    beneath(data, &path)?;
    write_whole(&path, text.as_bytes())
}

/// Removes the sentinel of a plan. Tells whether there was one.
pub(in crate::job) fn remove_sentinel(data: &Path, slug: &Slug) -> io::Result<bool> {
    let path = sentinel_of(data, slug);
    beneath(data, &path)?;
    match fs::remove_file(&path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Writes a file beside its place, and puts it there when it is on the disk.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    use std::io::Write as _;
    let beside = path.with_added_extension("new");
    // What a killed process left, or a link that somebody put there.
    let _missing = fs::remove_file(&beside);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&beside)?;
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
