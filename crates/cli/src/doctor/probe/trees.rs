//! Looks at what jobs leave in a repository: worktrees, and notes of merges that stopped.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;
use tidewheel_runner::git::{Repository, Worktree};
use tidewheel_store::jobs::{Checkup, Kept, read_regular};

use crate::doctor::facts::{Sentinel, Tree, TreeState};
use crate::error::cause;
use crate::jobs::Place;

/// Returns what is among the worktrees of jobs, or known to git as such, by name.
pub(super) fn trees(place: &Place, has_repository: bool, checkup: Option<&Checkup>) -> Vec<Tree> {
    let folder = place.data.join("tmp-worktrees");
    let repository = Repository::at(&place.root);
    let known: BTreeMap<String, Worktree> = match fs::canonicalize(&place.data) {
        Ok(data) if has_repository => {
            let there = data.join("tmp-worktrees");
            let trees = repository.worktrees().unwrap_or_default().into_iter();
            trees.filter_map(|tree| Some((name_in(&there, &tree.path)?, tree))).collect()
        }
        Ok(_) | Err(_) => BTreeMap::new(),
    };
    let mut names: Vec<String> = fs::read_dir(&folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .chain(known.keys().cloned())
        .collect();
    names.sort();
    names.dedup();
    let tree = |name: String| {
        let is_owned = checkup.is_none_or(|checkup| is_owned(&name, checkup));
        let state = state(&folder.join(&name), known.get(&name), &repository, is_owned);
        Tree { name, state, is_owned }
    };
    names.into_iter().map(tree).collect()
}

fn name_in(folder: &Path, path: &Path) -> Option<String> {
    let name = path.strip_prefix(folder).ok()?;
    (name.components().count() == 1).then(|| name.to_string_lossy().into_owned())
}

/// Returns whether a job may own a worktree: because a record names it, or by the name that a job gives. Here a guess only
/// keeps what it should not: nothing is removed because of a name.
fn is_owned(name: &str, checkup: &Checkup) -> bool {
    let ends_so = |id: &str| name.strip_suffix(id).is_some_and(|rest| rest.ends_with('-'));
    let names_it = |kept: &Kept| {
        let Kept::Record { worktrees, .. } = kept else { return false };
        worktrees.iter().any(|path| Path::new(path).file_name().is_some_and(|last| last == name))
    };
    checkup.jobs.iter().any(|(id, kept)| ends_so(id.as_str()) || names_it(kept))
        || checkup.strange.keys().any(|id| ends_so(id))
}

fn state(path: &Path, known: Option<&Worktree>, repository: &Repository, is_owned: bool) -> TreeState {
    match known {
        Some(tree) if tree.is_half_made() => TreeState::HalfMade,
        Some(tree) if tree.is_gone => TreeState::Gone,
        // Nobody asks what is in the one of a job.
        Some(_) if is_owned => TreeState::Clean,
        Some(tree) => {
            let is_clean = tree.branch.is_some()
                && tree.lock.is_none()
                && repository.seen_from(path).is_clean_beside(&[]).unwrap_or(false);
            if is_clean { TreeState::Clean } else { TreeState::Changed }
        }
        None => {
            let is_folder = fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
            let is_empty = is_folder && fs::read_dir(path).is_ok_and(|mut names| names.next().is_none());
            if is_empty { TreeState::Empty } else { TreeState::Unknown }
        }
    }
}

/// Returns the merges that stopped at a conflict, by file.
pub(super) fn sentinels(place: &Place) -> Vec<Sentinel> {
    let folder = place.data.join("tmp/merge-conflicts");
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let mut found: Vec<Sentinel> = paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .map(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            Sentinel { file: format!(".tidewheel/tmp/merge-conflicts/{name}"), job: job_of(place, &path) }
        })
        .collect();
    found.sort_by(|one, other| one.file.cmp(&other.file));
    found
}

fn job_of(place: &Place, path: &Path) -> Result<String, String> {
    // A few names and a time.
    const MOST: u64 = 1 << 20;
    let rest = path.strip_prefix(&place.data).map_err(|error| error.to_string())?;
    let bytes = read_regular(&place.data, rest, MOST).map_err(|error| cause(&error))?;
    let bytes = bytes.ok_or_else(|| "it is gone".to_owned())?;
    let value: Value = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
    let job = value.get("job_id").and_then(Value::as_str);
    job.map(str::to_owned).ok_or_else(|| "it names no job".to_owned())
}
