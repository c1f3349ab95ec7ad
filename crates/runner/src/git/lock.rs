//! Locks that a killed git leaves in a working tree. They are removed only where nobody but jobs works, and only if
//! nobody does.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::repository::{GitError, Repository};

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
            match fs::remove_file(&path) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(LockError::Io { path, source }),
            }
        }
        Ok(())
    }
}

/// Tells whether a process works in a directory: git does so in the working tree that it locks.
fn is_worked_in(directory: &Path) -> bool {
    let Ok(processes) = fs::read_dir("/proc") else { return true };
    let works_in = |process: fs::DirEntry| fs::read_link(process.path().join("cwd")).ok();
    processes.flatten().filter_map(works_in).any(|cwd| cwd.starts_with(directory))
}
