//! Which operation a node is.

use super::node::{Execute, Node, NodeEnd};
use super::{approval, cicd_gate, cicd_run, command_run, stop_condition, terminal};

/// Does what a node is for.
pub fn run(node: &Node<'_>, execute: &mut Execute<'_>) -> NodeEnd {
    match node.node.uses.as_str() {
        "cap.env.shell.command.run" => command_run::run(node, execute),
        "cap.env.shell.cicd.run" => cicd_run::run(node, execute),
        "control.terminal" => terminal::run(node),
        "control.gate.approval" => approval::run(node),
        "control.gate.stop_condition" => stop_condition::run(node, execute),
        "control.gate.cicd" => cicd_gate::run(node, execute),
        other => NodeEnd::failed(format!("this release has no operation `{other}`"), 1).non_retryable(),
    }
}
