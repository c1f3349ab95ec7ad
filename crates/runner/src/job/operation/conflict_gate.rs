//! `gate.conflict_resolution`: opens when nothing of a merge that stopped is in conflict any more. Something may be tried
//! to resolve it.

use std::path::Path;

use serde_json::Value;
use tidewheel_core::job::{Branch, NodeOutcome, Slug};
use tidewheel_core::view::abridged_list;

use super::checkout::{Checkout, failed, is_cut_off};
use super::names::{self, Done, text};
use super::node::{Execute, Node, NodeEnd};
use super::task::Task;
use super::{agent_invoke, scratch, sentinel, shell};
use crate::git::GitError;

const OPERATION: &str = "gate.conflict_resolution";
/// The arguments that say what resolves.
const FIXES: [&str; 2] = ["auto_resolve_command", "auto_resolve_script"];

pub(super) fn run(node: &Node<'_>, execute: &mut Execute<'_>) -> NodeEnd {
    judge(node, execute).unwrap_or_else(|end| *end)
}

fn judge(node: &Node<'_>, execute: &mut Execute<'_>) -> Done {
    let slug = names::needed_slug(node, OPERATION)?;
    let data = node.around.data();
    let stopped = scratch::read_sentinel(data, &slug).map_err(|error| sentinel::broken(&slug, &error))?;
    let Some(stopped) = stopped else {
        return Ok(NodeEnd::succeeded(format!("no merge of plan {slug} is in conflict")));
    };
    let open = |how: String| {
        sentinel::take_away(node, &slug)?;
        Ok(NodeEnd::succeeded(how))
    };
    let place = place(node, &stopped)?;
    let left = in_conflict(&place)?;
    if left.is_empty() {
        return open(format!("conflict gate passed: the merge of plan {slug} is resolved"));
    }
    if node.flag("auto_resolve") != Some(true) {
        return Ok(blocked(node, &place, &left, ""));
    }
    if !place.is_sure {
        let path = place.tree.repository.directory().display();
        let why = format!(" (what is in conflict in {path} is not of plan {slug})");
        return Ok(blocked(node, &place, &left, &why));
    }
    let Some(task) = resolver(node, &slug, place.tree.repository.directory(), &left)? else {
        return Ok(blocked(node, &place, &left, " (auto_resolve has no command)"));
    };
    let mended = NodeEnd::of("conflict gate auto-resolve", &execute(task));
    if is_cut_off(&mended) {
        return Ok(mended);
    }
    let left = in_conflict(&place)?;
    if left.is_empty() {
        return open(format!("conflict gate passed after auto-resolve on attempt {}", node.attempt));
    }
    let why = match mended.outcome == NodeOutcome::Succeeded {
        true => " after auto-resolve".to_owned(),
        false => format!(" ({})", mended.summary),
    };
    Ok(blocked(node, &place, &left, &why))
}

/// Returns what is to resolve the files that are in conflict in a working tree, if anything is named.
fn resolver(node: &Node<'_>, slug: &Slug, directory: &Path, left: &[String]) -> Done<Option<Task>> {
    if let Some(name) = text(node, "auto_resolve_agent") {
        let agent = agent_invoke::configured(node, name.trim())?;
        return Ok(Some(Task {
            program: agent_invoke::program(agent).current_dir(directory),
            input: Some(prompt(slug, left).into_bytes()),
            timeout: agent.timeout,
            keeps: None,
        }));
    }
    let Some(fix) = FIXES.iter().find_map(|name| node.arg(name)) else { return Ok(None) };
    let program = shell::program_of(node, fix).map_err(|error| Box::new(error.into()))?;
    Ok(program.map(|program| program.current_dir(directory).into()))
}

/// Returns what an agent is told of a conflict.
fn prompt(slug: &Slug, left: &[String]) -> String {
    let files: String = left.iter().map(|file| format!("- {file}\n")).collect();
    format!(
        "The merge of the plan {slug} has stopped in the current directory, with conflicts in these files:\n\n\
         {files}\n\
         Resolve them so that what both sides wanted is kept, and `git add` each of them. \
         Do not commit, do not abort the merge, and change nothing else.\n"
    )
}

/// Where a merge stands.
struct Place {
    tree: Checkout,
    /// Whether it is known to be there: whatever is in conflict elsewhere may be somebody else's, and nobody but that
    /// person resolves it.
    is_sure: bool,
}

/// Returns where the merge stands: where its target is checked out, or else where the job runs.
fn place(node: &Node<'_>, sentinel: &str) -> Done<Place> {
    let here = Checkout::of(node, OPERATION)?;
    let refused = |error: GitError| failed(OPERATION, &error);
    let sentinel: Value = serde_json::from_str(sentinel).unwrap_or_default();
    let branch = |name: &str| sentinel[name].as_str().and_then(|name| Branch::new(name).ok());
    let Some(target) = branch("target_branch") else { return Ok(Place { tree: here, is_sure: true }) };
    if let Some(tree) = here.repository.worktree_with(target.as_str()).map_err(refused)? {
        return Ok(Place { tree: Checkout::at(node, tree.path, OPERATION)?, is_sure: true });
    }
    let current = here.repository.current_branch().map_err(refused)?;
    let is_on_source = branch("source_branch").is_some_and(|name| current.as_deref() == Some(name.as_str()));
    Ok(Place { is_sure: is_on_source || here.is_of_jobs, tree: here })
}

/// Returns the files that are in conflict.
fn in_conflict(place: &Place) -> Done<Vec<String>> {
    place.tree.repository.unmerged().map_err(|error| failed(OPERATION, &error))
}

fn blocked(node: &Node<'_>, place: &Place, left: &[String], why: &str) -> NodeEnd {
    let what = format!("remaining unmerged paths: {}", abridged_list(left));
    let path = place.tree.repository.directory().display();
    let todo = format!("resolve them in {path}, `git add` them, {}", names::then_retry(node));
    node.around.complain(&what);
    node.around.complain(&todo);
    NodeEnd::blocked(format!("conflict gate blocked{why}: {what}; {todo}"))
}
