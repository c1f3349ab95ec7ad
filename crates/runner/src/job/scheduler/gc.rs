//! Takes away what is old and needed by nobody.

use std::collections::{BTreeMap, BTreeSet};

use tidewheel_core::job::{
    Attic, Brief, CollectUnit, Collected, JobId, KeptRun, Manifest, RunId, collect, keeps, marks_of,
};
use tidewheel_store::jobs::{JobStore as _, Removal};

use super::Scheduler;
use super::error::{SchedulerError, chain};
use super::ticked::Ticked;
use crate::job::worktree;

/// What a gc has removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GcReport {
    /// The jobs that are gone, in the order in which they were enqueued.
    pub jobs: Vec<JobId>,
    /// The runs that are gone, each with all of its jobs.
    pub runs: Vec<RunId>,
    /// Old jobs that stay because others need them, or because a job of their run stays.
    pub kept: Vec<JobId>,
    /// Files in the directories of removed jobs that Tidewheel did not make, beneath the data directory: they stay.
    pub left: Vec<String>,
    /// What could not be removed, and why.
    pub errors: Vec<String>,
}

impl Scheduler {
    /// Removes jobs that ended so many days ago and that no open job needs, with their runs, markers and payloads. A run
    /// is removed as a whole or not at all. It works on a full disk.
    ///
    /// # Errors
    /// The directory cannot be used.
    pub fn gc(&self, days: u32, removes: Removes) -> Result<GcReport, SchedulerError> {
        let mut pass = self.pass()?;
        let mut report = GcReport::default();
        if removes == Removes::Old {
            // First, so that what a killed process left is not judged as if it were there.
            let finished = pass.turn.finish_removals()?;
            for id in &finished.jobs {
                self.remove_scratch(id, &mut report.errors);
            }
            report.jobs = finished.jobs;
            report.runs = finished.runs;
            report.left = finished.left;
            report.errors.extend(finished.errors.iter().map(|error| chain(error)));
        }
        let all = pass.turn.all()?;
        let manifests: BTreeSet<_> = self.store.runs()?;
        let in_use = self.owners_in_use(&all.briefs);
        let attic = Attic {
            jobs: &all.briefs,
            unreadable: &all.unreadable,
            manifests: &manifests,
            in_use: &in_use,
            days,
            now: pass.now,
        };
        let Collected { units, kept } = collect(&attic);
        report.kept = kept;
        let mut removals: Vec<Removal> = Vec::with_capacity(units.len());
        for unit in units {
            let manifest = match self.manifest_to_remove(&attic, &unit) {
                Ok(manifest) => manifest,
                Err(why) => {
                    report.kept.extend(unit.jobs);
                    report.errors.extend(why);
                    continue;
                }
            };
            if removes == Removes::Nothing {
                report.count(unit.run, unit.jobs);
                continue;
            }
            match self.clean_up(&unit) {
                Ok(()) => removals.push(removal(unit, manifest.as_ref())),
                // Who owns a worktree that is still there has to be known.
                Err(error) => report.refuse(unit.jobs, error),
            }
        }
        if removes == Removes::Nothing {
            return Ok(report);
        }
        let results = pass.turn.remove(&removals)?;
        for (removal, result) in removals.into_iter().zip(results) {
            let Removal { run, jobs, .. } = removal;
            report.left.extend(result.left);
            report.errors.extend(result.errors.iter().map(|error| chain(error)));
            if let Some((job, error)) = result.refusal {
                let named = job.as_ref().map(|job| format!("job {job}"));
                let named = named.or_else(|| Some(format!("run {}", run.as_ref()?)));
                let what = named.map_or_else(|| chain(&error), |name| format!("{name}: {}", chain(&error)));
                report.refuse(jobs, what);
                continue;
            }
            for id in &jobs {
                let limits = all.briefs[id].schedule.limits.as_deref();
                if let Some(key) = limits.and_then(|limits| limits.idempotency_key.clone()) {
                    pass.forget_key(&key, id)?;
                }
                pass.jobs.briefs.remove(id);
                self.remove_scratch(id, &mut report.errors);
            }
            report.count(run, jobs);
        }
        // What is removed is removed, whatever comes of the pass that follows.
        let ticked = pass.conclude().unwrap_or_else(|error| Ticked::failed(&error));
        report.errors.extend(ticked.errors);
        Ok(report)
    }

