//! The wish of a person to end a job: what waits is cancelled at once, what runs is ended with all its processes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use tidewheel_core::job::{
    After, AfterPolicy, Brief, CancelError, Cleanup, JobId, JobStatus, Metadata, Record, RunId, cancel,
    loop_back, note_cleanup, stay,
};
use tidewheel_core::time::Timestamp;
use tidewheel_store::jobs::{CancelRequest, JobStore as _};

use super::Scheduler;
use super::error::SchedulerError;
use super::pass::Pass;
use super::ticked::Ticked;
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
            let request = CancelRequest { by: &self.options.actor, at: pass.now, is_of_run: false };
            self.store.ask_to_cancel(id, request)?;
            drop(pass);
            self.end_running(&BTreeSet::from([id.clone()]))?;
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
        pass.release_external(&mut record)?;
        let (outcome, event) = cancel(&mut record, &cleanup, pass.now)?;
        pass.batch.outcomes.push(outcome);
        pass.batch.events.push((id.clone(), event));
        if let Some(node) = pass.node_of(record.run().as_ref(), record.node().as_ref()) {
            loop_back(&mut record, &node, pass.now);
        }
        pass.change(record.clone());
        Ok(Cancelled { record, cleanup, ticked: pass.conclude()? })
    }

    /// Ends everything of a run that is not over. One commit cancels all that waits, so that nothing of the run starts
    /// any more; then all of its processes are ended together.
    ///
    /// # Errors
    /// Something of it could not be ended; the rest was.
    pub fn cancel_run(&self, run: &RunId, cleans_up: Option<bool>) -> Result<Vec<Cancelled>, SchedulerError> {
        let mut ended = CancelledRun::default();
        loop {
            let mut pass = self.pass()?;
            let of_run = pass.jobs.briefs.values().filter(|brief| brief.run.as_ref() == Some(run));
            let open = of_run.filter(|brief| brief.is_open() && !ended.given_up.contains(&brief.id));
            let mut open: Vec<(Timestamp, JobId)> =
                open.map(|brief| (brief.created_at, brief.id.clone())).collect();
            if open.is_empty() {
                drop(pass);
                break;
            }
            open.sort_unstable();
            let mut running = BTreeSet::new();
            for (_, id) in open.into_iter().rev() {
                match self.cancel_with_run(&mut pass, &id) {
                    Ok(Some(record)) => ended.list.push((record, Ticked::default())),
                    Ok(None) => {
                        running.extend((pass.jobs.briefs[&id].status == JobStatus::Running).then_some(id));
                    }
                    Err(error) => ended.fail(id, error),
                }
            }
            let ticked = pass.conclude()?;
            for id in &ticked.unwritten {
                let why = ticked.errors.join("; ");
                let error = SchedulerError::Unwritten { id: id.clone(), ended: "cancelled".to_owned(), why };
                ended.list.retain(|(record, _)| record.id != *id);
                ended.fail(id.clone(), error);
            }
            // A run has one pass for all that waits, so its report is printed once.
            if let Some((_, told)) = ended.list.last_mut() {
                told.errors.extend(ticked.errors);
            }
            self.store.keep_notes(ticked.warnings);
            if let Err(error) = self.end_running(&running) {
                ended.error.get_or_insert(error);
                ended.given_up.extend(running.iter().cloned());
            }
            for id in running {
                let record = self.store_record(&id)?;
                if record.status == JobStatus::Cancelled {
                    ended.list.push((record, Ticked::default()));
                }
            }
        }
        let mut cancelled = Vec::with_capacity(ended.list.len());
        cancelled.extend(ended.list.into_iter().map(|(record, ticked)| Cancelled {
            record,
            cleanup: Cleanup::Skipped,
            ticked,
        }));
        if cleans_up.unwrap_or(self.options.cleans_cancelled) {
            self.clean_after_run(run, &mut cancelled)?;
        }
        if let Some(last) = cancelled.last_mut() {
            last.ticked.warnings.extend(self.store.take_notes());
        }
        match ended.error {
            Some(error) => Err(error),
            None => Ok(cancelled),
        }
    }

    /// Cancels a job that waits, keeps one that is over from going back, and asks one that runs to end. Returns the
    /// record of one that is cancelled now.
    fn cancel_with_run(&self, pass: &mut Pass<'_>, id: &JobId) -> Result<Option<Record>, SchedulerError> {
        let mut record = pass.record(id)?;
        if record.status == JobStatus::Running {
            let request = CancelRequest { by: &self.options.actor, at: pass.now, is_of_run: true };
            self.store.ask_to_cancel(id, request)?;
            return Ok(None);
        }
        if record.status.is_terminal() {
            stay(&mut record);
            pass.change(record);
            return Ok(None);
        }
        pass.release_external(&mut record)?;
        let (outcome, event) = cancel(&mut record, &Cleanup::Skipped, pass.now)?;
        pass.batch.outcomes.push(outcome);
        pass.batch.events.push((id.clone(), event));
        pass.change(record.clone());
        Ok(Some(record))
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
        // The record of the job that made it keeps its path, so that a retry knows that it is gone.
        let cleaned: BTreeMap<String, Cleanup> = cleaned.into_iter().collect();
        for done in cancelled.iter_mut() {
            let mut record = pass.record(&done.record.id)?;
            let path = record.metadata.text(Metadata::WORKTREE_PATH);
            if let Some(cleanup) = path.and_then(|path| cleaned.get(path)) {
                note_cleanup(&mut record, cleanup);
                pass.change(record.clone());
                (done.record, done.cleanup) = (record, cleanup.clone());
            }
        }
        pass.conclude().map(drop)
    }

    /// Removes the worktree of a job that was cancelled before.
    ///
    /// # Errors
    /// There is no such job, it is not cancelled, or that could not be put on record.
    pub fn clean_cancelled(&self, id: &JobId) -> Result<Cancelled, SchedulerError> {
        let mut pass = self.pass_over_all()?;
        let mut record = pass.record(id)?;
        if record.status != JobStatus::Cancelled {
            return Err(CancelError(id.clone()).into());
        }
        let cleanup = self.clean_after(&pass, &record);
        note_cleanup(&mut record, &cleanup);
        pass.change(record.clone());
        Ok(Cancelled { record, cleanup, ticked: pass.conclude()? })
    }

    /// Removes the worktrees that jobs made of a run that was cancelled before. Returns its cancelled jobs, with what
    /// became of the worktree of each.
    ///
    /// # Errors
    /// A record could not be read, or what was done could not be put on record.
    pub fn clean_cancelled_run(&self, run: &RunId) -> Result<Vec<Cancelled>, SchedulerError> {
        let pass = self.pass_over_all()?;
        let is_meant =
            |brief: &&Brief| brief.run.as_ref() == Some(run) && brief.status == JobStatus::Cancelled;
        let mut cancelled = Vec::new();
        for brief in pass.jobs.briefs.values().filter(is_meant) {
            let record = pass.record(&brief.id)?;
            cancelled.push(Cancelled { record, cleanup: Cleanup::Skipped, ticked: Ticked::default() });
        }
        drop(pass);
        self.clean_after_run(run, &mut cancelled)?;
        Ok(cancelled)
    }

    /// Asks running jobs to end, kills those that do not, and waits until the end of each is on record.
    fn end_running(&self, ids: &BTreeSet<JobId>) -> Result<(), SchedulerError> {
        let began = Instant::now();
        let mut left: BTreeMap<&JobId, Option<Signal>> = ids.iter().map(|id| (id, None)).collect();
        // What is wrong with one job keeps none of the others from its end.
        let mut failed = None;
        while let Some((first, _)) = left.first_key_value() {
            // The supervisor that is watched may be any of them: each is looked at again soon.
            let watch = Watch::directory(&self.directory_of(first));
            let waited = began.elapsed();
            let wanted = if waited < GRACE { Signal::Terminate } else { Signal::Kill };
            let mut is_lost = false;
            let mut over = Vec::new();
            for (id, signalled) in &mut left {
                match self.signal_running(id, wanted, signalled) {
                    Ok(Looked::Over) => over.push(*id),
                    Ok(Looked::Lost) => is_lost = true,
                    Ok(Looked::Running) => {}
                    Err(error) => {
                        over.push(*id);
                        failed.get_or_insert(error);
                    }
                }
            }
            for id in over {
                left.remove(id);
            }
            let Some((first, _)) = left.first_key_value() else { break };
            if waited > PATIENCE {
                return Err(SchedulerError::StillRunning((*first).clone()));
            }
            if is_lost {
                // Supervisors are gone. A pass ends what they left, and takes the request to cancel into account.
                self.store.keep_notes(self.tick()?.warnings);
                continue;
            }
            let next = if waited < GRACE { GRACE } else { PATIENCE };
            // A supervisor that dies writes nothing, so that its lock is looked at now and then.
            let soon = Instant::now() + Duration::from_millis(100);
            watch.wait(Some((began + next + Duration::from_millis(1)).min(soon)));
        }
        failed.map_or(Ok(()), Err)
    }

    /// Sends a running job a signal unless it had that already, and returns how the job stands.
    fn signal_running(
        &self,
        id: &JobId,
        wanted: Signal,
        signalled: &mut Option<Signal>,
    ) -> Result<Looked, SchedulerError> {
        let not_ended = |source| SchedulerError::NotEnded { id: id.clone(), source };
        let record = self.store.record(id).map_err(not_ended)?;
        let record = record.ok_or_else(|| SchedulerError::NoJob(id.clone()))?;
        if record.status != JobStatus::Running {
            return Ok(Looked::Over);
        }
        if self.store.take_run_lock(id).map_err(not_ended)?.is_some() {
            return Ok(Looked::Lost);
        }
        if record.pid.is_some() && *signalled != Some(wanted) {
            let sent = leftover::signal(&record, wanted);
            sent.map_err(|source| SchedulerError::Processes { id: id.clone(), source })?;
            *signalled = Some(wanted);
        }
        Ok(Looked::Running)
    }
}

/// How a job stands that is to end.
enum Looked {
    /// Its end is on record.
    Over,
    /// Its supervisor is gone.
    Lost,
    /// Its supervisor sees to it.
    Running,
}

/// What came of cancelling a run so far.
#[derive(Default)]
struct CancelledRun {
    list: Vec<(Record, Ticked)>,
    /// Jobs that could not be ended; the others are all the same.
    given_up: BTreeSet<JobId>,
    error: Option<SchedulerError>,
}

impl CancelledRun {
    fn fail(&mut self, id: JobId, error: SchedulerError) {
        self.given_up.insert(id);
        self.error.get_or_insert(error);
    }
}
