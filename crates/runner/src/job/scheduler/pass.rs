//! One pass: what changed is taken over, the gates are judged until nothing changes, all of it is written at once,
//! and what may start is started.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;

use tidewheel_core::job::{
    Answer, Brief, Facts, JobEvent, JobEventKind, JobId, JobStatus, Manifest, ManifestNode, Metadata, NodeId,
    Question, Record, RunId, Settled, Shared, World, loop_back, settle, start, withdraw,
};
use tidewheel_core::time::{Span, Timestamp};
use tidewheel_store::jobs::{Batch, Due, JobStore as _, JobStoreError, Jobs, Turn};

use super::Scheduler;
use super::error::{SchedulerError, chain};
use super::lost::Ending;
use super::ticked::Ticked;
use crate::job::launch::launch;
use crate::probe::Prober;

/// A turn in which records were changed and nothing is written yet.
pub(super) struct Pass<'s> {
    pub(super) scheduler: &'s Scheduler,
    pub(super) turn: Box<dyn Turn + 's>,
    pub(super) jobs: Jobs,
    pub(super) batch: Batch,
    pub(super) shared: Shared,
    pub(super) now: Timestamp,
    records: BTreeMap<JobId, Record>,
    known_rows: BTreeSet<String>,
    looks_again_at: Option<Timestamp>,
    manifests: BTreeMap<RunId, Option<Manifest>>,
    /// Jobs of which something could not be written: they are left as they are in this pass.
    pub(super) broken: BTreeSet<JobId>,
    /// Lost jobs whose processes are ended after the turn.
    pub(super) ending: Ending,
    ticked: Ticked,
}

/// Starts that are taken back, with the locks that they would have had.
#[derive(Default)]
struct Withdrawn {
    batch: Batch,
    locks: Vec<File>,
}

/// How long a supervisor whose job is over may take to end.
const SOON: Span = Span::from_millis(20);

/// A job that is to be started: its lock, and its record as it was.
struct Starting {
    id: JobId,
    lock: File,
    before: Record,
}

impl Scheduler {
    /// Takes the turn and reads what is active.
    pub(super) fn pass(&self) -> Result<Pass<'_>, SchedulerError> {
        self.launched.reap();
        let turn = self.store.turn()?;
        self.pass_in(turn)
    }

    /// Reads what is active, in a turn that is there.
    pub(super) fn pass_in<'s>(&'s self, mut turn: Box<dyn Turn + 's>) -> Result<Pass<'s>, SchedulerError> {
        let jobs = turn.active()?;
        Ok(Pass {
            scheduler: self,
            turn,
            jobs,
            batch: Batch::default(),
            shared: Shared::default(),
            now: self.now(),
            records: BTreeMap::new(),
            known_rows: BTreeSet::new(),
            looks_again_at: None,
            manifests: BTreeMap::new(),
            broken: BTreeSet::new(),
            ending: Ending::default(),
            ticked: Ticked::default(),
        })
    }
}

