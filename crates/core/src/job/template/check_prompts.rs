//! Whether nodes that write or read texts and patches can do so: prompts, agents, payloads with schemas, patch
//! pipelines, build steps. How nodes follow each other is not looked at here.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::expand::Issues;
use super::flat::Flat;
use super::label::Label;
use super::node::{Draft, Named};
use super::policies::Chosen;
use crate::document::Problem;
use crate::job::{Agent, Artifact, Branch, NodeOutcome, Slug, misfit};
use crate::policy::Fallback;

/// A type of artifacts that a file declares.
#[derive(Clone, Debug)]
pub(super) struct Contract {
    pub(super) id: String,
    /// The number of the instance of the file that it stands in.
    pub(super) instance: usize,
    /// What payloads have to look like.
    pub(super) schema: Option<Value>,
}

/// The type of artifacts that are prompts. Nobody has to declare it.
pub(super) const PROMPT: &str = "prompt_text";

/// The arguments that a prompt may come from.
const SOURCES: [&str; 5] = ["prompt_text", "prompt_file", "command", "script", "config"];
/// What a step of a build is known by.
const STEP: [&str; 5] = ["build_id", "step_key", "slug", "branch", "target"];

/// Checks that a node has what its operation needs.
pub(super) fn needed(draft: &Draft, label: &Label, issues: &mut Issues<'_>) {
    match label.operation {
        "prompt.resolve" => prompt(draft, issues),
        "agent.invoke" => {
            let prompts = draft.needs.iter().filter(|named| is_prompt(named)).count();
            if prompts > 1 || prompts == 0 && !draft.unread.artifacts {
                let message =
                    format!("must need exactly one artifact custom:{PROMPT}:<key>, and needs {prompts}");
                issues.node_with_help(
                    &draft.place,
                    &draft.id,
                    &message,
                    "a node with prompt.resolve produces one",
                );
            }
        }
        "patch.pipeline_prepare" | "patch.execute_pipeline" | "patch.pipeline_finalize" => {
            files(draft, label, issues);
        }
        "build.materialize_step" => step(draft, issues),
        _ => {}
    }
}

fn is_prompt(named: &Named) -> bool {
    matches!(&named.artifact, Artifact::Custom { type_id, .. } if type_id == PROMPT)
}

fn prompt(draft: &Draft, issues: &mut Issues<'_>) {
    let given: Vec<&str> = SOURCES.into_iter().filter(|name| draft.arg_places.contains_key(*name)).collect();
    if given.is_empty() {
        let message = format!("needs one of the args {} for prompt.resolve", SOURCES.join(", "));
        issues.node(&draft.place, &draft.id, &message);
    } else if given.len() > 1 {
        let message =
            format!("sets the args {}, and prompt.resolve takes its text from one", given.join(" and "));
        issues.node(&draft.arg_places[given[1]], &draft.id, &message);
    }
    let (mut made, mut elsewhere) = (0, 0);
    for (outcome, named) in draft.produces.iter().flat_map(|(on, all)| all.iter().map(move |one| (on, one))) {
        if is_prompt(named) {
            *(if *outcome == NodeOutcome::Succeeded { &mut made } else { &mut elsewhere }) += 1;
        }
    }
    if made > 1 || made == 0 && !draft.unread.artifacts || elsewhere > 0 {
        let message = if elsewhere > 0 {
            format!("must produce its artifact custom:{PROMPT}:<key> when it has succeeded, and only then")
        } else {
            format!("must produce exactly one artifact custom:{PROMPT}:<key>, and produces {made}")
        };
        issues.node(&draft.place, &draft.id, &message);
    }
}

/// Checks the list of patches of a node, if it has one.
fn files(draft: &Draft, label: &Label, issues: &mut Issues<'_>) {
    let place = draft.arg_places.get("files_json").unwrap_or(&draft.place);
    match draft.args.get("files_json") {
        Some(value) => {
            if let Err(reason) = super::patch_files(value) {
                let path = format!("{}.args.files_json", draft.path);
                issues.at(place, Problem::new(path, reason));
            }
        }
        None if label.operation == "patch.pipeline_prepare"
            && !draft.arg_places.contains_key("files_json") =>
        {
            let message = "needs a files_json arg for patch.pipeline_prepare: a list of patch files";
            issues.node(place, &draft.id, message);
        }
        None => {}
    }
}

fn step(draft: &Draft, issues: &mut Issues<'_>) {
    let missing: Vec<&str> = STEP.into_iter().filter(|name| !draft.arg_places.contains_key(*name)).collect();
    if !missing.is_empty() {
        let message = format!("needs the args {} for build.materialize_step", STEP.join(", "));
        let help = format!("missing are {}", missing.join(", "));
        issues.node_with_help(&draft.place, &draft.id, &message, &help);
    }
    for name in STEP {
        let (Some(Value::String(text)), Some(place)) = (draft.args.get(name), draft.arg_places.get(name))
        else {
            continue;
        };
        let checked = match name {
            "branch" | "target" => Branch::new(text).map(drop),
            _ => Slug::new(text).map(drop),
        };
        if let Err(error) = checked {
            issues.at(place, Problem::new(format!("{}.args.{name}", draft.path), error.to_string()));
        }
    }
}

