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
pub(super) struct Disk {
    is_broken: AtomicBool,
    sync: Box<SyncCall>,
    /// How a thread is had.
    thread: fn() -> std::thread::Builder,
}

/// How something is synced.
type SyncCall = dyn Fn(BorrowedFd<'_>, What) -> io::Result<()> + Send + Sync;

impl std::fmt::Debug for Disk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Disk").field("is_broken", &self.is_broken).finish_non_exhaustive()
    }
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
    pub(super) fn new() -> Self {
        Self { is_broken: AtomicBool::new(false), sync: Box::new(real), thread: std::thread::Builder::new }
    }

    /// Returns a disk that takes nothing.
    #[cfg(test)]
    pub(super) fn failing() -> Self {
        Self::failing_after(0)
    }

    /// Returns a disk that takes this many syncs, and none after them.
    #[cfg(test)]
    pub(super) fn failing_after(count: usize) -> Self {
        let left = std::sync::atomic::AtomicUsize::new(count);
        let take = move |left: &std::sync::atomic::AtomicUsize| {
            left.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1))
        };
        let sync = move |_: BorrowedFd<'_>, _| match take(&left) {
            Ok(_) => Ok(()),
            Err(_) => Err(io::ErrorKind::StorageFull.into()),
        };
        Self { sync: Box::new(sync), ..Self::new() }
    }

    /// Fails once the disk has failed: nobody knows what is on it.
    pub(super) fn check(&self) -> Result<(), JobStoreError> {
        if self.is_broken.load(Ordering::Acquire) { Err(JobStoreError::Broken) } else { Ok(()) }
    }

    /// Syncs everything that was written to the file system of the directory.
    pub(super) fn sync_all(&self, root: &Root) -> Result<(), JobStoreError> {
        self.final_if_bad((self.sync)(root.as_fd(), What::All), root)
    }

    /// Syncs these at once, by as many threads as the system gives us.
    pub(super) fn sync_each(&self, files: &[&File], what: What, root: &Root) -> Result<(), JobStoreError> {
        let sync_some = |some: &[&File]| some.iter().try_for_each(|file| (self.sync)(file.as_fd(), what));
        let result = match files {
            [] => Ok(()),
            [one] => (self.sync)(one.as_fd(), what),
            many => std::thread::scope(|scope| {
                let mut chunks = many.chunks(many.len().div_ceil(THREADS));
                let own = chunks.next().unwrap_or_default();
                let mut threads = Vec::new();
                let mut left = Vec::new();
                for some in chunks {
                    match (self.thread)().spawn_scoped(scope, move || sync_some(some)) {
                        Ok(thread) => threads.push(thread),
                        // Where there is no thread for them, this one does it.
                        Err(_) => left.push(some),
                    }
                }
                let mut result = sync_some(own);
                for some in left {
                    result = result.and_then(|()| sync_some(some));
                }
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
        let disk = Disk { sync: Box::new(bad), ..Disk::new() };
        disk.sync_each(&[&file; 40], What::Folder, &root).unwrap();
        disk.check().unwrap();
        assert!(disk.sync_each(&[&file; 40], What::File, &root).is_err());
        assert!(matches!(disk.check(), Err(JobStoreError::Broken)));
    }

    /// A run that is enqueued must not end because the system has no more threads.
    #[test]
    fn without_threads_everything_is_synced_by_the_caller() {
        use std::sync::Arc;
        use std::sync::atomic::AtomicUsize;
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(folder.path()).unwrap().unwrap();
        let file = tempfile::tempfile().unwrap();
        let synced = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&synced);
        let sync = move |_: BorrowedFd<'_>, _| {
            count.fetch_add(1, Ordering::AcqRel);
            Ok(())
        };
        // No machine has room for such a stack, so that each start of a thread fails.
        let thread = || std::thread::Builder::new().stack_size(1 << 60);
        let disk = Disk { sync: Box::new(sync), thread, ..Disk::new() };
        disk.sync_each(&[&file; 40], What::File, &root).unwrap();
        assert_eq!(synced.load(Ordering::Acquire), 40);
    }
}
