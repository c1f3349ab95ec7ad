//! Puts the files of a template together: every node under its whole id, every import with its own parameters.

use std::collections::BTreeMap;

use super::check_prompts::Contract;
use super::expand::{Issues, MOST_NODES};
use super::load::Template;
use super::node::{Draft, Place};
use super::read::{Body, Instance, Link, Reader};
use super::scope::{MOST_EXPANDED, Scope};
use crate::document::{self, Format, Problem};
use crate::job::MissingProducer;
use crate::policy::{Matcher, Policy};

/// More imports, counted with all that they import in turn, than any template needs.
const MOST_INSTANCES: usize = 1_000;

/// The files of a template, put together.
#[derive(Debug, Default)]
pub(super) struct Flat {
    pub(super) instances: Vec<Part>,
    pub(super) nodes: Vec<Draft>,
    /// The numbers of nodes by their whole ids.
    pub(super) ids: BTreeMap<String, usize>,
    pub(super) contracts: Vec<Contract>,
    /// The parameters that are given by their place.
    pub(super) positional: Vec<String>,
    /// Whether there is a node or a contract whose name could not be read, so that a name that seems unknown may be
    /// no second mistake.
    pub(super) has_lost: bool,
}

/// One of the places where a file is imported; the first is the template itself.
#[derive(Debug)]
pub(super) struct Part {
    /// The part that imports this one.
    pub(super) parent: Option<usize>,
    /// What stands before the ids of its nodes.
    pub(super) prefix: String,
    pub(super) params: BTreeMap<String, String>,
    pub(super) rules: Vec<(Matcher, Policy)>,
    pub(super) rule_places: Vec<Place>,
    pub(super) links: Vec<Link>,
    /// The id of the template that its file is.
    pub(super) template: String,
    /// The prefixes of its imports, by their names.
    pub(super) imports: BTreeMap<String, String>,
    missing_producer: Option<MissingProducer>,
}

impl Flat {
    /// Returns what becomes of the nodes of each part whose artifact has no producer: what its file says, or the one
    /// that imports it.
    pub(super) fn missing_producers(&self) -> Vec<MissingProducer> {
        let mut found: Vec<MissingProducer> = Vec::with_capacity(self.instances.len());
        for part in &self.instances {
            // Invariant: a part stands after the one that imports it.
            let inherited = part.parent.map(|parent| found[parent]);
            found.push(part.missing_producer.or(inherited).unwrap_or_default());
        }
        found
    }

    /// Tells which parts are inside an import of a part.
    pub(super) fn inside(&self, parent: usize, prefix: &str) -> Vec<bool> {
        let mut inside = Vec::with_capacity(self.instances.len());
        for part in &self.instances {
            let is_it = part.parent == Some(parent) && part.prefix == prefix;
            inside.push(is_it || part.parent.is_some_and(|parent| inside[parent]));
        }
        inside
    }
}

/// Reads all files with their parameters. Nodes of imports stand before those of the file that imports them.
pub(super) fn put_together(
    template: &Template,
    params: &BTreeMap<String, String>,
    issues: &mut Issues<'_>,
) -> Flat {
    let mut flat = Flat { positional: template.main().cli.positional.clone(), ..Flat::default() };
    let mut left = MOST_EXPANDED;
    let mut bodies: Vec<Vec<Draft>> = Vec::new();
    let mut waiting = vec![(0, None, String::new(), params.clone())];
    while let Some((file, parent, prefix, params)) = waiting.pop() {
        let number = flat.instances.len();
        let source = &template.files[file].source;
        // Invariant: the text was read before.
        let Ok(node) = document::read(&source.text, Format::Toml) else { continue };
        let reader = Reader {
            instance: Instance { file, number, prefix: &prefix },
            scope: Scope { params: &params, left: &mut left },
            report: issues.report(file),
        };
        let body = reader.body(node);
        let mut part = Part {
            parent,
            prefix: prefix.clone(),
            rules: Vec::new(),
            rule_places: Vec::new(),
            links: Vec::new(),
            template: template.files[file].head.id.clone(),
            imports: BTreeMap::new(),
            missing_producer: body.missing_producer,
            params: BTreeMap::new(),
        };
        flat.has_lost |= body.has_lost;
        let Body { rules, rule_places, contracts, nodes, links, .. } = body;
        (part.rules, part.rule_places, part.links) = (rules, rule_places, links);
        flat.contracts.extend(contracts);
        bodies.push(nodes);
        // The last that is put on the pile is the first that is taken from it.
        for import in template.files[file].head.imports.iter().rev() {
            let inner_prefix = format!("{prefix}{}__", import.name);
            part.imports.insert(import.name.clone(), inner_prefix.clone());
            if number + waiting.len() + 1 >= MOST_INSTANCES {
                let message = format!("is one import too many: at most {MOST_INSTANCES} in all");
                issues.report(file).at(import.place.clone(), Problem::new("imports", message));
                break;
            }
            let mut inner = template.files[import.file].head.params.clone();
            for (name, text, span) in &import.params {
                let path = format!("imports[{}].params.{name}", import.name);
                let mut scope = Scope { params: &params, left: &mut left };
                match scope.fill(text, &path) {
                    Ok(value) => drop(inner.insert(name.clone(), value)),
                    Err(message) => issues.report(file).at(span.clone(), Problem::new("", message)),
                }
            }
            // Each import costs its text and its parameters again.
            let params = inner.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>();
            let cost = params + template.files[import.file].source.text.len();
            if cost > left {
                let message = format!("expansion is too large at imports[{}]", import.name);
                issues.report(file).at(import.place.clone(), Problem::new("", message));
                break;
            }
            left -= cost;
            waiting.push((import.file, Some(number), inner_prefix, inner));
        }
        part.params = params;
        flat.instances.push(part);
    }
    order(&mut flat, bodies, issues);
    flat
}

/// Puts the nodes in order, those of a file after those of its imports, and numbers them.
fn order(flat: &mut Flat, bodies: Vec<Vec<Draft>>, issues: &mut Issues<'_>) {
    // The way down to a part is kept, so that its nodes are taken after those of everything that it imports.
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); flat.instances.len()];
    for (number, part) in flat.instances.iter().enumerate() {
        if let Some(parent) = part.parent {
            children[parent].push(number);
        }
    }
    let mut bodies: Vec<Option<Vec<Draft>>> = bodies.into_iter().map(Some).collect();
    let mut way = if bodies.is_empty() { Vec::new() } else { vec![(0, 0)] };
    while let Some((part, next)) = way.pop() {
        if let Some(child) = children[part].get(next) {
            way.push((part, next + 1));
            way.push((*child, 0));
        } else {
            flat.nodes.extend(bodies[part].take().into_iter().flatten());
        }
    }
    if flat.nodes.len() > MOST_NODES {
        let message = format!("has {} nodes, and at most {MOST_NODES} are taken", flat.nodes.len());
        let place = flat.nodes[MOST_NODES].place.clone();
        issues.whole(&place, &message);
        flat.nodes.truncate(MOST_NODES);
    }
    let mut kept = Vec::with_capacity(flat.nodes.len());
    for draft in flat.nodes.drain(..) {
        if flat.ids.contains_key(&draft.id) {
            issues.whole(&draft.place, &format!("has duplicate node id `{}`", draft.id));
        } else {
            flat.ids.insert(draft.id.clone(), kept.len());
            kept.push(draft);
        }
    }
    flat.nodes = kept;
    if flat.nodes.is_empty() && issues.count() == 0 {
        issues.whole(&Place { file: 0, span: 0..0 }, "has no nodes");
    }
}
