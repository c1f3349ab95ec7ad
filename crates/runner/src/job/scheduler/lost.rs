//! Jobs whose supervisor is gone: their lock is free, though their records say that they run.

use std::collections::BTreeSet;
use std::fs::File;

use tidewheel_core::job::{
    Artifact, Ended, JobEvent, JobEventKind, JobId, JobStatus, Liveness, Manifest, Metadata, NodeOutcome,
    Record,
};
use tidewheel_store::jobs::JobStore as _;

use super::Scheduler;
use super::error::SchedulerError;
use super::pass::Pass;
use super::ticked::Ticked;
use crate::job::leftover;

impl Pass<'_> {
    /// Finalises every running job whose supervisor is gone. One that left something running is kept for later: its
    /// processes are ended when the turn is over, and what it holds is given to no other job before.
    pub(super) fn find_lost(&mut self) {
        let is_running = |id: &JobId| self.jobs.briefs[id].status == JobStatus::Running;
        let is_meant = |id: &&JobId| is_running(id) && !self.ending.given_up.contains(*id);
        let running: Vec<JobId> = self.jobs.briefs.keys().filter(is_meant).cloned().collect();
        let mut lost = Vec::new();
        for id in running {
            match self.lost(&id) {
                Ok(found) => lost.extend(found),
                Err(error) => self.fail(&id, &error),
            }
        }
        let unknown =
            lost.iter().map(|(_, record)| record).filter(|record| !self.ending.cleared.contains(&record.id));
        // The system may refuse to say; then each is taken for one that left something, and ending it says why.
        let alive: BTreeSet<JobId> = match leftover::alive(unknown.clone(), &self.scheduler.options.data) {
            Ok(alive) => alive.into_iter().cloned().collect(),
            Err(_) => unknown.map(|record| record.id.clone()).collect(),
        };
        for (lock, record) in lost {
            if alive.contains(&record.id) {
                self.ending.lingering.push((lock, record));
                continue;
            }
            let id = record.id.clone();
            if let Err(error) = self.finalise_lost(record) {
                self.fail(&id, &error);
            }
        }
    }

    /// Returns the lock and the record of a job whose supervisor is gone.
    fn lost(&self, id: &JobId) -> Result<Option<(File, Record)>, SchedulerError> {
        let Some(lock) = self.scheduler.store.take_run_lock(id)? else { return Ok(None) };
        Ok(Some((lock, self.record(id)?)))
    }

    fn finalise_lost(&mut self, record: Record) -> Result<(), SchedulerError> {
        let scheduler = self.scheduler;
        let store = &scheduler.store;
        let id = &record.id.clone();
        let attempt = attempt_of(&record);
        // The events are written before the record, and may be all that the pass wrote that was killed. A damaged line,
        // or something else in the place of the file, does not keep the job running for ever.
        let mut told = since_start(self.as_far_as_read(id, store.history(id))?.events, attempt);
        // A manifest that cannot be read allows no retry; the end counts as it is.
        let manifest = self.scheduler.manifest_of(&record).ok().flatten();
        if let Some(ended) = Ended::of_log(&told)
            && self.lacks_payload(&record, manifest.as_ref(), ended.outcome)?
        {
            // Only the supervisor had the payload, so that the attempt has come to nothing.
            told.retain(|event| Ended::of_log(std::slice::from_ref(event)).is_none());
        }
        // What was decided is repeated as it is in the log. The end that a supervisor wrote down while it waited for
        // its turn comes before any decision, and counts where there is none.
        let ended = match (Ended::of_log(&told), self.as_far_as_read(id, store.ended(id))?) {
            (Some(ended), _) => ended,
            (None, Some(outcome)) if outcome.attempt == attempt => Ended::of_outcome(&outcome),
            (None, _) if store.is_asked_to_cancel(id)? => Ended::cancelled(self.now),
            (None, _) if record.pid.is_some() => Ended::lost(Liveness::NotRunning, self.now),
            (None, _) => Ended::lost(Liveness::MissingPid, self.now),
        };
        self.finish(record, manifest.as_ref(), &ended)?;
        let is_told = |event: &JobEvent| told.iter().any(|told| same_kind(told, event));
        self.batch.events.retain(|(of, event)| of != id || !is_told(event));
        Ok(())
    }
}

