//! `merge.sentinel.write` and `merge.sentinel.clear`: the file that says that a merge of a plan stopped at a conflict.

use std::io;

use serde_json::{Value, json};
use tidewheel_core::job::Slug;

use super::names::{self, Done};
use super::node::{Node, NodeEnd};
use super::scratch;

pub(super) fn write(node: &Node<'_>) -> NodeEnd {
    written(node).unwrap_or_else(|end| *end)
}

pub(super) fn clear(node: &Node<'_>) -> NodeEnd {
    cleared(node).unwrap_or_else(|end| *end)
}

fn written(node: &Node<'_>) -> Done {
    let slug = names::needed_slug(node, "merge.sentinel.write")?;
    let source = match names::branch(node, "source")? {
        Some(source) => source,
        None => names::branch_of(&slug)?,
    };
    let target = names::branch(node, "target")?;
    leave(node, &slug, source.as_str(), target.as_ref().map(AsRef::as_ref))?;
    Ok(NodeEnd::succeeded(format!("wrote the merge sentinel of plan {slug}")))
}

fn cleared(node: &Node<'_>) -> Done {
    let slug = names::needed_slug(node, "merge.sentinel.clear")?;
    Ok(NodeEnd::succeeded(match take_away(node, &slug)? {
        true => format!("removed the merge sentinel of plan {slug}"),
        false => format!("plan {slug} has no merge sentinel"),
    }))
}

/// Writes the sentinel of a plan.
pub(super) fn leave(node: &Node<'_>, slug: &Slug, source: &str, target: Option<&str>) -> Done<()> {
    let value = json!({
        "slug": slug.as_str(),
        "source_branch": source,
        "target_branch": target,
        "job_id": node.record.id.as_str(),
        "node_id": node.record.node().map_or(Value::Null, |node| json!(node.as_str())),
        "created_at": node.around.now().to_string(),
    });
    let text = format!("{value:#}\n");
    scratch::write_sentinel(node.around.data(), slug, &text).map_err(|error| broken(slug, &error))
}

/// Removes the sentinel of a plan. Tells whether there was one.
pub(super) fn take_away(node: &Node<'_>, slug: &Slug) -> Done<bool> {
    scratch::remove_sentinel(node.around.data(), slug).map_err(|error| broken(slug, &error))
}

/// Returns the end of a node that cannot use the sentinel of a plan.
pub(super) fn broken(slug: &Slug, error: &io::Error) -> Box<NodeEnd> {
    Box::new(NodeEnd::failed(format!("cannot use the merge sentinel of plan {slug}: {error}"), 1))
}
