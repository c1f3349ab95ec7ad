//! `gate.approval`: what a person said, put into effect. Whoever waits for it waits before this runs.

use tidewheel_core::job::{Approval, ApprovalState};

use super::node::{Node, NodeEnd};

pub(super) fn run(node: &Node<'_>) -> NodeEnd {
    let of_gate = || node.gate("approval")?.flag("required");
    if node.flag("required").or_else(of_gate) == Some(false) {
        return NodeEnd::succeeded("no approval is required");
    }
    let Some(approval) = &node.record.schedule.approval else {
        return NodeEnd::blocked("approval gate blocked: no approval state present");
    };
    match approval.state {
        ApprovalState::Approved => NodeEnd::succeeded("approved"),
        ApprovalState::Pending => {
            NodeEnd::blocked("approval gate blocked: it was neither approved nor rejected")
        }
        ApprovalState::Rejected => {
            let what = format!("rejected: {}", reason(approval));
            NodeEnd::failed(what, NodeEnd::BLOCKED).non_retryable()
        }
    }
}

fn reason(approval: &Approval) -> &str {
    approval.reason.as_deref().filter(|reason| !reason.trim().is_empty()).unwrap_or("approval rejected")
}
