//! Whether the nodes of a template fit together, and each does what its label can.

use std::collections::BTreeMap;

use serde_json::Value;

use super::check_git;
use super::check_prompts::{self, Contract, PROMPT};
use super::expand::Issues;
use super::flat::Flat;
use super::graph::{Edge, Graph, Made};
use super::label::{Class, Label};
use super::node::{Draft, Gate, Place, Target};
use super::scope::boolean;
use crate::document;
use crate::job::{AfterPolicy, Artifact, JobId, NodeId, NodeOutcome, RunId};
use crate::policy::Kind;

/// The edges of a template that was checked.
#[derive(Debug)]
pub(super) struct Checked {
    pub(super) graph: Graph,
    pub(super) loops: Vec<Edge>,
}

/// Checks everything. There are edges only if every one of them leads somewhere.
pub(super) fn whole(flat: &mut Flat, issues: &mut Issues<'_>) -> Option<Checked> {
    for draft in &mut flat.nodes {
        label(draft, issues);
    }
    for draft in flat.nodes.iter().filter(|_| !flat.has_lost) {
        contracts(draft, &flat.contracts, issues);
    }
    check_prompts::whole(flat, issues);
    patches(flat, issues);
    check_git::whole(flat, issues);
    job_ids(flat, issues);
    edges(flat, issues)
}

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
            match document::nearest(uses, &known) {
                Some(near) => {
                    issues.node_with_help(&place, &id, &message, &format!("did you mean `{near}`?"));
                }
                None => issues.node(&place, &id, &message),
            }
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
    } else {
        args(draft, label, issues);
    }
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
    let Draft { args, arg_places, .. } = draft;
    args.retain(|name, value| {
        let is_empty = matches!(value, Value::String(text) if text.trim().is_empty());
        // What a placeholder stands for may be empty.
        let is_empty = is_empty && (label.args.contains(&name.as_str()) || !label.takes(name));
        if is_empty {
            arg_places.remove(name);
        }
        !is_empty
    });
}

