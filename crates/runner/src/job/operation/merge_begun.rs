//! A merge that needs a person: begun where its target is checked out, or in a worktree of its own, and gone on with
//! when the person has resolved it. It never takes anything back that a person has done.
//!
//! What is being merged is noted beside the merge itself, in the directory that git keeps about the working tree: a
//! squashed merge does not say it.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tidewheel_core::job::{Metadata, NodeOutcome};
use tidewheel_core::view::abridged_list;

use super::checkout::Checkout;
use super::integrate::{Heads, OPERATION, Wish, is_own, note_merge, refused, taken_document};
use super::names::{Done, then_retry};
use super::node::{Execute, Node, NodeEnd};
use super::stage_commit::commit_staged;
use super::worktree_prepare::{make, note, whole_path};
use super::{scratch, sentinel};
use crate::git::{Call, MergeState, Repository};
use crate::job::attempt::End;
use crate::probe::EPHEMERAL;

/// What worktrees of merges are called, before the id of their job. No node may have this purpose.
const PURPOSE: &str = "integrate";

/// What is being merged in a working tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Begun {
    source: String,
    target: String,
    /// Where both were.
    pub(super) source_head: String,
    pub(super) target_head: String,
    /// Whether a person knows that it stopped; from then on whatever is there may be theirs.
    #[serde(default)]
    is_told: bool,
}

impl Begun {
    fn of(wish: &Wish, heads: &Heads) -> Self {
        Self {
            source: wish.source.to_string(),
            target: wish.target.to_string(),
            source_head: heads.source.clone(),
            target_head: heads.target.clone(),
            is_told: false,
        }
    }

    /// Returns what is, or was last, being merged of a wish in a working tree.
    pub(super) fn read(git: &Repository, wish: &Wish) -> Done<Option<Self>> {
        let begun = Self::read_any(git)?;
        Ok(begun.filter(|begun| begun.source == wish.source.as_str() && begun.target == wish.target.as_str()))
    }

    fn read_any(git: &Repository) -> Done<Option<Self>> {
        let text = fs::read(Self::path(git)?).unwrap_or_default();
        Ok(serde_json::from_slice(&text).ok())
    }

    fn write(&self, git: &Repository) -> Done<()> {
        let path = Self::path(git)?;
        let text = format!("{}\n", serde_json::json!(self));
        scratch::write_whole(&path, text.as_bytes()).map_err(|error| {
            let what = format!("{OPERATION} failed: cannot write {}: {error}", path.display());
            Box::new(NodeEnd::failed(what, 1))
        })
    }

    /// Takes the note away.
    pub(super) fn forget(git: &Repository) -> Done<()> {
        let path = Self::path(git)?;
        let _missing = fs::remove_file(path);
        Ok(())
    }

    fn path(git: &Repository) -> Done<PathBuf> {
        Ok(git.private_directory().map_err(refused)?.join("TIDEWHEEL_MERGE"))
    }
}

/// How far a merge has come that was begun.
pub(super) enum Came {
    /// It is committed. This head of the source is in it.
    Committed(String),
    /// Nothing of it is there any more: somebody gave it up.
    GivenUp,
    /// It is not over, or did not even begin.
    Ended(NodeEnd),
}

/// Begins a merge that is known to end in conflicts.
pub(super) fn begin(
    node: &Node<'_>,
    wish: &Wish,
    root: &Checkout,
    heads: &Heads,
    (tree, message): (&str, &str),
    execute: &mut Execute<'_>,
) -> Done<Came> {
    let here = match root.repository.worktree_with(wish.target.as_str()).map_err(refused)? {
        Some(tree) => Checkout::at(node, tree.path, OPERATION)?,
        None => {
            let place = format!(".tidewheel/tmp-worktrees/{PURPOSE}-{}", node.record.id);
            let path = whole_path(node, &place)?;
            // It is on record before it is there: only the job on record ever removes it.
            note(node, &[(Metadata::MERGE_WORKTREE, json!(place))])?;
            make(root, &path, &wish.target, OPERATION, execute)?;
            Checkout::at(node, path, OPERATION)?
        }
    };
    check_usable(node, wish, &here)?;
    check_room(wish, &here, heads, tree)?;
    note_merge(node, wish, heads, None)?;
    let begun = Begun::of(wish, heads);
    begun.write(&here.repository)?;
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
        return Ok(Came::Ended(if end.outcome == NodeOutcome::Succeeded { silent() } else { end }));
    }
    Ok(match settle(node, wish, &here, &state, &begun, message, execute)? {
        // Something that git remembers has resolved it, so that nothing is different.
        Came::GivenUp => Came::Committed(begun.source_head),
        came => came,
    })
}

