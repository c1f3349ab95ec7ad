//! What a job owns beside its record: a worktree of its own. It is removed only where jobs make theirs, and only if
//! the record says that the job owns it.

use std::fs;
use std::path::{Component, Path, PathBuf};

use tidewheel_core::job::{Cleanup, JobId, Metadata, Record};

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

/// Removes the worktrees of jobs that are gone: they are known by their names. Returns what could not be removed.
pub(super) fn clean_all_of<'a>(
    jobs: impl Iterator<Item = &'a JobId>,
    root: &Path,
    data: &Path,
) -> Vec<String> {
    let Ok(entries) = fs::read_dir(data.join("tmp-worktrees")) else { return Vec::new() };
    let names: Vec<String> =
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    if names.is_empty() {
        return Vec::new();
    }
    let endings: Vec<String> = jobs.map(|id| format!("-{id}")).collect();
    let is_theirs = |name: &&String| endings.iter().any(|ending| name.ends_with(ending.as_str()));
    let owned = names.iter().filter(is_theirs).filter(|name| !name.starts_with(PEOPLES));
    let removed =
        owned.map(|name| remove(&format!("{}/{name}", data.join("tmp-worktrees").display()), root, data));
    removed.filter_map(|removed| Some(removed.err()?.to_string())).collect()
}

/// Removes what is left of a job that is gone, by its name in the place of the worktrees of jobs, with whatever is
/// changed in it. Whoever calls this has looked whether a job owns it.
///
/// # Errors
/// It is not there for jobs, or is still there.
pub fn remove_leftover(name: &str, root: &Path, data: &Path) -> Result<(), CleanError> {
    remove(&format!("{}/{name}", data.join("tmp-worktrees").display()), root, data)
}

/// How worktrees begin that people made for themselves.
const PEOPLES: &str = "workspace-";

/// Tells whether a job made the worktree that its record names. Those after it work in the same one, and own nothing.
pub(super) fn owns(record: &Record) -> bool {
    let is_owned = record.metadata.get(Metadata::WORKTREE_OWNED).and_then(serde_json::Value::as_bool);
    let owner = record.metadata.text(Metadata::WORKTREE_OWNER);
    is_owned == Some(true) && owner.is_none_or(|owner| owner == record.id.as_str())
}

/// Removes a worktree of a job.
pub(super) fn remove(given: &str, root: &Path, data: &Path) -> Result<(), CleanError> {
    let path = owned_place(given, root, data).ok_or_else(|| CleanError::Unsafe(given.to_owned()))?;
    Ok(Repository::at(root).remove_worktree(&path)?)
}

/// Returns the whole path of a worktree of a job: one step below the place of all of them, and no link to elsewhere.
/// Those that people made for themselves are not touched.
pub(super) fn owned_place(given: &str, root: &Path, data: &Path) -> Option<PathBuf> {
    let places = data.join("tmp-worktrees");
    let whole = root.join(given);
    let step = whole.strip_prefix(&places).ok()?;
    let mut steps = step.components();
    let (Some(Component::Normal(name)), None) = (steps.next(), steps.next()) else { return None };
    if name.as_encoded_bytes().starts_with(PEOPLES.as_bytes()) {
        return None;
    }
    // Git knows worktrees by their real paths; a link on the way to them would lead elsewhere.
    let places = data.canonicalize().ok()?.join("tmp-worktrees");
    let is_elsewhere = |path: &Path| fs::symlink_metadata(path).is_ok_and(|at| !at.is_dir());
    let path = places.join(name);
    (!is_elsewhere(&places) && !is_elsewhere(&path)).then_some(path)
}
