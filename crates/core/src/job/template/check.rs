//! Whether each node of a template does what its label can, and is given what it needs. How nodes follow each other is
//! not looked at here.

use std::collections::BTreeMap;

use serde_json::Value;

use super::check_edges::{self, Checked};
use super::check_git;
use super::check_prompts::{self, Contract, PROMPT};
use super::expand::Issues;
use super::flat::Flat;
use super::label::{Class, Label};
use super::node::{Draft, Gate};
use super::read::NODE_FIELDS;
use super::scope::boolean;
use crate::document;
use crate::job::{Artifact, JobId, NodeId, RunId};
use crate::policy::Kind;

/// Checks everything. There are edges only if every one of them leads somewhere.
pub(super) fn whole(flat: &mut Flat, issues: &mut Issues<'_>) -> Option<Checked> {
    for draft in &mut flat.nodes {
        label(draft, issues);
    }
    for draft in flat.nodes.iter().filter(|_| !flat.has_lost_contracts) {
        contracts(draft, &flat.contracts, issues);
    }
    check_prompts::whole(flat, issues);
    patches(flat, issues);
    check_git::whole(flat, issues);
    job_ids(flat, issues);
    check_edges::whole(flat, issues)
}

/// As many names as are compared with one that is none.
///
/// With thousands of nodes the search would cost more than it helps.
pub(super) const MOST_COMPARED: usize = 200;

/// Checks a node against its label.
fn label(draft: &mut Draft, issues: &mut Issues<'_>) {
    let (id, place) = (draft.id.clone(), draft.uses_place.clone());
    let Some(label) = draft.label else {
        if !draft.uses.is_empty() {
            let uses = &draft.uses;
            let message = format!(
                "uses unknown label `{uses}`; declare one of cap.env.builtin.*, cap.env.shell.*, cap.agent.invoke, or control.*"
            );
            let known: Vec<&str> = super::label::LABELS.iter().map(|label| label.uses).collect();
            let ending = format!(".{uses}");
            let whole = known.iter().copied().find(|known| known.ends_with(&ending));
            let help = match whole.or_else(|| document::nearest(uses, &known)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "`cap.env.shell.command.run` runs a command or a script".to_owned(),
            };
            issues.node_with_help(&place, &id, &message, &help);
        }
        return;
    };
    kind(draft, label, issues);
    drop_empty(draft, label);
    let is_set = ["command", "script"].into_iter().find(|name| draft.arg_places.contains_key(*name));
    if label.is_control()
        && let Some(name) = is_set
    {
        let message =
            format!("declares control policy `{}` but also sets command/script args", label.operation);
        issues.node(&draft.arg_places[name], &id, &message);
        for name in ["command", "script"] {
            draft.args.remove(name);
            draft.arg_places.remove(name);
        }
    }
    args(draft, label, issues);
    gates(draft, label, issues);
    if label.operation == "terminal"
        && let Some((_, target)) = draft.on.first()
    {
        issues.node(&target.place, &id, "terminal policy node must not declare outgoing routes");
    }
}

fn kind(draft: &Draft, label: &Label, issues: &mut Issues<'_>) {
    if draft.kind == label.kind() {
        return;
    }
    let name = draft.kind.name();
    let word = format!("{}{}", name[..1].to_ascii_uppercase(), &name[1..]);
    let classes = [(Kind::Shell, Class::Shell), (Kind::Agent, Class::Agent), (Kind::Builtin, Class::Builtin)];
    let required = classes.into_iter().find(|(kind, _)| *kind == draft.kind).map(|(_, class)| class);
    let message = if label.is_control() {
        format!("declares control policy `{}` but kind `{word}` is not gate", label.operation)
    } else if let Some(required) = required {
        format!("declares executor class `{}` but kind `{word}` requires `{required}`", label.class)
    } else {
        let operation = label.operation;
        format!("declares executor operation `{operation}` but kind `{word}` is only for control policies")
    };
    let help = format!("write kind = \"{}\"", label.kind());
    issues.node_with_help(&draft.uses_place, &draft.id, &message, &help);
}

