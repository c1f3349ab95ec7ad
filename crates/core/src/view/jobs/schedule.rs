//! The schedule: which jobs are shown, in which order, and the edges between them.

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;

use super::graph::{Graph, To, What};
use crate::job::{AfterPolicy, Artifact, Brief, JobId, JobStatus};
use crate::time::Timestamp;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct ScheduleAsk<'a> {
    /// Whether jobs that are over are shown, too.
    pub all: bool,
    /// Only this job and those around it, so many edges away as the depth says.
    pub focus: Option<&'a JobId>,
    /// How many edges away from a shown job things are followed.
    pub max_depth: usize,
}

impl ScheduleAsk<'_> {
    /// As deep as edges are followed where nobody says how deep.
    pub const DEPTH: usize = 3;
}

/// The jobs that are shown.
#[derive(Debug)]
pub struct Schedule<'a> {
    pub(super) graph: Graph<'a>,
    /// The shown jobs, in order.
    pub(super) shown: Vec<usize>,
    /// Whether the first of them was asked for.
    pub(super) is_focused: bool,
    pub(super) max_depth: usize,
}

/// A job as one row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row<'a> {
    /// Its number, from one.
    pub order: usize,
    /// The job.
    pub job_id: &'a str,
    /// The plan that it is of.
    pub slug: Option<&'a str>,
    /// What people call it.
    pub name: &'a str,
    /// Where it stands.
    pub status: JobStatus,
    /// What it waits for.
    pub wait: Option<&'a str>,
    /// When it was enqueued.
    #[serde(serialize_with = "as_text")]
    pub created_at: Timestamp,
}

fn as_text<S: serde::Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(at)
}

impl<'a> Schedule<'a> {
    /// Chooses the jobs to show.
    #[must_use]
    pub fn of(briefs: &'a BTreeMap<JobId, Brief>, ask: &ScheduleAsk<'_>) -> Self {
        let graph = Graph::of(briefs);
        let focus = ask.focus.map(|id| graph.place(id));
        let near: Option<Vec<bool>> = focus.map(|focus| near(&graph, focus, ask.max_depth));
        let visible = if ask.all { vec![true; graph.jobs.len()] } else { visible(&graph) };
        let is_shown = |place: &usize| match (&near, focus) {
            (Some(near), Some(focus)) => near[*place] && (focus == Some(*place) || visible[*place]),
            _ => visible[*place],
        };
        let mut shown: Vec<usize> = (0..graph.jobs.len()).filter(is_shown).collect();
        // The places are in the order of the ids, and the sort is stable.
        shown.sort_by_key(|place| (focus != Some(Some(*place)), graph.jobs[*place].created_at));
        Self { graph, shown, max_depth: ask.max_depth, is_focused: ask.focus.is_some() }
    }

    /// Tells whether there is nothing to show.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.shown.is_empty()
    }

    /// Returns the rows in order.
    pub fn rows(&self) -> impl Iterator<Item = Row<'a>> {
        self.shown.iter().enumerate().map(|(index, place)| Row::of(index + 1, self.graph.jobs[*place]))
    }

    /// Returns the whole for programs; `is_present` tells whether an artifact that no job makes is there.
    pub fn form(&self, is_present: &dyn Fn(&Artifact) -> bool) -> ScheduleForm<'a> {
        ScheduleForm {
            version: 1,
            ordering: "created_at_then_job_id",
            jobs: self.rows().collect(),
            edges: self.edges(is_present),
        }
    }

    /// Returns each edge once: those of the shown jobs, and those that are reached from them.
    fn edges(&self, is_present: &dyn Fn(&Artifact) -> bool) -> Vec<EdgeForm<'a>> {
        let depths = depths(&self.graph, &self.shown, self.max_depth);
        let mut from: Vec<usize> = (0..self.graph.jobs.len())
            .filter(|place| depths[*place].is_some_and(|depth| depth < self.max_depth))
            .collect();
        from.sort_by_key(|place| self.graph.jobs[*place].created_at);
        let mut forms = Vec::new();
        for place in from {
            let job = self.graph.jobs[place];
            for edge in self.graph.edges(place) {
                let label = match edge.what {
                    What::After(_) => None,
                    What::Artifact(artifact) => Some(artifact.to_string()),
                };
                let to = match (edge.to, &label) {
                    (To::Job(to), _) => self.graph.jobs[to].id.to_string(),
                    (To::Gone(id), _) => id.to_string(),
                    (To::Nobody, label) => format!("artifact:{}", label.as_deref().unwrap_or_default()),
                };
                let state = match (edge.what, edge.to) {
                    (What::Artifact(artifact), To::Nobody) => Some(state(is_present(artifact))),
                    (What::Artifact(_) | What::After(_), To::Job(_) | To::Gone(_) | To::Nobody) => None,
                };
                let after = match edge.what {
                    What::After(policy) => Some(AfterForm { policy }),
                    What::Artifact(_) => None,
                };
                forms.push(EdgeForm { from: job.id.as_str(), to, after, artifact: label, state });
            }
        }
        forms
    }
}

