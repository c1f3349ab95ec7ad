//! Whether nodes that work on git are given what they need, and names that are some: before anything is enqueued, and
//! with their places.

use serde_json::Value;

use super::expand::{Issues, PLANS};
use super::flat::Flat;
use super::label::Label;
use super::node::{Draft, Place};
use crate::document::Problem;
use crate::job::{Artifact, Branch, Slug};

/// The arguments that say what resolves a conflict.
const RESOLVERS: [&str; 3] = ["auto_resolve_command", "auto_resolve_script", "auto_resolve_agent"];

/// What a worktree is for becomes a part of its name, with the id of a job.
const LONGEST_PURPOSE: usize = 50;
/// The arguments that have the text of a plan.
const TEXTS: [&str; 5] = ["spec", "spec_text", "spec_file", "plan_text", "plan_file"];

/// Says what is wrong with an argument that names a plan or a branch. One that is blank is none, and was left out.
pub(super) fn name(name: &str, value: &Value, path: &str) -> Option<Problem> {
    let text = value.as_str().map(str::trim).filter(|text| !text.is_empty())?;
    let wrong = match name {
        "slug" | "plan" => Slug::new(text).and_then(|slug| Branch::new(&format!("draft/{slug}"))).err(),
        // What is checked out is a place to begin at, though no branch.
        "base" if text == "HEAD" => None,
        "branch" | "base" | "source" | "target" => Branch::new(text).err(),
        "purpose" => Slug::new(text).err(),
        "prompt_file" if text.starts_with('/') || text.split('/').any(|step| step == "..") => {
            let message = format!(
                "is `{}`, which is no file beneath the directory that the node runs in",
                text.escape_debug()
            );
            return Some(Problem::new(path, message));
        }
        _ => None,
    };
    wrong.map(|error| Problem::new(path, error.to_string()))
}

/// Returns how the purpose of a worktree begins if worktrees of that name are for others, and for whom they are.
#[must_use]
pub fn taken_purpose(purpose: &str) -> Option<(&'static str, &'static str)> {
    let is_of_merge = purpose == "integrate" || purpose.starts_with("integrate-");
    [("workspace", "people"), ("tidewheel-workspace", "people")]
        .into_iter()
        .find(|(taken, _)| purpose.starts_with(taken))
        .or_else(|| is_of_merge.then_some(("integrate", "the merges of plans")))
}

