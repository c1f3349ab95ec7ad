//! Which policy each node of a template gets: the first rule that fits, of the template itself, then of the imports that
//! lead to the node, then of the configuration.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::check;
use super::expand::Issues;
use super::flat::Flat;
use super::graph::{Edge, Graph};
use super::label::Class;
use super::node::{Draft, Place};
use super::scope::{Filler, Found, MOST_EXPANDED, Scope, Unfilled, Wrong};
use crate::document::Problem;
use crate::job::{AfterPolicy, NodeOutcome};
use crate::policy::{
    Compensation, ExecutionMode, Fallback, Matcher, NodeInfo, Overrides, Policy, Resolved, Rules,
};

/// The policy of a node.
#[derive(Debug)]
pub(super) struct Chosen {
    pub(super) policy: Policy,
    pub(super) resolved: Arc<Resolved>,
    pub(super) rule: Option<String>,
    pub(super) key: Option<(String, usize)>,
}

/// Chooses the policy of each node, and lets those that undo something follow what they undo.
pub(super) fn of_nodes(
    flat: &Flat,
    config: &Rules,
    graph: Option<&mut Graph>,
    issues: &mut Issues<'_>,
) -> Vec<Chosen> {
    config_problems(config, issues);
    let own: Vec<Option<Rules>> =
        (0..flat.instances.len()).map(|part| rules_of(flat, part, issues)).collect();
    if own.iter().all(Option::is_some) {
        together(flat, config, issues);
    }
    let own: Vec<Rules> = own.into_iter().map(Option::unwrap_or_default).collect();
    let mut undone = Vec::new();
    let chosen: Vec<Chosen> = flat
        .nodes
        .iter()
        .enumerate()
        .map(|(number, draft)| {
            let (mut chosen, part) = choose(flat, draft, &own, config);
            if let Some(Compensation::Node(name)) = &chosen.resolved.compensation {
                let prefix = part.map_or("", |part| flat.instances[part].prefix.as_str());
                undone.push((number, format!("{prefix}{name}")));
            }
            key_problem(flat, draft, &chosen, issues);
            external_problem(draft, &chosen, issues);
            fill_fallback(flat, draft, (&mut chosen, part.unwrap_or(0)), issues);
            chosen
        })
        .collect();
    compensations(flat, graph, &undone, issues);
    chosen
}

/// Refuses rules of the configuration that cannot act on jobs.
fn config_problems(config: &Rules, issues: &mut Issues<'_>) {
    let nowhere = Place { file: 0, span: 0..0 };
    for (index, rule) in config.as_slice().iter().enumerate() {
        let mut problems = rule.policy().problems_for_jobs();
        if let Matcher::Predicate(_) = rule.matcher() {
            problems.push(Problem::new("match", "is a predicate, which a job cannot be asked"));
        }
        for problem in problems {
            let path = format!("configuration: policies[{index}].{}", problem.path);
            issues.at(&nowhere, Problem { path, ..problem });
        }
    }
}

/// Returns the rules of a part, if they go together.
fn rules_of(flat: &Flat, part: usize, issues: &mut Issues<'_>) -> Option<Rules> {
    let inst = &flat.instances[part];
    match Rules::new(inst.rules.iter().cloned()) {
        Ok(rules) => {
            idle(flat, part, &rules, issues);
            Some(rules)
        }
        Err(problems) => {
            for problem in problems.all() {
                let place = index_in(&problem.path).and_then(|index| inst.rule_places.get(index));
                let Some((number, place)) = place else {
                    issues.at(&Place { file: 0, span: 0..0 }, problem.clone());
                    continue;
                };
                // Those that could not be read count, too.
                let field = problem.path.split_once(']').map_or("", |(_, field)| field);
                let path = format!("policies[{number}]{field}");
                issues.at(place, Problem { path, ..problem.clone() });
            }
            None
        }
    }
}

/// Refuses rules of a part that would never act on any node inside it.
fn idle(flat: &Flat, part: usize, rules: &Rules, issues: &mut Issues<'_>) {
    let inst = &flat.instances[part];
    let prefix = inst.prefix.as_str();
    let nodes = flat.nodes.iter().filter_map(|draft| {
        let name = draft.id.strip_prefix(prefix)?;
        Some(NodeInfo { name: Some(name), kind: draft.kind, tags: &draft.tags })
    });
    // Nodes that could not be read may be what a rule is for.
    let has_lost = flat.lost.iter().any(|lost| lost.starts_with(prefix) || prefix.starts_with(lost.as_str()));
    for (index, problem) in rules.idle(nodes, 0) {
        let may_match = match rules.as_slice()[index].matcher() {
            Matcher::Name(name) => flat.may_have(&format!("{prefix}{name}")),
            // A pattern is for a family of names, and a template may have none of it yet.
            Matcher::Pattern(_) if problem.path.ends_with(".pattern") => true,
            Matcher::Pattern(_)
            | Matcher::Kind(_)
            | Matcher::Kinds(_)
            | Matcher::Tag(_)
            | Matcher::Predicate(_)
            | Matcher::Default => has_lost,
        };
        if let Some((number, place)) = inst.rule_places.get(index).filter(|_| !may_match) {
            // Rules that could not be read count, too.
            let path = problem.path.replacen(&format!("[{index}]"), &format!("[{number}]"), 1);
            issues.at(place, Problem { path, ..problem });
        }
    }
}