impl Pass<'_> {
    /// Tells whether a job that ended like this would have left a text in an artifact, and there is none.
    fn lacks_payload(
        &mut self,
        record: &Record,
        manifest: Option<&Manifest>,
        outcome: NodeOutcome,
    ) -> Result<bool, SchedulerError> {
        let operation = record.metadata.text(Metadata::EXECUTOR_OPERATION);
        if !operation.is_some_and(|operation| WRITERS.contains(&operation)) {
            return Ok(false);
        }
        let node = manifest.zip(record.node()).and_then(|(manifest, node)| manifest.nodes.get(&node));
        for made in node.and_then(|node| node.produces.get(&outcome)).into_iter().flatten() {
            if let Artifact::Custom { type_id, key } = made {
                let of = Some(std::slice::from_ref(&record.id));
                let payload = self.scheduler.store.payload(type_id, key, of);
                if self.as_far_as_read(&record.id, payload)?.is_none() {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

/// The operations that leave texts in artifacts.
const WRITERS: [&str; 2] = ["prompt.resolve", "agent.invoke"];

/// Returns what happened since the last start of an attempt. A rewind without a start keeps the number of the attempt,
/// so that what was before it would be taken for its end.
pub(super) fn since_start(mut events: Vec<JobEvent>, attempt: u32) -> Vec<JobEvent> {
    events.retain(|event| event.attempt == attempt);
    let is_start = |event: &JobEvent| matches!(event.event, JobEventKind::Dispatched { .. });
    let start = events.iter().rposition(is_start).unwrap_or(0);
    events.split_off(start)
}

/// Tells whether two events tell of the same: an attempt has one end.
pub(super) fn same_kind(one: &JobEvent, other: &JobEvent) -> bool {
    one.attempt == other.attempt && std::mem::discriminant(&one.event) == std::mem::discriminant(&other.event)
}

/// Returns which start of the job this is.
pub(super) fn attempt_of(record: &Record) -> u32 {
    record.metadata.number(Metadata::NODE_ATTEMPT).unwrap_or(0)
}

/// Lost jobs of which something runs, and what is known of those that earlier passes of the same command met.
#[derive(Debug, Default)]
pub(super) struct Ending {
    /// Jobs that left something running, with their run locks.
    lingering: Vec<(File, Record)>,
    /// Jobs of which nothing runs any more.
    cleared: BTreeSet<JobId>,
    /// Jobs whose processes could not be ended.
    given_up: BTreeSet<JobId>,
}

impl Scheduler {
    /// Ends what lost jobs left running, all of them together and without the turn, and makes the pass that finalises
    /// them.
    pub(super) fn end_lingering(&self, mut ending: Ending, ticked: &mut Ticked) {
        let lingering = std::mem::take(&mut ending.lingering);
        if lingering.is_empty() {
            return;
        }
        let records = || lingering.iter().map(|(_, record)| record);
        let data = &self.options.data;
        let left: BTreeSet<JobId> = match leftover::end(records(), data) {
            Ok(()) => BTreeSet::new(),
            Err(error) => {
                let left = leftover::alive(records(), data);
                let left: BTreeSet<JobId> = match left {
                    Ok(left) => left.into_iter().cloned().collect(),
                    Err(_) => records().map(|record| record.id.clone()).collect(),
                };
                let what = |id: &JobId| format!("job {id}: cannot end the processes of job {id}: {error}");
                ticked.errors.extend(left.iter().map(what));
                left
            }
        };
        for (_, record) in &lingering {
            let list = if left.contains(&record.id) { &mut ending.given_up } else { &mut ending.cleared };
            list.insert(record.id.clone());
        }
        // The next pass takes the locks again; another process that is quicker finalises the jobs itself.
        drop(lingering);
        let pass = self.pass().and_then(|mut pass| {
            pass.ending = ending;
            pass.conclude()
        });
        ticked.add(pass.unwrap_or_else(|error| Ticked::failed(&error)));
    }
}
