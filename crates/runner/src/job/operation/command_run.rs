//! `command.run`: a command, or a script.

use super::node::{Execute, Node, NodeEnd};
use super::shell;

pub(super) fn run(node: &Node<'_>, execute: &mut Execute<'_>) -> NodeEnd {
    match shell::program(node, None) {
        Ok(Some(program)) => NodeEnd::of("command.run", &execute(program.into())),
        Ok(None) => NodeEnd::failed("command.run has neither a command nor a script", 1).non_retryable(),
        Err(error) => error.into(),
    }
}
