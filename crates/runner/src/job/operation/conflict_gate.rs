//! `gate.conflict_resolution`: opens when nothing of a merge that stopped is in conflict any more. Something may be tried
//! to resolve it.

use std::path::PathBuf;

use serde_json::Value;
use tidewheel_core::job::{Branch, NodeOutcome, Slug};

use super::checkout::{Checkout, failed, is_cut_off};
use super::names::{self, Done, text};
use super::node::{Execute, Node, NodeEnd};
use super::task::Task;
use super::{agent_invoke, scratch, sentinel, shell};

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
    let trees = trees(node, &stopped)?;
    let (first, left) = in_conflict(&trees)?;
    let Some(first) = first else {
        return open(format!("conflict gate passed: the merge of plan {slug} is resolved"));
    };
    if node.flag("auto_resolve") != Some(true) {
        return Ok(blocked(node, &left, ""));
    }
    let Some(task) = resolver(node, &slug, first, &left)? else {
        return Ok(blocked(node, &left, " (auto_resolve has no command)"));
    };
    let mended = NodeEnd::of("conflict gate auto-resolve", &execute(task));
    if is_cut_off(&mended) {
        return Ok(mended);
    }
    let (rest, left) = in_conflict(&trees)?;
    match (rest, mended.outcome) {
        (None, _) => open(format!("conflict gate passed after auto-resolve on attempt {}", node.attempt)),
        (Some(_), NodeOutcome::Succeeded) => Ok(blocked(node, &left, " after auto-resolve")),
        (Some(_), _) => Ok(blocked(node, &left, &format!(" ({})", mended.summary))),
    }
}

/// Returns what is to resolve the files that are in conflict in a working tree, if anything is named.
fn resolver(node: &Node<'_>, slug: &Slug, directory: PathBuf, left: &[String]) -> Done<Option<Task>> {
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

/// Returns the working trees in which the merge may stand: where the job runs, and where the target is checked out.
fn trees(node: &Node<'_>, sentinel: &str) -> Done<Vec<Checkout>> {
    let here = Checkout::of(node, OPERATION)?;
    let sentinel: Value = serde_json::from_str(sentinel).unwrap_or_default();
    let target = sentinel["target_branch"].as_str().and_then(|name| Branch::new(name).ok());
    let mut trees = vec![here];
    if let Some(target) = target {
        let found = trees[0].repository.worktree_with(target.as_str());
        let found = found.map_err(|error| failed(OPERATION, &error))?;
        if let Some(tree) = found.filter(|tree| tree.path != trees[0].repository.directory()) {
            trees.push(Checkout::at(node, tree.path, OPERATION)?);
        }
    }
    Ok(trees)
}

/// Returns the first working tree with files in conflict, and all of those files.
fn in_conflict(trees: &[Checkout]) -> Done<(Option<PathBuf>, Vec<String>)> {
    let (mut first, mut left) = (None, Vec::new());
    for tree in trees {
        let unmerged = tree.repository.unmerged().map_err(|error| failed(OPERATION, &error))?;
        if !unmerged.is_empty() {
            first.get_or_insert_with(|| tree.repository.directory().to_owned());
        }
        left.extend(unmerged);
    }
    left.sort();
    left.dedup();
    Ok((first, left))
}

fn blocked(node: &Node<'_>, left: &[String], why: &str) -> NodeEnd {
    let what = format!("remaining unmerged paths: {}", left.join(", "));
    node.around.complain(&what);
    NodeEnd::blocked(format!("conflict gate blocked{why}: {what}"))
}
