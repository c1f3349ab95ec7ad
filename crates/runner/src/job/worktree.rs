//! What a job owns beside its record: a worktree of its own. It is removed only where jobs make theirs, and only if
//! the record says that the job owns it.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use tidewheel_core::job::{Cleanup, Metadata, Record};

use crate::probe::{Git, GitError};

/// Why a worktree is still there.
#[derive(Debug, thiserror::Error)]
enum CleanError {
    #[error("refusing to clean unsafe worktree path {0}")]
    Unsafe(String),
    #[error("{0}")]
    Git(#[from] GitError),
    #[error("cannot remove {path}: {source}")]
    Io { path: String, source: io::Error },
    #[error("worktree {0} is still there")]
    Left(String),
}

/// Removes the worktree that a job owns, if it owns one. The job must not run.
pub(super) fn clean(record: &Record, root: &Path, data: &Path) -> Cleanup {
    let owns = record.metadata.get(Metadata::WORKTREE_OWNED).and_then(serde_json::Value::as_bool);
    let Some(path) = record.metadata.text(Metadata::WORKTREE_PATH).filter(|_| owns == Some(true)) else {
        return Cleanup::Skipped;
    };
    match remove(path, root, data) {
        Ok(()) => Cleanup::Done,
        Err(error) => Cleanup::Degraded(error.to_string()),
    }
}

fn remove(given: &str, root: &Path, data: &Path) -> Result<(), CleanError> {
    let path = owned_place(given, root, data).ok_or_else(|| CleanError::Unsafe(given.to_owned()))?;
    let git = Git::at(root);
    let fail = |source| CleanError::Io { path: given.to_owned(), source };
    let refusal = if git.has_worktree(&path)? { git.remove_worktree(&path).err() } else { None };
    // What git does not know, or has forgotten, is a directory like any other.
    match fs::symlink_metadata(&path) {
        Ok(_) if !git.has_worktree(&path)? => fs::remove_dir_all(&path).map_err(fail)?,
        Ok(_) => return Err(refusal.map_or_else(|| CleanError::Left(given.to_owned()), CleanError::Git)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(fail(error)),
    }
    Ok(())
}

/// Returns the whole path of a worktree of a job: one step below the place of all of them, and no link to elsewhere.
/// Those that people made for themselves are not touched.
fn owned_place(given: &str, root: &Path, data: &Path) -> Option<PathBuf> {
    let places = data.join("tmp-worktrees");
    let whole = root.join(given);
    let step = whole.strip_prefix(&places).ok()?;
    let mut steps = step.components();
    let (Some(Component::Normal(name)), None) = (steps.next(), steps.next()) else { return None };
    if name.as_encoded_bytes().starts_with(b"workspace-") {
        return None;
    }
    // Git knows worktrees by their real paths; a link on the way to them would lead elsewhere.
    let places = data.canonicalize().ok()?.join("tmp-worktrees");
    let is_elsewhere = |path: &Path| fs::symlink_metadata(path).is_ok_and(|at| !at.is_dir());
    let path = places.join(name);
    (!is_elsewhere(&places) && !is_elsewhere(&path)).then_some(path)
}
