//! The document of a plan on its branch: put there or taken away by a commit of its own. Of a working tree in which the
//! branch is checked out, only this one file is touched, and not if somebody has changed it.

use std::path::Path;

use tidewheel_store::jobs::read_regular;

use super::checkout::{Checkout, failed};
use super::names::Done;
use super::node::{Node, NodeEnd};
use super::scratch;
use crate::git::{Edit, GitError, Repository};

/// What is changed.
pub(super) struct Change<'a> {
    pub(super) branch: &'a str,
    /// The commit that it is laid upon.
    pub(super) parent: &'a str,
    /// The commit that the branch is at; empty if it is to be made.
    pub(super) from: &'a str,
    /// The document, from the top of the repository.
    pub(super) path: &'a str,
    /// What is to be in it; without anything it is removed.
    pub(super) content: Option<&'a [u8]>,
    pub(super) message: &'a str,
}

/// Commits a change of a document; `None` if it is like that already.
pub(super) fn commit(
    node: &Node<'_>,
    git: &Repository,
    change: &Change<'_>,
    operation: &str,
) -> Done<Option<String>> {
    let refused = |error: GitError| failed(operation, &error);
    let checkout = checkout(node, git, change.branch, operation)?;
    if let Some(checkout) = &checkout {
        let at = |commit: &str| git.file_at(commit, change.path).map_err(refused);
        // An attempt that was cut off may have committed it, and not have got to the file.
        let earlier = git.commit_of(&format!("{}^1", change.parent)).map_err(refused)?;
        let earlier = earlier.map_or(Ok(None), |commit| at(&commit))?;
        let known = [at(change.parent)?, earlier, change.content.map(<[u8]>::to_vec)];
        let directory = checkout.repository.directory();
        if is_changed(checkout, change.path, &known).map_err(refused)? {
            let message = format!(
                "{operation} failed: {} is changed in {}; commit or undo that, then retry",
                change.path,
                directory.display()
            );
            return Err(Box::new(NodeEnd::failed(message, 1)));
        }
        checkout.free_of_locks(operation)?;
    }
    let edit = Edit {
        branch: change.branch,
        parent: change.parent,
        from: change.from,
        path: change.path,
        content: change.content,
        message: change.message,
        scratch: &scratch::of_job(node, "document.index"),
    };
    let committed = git.commit_edit(&edit).map_err(refused)?;
    if let Some(checkout) = &checkout {
        checkout.repository.sync_file(change.path).map_err(refused)?;
    }
    Ok(committed)
}

/// Lets a document that was taken away from a branch be gone where the branch is checked out, too, unless somebody has
/// changed it there.
pub(super) fn catch_up(
    node: &Node<'_>,
    git: &Repository,
    (branch, path): (&str, &str),
    taken: Vec<u8>,
    operation: &str,
) -> Done<()> {
    if let Some(checkout) = checkout(node, git, branch, operation)?
        && !is_changed(&checkout, path, &[Some(taken), None]).map_err(|error| failed(operation, &error))?
    {
        checkout.free_of_locks(operation)?;
        checkout.repository.sync_file(path).map_err(|error| failed(operation, &error))?;
    }
    Ok(())
}

/// Returns the working tree in which a branch is checked out.
fn checkout(node: &Node<'_>, git: &Repository, branch: &str, operation: &str) -> Done<Option<Checkout>> {
    let tree = git.worktree_with(branch).map_err(|error| failed(operation, &error))?;
    tree.map(|tree| Checkout::at(node, tree.path, operation)).transpose()
}

/// Tells whether a file has something in it that nobody has committed, and that is not what is to be in it: in the
/// working tree, or in its index.
fn is_changed(checkout: &Checkout, path: &str, known: &[Option<Vec<u8>>]) -> Result<bool, GitError> {
    let staged = checkout.repository.staged_file(path)?;
    if staged.is_some() && !known.contains(&staged) {
        return Ok(true);
    }
    // No plan is larger; what is, is none of ours.
    const MOST: u64 = 256 << 20;
    Ok(match read_regular(checkout.repository.directory(), Path::new(path), MOST) {
        Ok(Some(found)) => !known.contains(&Some(found)),
        // What is not there was removed, or never checked out; nothing of it can get lost.
        Ok(None) => false,
        // A link, a directory, or something else that no commit has.
        Err(_) => true,
    })
}
