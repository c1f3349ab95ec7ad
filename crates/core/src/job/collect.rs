//! What is old and needed by nobody: which jobs, runs and markers are removed. It removes nothing itself.

use std::collections::{BTreeMap, BTreeSet};

use super::artifact::Artifact;
use super::brief::Brief;
use super::id::{JobId, RunId};
use super::manifest::Manifest;
use super::rewind::Edges;
use crate::time::{Span, Timestamp};

/// What there is, and what is old.
pub struct Attic<'a> {
    /// Every job, also those whose run was never finished being enqueued.
    pub jobs: &'a BTreeMap<JobId, Brief>,
    /// Jobs whose records cannot be read, and why: they stay, and so do their runs.
    pub unreadable: &'a BTreeMap<String, String>,
    /// The runs that have a manifest.
    pub manifests: &'a BTreeSet<RunId>,
    /// How old is old, in days.
    pub days: u32,
    /// The present.
    pub now: Timestamp,
}

/// What is removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Jobs with all that is theirs, in the order in which they were enqueued.
    pub jobs: Vec<JobId>,
    /// Runs of which no job is left. What [`marks_of`] says of their manifests is removed, too.
    pub runs: Vec<RunId>,
    /// The custom artifacts of removed jobs that belong to no run.
    pub unmarks: Vec<(JobId, Artifact)>,
    /// Old jobs that stay because others need them.
    pub kept: Vec<JobId>,
}

/// A run that was not enqueued completely after this long never will be.
const ABANDONED: Span = Span::from_secs(86_400);

/// Decides what is removed: jobs that ended so many days ago and that no open job needs, by `after` or by an artifact,
/// or because they are of one run; runs without jobs; and what was left of runs that were never enqueued completely.
#[must_use]
pub fn collect(attic: &Attic<'_>) -> Collected {
    let age = Span::from_millis(u64::from(attic.days).saturating_mul(ABANDONED.as_millis()));
    let is_enqueued = |job: &Brief| job.run.as_ref().is_none_or(|run| attic.manifests.contains(run));
    let needed = needed(attic.jobs, is_enqueued);
    let mut collected = Collected::default();
    let mut left: BTreeSet<&RunId> = BTreeSet::new();
    let mut seen: BTreeSet<&RunId> = attic.manifests.iter().collect();
    let mut sorted: Vec<&Brief> = attic.jobs.values().collect();
    sorted.sort_unstable_by_key(|job| (job.created_at, &job.id));
    for job in sorted {
        let is_old = if is_enqueued(job) {
            let ended = job.finished_at.unwrap_or(job.created_at);
            !job.is_open() && attic.now.has_reached(ended, age)
        } else {
            attic.now.has_reached(job.created_at, ABANDONED)
        };
        let stays = !is_old || needed.contains(&job.id);
        if is_old && stays {
            collected.kept.push(job.id.clone());
        }
        if stays {
            left.extend(&job.run);
            continue;
        }
        seen.extend(&job.run);
        collected.jobs.push(job.id.clone());
        if job.run.is_none() {
            let custom = job.schedule.artifacts.iter().filter(|made| matches!(made, Artifact::Custom { .. }));
            collected.unmarks.extend(custom.map(|made| (job.id.clone(), made.clone())));
        }
    }
    let gone = seen.difference(&left).filter(|run| !has_unreadable(attic.unreadable, run));
    collected.runs = gone.map(|run| (*run).clone()).collect();
    collected
}

/// Tells whether a record that cannot be read is that of a job of a run, by its name.
fn has_unreadable(unreadable: &BTreeMap<String, String>, run: &RunId) -> bool {
    let prefix = format!("wf-{run}-");
    unreadable.range(prefix.clone()..).next().is_some_and(|(name, _)| name.starts_with(&prefix))
}

/// Returns the custom artifacts that the jobs of a run may have marked.
pub fn marks_of(manifest: &Manifest) -> impl Iterator<Item = (JobId, Artifact)> {
    manifest.nodes.values().flat_map(|node| {
        let made = node.produces.values().flatten();
        let custom = made.filter(|made| matches!(made, Artifact::Custom { .. }));
        custom.map(|made| (node.job_id.clone(), made.clone()))
    })
}

/// Returns the jobs that open jobs need.
fn needed(jobs: &BTreeMap<JobId, Brief>, is_enqueued: impl Fn(&Brief) -> bool) -> BTreeSet<&JobId> {
    let open: Vec<&Brief> = jobs.values().filter(|job| job.is_open() && is_enqueued(job)).collect();
    // A loop may go back to any job of its run.
    let runs: BTreeSet<&RunId> = open.iter().filter_map(|job| job.run.as_ref()).collect();
    let of_runs = jobs.values().filter(|job| job.run.as_ref().is_some_and(|run| runs.contains(run)));
    let mut needed: BTreeSet<&JobId> = of_runs.map(|job| &job.id).collect();
    let edges = Edges::of(jobs);
    for job in open {
        needed.extend(job.schedule.after.iter().map(|after| &after.job_id));
        needed.extend(edges.makers_for(job).map(|maker| &maker.id));
        for need in &job.schedule.dependencies {
            // The patch is in the directory of the job that it is named after.
            if let Artifact::CommandPatch { job_id } = &need.artifact
                && let Some((id, _)) = jobs.get_key_value(job_id.as_str())
            {
                needed.insert(id);
            }
        }
    }
    needed
}
