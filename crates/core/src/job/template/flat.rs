//! Puts the files of a template together: every node under its whole id, every import with its own parameters.

use std::collections::BTreeMap;

use super::check_prompts::Contract;
use super::expand::{Issues, MOST_NODES};
use super::head::{self, Head, Import};
use super::load::{File, Template};
use super::node::{Draft, Place};
use super::read::{Body, Instance, Link, Reader};
use super::scope::{Found, MOST_EXPANDED, Params, Scope};
use crate::document::{self, Format, Problem, Report};
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
    /// How the ids of nodes begin that could not be read, so that a name that seems unknown may be no second mistake.
    pub(super) lost: Vec<String>,
    /// Whether there are contracts that could not be read.
    pub(super) has_lost_contracts: bool,
}

/// One of the places where a file is imported; the first is the template itself.
#[derive(Debug)]
pub(super) struct Part {
    /// The part that imports this one.
    pub(super) parent: Option<usize>,
    /// What stands before the ids of its nodes.
    pub(super) prefix: String,
    pub(super) params: Params,
    pub(super) rules: Vec<(Matcher, Policy)>,
    /// The numbers of the rules in their file, and where they stand.
    pub(super) rule_places: Vec<(usize, Place)>,
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

    /// Tells whether a node may be there that could not be read.
    pub(super) fn may_have(&self, id: &str) -> bool {
        self.lost.iter().any(|lost| id.starts_with(lost.as_str()))
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
pub(super) fn put_together(template: &Template, params: &Params, issues: &mut Issues<'_>) -> Flat {
    let mut flat = Flat { positional: template.main().cli.positional.clone(), ..Flat::default() };
    let mut left = MOST_EXPANDED;
    let mut bodies: Vec<Vec<Draft>> = Vec::new();
    let mut waiting = vec![(0, None, String::new(), params.clone())];
    while let Some((file, parent, prefix, params)) = waiting.pop() {
        let number = flat.instances.len();
        let File { source, head } = &template.files[file];
        flat.lost.extend(head.lost.iter().map(|lost| format!("{prefix}{lost}")));
        // A text that is no document was reported, and has no parts.
        let text = if head.is_text { source.text.as_str() } else { "" };
        // Invariant: the text was read before.
        let Ok(node) = document::read(text, Format::Toml) else { continue };
        let reader = Reader {
            instance: Instance { file, number, prefix: &prefix },
            scope: Scope { params: &params, left: &mut left },
            report: issues.report(file),
            unread: 0,
        };
        let body = reader.body(node);
        let mut part = Part {
            parent,
            prefix: prefix.clone(),
            rules: Vec::new(),
            rule_places: Vec::new(),
            links: Vec::new(),
            template: head.id.clone(),
            imports: BTreeMap::new(),
            missing_producer: body.missing_producer,
            params: Params::default(),
        };
        flat.lost.extend(body.has_lost_nodes.then(|| prefix.clone()));
        flat.has_lost_contracts |= body.has_lost_contracts || !head.lost.is_empty();
        let Body { rules, rule_places, contracts, nodes, links, .. } = body;
        (part.rules, part.rule_places, part.links) = (rules, rule_places, links);
        flat.contracts.extend(contracts);
        bodies.push(nodes);
        // The last that is put on the pile is the first that is taken from it.
        for import in head.imports.iter().rev() {
            let inner_prefix = format!("{prefix}{}", head::prefix(&import.name));
            part.imports.insert(import.name.clone(), inner_prefix.clone());
            if number + waiting.len() + 1 >= MOST_INSTANCES {
                let message = format!("is one import too many: at most {MOST_INSTANCES} in all");
                issues.report(file).at(import.place.clone(), Problem::new("imports", message));
                break;
            }
            let inner =
                given(import, &template.files[import.file].head, (&params, &mut left), issues.report(file));
            // Each import costs its text and its parameters again.
            let params = inner.values.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>();
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

/// Returns the parameters of a file that is imported.
fn given(
    import: &Import,
    inner: &Head,
    (params, left): (&Params, &mut usize),
    report: &mut Report<'_>,
) -> Params {
    let mut found = inner.params.clone();
    for (name, text, span) in &import.params {
        let path = format!("imports[{}].params.{name}", import.name);
        let filled = Scope { params, left: &mut *left }.fill(text, &path);
        match filled {
            Ok(value) => {
                found.open.remove(name);
                found.values.insert(name.clone(), value);
            }
            Err(unfilled) => {
                for wrong in unfilled.0 {
                    report.at(report.place_in(span.clone(), &wrong.part), wrong.problem);
                }
                found.open.insert(name.clone());
            }
        }
    }
    // One that is misspelt was meant for one of those that nobody gives.
    let is_unknown = |(name, ..): &(String, _, _)| matches!(inner.params.find(name), Found::Unknown);
    if import.has_unread || import.params.iter().any(is_unknown) {
        let is_given = |name: &String| import.params.iter().any(|(given, ..)| given == name);
        found.open.extend(inner.params.values.keys().filter(|name| !is_given(name)).cloned());
    }
    found
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
    for (number, draft) in flat.nodes.iter_mut().enumerate() {
        if draft.id.is_empty() {
            continue;
        }
        if flat.ids.contains_key(&draft.id) {
            issues.whole(&draft.place, &format!("has duplicate node id `{}`", draft.id));
            draft.is_named = false;
        } else {
            flat.ids.insert(draft.id.clone(), number);
        }
    }
    if flat.nodes.is_empty() && flat.lost.is_empty() {
        issues.whole(&Place { file: 0, span: 0..0 }, "has no nodes");
    }
}
