//! The graph of a flow: of a template before it runs, or of a run with where its jobs stand. Each edge is there once.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::graph::{Graph, To, What};
use super::layers::Layers;
use super::schedule::state;
use crate::document::Problems;
use crate::job::template::{Enqueue, Expanded};
use crate::job::{
    AfterPolicy, ApprovalState, Artifact, Brief, JobId, JobStatus, Lock, Manifest, NodeOutcome, PinnedHead,
    Precondition, RunId,
};
use crate::policy::word_enum;
use crate::time::Timestamp;

/// The graph of a flow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowView {
    /// The version of this form.
    pub version: u32,
    /// The template and its version, as `id@version`, if it is known.
    pub template: Option<String>,
    /// The run; `None` before there is one.
    pub run: Option<String>,
    /// How many layers the nodes stand in.
    pub layers: usize,
    /// The nodes: those of the flow layer by layer, then what is outside of it.
    pub nodes: Vec<FlowNode>,
    /// From what comes before to what comes after; loops lead back.
    pub edges: Vec<FlowEdge>,
}

/// One node.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowNode {
    /// Its id, which no other node has.
    pub id: String,
    /// What it is.
    pub is: FlowPart,
    /// Its job, once there is one.
    pub job_id: Option<String>,
    /// What people call it.
    pub name: String,
    /// What it does, such as `cap.env.shell.command.run`.
    pub uses: Option<String>,
    /// Its layer, from one; zero outside of the flow.
    pub layer: usize,
    /// Where its job stands.
    pub status: Option<JobStatus>,
    /// How many times it was started.
    pub attempt: Option<u32>,
    /// What it waits for.
    pub wait: Option<String>,
    /// The locks that it holds while it runs.
    pub locks: Vec<Lock>,
    /// What a person said who has to approve it.
    pub approval: Option<ApprovalState>,
    /// The branch that it is pinned to.
    pub pinned: Option<String>,
    /// What else has to be so.
    pub preconditions: Vec<String>,
    /// The artifacts that it makes.
    pub produces: Vec<String>,
    /// Whether an artifact from outside is there: `present` or `missing`.
    pub state: Option<&'static str>,
}

word_enum! {
    /// What a node of the picture is.
    pub enum FlowPart {
        /// A node of the flow.
        Node = "node",
        /// A job of another run, or of none.
        Job = "job",
        /// A job that is not there.
        Missing = "missing",
        /// An artifact that no job makes.
        Artifact = "artifact",
    }
}

/// One edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowEdge {
    /// Where it begins.
    pub from: String,
    /// Where it ends.
    pub to: String,
    /// What it means.
    pub what: FlowLink,
    /// The places of both ends in the list of nodes.
    pub(super) ends: (usize, usize),
}

/// What an edge means.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FlowLink {
    /// The second starts when the first has ended so.
    After {
        /// How.
        policy: AfterPolicy,
    },
    /// The second needs what the first makes.
    Artifact {
        /// What.
        artifact: String,
    },
    /// When the first has ended so, it goes back to the second.
    Loop {
        /// How.
        on: NodeOutcome,
        /// At most so many times.
        budget: u32,
    },
}

impl Serialize for FlowEdge {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Form<'a> {
            from: &'a str,
            to: &'a str,
            kind: &'static str,
            #[serde(skip_serializing_if = "Option::is_none")]
            policy: Option<AfterPolicy>,
            #[serde(skip_serializing_if = "Option::is_none")]
            artifact: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            on: Option<NodeOutcome>,
            #[serde(skip_serializing_if = "Option::is_none")]
            budget: Option<u32>,
        }
        let (from, to) = (self.from.as_str(), self.to.as_str());
        let form = |kind| Form { from, to, kind, policy: None, artifact: None, on: None, budget: None };
        let form = match &self.what {
            FlowLink::After { policy } => Form { policy: Some(*policy), ..form("after") },
            FlowLink::Artifact { artifact } => Form { artifact: Some(artifact), ..form("artifact") },
            FlowLink::Loop { on, budget } => Form { on: Some(*on), budget: Some(*budget), ..form("loop") },
        };
        form.serialize(serializer)
    }
}

/// Whose graph is asked for.
#[derive(Clone, Copy, Debug)]
pub struct FlowAsk<'a> {
    /// All jobs.
    pub briefs: &'a BTreeMap<JobId, Brief>,
    /// The run.
    pub run: &'a RunId,
    /// What is kept of it; without it, loops and what nodes do are not known.
    pub manifest: Option<&'a Manifest>,
}

impl FlowView {
    /// Returns the graph of a run; `is_present` tells whether an artifact that no job makes is there.
    #[must_use]
    pub fn of(ask: &FlowAsk<'_>, is_present: &dyn Fn(&Artifact) -> bool) -> Self {
        Drawing::of(ask, Some(is_present)).finish(ask)
    }

