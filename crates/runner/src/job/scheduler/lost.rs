//! Jobs whose supervisor is gone: their lock is free, though their records say that they run.

use tidewheel_core::job::{
    Artifact, Ended, JobEvent, JobEventKind, JobId, JobStatus, Liveness, Manifest, Metadata, NodeOutcome,
    Record,
};
use tidewheel_store::jobs::JobStore as _;

use super::Scheduler;
use super::error::SchedulerError;
use super::finish::ended_as;
use super::pass::Pass;
use crate::job::leftover;

impl Pass<'_> {
    /// Finalises every running job whose supervisor is gone. What it left running is ended first, so that nothing
    /// that it held is given to others before.
    pub(super) fn find_lost(&mut self) {
        let is_running = |id: &JobId| self.jobs.briefs[id].status == JobStatus::Running;
        let running: Vec<JobId> = self.jobs.briefs.keys().filter(|id| is_running(id)).cloned().collect();
        for id in running {
            if let Err(error) = self.finalise_if_lost(&id) {
                self.fail(&id, &error);
            }
        }
    }

    fn finalise_if_lost(&mut self, id: &JobId) -> Result<(), SchedulerError> {
        let store = &self.scheduler.store;
        let Some(_lock) = store.take_run_lock(id)? else { return Ok(()) };
        let record = self.record(id)?;
        self.scheduler.end_leftovers(&record)?;
        let attempt = attempt_of(&record);
        // What happened is written before what came of it, and may be all that was. What is damaged of it does not keep
        // the job running for ever.
        let events = store.history(id)?.events;
        let mut told: Vec<JobEvent> = events.into_iter().filter(|event| event.attempt == attempt).collect();
        // A manifest that cannot be read allows no retry; the end counts as it is.
        let manifest = self.scheduler.manifest_of(&record).ok().flatten();
        if let Some(ended) = told.iter().rev().find_map(end_of)
            && self.lacks_payload(&record, manifest.as_ref(), ended.outcome)?
        {
            // What it said was in nobody's hands but its own, so that the attempt has come to nothing.
            told.retain(|event| end_of(event).is_none());
        }
        let ended = match store.ended(id)?.filter(|outcome| outcome.attempt == attempt) {
            // The process came to its end, and only the scheduler was not told.
            Some(outcome) => ended_as(&outcome),
            None => match told.iter().rev().find_map(end_of) {
                Some(ended) => ended,
                None if store.is_asked_to_cancel(id)? => Ended::cancelled(self.now),
                None if record.pid.is_some() => Ended::lost(Liveness::NotRunning, self.now),
                None => Ended::lost(Liveness::MissingPid, self.now),
            },
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
        &self,
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
            if let Artifact::Custom { type_id, key } = made
                && self
                    .scheduler
                    .store
                    .payload(type_id, key, Some(std::slice::from_ref(&record.id)))?
                    .is_none()
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The operations that leave texts in artifacts.
const WRITERS: [&str; 2] = ["prompt.resolve", "agent.invoke"];

/// Returns the end of an attempt that an event tells of.
fn end_of(event: &JobEvent) -> Option<Ended> {
    let (outcome, exit_code, summary) = match &event.event {
        JobEventKind::Completed { outcome, exit_code, summary } => (*outcome, *exit_code, summary.clone()),
        JobEventKind::AttemptFailed { exit_code, message, .. } => {
            (NodeOutcome::Failed, *exit_code, Some(message.clone()))
        }
        JobEventKind::Dispatched { .. }
        | JobEventKind::Withdrawn { .. }
        | JobEventKind::Rewound { .. }
        | JobEventKind::Decided { .. } => return None,
    };
    let ended = match exit_code {
        Some(TIMED_OUT) => Ended::timed_out(event.at),
        code => Ended::exited(code.unwrap_or(1), event.at),
    };
    Some(Ended { outcome, exit_code, summary, ..ended })
}

/// What an attempt ends with that took too long.
const TIMED_OUT: i32 = 124;

/// Tells whether two events tell of the same: an attempt has one end.
fn same_kind(one: &JobEvent, other: &JobEvent) -> bool {
    one.attempt == other.attempt && std::mem::discriminant(&one.event) == std::mem::discriminant(&other.event)
}

/// Returns which start of the job this is.
pub(super) fn attempt_of(record: &Record) -> u32 {
    record.metadata.number(Metadata::NODE_ATTEMPT).unwrap_or(0)
}

impl Scheduler {
    /// Ends whatever a job without a supervisor left running.
    fn end_leftovers(&self, record: &Record) -> Result<(), SchedulerError> {
        leftover::end(record, &self.options.data)
            .map_err(|source| SchedulerError::Processes { id: record.id.clone(), source })
    }
}
