//! What a node is to run: a text for a shell, or a program with its arguments.

use serde_json::Value;
use tidewheel_core::job::script_argv;

use super::execution_root::{ExecutionRootError, execution_root};
use super::node::{Node, RUN};
use crate::process::Program;

/// Returns what the arguments of a node say to run, or else what is given; `None` if that is nothing, too.
pub(super) fn program(
    node: &Node<'_>,
    otherwise: Option<&Value>,
) -> Result<Option<Program>, ExecutionRootError> {
    let argv = |value| argv(value, node.node.errexit);
    let said = RUN.iter().filter_map(|name| node.arg(name)).find_map(argv);
    said.or_else(|| otherwise.and_then(argv)).map(|argv| placed(node, argv)).transpose()
}

/// Returns the program of one argument.
pub(super) fn program_of(node: &Node<'_>, value: &Value) -> Result<Option<Program>, ExecutionRootError> {
    argv(value, node.node.errexit).map(|argv| placed(node, argv)).transpose()
}

/// Reads a text, which a shell runs, or a list, which is run as it is. What is blank is nothing.
fn argv(value: &Value, errexit: bool) -> Option<Vec<String>> {
    match value {
        Value::String(text) if text.trim().is_empty() => None,
        Value::String(text) => Some(script_argv(text, errexit)),
        Value::Array(words) if words.is_empty() => None,
        Value::Array(words) => Some(words.iter().map(word).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn placed(node: &Node<'_>, argv: Vec<String>) -> Result<Program, ExecutionRootError> {
    let directory = execution_root(node.root, &node.record.metadata)?;
    Ok(Program::new(argv).current_dir(directory))
}
