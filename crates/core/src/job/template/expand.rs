//! A template with values for its parameters: its files put together, read, and checked as a whole. Nothing is left
//! to be found out later but what the world says.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::check;
use super::check_prompts;
use super::flat::{self, Flat};
use super::graph::Graph;
use super::label::Label;
use super::load::Template;
use super::node::{Draft, Gate, Place};
use super::policies;
use crate::document::{Problem, Problems, Report};
use crate::job::{Artifact, Branch, Lock, MissingProducer, NodeId, NodeOutcome, Precondition, Retry};
use crate::policy::{Kind, Policy, Resolved, Rules};

/// More nodes than anybody can look at.
pub const MOST_NODES: usize = 10_000;

/// A template with values for its parameters, checked.
#[derive(Clone, Debug)]
pub struct Expanded {
    pub(super) id: String,
    pub(super) version: String,
    pub(super) params: BTreeMap<String, String>,
    pub(super) nodes: Vec<Node>,
    pub(super) graph: Graph,
    /// The parameters of each of its parts.
    pub(super) scopes: Vec<BTreeMap<String, String>>,
}

/// One node of it.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) id: NodeId,
    pub(super) name: Option<String>,
    pub(super) kind: Kind,
    pub(super) label: &'static Label,
    pub(super) args: Map<String, Value>,
    pub(super) needs: Vec<Artifact>,
    pub(super) produces: BTreeMap<NodeOutcome, Vec<Artifact>>,
    pub(super) locks: Vec<Lock>,
    pub(super) preconditions: Vec<Precondition>,
    pub(super) pin: Option<Option<Branch>>,
    pub(super) gates: Vec<Gate>,
    pub(super) retry: Option<Retry>,
    pub(super) loops: Vec<(NodeOutcome, usize)>,
    pub(super) routes: Vec<usize>,
    pub(super) missing_producer: MissingProducer,
    pub(super) policy: Policy,
    pub(super) resolved: Arc<Resolved>,
    /// The name under which the limits of its policy count where they have none of their own.
    pub(super) rule: Option<String>,
    /// What makes two pieces of work the same: the text, and whose parameters go into it.
    pub(super) key: Option<(String, usize)>,
    /// What the payloads of what it makes have to look like, by type.
    pub(super) schemas: BTreeMap<String, Value>,
}

impl Template {
    /// Puts values in for parameters and checks everything. Rules of the template come before those that are given.
    ///
    /// # Errors
    /// Everything that is wrong, each with its file and its place.
    pub fn expand(&self, given: &BTreeMap<String, String>, rules: &Rules) -> Result<Expanded, Problems> {
        self.expand_for(given, rules, None)
    }

    /// Does the same for somebody who knows which agents there are: a node whose agent is missing is refused.
    ///
    /// # Errors
    /// Everything that is wrong, each with its file and its place.
    pub fn expand_for(
        &self,
        given: &BTreeMap<String, String>,
        rules: &Rules,
        agents: Option<&BTreeSet<String>>,
    ) -> Result<Expanded, Problems> {
        let params = self.bound(given)?;
        let mut issues = Issues::new(self);
        let mut flat = flat::put_together(self, &params, &mut issues);
        // What could not be read would only be complained about a second time.
        let is_whole = issues.count() == 0;
        let mut graph = check::whole(&mut flat, &mut issues);
        let policies =
            policies::of_nodes(&flat, rules, graph.as_mut().map(|checked| &mut checked.graph), &mut issues);
        check_prompts::of_policies(&flat, &policies, agents, &mut issues);
        match graph {
            Some(graph) if is_whole && issues.count() == 0 => Ok(self.checked(params, flat, graph, policies)),
            Some(_) | None => Err(issues.finish()),
        }
    }

