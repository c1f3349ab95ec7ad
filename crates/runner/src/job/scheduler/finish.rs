//! The end of an attempt: what it means for the job, and for those before and after it.

use std::collections::BTreeSet;

use serde_json::Value;
use tidewheel_core::job::{
    Answer, Artifact, Brief, Cause, Cleanup, Ended, Finished, JobId, JobStatus, Manifest, Metadata,
    NodeOutcome, PlainKey, Question, Record, Refusal, RewindError, Shared, cancel, finish, loop_back, refuse,
    release_permit, reset, rewind, stay,
};
use tidewheel_core::time::Timestamp;
use tidewheel_store::jobs::{JobStore as _, Marker, Payload};

use super::error::SchedulerError;
use super::pass::Pass;
use crate::job::worktree;
use crate::probe::Prober;

impl Pass<'_> {
    /// Takes over the end of an attempt, with its markers, its next attempt or its way back.
    pub(super) fn finish(
        &mut self,
        mut record: Record,
        manifest: Option<&Manifest>,
        ended: &Ended,
    ) -> Result<(), SchedulerError> {
        let node = manifest.zip(record.node()).and_then(|(manifest, node)| manifest.nodes.get(&node));
        let policy = node.and_then(|node| node.policy().ok()?.resolved().ok());
        if let Some(policy) = policy {
            self.load_shared(Shared::names_of_policy(&policy))?;
        }
        let created_at = record.deadline_from().or_else(|| Some(manifest?.created_at));
        let finished = finish(&mut record, node, created_at, ended, &mut self.shared);
        self.take_finished(&record, finished, ended.at);
        let key = record.schedule.limits.as_deref().and_then(|limits| limits.idempotency_key.as_ref());
        if let (Some(key), NodeOutcome::Succeeded) = (key, ended.outcome) {
            self.batch.shared.push((key_row(key), record.id.as_str().into()));
        }
        if record.status.is_active() && self.scheduler.store.is_asked_to_cancel(&record.id)? {
            // The attempt did not hear of it in time, and there is to be no other.
            let (outcome, event) = cancel(&mut record, &Cleanup::Skipped, ended.at)?;
            self.batch.outcomes.push(outcome);
            self.batch.events.push((record.id.clone(), event));
            if let Some(node) = node {
                loop_back(&mut record, node, ended.at);
            }
        }
        if record.status == JobStatus::Cancelled && self.scheduler.store.is_asked_to_cancel_run(&record.id)? {
            // With the whole run, nothing that its loop would go back to is wanted any more.
            stay(&mut record);
        }
        self.change(record);
        Ok(())
    }

    /// Adds what is in the artifacts that a job made, as far as they are there now.
    pub(super) fn add_payloads(&mut self, id: &JobId, payloads: &[Payload]) -> Result<(), SchedulerError> {
        let is_made = |payload: &&Payload| {
            self.batch.markers.iter().any(|marker| {
                marker.job_id == *id && marker.type_id == payload.type_id && marker.key == payload.key
            })
        };
        // What a fallback stands for counts instead of what the attempt left.
        let is_filled = self.batch.payloads.iter().any(|payload| payload.job_id == *id);
        let made: Vec<Payload> = payloads.iter().filter(is_made).filter(|_| !is_filled).cloned().collect();
        if made.is_empty() {
            return Ok(());
        }
        let label = |payload: &Payload| format!("custom:{}:{}", payload.type_id, payload.key);
        let mut record = self.record(id)?;
        record.metadata.set(Metadata::PAYLOAD_REFS, made.iter().map(label).collect::<Vec<_>>());
        self.change(record);
        self.batch.payloads.extend(made);
        Ok(())
    }

    /// Takes over what follows the end of a job.
    fn take_finished(&mut self, record: &Record, mut finished: Finished, at: Timestamp) {
        if let Some(outcome) = &mut finished.outcome {
            let ended = outcome.outcome;
            outcome.artifacts.retain(|made| self.is_made(record, ended, made));
        }
        self.batch.events.extend(finished.events.into_iter().map(|event| (record.id.clone(), event)));
        self.batch.outcomes.extend(finished.outcome);
        self.mark(&record.id, &finished.marks, at);
        if let Some(value) = finished.payload {
            self.batch.payloads.extend(finished.marks.iter().filter_map(|made| {
                let Artifact::Custom { type_id, key } = made else { return None };
                let (type_id, key) = (type_id.clone(), key.clone());
                Some(Payload { job_id: record.id.clone(), type_id, key, value: value.clone() })
            }));
        }
        self.batch.unmarked.extend(finished.unmarks.into_iter().map(|made| (record.id.clone(), made)));
    }

    /// Tells whether there is what a job is to have made. Markers are about to be written; of all else the world says.
    fn is_made(&self, record: &Record, ended: NodeOutcome, made: &Artifact) -> bool {
        match made {
            Artifact::Custom { .. } => true,
            // A job that succeeds has made its patch, and is not on record as such yet.
            Artifact::CommandPatch { job_id }
                if ended == NodeOutcome::Succeeded && job_id == record.id.as_str() =>
            {
                true
            }
            Artifact::CommandPatch { .. }
            | Artifact::PlanBranch { .. }
            | Artifact::PlanDoc { .. }
            | Artifact::PlanCommits { .. }
            | Artifact::TargetBranch { .. }
            | Artifact::MergeSentinel { .. } => {
                let options = &self.scheduler.options;
                let prober = Prober::new(&options.root, &options.data, &self.scheduler.store);
                prober.answer(&Question::Artifact(made.clone())) == Answer::Yes
            }
        }
    }

    /// Asks the policy of a job that may not start any more what becomes of it.
    pub(super) fn refuse(&mut self, id: &JobId, refusal: Refusal, detail: &str) {
        let mut record = match self.record(id) {
            Ok(record) => record,
            Err(error) => {
                self.fail(id, &error);
                // Nobody can ask it, so that the gate has the last word.
                let limits =
                    self.jobs.briefs.get_mut(id).and_then(|brief| brief.schedule.limits.as_deref_mut());
                return limits.into_iter().for_each(|limits| limits.has_recourse = false);
            }
        };
        let node = self.node_of(record.run().as_ref(), record.node().as_ref());
        let finished = refuse(&mut record, node.as_ref(), (refusal, detail), self.now);
        self.take_finished(&record, finished, self.now);
        self.change(record);
    }

    fn mark(&mut self, id: &JobId, made: &[Artifact], at: Timestamp) {
        for artifact in made {
            if let Err(error) = artifact.check() {
                // A name that cannot be one must not keep the end of the job from being put on record.
                self.fail(id, &error.into());
            } else if let Artifact::Custom { type_id, key } = artifact {
                let (type_id, key) = (type_id.clone(), key.clone());
                self.batch.markers.push(Marker { job_id: id.clone(), type_id, key, written_at: at });
            }
        }
    }

    /// Gives a job that succeeded without running what the one before it had made.
    pub(super) fn adopt(&mut self, id: &JobId, from: &JobId) -> Result<(), SchedulerError> {
        let made = self.record(id)?.schedule.artifacts;
        for artifact in &made {
            if let Artifact::Custom { type_id, key } = artifact
                && let Some(value) =
                    self.scheduler.store.payload(type_id, key, Some(std::slice::from_ref(from)))?
            {
                let (type_id, key) = (type_id.clone(), key.clone());
                self.batch.payloads.push(Payload { job_id: id.clone(), type_id, key, value });
            }
        }
        let now = self.now;
        self.mark(id, &made, now);
        Ok(())
    }

    /// Rewinds what the loop of a job goes back to. Tells whether it did: not while something of it runs.
    pub(super) fn go_back(&mut self, id: &JobId) -> Result<bool, SchedulerError> {
        let mut record = self.record(id)?;
        let targets = record.loop_targets();
        if targets.is_empty() {
            return Ok(false);
        }
        let run = record.run();
        let jobs = targets.iter().filter_map(|to| JobId::of_node(run.as_ref()?, to).ok());
        let targets: BTreeSet<JobId> = jobs.filter(|job| self.jobs.briefs.contains_key(job)).collect();
        if targets.is_empty() {
            // Somebody took them away, and the run is not to wait for them for ever.
            record.metadata.clear(Metadata::LOOP_TO);
            self.change(record);
            return Ok(true);
        }
        let mut members = BTreeSet::new();
        for target in &targets {
            match rewind(&self.jobs.briefs, target) {
                Ok(rewind) => members.extend(rewind.set),
                Err(RewindError::Running(_)) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        let by = record.node().map_or_else(|| id.to_string(), |node| node.to_string());
        let not_before = record.schedule.not_before;
        let asks_first = (record.status == JobStatus::Cancelled)
            .then(|| format!("{by} was cancelled: approve to go back and run it again, or cancel this too"));
        for member in members {
            let is_target = targets.contains(&member);
            let not_before = not_before.filter(|_| is_target);
            let asks_first = asks_first.as_deref().filter(|_| is_target);
            self.reset(&member, Cause { by: &by, is_loop: true, not_before, asks_first, at: self.now })?;
        }
        let mut rewound = self.record(id)?;
        if rewound.status.is_active() {
            rewound.schedule.looped_on = NodeOutcome::of(record.status);
            self.change(rewound);
        }
        Ok(true)
    }

    /// Gives back what an attempt outside was let in by, if there is one: it comes to no end of its own.
    pub(super) fn release_external(&mut self, record: &mut Record) -> Result<(), SchedulerError> {
        if record.schedule.external.is_some() {
            self.load_shared(Shared::names_of_jobs([&Brief::from(&*record)]))?;
            release_permit(record, &mut self.shared);
        }
        Ok(())
    }

    /// Returns the job that has done the work with a key.
    pub(super) fn key_owner(&mut self, key: &str) -> Result<Answer, SchedulerError> {
        if let Some(owner) = self.owner_on_record(key)? {
            return Ok(Answer::Text(Some(owner)));
        }
        // What an older release wrote counts only if a job of the same node did the work: others could meet there.
        let Some(before) = PlainKey::before(key) else { return Ok(Answer::Text(None)) };
        let Some(owner) = self.owner_on_record(&before.text)? else { return Ok(Answer::Text(None)) };
        let record = match JobId::new(&owner) {
            Ok(id) => self.scheduler.store.record(&id)?,
            Err(_) => None,
        };
        let is_of_node = record.is_some_and(|record| {
            record.metadata.text(Metadata::TEMPLATE_ID) == Some(before.template.as_str())
                && record.metadata.text(Metadata::NODE_ID) == Some(before.node.as_str())
        });
        Ok(Answer::Text(is_of_node.then_some(owner)))
    }

    fn owner_on_record(&mut self, key: &str) -> Result<Option<String>, SchedulerError> {
        let name = key_row(key);
        let written =
            self.batch.shared.iter().rev().find(|(row, _)| *row == name).map(|(_, row)| row.clone());
        let row = match written {
            Some(row) => Some(row),
            None => self.turn.shared(&name)?,
        };
        Ok(row.and_then(|row| row.as_str().map(str::to_owned)))
    }

    /// Forgets that a job has done the work of its key.
    pub(super) fn forget_key(&mut self, key: &str, id: &JobId) -> Result<(), SchedulerError> {
        if self.owner_on_record(key)?.as_deref() == Some(id.as_str()) {
            self.batch.shared.push((key_row(key), Value::Null));
        }
        Ok(())
    }

    /// Rewinds one job.
    pub(super) fn reset(&mut self, id: &JobId, cause: Cause<'_>) -> Result<(), SchedulerError> {
        let mut record = self.record(id)?;
        let options = &self.scheduler.options;
        let cleanup = worktree::clean(&record, &options.root, &options.data);
        self.release_external(&mut record)?;
        let rewound = reset(&mut record, &cleanup, cause);
        self.batch.events.push((id.clone(), rewound.event));
        self.batch.unmarked.extend(rewound.unmarks.into_iter().map(|made| (id.clone(), made)));
        // An end of this very pass is no end any more.
        self.batch.outcomes.retain(|outcome| outcome.job_id != *id);
        self.batch.markers.retain(|marker| marker.job_id != *id);
        self.batch.payloads.retain(|payload| payload.job_id != *id);
        self.batch.rewound.push(id.clone());
        let key = record.schedule.limits.as_deref().and_then(|limits| limits.idempotency_key.clone());
        if let Some(key) = key {
            self.forget_key(&key, id)?;
        }
        self.change(record);
        Ok(())
    }
}

/// Returns the name of the row that says who has done the work with a key.
fn key_row(key: &str) -> String {
    format!("key:{key}")
}
