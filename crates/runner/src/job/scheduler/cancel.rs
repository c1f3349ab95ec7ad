//! The wish of a person to end a job: what waits is cancelled at once, what runs is ended with all its processes.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tidewheel_core::job::{
    After, AfterPolicy, Brief, CancelError, Cleanup, JobId, JobStatus, Metadata, Record, RunId, cancel,
    loop_back, note_cleanup,
};
use tidewheel_store::jobs::JobStore as _;

use super::Scheduler;
use super::error::SchedulerError;
use super::pass::{Pass, Ticked};
use crate::job::leftover::{self, Signal};
use crate::job::wait::Watch;
use crate::job::worktree;

/// How long a job may take to end when it is asked to, before it is killed.
const GRACE: Duration = Duration::from_secs(2);
/// How long to wait for a supervisor to put an end on record, once nothing of the job can be alive.
const PATIENCE: Duration = Duration::from_secs(20);

/// What came of it.
#[derive(Clone, Debug)]
pub struct Cancelled {
    /// The record, as it is now.
    pub record: Record,
    /// What became of its worktree.
    pub cleanup: Cleanup,
    /// What the pass did.
    pub ticked: Ticked,
}

impl Scheduler {
    /// Ends a job. When this returns, nothing of it runs any more and those after it are settled.
    ///
    /// # Errors
    /// There is no such job, it is not active, or it could not be ended.
    pub fn cancel(&self, id: &JobId, cleans_up: Option<bool>) -> Result<Cancelled, SchedulerError> {
        let cleans_up = cleans_up.unwrap_or(self.options.cleans_cancelled);
        let pass_over = || if cleans_up { self.pass_over_all() } else { self.pass() };
        let clean = |pass: &Pass<'_>, record: &Record| match cleans_up {
            true => self.clean_after(pass, record),
            false => Cleanup::Skipped,
        };
        let mut pass = pass_over()?;
        let mut record = pass.record(id)?;
        // It may come to its own end before it hears of it, and run once more before anybody looks.
        while record.status == JobStatus::Running {
            self.store.ask_to_cancel(id, &self.options.actor, pass.now)?;
            drop(pass);
            self.end_running(id)?;
            pass = pass_over()?;
            record = pass.record(id)?;
            if record.status == JobStatus::Cancelled {
                let cleanup = clean(&pass, &record);
                note_cleanup(&mut record, &cleanup);
                pass.change(record.clone());
                return Ok(Cancelled { record, cleanup, ticked: pass.conclude()? });
            }
            if record.status.is_active() && !self.store.is_asked_to_cancel(id)? {
                // It was cancelled, and its own loop has rewound it since, which took the wish away.
                return Ok(Cancelled { record, cleanup: Cleanup::Skipped, ticked: pass.conclude()? });
            }
        }
        if record.status.is_terminal() {
            return Err(CancelError(id.clone()).into());
        }
        let cleanup = clean(&pass, &record);
        let (outcome, event) = cancel(&mut record, &cleanup, pass.now)?;
        pass.batch.outcomes.push(outcome);
        pass.batch.events.push((id.clone(), event));
        if let Some(node) = pass.node_of(record.run().as_ref(), record.node().as_ref()) {
            loop_back(&mut record, &node, pass.now);
        }
        pass.change(record.clone());
        Ok(Cancelled { record, cleanup, ticked: pass.conclude()? })
    }

    /// Ends everything of a run that is not over, also what its handlers, retries and loops bring up meanwhile.
    ///
    /// # Errors
    /// Something of it could not be ended.
    pub fn cancel_run(&self, run: &RunId, cleans_up: Option<bool>) -> Result<Vec<Cancelled>, SchedulerError> {
        let mut cancelled = Vec::new();
        loop {
            let pass = self.pass()?;
            let active = pass.jobs.briefs.values().filter(|brief| brief.run.as_ref() == Some(run));
            let mut active: Vec<&Brief> = active.filter(|brief| brief.status.is_active()).collect();
            // What waits goes first, so that nothing of it starts when what runs has ended.
            active.sort_unstable_by_key(|brief| {
                (brief.status == JobStatus::Running, Reverse((brief.created_at, &brief.id)))
            });
            let ids: Vec<JobId> = active.into_iter().map(|brief| brief.id.clone()).collect();
            drop(pass);
            if ids.is_empty() {
                if cleans_up.unwrap_or(self.options.cleans_cancelled) {
                    self.clean_after_run(run, &mut cancelled)?;
                }
                return Ok(cancelled);
            }
            for id in ids {
                match self.cancel(&id, cleans_up) {
                    Ok(done) => cancelled.push(done),
                    // It came to its own end, or was not needed any more.
                    Err(SchedulerError::Cancel(_)) => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }

    /// Removes the worktree that a job ran in which is over now: its own, or that of its run if nobody else of it needs
    /// that.
    fn clean_after(&self, pass: &Pass<'_>, record: &Record) -> Cleanup {
        let options = &self.options;
        let Some((path, owner)) = worktree::shared(record) else {
            return worktree::clean(record, &options.root, &options.data);
        };
        let run = record.run();
        let of_run = |brief: &&Brief| run.is_some() && brief.run == run;
        let is_of_run =
            |id: &str| pass.jobs.briefs.values().filter(of_run).any(|brief| brief.id.as_str() == id);
        // Those that can only follow its success never will.
        let mut lost = BTreeSet::from([&record.id]);
        let mut news = true;
        while std::mem::take(&mut news) {
            for brief in pass.jobs.briefs.values().filter(of_run) {
                let needs =
                    |after: &After| after.policy == AfterPolicy::Success && lost.contains(&after.job_id);
                news |= brief.schedule.after.iter().any(needs) && lost.insert(&brief.id);
            }
        }
        let is_there = |id: &JobId| {
            let found = pass.record(id);
            found.is_ok_and(|other| other.metadata.text(Metadata::WORKTREE_PATH) == Some(path))
        };
        let mut others = pass.jobs.briefs.values().filter(of_run).filter(|brief| {
            brief.status.is_active() && (brief.status == JobStatus::Running || !lost.contains(&brief.id))
        });
        let is_used = others.any(|brief| {
            // What cleans up is told of it however those before it ended.
            let is_told =
                |after: &After| after.policy == AfterPolicy::Success || brief.status == JobStatus::Running;
            let comes = |after: &After| is_told(after) && is_there(&after.job_id);
            brief.id != record.id && (is_there(&brief.id) || brief.schedule.after.iter().any(comes))
        });
        match is_of_run(owner) && !is_used {
            true => worktree::clean_at(path, &options.root, &options.data),
            false => Cleanup::Skipped,
        }
    }

    /// Removes the worktrees that jobs of a run made, once nothing of the run is left that could work in them.
    fn clean_after_run(&self, run: &RunId, cancelled: &mut [Cancelled]) -> Result<(), SchedulerError> {
        let mut pass = self.pass_over_all()?;
        let of_run: Vec<&Brief> =
            pass.jobs.briefs.values().filter(|brief| brief.run.as_ref() == Some(run)).collect();
        if cancelled.is_empty() || of_run.iter().any(|brief| brief.status.is_active()) {
            return Ok(());
        }
        let options = &self.options;
        let mut cleaned: Vec<(String, Cleanup)> = Vec::new();
        for id in of_run.into_iter().map(|brief| &brief.id) {
            let Ok(record) = pass.record(id) else { continue };
            let path = record.metadata.text(Metadata::WORKTREE_PATH).filter(|_| worktree::owns(&record));
            if let Some(path) = path.filter(|path| options.root.join(path).exists()) {
                cleaned.push((path.to_owned(), worktree::clean_at(path, &options.root, &options.data)));
            }
        }
        // What its maker says of it stays, so that whoever is retried knows that it is gone.
        for (path, cleanup) in cleaned {
            for done in cancelled.iter_mut() {
                let mut record = pass.record(&done.record.id)?;
                if record.metadata.text(Metadata::WORKTREE_PATH) == Some(path.as_str()) {
                    note_cleanup(&mut record, &cleanup);
                    pass.change(record.clone());
                    (done.record, done.cleanup) = (record, cleanup.clone());
                }
            }
        }
        pass.conclude().map(drop)
    }

    /// Asks a running job to end, kills it if it does not, and waits until its end is on record.
    fn end_running(&self, id: &JobId) -> Result<(), SchedulerError> {
        let watch = Watch::directory(&self.options.data.join("jobs").join(id.as_str()));
        let began = Instant::now();
        let mut signalled = None;
        loop {
            let record = self.store.record(id)?.ok_or_else(|| SchedulerError::NoJob(id.clone()))?;
            if record.status != JobStatus::Running {
                return Ok(());
            }
            if self.store.take_run_lock(id)?.is_some() {
                // Its supervisor is gone. A pass ends what it left, and takes the wish to cancel into account.
                self.tick()?;
                continue;
            }
            let waited = began.elapsed();
            if waited > PATIENCE {
                return Err(SchedulerError::StillRunning(id.clone()));
            }
            let wanted = if waited < GRACE { Signal::Terminate } else { Signal::Kill };
            if record.pid.is_some() && signalled != Some(wanted) {
                leftover::signal(&record, wanted)
                    .map_err(|source| SchedulerError::Processes { id: id.clone(), source })?;
                signalled = Some(wanted);
            }
            let next = if waited < GRACE { GRACE } else { PATIENCE };
            // A supervisor that dies writes nothing, so that its lock is looked at now and then.
            let soon = Instant::now() + Duration::from_millis(100);
            watch.wait(Some((began + next + Duration::from_millis(1)).min(soon)));
        }
    }
}