    /// Returns the graph of a template, as its jobs will have it.
    ///
    /// # Errors
    /// Its names do not fit.
    pub fn of_template(expanded: &Expanded) -> Result<Self, Problems> {
        let run = RunId::of_bits(0);
        let mut wish = Enqueue::new(run.clone(), "", Timestamp::default(), "");
        // Where the branches stand is asked when the jobs are made; here only their names count.
        wish.heads = expanded.pins().into_iter().map(|branch| (branch.clone(), head(branch))).collect();
        let made = expanded.materialise(&wish)?;
        let briefs: BTreeMap<JobId, Brief> =
            made.records.iter().map(|record| (record.id.clone(), Brief::from(record))).collect();
        let ask = FlowAsk { briefs: &briefs, run: &run, manifest: Some(&made.manifest) };
        let mut view = Drawing::of(&ask, None).finish(&ask);
        view.run = None;
        for node in &mut view.nodes {
            (node.job_id, node.status, node.attempt) = (None, None, None);
        }
        Ok(view)
    }
}

fn head<T: ToString>(branch: Option<T>) -> PinnedHead {
    let branch = branch.map_or_else(|| "(current branch)".to_owned(), |branch| branch.to_string());
    PinnedHead { branch, oid: String::new() }
}

/// A picture that is being made.
struct Drawing {
    nodes: Vec<FlowNode>,
    layers: Layers,
    /// From a node to another, by place.
    edges: Vec<(usize, usize, FlowLink)>,
}

impl Drawing {
    fn of(ask: &FlowAsk<'_>, is_present: Option<&dyn Fn(&Artifact) -> bool>) -> Self {
        let graph = Graph::of(ask.briefs);
        let mut own: Vec<usize> =
            (0..graph.jobs.len()).filter(|place| graph.jobs[*place].run.as_ref() == Some(ask.run)).collect();
        // The places are in the order of the ids, and the sort is stable.
        own.sort_by_key(|place| graph.jobs[*place].created_at);
        let mut numbers: Vec<Option<usize>> = vec![None; graph.jobs.len()];
        for (number, place) in own.iter().enumerate() {
            numbers[*place] = Some(number);
        }
        let nodes = own.iter().map(|place| node(graph.jobs[*place], ask.manifest)).collect();
        let mut this = Self { nodes, layers: Layers::default(), edges: Vec::new() };
        let mut outside = Outside::new(&this.nodes);
        for (number, place) in own.iter().enumerate() {
            for edge in graph.edges(*place) {
                let link = match edge.what {
                    What::After(policy) => FlowLink::After { policy },
                    What::Artifact(artifact) => FlowLink::Artifact { artifact: artifact.to_string() },
                };
                let nodes = &mut this.nodes;
                let from = match (edge.to, edge.what) {
                    (To::Job(to), _) => numbers[to].unwrap_or_else(|| {
                        outside.place(nodes, FlowPart::Job, graph.jobs[to].id.as_str(), |node| {
                            node.name.clone_from(&graph.jobs[to].name);
                            node.status = Some(graph.jobs[to].status);
                        })
                    }),
                    (To::Gone(id), _) => outside.place(nodes, FlowPart::Missing, id.as_str(), |_| {}),
                    (To::Nobody, What::Artifact(artifact)) => {
                        outside.place(nodes, FlowPart::Artifact, &artifact.to_string(), |node| {
                            node.state = is_present.map(|is_present| state(is_present(artifact)));
                        })
                    }
                    (To::Nobody, What::After(_)) => continue,
                };
                this.edges.push((from, number, link));
            }
        }
        let mut before = vec![Vec::new(); own.len()];
        for (from, to, _) in this.edges.iter().filter(|(from, ..)| *from < own.len()) {
            before[*to].push(*from);
        }
        this.layers = Layers::of(&before);
        for (node, layer) in this.nodes.iter_mut().zip(&this.layers.of) {
            node.layer = layer + 1;
        }
        this.add_loops(ask.manifest);
        this
    }

    fn add_loops(&mut self, manifest: Option<&Manifest>) {
        let Some(manifest) = manifest else { return };
        let places: BTreeMap<&str, usize> =
            self.layers.order.iter().map(|place| (self.nodes[*place].id.as_str(), *place)).collect();
        for (id, kept) in &manifest.nodes {
            let budget = kept.retry.as_ref().map_or(1, |retry| retry.budget);
            for back in &kept.loops {
                if let (Some(from), Some(to)) = (places.get(id.as_str()), places.get(back.to.as_str())) {
                    self.edges.push((*from, *to, FlowLink::Loop { on: back.on, budget }));
                }
            }
        }
    }