/// Goes on with a merge that was begun where the target is checked out; `None` if there is none.
pub(super) fn go_on(
    node: &Node<'_>,
    wish: &Wish,
    here: &Checkout,
    heads: &Heads,
    execute: &mut Execute<'_>,
) -> Done<Option<Came>> {
    let state = here.repository.merge_state().map_err(refused)?;
    if state == MergeState::default() {
        return Ok(None);
    }
    let begun = Begun::read(&here.repository, wish)?.filter(|begun| match &state.merge_head {
        Some(merging) => *merging == begun.source_head,
        None => true,
    });
    // A person may have begun it.
    let by_hand = || (state.merge_head.as_deref() == Some(&heads.source)).then(|| Begun::of(wish, heads));
    let Some(begun) = begun.or_else(by_hand) else {
        if state.merge_head.is_none() && state.unmerged.is_empty() {
            // Words for a commit that nobody has made; what they are about counts as any other change.
            return Ok(None);
        }
        let path = here.repository.directory().display();
        let what =
            format!("another merge is in progress in {path}; commit or abort it, {}", then_retry(node));
        return Ok(Some(Came::Ended(NodeEnd::blocked(format!("{OPERATION} blocked: {what}")))));
    };
    here.repository.check_identity().map_err(refused)?;
    let merged = Heads { source: begun.source_head.clone(), target: heads.target.clone() };
    let document = taken_document(&here.repository, wish, &merged)?;
    let message = wish.message(document.as_deref());
    note_merge(node, wish, &merged, None)?;
    settle(node, wish, here, &state, &begun, &message, execute).map(Some)
}

/// Commits a merge in which nothing is in conflict any more, or says what a person has to do.
fn settle(
    node: &Node<'_>,
    wish: &Wish,
    here: &Checkout,
    state: &MergeState,
    begun: &Begun,
    message: &str,
    execute: &mut Execute<'_>,
) -> Done<Came> {
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
        Begun { is_told: true, ..begun.clone() }.write(&here.repository)?;
        return Ok(Came::Ended(blocked(node, wish, here, state)));
    }
    here.free_of_locks(OPERATION)?;
    let unstaged = here.repository.unstaged().map_err(refused)?;
    if !unstaged.is_empty() {
        return Ok(Came::Ended(not_staged(node, wish, here, &unstaged)));
    }
    let staged = here.try_run(OPERATION, &Call::new(["diff", "--cached", "--quiet"]), execute)?;
    if state.merge_head.is_none() && staged.end == End::Exited(0) {
        // What git would say of it is of no use to the next commit.
        for name in ["SQUASH_MSG", "MERGE_MSG"] {
            let _missing = fs::remove_file(private.join(name));
        }
        Begun::forget(&here.repository)?;
        return Ok(Came::GivenUp);
    }
    commit_staged(node, here, message, OPERATION, execute)?;
    Ok(Came::Committed(begun.source_head.clone()))
}

/// Says that what is resolved is not part of the commit that would be made.
fn not_staged(node: &Node<'_>, wish: &Wish, here: &Checkout, unstaged: &[String]) -> NodeEnd {
    let left = format!("changed and not staged: {}", abridged_list(unstaged));
    let path = here.repository.directory().display();
    let todo = format!(
        "`git add` what is resolved in {path}, or give the merge up with `git reset --hard`, {}",
        then_retry(node)
    );
    node.around.complain(&left);
    node.around.complain(&todo);
    let (source, target) = (&wish.source, &wish.target);
    NodeEnd::blocked(format!("merge of {source} into {target} is not finished: {left}; {todo}"))
}

fn blocked(node: &Node<'_>, wish: &Wish, here: &Checkout, state: &MergeState) -> NodeEnd {
    let left = format!("remaining unmerged paths: {}", abridged_list(&state.unmerged));
    let path = here.repository.directory().display();
    let commit = if state.merge_head.is_some() { ", `git commit --no-edit`" } else { "" };
    let todo = format!("resolve them in {path}, `git add` them{commit}, {}", then_retry(node));
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
            "{OPERATION} blocked: {what}; remove it, {}",
            then_retry(node)
        ))));
    }
    here.free_of_locks(OPERATION)?;
    if git.is_clean_beside(&EPHEMERAL).map_err(refused)? {
        return Ok(());
    }
    let is_told = Begun::read_any(git)?.is_some_and(|begun| begun.is_told);
    if !is_told && owns_merge_tree(here, node)? {
        // An earlier attempt was cut off before anybody was told of it.
        git.answer(&Call::new(["reset", "--hard", "--quiet"])).map_err(refused)?;
        return Ok(());
    }
    let what = format!(
        "{OPERATION} blocked: {} is checked out in {path}, which has uncommitted or untracked changes; commit or \
         stash them, {}",
        wish.target,
        then_retry(node)
    );
    Err(Box::new(NodeEnd::blocked(what)))
}

