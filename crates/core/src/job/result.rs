//! What came of a run, from where its jobs stand.

use super::brief::Brief;
use super::id::JobId;
use super::status::JobStatus;
use crate::policy::word_enum;

/// What came of a run so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunResult {
    /// Jobs of which something may still come.
    pub active: Vec<JobId>,
    /// Those of them that wait for a person.
    pub waiting_on_approval: Vec<JobId>,
    /// Jobs that did what they should.
    pub succeeded: Vec<JobId>,
    /// Jobs that did not.
    pub failed: Vec<JobId>,
    /// Jobs that could not run.
    pub blocked: Vec<JobId>,
    /// Jobs that a person ended.
    pub cancelled: Vec<JobId>,
    /// Jobs that were not needed, or whose failure their policy skips; they change nothing.
    pub skipped: Vec<JobId>,
    /// Those of them that failed: the run succeeded without what they should have done.
    pub skipped_failures: Vec<JobId>,
    /// Jobs whose records went away while somebody waited for them: what came of them is not known.
    pub missing: Vec<JobId>,
}

word_enum! {
    /// How a run stands.
    pub enum RunState {
        /// Something may still happen.
        Active = "active",
        /// All that was needed succeeded.
        Succeeded = "succeeded",
        /// A job failed or was cancelled, or its record is gone.
        Failed = "failed",
        /// A job could not run.
        Blocked = "blocked",
    }
}

impl RunResult {
    /// Looks at the jobs of a run. The lists are in the order in which they were enqueued.
    #[must_use]
    pub fn of<'a>(jobs: impl IntoIterator<Item = &'a Brief>) -> Self {
        let mut sorted: Vec<&Brief> = jobs.into_iter().collect();
        sorted.sort_unstable_by_key(|job| (job.created_at, &job.id));
        let mut this = Self::default();
        for job in sorted {
            if job.is_skipped_failure() && job.goes_back.is_none() {
                this.skipped_failures.push(job.id.clone());
            }
            let list = match job.status {
                _ if job.goes_back.is_some() => &mut this.active,
                JobStatus::WaitingOnApproval => {
                    this.waiting_on_approval.push(job.id.clone());
                    &mut this.active
                }
                JobStatus::Queued
                | JobStatus::WaitingOnDeps
                | JobStatus::WaitingOnLocks
                | JobStatus::Running => &mut this.active,
                JobStatus::Succeeded => &mut this.succeeded,
                JobStatus::Failed => &mut this.failed,
                JobStatus::Cancelled => &mut this.cancelled,
                JobStatus::BlockedByDependency | JobStatus::BlockedByApproval => &mut this.blocked,
                JobStatus::Skipped => &mut this.skipped,
            };
            list.push(job.id.clone());
        }
        this
    }

    /// Returns how the run stands.
    #[must_use]
    pub const fn state(&self) -> RunState {
        if !self.active.is_empty() {
            RunState::Active
        } else if !self.failed.is_empty() || !self.cancelled.is_empty() || !self.missing.is_empty() {
            RunState::Failed
        } else if !self.blocked.is_empty() {
            RunState::Blocked
        } else {
            RunState::Succeeded
        }
    }

    /// Returns the exit code of a run that is over; `None` while something may still happen.
    #[must_use]
    pub const fn exit_code(&self) -> Option<i32> {
        match self.state() {
            RunState::Active => None,
            RunState::Succeeded => Some(0),
            RunState::Failed => Some(1),
            RunState::Blocked => Some(10),
        }
    }
}
