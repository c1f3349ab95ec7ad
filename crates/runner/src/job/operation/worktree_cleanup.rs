//! `worktree.cleanup`: removes the worktree that an earlier job of the run made. The branch and its commits stay.

use serde_json::{Value, json};
use tidewheel_core::job::Metadata;

use super::checkout::{Checkout, is_cut_off};
use super::names::Done;
use super::node::{Execute, Node, NodeEnd};
use super::worktree_prepare::note;
use crate::git::Call;
use crate::job::worktree;

const OPERATION: &str = "worktree.cleanup";

pub(super) fn run(node: &Node<'_>, execute: &mut Execute<'_>) -> NodeEnd {
    clean(node, execute).unwrap_or_else(|end| *end)
}

fn clean(node: &Node<'_>, execute: &mut Execute<'_>) -> Done {
    let metadata = &node.record.metadata;
    let Some(given) = metadata.text(Metadata::WORKTREE_PATH) else {
        return Ok(NodeEnd::succeeded("there is no worktree to clean up"));
    };
    if metadata.get(Metadata::WORKTREE_OWNED).and_then(Value::as_bool) != Some(true) {
        return Ok(NodeEnd::succeeded(format!("worktree {given} is owned by no job and stays")));
    }
    let data = node.around.data();
    if let Some(path) = worktree::owned_place(given, node.root, data) {
        let root = Checkout::at(node, node.root.to_owned(), OPERATION)?;
        for force in [&["worktree", "remove"][..], &["worktree", "remove", "--force"]] {
            if !path.exists() {
                break;
            }
            let call = Call::new(force.iter().copied()).arg("--").arg(&path);
            // What git refuses is looked at below; what ends the job ends it.
            if let Err(end) = root.run(OPERATION, &call, execute)
                && is_cut_off(&end)
            {
                return Err(end);
            }
        }
    }
    match worktree::remove(given, node.root, data) {
        Ok(()) => {
            note(
                node,
                &[
                    (Metadata::EXECUTION_ROOT, json!(".")),
                    (Metadata::WORKTREE_OWNED, Value::Null),
                    (Metadata::WORKTREE_PATH, Value::Null),
                    (Metadata::WORKTREE_NAME, Value::Null),
                    (Metadata::WORKTREE_BRANCH, Value::Null),
                    (Metadata::WORKTREE_OWNER, Value::Null),
                    (Metadata::WORKTREE_CLEANUP_STATUS, json!("done")),
                    (Metadata::WORKTREE_CLEANUP_ERROR, Value::Null),
                    (Metadata::WORKTREE_CLEANED, json!(given)),
                ],
            )?;
            Ok(NodeEnd::succeeded(format!("removed {given}")))
        }
        Err(error) => {
            // What is known of it stays, so that a retry finds it.
            let error = error.to_string();
            note(
                node,
                &[
                    (Metadata::WORKTREE_CLEANUP_STATUS, json!("degraded")),
                    (Metadata::WORKTREE_CLEANUP_ERROR, json!(error)),
                ],
            )?;
            Ok(NodeEnd::failed(format!("{OPERATION} failed: {error}"), 1))
        }
    }
}
