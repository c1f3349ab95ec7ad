//! Runs as their jobs show them: how a run is, how many of its jobs are how, and since when.

use std::collections::{BTreeMap, BTreeSet};

use crate::job::{Brief, JobId, JobStatus, Manifest, NodeId, RunId, RunResult, RunState};
use crate::policy::word_enum;
use crate::time::Timestamp;

word_enum! {
    /// How a run is.
    pub enum RunStatus {
        /// A job of it is running.
        Running = "running",
        /// No job of it is running, and some may still.
        Waiting = "waiting",
        /// All jobs did what they should, or were not needed.
        Succeeded = "succeeded",
        /// A job failed or was cancelled.
        Failed = "failed",
        /// A job can never run because of something else.
        Blocked = "blocked",
        /// All jobs that are left succeeded, and the records of others are gone: nobody knows what came of them.
        Incomplete = "incomplete",
    }
}

/// How many jobs of a run are how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct RunCounts {
    /// To be looked at, or due later.
    pub queued: usize,
    /// Waiting for something.
    pub waiting: usize,
    /// Running.
    pub running: usize,
    /// Did what they should.
    pub succeeded: usize,
    /// Did not.
    pub failed: usize,
    /// Can never run.
    pub blocked: usize,
    /// Ended by a person.
    pub cancelled: usize,
    /// Not needed, or failed and skipped by their policy.
    pub skipped: usize,
    /// Those of the skipped that failed.
    pub skipped_failures: usize,
    /// On record no more, or their records cannot be read.
    pub missing: usize,
}

/// A run.
#[derive(Clone, Debug)]
pub struct RunLine<'a> {
    /// The run.
    pub id: &'a RunId,
    /// How it is.
    pub status: RunStatus,
    /// How its jobs are.
    pub counts: RunCounts,
    /// When the first of its jobs was enqueued.
    pub created_at: Timestamp,
    /// When the last of its jobs ended, once all have.
    pub finished_at: Option<Timestamp>,
    /// Its jobs, in the order in which they were enqueued.
    pub jobs: Vec<&'a Brief>,
    /// The nodes that have no job any more, with the ids of those: somebody deleted their records, or damaged them.
    pub missing: BTreeMap<&'a NodeId, &'a JobId>,
}

impl<'a> RunLine<'a> {
    /// Sums up the jobs of a run.
    #[must_use]
    pub fn of(id: &'a RunId, mut jobs: Vec<&'a Brief>) -> Self {
        jobs.sort_by(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id)));
        let counts = RunCounts::of(jobs.iter().copied());
        let status = RunStatus::of(&jobs);
        let created_at = jobs.first().map(|job| job.created_at).unwrap_or_default();
        let ends = jobs.iter().filter_map(|job| job.finished_at).max();
        let finished_at = ends.filter(|_| status.is_over());
        Self { id, status, counts, created_at, finished_at, jobs, missing: BTreeMap::new() }
    }

    /// Counts the nodes, too, that the run was enqueued with and of which no job is left.
    #[must_use]
    pub fn among(mut self, manifest: &'a Manifest) -> Self {
        let there: BTreeSet<&JobId> = self.jobs.iter().map(|job| &job.id).collect();
        let gone = manifest.nodes.iter().filter(|(_, node)| !there.contains(&node.job_id));
        self.missing = gone.map(|(name, node)| (name, &node.job_id)).collect();
        self.counts.missing = self.missing.len();
        if self.jobs.is_empty() {
            self.created_at = manifest.created_at;
        }
        if self.status == RunStatus::Succeeded && !self.missing.is_empty() {
            self.status = RunStatus::Incomplete;
        }
        self
    }
}

impl RunStatus {
    /// Returns how a run with such jobs is.
    #[must_use]
    pub fn of(jobs: &[&Brief]) -> Self {
        match RunResult::of(jobs.iter().copied()).state() {
            RunState::Active if jobs.iter().any(|job| job.status == JobStatus::Running) => Self::Running,
            RunState::Active => Self::Waiting,
            RunState::Succeeded => Self::Succeeded,
            RunState::Failed => Self::Failed,
            RunState::Blocked => Self::Blocked,
        }
    }

    /// Tells whether nothing happens to the run any more unless a person asks for it.
    #[must_use]
    pub const fn is_over(self) -> bool {
        match self {
            Self::Running | Self::Waiting => false,
            Self::Succeeded | Self::Failed | Self::Blocked | Self::Incomplete => true,
        }
    }
}

/// Says how many failures were skipped: `1 failure skipped`; `None` if none was.
#[must_use]
pub fn said_of_skipped_failures(count: usize) -> Option<String> {
    match count {
        0 => None,
        1 => Some("1 failure skipped".to_owned()),
        more => Some(format!("{} failures skipped", super::counted_number(more))),
    }
}

impl RunCounts {
    /// Counts.
    pub fn of<'a>(jobs: impl Iterator<Item = &'a Brief>) -> Self {
        let mut counts = Self::default();
        for job in jobs {
            counts.skipped_failures += usize::from(job.is_skipped_failure());
            let count = match job.status {
                JobStatus::Queued => &mut counts.queued,
                JobStatus::WaitingOnDeps | JobStatus::WaitingOnApproval | JobStatus::WaitingOnLocks => {
                    &mut counts.waiting
                }
                JobStatus::Running => &mut counts.running,
                JobStatus::Succeeded => &mut counts.succeeded,
                JobStatus::Failed => &mut counts.failed,
                JobStatus::BlockedByDependency | JobStatus::BlockedByApproval => &mut counts.blocked,
                JobStatus::Cancelled => &mut counts.cancelled,
                JobStatus::Skipped => &mut counts.skipped,
            };
            *count += 1;
        }
        counts
    }

    /// Says what a run that succeeded went without: `1 failure skipped`; `None` if nothing failed.
    #[must_use]
    pub fn said_of_skipped_failures(&self) -> Option<String> {
        said_of_skipped_failures(self.skipped_failures)
    }

    /// Says the counts in words, those that are not zero: `2 succeeded, 1 failed`.
    #[must_use]
    pub fn said(&self) -> String {
        let Self { queued, waiting, running, succeeded, failed, blocked, cancelled, missing, .. } = self;
        let skipped = &self.skipped.saturating_sub(self.skipped_failures);
        let parts = [
            (running, "running"),
            (queued, "queued"),
            (waiting, "waiting"),
            (succeeded, "succeeded"),
            (failed, "failed"),
            (blocked, "blocked"),
            (cancelled, "cancelled"),
            (&self.skipped_failures, "failed and skipped"),
            (skipped, "skipped"),
            (missing, "missing"),
        ];
        let said: Vec<String> = parts
            .into_iter()
            .filter(|(count, _)| **count > 0)
            .map(|(count, word)| format!("{count} {word}"))
            .collect();
        said.join(", ")
    }
}