fn index_in(path: &str) -> Option<usize> {
    path.strip_prefix("policies[")?.split(']').next()?.parse().ok()
}

/// Checks that rules of different files that share a name say the same of it.
fn together(flat: &Flat, config: &Rules, issues: &mut Issues<'_>) {
    let mut all: Vec<(Matcher, Policy)> = Vec::new();
    let mut places = Vec::new();
    let mut seen: Vec<&Place> = Vec::new();
    for part in &flat.instances {
        for (rule, (_, place)) in part.rules.iter().zip(&part.rule_places) {
            // A file that is imported several times says the same each time.
            if !seen.contains(&place) {
                seen.push(place);
                all.push(rule.clone());
                places.push(place.clone());
            }
        }
    }
    let own = all.len();
    all.extend(config.as_slice().iter().map(|rule| (rule.matcher().clone(), rule.policy().clone())));
    let Err(problems) = Rules::new(all) else { return };
    for problem in problems.all() {
        let index = index_in(&problem.path).unwrap_or(0);
        let place = places.get(index).cloned().unwrap_or(Place { file: 0, span: 0..0 });
        let field = problem.path.split("].").nth(1).unwrap_or_default().to_owned();
        let whose = if index < own { "" } else { "configuration: " };
        issues.at(&place, Problem { path: format!("{whose}{field}"), ..problem.clone() });
    }
}

/// Finds the policy of a node, and the part whose rule it is.
fn choose(flat: &Flat, draft: &Draft, own: &[Rules], config: &Rules) -> (Chosen, Option<usize>) {
    let mut chain = vec![draft.instance];
    while let Some(parent) = chain.last().and_then(|part| flat.instances[*part].parent) {
        chain.push(parent);
    }
    let info = |prefix: &str| NodeInfo {
        name: Some(draft.id.strip_prefix(prefix).unwrap_or(&draft.id)),
        kind: draft.kind,
        tags: &draft.tags,
    };
    for part in chain.into_iter().rev() {
        let inst = &flat.instances[part];
        let found = own[part].resolve(&info(&inst.prefix));
        if let Some(index) = found.rule {
            let policy = own[part].as_slice()[index].policy().clone();
            let rule = found.policy.rule.as_ref().map(|rule| format!("{}:{rule}", inst.template));
            let key = key_of(found.policy, part);
            return (Chosen { policy, resolved: Arc::clone(found.policy), rule, key }, Some(part));
        }
    }
    let found = config.resolve(&info(""));
    let policy = found.rule.map_or_else(Policy::new, |index| config.as_slice()[index].policy().clone());
    let (rule, key) = (found.policy.rule.clone(), key_of(found.policy, 0));
    (Chosen { policy, resolved: Arc::clone(found.policy), rule, key }, None)
}

fn key_of(policy: &Resolved, part: usize) -> Option<(String, usize)> {
    let text = policy.idempotency_key.as_ref()?.template()?;
    Some((text.to_owned(), part))
}

/// Returns the key of a node in a run.
pub(super) fn filled_key(
    text: &str,
    params: &BTreeMap<String, String>,
    node: &str,
    run: &str,
) -> Result<String, Unfilled> {
    let filler = Filler { path: "policies.idempotency_key", most: MOST_EXPANDED, known: params };
    filler.fill(text, |name| match (name, params.get(name)) {
        (_, Some(value)) => Found::Value(value),
        ("node_id", None) => Found::Value(node),
        ("run_id", None) => Found::Value(run),
        (_, None) => Found::Unknown,
    })
}

fn key_problem(flat: &Flat, draft: &Draft, chosen: &Chosen, issues: &mut Issues<'_>) {
    let Some((text, part)) = &chosen.key else { return };
    let params = &flat.instances[*part].params;
    if params.has_more || !params.open.is_empty() {
        return;
    }
    if let Err(unfilled) = filled_key(text, &params.values, &draft.id, "run") {
        policy_unfilled(draft, unfilled, issues);
    }
}

