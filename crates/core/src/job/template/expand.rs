//! A template with values for its parameters: its files put together, read, and checked as a whole. Nothing is left
//! to be found out later but what the world says.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::check;
use super::check_edges::Checked;
use super::check_prompts;
use super::check_scripts;
use super::flat::{self, Flat};
use super::graph::Graph;
use super::label::Label;
use super::load::Template;
use super::node::{Draft, Gate, Place};
use super::policies;
use super::scope::Params;
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
    pub(super) errexit: bool,
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
        let (params, wrong) = self.bound(given);
        self.examine(params, wrong, rules, agents).map_err(|found| {
            Problems::check(found, ()).expect_err("invariant: what was not accepted has a problem")
        })
    }

    /// Finds what is wrong with the files beside what they say about themselves. Whatever a parameter without a value
    /// gets from the command line, nobody has said yet.
    pub(super) fn other_problems(&self) -> Vec<Problem> {
        let mut params = self.main().params.clone();
        let empty = params.values.iter().filter(|(_, value)| value.trim().is_empty());
        params.open.extend(empty.map(|(name, _)| name.clone()));
        self.examine(params, Vec::new(), &Rules::default(), None).err().unwrap_or_default()
    }

    /// Puts the files together and checks everything.
    fn examine(
        &self,
        params: Params,
        wrong: Vec<Problem>,
        rules: &Rules,
        agents: Option<&BTreeSet<String>>,
    ) -> Result<Expanded, Vec<Problem>> {
        let mut issues = Issues::new(self, wrong);
        let mut flat = flat::put_together(self, &params, &mut issues);
        let mut graph = check::whole(&mut flat, &mut issues);
        let policies =
            policies::of_nodes(&flat, rules, graph.as_mut().map(|checked| &mut checked.graph), &mut issues);
        check_prompts::of_policies(&flat, &policies, agents, &mut issues);
        check_scripts::whole(&flat, &policies, &mut issues);
        match graph {
            Some(graph) if issues.count() == 0 => Ok(self.checked(params.values, flat, graph, policies)),
            Some(_) | None => Err(issues.finish(&flat)),
        }
    }

    /// Lays values over those that parameters have by themselves, and says what is wrong with them.
    fn bound(&self, given: &BTreeMap<String, String>) -> (Params, Vec<Problem>) {
        let mut params = self.main().params.clone();
        let mut problems = Vec::new();
        for (name, value) in given {
            match params.values.get_mut(name) {
                Some(param) => param.clone_from(value),
                None => problems.push(Problem::new("", self.unknown_param(name))),
            }
        }
        for name in PLANS {
            if let Some(slug) = params.values.get(name).filter(|slug| !slug.is_empty())
                && let Err(error) = crate::job::Slug::new(slug)
            {
                let problem = Problem::new(format!("params.{name}"), error.to_string());
                let file = &self.files[0].source;
                let place = self.main().param_places.get(name).filter(|_| !given.contains_key(name));
                match place {
                    Some(place) => {
                        let mut report = Report::of_file(&file.text, &file.file);
                        report.at(place.clone(), problem);
                        problems.extend(report.into_problems());
                    }
                    None => problems.push(problem),
                }
                // Wherever it stands, it would be refused again.
                params.open.insert(name.to_owned());
            }
        }
        (params, problems)
    }

    fn checked(
        &self,
        params: BTreeMap<String, String>,
        flat: Flat,
        graph: Checked,
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
            scopes: flat.instances.into_iter().map(|part| part.params.values).collect(),
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
    let retry = match draft.retry.map(|(retry, _)| retry) {
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
        errexit: draft.errexit.is_none_or(|(errexit, _)| errexit),
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
    /// What is wrong in no file.
    elsewhere: Vec<Problem>,
}

impl<'s> Issues<'s> {
    fn new(template: &'s Template, elsewhere: Vec<Problem>) -> Self {
        let report = |file: &'s super::load::File| Report::of_file(&file.source.text, &file.source.file);
        let name = match (template.id(), template.version()) {
            ("", _) => "template".to_owned(),
            (id, "") => format!("template {id}"),
            (id, version) => format!("template {id}@{version}"),
        };
        Self { reports: template.files.iter().map(report).collect(), template: name, elsewhere }
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
        let message = self.of_node(id, message);
        self.at(place, Problem::new("", message));
    }

    /// Says of which node something is said; one without an id is known by its place.
    fn of_node(&self, id: &str, message: &str) -> String {
        let node = if id.is_empty() { "node".to_owned() } else { format!("node `{id}`") };
        format!("{} {node} {message}", self.template)
    }

    /// Reports what is wrong with a node, and what to do about it.
    pub(super) fn node_with_help(&mut self, place: &Place, id: &str, message: &str, help: &str) {
        let message = self.of_node(id, message);
        self.at(place, Problem::new("", message).help(help));
    }

    pub(super) fn count(&self) -> usize {
        self.elsewhere.len() + self.reports.iter().map(Report::len).sum::<usize>()
    }

    /// Returns all of it. A mistake in a file that is imported several times is one, whatever its nodes are called.
    fn finish(self, flat: &Flat) -> Vec<Problem> {
        let mut prefixes: Vec<&str> = flat.instances.iter().map(|part| part.prefix.as_str()).collect();
        prefixes.retain(|prefix| !prefix.is_empty());
        prefixes.sort_by_key(|prefix| std::cmp::Reverse(prefix.len()));
        let without =
            |text: &str| prefixes.iter().fold(text.to_owned(), |text, prefix| text.replace(prefix, ""));
        let mut problems = self.elsewhere;
        for report in self.reports {
            let mut told = BTreeSet::new();
            for problem in report.into_problems() {
                let place = problem.location.as_ref().map(|place| (place.span.start, place.span.end));
                if told.insert((place, without(&problem.path), without(&problem.message))) {
                    problems.push(problem);
                }
            }
        }
        problems
    }
}
