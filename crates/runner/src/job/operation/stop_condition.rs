//! `gate.stop_condition`: a script that says whether it is enough. While it is not, the way goes back.

use tidewheel_core::job::NodeOutcome;

use super::node::{Execute, Node, NodeEnd};
use super::shell;

pub(super) fn run(node: &Node<'_>, execute: &mut Execute<'_>) -> NodeEnd {
    let of_gate = node.gate("script").and_then(|gate| gate.get("script"));
    let program = match shell::program(node, of_gate) {
        Ok(Some(program)) => program,
        Ok(None) => {
            return NodeEnd::succeeded("stop-condition has no script, so that there is nothing to check");
        }
        Err(error) => return error.into(),
    };
    let ended = execute(program.into());
    let mut end = NodeEnd::of("stop-condition", &ended);
    match end.outcome {
        NodeOutcome::Succeeded => "stop-condition met".clone_into(&mut end.summary),
        NodeOutcome::Failed if ended.is_ok() => return failed(node, end),
        NodeOutcome::Failed | NodeOutcome::Blocked | NodeOutcome::Cancelled | NodeOutcome::Skipped => {}
    }
    end
}

/// Says that it is not enough, and, when the way has gone back often enough, that it is over.
fn failed(node: &Node<'_>, mut end: NodeEnd) -> NodeEnd {
    let attempt = node.attempt;
    let budget =
        node.node.retry.as_ref().filter(|retry| retry.mode == "until_gate").map(|retry| retry.budget);
    match budget {
        Some(budget) if node.record.starts_since_retry() > budget.saturating_add(1) => {
            let what =
                format!("stop-condition failed on attempt {attempt}; retry budget exhausted ({budget})");
            NodeEnd { complaint: end.complaint, ..NodeEnd::blocked(what) }
        }
        Some(_) | None => {
            end.summary = match end.complaint.take() {
                Some(complaint) => format!("stop-condition failed on attempt {attempt}: {complaint}"),
                None => format!("stop-condition failed on attempt {attempt}"),
            };
            end
        }
    }
}
