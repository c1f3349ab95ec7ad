//! The wish of a person to have a part of the graph done again.

use std::collections::BTreeSet;

use tidewheel_core::job::{Cause, JobId, JobStatus, Rewind, RunId, rewind, rewind_all, sentinels};
use tidewheel_store::jobs::{JobStore as _, JobStoreError};

use super::Scheduler;
use super::error::SchedulerError;
use super::pass::Pass;
use super::ticked::Ticked;
use crate::git::Repository;
use crate::job::operation;

/// What was done again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retried {
    /// Where it began.
    pub root: JobId,
    /// What came directly before it and succeeded.
    pub last_successful_point: Vec<JobId>,
    /// What was rewound, the root first.
    pub retry_set: Vec<JobId>,
    /// What the pass did.
    pub ticked: Ticked,
}

impl Scheduler {
    /// Rewinds a job and all that comes after it, and lets them run again.
    ///
    /// # Errors
    /// There is no such job, something of it runs, something is in the way, or git is in the middle of a merge that it is
    /// about. No job was reset then.
    pub fn retry(&self, id: &JobId) -> Result<Retried, SchedulerError> {
        let mut pass = self.pass_over_all()?;
        let Rewind { root, set, last_successful_point } = rewind(&pass.jobs.briefs, id)?;
        self.rewind_all(&mut pass, &set)?;
        Ok(Retried { root, last_successful_point, retry_set: set, ticked: pass.conclude_rewound() })
    }

    /// Rewinds everything of a run that did not succeed, and what comes after it.
    ///
    /// # Errors
    /// There is no such run, something of it runs, or something is in the way. No job was reset then.
    pub fn retry_run(&self, run: &RunId) -> Result<(Vec<JobId>, Ticked), SchedulerError> {
        let mut pass = self.pass_over_all()?;
        let of_run = pass.jobs.briefs.values().filter(|brief| brief.run.as_ref() == Some(run));
        let mut failed: Vec<_> = of_run
            .filter(|brief| {
                brief.status.is_terminal()
                    && !matches!(brief.status, JobStatus::Succeeded | JobStatus::Skipped)
            })
            .collect();
        failed.sort_unstable_by_key(|brief| (brief.created_at, &brief.id));
        let set = rewind_all(&pass.jobs.briefs, failed.into_iter().map(|brief| &brief.id))?;
        self.rewind_all(&mut pass, &set)?;
        Ok((set, pass.conclude_rewound()))
    }

    /// Takes the turn and reads every job: what comes after a job may have ended long ago.
    pub(super) fn pass_over_all(&self) -> Result<Pass<'_>, SchedulerError> {
        let mut pass = self.pass()?;
        let all = pass.turn.all()?;
        // What has no manifest was never enqueued, and is in none of the two.
        let manifests = self.store.runs()?;
        let is_enqueued = |run: &Option<RunId>| run.as_ref().is_none_or(|run| manifests.contains(run));
        pass.jobs.briefs = all.briefs.into_iter().filter(|(_, brief)| is_enqueued(&brief.run)).collect();
        pass.jobs.unreadable = all.unreadable;
        Ok(pass)
    }

    /// Rewinds all of them, or none: what comes after a job must not run again without it.
    fn rewind_all(&self, pass: &mut Pass<'_>, set: &[JobId]) -> Result<(), SchedulerError> {
        // A supervisor that is about to go still has the lock of its job.
        let records: Vec<_> = set.iter().map(|id| pass.record(id)).collect::<Result<_, _>>()?;
        let slugs = sentinels(&records, self.is_merging())?;
        // Before anything is taken away of any of them.
        set.iter().try_for_each(|id| self.store.check_rewind(id)).map_err(SchedulerError::NotReset)?;
        for id in set {
            pass.reset(
                id,
                Cause {
                    by: &self.options.actor,
                    is_loop: false,
                    not_before: None,
                    asks_first: None,
                    at: pass.now,
                },
            )?;
        }
        for slug in slugs {
            if let Ok(slug) = tidewheel_core::job::Slug::new(&slug) {
                let data = &self.options.data;
                operation::remove_sentinel(data, &slug).map_err(|source| {
                    let path = data.join("tmp/merge-conflicts").join(format!("{slug}.json"));
                    JobStoreError::Io { verb: "remove", path, source }
                })?;
            }
        }
        pass.batch.is_whole = true;
        pass.write().map_err(SchedulerError::NotReset)
    }

    /// Tells whether git is in the middle of a merge, or of picking a commit.
    fn is_merging(&self) -> bool {
        Repository::at(&self.options.root).is_merging()
    }
}

impl Pass<'_> {
    /// Makes the pass after jobs were rewound. They are: whatever goes wrong now is told beside it.
    fn conclude_rewound(self) -> Ticked {
        let mut ticked = self.conclude().unwrap_or_else(|error| Ticked::failed(&error));
        // That a job was rewound before it was started is no news of its own.
        let started: BTreeSet<&JobId> = ticked.started.iter().collect();
        ticked.updated.retain(|id| !started.contains(id));
        ticked
    }
}
