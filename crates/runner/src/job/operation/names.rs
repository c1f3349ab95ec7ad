//! The names that operations on git are given: each is checked before it touches a path or git, also when it comes from
//! a record and not from a template.

use serde_json::Value;
use tidewheel_core::job::{Branch, IdError, Metadata, Slug};

use super::node::{Node, NodeEnd};

/// What an operation does until something is in its way.
pub(super) type Done<T = NodeEnd> = Result<T, Box<NodeEnd>>;

/// Returns an argument that is a text with something in it.
pub(super) fn text<'a>(node: &Node<'a>, name: &str) -> Option<&'a str> {
    node.arg(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty())
}

/// Returns the plan that the node or its run is about.
pub(super) fn slug(node: &Node<'_>) -> Done<Option<Slug>> {
    let given = ["slug", "plan"].into_iter().find_map(|name| text(node, name));
    let of_run = || node.record.metadata.text("plan").filter(|plan| !plan.trim().is_empty());
    given.or_else(of_run).map(|slug| Slug::new(slug.trim())).transpose().map_err(refused)
}

/// Returns the plan that the node or its run is about, which has to be known.
pub(super) fn needed_slug(node: &Node<'_>, operation: &str) -> Done<Slug> {
    let missing = || stopped(format!("{operation} could not determine slug (set slug or plan)"));
    slug(node)?.ok_or_else(missing)
}

/// Returns an argument that names a branch.
pub(super) fn branch(node: &Node<'_>, name: &str) -> Done<Option<Branch>> {
    text(node, name).map(|branch| Branch::new(branch.trim())).transpose().map_err(refused)
}

/// Returns the branch of a plan.
pub(super) fn branch_of(slug: &Slug) -> Done<Branch> {
    Branch::new(&format!("draft/{slug}")).map_err(refused)
}

/// Returns the branch of the metadata of the job.
pub(super) fn branch_of_record(node: &Node<'_>) -> Done<Option<Branch>> {
    let given = node.record.metadata.text(Metadata::BRANCH).filter(|branch| !branch.trim().is_empty());
    given.map(|branch| Branch::new(branch.trim())).transpose().map_err(refused)
}

/// Returns the path of the document of a plan, from the top of the repository.
pub(super) fn document_of(slug: &Slug) -> String {
    format!(".tidewheel/implementation-plans/{slug}.md")
}

/// Returns the end of a node that would end alike if it were tried again.
pub(super) fn stopped(summary: impl Into<String>) -> Box<NodeEnd> {
    Box::new(NodeEnd::failed(summary, 1).non_retryable())
}

/// Says how a node goes on once a person has done what it asks for.
pub(super) fn then_retry(node: &Node<'_>) -> String {
    format!("then run `tidewheel jobs retry {}`", node.record.id)
}

fn refused(error: IdError) -> Box<NodeEnd> {
    stopped(error.to_string())
}
