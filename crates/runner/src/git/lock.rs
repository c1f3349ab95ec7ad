//! Locks that a killed git leaves behind. They are removed only if whoever made them is not there any more: in a working
//! tree that nobody but jobs works in, if nobody does; elsewhere, if they were made while a job was at work that is tried
//! again, and no git is that old.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::process::geteuid;

use super::repository::{GitError, Repository};
use crate::procfs;

/// Why git cannot work in a working tree.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Git does not answer.
    #[error(transparent)]
    Git(#[from] GitError),
    /// Somebody else is at it, or was.
    #[error(
        "{} is there: another git is at work, or one was killed; if none is, remove that file and retry",
        .0.display()
    )]
    Held(PathBuf),
    /// It cannot be removed.
    #[error("cannot remove {}: {source}", path.display())]
    Io {
        /// The lock.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl Repository {
    /// Checks that no lock is in the way in this working tree. In one that only jobs work in, what a killed git left
    /// is taken away.
    ///
    /// # Errors
    /// There is a lock, and it is not ours to remove.
    pub fn free_of_locks(&self, is_of_jobs: bool) -> Result<(), LockError> {
        let directory = self.private_directory()?;
        for name in ["index.lock", "HEAD.lock"] {
            let path = directory.join(name);
            if !path.exists() {
                continue;
            }
            if !is_of_jobs || is_worked_in(&self.top()?) {
                return Err(LockError::Held(path));
            }
            remove(&path)?;
        }
        Ok(())
    }

    /// Takes away the locks that gits of a job left in the repository and in all of its working trees when they were
    /// killed, and returns which. They were made within this time, which is over.
    ///
    /// # Errors
    /// Git does not answer, or one cannot be removed.
    pub fn clear_locks(&self, since: SystemTime, before: SystemTime) -> Result<Vec<PathBuf>, LockError> {
        let common = self.common_directory()?;
        let mut left = locks_in(&common);
        left.retain(|lock| (since..before).contains(&lock.made_at));
        if left.is_empty() {
            return Ok(Vec::new());
        }
        let mut places: Vec<PathBuf> = self.worktrees()?.into_iter().map(|tree| tree.path).collect();
        places.push(common);
        let mut cleared = Vec::new();
        for lock in left {
            let age = || SystemTime::now().duration_since(lock.made_at).unwrap_or_default();
            // Programs that write repositories without git are not known, but hold no lock for so long.
            std::thread::sleep(OTHERS.saturating_sub(age()));
            if !lock.is_there() || is_git_at_work(&places, age()) {
                continue;
            }
            if remove(&lock.path)? {
                cleared.push(lock.path);
            }
        }
        Ok(cleared)
    }
}

/// How long programs other than git may hold a lock.
const OTHERS: Duration = Duration::from_secs(1);
/// By how much two of the clocks of a system may differ.
const TICK: Duration = Duration::from_millis(100);

/// Removes a lock. Tells whether it was still there.
fn remove(path: &Path) -> Result<bool, LockError> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(LockError::Io { path: path.to_owned(), source }),
    }
}

/// A lock of git: a file beside the one that is about to be written.
struct Lock {
    path: PathBuf,
    inode: u64,
    made_at: SystemTime,
}

impl Lock {
    /// Returns what may be a lock; only what is ours is.
    fn of(path: PathBuf, found: &Metadata) -> Option<Self> {
        let is_lock = path.extension().is_some_and(|extension| extension == "lock");
        let is_ours = found.is_file() && found.uid() == geteuid().as_raw();
        let made_at = found.modified().ok()?;
        (is_lock && is_ours).then(|| Self { path, inode: found.ino(), made_at })
    }

    /// Tells whether it is still the same.
    fn is_there(&self) -> bool {
        fs::symlink_metadata(&self.path)
            .is_ok_and(|now| now.ino() == self.inode && now.modified().is_ok_and(|at| at == self.made_at))
    }
}

/// Returns the locks of a repository: those of its settings, of its branches, and of each of its working trees.
fn locks_in(common: &Path) -> Vec<Lock> {
    let mut locks = Vec::new();
    // Objects are written without locks, and there are many of them.
    let mut rooms =
        vec![(common.to_owned(), false), (common.join("refs"), true), (common.join("reftable"), true)];
    for tree in fs::read_dir(common.join("worktrees")).into_iter().flatten().flatten() {
        rooms.push((tree.path(), false));
        rooms.push((tree.path().join("refs"), true));
    }
    while let Some((room, is_deep)) = rooms.pop() {
        for entry in fs::read_dir(room).into_iter().flatten().flatten() {
            let Ok(found) = entry.metadata() else { continue };
            if found.is_dir() && is_deep {
                rooms.push((entry.path(), true));
            } else {
                locks.extend(Lock::of(entry.path(), &found));
            }
        }
    }
    locks
}

/// Tells whether a git works in one of these places that is older than this.
fn is_git_at_work(places: &[PathBuf], age: Duration) -> bool {
    let (Ok(processes), Some(up)) = (procfs::all(), procfs::uptime()) else { return true };
    processes.into_iter().any(|id| {
        let is_git = fs::read(format!("/proc/{id}/comm")).is_ok_and(|name| name.starts_with(b"git"));
        let is_old = || {
            let process = procfs::of(id).filter(|process| process.is_alive);
            process.is_some_and(|process| up.saturating_sub(process.started()) + TICK >= age)
        };
        let is_here = || match fs::read_link(format!("/proc/{id}/cwd")) {
            Ok(cwd) => places.iter().any(|place| cwd.starts_with(place)),
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        };
        is_git && is_old() && is_here()
    })
}

/// Tells whether a process works in a directory: git does so in the working tree that it locks.
fn is_worked_in(directory: &Path) -> bool {
    let Ok(processes) = fs::read_dir("/proc") else { return true };
    let works_in = |process: fs::DirEntry| fs::read_link(process.path().join("cwd")).ok();
    processes.flatten().filter_map(works_in).any(|cwd| cwd.starts_with(directory))
}