/// Checks that nothing that nobody tracks stands where the merge puts files: git would overwrite what is ignored.
pub(super) fn check_room(wish: &Wish, here: &Checkout, heads: &Heads, tree: &str) -> Done<()> {
    let directory = here.repository.directory();
    let added = here.repository.added(&heads.target, tree).map_err(refused)?;
    let in_way: Vec<String> = added.iter().filter_map(|path| obstacle(directory, path)).collect();
    if in_way.is_empty() {
        return Ok(());
    }
    let what = format!(
        "{OPERATION} blocked: merging {} into {} would overwrite what is in {}: {}; move it away, then retry the job",
        wish.source,
        wish.target,
        directory.display(),
        abridged_list(&in_way)
    );
    Err(Box::new(NodeEnd::blocked(what)))
}

/// Returns what stands where a file is to be.
fn obstacle(directory: &Path, path: &str) -> Option<String> {
    let mut reached = directory.to_owned();
    let parts: Vec<&str> = path.split('/').collect();
    for (place, part) in parts.iter().enumerate() {
        reached.push(part);
        let found = fs::symlink_metadata(&reached).ok()?;
        if !found.is_dir() || place + 1 == parts.len() {
            return Some(parts[..=place].join("/"));
        }
    }
    None
}

/// Returns whether a working tree was made for a merge. No other operation makes worktrees of such a name.
fn is_of_merge(here: &Checkout) -> bool {
    let name = here.repository.directory().file_name().unwrap_or_default();
    here.is_of_jobs && name.as_encoded_bytes().starts_with(format!("{PURPOSE}-").as_bytes())
}

/// Returns whether this job is on record as the owner of a working tree that was made for a merge.
fn owns_merge_tree(here: &Checkout, node: &Node<'_>) -> Done<bool> {
    let noted = node.around.noted(Metadata::MERGE_WORKTREE).map_err(|error| unread(&error))?;
    is_one_of(here, node, noted.as_slice())
}

/// Returns whether a job of this run is on record as the owner of a working tree that was made for a merge: what one
/// node has begun, another one may finish.
fn run_owns_merge_tree(here: &Checkout, node: &Node<'_>) -> Done<bool> {
    let noted = node.around.noted_in_run(Metadata::MERGE_WORKTREE).map_err(|error| unread(&error))?;
    is_one_of(here, node, &noted)
}

fn is_one_of(here: &Checkout, node: &Node<'_>, places: &[Value]) -> Done<bool> {
    for place in places.iter().filter_map(Value::as_str) {
        if here.is_of_jobs && whole_path(node, place)? == here.repository.directory() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn unread(error: &std::io::Error) -> Box<NodeEnd> {
    Box::new(NodeEnd::failed(format!("cannot read the record: {error}"), 1))
}

/// Cleans up where a merge was made that is done: what was noted of it, and the worktree that a job of this run made for
/// it, if nothing is in there that is on no branch.
pub(super) fn clean_up(node: &Node<'_>, git: &Repository, wish: &Wish) -> Done<()> {
    let Some(tree) = git.worktree_with(wish.target.as_str()).map_err(refused)? else { return Ok(()) };
    let here = Checkout::at(node, tree.path, OPERATION)?;
    if Begun::read(&here.repository, wish)?.is_some() {
        Begun::forget(&here.repository)?;
    }
    let is_empty = || -> Done<bool> {
        let state = here.repository.merge_state().map_err(refused)?;
        Ok(state == MergeState::default() && here.repository.is_clean_beside(&EPHEMERAL).map_err(refused)?)
    };
    let is_mine = owns_merge_tree(&here, node)?;
    if (is_mine || run_owns_merge_tree(&here, node)?) && is_empty()? {
        let fail = |error| Box::new(NodeEnd::failed(format!("{OPERATION} failed: {error}"), 1));
        git.remove_worktree(here.repository.directory()).map_err(fail)?;
        if is_mine {
            note(node, &[(Metadata::MERGE_WORKTREE, Value::Null)])?;
        }
    }
    Ok(())
}
