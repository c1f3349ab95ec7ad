//! Whether nodes that work on git are given what they need, and names that are some: before anything is enqueued, and
//! with their places.

use serde_json::Value;

use super::expand::Issues;
use super::label::Label;
use super::node::Draft;
use crate::document::Problem;
use crate::job::{Branch, Slug};

/// The arguments that say what resolves a conflict.
const RESOLVERS: [&str; 3] = ["auto_resolve_command", "auto_resolve_script", "auto_resolve_agent"];

/// Says what is wrong with an argument that names a plan or a branch. One that is blank is none, and was left out.
pub(super) fn name(name: &str, value: &Value, path: &str) -> Option<Problem> {
    let text = value.as_str().map(str::trim).filter(|text| !text.is_empty())?;
    let wrong = match name {
        "slug" | "plan" => Slug::new(text).and_then(|slug| Branch::new(&format!("draft/{slug}"))).err(),
        "branch" | "base" | "source" | "target" => Branch::new(text).err(),
        "purpose" => Slug::new(text).err(),
        _ => None,
    };
    wrong.map(|error| Problem::new(path, error.to_string()))
}

/// Checks that there is what an operation on git needs.
pub(super) fn needed(draft: &Draft, label: &Label, issues: &mut Issues<'_>) {
    let has = |name: &str| draft.arg_places.contains_key(name);
    let missing = |name: &str| format!("needs a {name} arg for {}", label.operation);
    let place =
        |names: &[&str]| names.iter().find_map(|name| draft.arg_places.get(*name)).unwrap_or(&draft.place);
    match label.operation {
        "git.stage_commit" if !has("message") => issues.node(&draft.place, &draft.id, &missing("message")),
        "git.integrate_plan_branch" if !has("target") => {
            issues.node(&draft.place, &draft.id, &missing("target"));
        }
        "git.integrate_plan_branch"
            if has("source") && draft.args.get("source") == draft.args.get("target") =>
        {
            issues.node(place(&["target"]), &draft.id, "has the same branch as source and target args");
        }
        "gate.conflict_resolution" => {
            let given: Vec<&str> = RESOLVERS.into_iter().filter(|name| has(name)).collect();
            if let [first, second, ..] = given.as_slice() {
                let message = format!("sets both {first} and {second} args");
                issues.node(place(&[second]), &draft.id, &message);
            }
        }
        "worktree.prepare" => {
            let purpose = draft.args.get("purpose").and_then(Value::as_str).unwrap_or_default().trim();
            if purpose.starts_with("workspace") {
                let message = "has a purpose arg that begins with `workspace`, which is for people";
                issues.node(place(&["purpose"]), &draft.id, message);
            }
        }
        _ => {}
    }
    // Of two that say the same, one would have no effect.
    const SAME: [[&str; 2]; 6] = [
        ["slug", "plan"],
        ["base", "target"],
        ["spec", "spec_text"],
        ["spec", "spec_file"],
        ["spec_text", "spec_file"],
        ["plan_text", "plan_file"],
    ];
    for both in SAME {
        if both.iter().all(|name| label.args.contains(name) && has(name)) {
            let message = format!("sets both {} and {} args for {}", both[0], both[1], label.operation);
            issues.node(place(&both[1..]), &draft.id, &message);
        }
    }
}