    /// Puts everything into the order in which it is shown.
    fn finish(self, ask: &FlowAsk<'_>) -> FlowView {
        let Self { nodes, layers, mut edges } = self;
        let order: Vec<usize> = layers.order.iter().copied().chain(layers.order.len()..nodes.len()).collect();
        let mut shown = vec![0; nodes.len()];
        for (at, place) in order.iter().enumerate() {
            shown[*place] = at;
        }
        for (from, to, _) in &mut edges {
            (*from, *to) = (shown[*from], shown[*to]);
        }
        // An edge stands with the node that it makes wait, and a loop with the node that it begins at.
        edges.sort_by(|(from, to, what), (other_from, other_to, other_what)| {
            let key = |from: usize, to: usize, what: &FlowLink| match what {
                FlowLink::After { .. } => (to, 0, from),
                FlowLink::Artifact { .. } => (to, 1, from),
                FlowLink::Loop { .. } => (from, 2, to),
            };
            let keys = key(*from, *to, what).cmp(&key(*other_from, *other_to, other_what));
            keys.then_with(|| what.cmp(other_what))
        });
        let mut places: Vec<Option<FlowNode>> = nodes.into_iter().map(Some).collect();
        let nodes: Vec<FlowNode> = order.iter().filter_map(|place| places[*place].take()).collect();
        let edge = |(from, to, what): (usize, usize, FlowLink)| FlowEdge {
            from: nodes[from].id.clone(),
            to: nodes[to].id.clone(),
            what,
            ends: (from, to),
        };
        FlowView {
            version: 1,
            template: ask
                .manifest
                .map(|kept| format!("{}@{}", kept.workflow_template_id, kept.workflow_template_version)),
            run: Some(ask.run.to_string()),
            layers: layers.count(),
            edges: edges.into_iter().map(edge).collect(),
            nodes,
        }
    }
}

/// Describes a job of the flow.
fn node(job: &Brief, manifest: Option<&Manifest>) -> FlowNode {
    let schedule = &job.schedule;
    let kept = job.node.as_ref().and_then(|id| manifest?.nodes.get(id));
    FlowNode {
        id: job.node.as_ref().map_or_else(|| job.id.to_string(), ToString::to_string),
        is: FlowPart::Node,
        job_id: Some(job.id.to_string()),
        name: job.name.clone(),
        uses: kept.map(|kept| kept.uses.clone()),
        layer: 0,
        status: Some(job.status),
        attempt: Some(job.attempt),
        wait: job.wait().map(str::to_owned),
        locks: schedule.locks.clone(),
        approval: schedule.approval.as_ref().filter(|asked| asked.required).map(|asked| asked.state),
        pinned: schedule.pinned_head.as_ref().map(|head| head.branch.clone()),
        preconditions: schedule.preconditions.iter().map(said).collect(),
        produces: schedule.artifacts.iter().map(ToString::to_string).collect(),
        state: None,
    }
}

fn said(precondition: &Precondition) -> String {
    match precondition {
        Precondition::CleanWorktree => "clean_worktree".to_owned(),
        Precondition::BranchExists { branch: None } => "branch_exists".to_owned(),
        Precondition::BranchExists { branch: Some(branch) } => format!("branch_exists:{branch}"),
        Precondition::Custom { id, .. } => id.clone(),
    }
}

/// What is not of the flow, each once.
struct Outside {
    places: BTreeMap<(FlowPart, String), usize>,
    taken: BTreeSet<String>,
}

impl Outside {
    fn new(nodes: &[FlowNode]) -> Self {
        Self { places: BTreeMap::new(), taken: nodes.iter().map(|node| node.id.clone()).collect() }
    }

    /// Returns where something stands; what is seen for the first time gets a place, and is described.
    fn place(
        &mut self,
        nodes: &mut Vec<FlowNode>,
        is: FlowPart,
        name: &str,
        describe: impl FnOnce(&mut FlowNode),
    ) -> usize {
        *self.places.entry((is, name.to_owned())).or_insert_with(|| {
            let mut node = bare(is, name);
            describe(&mut node);
            while !self.taken.insert(node.id.clone()) {
                node.id.push('\'');
            }
            nodes.push(node);
            nodes.len() - 1
        })
    }
}

fn bare(is: FlowPart, name: &str) -> FlowNode {
    let (prefix, job_id) = match is {
        FlowPart::Artifact => ("artifact:", None),
        FlowPart::Node | FlowPart::Job | FlowPart::Missing => ("job:", Some(name.to_owned())),
    };
    FlowNode {
        id: format!("{prefix}{name}"),
        is,
        job_id,
        name: name.to_owned(),
        uses: None,
        layer: 0,
        status: None,
        attempt: None,
        wait: None,
        locks: Vec::new(),
        approval: None,
        pinned: None,
        preconditions: Vec::new(),
        produces: Vec::new(),
        state: None,
    }
}