/// Takes out arguments that are empty texts: a parameter that nobody gave.
fn drop_empty(draft: &mut Draft, label: &Label) {
    let Draft { args, arg_places, empty_args, .. } = draft;
    args.retain(|name, value| {
        let is_empty = matches!(value, Value::String(text) if text.trim().is_empty());
        // What a placeholder stands for may be empty.
        let is_empty = is_empty && (label.args.contains(&name.as_str()) || !label.takes(name));
        if is_empty {
            arg_places.remove(name);
            empty_args.push(name.clone());
        }
        !is_empty
    });
}

/// Checks the arguments, and makes of each what its operation reads.
fn args(draft: &mut Draft, label: &Label, issues: &mut Issues<'_>) {
    let whole = draft.path.clone();
    let path = |name: &str| format!("{whole}.args.{name}");
    let place = |draft: &Draft, name: &str| draft.arg_places.get(name).unwrap_or(&draft.place).clone();
    let names: Vec<String> = draft.arg_places.keys().cloned().collect();
    for name in names {
        let at = place(draft, &name);
        if !label.takes(&name) {
            let message = format!("is not an argument of {}", label.operation);
            let mut problem = document::Problem::new(path(&name), message);
            if let Some(near) = document::nearest(&name, label.args) {
                problem = problem.help(format!("did you mean `{near}`?"));
                // Whoever misspells an argument has not forgotten it.
                draft.arg_places.entry(near.to_owned()).or_insert_with(|| at.clone());
            } else if NODE_FIELDS.contains(&name.as_str()) {
                problem =
                    problem.help(format!("it is a field of the node: write `{name} = …` beside `args`"));
            } else if !label.args.is_empty() {
                problem = problem.help(format!("known are {}", label.args.join(", ")));
            }
            issues.at(&at, problem);
            continue;
        }
        let Some(value) = draft.args.get_mut(&name) else { continue };
        let problem = arg(label, &name, value, &path(&name));
        if let Some(problem) = problem {
            issues.at(&at, problem);
        }
    }
    if !draft.unread.args {
        needed(draft, label, issues);
    }
}

/// Says what is wrong with the value of an argument, and makes of it what the operation reads.
pub(super) fn arg(label: &Label, name: &str, value: &mut Value, path: &str) -> Option<document::Problem> {
    // What only a placeholder stands for may be any text.
    if label.args.contains(&name)
        && let Some(problem) = check_git::name(name, value, path)
    {
        return Some(problem);
    }
    match (name, &*value) {
        ("required" | "auto_resolve" | "squash" | "delete_branch", Value::Bool(_)) => None,
        ("required" | "auto_resolve" | "squash" | "delete_branch", Value::String(text)) => {
            match boolean(text, path) {
                Ok(read) => {
                    *value = Value::Bool(read);
                    None
                }
                Err(message) => Some(document::Problem::new("", message)),
            }
        }
        ("required" | "auto_resolve" | "squash" | "delete_branch", _) => {
            Some(document::Problem::new(path, "must be true or false"))
        }
        ("command", Value::Array(words)) => {
            let is_word = |word: &Value| matches!(word, Value::String(_));
            let is_program = matches!(words.first(), Some(Value::String(first)) if !first.is_empty());
            (!is_program || !words.iter().all(is_word))
                .then(|| document::Problem::new(path, "must be a list of words, a program first"))
        }
        // What is in the list is looked at with the node that it is for.
        ("files_json", Value::Array(_)) | (_, Value::String(_)) => None,
        (_, other) => Some(no_text(name, other, path)),
    }
}

/// Says that a value is no text, and how it would be one.
fn no_text(name: &str, value: &Value, path: &str) -> document::Problem {
    let (kind, help) = match value {
        Value::Null | Value::String(_) => ("nothing", None),
        Value::Bool(_) => ("a boolean", Some(format!("write {name} = \"{value}\""))),
        Value::Number(_) => ("a number", Some(format!("write {name} = \"{value}\""))),
        Value::Array(_) if name == "script" => {
            let help =
                "write a list of words as command = [\"…\"], and several lines between \"\"\" and \"\"\"";
            ("a list", Some(help.to_owned()))
        }
        Value::Array(_) => ("a list", None),
        Value::Object(_) => ("a table", None),
    };
    let problem = document::Problem::new(path, format!("must be a text, found {kind}"));
    match help {
        Some(help) => problem.help(help),
        None => problem,
    }
}

