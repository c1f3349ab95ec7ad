//! Whether a branch has been merged already: by its history, by what was noted, or by a commit that is what somebody
//! made of the merge. A squashed merge leaves no other trace.

use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tidewheel_core::job::Metadata;

use super::checkout::Checkout;
use super::integrate::{Heads, OPERATION, Wish, refused};
use super::merge_begun::Begun;
use super::names::Done;
use super::node::{Node, NodeEnd};
use super::scratch;
use crate::git::Repository;

/// Tells whether the source, as it is now, is in the target. A merge may have been begun where the target is checked
/// out.
///
/// Whoever believes this may delete the source, so that only what cannot be anything else counts: a history that has
/// it, a commit that was noted, a commit that is just what git makes of the merge; and what somebody made of a conflict
/// that this very head had.
pub(super) fn is_in(
    node: &Node<'_>,
    git: &Repository,
    wish: &Wish,
    heads: &Heads,
    place: Option<&Checkout>,
) -> Done<bool> {
    if git.is_ancestor(&heads.source, &heads.target).map_err(refused)? {
        return Ok(true);
    }
    if is_noted(node, git, Some(heads), &heads.target)? || Memory::of(git, wish)?.is_of(git, wish, heads)? {
        return Ok(true);
    }
    let begun = place.map(|here| Begun::read(&here.repository, wish)).transpose()?.flatten();
    let begun_at = noted(node, "target_head").filter(|_| noted(node, "source_head") == Some(&heads.source));
    let beside = begun.filter(|begun| begun.source_head == heads.source).map(|begun| begun.target_head);
    let begun_at = begun_at.map(str::to_owned).or(beside);
    for (commit, subject) in git.since(&heads.target, &heads.source).map_err(refused)? {
        let Some(merge) = git.merge_by(&commit, &heads.source).map_err(refused)? else { continue };
        let is_named = subject == wish.subject();
        if is_named && merge.conflicts.is_empty() {
            return Ok(true);
        }
        let is_after = match &begun_at {
            Some(begun_at) => commit != *begun_at && git.is_ancestor(begun_at, &commit).map_err(refused)?,
            None => false,
        };
        // Under another name it has to have all of the merge, and something new wherever both were in conflict:
        // whoever gave the merge up and went on with other work does not have that.
        if is_after && (is_named || merge.is_told_by_its_files()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Tells whether it was noted that the source was merged, and the target has the commit of that.
pub(super) fn is_noted(node: &Node<'_>, git: &Repository, heads: Option<&Heads>, target: &str) -> Done<bool> {
    let Some(commit) = noted(node, "commit") else { return Ok(false) };
    if heads.is_some_and(|heads| noted(node, "source_head") != Some(&heads.source)) {
        return Ok(false);
    }
    match git.commit_of(commit).map_err(refused)? {
        Some(commit) => git.is_ancestor(&commit, target).map_err(refused),
        None => Ok(false),
    }
}

/// Returns what an earlier attempt noted of the merge.
pub(super) fn noted<'a>(node: &Node<'a>, name: &str) -> Option<&'a str> {
    let noted = node.record.metadata.get(Metadata::MERGE)?;
    let text = |name: &str| noted.get(name).and_then(Value::as_str);
    text(name).filter(|text| !text.is_empty())
}

/// What is remembered of the last merge of a branch, beside the branches: a squashed merge of something that was in
/// conflict leaves no other trace, and another run asks, too.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Memory {
    target: String,
    source_head: String,
    commit: String,
}

impl Memory {
    /// Returns what is remembered of the source; nothing fits to nothing.
    fn of(git: &Repository, wish: &Wish) -> Done<Self> {
        let text = fs::read(Self::path(git, wish)?).unwrap_or_default();
        Ok(serde_json::from_slice(&text).unwrap_or_default())
    }

    /// Tells whether it is about these branches as they are.
    fn is_of(&self, git: &Repository, wish: &Wish, heads: &Heads) -> Done<bool> {
        if self.target != wish.target.as_str() || self.source_head != heads.source {
            return Ok(false);
        }
        match git.commit_of(&self.commit).map_err(refused)? {
            Some(commit) => git.is_ancestor(&commit, &heads.target).map_err(refused),
            None => Ok(false),
        }
    }

    /// Remembers that the source as it is was merged by a commit.
    pub(super) fn write(git: &Repository, wish: &Wish, source_head: &str, commit: &str) -> Done<()> {
        let path = Self::path(git, wish)?;
        let memory = Self {
            target: wish.target.to_string(),
            source_head: source_head.to_owned(),
            commit: commit.to_owned(),
        };
        let written = path.parent().map_or(Ok(()), fs::create_dir_all);
        let written = written.and_then(|()| {
            scratch::write_whole(&path, format!("{}\n", serde_json::json!(memory)).as_bytes())
        });
        written.map_err(|error| {
            let what = format!("{OPERATION} failed: cannot write {}: {error}", path.display());
            Box::new(NodeEnd::failed(what, 1))
        })
    }

    /// Forgets a source that is gone.
    pub(super) fn forget(git: &Repository, wish: &Wish) -> Done<()> {
        let _missing = fs::remove_file(Self::path(git, wish)?);
        Ok(())
    }

    fn path(git: &Repository, wish: &Wish) -> Done<PathBuf> {
        // A branch may have any name, and a file none that is longer than this.
        let name = blake3::hash(wish.source.as_str().as_bytes()).to_hex();
        let common = git.common_directory().map_err(refused)?;
        Ok(common.join("tidewheel").join("merged").join(format!("{name}.json")))
    }
}