impl Pass<'_> {
    /// Takes over a record that was changed, so that the gates of the others see it.
    pub(super) fn change(&mut self, record: Record) {
        self.jobs.briefs.insert(record.id.clone(), Brief::from(&record));
        self.records.insert(record.id.clone(), record);
    }

    /// Returns a record, with what this pass changed.
    pub(super) fn record(&self, id: &JobId) -> Result<Record, SchedulerError> {
        match self.records.get(id) {
            Some(record) => Ok(record.clone()),
            None => self.scheduler.store_record(id),
        }
    }

    /// Reads the states that jobs share, each once.
    pub(super) fn load_shared(&mut self, names: BTreeSet<String>) -> Result<(), SchedulerError> {
        for name in names {
            if !self.known_rows.contains(&name) {
                if let Some(row) = self.turn.shared(&name)? {
                    self.shared.put(&name, &row);
                }
                self.known_rows.insert(name);
            }
        }
        Ok(())
    }

    /// Judges, writes and starts.
    pub(super) fn conclude(mut self) -> Result<Ticked, SchedulerError> {
        self.find_lost();
        self.end_overdue();
        let settled = loop {
            self.load_shared(Shared::names_of_jobs(self.jobs.briefs.values()))?;
            let shared = self.shared.clone();
            let settled = self.settle()?;
            if !self.write_causes(&settled, shared)? {
                continue;
            }
            self.take_over(&settled);
            let starting = self.begin(&settled);
            let broken = self.broken.len();
            self.write()?;
            if self.broken.len() == broken {
                self.launch(starting);
                break settled;
            }
            // What starts was judged by something that is not on record after all. It is taken back, and judged again
            // with what is.
            let mut withdrawn = Withdrawn::default();
            for start in starting {
                if !self.broken.contains(&start.id) {
                    self.withdraw(
                        start,
                        "something that was written with it is not on record",
                        &mut withdrawn,
                    );
                }
            }
            self.take_back(withdrawn);
        };
        let at = settled.wake_at.into_iter().chain(self.looks_again_at).min();
        if let Err(error) = self.turn.set_due(Due { at, watches: settled.watches, runs: settled.runs }) {
            // All the rest is done, and has to be told.
            self.ticked.errors.push(chain(&error));
        }
        let Self { scheduler, turn, mut ticked, broken, ending, .. } = self;
        ticked.unwritten.extend(broken);
        drop(turn);
        ticked.warnings.extend(scheduler.store.take_notes());
        scheduler.end_lingering(ending, &mut ticked);
        if at.is_some() || settled.watches {
            scheduler.see_that_somebody_wakes();
        }
        Ok(ticked)
    }

    /// Writes what this pass has changed before what the gates ended by it: no job is put on record as blocked by an end
    /// that is not on record itself. Returns false where something could not be written, so that all is judged again.
    fn write_causes(&mut self, settled: &Settled, before: Shared) -> Result<bool, SchedulerError> {
        let is_over = |id: &JobId| self.jobs.briefs[id].status.is_terminal();
        if self.records.is_empty() || !settled.changed.iter().any(is_over) {
            return Ok(true);
        }
        // The permits of what may start are written with the starts.
        let after = std::mem::replace(&mut self.shared, before);
        let broken = self.broken.len();
        self.write()?;
        if self.broken.len() == broken {
            self.shared = after;
            return Ok(true);
        }
        for id in settled.changed.iter().chain(&settled.starts) {
            if !self.broken.contains(id)
                && let Ok(record) = self.scheduler.store_record(id)
            {
                self.jobs.briefs.insert(id.clone(), Brief::from(&record));
            }
        }
        self.shared = Shared::default();
        self.known_rows.clear();
        Ok(false)
    }

    /// Judges and writes a new run as it will stand, then makes the pass in which it begins.
    pub(super) fn conclude_enqueue(mut self) -> Result<Ticked, SchedulerError> {
        self.load_shared(Shared::names_of_jobs(self.jobs.briefs.values()))?;
        let settled = self.settle()?;
        self.take_over(&settled);
        // Nothing starts yet, so that nothing of what is shared is used up: the pass that follows does both.
        self.shared = Shared::default();
        self.write()?;
        let Self { scheduler, turn, ticked: written, .. } = self;
        // It is enqueued: whoever is told only of an error would run it again.
        let began = scheduler.pass_in(turn).and_then(Pass::conclude);
        let mut ticked = began.unwrap_or_else(|error| Ticked::failed(&error));
        let Ticked { updated, errors, warnings, .. } = written;
        ticked.add(Ticked { updated, errors, warnings, ..Ticked::default() });
        Ok(ticked)
    }

    /// Judges the gates, looking at the world for what they ask, and follows loops back until none is left. What the jobs
    /// share was read before.
    fn settle(&mut self) -> Result<Settled, SchedulerError> {
        let scheduler = self.scheduler;
        let prober = Prober::new(&scheduler.options.root, &scheduler.options.data, &scheduler.store);
        let mut facts = Facts::default();
        let mut all = Settled::default();
        let mut went_back = BTreeSet::new();
        let capacity = self.capacity();
        loop {
            let mut world = World {
                jobs: &mut self.jobs.briefs,
                unreadable: &self.jobs.unreadable,
                facts: &facts,
                shared: &mut self.shared,
                capacity,
                now: self.now,
            };
            let before = world.shared.clone();
            let mut settled = settle(&mut world);
            if !settled.questions.is_empty() {
                for question in settled.questions {
                    let answer = match &question {
                        Question::KeyOwner(key) => self.key_owner(key)?,
                        Question::Marker { type_id, key, of } => {
                            if !self.batch.unmarked.is_empty() {
                                // What this pass takes away must not be found any more.
                                self.write()?;
                            }
                            if self.is_marked(type_id, key, of.as_deref()) {
                                Answer::Yes
                            } else {
                                prober.answer(&question)
                            }
                        }
                        Question::Artifact(_)
                        | Question::Head(_)
                        | Question::CleanTree { .. }
                        | Question::BranchExists(_)
                        | Question::CurrentBranch => prober.answer(&question),
                    };
                    facts.add(question, answer);
                }
                continue;
            }
            settled.loops.extend(self.loops_of_ended(&settled.changed));
            all.changed.append(&mut settled.changed);
            all.outcomes.append(&mut settled.outcomes);
            all.adopted.append(&mut settled.adopted);
            let mut is_rewound = false;
            for (id, refusal, detail) in std::mem::take(&mut settled.refused) {
                // One that could not be written is left as it is in this pass.
                if !self.broken.contains(&id) {
                    self.refuse(&id, refusal, &detail);
                    is_rewound = true;
                }
            }
            for id in &settled.loops {
                if !went_back.insert(id.clone()) {
                    // Nothing ran in between. However many rounds are left, others have their turn now.
                    self.look_again_at(Some(self.now.saturating_add(Span::from_secs(1))));
                    continue;
                }
                match self.go_back(id) {
                    Ok(went_back) => is_rewound |= went_back,
                    Err(error) => self.fail(id, &error),
                }
            }
            if !is_rewound {
                return Ok(Settled {
                    changed: all.changed,
                    outcomes: all.outcomes,
                    adopted: all.adopted,
                    ..settled
                });
            }
            // What was to start is judged once more, and must not be counted twice; what was rewound may have taken its
            // markers along.
            self.shared = before;
            facts = Facts::default();
        }
    }

    /// Returns how many jobs may run at once: one more for each whose process waits for others and lends its slot.
    fn capacity(&self) -> u32 {
        let capacity = self.scheduler.options.capacity;
        let running = || self.jobs.briefs.values().filter(|brief| brief.status == JobStatus::Running);
        if u32::try_from(running().count()).is_ok_and(|count| count < capacity) {
            return capacity;
        }
        let lent = running().filter(|brief| self.scheduler.store.is_slot_lent(&brief.id)).count();
        capacity.saturating_add(u32::try_from(lent).unwrap_or(u32::MAX))
    }

    /// Tells whether this pass is about to mark a custom artifact.
    fn is_marked(&self, type_id: &str, key: &str, of: Option<&[JobId]>) -> bool {
        self.batch.markers.iter().any(|marker| {
            marker.type_id == type_id && marker.key == key && of.is_none_or(|of| of.contains(&marker.job_id))
        })
    }

    /// Returns the jobs that the gates ended in this pass and whose loops go back.
    fn loops_of_ended(&mut self, changed: &BTreeSet<JobId>) -> Vec<JobId> {
        let mut loops = Vec::new();
        for id in changed {
            let brief = self.jobs.briefs[id].clone();
            // After its deadline a job would only be late again, and one that ends as cancelled here has come from its
            // loop.
            let is_final = brief.is_late(self.now) || brief.status == JobStatus::Cancelled;
            if brief.status.is_active() || brief.goes_back.is_some() || is_final {
                continue;
            }
            let Some(node) = self.node_of(brief.run.as_ref(), brief.node.as_ref()) else { continue };
            if node.loops.is_empty() {
                continue;
            }
            match self.record(id) {
                Ok(mut record) => {
                    record.take_over(&brief);
                    if loop_back(&mut record, &node, self.now).is_some() {
                        self.change(record);
                        loops.push(id.clone());
                    }
                }
                Err(error) => self.fail(id, &error),
            }
        }
        loops
    }

    /// Returns what the manifest of a run says of a node. Each manifest is read once; one that cannot be read says nothing.
    pub(super) fn node_of(&mut self, run: Option<&RunId>, node: Option<&NodeId>) -> Option<ManifestNode> {
        let (run, node) = (run?, node?);
        // The one of a run that is being enqueued is not written yet.
        if let Some(manifest) = self.batch.manifest.as_ref().filter(|manifest| manifest.run_id == *run) {
            return manifest.nodes.get(node).cloned();
        }
        if !self.manifests.contains_key(run) {
            let manifest = self.scheduler.store.manifest(run).ok().flatten();
            self.manifests.insert(run.clone(), manifest);
        }
        self.manifests[run].as_ref()?.nodes.get(node).cloned()
    }

    /// Copies what the gates changed into the records.
    fn take_over(&mut self, settled: &Settled) {
        for id in settled.changed.difference(&self.broken.clone()) {
            let brief = self.jobs.briefs[id].clone();
            match self.record(id) {
                Ok(mut record) => {
                    record.take_over(&brief);
                    self.records.insert(id.clone(), record);
                }
                Err(error) => self.fail(id, &error),
            }
        }
        // What a loop has rewound since is not over any more.
        let is_over = |id: &JobId| self.jobs.briefs[id].status.is_terminal();
        let outcomes = settled.outcomes.iter().filter(|outcome| is_over(&outcome.job_id));
        self.batch.outcomes.extend(outcomes.cloned());
        let adopted: Vec<_> = settled.adopted.iter().filter(|(id, _)| is_over(id)).collect();
        for (id, from) in adopted {
            if let Err(error) = self.adopt(id, from) {
                self.fail(id, &error);
            }
        }
    }

    /// Takes the run lock of everything that starts, and says so in its record.
    fn begin(&mut self, settled: &Settled) -> Vec<Starting> {
        let mut starting = Vec::new();
        for id in &settled.starts {
            if self.broken.contains(id) {
                continue;
            }
            match self.begin_one(id, settled) {
                Ok(started) => starting.extend(started),
                Err(error) => self.fail(id, &error),
            }
        }
        starting
    }

    fn begin_one(&mut self, id: &JobId, settled: &Settled) -> Result<Option<Starting>, SchedulerError> {
        let before = self.record(id)?;
        if before.schedule.limits.as_deref().is_some_and(|limits| limits.external) {
            return self.begin_external(before, settled.permits.get(id)).map(|()| None);
        }
        let Some(lock) = self.scheduler.take_lock_of(id)? else {
            // The supervisor of its last attempt is about to go, and says so to nobody.
            self.look_again_at(Some(self.now.saturating_add(SOON)));
            return Ok(None);
        };
        let mut record = before.clone();
        start(&mut record, settled.permits.get(id), self.now);
        let (stdout_offset, stderr_offset) = self.scheduler.log_sizes(id);
        let event = JobEventKind::Dispatched {
            policy_attempt: record.metadata.number(Metadata::POLICY_ATTEMPT).unwrap_or(0),
            stdout_offset,
            stderr_offset,
        };
        self.tell(&record, event);
        self.change(record);
        Ok(Some(Starting { id: id.clone(), lock, before }))
    }

    /// Has the next pass made at an instant, or earlier.
    pub(super) fn look_again_at(&mut self, at: Option<Timestamp>) {
        self.looks_again_at = self.looks_again_at.into_iter().chain(at).min();
    }

    /// Adds what happened to a job.
    pub(super) fn tell(&mut self, record: &Record, event: JobEventKind) {
        let attempt = record.metadata.number(Metadata::NODE_ATTEMPT).unwrap_or(0);
        self.batch.events.push((record.id.clone(), JobEvent { at: self.now, attempt, event }));
    }

    /// Writes all of it. What cannot be written is as it was, also for the gates of the others.
    pub(super) fn write(&mut self) -> Result<(), JobStoreError> {
        let mut batch = std::mem::take(&mut self.batch);
        batch.records.extend(std::mem::take(&mut self.records).into_values());
        batch.shared.extend(self.shared.take_changed());
        if batch.is_empty() {
            return Ok(());
        }
        self.hide(&mut batch);
        let updated = batch.records.iter().filter(|record| record.status != JobStatus::Running);
        let updated: Vec<JobId> = updated.map(|record| record.id.clone()).collect();
        let failed = self.turn.commit(batch)?;
        let is_failed = |id: &JobId| failed.iter().any(|(failed, _)| failed == id);
        self.ticked.updated.extend(updated.into_iter().filter(|id| !is_failed(id)));
        self.ticked.updated.sort_unstable();
        self.ticked.updated.dedup();
        for (id, error) in failed {
            if let Ok(record) = self.scheduler.store_record(&id) {
                let mut brief = Brief::from(&record);
                // It is left as it is in this pass, and is in nobody's way.
                brief.schedule.not_before = Some(self.now.saturating_add(Span::from_secs(3_600)));
                self.jobs.briefs.insert(id.clone(), brief);
            }
            self.ticked.lacks_room |= error.lacks_room();
            self.fail(&id, &error.into());
            self.broken.insert(id);
        }
        Ok(())
    }

    /// Takes out of what is about to be kept what nobody is to read.
    fn hide(&self, batch: &mut Batch) {
        let secrets = &self.scheduler.options.secrets;
        if secrets.is_empty() {
            return;
        }
        batch.records.iter_mut().for_each(|record| secrets.hide_in_record(record));
        batch.outcomes.iter_mut().for_each(|outcome| secrets.hide_in_outcome(outcome));
        batch.events.iter_mut().for_each(|(_, event)| secrets.hide_in_event(event));
        batch.payloads.iter_mut().for_each(|payload| secrets.hide_in_value(&mut payload.value));
    }

    /// Starts the supervisors. An intent whose spawn failed is withdrawn.
    fn launch(&mut self, starting: Vec<Starting>) {
        let mut withdrawn = Withdrawn::default();
        for start in starting {
            let Starting { id, lock, before } = start;
            let options = &self.scheduler.options;
            match launch(&options.binary, &id, &options.root, lock, &options.data, &self.scheduler.launched) {
                Ok(_) => self.ticked.started.push(id),
                Err(error) => {
                    let binary = options.binary.display();
                    let what = format!("job {id} was not started: cannot run {binary}: {error}");
                    self.ticked.errors.push(what);
                    self.withdraw_record(&id, &before, &error.to_string(), &mut withdrawn);
                }
            }
        }
        self.take_back(withdrawn);
    }

    /// Takes a start back, and its lock with it.
    fn withdraw(&mut self, start: Starting, reason: &str, withdrawn: &mut Withdrawn) {
        self.withdraw_record(&start.id, &start.before, reason, withdrawn);
        withdrawn.locks.push(start.lock);
    }

    fn withdraw_record(&mut self, id: &JobId, before: &Record, reason: &str, withdrawn: &mut Withdrawn) {
        match self.record(id) {
            Ok(mut record) => {
                let event = withdraw(&mut record, before, &mut self.shared, reason, self.now);
                withdrawn.batch.events.push((id.clone(), event));
                self.jobs.briefs.insert(id.clone(), Brief::from(&record));
                withdrawn.batch.records.push(record);
            }
            Err(error) => self.fail(id, &error),
        }
    }

    /// Writes that starts were taken back. Their locks are free only then.
    fn take_back(&mut self, mut withdrawn: Withdrawn) {
        if withdrawn.batch.is_empty() {
            return;
        }
        withdrawn.batch.shared = self.shared.take_changed();
        self.hide(&mut withdrawn.batch);
        match self.turn.commit(std::mem::take(&mut withdrawn.batch)) {
            Ok(failed) => failed.into_iter().for_each(|(id, error)| self.fail(&id, &error.into())),
            Err(error) => self.ticked.errors.push(chain(&error)),
        }
    }

    /// Returns what could be read of a job that ends, and nothing in place of what cannot: its processes may have put
    /// anything there, and that must not keep the end of the job from being put on record. A lack of room may pass.
    pub(super) fn as_far_as_read<T: Default>(
        &mut self,
        id: &JobId,
        read: Result<T, JobStoreError>,
    ) -> Result<T, SchedulerError> {
        match read {
            Err(error) if !error.lacks_room() => {
                self.ticked.warnings.push(format!("job {id}: {}, and it is passed over", chain(&error)));
                Ok(T::default())
            }
            read => Ok(read?),
        }
    }

    /// Notes that something went wrong with one job.
    pub(super) fn fail(&mut self, id: &JobId, error: &SchedulerError) {
        self.ticked.errors.push(format!("job {id}: {}", chain(error)));
    }
}
