//! Makes sure that the disk has it. Files and directories are synced together, so that they share one commit of
//! the journal; a failure is final.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{fdatasync, fsync, syncfs};

use super::beneath::Root;
use crate::jobs::JobStoreError;

/// From so many files on, one sync of the whole file system is quicker than one of each.
pub(super) const MANY: usize = 64;

/// As many threads wait for the disk at once.
const THREADS: usize = 16;

/// The disk under a data directory, and whether it can be trusted.
#[derive(Debug)]
pub(super) struct Disk {
    is_broken: AtomicBool,
    sync: fn(BorrowedFd<'_>, What) -> io::Result<()>,
}

/// What is synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// The content of a file.
    File,
    /// The names in a directory.
    Folder,
    /// Everything.
    All,
}

impl Disk {
    pub(super) const fn new() -> Self {
        Self { is_broken: AtomicBool::new(false), sync: real }
    }

    /// Returns a disk that takes nothing.
    #[cfg(test)]
    pub(super) fn failing() -> Self {
        Self { is_broken: AtomicBool::new(false), sync: |_, _| Err(io::ErrorKind::StorageFull.into()) }
    }

    /// Fails once the disk has failed: nobody knows what is on it.
    pub(super) fn check(&self) -> Result<(), JobStoreError> {
        if self.is_broken.load(Ordering::Acquire) { Err(JobStoreError::Broken) } else { Ok(()) }
    }

    /// Syncs everything that was written to the file system of the directory.
    pub(super) fn sync_all(&self, root: &Root) -> Result<(), JobStoreError> {
        self.final_if_bad((self.sync)(root.as_fd(), What::All), root)
    }

    /// Syncs these at once.
    pub(super) fn sync_each(&self, files: &[&File], what: What, root: &Root) -> Result<(), JobStoreError> {
        let result = match files {
            [] => Ok(()),
            [one] => (self.sync)(one.as_fd(), what),
            many => std::thread::scope(|scope| {
                let size = many.len().div_ceil(THREADS);
                let sync_some =
                    |some: &[&File]| some.iter().try_for_each(|file| (self.sync)(file.as_fd(), what));
                let (own, others) = many.split_at(size.min(many.len()));
                let threads: Vec<_> =
                    others.chunks(size).map(|some| scope.spawn(move || sync_some(some))).collect();
                let mut result = sync_some(own);
                for thread in threads {
                    let ended = thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")));
                    result = result.and(ended);
                }
                result
            }),
        };
        self.final_if_bad(result, root)
    }

    fn final_if_bad(&self, result: io::Result<()>, root: &Root) -> Result<(), JobStoreError> {
        result.map_err(|source| {
            self.is_broken.store(true, Ordering::Release);
            JobStoreError::Io { verb: "sync", path: root.path(""), source }
        })
    }
}

fn real(file: BorrowedFd<'_>, what: What) -> io::Result<()> {
    Ok(match what {
        What::File => fdatasync(file),
        What::Folder => fsync(file),
        What::All => syncfs(file),
    }?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_one_failure_nothing_is_taken_any_more() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(folder.path()).unwrap().unwrap();
        let file = tempfile::tempfile().unwrap();
        let bad = |_: BorrowedFd<'_>, what| {
            if what == What::File { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
        };
        let disk = Disk { is_broken: AtomicBool::new(false), sync: bad };
        disk.sync_each(&[&file; 40], What::Folder, &root).unwrap();
        disk.check().unwrap();
        assert!(disk.sync_each(&[&file; 40], What::File, &root).is_err());
        assert!(matches!(disk.check(), Err(JobStoreError::Broken)));
    }
}