    /// Lays values over those that parameters have by themselves.
    fn bound(&self, given: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>, Problems> {
        let mut params = self.main().params.clone();
        let mut problems = Vec::new();
        for (name, value) in given {
            match params.get_mut(name) {
                Some(param) => param.clone_from(value),
                None => problems.push(Problem::new("", self.unknown_param(name))),
            }
        }
        for name in PLANS {
            if let Some(slug) = params.get(name).filter(|slug| !slug.is_empty())
                && let Err(error) = crate::job::Slug::new(slug)
            {
                problems.push(Problem::new(format!("params.{name}"), error.to_string()));
            }
        }
        Problems::check(problems, params)
    }

    fn checked(
        &self,
        params: BTreeMap<String, String>,
        flat: Flat,
        graph: check::Checked,
        policies: Vec<policies::Chosen>,
    ) -> Expanded {
        let missing = flat.missing_producers();
        let mut loops = vec![Vec::new(); flat.nodes.len()];
        for edge in graph.loops {
            loops[edge.from].push((edge.on, edge.to));
        }
        let mut schemas: Vec<_> = flat.nodes.iter().map(|draft| flat.schemas_of(draft)).collect();
        let drafts = flat.nodes.into_iter().zip(policies).zip(loops).zip(schemas.drain(..));
        let nodes = drafts.filter_map(|(((draft, chosen), loops), schemas)| {
            let on = draft.on.iter().filter_map(|(_, target)| flat.ids.get(&target.id).copied());
            let mut routes: Vec<usize> = on.collect();
            routes.sort_unstable();
            routes.dedup();
            Some(Node { schemas, ..node(draft, chosen, Edges { loops, routes }, &missing)? })
        });
        Expanded {
            id: self.id().to_owned(),
            version: self.version().to_owned(),
            params,
            nodes: nodes.collect(),
            graph: graph.graph,
            scopes: flat.instances.into_iter().map(|part| part.params).collect(),
        }
    }
}

/// The parameters that name the plan of a run.
pub(super) const PLANS: [&str; 2] = ["slug", "plan"];

struct Edges {
    loops: Vec<(NodeOutcome, usize)>,
    routes: Vec<usize>,
}

/// Returns a node that was checked. Invariant: its id and its label are some.
fn node(draft: Draft, chosen: policies::Chosen, edges: Edges, missing: &[MissingProducer]) -> Option<Node> {
    let artifacts = |named: Vec<super::node::Named>| named.into_iter().map(|named| named.artifact).collect();
    let retry = match draft.retry {
        None if !edges.loops.is_empty() => Some(Retry { mode: "on_failure".to_owned(), budget: 1 }),
        retry => retry,
    };
    Some(Node {
        id: NodeId::new(&draft.id).ok()?,
        name: draft.name,
        kind: draft.kind,
        label: draft.label?,
        args: draft.args,
        needs: artifacts(draft.needs),
        produces: draft.produces.into_iter().map(|(outcome, made)| (outcome, artifacts(made))).collect(),
        locks: draft.locks,
        preconditions: draft.preconditions,
        pin: draft.pin,
        gates: draft.gates.into_iter().map(|(gate, _)| gate).collect(),
        retry,
        loops: edges.loops,
        routes: edges.routes,
        missing_producer: missing[draft.instance],
        policy: chosen.policy,
        resolved: chosen.resolved,
        rule: chosen.rule,
        key: chosen.key,
        schemas: BTreeMap::new(),
    })
}

impl Expanded {
    /// Returns the id of the template.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the version of the template.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns the values of the parameters.
    #[must_use]
    pub const fn params(&self) -> &BTreeMap<String, String> {
        &self.params
    }

    /// Returns the ids of its nodes in the order of their files.
    pub fn node_ids(&self) -> impl Iterator<Item = &NodeId> {
        self.nodes.iter().map(|node| &node.id)
    }

    /// Returns the branches whose heads have to be known before jobs can be made of it; `None` is the current one.
    #[must_use]
    pub fn pins(&self) -> Vec<Option<Branch>> {
        let mut pins: Vec<_> = self.nodes.iter().filter_map(|node| node.pin.clone()).collect();
        pins.sort();
        pins.dedup();
        pins
    }
}

/// Problems of several files.
pub(super) struct Issues<'s> {
    reports: Vec<Report<'s>>,
    /// The template, as messages name it.
    template: String,
}

impl<'s> Issues<'s> {
    fn new(template: &'s Template) -> Self {
        let report = |file: &'s super::load::File| Report::of_file(&file.source.text, &file.source.file);
        Self {
            reports: template.files.iter().map(report).collect(),
            template: format!("template {}@{}", template.id(), template.version()),
        }
    }

    pub(super) fn report(&mut self, file: usize) -> &mut Report<'s> {
        &mut self.reports[file]
    }

    pub(super) fn at(&mut self, place: &Place, problem: Problem) {
        self.reports[place.file].at(place.span.clone(), problem);
    }

    /// Reports what is wrong with the template.
    pub(super) fn whole(&mut self, place: &Place, message: &str) {
        let message = format!("{} {message}", self.template);
        self.at(place, Problem::new("", message));
    }

    /// Reports what is wrong with a node.
    pub(super) fn node(&mut self, place: &Place, id: &str, message: &str) {
        self.whole(place, &format!("node `{id}` {message}"));
    }

    /// Reports what is wrong with a node, and what to do about it.
    pub(super) fn node_with_help(&mut self, place: &Place, id: &str, message: &str, help: &str) {
        let message = format!("{} node `{id}` {message}", self.template);
        self.at(place, Problem::new("", message).help(help));
    }

    pub(super) fn count(&self) -> usize {
        self.reports.iter().map(Report::len).sum()
    }

    fn finish(self) -> Problems {
        let problems: Vec<Problem> = self.reports.into_iter().flat_map(Report::into_problems).collect();
        Problems::check(problems, ()).expect_err("invariant: what was not accepted has a problem")
    }
}
