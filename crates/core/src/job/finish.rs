//! What follows the end of an attempt: the job is over, starts again later, waits for a person, or goes back to a node
//! before it. It writes nothing: the record is changed, and all else is returned.

use serde_json::Value;

use super::artifact::Artifact;
use super::ended::{BLOCKED, CANCELLED, Ended};
use super::event::{JobEvent, JobEventKind, LoggedFailure};
use super::gate::Refusal;
use super::go_back::{GoBack, budget_told};
use super::manifest::ManifestNode;
use super::metadata::Metadata;
use super::outcome::{JobOutcome, NodeOutcome};
use super::record::Record;
use super::schedule::{Approval, WaitKind, WaitReason};
use super::settle::note;
use super::shared::Shared;
use super::start::permit_of;
use super::status::JobStatus;
use crate::decide::{self, Action, CircuitView, Decision, ReasonCode, RetryPolicy, Situation};
use crate::policy::{ErrorCode, Failure, Fallback, JitterSeed, OnFailure, OnOpen, Resolved};
use crate::time::Timestamp;

/// What follows the end of an attempt, beside what was changed in the record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Finished {
    /// What happened, in order.
    pub events: Vec<JobEvent>,
    /// How the job ended; `None` if it starts again or waits for a person.
    pub outcome: Option<JobOutcome>,
    /// The custom artifacts that are there now.
    pub marks: Vec<Artifact>,
    /// The custom artifacts that this job does not vouch for any more.
    pub unmarks: Vec<Artifact>,
    /// What is in each of the artifacts that are there now, if a fallback says so.
    pub payload: Option<Value>,
    /// Where the job goes back to.
    pub go_back: Option<GoBack>,
}

/// Changes the record of a job whose attempt ended, and says what follows.
///
/// An attempt that failed is judged by the one function that decides every retry; when there is no further attempt, its
/// fallback may help, then a loop, and in the end `on_failure` says what it means.
pub fn finish(
    record: &mut Record,
    node: Option<&ManifestNode>,
    run_created_at: Option<Timestamp>,
    ended: &Ended,
    shared: &mut Shared,
) -> Finished {
    let policy = policy_of(node);
    let mut end = Finish { record, node, policy: &policy, ended, finished: Finished::default() };
    let circuit = end.report(shared);
    if let Some(why) = ended.liveness {
        end.record.metadata.set(Metadata::LIVENESS, why.name());
    }
    match ended.outcome {
        NodeOutcome::Succeeded => end.over(JobStatus::Succeeded, Some(0), ended.summary.clone()),
        NodeOutcome::Cancelled => {
            end.over(JobStatus::Cancelled, Some(CANCELLED), ended.summary.clone());
            end.loop_back(NodeOutcome::Cancelled);
        }
        NodeOutcome::Blocked => {
            if ended.summary.as_deref().is_some_and(|summary| budget_told(summary).is_some()) {
                end.record.schedule.gave_up = true;
            }
            end.over(JobStatus::BlockedByDependency, Some(BLOCKED), ended.summary.clone());
            end.loop_back(NodeOutcome::Blocked);
        }
        NodeOutcome::Skipped => end.over(JobStatus::Skipped, ended.exit_code, ended.summary.clone()),
        NodeOutcome::Failed => end.failed(run_created_at, circuit, shared),
    }
    end.finished
}

/// Asks the policy of a job that may not start any more what becomes of it, and changes its record accordingly.
pub fn refuse(
    record: &mut Record,
    node: Option<&ManifestNode>,
    (refusal, detail): (Refusal, &str),
    at: Timestamp,
) -> Finished {
    let policy = policy_of(node);
    let ended = Ended { summary: Some(detail.to_owned()), ..Ended::exited(1, at) };
    let mut end = Finish { record, node, policy: &policy, ended: &ended, finished: Finished::default() };
    let attempt_next = end.policy_attempt();
    let decision = |reason| Decision { action: Action::Fail, reason, attempt_next };
    match refusal {
        // After the deadline there is no fallback, and no way back: it would be late there, too.
        Refusal::Late => end.apply_on_failure(decision(ReasonCode::DeadlineExceeded)),
        Refusal::CircuitOpen => {
            // Another attempt, with whatever arguments, would not be let in either.
            let is_value = |fallback: &&Fallback| matches!(fallback, Fallback::Value(_));
            let fallback = policy.fallback.as_ref().filter(is_value);
            end.give_up(decision(ReasonCode::CircuitOpen), fallback);
        }
    }
    end.finished
}