    /// Returns the jobs that own the worktrees in which open jobs work, or will: what comes before them gives them its
    /// own.
    fn owners_in_use(&self, jobs: &BTreeMap<JobId, Brief>) -> BTreeSet<JobId> {
        let mut owners = BTreeSet::new();
        if !worktree::has_any(&self.options.data) {
            return owners;
        }
        for job in jobs.values().filter(|job| job.is_open()) {
            let before = job.schedule.after.iter().map(|after| &after.job_id);
            for id in before.chain([&job.id]) {
                if let Ok(Some(record)) = self.store.record(id)
                    && let Some(owner) = worktree::owner(&record)
                {
                    owners.extend(JobId::new(owner));
                }
            }
        }
        owners
    }

    /// Removes the worktrees that jobs are on record as the owners of, while the record is there to say so.
    fn clean_up(&self, unit: &CollectUnit) -> Result<(), String> {
        let (root, data) = (&self.options.root, &self.options.data);
        if !worktree::has_any(data) {
            return Ok(());
        }
        for id in &unit.jobs {
            let fail = |error: &dyn std::fmt::Display| format!("job {id}: {error}");
            // One that cannot be read owns nothing that anybody knows of.
            let Ok(Some(record)) = self.store.record(id) else { continue };
            if worktree::owned(&record).next().is_none() {
                continue;
            }
            // A supervisor that is about to go still works there.
            match self.store.take_run_lock(id) {
                Ok(Some(_)) => {}
                Ok(None) => return Err(fail(&"it is still held by its supervisor")),
                Err(error) => return Err(fail(&chain(&error))),
            }
            worktree::clean_all_of(&record, root, data).map_err(|error| fail(&error))?;
        }
        Ok(())
    }

    /// Reads the manifest of a run that may go. An error means that the run stays; it says why where a person has to do
    /// something about it.
    fn manifest_to_remove(
        &self,
        attic: &Attic<'_>,
        unit: &CollectUnit,
    ) -> Result<Option<Manifest>, Option<String>> {
        let Some(run) = &unit.run else { return Ok(None) };
        let jobs = self.options.data.join("jobs");
        // A file without jobs may be none of Tidewheel's; doctor names it.
        let refused = |why: String| {
            let hint = "put the manifest back from a backup, or remove it: its jobs go a day later";
            let message = format!("run {run} stays, since {why}; {hint}");
            (!unit.jobs.is_empty()).then_some(message)
        };
        let manifest = match self.store.manifest(run) {
            Ok(Some(manifest)) => manifest,
            Ok(None) => return Ok(None),
            Err(error) => {
                return Err(refused(format!("its manifest cannot be read: {}", chain(&error))));
            }
        };
        match keeps(attic, unit, &manifest, |id| jobs.join(id.as_str()).symlink_metadata().is_ok()) {
            None => Ok(Some(manifest)),
            Some(KeptRun::Young | KeptRun::Lost(_)) => Err(None),
            Some(KeptRun::Foreign(other)) => Err(refused(format!("its manifest is that of run {other}"))),
        }
    }

    /// Removes what an operation of a job that is gone left when it was killed.
    fn remove_scratch(&self, id: &JobId, errors: &mut Vec<String>) {
        let tmp = self.options.data.join("tmp");
        let path = tmp.join(format!("patches-{id}"));
        if tmp.symlink_metadata().is_ok_and(|found| found.is_symlink()) {
            // What lies behind a link is none of ours.
            return;
        }
        match std::fs::remove_dir_all(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                errors.push(format!("cannot remove {}: {error}", path.display()));
            }
            Ok(()) | Err(_) => {}
        }
    }
}

fn removal(unit: CollectUnit, manifest: Option<&Manifest>) -> Removal {
    let CollectUnit { run, jobs, unmarks: mut unmarked } = unit;
    unmarked.extend(manifest.into_iter().flat_map(marks_of));
    Removal { run, jobs, unmarked }
}

impl GcReport {
    fn count(&mut self, run: Option<RunId>, jobs: Vec<JobId>) {
        self.runs.extend(run);
        self.jobs.extend(jobs);
    }

    fn refuse(&mut self, jobs: Vec<JobId>, error: String) {
        self.kept.extend(jobs);
        self.errors.push(error);
    }
}

/// Whether anything is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removes {
    /// What is old.
    Old,
    /// Nothing: it is only said what would be.
    Nothing,
}