/// Refuses to give to a worker outside what only the scheduler can do: a node that steers does no work.
fn external_problem(draft: &Draft, chosen: &Chosen, issues: &mut Issues<'_>) {
    let steers = draft.label.is_some_and(|label| label.class == Class::Control);
    if steers && chosen.resolved.execution_mode == Some(ExecutionMode::External) {
        let message = format!(
            "has a policy with execution_mode external, but a worker outside cannot do what `{}` does",
            draft.uses
        );
        let help = "put a rule for this node without execution_mode before the one that matches it";
        issues.node_with_help(&draft.place, &draft.id, &message, help);
    }
}

/// Reports what is wrong with a text of the policy of a node.
fn policy_unfilled(draft: &Draft, unfilled: Unfilled, issues: &mut Issues<'_>) {
    for Wrong { problem, .. } in unfilled.0 {
        let message = format!("has a policy with an {}", problem.message);
        match &problem.help {
            Some(help) => issues.node_with_help(&draft.place, &draft.id, &message, help),
            None => issues.node(&draft.place, &draft.id, &message),
        }
    }
}

/// Puts parameters into the arguments that a fallback gives to a node, and checks them as those of the node itself.
fn fill_fallback(flat: &Flat, draft: &Draft, (chosen, part): (&mut Chosen, usize), issues: &mut Issues<'_>) {
    let Some(Fallback::Overrides(overrides)) = &chosen.resolved.fallback else { return };
    let Some(label) = draft.label else { return };
    let Some(args) = overrides.get("args").and_then(serde_json::Value::as_object) else { return };
    if args.is_empty() {
        let message = "has a policy whose fallback sets no argument: it would only try the same again";
        issues.node(&draft.place, &draft.id, message);
    }
    let mut left = MOST_EXPANDED;
    let mut scope = Scope { params: &flat.instances[part].params, left: &mut left };
    let mut filled = serde_json::Map::new();
    for (name, value) in args {
        if !label.takes(name) {
            let message = format!(
                "has a policy whose fallback sets `{name}`, which is not an argument of {}",
                label.operation
            );
            issues.node(&draft.place, &draft.id, &message);
            continue;
        }
        let path = format!("fallback.overrides.args.{name}");
        match scope.fill_value(value.clone(), &path) {
            Ok(mut value) => {
                if let Some(problem) = check::arg(label, name, &mut value, &path) {
                    let message = match problem.path.as_str() {
                        "" => format!("has a policy with an {}", problem.message),
                        path => format!("has a policy whose {path} {}", problem.message),
                    };
                    issues.node(&draft.place, &draft.id, &message);
                }
                filled.insert(name.clone(), value);
            }
            Err(unfilled) => policy_unfilled(draft, unfilled, issues),
        }
    }
    for (one, other) in [("command", "script"), ("auto_resolve_command", "auto_resolve_script")] {
        if filled.contains_key(one) && filled.contains_key(other) {
            let message = format!("has a policy whose fallback sets both {one} and {other} args");
            issues.node(&draft.place, &draft.id, &message);
        }
    }
    let overrides: Overrides = [("args".to_owned(), filled.into())].into_iter().collect();
    chosen.policy = chosen.policy.clone().fallback_overrides(overrides.clone());
    let fallback = Some(Fallback::Overrides(overrides));
    chosen.resolved = Arc::new(Resolved { fallback, ..(*chosen.resolved).clone() });
}

/// Lets nodes that undo something run when what they undo has failed.
fn compensations(
    flat: &Flat,
    graph: Option<&mut Graph>,
    undone: &[(usize, String)],
    issues: &mut Issues<'_>,
) {
    let mut edges = Vec::new();
    for (number, id) in undone {
        let draft = &flat.nodes[*number];
        match flat.ids.get(id) {
            None if flat.may_have(id) => {}
            None => {
                issues.node(&draft.place, &draft.id, &format!("has compensation `{id}`, which is no node"));
            }
            Some(to) if to == number => {
                issues.node(&draft.place, &draft.id, "has a policy that names itself as its compensation");
            }
            Some(to) => edges.push(Edge { from: *number, on: NodeOutcome::Failed, to: *to }),
        }
    }
    let Some(graph) = graph else { return };
    for edge in &edges {
        let is_after = |(_, policy): &(usize, AfterPolicy)| match policy {
            AfterPolicy::Success | AfterPolicy::Completion => true,
            AfterPolicy::Failed | AfterPolicy::Blocked | AfterPolicy::Cancelled | AfterPolicy::Failure => {
                false
            }
        };
        if graph.after[edge.to].iter().any(is_after) {
            let (draft, to) = (&flat.nodes[edge.from], &flat.nodes[edge.to].id);
            issues.node(
                &draft.place,
                &draft.id,
                &format!("has compensation `{to}`, which is an after target too"),
            );
        }
    }
    let (_, loops) = graph.tell_apart(&edges);
    for edge in loops {
        let (draft, to) = (&flat.nodes[edge.from], &flat.nodes[edge.to].id);
        issues.node(&draft.place, &draft.id, &format!("has compensation `{to}`, which comes before it"));
    }
}
