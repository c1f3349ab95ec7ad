//! `worktree.prepare`: a worktree of its own for the jobs that follow, with a branch that is made if it is not there.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use tidewheel_core::job::template::taken_purpose;
use tidewheel_core::job::{Branch, Metadata, Slug};

use super::checkout::{Checkout, failed};
use super::names::{self, Done, stopped, text};
use super::node::{Execute, Node, NodeEnd};
use crate::git::{Call, GitError, MOMENT, Repository, TRIES, is_half_seen};
use crate::job::worktree;

const OPERATION: &str = "worktree.prepare";
/// What a worktree is for, where nobody says.
const PURPOSE: &str = "work";

pub(super) fn run(node: &Node<'_>, execute: &mut Execute<'_>) -> NodeEnd {
    prepare(node, execute).unwrap_or_else(|end| *end)
}

fn prepare(node: &Node<'_>, execute: &mut Execute<'_>) -> Done {
    let branch = branch(node)?;
    let name = format!("{}-{}", purpose(node)?, node.record.id);
    let place = format!(".tidewheel/tmp-worktrees/{name}");
    let root = Checkout::at(node, node.root.to_owned(), OPERATION)?;
    let git = &root.repository;
    let refused = |error: GitError| failed(OPERATION, &error);
    let path = whole_path(node, &place)?;
    if let Some(other) = git.worktree_with(branch.as_str()).map_err(refused)?.filter(|tree| tree.path != path)
    {
        let message = format!(
            "{OPERATION} failed: branch `{branch}` is checked out in {}; leave it there, or name another branch",
            other.path.display()
        );
        return Err(Box::new(NodeEnd::failed(message, 1)));
    }
    make_branch(node, git, &branch)?;
    // It is on record before it is there, so that whoever cleans up after a crash finds it.
    note(
        node,
        &[
            (Metadata::WORKTREE_OWNED, json!(true)),
            (Metadata::WORKTREE_PATH, json!(place)),
            (Metadata::WORKTREE_NAME, json!(name)),
            (Metadata::WORKTREE_BRANCH, json!(branch.as_str())),
            (Metadata::WORKTREE_OWNER, json!(node.record.id.as_str())),
        ],
    )?;
    make(&root, &path, &branch, OPERATION, execute)?;
    note(node, &[(Metadata::EXECUTION_ROOT, json!(place))])?;
    Ok(NodeEnd::succeeded(format!("prepared {place} with branch {branch}")))
}

/// Makes a worktree with a branch, unless an earlier attempt has made it.
pub(super) fn make(
    root: &Checkout,
    path: &PathBuf,
    branch: &Branch,
    operation: &str,
    execute: &mut Execute<'_>,
) -> Done<()> {
    let git = &root.repository;
    let known = git.worktrees().map_err(|error| failed(operation, &error))?;
    let is_whole = known.iter().any(|tree| {
        tree.path == *path
            && !tree.is_half_made()
            && !tree.is_gone
            && tree.branch.as_deref() == Some(branch.as_str())
    });
    if is_whole {
        return Ok(());
    }
    let fail = |what: String| Box::new(NodeEnd::failed(format!("{operation} failed: {what}"), 1));
    git.remove_worktree(path).map_err(|error| fail(error.to_string()))?;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)
            .map_err(|error| fail(format!("cannot make {}: {error}", folder.display())))?;
    }
    let [add, unlock] = Repository::add_worktree(path, branch.as_str());
    let patiently = |call: &Call, execute: &mut Execute<'_>, undo: &dyn Fn() -> Done<()>| {
        for _ in 0..TRIES {
            match root.run(operation, call, execute) {
                // Another job was making one just then.
                Err(end) if is_half_seen(&end.summary) => undo()?,
                ended => return ended.map(drop),
            }
            std::thread::sleep(MOMENT);
        }
        root.run(operation, call, execute).map(drop)
    };
    patiently(&add, execute, &|| git.remove_worktree(path).map_err(|error| fail(error.to_string())))?;
    patiently(&unlock, execute, &|| Ok(()))
}

/// Returns where a worktree of a job is, without links.
pub(super) fn whole_path(node: &Node<'_>, place: &str) -> Done<PathBuf> {
    let path = worktree::owned_place(place, node.root, node.around.data());
    path.ok_or_else(|| stopped(format!("refusing to use unsafe worktree path {place}")))
}

/// Writes something into the record.
pub(super) fn note(node: &Node<'_>, values: &[(&str, Value)]) -> Done<()> {
    let fail = |error| Box::new(NodeEnd::failed(format!("cannot write the record: {error}"), 1));
    node.around.note(values).map_err(fail)
}

fn branch(node: &Node<'_>) -> Done<Branch> {
    if let Some(branch) = names::branch(node, "branch")? {
        return Ok(branch);
    }
    if let Some(branch) = names::branch_of_record(node)? {
        return Ok(branch);
    }
    match names::slug(node)? {
        Some(slug) => names::branch_of(&slug),
        None => Err(stopped("worktree.prepare could not determine branch (set branch or slug/plan)")),
    }
}

fn purpose(node: &Node<'_>) -> Done<Slug> {
    /// With the id of a job it has to fit into a file name.
    const LONGEST: usize = 50;
    let purpose = Slug::new(text(node, "purpose").unwrap_or(PURPOSE).trim());
    let purpose = purpose.map_err(|error| stopped(error.to_string()))?;
    let message = match taken_purpose(purpose.as_str()) {
        Some((taken, by)) => format!("must not begin with `{taken}`, which is for {by}"),
        None if purpose.as_str().len() > LONGEST => format!("has more than {LONGEST} characters"),
        None => return Ok(purpose),
    };
    Err(stopped(format!("{OPERATION} failed: purpose `{purpose}` {message}")))
}

/// Makes a branch if it is not there: from the one that is named, or else from what is checked out.
fn make_branch(node: &Node<'_>, git: &Repository, branch: &Branch) -> Done<()> {
    let refused = |error: GitError| failed(OPERATION, &error);
    if git.head_of(branch.as_str()).map_err(refused)?.is_some() {
        return Ok(());
    }
    let base = base_of(node, git, OPERATION)?;
    git.make_branch(branch.as_str(), &base).map_err(refused)
}

/// Returns the commit that a branch is made from.
pub(super) fn base_of(node: &Node<'_>, git: &Repository, operation: &str) -> Done<String> {
    let refused = |error: GitError| failed(operation, &error);
    let is_head = text(node, "base").is_some_and(|base| base.trim() == "HEAD");
    let named = match is_head {
        true => None,
        false => names::branch(node, "base")?
            .map_or_else(|| names::branch(node, "target"), |base| Ok(Some(base)))?,
    };
    let Some(named) = named else {
        let head = git.commit_of("HEAD").map_err(refused)?;
        return head.ok_or_else(|| stopped(format!("{operation} failed: the repository has no commit yet")));
    };
    let found = match git.head_of(named.as_str()).map_err(refused)? {
        Some(found) => Some(found),
        None => git.commit_of(named.as_str()).map_err(refused)?,
    };
    found.ok_or_else(|| stopped(format!("{operation} failed: base `{named}` does not exist")))
}
