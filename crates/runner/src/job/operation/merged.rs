//! Whether a branch has been merged already: by its history, by what was noted, or by a commit that is what somebody
//! made of the merge. A squashed merge leaves no other trace.

use serde_json::Value;
use tidewheel_core::job::Metadata;

use super::integrate::{Heads, Wish, refused};
use super::names::Done;
use super::node::Node;
use crate::git::Repository;

/// Tells whether the source is in the target.
pub(super) fn is_in(node: &Node<'_>, git: &Repository, wish: &Wish, heads: &Heads) -> Done<bool> {
    if git.is_ancestor(&heads.source, &heads.target).map_err(refused)? {
        return Ok(true);
    }
    if is_noted(node, git, Some(heads), &heads.target)? {
        return Ok(true);
    }
    let begun_at = noted(node, "target_head").filter(|_| noted(node, "source_head") == Some(&heads.source));
    for (commit, subject) in git.since(&heads.target, &heads.source).map_err(refused)? {
        let is_named = subject == wish.subject();
        // What came after the conflict may be its resolution under another name.
        let is_after = match begun_at {
            Some(begun_at) if !is_named => {
                commit != begun_at && git.is_ancestor(begun_at, &commit).map_err(refused)?
            }
            Some(_) | None => false,
        };
        if (is_named && git.is_merge_of(&commit, &heads.source).map_err(refused)?)
            || (is_after && git.is_resolution_of(&commit, &heads.source).map_err(refused)?)
        {
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
