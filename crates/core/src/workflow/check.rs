//! What can be wrong with components before they are a graph: names, conditions, compensations, circles. It says
//! everything, and changes nothing.

use std::collections::{BTreeMap, BTreeSet};

use petgraph::graph::{DiGraph, NodeIndex};

use super::component::{Body, Component};
use super::error::BuildError;
use super::lower::parents_first;
use super::rule::Test;
use crate::document::Problems;
use crate::policy::{Kind, NodeInfo, Rules};
use crate::query::nearest_names;

pub(super) fn check_names(components: &[Component], errors: &mut Vec<BuildError>) {
    let mut seen = BTreeSet::new();
    for component in components {
        if component.name.is_empty() {
            errors.push(BuildError::NoName { kind: component.kind().name() });
        } else if !seen.insert(component.name.as_str()) {
            errors.push(BuildError::DuplicateName { name: component.name.clone() });
        }
    }
    let conditions: BTreeSet<&str> = components
        .iter()
        .filter(|component| matches!(component.body, Body::Condition(_)))
        .map(|component| component.name.as_str())
        .collect();
    for component in components {
        for meta in component.extras.reads.iter().filter(|meta| !seen.contains(meta.component())) {
            let nearest = nearest_names(meta.component(), seen.iter().copied());
            let (component, reads) = (component.name.clone(), meta.to_string());
            errors.push(BuildError::UnknownMeta { component, reads, nearest });
        }
        for parent in component.after.iter().filter(|parent| !seen.contains(parent.as_str())) {
            errors.push(BuildError::UnknownParent {
                component: component.name.clone(),
                parent: parent.clone(),
                known: seen.iter().take(9).map(|name| (*name).to_owned()).collect(),
            });
        }
        if let Body::Rule { test, .. } = &component.body {
            match test {
                None => {
                    errors.push(BuildError::IncompleteRule { rule: component.name.clone() });
                }
                Some(test) => {
                    for condition in needs(test).filter(|name| !conditions.contains(name)) {
                        let (rule, condition) = (component.name.clone(), condition.to_owned());
                        errors.push(BuildError::UnresolvedCondition { rule, condition });
                    }
                }
            }
        }
    }
}

pub(super) fn check_compensations(components: &[Component], rules: &Rules, errors: &mut Vec<BuildError>) {
    let undoing: BTreeSet<&str> = components
        .iter()
        .filter(|component| component.kind() == Kind::Compensation)
        .map(|component| component.name.as_str())
        .collect();
    for component in components {
        let is_alone = undoing.contains(component.name.as_str());
        for parent in component.after.iter().filter(|parent| is_alone || undoing.contains(parent.as_str())) {
            let (component, parent) = (component.name.clone(), parent.clone());
            errors.push(BuildError::Attached { component, parent });
        }
    }
    check_undone(&undoing, rules, errors);
}

/// Finds the compensations that rules name and that no node is.
pub(super) fn check_undoing<'n>(
    nodes: impl Iterator<Item = NodeInfo<'n>>,
    rules: &Rules,
    errors: &mut Vec<BuildError>,
) {
    let undoing = nodes.filter(|node| node.kind == Kind::Compensation).filter_map(|node| node.name).collect();
    check_undone(&undoing, rules, errors);
}

fn check_undone(undoing: &BTreeSet<&str>, rules: &Rules, errors: &mut Vec<BuildError>) {
    for name in rules.compensations().filter(|name| !undoing.contains(name)) {
        errors.push(BuildError::NoCompensation { name: name.to_owned() });
    }
}

/// Finds the rules of a definition that would never act on any of its nodes.
pub(super) fn check_idle<'n>(
    nodes: impl Iterator<Item = NodeInfo<'n>> + Clone,
    rules: &Rules,
    overriding: usize,
    errors: &mut Vec<BuildError>,
) {
    let idle = rules.idle(nodes, overriding).into_iter().map(|(_, problem)| problem).collect();
    errors.extend(Problems::check(idle, ()).err().map(BuildError::Policies));
}

/// Finds a circle and the way round it.
pub(super) fn find_cycle(components: &[Component]) -> Option<Vec<String>> {
    let index: BTreeMap<&str, usize> =
        components.iter().enumerate().map(|(index, component)| (component.name.as_str(), index)).collect();
    let mut graph = DiGraph::<(), ()>::with_capacity(components.len(), components.len());
    for _ in components {
        graph.add_node(());
    }
    for (to, component) in components.iter().enumerate() {
        for parent in &component.after {
            if let Some(from) = index.get(parent.as_str()) {
                graph.add_edge(NodeIndex::new(*from), NodeIndex::new(to), ());
            }
        }
    }
    let start = petgraph::algo::toposort(&graph, None).err()?.node_id();
    // Every way back to the start is a circle; the one found first is shown.
    let mut came_from = BTreeMap::new();
    let mut queue = std::collections::VecDeque::from([start]);
    while let Some(node) = queue.pop_front() {
        for next in graph.neighbors(node) {
            if next == start {
                let mut way = vec![start, node];
                let mut at = node;
                while at != start {
                    at = came_from[&at];
                    way.push(at);
                }
                way.reverse();
                // With a self-loop the start stands there three times.
                way.dedup();
                if way.len() == 1 {
                    way.push(start);
                }
                return Some(way.into_iter().map(|node| components[node.index()].name.clone()).collect());
            }
            if let std::collections::btree_map::Entry::Vacant(entry) = came_from.entry(next) {
                entry.insert(node);
                queue.push_back(next);
            }
        }
    }
    Some(vec![components[start.index()].name.clone()])
}

/// Returns the components that depend on nothing unknown, doubled or circular.
pub(super) fn sound_parts(components: &[Component]) -> Vec<Component> {
    let mut sound: BTreeMap<&str, &Component> = BTreeMap::new();
    for index in parents_first(components) {
        let component = &components[index];
        let is_whole = match &component.body {
            Body::Rule { test, .. } => {
                test.as_ref().is_some_and(|test| needs(test).all(|name| sound.contains_key(name)))
            }
            Body::Step(_)
            | Body::Condition(_)
            | Body::Map(_)
            | Body::Reduce { .. }
            | Body::Accumulator { .. }
            | Body::Compensation(_) => true,
        };
        let is_known = component.after.iter().all(|parent| sound.contains_key(parent.as_str()));
        if is_whole && is_known && !component.name.is_empty() {
            sound.entry(&component.name).or_insert(component);
        }
    }
    sound.into_values().cloned().collect()
}

/// Returns the names of the conditions that a test refers to.
fn needs(test: &Test) -> impl Iterator<Item = &str> {
    let mut names = Vec::new();
    let mut stack = vec![test];
    while let Some(test) = stack.pop() {
        match test {
            Test::Named(name) => names.push(name.as_str()),
            Test::Inline(_) => {}
            Test::All(tests) | Test::Any(tests) => stack.extend(tests),
            Test::Not(test) => stack.push(test),
        }
    }
    names.into_iter()
}
