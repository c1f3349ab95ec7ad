//! The wish of a person to have a part of the graph done again.

use std::collections::BTreeSet;

use tidewheel_core::job::{Cause, JobId, JobStatus, Rewind, RunId, rewind, sentinels};
use tidewheel_store::jobs::{JobStore as _, JobStoreError};

use super::Scheduler;
use super::error::SchedulerError;
use super::pass::{Pass, Ticked};
use crate::git::Repository;
use crate::job::operation;

/// What was done again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retried {
    /// Where it began.
    pub root: JobId,
    /// What came directly before it and succeeded.
    pub last_successful_point: Vec<JobId>,
    /// What was to be rewound, the root first.
    pub retry_set: Vec<JobId>,
    /// What was: all of it, unless something could not be written.
    pub reset: Vec<JobId>,
    /// What the pass did.
    pub ticked: Ticked,
}

impl Scheduler {
    /// Rewinds a job and all that comes after it, and lets them run again.
    ///
    /// # Errors
    /// There is no such job, something of it runs, or git is in the middle of a merge that it is about. Nothing was
    /// changed then.
    pub fn retry(&self, id: &JobId) -> Result<Retried, SchedulerError> {
        let mut pass = self.pass_over_all()?;
        let Rewind { root, set, last_successful_point } = rewind(&pass.jobs.briefs, id)?;
        self.rewind_all(&mut pass, &set)?;
        let ticked = pass.conclude()?;
        let reset = set.iter().filter(|id| !ticked.unwritten.contains(id)).cloned().collect();
        Ok(Retried { root, last_successful_point, retry_set: set, reset, ticked })
    }

    /// Rewinds everything of a run that did not succeed, and what comes after it.
    ///
    /// # Errors
    /// There is no such run, or something of it runs. Nothing was changed then.
    pub fn retry_run(&self, run: &RunId) -> Result<(Vec<JobId>, Ticked), SchedulerError> {
        let mut pass = self.pass_over_all()?;
        let mut set: Vec<JobId> = Vec::new();
        let mut seen = BTreeSet::new();
        let of_run = pass.jobs.briefs.values().filter(|brief| brief.run.as_ref() == Some(run));
        let mut failed: Vec<_> = of_run
            .filter(|brief| {
                brief.status.is_terminal()
                    && !matches!(brief.status, JobStatus::Succeeded | JobStatus::Skipped)
            })
            .collect();
        failed.sort_unstable_by_key(|brief| (brief.created_at, &brief.id));
        for brief in failed {
            if seen.contains(&brief.id) {
                continue;
            }
            let rewind = rewind(&pass.jobs.briefs, &brief.id)?;
            set.extend(rewind.set.into_iter().filter(|id| seen.insert(id.clone())));
        }
        self.rewind_all(&mut pass, &set)?;
        Ok((set, pass.conclude()?))
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

    fn rewind_all(&self, pass: &mut Pass<'_>, set: &[JobId]) -> Result<(), SchedulerError> {
        // A supervisor that is about to go still has the lock of its job.
        let records: Vec<_> = set.iter().map(|id| pass.record(id)).collect::<Result<_, _>>()?;
        let slugs = sentinels(&records, self.is_merging())?;
        for id in set {
            pass.reset(
                id,
                Cause { by: &self.options.actor, is_loop: false, not_before: None, at: pass.now },
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
        Ok(())
    }

    /// Tells whether git is in the middle of a merge, or of picking a commit.
    fn is_merging(&self) -> bool {
        Repository::at(&self.options.root).is_merging()
    }
}