/// Checks that there is what an operation on git needs.
pub(super) fn needed(draft: &Draft, label: &Label, issues: &mut Issues<'_>) {
    let has = |name: &str| draft.arg_places.contains_key(name);
    let missing = |name: &str| format!("needs a {name} arg for {}", label.operation);
    let place =
        |names: &[&str]| names.iter().find_map(|name| draft.arg_places.get(*name)).unwrap_or(&draft.place);
    match label.operation {
        "git.integrate_plan_branch" if !has("target") => {
            issues.node(&draft.place, &draft.id, &missing("target"));
        }
        "git.integrate_plan_branch"
            if text_of(draft, "source").is_some() && text_of(draft, "source") == text_of(draft, "target") =>
        {
            issues.node(place(&["target"]), &draft.id, "has the same branch as source and target args");
        }
        "gate.conflict_resolution" => {
            let given: Vec<&str> = RESOLVERS.into_iter().filter(|name| has(name)).collect();
            if let [first, second, ..] = given.as_slice() {
                let message = format!("sets both {first} and {second} args");
                issues.node(place(&[second]), &draft.id, &message);
            }
            if given.is_empty() && draft.args.get("auto_resolve") == Some(&Value::Bool(true)) {
                let message = format!("sets auto_resolve, and none of {}", RESOLVERS.join(", "));
                issues.node(place(&["auto_resolve"]), &draft.id, &message);
            }
        }
        "worktree.prepare" => {
            let purpose = draft.args.get("purpose").and_then(Value::as_str).unwrap_or_default().trim();
            if let Some((taken, by)) = taken_purpose(purpose) {
                let message = format!("has a purpose arg that begins with `{taken}`, which is for {by}");
                issues.node(place(&["purpose"]), &draft.id, &message);
            } else if purpose.len() > LONGEST_PURPOSE {
                let message = format!("has a purpose arg with more than {LONGEST_PURPOSE} characters");
                issues.node(place(&["purpose"]), &draft.id, &message);
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

/// Checks what only the whole template tells: whether there is a plan where one is needed. The parameter of the run may
/// say which.
pub(super) fn whole(flat: &Flat, issues: &mut Issues<'_>) {
    let Some(run) = flat.instances.first() else { return };
    let given =
        |name: &str| run.params.values.get(name).map(|slug| slug.trim()).filter(|slug| !slug.is_empty());
    let plan = PLANS.into_iter().find_map(given);
    // A parameter that is there for it, and empty, is what is missing.
    let empty = PLANS.into_iter().find(|name| plan.is_none() && run.params.values.contains_key(*name));
    // What nobody knows yet is not missing.
    let is_open = run.params.has_more || PLANS.into_iter().any(|name| run.params.open.contains(name));
    let mut is_told = false;
    let mut missing =
        |place: &Place, id: &str, else_say: &dyn Fn(&mut Issues<'_>), issues: &mut Issues<'_>| match empty {
            Some(name) if !is_told => {
                is_told = true;
                issues.at(place, ungiven(name, id, &flat.positional));
            }
            Some(_) => {}
            None => else_say(issues),
        };
    for draft in &flat.nodes {
        for named in draft.needs.iter().chain(draft.produces.values().flatten()) {
            if named.artifact.slug().is_some_and(|slug| slug.trim().is_empty()) {
                let say = |issues: &mut Issues<'_>| {
                    let error = named.artifact.check().err().map(|error| error.to_string());
                    issues.node(&named.place, &draft.id, &format!("names {}", error.unwrap_or_default()));
                };
                missing(&named.place, &draft.id, &say, issues);
            }
        }
        let Some(label) = draft.label.filter(|_| !draft.unread.args) else { continue };
        let has = |name: &str| draft.arg_places.contains_key(name);
        let slug = text_of(draft, "slug").or_else(|| text_of(draft, "plan")).or(plan);
        let has_slug = slug.is_some() || is_open || has("slug") || has("plan");
        let wanted = match label.operation {
            "plan.persist" | "merge.sentinel.write" | "merge.sentinel.clear" | "gate.conflict_resolution"
                if !has_slug =>
            {
                Some("slug")
            }
            "git.integrate_plan_branch" if !has_slug && !has("source") => Some("source or slug"),
            _ => None,
        };
        if let Some(wanted) = wanted {
            let say = |issues: &mut Issues<'_>| {
                let message = format!("needs a {wanted} arg for {}", label.operation);
                issues.node(&draft.place, &draft.id, &message);
            };
            missing(&draft.place, &draft.id, &say, issues);
        }
        if label.operation == "git.integrate_plan_branch"
            && !has("source")
            && let (Some(slug), Some(target)) = (slug, text_of(draft, "target"))
            && target.strip_prefix("draft/") == Some(slug)
        {
            let place = draft.arg_places.get("target").unwrap_or(&draft.place);
            issues.node(place, &draft.id, "has the same branch as source and target args");
        }
        let hands_over = draft.needs.iter().any(|named| matches!(named.artifact, Artifact::Custom { .. }));
        let hands_over = hands_over || draft.unread.artifacts;
        if label.operation == "plan.persist" && !hands_over && !TEXTS.into_iter().any(has) {
            let message = "needs a text for plan.persist";
            let help =
                format!("set one of the args {}, or need an artifact with a payload", TEXTS.join(", "));
            issues.node_with_help(&draft.place, &draft.id, message, &help);
        }
    }
}

/// Says that a parameter has to be given, and how.
fn ungiven(name: &str, id: &str, positional: &[String]) -> Problem {
    let problem = Problem::new(
        format!("params.{name}"),
        format!("is empty, and has to be given: node `{id}` needs the {name} of a plan"),
    );
    match positional.iter().position(|param| param == name) {
        Some(at) => {
            let words: Vec<String> = positional[..=at].iter().map(|param| param.to_uppercase()).collect();
            problem.help(format!("write it behind the flow: tidewheel run FLOW {} …", words.join(" ")))
        }
        None => problem.help(format!("give it with --set {name}=…")),
    }
}

/// Returns an argument that is a text with something in it.
fn text_of<'a>(draft: &'a Draft, name: &str) -> Option<&'a str> {
    draft.args.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty())
}
