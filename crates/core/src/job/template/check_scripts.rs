//! Whether the scripts of nodes can run as they are written, and whether what nodes say about scripts acts on one.

use serde_json::Value;

use super::expand::Issues;
use super::flat::Flat;
use super::label::SCRIPT_ARGS;
use super::node::{Draft, Gate, Place};
use super::policies::Chosen;
use crate::job::foreign_interpreter;
use crate::policy::Fallback;

/// Checks the scripts of all nodes, those of their policies' fallbacks included.
pub(super) fn whole(flat: &Flat, chosen: &[Chosen], issues: &mut Issues<'_>) {
    for (draft, chosen) in flat.nodes.iter().zip(chosen) {
        let Some(label) = draft.label else { continue };
        let mut scripts = own(draft);
        scripts.extend(of_fallback(chosen).into_iter().map(|script| (script, &draft.place)));
        for (script, place) in &scripts {
            if let Some(program) = foreign_interpreter(script) {
                let message = format!("has a script for `{program}`, and `sh` runs every script");
                let help = format!(
                    "write command = [\"{program}\", …], or put the script into a file of its own and run that"
                );
                issues.node_with_help(place, &draft.id, &message, &help);
            }
        }
        let Some((_, place)) = &draft.errexit else { continue };
        let is_read = !draft.unread.args && !draft.unread.gates;
        if !label.runs_scripts() {
            let message = format!("sets errexit, which does nothing for {}", label.operation);
            issues.node_with_help(place, &draft.id, &message, "errexit is for nodes that run a script");
        } else if scripts.is_empty() && is_read {
            let help = "errexit acts on a text that a shell reads, and not on a list of words";
            issues.node_with_help(place, &draft.id, "sets errexit, but has no script", help);
        }
    }
}

/// Returns the texts of a node that a shell reads, and where they stand.
fn own(draft: &Draft) -> Vec<(&str, &Place)> {
    let of_args = SCRIPT_ARGS.iter().filter_map(|name| {
        let takes = draft.label.is_some_and(|label| label.args.contains(name));
        let script = draft.args.get(*name).filter(|_| takes)?.as_str()?;
        Some((script, draft.arg_places.get(*name).unwrap_or(&draft.place)))
    });
    let of_gates = draft.gates.iter().filter_map(|(gate, place)| match gate {
        Gate::Script { script } | Gate::Cicd { script, .. } if !script.trim().is_empty() => {
            Some((script.as_str(), place))
        }
        Gate::Script { .. } | Gate::Cicd { .. } | Gate::Approval { .. } => None,
    });
    of_args.chain(of_gates).collect()
}

/// Returns the texts for a shell that a fallback gives to a node.
fn of_fallback(chosen: &Chosen) -> Vec<&str> {
    let args = match &chosen.resolved.fallback {
        Some(Fallback::Overrides(overrides)) => overrides.get("args").and_then(Value::as_object),
        Some(Fallback::Value(_) | Fallback::Function(_)) | None => None,
    };
    let Some(args) = args else { return Vec::new() };
    SCRIPT_ARGS.iter().filter_map(|name| args.get(*name)?.as_str()).collect()
}
