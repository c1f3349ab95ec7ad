//! Jobs whose work is done elsewhere: how an attempt begins without a process, how a worker outside ends it, and what
//! happens when it does not.

use std::fs::File;
use std::io::{self, Read as _};

use serde_json::{Value, json};
use tidewheel_core::command::RunCommand;
use tidewheel_core::job::{
    Artifact, Ended, ExternalError, JobEvent, JobEventKind, JobId, Manifest, Metadata, NodeOutcome, Record,
    check_token, misfit, overdue, start_external,
};
use tidewheel_core::policy::Permit;
use tidewheel_store::jobs::{JobStoreError, Payload};

use super::Scheduler;
use super::error::SchedulerError;
use super::lost::{attempt_of, same_kind, since_start};
use super::pass::Pass;
use super::ticked::Ticked;

/// How a worker outside says that its work failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExternalFailure {
    /// What happened, in a line.
    pub reason: Option<String>,
    /// The exit code that policies match; 1 if the worker names none.
    pub exit_code: Option<i32>,
    /// Whether another attempt would end alike.
    pub non_retryable: bool,
}

impl Scheduler {
    /// Ends the attempt of a job that a worker outside did, and lets what is after it go on. The value becomes the payload
    /// of what the job produces.
    ///
    /// # Errors
    /// There is no such job, no attempt of it waits under this token, or the value fits no contract. Nothing was changed.
    pub fn complete(
        &self,
        id: &JobId,
        token: &str,
        value: Option<&Value>,
    ) -> Result<(Record, Ticked), SchedulerError> {
        let mut pass = self.pass()?;
        let mut record = pass.record(id)?;
        check_token(&mut record, RunCommand::Complete, token)?;
        let manifest = self.manifest_of(&record)?;
        let payloads = match value {
            Some(value) => payloads(&record, manifest.as_ref(), value, pass.now)?,
            None => Vec::new(),
        };
        let summary = Some("completed by an external worker".to_owned());
        let ended = Ended { summary, ..Ended::exited(0, pass.now) };
        let outcome = pass.finish_external(record, manifest.as_ref(), ended)?;
        pass.add_payloads(id, &payloads)?;
        self.conclude_external(pass, id, outcome == NodeOutcome::Succeeded)
    }

    /// Ends the attempt of a job that a worker outside could not do; its policy decides what follows.
    ///
    /// # Errors
    /// There is no such job, or no attempt of it waits under this token. Nothing was changed.
    pub fn fail(
        &self,
        id: &JobId,
        token: &str,
        failure: &ExternalFailure,
    ) -> Result<(Record, Ticked), SchedulerError> {
        let mut pass = self.pass()?;
        let mut record = pass.record(id)?;
        check_token(&mut record, RunCommand::Fail, token)?;
        let manifest = self.manifest_of(&record)?;
        let code = failure.exit_code.filter(|code| *code != 0).unwrap_or(1);
        let reason = failure.reason.as_deref().map_or_else(
            || format!("failed by an external worker (exit {code})"),
            |reason| self.options.secrets.hide(reason).into_owned(),
        );
        let ended = Ended {
            summary: Some(reason),
            non_retryable: failure.non_retryable,
            ..Ended::exited(code, pass.now)
        };
        let outcome = pass.finish_external(record, manifest.as_ref(), ended)?;
        self.conclude_external(pass, id, outcome == NodeOutcome::Failed)
    }

    /// Notes that the worker outside is alive, which its policy wants to know again and again.
    ///
    /// # Errors
    /// There is no such job, no attempt of it waits under this token, or its policy has no heartbeat.
    pub fn heartbeat(&self, id: &JobId, token: &str) -> Result<(Record, Ticked), SchedulerError> {
        let mut pass = self.pass()?;
        let (mut record, now) = (pass.record(id)?, pass.now);
        let external = check_token(&mut record, RunCommand::Heartbeat, token)?;
        if external.heartbeat_ms.is_none() {
            return Err(ExternalError::NoHeartbeat(id.clone()).into());
        }
        external.heard_at = external.heard_at.max(now);
        pass.change(record);
        self.conclude_external(pass, id, true)
    }

    fn conclude_external(
        &self,
        pass: Pass<'_>,
        id: &JobId,
        is_as_told: bool,
    ) -> Result<(Record, Ticked), SchedulerError> {
        let ticked = pass.conclude()?;
        let record = self.store_record(id)?;
        if is_as_told {
            return Ok((record, ticked));
        }
        // The log had another end of the attempt already, whose pass was killed before it could write the record.
        Err(ExternalError::NotWaiting { id: id.clone(), status: record.status }.into())
    }
}