/// Checks that there is what the operation needs.
fn needed(draft: &Draft, label: &Label, issues: &mut Issues<'_>) {
    check_prompts::needed(draft, label, issues);
    let has = |name: &str| draft.arg_places.contains_key(name);
    let given = usize::from(has("command")) + usize::from(has("script"));
    let has_gate_script = draft.gates.iter().any(|(gate, _)| match gate {
        Gate::Script { script } | Gate::Cicd { script, .. } => !script.trim().is_empty(),
        Gate::Approval { .. } => false,
    });
    let place = ["script", "command"].into_iter().find_map(|name| draft.arg_places.get(name));
    let place = place.unwrap_or(&draft.place).clone();
    fixes(draft, label, issues);
    match label.operation {
        "command.run" | "cicd.run" if given > 1 => {
            issues.node(
                &place,
                &draft.id,
                &format!("sets both command and script args for {}", label.operation),
            );
        }
        "command.run" if given == 0 => {
            issues.node(&place, &draft.id, "needs a command or script arg for command.run");
        }
        "cicd.run" if given == 0 && !has_gate_script && !draft.unread.gates => {
            issues.node(
                &place,
                &draft.id,
                "needs a command or script arg, or a gate with a script, for cicd.run",
            );
        }
        "gate.cicd" if has("auto_resolve_command") && has("auto_resolve_script") => {
            issues.node(&place, &draft.id, "sets both auto_resolve_command and auto_resolve_script args");
        }
        _ => check_git::needed(draft, label, issues),
    }
}

/// Refuses a fix that is never tried, and the wish for one that is not there.
fn fixes(draft: &Draft, label: &Label, issues: &mut Issues<'_>) {
    const FIXES: [&str; 3] = ["auto_resolve_command", "auto_resolve_script", "auto_resolve_agent"];
    let own = draft.args.get("auto_resolve").filter(|_| label.args.contains(&"auto_resolve"));
    let gate = draft.gates.iter().find_map(|(gate, place)| match gate {
        Gate::Cicd { auto_resolve: true, .. } => Some(place),
        Gate::Cicd { .. } | Gate::Script { .. } | Gate::Approval { .. } => None,
    });
    let has_checks = draft.gates.iter().any(|(gate, _)| gate.name() != "approval");
    let place_of = |name: &str| draft.arg_places.get(name).unwrap_or(&draft.place);
    // A parameter without a value is a fix that this run does without.
    let is_there = |name: &str| {
        draft.arg_places.contains_key(name) || draft.empty_args.iter().any(|empty| empty == name)
    };
    let fix = FIXES.into_iter().find(|name| label.args.contains(name) && is_there(name));
    match (own, gate) {
        (_, Some(place)) if label.operation == "cicd.run" => {
            let help = "control.gate.cicd has a fix and checks again";
            issues.node_with_help(
                place,
                &draft.id,
                "sets auto_resolve, which does nothing for cicd.run",
                help,
            );
        }
        (own, gate) if label.operation == "gate.cicd" && fix.is_none() => {
            let place = match own {
                Some(Value::Bool(true)) => Some(place_of("auto_resolve")),
                Some(_) => None,
                None => gate,
            };
            if let Some(place) = place {
                let help = "write args.auto_resolve_command or args.auto_resolve_script, which is run before the checks are run again";
                issues.node_with_help(place, &draft.id, "sets auto_resolve, but nothing that resolves", help);
            }
        }
        (own, gate) => {
            let Some(fix) = fix else { return };
            if own.is_none() && gate.is_none() && !draft.unread.gates {
                let message = format!("sets {fix}, which is run only with auto_resolve");
                issues.node_with_help(
                    place_of(fix),
                    &draft.id,
                    &message,
                    "write auto_resolve = true beside it",
                );
            } else if label.operation == "gate.cicd" && !has_checks && !draft.unread.gates {
                let message = format!("sets {fix}, but has no script that could fail");
                let help = "write gates = [{ kind = \"cicd\", script = \"…\" }]";
                issues.node_with_help(place_of(fix), &draft.id, &message, help);
            }
        }
    }
}

