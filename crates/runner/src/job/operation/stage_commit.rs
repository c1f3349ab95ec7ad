//! `git.stage_commit`: everything that is changed where the job runs becomes a commit. What jobs write for themselves is
//! never in it.

use std::fs;

use tidewheel_core::job::Metadata;
use tidewheel_core::view::abridged_list;

use super::checkout::{Checkout, failed};
use super::integrate::is_own;
use super::names::{Done, text, then_retry};
use super::node::{Execute, Node, NodeEnd};
use super::scratch;
use crate::git::Call;
use crate::job::attempt::End;

const OPERATION: &str = "git.stage_commit";
/// The message of a commit for which the node has none.
const MESSAGE: &str = "chore: workflow stage commit";

pub(super) fn run(node: &Node<'_>, execute: &mut Execute<'_>) -> NodeEnd {
    commit(node, execute).unwrap_or_else(|end| *end)
}

fn commit(node: &Node<'_>, execute: &mut Execute<'_>) -> Done {
    let message = text(node, "message").unwrap_or(MESSAGE);
    let here = Checkout::of(node, OPERATION)?;
    let git = &here.repository;
    check_branch(node, &here)?;
    let unmerged = git.unmerged().map_err(|error| failed(OPERATION, &error))?;
    if !unmerged.is_empty() {
        let (paths, path) = (abridged_list(&unmerged), git.directory().display());
        return Ok(NodeEnd::blocked(format!(
            "git.stage_commit blocked: remaining unmerged paths: {paths}; resolve them in {path}, {}",
            then_retry(node)
        )));
    }
    here.free_of_locks(OPERATION)?;
    if git.is_clean_beside(&crate::probe::EPHEMERAL).map_err(|error| failed(OPERATION, &error))? {
        return Ok(NodeEnd::succeeded("there is nothing to commit"));
    }
    git.check_identity().map_err(|error| failed(OPERATION, &error))?;
    here.run(OPERATION, &Checkout::stage_all(), execute)?;
    here.unstage_ours(OPERATION, execute)?;
    let staged = here.try_run(OPERATION, &Call::new(["diff", "--cached", "--quiet"]), execute)?;
    if staged.end == End::Exited(0) {
        return Ok(NodeEnd::succeeded("there is nothing to commit"));
    }
    commit_staged(node, &here, message, OPERATION, execute)?;
    let head = git.commit_of("HEAD").map_err(|error| failed(OPERATION, &error))?.unwrap_or_default();
    Ok(NodeEnd::succeeded(format!("committed {}", short(&head))))
}

/// Checks that a commit in the worktree of the run goes to the branch that the worktree is for. On no branch, or on
/// another one, nobody would find it.
fn check_branch(node: &Node<'_>, here: &Checkout) -> Done<()> {
    let Some(wanted) = node.record.metadata.text(Metadata::WORKTREE_BRANCH) else { return Ok(()) };
    if !is_own(node, here.repository.directory()) {
        return Ok(());
    }
    let found = here.repository.current_branch().map_err(|error| failed(OPERATION, &error))?;
    if found.as_deref() == Some(wanted) {
        return Ok(());
    }
    let found = found.map_or_else(|| "no branch".to_owned(), |found| format!("branch `{found}`"));
    let path = here.repository.directory().display();
    let message = format!(
        "{OPERATION} failed: {path} is on {found} instead of `{wanted}`; check that out there, then retry"
    );
    Err(Box::new(NodeEnd::failed(message, 1)))
}

/// Commits what is staged, with the hooks of the repository.
pub(super) fn commit_staged(
    node: &Node<'_>,
    here: &Checkout,
    message: &str,
    operation: &str,
    execute: &mut Execute<'_>,
) -> Done<()> {
    let file = scratch::of_job(node, "commit-message.txt");
    let fail = |error| {
        Box::new(NodeEnd::failed(format!("{operation} failed: cannot write {}: {error}", file.display()), 1))
    };
    scratch::write_whole(&file, message.as_bytes()).map_err(fail)?;
    // A message may have lines that begin like comments.
    let call = Call::new(["commit", "--cleanup=whitespace", "--no-edit", "-F"]).arg(&file);
    let committed = here.run(operation, &call, execute);
    // Nobody misses it; a retry writes it again.
    let _missing = fs::remove_file(&file);
    committed.map(drop)
}

/// Returns as much of the name of a commit as people read.
pub(super) fn short(commit: &str) -> &str {
    commit.get(..10).unwrap_or(commit)
}
