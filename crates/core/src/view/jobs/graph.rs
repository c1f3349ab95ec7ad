//! Who waits for whom: jobs, and the edges from each to what it needs. Each edge is found once.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use crate::job::{AfterPolicy, Artifact, Brief, JobId};

/// Jobs by place, and the edges between them, found when somebody asks: most views look at few of very many jobs.
#[derive(Debug)]
pub(super) struct Graph<'a> {
    /// The jobs in the order of their ids.
    pub(super) jobs: Vec<&'a Brief>,
    producers: BTreeMap<String, Vec<usize>>,
    edges: Vec<OnceCell<Vec<Edge<'a>>>>,
    dependents: OnceCell<Vec<Vec<usize>>>,
}

/// One thing that a job needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge<'a> {
    /// What has to be.
    pub(super) what: What<'a>,
    /// Who sees to it.
    pub(super) to: To<'a>,
}

/// What has to be.
#[derive(Clone, Copy, Debug)]
pub(super) enum What<'a> {
    /// A job has to end so.
    After(AfterPolicy),
    /// An artifact has to be there.
    Artifact(&'a Artifact),
}

/// Who sees to something.
#[derive(Clone, Copy, Debug)]
pub(super) enum To<'a> {
    /// This job.
    Job(usize),
    /// A job that is not there.
    Gone(&'a JobId),
    /// No job.
    Nobody,
}

impl<'a> Graph<'a> {
    /// Takes the jobs, and who makes what.
    pub(super) fn of(briefs: &'a BTreeMap<JobId, Brief>) -> Self {
        let jobs: Vec<&Brief> = briefs.values().collect();
        let mut producers: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (place, job) in jobs.iter().enumerate() {
            for made in &job.schedule.artifacts {
                let of = producers.entry(made.to_string()).or_default();
                // Somebody may list an artifact twice.
                if of.last() != Some(&place) {
                    of.push(place);
                }
            }
        }
        let edges = jobs.iter().map(|_| OnceCell::new()).collect();
        Self { jobs, producers, edges, dependents: OnceCell::new() }
    }

    /// Returns what a job needs, in the order in which its gates look.
    pub(super) fn edges(&self, place: usize) -> &[Edge<'a>] {
        self.edges[place].get_or_init(|| self.edges_of(self.jobs[place]))
    }

    /// Returns who needs a job.
    pub(super) fn dependents(&self, place: usize) -> &[usize] {
        let all = self.dependents.get_or_init(|| {
            let mut all = vec![Vec::new(); self.jobs.len()];
            for from in 0..self.jobs.len() {
                for edge in self.edges(from) {
                    if let To::Job(to) = edge.to
                        && all[to].last() != Some(&from)
                    {
                        all[to].push(from);
                    }
                }
            }
            all
        });
        &all[place]
    }

    /// Returns where a job stands.
    pub(super) fn place(&self, id: &JobId) -> Option<usize> {
        self.jobs.binary_search_by(|job| job.id.cmp(id)).ok()
    }

    fn edges_of(&self, job: &'a Brief) -> Vec<Edge<'a>> {
        let mut after: Vec<_> = job.schedule.after.iter().collect();
        after.sort();
        after.dedup();
        let mut edges: Vec<Edge<'a>> = after
            .into_iter()
            .map(|after| Edge {
                what: What::After(after.policy),
                to: self.place(&after.job_id).map_or(To::Gone(&after.job_id), To::Job),
            })
            .collect();
        let mut seen: BTreeSet<&Artifact> = BTreeSet::new();
        for needed in &job.schedule.dependencies {
            let artifact = &needed.artifact;
            if !seen.insert(artifact) {
                continue;
            }
            let what = What::Artifact(artifact);
            let makers = self.makers(job, artifact);
            if makers.is_empty() {
                edges.push(Edge { what, to: To::Nobody });
            }
            edges.extend(makers.into_iter().map(|maker| Edge { what, to: To::Job(maker) }));
        }
        edges
    }

    /// Returns who makes an artifact for a job: of a custom one, the jobs of its own run if there are any.
    fn makers(&self, job: &Brief, artifact: &Artifact) -> Vec<usize> {
        let all = self.producers.get(&artifact.to_string()).map_or(&[][..], Vec::as_slice);
        if matches!(artifact, Artifact::Custom { .. }) && job.run.is_some() {
            let own: Vec<usize> =
                all.iter().copied().filter(|place| self.jobs[*place].run == job.run).collect();
            if !own.is_empty() {
                return own;
            }
        }
        all.to_vec()
    }
}