/// Returns the word for whether an artifact is there.
pub(super) const fn state(is_present: bool) -> &'static str {
    if is_present { "present" } else { "missing" }
}

impl<'a> Row<'a> {
    fn of(order: usize, job: &'a Brief) -> Self {
        Self {
            order,
            job_id: job.id.as_str(),
            slug: job.slug.as_deref(),
            name: &job.name,
            status: job.status,
            wait: job.wait(),
            created_at: job.created_at,
        }
    }
}

impl Brief {
    /// Returns what the job waits for: the detail, or the gate where there is none.
    #[must_use]
    pub fn wait(&self) -> Option<&str> {
        let reason = self.schedule.wait_reason.as_ref()?;
        let detail = reason.detail.trim();
        Some(if detail.is_empty() { reason.kind.name() } else { detail })
    }
}

/// Tells of each job whether it is shown without being asked for.
fn visible(graph: &Graph<'_>) -> Vec<bool> {
    let mut visible: Vec<bool> = graph.jobs.iter().map(|job| is_current(job.status)).collect();
    // A failed job is, too, while it holds somebody up; only those need to be asked what they need.
    for (place, job) in graph.jobs.iter().enumerate() {
        if !matches!(job.status, JobStatus::WaitingOnDeps | JobStatus::BlockedByDependency) {
            continue;
        }
        for edge in graph.edges(place) {
            if let To::Job(to) = edge.to
                && graph.jobs[to].status == JobStatus::Failed
            {
                visible[to] = true;
            }
        }
    }
    visible
}

const fn is_current(status: JobStatus) -> bool {
    match status {
        JobStatus::Queued
        | JobStatus::WaitingOnDeps
        | JobStatus::WaitingOnApproval
        | JobStatus::WaitingOnLocks
        | JobStatus::Running
        | JobStatus::BlockedByDependency
        | JobStatus::BlockedByApproval => true,
        JobStatus::Failed | JobStatus::Succeeded | JobStatus::Cancelled | JobStatus::Skipped => false,
    }
}

/// Marks a job and all that are at most so many edges away from it, in both directions.
fn near(graph: &Graph<'_>, focus: Option<usize>, max_depth: usize) -> Vec<bool> {
    let mut near = vec![false; graph.jobs.len()];
    let mut queue = VecDeque::new();
    if let Some(focus) = focus {
        near[focus] = true;
        queue.push_back((focus, 0));
    }
    while let Some((place, depth)) = queue.pop_front() {
        if depth >= max_depth {
            continue;
        }
        let needed = graph.edges(place).iter().filter_map(|edge| match edge.to {
            To::Job(to) => Some(to),
            To::Gone(_) | To::Nobody => None,
        });
        for other in needed.chain(graph.dependents(place).iter().copied()) {
            if !near[other] {
                near[other] = true;
                queue.push_back((other, depth + 1));
            }
        }
    }
    near
}

/// Returns how many edges each job is away from the nearest shown one, as far as the depth goes.
fn depths(graph: &Graph<'_>, shown: &[usize], max_depth: usize) -> Vec<Option<usize>> {
    let mut depths = vec![None; graph.jobs.len()];
    let mut queue: VecDeque<(usize, usize)> = shown.iter().map(|place| (*place, 0)).collect();
    for place in shown {
        depths[*place] = Some(0);
    }
    while let Some((place, depth)) = queue.pop_front() {
        if depth >= max_depth {
            continue;
        }
        for edge in graph.edges(place) {
            if let To::Job(to) = edge.to
                && depths[to].is_none()
            {
                depths[to] = Some(depth + 1);
                queue.push_back((to, depth + 1));
            }
        }
    }
    depths
}

/// The schedule for programs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScheduleForm<'a> {
    version: u32,
    ordering: &'static str,
    jobs: Vec<Row<'a>>,
    edges: Vec<EdgeForm<'a>>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct EdgeForm<'a> {
    from: &'a str,
    to: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<AfterForm>,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifact: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct AfterForm {
    policy: AfterPolicy,
}
