//! Where a node runs: in the repository, wherever its record or a link in it points.

use std::io;
use std::path::{Component, Path, PathBuf};

use tidewheel_core::job::Metadata;

/// Returns the directory in which the processes of a job run, with all links followed.
///
/// # Errors
/// It is not in the repository, or cannot be found.
pub fn execution_root(root: &Path, metadata: &Metadata) -> Result<PathBuf, ExecutionRootError> {
    let found = beneath_root(root, metadata.text(Metadata::EXECUTION_ROOT).unwrap_or_default());
    found.map_err(|error| match (error, metadata.text(Metadata::WORKTREE_OWNER)) {
        (ExecutionRootError::Invalid { path, source }, Some(owner))
            if source.kind() == io::ErrorKind::NotFound =>
        {
            ExecutionRootError::Gone { path, owner: owner.to_owned() }
        }
        (error, _) => error,
    })
}

/// Returns a directory of the repository, with all links followed; the root itself if none is given.
pub(super) fn beneath_root(root: &Path, given: &str) -> Result<PathBuf, ExecutionRootError> {
    let invalid = |path: &Path, source| ExecutionRootError::Invalid { path: path.to_owned(), source };
    let root = root.canonicalize().map_err(|source| invalid(root, source))?;
    let given = given.trim();
    if given.is_empty() {
        return Ok(root);
    }
    let outside = |path| ExecutionRootError::Outside { path, root: root.clone() };
    let path = root.join(given);
    // What is outside is so whether it is there or not.
    let plain = without_dots(&path);
    if !plain.starts_with(&root) {
        return Err(outside(plain));
    }
    let found = path.canonicalize().map_err(|source| invalid(&path, source))?;
    if !found.starts_with(&root) {
        return Err(outside(found));
    }
    if !found.is_dir() {
        return Err(invalid(&path, io::ErrorKind::NotADirectory.into()));
    }
    Ok(found)
}

/// Why a node cannot run where it should.
#[derive(Debug, thiserror::Error)]
pub enum ExecutionRootError {
    /// It is somewhere else.
    #[error(
        "workflow metadata.execution_root path {} is outside repository root {}",
        path.display(),
        root.display()
    )]
    Outside {
        /// Where it is.
        path: PathBuf,
        /// The root.
        root: PathBuf,
    },
    /// It was a worktree, and somebody has removed it.
    #[error("the worktree {} is gone; retry job {owner}, which made it", path.display())]
    Gone {
        /// Where it was.
        path: PathBuf,
        /// The job that made it.
        owner: String,
    },
    /// It is nowhere.
    #[error("the execution_root {} cannot be used: {source}", path.display())]
    Invalid {
        /// Where it should be.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// Returns a path as it reads, without asking anybody.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    plain
}