fn gates(draft: &Draft, label: &Label, issues: &mut Issues<'_>) {
    let mut seen: Vec<&str> = Vec::new();
    for (gate, place) in &draft.gates {
        let word = match gate {
            Gate::Approval { .. } => "approval",
            Gate::Script { .. } | Gate::Cicd { .. } => "script",
        };
        if word != "approval" && !label.gates.contains(&gate.name()) {
            let message = format!("has a {} gate, which does nothing for {}", gate.name(), label.operation);
            issues.node(place, &draft.id, &message);
        } else if seen.contains(&word) {
            issues.node(place, &draft.id, &format!("has more than one gate with {}", a(word)));
        }
        seen.push(word);
    }
}

fn a(word: &str) -> String {
    if word.starts_with('a') { format!("an {word}") } else { format!("a {word}") }
}

/// Checks that what a node needs and makes is declared.
fn contracts(draft: &Draft, declared: &[Contract], issues: &mut Issues<'_>) {
    for named in draft.needs.iter().chain(draft.produces.values().flatten()) {
        if let Artifact::Custom { type_id, .. } = &named.artifact
            && type_id != PROMPT
            && !declared.iter().any(|contract| contract.id == *type_id)
        {
            let artifact = &named.artifact;
            let message =
                format!("references artifact `{artifact}` without declared artifact contract `{type_id}`");
            issues.node(&named.place, &draft.id, &message);
        }
    }
}

/// Finds the nodes whose patches are named: from here on each is known by its whole id. What is no node has to be a job.
fn patches(flat: &mut Flat, issues: &mut Issues<'_>) {
    let Flat { nodes, instances, ids, lost, .. } = flat;
    for draft in nodes {
        let prefix = &instances[draft.instance].prefix;
        for named in draft.needs.iter_mut().chain(draft.produces.values_mut().flatten()) {
            let Artifact::CommandPatch { job_id } = &mut named.artifact else { continue };
            let whole = format!("{prefix}{job_id}");
            if ids.contains_key(&whole) {
                *job_id = whole;
            } else if !(lost.iter().any(|lost| whole.starts_with(lost.as_str()))
                || JobId::new(job_id).is_ok() && job_id.starts_with("wf-"))
            {
                let message =
                    format!("references command_patch of `{job_id}`, which is neither a node nor a job id");
                let known: Vec<&str> = ids.keys().map(String::as_str).take(MOST_COMPARED).collect();
                let help = match document::nearest(&whole, &known) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "name a node of the template, or a job such as wf-<run>-<node>".to_owned(),
                };
                issues.node_with_help(&named.place, &draft.id, &message, &help);
            }
        }
    }
}

/// Checks that no two nodes would be the same job.
fn job_ids(flat: &Flat, issues: &mut Issues<'_>) {
    let run = RunId::of_bits(0);
    let mut seen: BTreeMap<JobId, &str> = BTreeMap::new();
    for draft in flat.nodes.iter().filter(|draft| draft.is_named) {
        let job = NodeId::new(&draft.id).and_then(|node| JobId::of_node(&run, &node));
        match job {
            Ok(job) => {
                let ending = job.as_str().trim_start_matches(&format!("wf-{run}-")).to_owned();
                if let Some(other) = seen.insert(job, &draft.id) {
                    let message = format!(
                        "has nodes `{other}` and `{}`, which would both be job `wf-<run>-{ending}`",
                        draft.id
                    );
                    issues.whole(&draft.place, &message);
                }
            }
            Err(error) => issues.whole(&draft.place, &error.to_string()),
        }
    }
}
