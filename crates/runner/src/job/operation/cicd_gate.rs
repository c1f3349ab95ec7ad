//! `gate.cicd`: a check that has to pass, and, if it does not, something that may mend it.

use serde_json::Value;
use tidewheel_core::job::NodeOutcome;

use super::node::{Execute, Node, NodeEnd};
use super::shell;
use crate::process::Program;

/// The arguments that say what mends.
const FIXES: [&str; 2] = ["auto_resolve_command", "auto_resolve_script"];

pub(super) fn run(node: &Node<'_>, execute: &mut Execute<'_>) -> NodeEnd {
    let gate = node.gate("cicd");
    let of_gate = gate.or_else(|| node.gate("script")).and_then(|gate| gate.get("script"));
    let program = match shell::program(node, of_gate) {
        Ok(Some(program)) => program,
        Ok(None) => return NodeEnd::succeeded("cicd gate has no script, so that there is nothing to check"),
        Err(error) => return error.into(),
    };
    let attempt = node.attempt;
    let first = check(attempt, execute, &program);
    let of_gate = || gate?.flag("auto_resolve");
    let mends = node.flag("auto_resolve").or_else(of_gate).unwrap_or(false);
    // What was cancelled or took too long is not to be mended.
    let is_red = first.outcome == NodeOutcome::Failed && is_code(&first);
    let Some(fix) = fix_of(node).filter(|_| mends && is_red) else { return first };
    let fix = match shell::program_of(node, fix) {
        Ok(Some(fix)) => fix,
        Ok(None) => return first,
        Err(error) => return error.into(),
    };
    let mended = NodeEnd::of("cicd gate auto-resolve", &execute(fix.into()));
    match mended.outcome {
        NodeOutcome::Succeeded => {}
        NodeOutcome::Failed if is_code(&mended) => return first,
        NodeOutcome::Failed | NodeOutcome::Blocked | NodeOutcome::Cancelled | NodeOutcome::Skipped => {
            return mended;
        }
    }
    let mut second = check(attempt, execute, &program);
    match second.outcome {
        NodeOutcome::Succeeded => {
            second.summary = format!("cicd gate passed after auto-resolve on attempt {attempt}");
            second
        }
        NodeOutcome::Failed if is_code(&second) => first,
        NodeOutcome::Failed | NodeOutcome::Blocked | NodeOutcome::Cancelled | NodeOutcome::Skipped => second,
    }
}

fn check(attempt: u32, execute: &mut Execute<'_>, program: &Program) -> NodeEnd {
    let ended = execute(program.clone().into());
    let mut end = NodeEnd::of("cicd gate", &ended);
    match (end.outcome, end.exit_code) {
        (NodeOutcome::Succeeded, _) => end.summary = format!("cicd gate passed on attempt {attempt}"),
        (NodeOutcome::Failed, Some(code)) if ended.is_ok() => {
            end.summary = format!("cicd gate failed with exit code {code} on attempt {attempt}");
        }
        (NodeOutcome::Failed | NodeOutcome::Blocked | NodeOutcome::Cancelled | NodeOutcome::Skipped, _) => {}
    }
    end
}

/// Tells whether the process ended by itself, with a code.
fn is_code(end: &NodeEnd) -> bool {
    matches!(end.code, Some(tidewheel_core::policy::ErrorCode::Number(_))) && !end.non_retryable
}

fn fix_of<'a>(node: &Node<'a>) -> Option<&'a Value> {
    let of_args = FIXES.iter().find_map(|name| node.arg(name));
    of_args.or_else(|| FIXES.iter().find_map(|name| node.gate("cicd")?.get(name)))
}