/// Checks the arguments, and makes of each what its operation reads.
fn args(draft: &mut Draft, label: &Label, issues: &mut Issues<'_>) {
    let id = draft.id.clone();
    let path = |name: &str| format!("nodes[{id}].args.{name}");
    let place = |draft: &Draft, name: &str| draft.arg_places.get(name).unwrap_or(&draft.place).clone();
    let names: Vec<String> = draft.args.keys().cloned().collect();
    for name in names {
        let at = place(draft, &name);
        if !label.takes(&name) {
            let message = format!("is not an argument of {}", label.operation);
            let mut problem = document::Problem::new(path(&name), message);
            if let Some(near) = document::nearest(&name, label.args) {
                problem = problem.help(format!("did you mean `{near}`?"));
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
    needed(draft, label, issues);
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
        _ => Some(document::Problem::new(path, "must be a text")),
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
        "cicd.run" if given == 0 && !has_gate_script => {
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
    let Flat { nodes, instances, ids, has_lost, .. } = flat;
    for draft in nodes {
        let prefix = &instances[draft.instance].prefix;
        for named in draft.needs.iter_mut().chain(draft.produces.values_mut().flatten()) {
            let Artifact::CommandPatch { job_id } = &mut named.artifact else { continue };
            let whole = format!("{prefix}{job_id}");
            if ids.contains_key(&whole) {
                *job_id = whole;
            } else if !(*has_lost || JobId::new(job_id).is_ok() && job_id.starts_with("wf-")) {
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
    for draft in &flat.nodes {
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

/// Finds the edges, and what is wrong with them.
fn edges(flat: &Flat, issues: &mut Issues<'_>) -> Option<Checked> {
    let before = issues.count();
    let find = |target: &Target| flat.ids.get(&target.id).copied();
    let mut graph = Graph::new(flat.nodes.len());
    let mut outcome_edges = Vec::new();
    let mut edge_places = Vec::new();
    for (number, draft) in flat.nodes.iter().enumerate() {
        for (target, policy) in &draft.after {
            match find(target) {
                Some(other) => {
                    let is_other =
                        |its: AfterPolicy| (its == AfterPolicy::Success) != (*policy == AfterPolicy::Success);
                    if graph.after[number].iter().any(|(before, its)| *before == other && is_other(*its)) {
                        let message =
                            format!("is after node `{}` twice, once on success and once not", target.written);
                        issues.node(&target.place, &draft.id, &message);
                    }
                    graph.add(number, other, *policy);
                }
                None => {
                    unknown(flat, target, &draft.id, "after node", issues);
                }
            }
        }
        for (outcome, target) in &draft.on {
            match find(target) {
                None => unknown(flat, target, &draft.id, &format!("on.{outcome} target"), issues),
                Some(other) if *outcome == NodeOutcome::Succeeded => {
                    graph.add(other, number, AfterPolicy::Success);
                }
                Some(other) => {
                    outcome_edges.push(Edge { from: number, on: *outcome, to: other });
                    edge_places.push(target.place.clone());
                }
            }
        }
    }
    makers(flat, &mut graph);
    links(flat, &mut graph, &outcome_edges, issues);
    if issues.count() > before || flat.has_lost {
        return None;
    }
    if circle(flat, &graph, issues) {
        return None;
    }
    let has_after: Vec<bool> = graph.after.iter().map(|after| !after.is_empty()).collect();
    let (handlers, loops) = graph.tell_apart(&outcome_edges);
    for handler in &handlers {
        if has_after[handler.to] {
            let at = outcome_edges.iter().position(|edge| edge == handler).unwrap_or(0);
            let (from, to) = (&flat.nodes[handler.from].id, &flat.nodes[handler.to].id);
            let message = format!("has on.{} target `{to}`, which is an after target too", handler.on);
            let help = format!("`{to}` would have to run after others succeeded and after this one did not");
            issues.node_with_help(&edge_places[at], from, &message, &help);
        }
    }
    circle(flat, &graph, issues);
    Some(Checked { graph, loops })
}

/// As many names as are compared with one that is none.
const MOST_COMPARED: usize = 200;

fn unknown(flat: &Flat, target: &Target, id: &str, what: &str, issues: &mut Issues<'_>) {
    if flat.has_lost {
        return;
    }
    let message = format!("references unknown {what} `{}`", target.written);
    // With thousands of nodes the search would cost more than it helps.
    let known: Vec<&str> = flat.ids.keys().map(String::as_str).take(MOST_COMPARED).collect();
    match document::nearest(&target.id, &known) {
        Some(near) => {
            issues.node_with_help(&target.place, id, &message, &format!("did you mean `{near}`?"));
        }
        None => issues.node(&target.place, id, &message),
    }
}

/// Finds who makes what is needed.
fn makers(flat: &Flat, graph: &mut Graph) {
    let mut makers: BTreeMap<&Artifact, Vec<usize>> = BTreeMap::new();
    for (number, draft) in flat.nodes.iter().enumerate() {
        for made in draft.produces.values().flatten() {
            let by = makers.entry(&made.artifact).or_default();
            if by.last() != Some(&number) {
                by.push(number);
            }
        }
    }
    for (number, draft) in flat.nodes.iter().enumerate() {
        for needed in &draft.needs {
            if let Some(by) = makers.get(&needed.artifact) {
                let only_here = matches!(needed.artifact, Artifact::Custom { .. });
                graph.made_by[number].push(Made { by: by.clone(), only_here });
            }
        }
    }
}

/// More edges than one link should stand for.
const MOST_LINKED: usize = 100_000;

/// Lets the first nodes of one part follow the last ones of another; the innermost files first.
fn links(flat: &Flat, graph: &mut Graph, outcome_edges: &[Edge], issues: &mut Issues<'_>) {
    for (number, part) in flat.instances.iter().enumerate().rev() {
        // What is inside an import does not change by the links between imports.
        let mut known: BTreeMap<&str, (Vec<usize>, Vec<usize>)> = BTreeMap::new();
        for link in &part.links {
            let mut find = |(name, place): &'_ (String, Place), end: &str| {
                if let Some(node) = flat.ids.get(&format!("{}{name}", part.prefix)) {
                    return Some((vec![*node], vec![*node]));
                }
                let Some((name, prefix)) = part.imports.get_key_value(name) else {
                    if flat.has_lost {
                        return None;
                    }
                    let message = format!("has a link {end} `{name}`, which is no import and no node");
                    issues.whole(place, &message);
                    return None;
                };
                let ends = known
                    .entry(name)
                    .or_insert_with(|| ends_of(flat, graph, outcome_edges, &flat.inside(number, prefix)));
                Some(ends.clone())
            };
            let (from, to) = (find(&link.from, "from"), find(&link.to, "to"));
            let (Some((_, sinks)), Some((roots, _))) = (from, to) else { continue };
            let is_terminal =
                |node: usize| flat.nodes[node].label.is_some_and(|label| label.operation == "terminal");
            if let [node] = sinks.as_slice()
                && !part.imports.contains_key(&link.from.0)
                && is_terminal(*node)
            {
                let message = "terminal policy node must not declare outgoing routes";
                issues.node(&link.from.1, &flat.nodes[*node].id, message);
            }
            if roots.len().saturating_mul(sinks.len()) > MOST_LINKED {
                let message = format!(
                    "has a link that would lead from {} last nodes to {} first ones",
                    sinks.len(),
                    roots.len()
                );
                issues.whole(&link.from.1, &format!("{message}; let one node stand between them"));
                continue;
            }
            if roots.is_empty() || sinks.is_empty() {
                issues.whole(&link.from.1, "has a link that leads from nothing or to nothing");
            }
            for root in &roots {
                for sink in &sinks {
                    graph.add(*root, *sink, AfterPolicy::Success);
                }
            }
        }
    }
}

/// Returns the first and the last nodes of an import, looked at by itself: what handles an outcome is neither.
fn ends_of(flat: &Flat, graph: &Graph, edges: &[Edge], inside: &[bool]) -> (Vec<usize>, Vec<usize>) {
    let of: Vec<bool> = flat.nodes.iter().map(|draft| inside[draft.instance]).collect();
    let own: Vec<Edge> = edges.iter().filter(|edge| of[edge.from] && of[edge.to]).copied().collect();
    let mut alone = graph.clone();
    alone.tell_apart(&own);
    alone.ends(&of)
}

/// Names a way round, if there is one.
fn circle(flat: &Flat, graph: &Graph, issues: &mut Issues<'_>) -> bool {
    let Some(round) = graph.circle() else { return false };
    let names: Vec<&str> = round.iter().map(|node| flat.nodes[*node].id.as_str()).collect();
    let place = flat.nodes[round[0]].place.clone();
    issues.whole(&place, &format!("has a cycle: {}", names.join(" -> ")));
    true
}
