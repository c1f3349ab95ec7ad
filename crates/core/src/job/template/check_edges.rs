//! How the nodes of a template follow each other: whether every edge leads somewhere, and everything can start at all.

use std::collections::BTreeMap;

use super::check::MOST_COMPARED;
use super::expand::Issues;
use super::flat::Flat;
use super::graph::{Edge, Graph, Made};
use super::head;
use super::node::{Gate, Place, Target};
use crate::document;
use crate::job::{AfterPolicy, Artifact, NodeOutcome};
use crate::view::abridged_chain;

/// The edges of a template that was checked.
#[derive(Debug)]
pub(super) struct Checked {
    pub(super) graph: Graph,
    pub(super) loops: Vec<Edge>,
}

/// Finds the edges, and what is wrong with them. They are returned only if every one of them leads somewhere.
pub(super) fn whole(flat: &Flat, issues: &mut Issues<'_>) -> Option<Checked> {
    let find = |target: &Target| flat.ids.get(&target.id).copied();
    let mut graph = Graph::new(flat.nodes.len());
    let mut outcome_edges = Vec::new();
    let mut edge_places = Vec::new();
    // Where an edge is missing, a node may come before another though it seems not to.
    let mut is_whole = flat.lost.is_empty();
    for (number, draft) in flat.nodes.iter().enumerate() {
        is_whole &= !draft.unread.edges;
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
                    is_whole = false;
                    unknown(flat, target, &draft.id, "after node", issues);
                }
            }
        }
        for (outcome, target) in &draft.on {
            match find(target) {
                None => {
                    is_whole = false;
                    unknown(flat, target, &draft.id, &format!("on.{outcome} target"), issues);
                }
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
    is_whole &= links(flat, &mut graph, &outcome_edges, issues);
    let has_circle = circles(flat, &graph, issues);
    if !is_whole {
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
    retries(flat, &loops, issues);
    if has_circle || circles(flat, &graph, issues) { None } else { Some(Checked { graph, loops }) }
}

/// Refuses `retry` where it bounds nothing: it is for loops, and attempts of a job are its policy's.
fn retries(flat: &Flat, loops: &[Edge], issues: &mut Issues<'_>) {
    let mut has_loop = vec![false; flat.nodes.len()];
    loops.iter().for_each(|edge| has_loop[edge.from] = true);
    for (draft, has_loop) in flat.nodes.iter().zip(has_loop) {
        let (Some((retry, place)), Some(label)) = (&draft.retry, draft.label) else { continue };
        let is_until_gate = retry.mode == "until_gate";
        let has_script = draft.gates.iter().any(|(gate, _)| match gate {
            Gate::Script { .. } | Gate::Cicd { .. } => true,
            Gate::Approval { .. } => false,
        });
        // A stop condition counts its attempts, however it came to them.
        let counts = label.operation == "gate.stop_condition" && is_until_gate;
        let is_gate = has_script || label.is_control() && label.operation != "gate.stop_condition";
        if !has_loop && !counts {
            let help = format!(
                "`retry` is for loops: write on.failed with a node that comes before; for more attempts write \
                 max_retries below [[policies]] with match = {{ name = \"{}\" }}",
                draft.id
            );
            issues.node_with_help(place, &draft.id, "sets retry, but none of its edges is a loop", &help);
        } else if is_until_gate && !is_gate && !draft.unread.gates {
            let help = "write gates = [{ kind = \"script\", script = \"…\" }], or mode = \"on_failure\"";
            let message = "has retry mode `until_gate`, but no gate that could open";
            issues.node_with_help(place, &draft.id, message, help);
        }
    }
}

fn unknown(flat: &Flat, target: &Target, id: &str, what: &str, issues: &mut Issues<'_>) {
    if flat.may_have(&target.id) {
        return;
    }
    let message = format!("references unknown {what} `{}`", target.written);
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
    // What cannot be read may be what makes it.
    let is_known = flat.lost.is_empty() && flat.nodes.iter().all(|draft| !draft.unread.artifacts);
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
                let only_here = is_known && matches!(needed.artifact, Artifact::Custom { .. });
                graph.made_by[number].push(Made { by: by.clone(), only_here });
            }
        }
    }
}

/// More edges than one link should stand for.
const MOST_LINKED: usize = 100_000;

/// Lets the first nodes of one part follow the last ones of another; the innermost files first. Tells whether every link
/// leads somewhere.
fn links(flat: &Flat, graph: &mut Graph, outcome_edges: &[Edge], issues: &mut Issues<'_>) -> bool {
    let mut is_whole = true;
    for (number, part) in flat.instances.iter().enumerate().rev() {
        // What is inside an import does not change by the links between imports.
        let mut known: BTreeMap<&str, (Vec<usize>, Vec<usize>)> = BTreeMap::new();
        for link in &part.links {
            let mut find = |(name, place): &'_ (String, Place), end: &str| {
                if let Some(node) = flat.ids.get(&format!("{}{name}", part.prefix)) {
                    return Some((vec![*node], vec![*node]));
                }
                let Some((name, prefix)) = part.imports.get_key_value(name) else {
                    let whole = format!("{}{name}", part.prefix);
                    if !flat.may_have(&whole) && !flat.may_have(&head::prefix(&whole)) {
                        let message = format!("has a link {end} `{name}`, which is no import and no node");
                        issues.whole(place, &message);
                    }
                    return None;
                };
                let ends = known
                    .entry(name)
                    .or_insert_with(|| ends_of(flat, graph, outcome_edges, &flat.inside(number, prefix)));
                Some(ends.clone())
            };
            let (from, to) = (find(&link.from, "from"), find(&link.to, "to"));
            let (Some((_, sinks)), Some((roots, _))) = (from, to) else {
                is_whole = false;
                continue;
            };
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
            if (roots.is_empty() || sinks.is_empty()) && flat.lost.is_empty() {
                issues.whole(&link.from.1, "has a link that leads from nothing or to nothing");
            }
            for root in &roots {
                for sink in &sinks {
                    graph.add(*root, *sink, AfterPolicy::Success);
                }
            }
        }
    }
    is_whole
}

/// Returns the first and the last nodes of an import, looked at by itself: what handles an outcome is neither.
fn ends_of(flat: &Flat, graph: &Graph, edges: &[Edge], inside: &[bool]) -> (Vec<usize>, Vec<usize>) {
    let of: Vec<bool> = flat.nodes.iter().map(|draft| inside[draft.instance]).collect();
    let own: Vec<Edge> = edges.iter().filter(|edge| of[edge.from] && of[edge.to]).copied().collect();
    let mut alone = graph.clone();
    alone.tell_apart(&own);
    alone.ends(&of)
}

/// Names the ways round, if there are some.
fn circles(flat: &Flat, graph: &Graph, issues: &mut Issues<'_>) -> bool {
    let circles = graph.circles();
    for round in &circles {
        let names: Vec<&str> = round.iter().map(|node| flat.nodes[*node].id.as_str()).collect();
        let place = flat.nodes[round[0]].place.clone();
        issues.whole(&place, &format!("has a cycle: {}", abridged_chain(&names)));
    }
    !circles.is_empty()
}
