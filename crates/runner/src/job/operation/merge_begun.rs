//! A merge that needs a person: begun where its target is checked out, or in a worktree of its own, and gone on with
//! when the person has resolved it. It never takes anything back that a person has done.

use std::fs;

use tidewheel_core::job::NodeOutcome;

use super::checkout::Checkout;
use super::integrate::{Heads, OPERATION, Wish, is_own, note_merge, refused, taken_document};
use super::merged::noted;
use super::names::Done;
use super::node::{Execute, Node, NodeEnd};
use super::sentinel;
use super::stage_commit::commit_staged;
use super::worktree_prepare::{make, whole_path};
use crate::git::{Call, MergeState, Repository};
use crate::job::attempt::End;
use crate::probe::EPHEMERAL;

/// What worktrees of merges are called, before the id of their job.
const PURPOSE: &str = "integrate";

/// Begins a merge that is known to end in conflicts. `None` means that it did not, and is committed.
pub(super) fn begin(
    node: &Node<'_>,
    wish: &Wish,
    root: &Checkout,
    heads: &Heads,
    message: &str,
    execute: &mut Execute<'_>,
) -> Done<Option<NodeEnd>> {
    let here = match root.repository.worktree_with(wish.target.as_str()).map_err(refused)? {
        Some(tree) => Checkout::at(node, tree.path, OPERATION)?,
        None => {
            let name = format!("{PURPOSE}-{}", node.record.id);
            let path = whole_path(node, &format!(".tidewheel/tmp-worktrees/{name}"))?;
            make(root, &path, &wish.target, OPERATION, execute)?;
            Checkout::at(node, path, OPERATION)?
        }
    };
    check_usable(node, wish, &here)?;
    note_merge(node, wish, heads, None)?;
    let merge: &[&str] = match wish.squashes {
        // A setting against fast forwards does not go together with this.
        true => &["-c", "merge.ff=true", "merge", "--squash"],
        false => &["merge", "--no-ff", "--no-commit"],
    };
    let source = format!("refs/heads/{}", wish.source);
    let call = Call::new(merge.iter().copied()).arg("--no-autostash").arg(source);
    let merge = here.try_run(OPERATION, &call, execute)?;
    let state = here.repository.merge_state().map_err(refused)?;
    if state == MergeState::default() {
        // It did not even begin, whatever its code.
        let end = NodeEnd::of(OPERATION, &Ok(merge));
        let silent = || NodeEnd::failed(format!("{OPERATION} failed: git did not begin to merge"), 1);
        return Ok(Some(if end.outcome == NodeOutcome::Succeeded { silent() } else { end }));
    }
    settle(node, wish, &here, &state, message, execute)
}

/// Goes on with a merge that an earlier attempt has begun where the target is checked out. The outer `None` means that
/// there is none; the inner one that it is committed now.
pub(super) fn go_on(
    node: &Node<'_>,
    wish: &Wish,
    here: &Checkout,
    heads: &Heads,
    execute: &mut Execute<'_>,
) -> Done<Option<Option<NodeEnd>>> {
    let state = here.repository.merge_state().map_err(refused)?;
    let first_line = state.squash_message.as_ref().and_then(|message| message.lines().next());
    let is_noted = noted(node, "source_head") == Some(&heads.source)
        && noted(node, "target_head") == Some(&heads.target)
        && state.squash_message.is_some();
    let is_ours = state.merge_head.as_deref() == Some(&heads.source)
        || first_line == Some(wish.subject().as_str())
        || is_noted;
    if is_ours {
        here.repository.check_identity().map_err(refused)?;
        let document = taken_document(&here.repository, wish, heads)?;
        let message = wish.message(document.as_deref());
        note_merge(node, wish, heads, None)?;
        return settle(node, wish, here, &state, &message, execute).map(Some);
    }
    let is_other = state.merge_head.is_some() || !state.unmerged.is_empty();
    if is_other && !is_of_merge(here) {
        let path = here.repository.directory().display();
        let what = format!("another merge is in progress in {path}; commit or abort it, then retry");
        return Ok(Some(Some(NodeEnd::blocked(format!("{OPERATION} blocked: {what}")))));
    }
    Ok(None)
}