impl Pass<'_> {
    /// Begins an attempt whose work is done elsewhere: it gets a token, and no process and no slot.
    pub(super) fn begin_external(
        &mut self,
        mut record: Record,
        permit: Option<&Permit>,
    ) -> Result<(), SchedulerError> {
        let secret = random_hex().map_err(|source| {
            let path = "/dev/urandom".into();
            SchedulerError::Store(JobStoreError::Io { verb: "read", path, source })
        })?;
        let node = self.node_of(record.run().as_ref(), record.node().as_ref());
        let policy = node.as_ref().and_then(|node| node.policy().ok()?.resolved().ok()).unwrap_or_default();
        let context = self.scheduler.context_of(&record);
        start_external(&mut record, permit, &policy, &secret, self.now);
        let (stdout_offset, stderr_offset) = self.scheduler.log_sizes(&record.id);
        let policy_attempt = record.metadata.number(Metadata::POLICY_ATTEMPT).unwrap_or(0);
        self.tell(&record, JobEventKind::Dispatched { policy_attempt, stdout_offset, stderr_offset });
        match context {
            Ok(context) => {
                if let Some(context) = context {
                    context.give_to(&mut record);
                }
                let due = record.schedule.external.as_ref().and_then(|external| external.due());
                self.look_again_at(due);
                self.change(record);
            }
            Err(error) => {
                // What comes after it is judged by the next pass.
                let manifest = self.scheduler.manifest_of(&record)?;
                let summary = Some(error.to_string());
                let ended = Ended { summary, non_retryable: true, ..Ended::exited(1, self.now) };
                self.finish(record, manifest.as_ref(), &ended)?;
                self.look_again_at(Some(self.now));
            }
        }
        Ok(())
    }

    /// Ends every attempt whose worker outside took too long, or gave no sign of life.
    pub(super) fn end_overdue(&mut self) {
        let is_overdue = |id: &&JobId| {
            let external = self.jobs.briefs[*id].schedule.external.as_deref();
            external.is_some_and(|external| overdue(external, self.now).is_some())
        };
        let late: Vec<JobId> = self.jobs.briefs.keys().filter(is_overdue).cloned().collect();
        for id in late {
            if let Err(error) = self.end_one_overdue(&id) {
                self.fail(&id, &error);
            }
        }
    }

    fn end_one_overdue(&mut self, id: &JobId) -> Result<(), SchedulerError> {
        let record = self.record(id)?;
        let ended = record.schedule.external.as_deref().and_then(|external| overdue(external, self.now));
        let Some(ended) = ended else { return Ok(()) };
        let manifest = self.scheduler.manifest_of(&record)?;
        self.finish_external(record, manifest.as_ref(), ended).map(drop)
    }

    /// Takes over the end of an attempt outside. One that is in the log already is repeated as it is there. Returns how
    /// the attempt ended.
    fn finish_external(
        &mut self,
        record: Record,
        manifest: Option<&Manifest>,
        ended: Ended,
    ) -> Result<NodeOutcome, SchedulerError> {
        let id = record.id.clone();
        let told = since_start(self.scheduler.store.history(&id)?.events, attempt_of(&record));
        let ended = Ended::of_log(&told).unwrap_or(ended);
        self.finish(record, manifest, &ended)?;
        let is_told = |event: &JobEvent| told.iter().any(|told| same_kind(told, event));
        self.batch.events.retain(|(of, event)| *of != id || !is_told(event));
        Ok(ended.outcome)
    }
}

/// Returns the payloads of all that a job makes when it succeeds: the value, in each of its artifacts.
fn payloads(
    record: &Record,
    manifest: Option<&Manifest>,
    value: &Value,
    now: tidewheel_core::time::Timestamp,
) -> Result<Vec<Payload>, ExternalError> {
    let node = manifest.zip(record.node()).and_then(|(manifest, node)| manifest.nodes.get(&node));
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut payloads = Vec::new();
    for made in node.and_then(|node| node.produces.get(&NodeOutcome::Succeeded)).into_iter().flatten() {
        let Artifact::Custom { type_id, key } = made else { continue };
        if let Some(why) = node.and_then(|node| misfit(node.schemas.get(type_id)?, value)) {
            let why = format!("the payload of `{made}` does not fit its contract: {why}");
            return Err(ExternalError::Misfit(why));
        }
        let value = json!({
            "type_id": type_id, "key": key, "text": text, "written_at": now.to_string(), "value": value,
        });
        let (type_id, key) = (type_id.clone(), key.clone());
        payloads.push(Payload { job_id: record.id.clone(), type_id, key, value });
    }
    if payloads.is_empty() { Err(ExternalError::NoArtifact(record.id.clone())) } else { Ok(payloads) }
}

/// Draws the bits of a token.
fn random_hex() -> io::Result<String> {
    let mut bits = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bits)?;
    Ok(format!("{:032x}", u128::from_be_bytes(bits)))
}
