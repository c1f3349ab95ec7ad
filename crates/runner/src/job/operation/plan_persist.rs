//! `plan.persist`: the text of a plan becomes a document that is committed on the branch of the plan. Nobody's working
//! tree is touched, but for that document where the branch is checked out.

use tidewheel_core::job::{Artifact, Branch};
use tidewheel_store::jobs::read_regular;

use super::checkout::{Checkout, failed};
use super::document::{self, Change};
use super::execution_root::execution_root;
use super::names::{self, Done, document_of, stopped, text};
use super::node::{Node, NodeEnd};
use super::stage_commit::short;
use super::worktree_prepare::base_of;
use crate::git::GitError;

/// No plan is larger.
const MOST_PLAN: u64 = 64 << 20;
const OPERATION: &str = "plan.persist";

pub(super) fn run(node: &Node<'_>) -> NodeEnd {
    persist(node).unwrap_or_else(|end| *end)
}

fn persist(node: &Node<'_>) -> Done {
    let slug = names::needed_slug(node, OPERATION)?;
    let branch: Branch = match names::branch(node, "branch")? {
        Some(branch) => branch,
        None => match names::branch_of_record(node)? {
            Some(branch) => branch,
            None => names::branch_of(&slug)?,
        },
    };
    let content = content(node)?;
    let root = Checkout::at(node, node.root.to_owned(), OPERATION)?;
    let git = &root.repository;
    let refused = |error: GitError| failed(OPERATION, &error);
    git.check_identity().map_err(refused)?;
    let tip = git.head_of(branch.as_str()).map_err(refused)?;
    let parent = match &tip {
        Some(tip) => tip.clone(),
        None => base_of(node, git, OPERATION)?,
    };
    let path = document_of(&slug);
    let is_there = git.file_at(&parent, &path).map_err(refused)?.is_some();
    let verb = if is_there { "update" } else { "add" };
    let change = Change {
        branch: branch.as_str(),
        parent: &parent,
        from: tip.as_deref().unwrap_or_default(),
        path: &path,
        content: Some(content.as_bytes()),
        message: &format!("docs: {verb} implementation plan {slug}\n"),
    };
    Ok(NodeEnd::succeeded(match document::commit(node, git, &change, OPERATION)? {
        Some(commit) => format!("committed {path} on {branch} ({})", short(&commit)),
        None => format!("{path} is on {branch} already"),
    }))
}

/// Returns the document: the text of the plan, what it was made from, or both under their headings.
fn content(node: &Node<'_>) -> Done<String> {
    let spec = written(node, &["spec", "spec_text"], "spec_file")?;
    let plan = match written(node, &["plan_text"], "plan_file")? {
        Some(plan) => Some(plan),
        None => handed_over(node)?,
    };
    let text = match (spec, plan) {
        (Some(spec), Some(plan)) => {
            format!("## Spec\n\n{}\n\n## Implementation plan\n\n{}", spec.trim(), plan.trim())
        }
        (Some(text), None) | (None, Some(text)) => text,
        (None, None) => {
            let what = "(set spec or plan_text, or need an artifact with a payload)";
            return Err(stopped(format!("{OPERATION} has no text {what}")));
        }
    };
    Ok(if text.ends_with('\n') { text } else { format!("{text}\n") })
}

/// Returns a text that is given as it is, or by the name of a file in the repository.
fn written(node: &Node<'_>, names: &[&str], file: &str) -> Done<Option<String>> {
    if let Some(given) = names.iter().find_map(|name| text(node, name)) {
        return Ok(Some(given.to_owned()));
    }
    let Some(name) = text(node, file) else { return Ok(None) };
    let root = node.root.canonicalize();
    let directory =
        execution_root(node.root, &node.record.metadata).map_err(|error| Box::new(error.into()))?;
    let path = directory.join(name.trim()).canonicalize();
    let fail = |what: &str| stopped(format!("{OPERATION} failed: {file} `{name}` {what}"));
    let (Ok(root), Ok(path)) = (root, path) else { return Err(fail("does not exist")) };
    let Ok(inside) = path.strip_prefix(&root) else { return Err(fail("is outside of the repository")) };
    let cannot = |error: &dyn std::fmt::Display| fail(&format!("cannot be read: {error}"));
    let bytes = read_regular(&root, inside, MOST_PLAN).map_err(|error| cannot(&error))?;
    let bytes = bytes.ok_or_else(|| fail("does not exist"))?;
    String::from_utf8(bytes).map(Some).map_err(|_| cannot(&"it is not UTF-8"))
}

/// Returns the text in the first artifact with one that the job needs.
fn handed_over(node: &Node<'_>) -> Done<Option<String>> {
    for need in &node.record.schedule.dependencies {
        if !matches!(need.artifact, Artifact::Custom { .. }) {
            continue;
        }
        let fail =
            |error| Box::new(NodeEnd::failed(format!("{OPERATION} failed: {}: {error}", need.artifact), 1));
        let payload = node.around.payload(&need.artifact).map_err(fail)?;
        let text = payload.as_ref().and_then(|value| value.get("text").unwrap_or(value).as_str());
        if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
            return Ok(Some(text.to_owned()));
        }
    }
    Ok(None)
}