/// Commits a merge in which nothing is in conflict any more, or says what a person has to do.
fn settle(
    node: &Node<'_>,
    wish: &Wish,
    here: &Checkout,
    state: &MergeState,
    message: &str,
    execute: &mut Execute<'_>,
) -> Done<Option<NodeEnd>> {
    let private = here.repository.private_directory().map_err(refused)?;
    if !state.unmerged.is_empty() {
        // Whoever commits it by hand is given the same message.
        let (ours, other) = if state.merge_head.is_some() {
            ("MERGE_MSG", "SQUASH_MSG")
        } else {
            ("SQUASH_MSG", "MERGE_MSG")
        };
        let written = fs::write(private.join(ours), message);
        let fail =
            |error| Box::new(NodeEnd::failed(format!("{OPERATION} failed: cannot write {ours}: {error}"), 1));
        written.map_err(fail)?;
        let _missing = fs::remove_file(private.join(other));
        sentinel::leave(node, &wish.slug, wish.source.as_str(), Some(wish.target.as_str()))?;
        return Ok(Some(blocked(node, wish, here, state)));
    }
    here.free_of_locks(OPERATION)?;
    let staged = here.try_run(OPERATION, &Call::new(["diff", "--cached", "--quiet"]), execute)?;
    if state.merge_head.is_none() && staged.end == End::Exited(0) {
        // The person wants nothing of it. What git would say of it is of no use to the next commit.
        for name in ["SQUASH_MSG", "MERGE_MSG"] {
            let _missing = fs::remove_file(private.join(name));
        }
    } else {
        commit_staged(node, here, message, OPERATION, execute)?;
    }
    Ok(None)
}

fn blocked(node: &Node<'_>, wish: &Wish, here: &Checkout, state: &MergeState) -> NodeEnd {
    let left = format!("remaining unmerged paths: {}", state.unmerged.join(", "));
    let path = here.repository.directory().display();
    let commit = if state.merge_head.is_some() { ", `git commit --no-edit`" } else { "" };
    let todo = format!(
        "resolve them in {path}, `git add` them{commit}, then run `tidewheel jobs retry {}`",
        node.record.id
    );
    node.around.complain(&left);
    node.around.complain(&todo);
    let (source, target) = (&wish.source, &wish.target);
    NodeEnd::blocked(format!("merge of {source} into {target} stopped at a conflict: {left}; {todo}"))
}

/// Checks that a merge can be made in a working tree, and that nothing of anybody gets lost by it.
pub(super) fn check_usable(node: &Node<'_>, wish: &Wish, here: &Checkout) -> Done<()> {
    let git = &here.repository;
    let path = git.directory().display();
    if here.is_of_jobs && !is_of_merge(here) && !is_own(node, git.directory()) {
        let what = format!("{} is checked out in {path}, in which other jobs work", wish.target);
        return Err(Box::new(NodeEnd::blocked(format!(
            "{OPERATION} blocked: {what}; remove it, then retry"
        ))));
    }
    here.free_of_locks(OPERATION)?;
    if git.is_clean_beside(&EPHEMERAL).map_err(refused)? {
        return Ok(());
    }
    if is_of_merge(here) {
        // An earlier attempt was cut off before anybody was told of it.
        git.answer(&Call::new(["reset", "--hard", "--quiet"])).map_err(refused)?;
        return Ok(());
    }
    let what = format!(
        "{OPERATION} blocked: {} is checked out in {path}, which has uncommitted or untracked changes; commit or \
         stash them, then run `tidewheel jobs retry {}`",
        wish.target, node.record.id
    );
    Err(Box::new(NodeEnd::blocked(what)))
}

/// Tells whether a working tree was made for a merge.
fn is_of_merge(here: &Checkout) -> bool {
    let name = here.repository.directory().file_name().unwrap_or_default();
    here.is_of_jobs && name.as_encoded_bytes().starts_with(format!("{PURPOSE}-").as_bytes())
}

/// Removes the worktree that was made for a merge which is done.
pub(super) fn remove_worktree(node: &Node<'_>, git: &Repository, wish: &Wish) -> Done<()> {
    let Some(tree) = git.worktree_with(wish.target.as_str()).map_err(refused)? else { return Ok(()) };
    let here = Checkout::at(node, tree.path, OPERATION)?;
    if is_of_merge(&here) {
        let fail = |error| Box::new(NodeEnd::failed(format!("{OPERATION} failed: {error}"), 1));
        git.remove_worktree(here.repository.directory()).map_err(fail)?;
    }
    Ok(())
}
