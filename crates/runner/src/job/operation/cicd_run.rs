//! `cicd.run`: a command or a script, or else that of its gate.

use tidewheel_core::job::NodeOutcome;

use super::node::{Execute, Node, NodeEnd};
use super::shell;

pub(super) fn run(node: &Node<'_>, execute: &mut Execute<'_>) -> NodeEnd {
    let of_gate = ["cicd", "script"].into_iter().find_map(|kind| node.gate(kind)?.get("script"));
    let mut end = match shell::program(node, of_gate) {
        Ok(Some(program)) => NodeEnd::of("cicd.run", &execute(program.into())),
        Ok(None) => {
            let what = "cicd.run has neither a command nor a script, and no gate has one";
            return NodeEnd::failed(what, 1).non_retryable();
        }
        Err(error) => return error.into(),
    };
    if end.outcome == NodeOutcome::Succeeded {
        "cicd.run passed".clone_into(&mut end.summary);
    }
    end
}
