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
    /// Jobs that own a worktree in which an open job works, or is going to.
    pub in_use: &'a BTreeSet<JobId>,
    /// How old is old, in days.
    pub days: u32,
    /// The present.
    pub now: Timestamp,
}

/// What is removed, and what stays although it is old.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// What is removed, each as a whole or not at all.
    pub units: Vec<CollectUnit>,
    /// Old jobs that stay because others need them, or because a job of their run stays.
    pub kept: Vec<JobId>,
}

/// A run with all of its jobs, or a job that belongs to no run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CollectUnit {
    /// The run. What [`marks_of`] says of its manifest is removed, too.
    pub run: Option<RunId>,
    /// Its jobs, in the order in which they were enqueued.
    pub jobs: Vec<JobId>,
    /// The custom artifacts that its jobs may have marked, as their records say.
    pub unmarks: Vec<(JobId, Artifact)>,
}

/// A run that was not enqueued completely after this long never will be.
const ABANDONED: Span = Span::from_secs(86_400);

/// Decides what is removed: runs and jobs that ended so many days ago and that no open job needs, by `after`, by an
/// artifact or by a worktree; runs without jobs; and what was left of runs that were never enqueued completely. A run is
/// removed when all of its jobs can be, and when its manifest does not keep it: see [`keeps`].
#[must_use]
pub fn collect(attic: &Attic<'_>) -> Collected {
    let age = attic.age();
    let is_enqueued = |job: &Brief| job.run.as_ref().is_none_or(|run| attic.manifests.contains(run));
    let needed = needed(attic.jobs, is_enqueued);
    let is_old = |job: &Brief| {
        if is_enqueued(job) {
            let ended = job.finished_at.unwrap_or(job.created_at);
            !job.is_open() && attic.now.has_reached(ended, age)
        } else {
            attic.now.has_reached(job.created_at, ABANDONED)
        }
    };
    let mut sorted: Vec<&Brief> = attic.jobs.values().collect();
    sorted.sort_unstable_by_key(|job| (job.created_at, &job.id));
    let stays =
        |job: &Brief| !is_old(job) || needed.contains(&job.id) || attic.in_use.contains(job.id.as_str());
    let run_of = |job: &'_ Brief| job.run.clone().filter(|_| is_enqueued(job));
    let mut staying: BTreeSet<RunId> =
        sorted.iter().filter(|job| stays(job)).filter_map(|job| run_of(job)).collect();
    let unreadable = attic.manifests.iter().filter(|run| has_unreadable(attic.unreadable, run));
    staying.extend(unreadable.cloned());
    let mut collected = Collected::default();
    let mut places: BTreeMap<RunId, usize> = BTreeMap::new();
    for job in sorted {
        let run = run_of(job);
        if stays(job) || run.as_ref().is_some_and(|run| staying.contains(run)) {
            if is_old(job) {
                collected.kept.push(job.id.clone());
            }
            continue;
        }
        let next = collected.units.len();
        let place = run.as_ref().map_or(next, |run| *places.entry(run.clone()).or_insert(next));
        if place == next {
            collected.units.push(CollectUnit { run, ..CollectUnit::default() });
        }
        let unit = &mut collected.units[place];
        unit.jobs.push(job.id.clone());
        let custom = job.schedule.artifacts.iter().filter(|made| matches!(made, Artifact::Custom { .. }));
        unit.unmarks.extend(custom.map(|made| (job.id.clone(), made.clone())));
    }
    // Of what is in their manifests, [`keeps`] knows more.
    let empty = attic.manifests.iter().filter(|run| !staying.contains(*run) && !places.contains_key(*run));
    let empty = empty.map(|run| CollectUnit { run: Some(run.clone()), ..CollectUnit::default() });
    collected.units.extend(empty);
    collected
}

impl Attic<'_> {
    fn age(&self) -> Span {
        Span::from_millis(u64::from(self.days).saturating_mul(ABANDONED.as_millis()))
    }
}

impl Collected {
    /// Returns the jobs that are removed.
    pub fn jobs(&self) -> impl Iterator<Item = &JobId> {
        self.units.iter().flat_map(|unit| &unit.jobs)
    }

    /// Returns the runs that are removed.
    pub fn runs(&self) -> impl Iterator<Item = &RunId> {
        self.units.iter().filter_map(|unit| unit.run.as_ref())
    }
}

/// Why a run stays although every record that it has may go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeptRun {
    /// The manifest is that of another run: Tidewheel did not write it there.
    Foreign(RunId),
    /// This job has a directory and no record: its end is not known, and its files would stay for ever.
    Lost(JobId),
    /// Its jobs are gone, and it was enqueued only lately.
    Young,
}

/// Returns why a run stays, as its manifest shows, for those that [`collect`] would remove.
#[must_use]
pub fn keeps(
    attic: &Attic<'_>,
    unit: &CollectUnit,
    manifest: &Manifest,
    has_directory: impl Fn(&JobId) -> bool,
) -> Option<KeptRun> {
    let run = unit.run.as_ref()?;
    if manifest.run_id != *run {
        return Some(KeptRun::Foreign(manifest.run_id.clone()));
    }
    let named = manifest.nodes.values().map(|node| &node.job_id);
    let lost = named.filter(|id| !attic.jobs.contains_key(*id)).find(|id| has_directory(id));
    if let Some(lost) = lost {
        return Some(KeptRun::Lost(lost.clone()));
    }
    let is_young = unit.jobs.is_empty() && !attic.now.has_reached(manifest.created_at, attic.age());
    is_young.then_some(KeptRun::Young)
}

/// Returns whether a record that cannot be read is that of a job of a run, by its name.
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
