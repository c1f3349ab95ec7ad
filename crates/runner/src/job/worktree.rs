//! What a job owns beside its record: a worktree of its own. It is removed only where jobs make theirs, and only if
//! the record says that the job owns it.

use std::fs;
use std::path::{Component, Path, PathBuf};

use tidewheel_core::job::{Cleanup, Metadata, Record};

use crate::git::{RemoveError, Repository};

/// Why a worktree is still there.
#[derive(Debug, thiserror::Error)]
pub enum CleanError {
    /// It is none of those that jobs make, or a link leads elsewhere.
    #[error("refusing to clean unsafe worktree path {0}")]
    Unsafe(String),
    /// It could not be removed.
    #[error(transparent)]
    Remove(#[from] RemoveError),
}

/// Removes the worktree that a job owns, if it owns one. The job must not run.
pub(super) fn clean(record: &Record, root: &Path, data: &Path) -> Cleanup {
    let Some(path) = record.metadata.text(Metadata::WORKTREE_PATH).filter(|_| owns(record)) else {
        return Cleanup::Skipped;
    };
    clean_at(path, root, data)
}

/// Returns the worktree that a job runs in, and the job that made it, if that is another one.
pub(super) fn shared(record: &Record) -> Option<(&str, &str)> {
    let is_owned = record.metadata.get(Metadata::WORKTREE_OWNED).and_then(serde_json::Value::as_bool);
    let owner = record.metadata.text(Metadata::WORKTREE_OWNER)?;
    let path = record.metadata.text(Metadata::WORKTREE_PATH)?;
    (is_owned == Some(true) && owner != record.id.as_str()).then_some((path, owner))
}

/// Removes a worktree of a job, and says what came of it.
pub(super) fn clean_at(path: &str, root: &Path, data: &Path) -> Cleanup {
    match remove(path, root, data) {
        Ok(()) => Cleanup::Done,
        Err(error) => Cleanup::Degraded(error.to_string()),
    }
}

/// Returns whether there is anything where jobs make their worktrees.
pub(super) fn has_any(data: &Path) -> bool {
    fs::read_dir(data.join(PLACES)).is_ok_and(|mut entries| entries.next().is_some())
}

/// Returns the job that is on record as the owner of the worktree that a job works in.
pub(super) fn owner(record: &Record) -> Option<&str> {
    record.metadata.text(Metadata::WORKTREE_PATH)?;
    Some(record.metadata.text(Metadata::WORKTREE_OWNER).unwrap_or(record.id.as_str()))
}

/// Returns the worktrees that a job is on record as the owner of.
pub(super) fn owned(record: &Record) -> impl Iterator<Item = &str> {
    let own = record.metadata.text(Metadata::WORKTREE_PATH).filter(|_| owns(record));
    own.into_iter().chain(record.metadata.text(Metadata::MERGE_WORKTREE))
}

/// Removes the worktrees that a job is on record as the owner of. What people made stays, whatever the record says.
///
/// # Errors
/// One of them is still there.
pub(super) fn clean_all_of(record: &Record, root: &Path, data: &Path) -> Result<(), CleanError> {
    for path in owned(record) {
        match remove(path, root, data) {
            Ok(()) | Err(CleanError::Unsafe(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Removes what is left of a job that is gone, by its name in the place of the worktrees of jobs, with whatever is
/// changed in it. The caller has made sure that Tidewheel made it and that no job on record owns it.
///
/// # Errors
/// It is not there for jobs, or is still there.
pub fn remove_leftover(name: &str, root: &Path, data: &Path) -> Result<(), CleanError> {
    remove(&format!("{}/{name}", data.join(PLACES).display()), root, data)
}

/// Where jobs make their worktrees, beneath the data directory.
const PLACES: &str = "tmp-worktrees";

/// Returns whether a worktree of this name is one that a person made. Nothing of Tidewheel removes it.
#[must_use]
pub fn is_peoples_worktree(name: &str) -> bool {
    ["workspace-", "tidewheel-workspace-"].iter().any(|prefix| name.starts_with(prefix))
}

/// Returns whether a job made the worktree that its record names. Those after it work in the same one, and own nothing.
pub(super) fn owns(record: &Record) -> bool {
    let is_owned = record.metadata.get(Metadata::WORKTREE_OWNED).and_then(serde_json::Value::as_bool);
    let owner = record.metadata.text(Metadata::WORKTREE_OWNER);
    is_owned == Some(true) && owner.is_none_or(|owner| owner == record.id.as_str())
}

/// Removes a worktree of a job.
pub(super) fn remove(given: &str, root: &Path, data: &Path) -> Result<(), CleanError> {
    let refused = || CleanError::Unsafe(given.to_owned());
    let path = owned_place(given, root, data).ok_or_else(refused)?;
    // A worktree that was moved keeps the name that git knows it by.
    if name_of(&path).is_some_and(|name| is_peoples_worktree(&name)) {
        return Err(refused());
    }
    Ok(Repository::at(root).remove_worktree(&path)?)
}

/// Returns the name that git knows a worktree by, as the file says that leads to its repository.
fn name_of(path: &Path) -> Option<String> {
    // It is one line with a path.
    const MOST: u64 = 1 << 16;
    let bytes = super::operation::read_plain(path, ".git", MOST)?;
    let text = String::from_utf8(bytes).ok()?;
    let place = Path::new(text.strip_prefix("gitdir:")?.trim());
    Some(place.file_name()?.to_str()?.to_owned())
}

/// Returns the whole path of a worktree of a job: one step below the place of all of them, and no link to elsewhere.
/// Those that people made for themselves are not touched.
pub(super) fn owned_place(given: &str, root: &Path, data: &Path) -> Option<PathBuf> {
    let places = data.join(PLACES);
    let whole = root.join(given);
    let step = whole.strip_prefix(&places).ok()?;
    let mut steps = step.components();
    let (Some(Component::Normal(name)), None) = (steps.next(), steps.next()) else { return None };
    if name.to_str().is_none_or(is_peoples_worktree) {
        return None;
    }
    // Git knows worktrees by their real paths; a link on the way to them would lead elsewhere.
    let places = data.canonicalize().ok()?.join(PLACES);
    let is_elsewhere = |path: &Path| fs::symlink_metadata(path).is_ok_and(|at| !at.is_dir());
    let path = places.join(name);
    (!is_elsewhere(&places) && !is_elsewhere(&path)).then_some(path)
}