/// Checks what only the whole template tells: who can fill the artifacts, and whose patches are applied.
pub(super) fn whole(flat: &Flat, issues: &mut Issues<'_>) {
    let with = |operation: &str| {
        let is_it = |draft: &&Draft| draft.label.is_some_and(|label| label.operation == operation);
        flat.nodes.iter().filter(is_it).count()
    };
    let is_unsure = !flat.lost.is_empty() || flat.nodes.iter().any(|draft| draft.label.is_none());
    for draft in &flat.nodes {
        let Some(label) = draft.label else { continue };
        let before = match label.operation {
            "patch.execute_pipeline"
                if !draft.unread.args && !draft.arg_places.contains_key("files_json") =>
            {
                "patch.pipeline_prepare"
            }
            "patch.pipeline_finalize" => "patch.execute_pipeline",
            _ => "",
        };
        let is_wrong = with(before) > 1 || with(before) == 0 && !is_unsure;
        if !before.is_empty() && is_wrong {
            let what = if label.operation == "patch.execute_pipeline" { "a files_json arg, or " } else { "" };
            let found = with(before);
            let message =
                format!("needs {what}exactly one node with {before} in its template, and there are {found}");
            issues.node(&draft.place, &draft.id, &message);
        }
        if matches!(label.operation, "prompt.resolve" | "agent.invoke") {
            continue;
        }
        for named in draft.produces.values().flatten() {
            let Artifact::Custom { type_id, .. } = &named.artifact else { continue };
            let artifact = &named.artifact;
            let message = if type_id == PROMPT {
                format!("produces `{artifact}`, whose text only prompt.resolve and agent.invoke write")
            } else if flat.schema_of(draft.instance, type_id).is_some() {
                let operation = label.operation;
                format!(
                    "produces `{artifact}`, whose contract has a schema, and {operation} writes no payload"
                )
            } else {
                continue;
            };
            issues.node(&named.place, &draft.id, &message);
        }
    }
}

impl Flat {
    /// Returns what payloads of a type have to look like: what the file itself says, or else any other.
    pub(super) fn schema_of(&self, instance: usize, type_id: &str) -> Option<&Value> {
        let mut declared: Vec<&Contract> =
            self.contracts.iter().filter(|contract| contract.id == type_id).collect();
        declared.sort_by_key(|contract| contract.instance != instance);
        declared.into_iter().find_map(|contract| contract.schema.as_ref())
    }

    /// Returns what the payloads of everything that a node makes have to look like, by type.
    pub(super) fn schemas_of(&self, draft: &Draft) -> BTreeMap<String, Value> {
        let types = draft.produces.values().flatten().filter_map(|named| match &named.artifact {
            Artifact::Custom { type_id, .. } => Some(type_id),
            Artifact::PlanBranch { .. }
            | Artifact::PlanDoc { .. }
            | Artifact::PlanCommits { .. }
            | Artifact::TargetBranch { .. }
            | Artifact::MergeSentinel { .. }
            | Artifact::CommandPatch { .. } => None,
        });
        types.filter_map(|id| Some((id.clone(), self.schema_of(draft.instance, id)?.clone()))).collect()
    }
}

/// Checks what the policies of nodes say: a value that stands for the work has to fit where it is put, and an agent has
/// to be there. Which agents there are is not known to everybody.
pub(super) fn of_policies(
    flat: &Flat,
    chosen: &[Chosen],
    agents: Option<&BTreeSet<String>>,
    issues: &mut Issues<'_>,
) {
    for (draft, chosen) in flat.nodes.iter().zip(chosen) {
        let fallback = chosen.resolved.fallback.as_ref();
        if let Some(Fallback::Value(value)) = fallback {
            for (type_id, schema) in flat.schemas_of(draft) {
                if let Some(wrong) = misfit(&schema, value) {
                    let message =
                        format!("has a fallback whose value does not fit the contract `{type_id}`: {wrong}");
                    issues.node(&draft.place, &draft.id, &message);
                }
            }
        }
        let (Some(label), Some(agents)) = (draft.label, agents) else { continue };
        let arg = match label.operation {
            "agent.invoke" => "agent",
            // One that is not asked for need not be there.
            "gate.conflict_resolution"
                if draft.args.get("auto_resolve") == Some(&Value::Bool(true))
                    && draft.args.contains_key("auto_resolve_agent") =>
            {
                "auto_resolve_agent"
            }
            _ => continue,
        };
        let overrides = match fallback {
            Some(Fallback::Overrides(overrides)) => overrides.get("args").and_then(|args| args.get(arg)),
            Some(Fallback::Value(_) | Fallback::Function(_)) | None => None,
        };
        let own = draft.args.get(arg).and_then(Value::as_str).unwrap_or(Agent::DEFAULT);
        let place = draft.arg_places.get(arg).unwrap_or(&draft.uses_place);
        for name in [Some(own), overrides.and_then(Value::as_str)].into_iter().flatten() {
            if agents.contains(name) {
                continue;
            }
            let known: Vec<&str> = agents.iter().map(String::as_str).collect();
            let others =
                if known.is_empty() { String::new() } else { format!("; there are {}", known.join(", ")) };
            let help = format!("write [agents.{name}] with a `command` into .tidewheel/config.toml{others}");
            let message = format!("needs agent `{name}`, which is not configured");
            issues.node_with_help(place, &draft.id, &message, &help);
        }
    }
}