/// Returns the policy of a node. One that cannot be read any more allows nothing: the end counts as it is.
pub(super) fn policy_of(node: Option<&ManifestNode>) -> Resolved {
    let policy = node.and_then(|node| node.policy().ok()).and_then(|policy| policy.resolved().ok());
    policy.unwrap_or_default()
}

pub(super) struct Finish<'a> {
    pub(super) record: &'a mut Record,
    pub(super) node: Option<&'a ManifestNode>,
    pub(super) policy: &'a Resolved,
    pub(super) ended: &'a Ended,
    pub(super) finished: Finished,
}

impl Finish<'_> {
    /// Tells the circuit breaker what came of the attempt, and returns what it says to another one.
    fn report(&mut self, shared: &mut Shared) -> CircuitView {
        let permit = permit_of(self.record);
        self.record.metadata.clear(Metadata::BREAKER_PERMIT);
        let limits = self.record.schedule.limits.as_deref();
        let config =
            limits.and_then(|limits| limits.breaker.as_ref()).or(self.policy.circuit_breaker.as_ref());
        let (Some(config), Some(permit)) = (config, permit) else { return CircuitView::Closed };
        shared.breaker(&config.name, |breaker| match self.ended.outcome {
            NodeOutcome::Succeeded => {
                breaker.succeeded(config, permit);
                CircuitView::Closed
            }
            // Nobody knows what came of an attempt that was lost.
            NodeOutcome::Failed if self.ended.liveness.is_none() => {
                let until = breaker.refuses_again(config, &permit, self.ended.at);
                breaker.failed(config, permit, self.ended.at);
                until.map_or(CircuitView::Closed, CircuitView::OpenUntil)
            }
            NodeOutcome::Failed | NodeOutcome::Blocked | NodeOutcome::Cancelled | NodeOutcome::Skipped => {
                breaker.released(permit);
                CircuitView::Closed
            }
        })
    }

    fn failed(&mut self, run_created_at: Option<Timestamp>, circuit: CircuitView, shared: &mut Shared) {
        let policy = self.policy;
        let now = self.ended.at;
        let limits = self.record.schedule.limits.as_deref();
        let deadline = policy.limit(run_created_at, None, limits.and_then(|limits| limits.deadline));
        let is_fallback = self.record.metadata.get(Metadata::FALLBACK).is_some();
        let decision = match self.ended.decided {
            Some(decision) => decision,
            None => self.decide((deadline, circuit), is_fallback, shared),
        };
        if let (Some(config), Action::RetryAt(_)) = (&policy.retry_budget, decision.action) {
            shared.budget(&config.name, |budget| *budget = budget.take(config, now).unwrap_or(*budget));
        }
        let message = match &self.ended.complaint {
            Some(complaint) => format!("{}: {complaint}", self.message()),
            None => self.message(),
        };
        let error = Some(LoggedFailure {
            code: self.ended.code.clone(),
            non_retryable: self.ended.non_retryable,
            liveness: self.ended.liveness,
            complaint: self.ended.complaint.clone(),
        });
        let exit_code = self.ended.exit_code;
        self.event(JobEventKind::AttemptFailed { exit_code, message, decision, error });
        match decision.action {
            Action::RetryAt(due) => {
                let (next, most) = (decision.attempt_next, policy.max_retries);
                self.again_at(due, next, format!("retry {next} of {most} at {due}"));
            }
            Action::Wait(until) => {
                let due = until.unwrap_or(now);
                let name = policy.circuit_breaker.as_ref().map_or("", |breaker| breaker.name.as_str());
                let detail = format!("circuit breaker `{name}` is open until {due}");
                self.again_at(due, decision.attempt_next, detail);
            }
            Action::Fail => {
                let is_late = deadline.is_some_and(|deadline| now >= deadline);
                let fallback = policy.fallback.as_ref().filter(|_| !is_fallback && !is_late);
                self.give_up(decision, fallback);
            }
        }
    }

    /// Decides what follows a failed attempt that nothing in the log was decided about.
    fn decide(
        &self,
        (deadline, circuit): (Option<Timestamp>, CircuitView),
        is_fallback: bool,
        shared: &mut Shared,
    ) -> Decision {
        let (policy, now) = (self.policy, self.ended.at);
        if is_fallback {
            let attempt_next = self.policy_attempt();
            return Decision { action: Action::Fail, reason: ReasonCode::MaxRetriesReached, attempt_next };
        }
        let budget = policy.retry_budget.as_ref();
        let tokens = budget.map(|config| shared.budget(&config.name, |budget| budget.tokens(config, now)));
        let failure = Failure {
            code: Some(self.ended.code.clone()),
            non_retryable: self.ended.non_retryable,
            ..Failure::new(self.message())
        };
        let situation = Situation {
            step_started_at: self.step_started_at(),
            run_deadline: deadline,
            outcome: decide::Outcome::Failed { retryable: policy.retries(&failure), retry_after: None },
            circuit,
            retry_tokens: tokens,
            ..Situation::failed(self.policy_attempt(), now, self.seed())
        };
        decide::decide(&RetryPolicy::from(policy), &situation)
    }

    /// There is no further attempt.
    fn give_up(&mut self, decision: Decision, fallback: Option<&Fallback>) {
        let message = self.message();
        match fallback {
            Some(Fallback::Value(value)) => {
                self.finished.payload = Some(value.clone());
                let summary = format!("its fallback's value counts, after: {message}");
                return self.over(JobStatus::Succeeded, Some(0), Some(summary));
            }
            Some(Fallback::Overrides(_)) => {
                let (now, attempt) = (self.ended.at, self.policy_attempt());
                self.again_at(now, attempt, format!("fallback at {now}"));
                return self.record.metadata.set(Metadata::FALLBACK, true);
            }
            // Functions never get into a manifest.
            Some(Fallback::Function(_)) | None => {}
        }
        if let Some(summary) = self.exhausted() {
            self.record.schedule.gave_up = true;
            return self.over(JobStatus::BlockedByDependency, Some(BLOCKED), Some(summary));
        }
        if self.has_loop(NodeOutcome::Failed) {
            self.over(JobStatus::Failed, Some(self.ended.exit_code.unwrap_or(1)), Some(message));
            return self.loop_back(NodeOutcome::Failed);
        }
        self.apply_on_failure(decision);
    }

    /// Nothing helps any more: `on_failure` says what it means.
    fn apply_on_failure(&mut self, decision: Decision) {
        let message = self.message();
        let exit_code = Some(self.ended.exit_code.unwrap_or(1));
        let on_open = self.policy.circuit_breaker.as_ref().map(|breaker| breaker.on_open);
        match self.policy.on_failure {
            _ if decision.reason == ReasonCode::CircuitOpen && on_open == Some(OnOpen::Skip) => {
                self.skip(exit_code, message);
            }
            OnFailure::Skip => self.skip(exit_code, message),
            OnFailure::Pause => self.pause(&message),
            OnFailure::DeadLetter => {
                self.record.metadata.set(Metadata::DEAD_LETTER, message.clone());
                self.over(JobStatus::Failed, exit_code, Some(message));
            }
            // What undoes the work is a job of its own, which waits for this failure.
            OnFailure::Halt | OnFailure::Fallback | OnFailure::Compensate => {
                self.over(JobStatus::Failed, exit_code, Some(message));
            }
        }
    }

    /// The job is over without what it should have done, and its policy lets that pass.
    fn skip(&mut self, exit_code: Option<i32>, message: String) {
        self.record.schedule.skipped_failure = true;
        self.over(JobStatus::Skipped, exit_code, Some(message));
    }

    /// The job starts again, not before an instant; its locks are free until then.
    fn again_at(&mut self, due: Timestamp, policy_attempt: u32, detail: String) {
        let record = &mut *self.record;
        record.metadata.set(Metadata::POLICY_ATTEMPT, policy_attempt);
        record.status = JobStatus::Queued;
        record.pid = None;
        record.process_start_time = None;
        record.schedule.not_before = Some(due);
        record.schedule.external = None;
        self.wait(WaitReason::new(WaitKind::Schedule, detail));
    }

    /// The job waits for a person, who lets it start again with all its attempts, or rejects it.
    fn pause(&mut self, message: &str) {
        let record = &mut *self.record;
        record.status = JobStatus::WaitingOnApproval;
        record.schedule.external = None;
        record.pid = None;
        record.process_start_time = None;
        let detail = format!("paused after a failure: {message}");
        let approval = Approval {
            reason: Some(detail.clone()),
            ..Approval::pending(Approval::BY_POLICY, self.ended.at)
        };
        let before = record.schedule.approval.replace(approval);
        if record.metadata.get(Metadata::PAUSED).is_none() {
            let before = before.map_or(Value::Bool(false), |approval| {
                serde_json::to_value(approval)
                    .expect("invariant: an approval has no key that is not a string")
            });
            record.metadata.set(Metadata::PAUSED, before);
        }
        self.wait(WaitReason::new(WaitKind::Approval, detail));
    }

    fn wait(&mut self, reason: WaitReason) {
        let schedule = &mut self.record.schedule;
        note(&mut schedule.waited_on, reason.kind);
        schedule.wait_reason = Some(reason);
        self.finished.unmarks = self.custom(&[]);
    }

    /// The job is over.
    fn over(&mut self, status: JobStatus, exit_code: Option<i32>, summary: Option<String>) {
        let outcome = NodeOutcome::of(status).expect("invariant: nothing active is over");
        let artifacts = self.made(outcome);
        let is_custom = |artifact: &&Artifact| matches!(artifact, Artifact::Custom { .. });
        self.finished.marks = artifacts.iter().filter(is_custom).cloned().collect();
        self.finished.unmarks = self.custom(&self.finished.marks);
        self.event(JobEventKind::Completed { outcome, exit_code, summary: summary.clone() });
        self.finished.outcome =
            Some(conclude(self.record, exit_code, summary, artifacts, (status, self.ended.at)));
    }

    /// Returns what a job makes that ends like that.
    fn made(&self, outcome: NodeOutcome) -> Vec<Artifact> {
        match self.node {
            Some(node) => node.produces.get(&outcome).cloned().unwrap_or_default(),
            None if outcome == NodeOutcome::Succeeded => self.record.schedule.artifacts.clone(),
            None => Vec::new(),
        }
    }

    /// Returns the custom artifacts that the job might have made, without some.
    fn custom(&self, without: &[Artifact]) -> Vec<Artifact> {
        let by_node = self.node.into_iter().flat_map(|node| node.produces.values().flatten());
        let all = self.record.schedule.artifacts.iter().chain(by_node);
        let mut list: Vec<Artifact> = Vec::new();
        for artifact in all.filter(|artifact| matches!(artifact, Artifact::Custom { .. })) {
            if !without.contains(artifact) && !list.contains(artifact) {
                list.push(artifact.clone());
            }
        }
        list
    }

    fn event(&mut self, event: JobEventKind) {
        self.finished.events.push(JobEvent { at: self.ended.at, attempt: self.attempt(), event });
    }

    pub(super) fn attempt(&self) -> u32 {
        self.record.metadata.number(Metadata::NODE_ATTEMPT).unwrap_or(1)
    }

    fn policy_attempt(&self) -> u32 {
        self.record.metadata.number(Metadata::POLICY_ATTEMPT).unwrap_or(0)
    }

    fn step_started_at(&self) -> Timestamp {
        let written = self.record.metadata.text(Metadata::STEP_STARTED_AT);
        let written = written.and_then(|text| Timestamp::parse(text).ok());
        written.or(self.record.started_at).unwrap_or(self.ended.at)
    }

    pub(super) fn seed(&self) -> JitterSeed {
        let metadata = &self.record.metadata;
        let id = self.record.id.as_str();
        JitterSeed::new(
            metadata.text(Metadata::RUN_ID).unwrap_or(id),
            metadata.text(Metadata::NODE_ID).unwrap_or(id),
        )
    }

    fn message(&self) -> String {
        let code = match (&self.ended.code, self.ended.exit_code) {
            (ErrorCode::Word(word), _) if word == "timeout" => "took too long".to_owned(),
            (ErrorCode::Word(word), _) => word.to_string(),
            (ErrorCode::Number(_), Some(code)) => format!("exit code {code}"),
            (ErrorCode::Number(number), None) => format!("code {number}"),
        };
        self.ended.summary.clone().unwrap_or(code)
    }
}

/// Writes into a record that its job is over, and returns its outcome.
pub(super) fn conclude(
    record: &mut Record,
    exit_code: Option<i32>,
    summary: Option<String>,
    artifacts: Vec<Artifact>,
    (status, at): (JobStatus, Timestamp),
) -> JobOutcome {
    let outcome = NodeOutcome::of(status).expect("invariant: nothing active is over");
    record.status = status;
    record.exit_code = exit_code;
    record.finished_at = Some(at);
    record.outcome_path = Some(JobOutcome::path(&record.id));
    record.schedule.wait_reason = None;
    record.schedule.ready_at = None;
    record.schedule.external = None;
    record.metadata.set(Metadata::NODE_OUTCOME, outcome.name());
    JobOutcome {
        version: JobOutcome::VERSION,
        job_id: record.id.clone(),
        attempt: record.metadata.number(Metadata::NODE_ATTEMPT).unwrap_or(0),
        status,
        outcome,
        exit_code,
        code: None,
        non_retryable: false,
        complaint: None,
        started_at: record.started_at,
        finished_at: at,
        summary,
        artifacts,
    }
}
