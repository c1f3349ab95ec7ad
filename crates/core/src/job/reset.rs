//! What a rewind changes in the record of one job: it is as if it had never run, apart from the count of its attempts.

use super::artifact::Artifact;
use super::event::{JobEvent, JobEventKind};
use super::metadata::Metadata;
use super::record::Record;
use super::schedule::Approval;
use super::status::JobStatus;
use crate::time::Timestamp;

/// What came of cleaning up what a job owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cleanup {
    /// It is gone.
    Done,
    /// There was nothing.
    Skipped,
    /// It is still there, and why.
    Degraded(String),
}

impl Cleanup {
    /// Returns the word that records use.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Skipped => "skipped",
            Self::Degraded(_) => "degraded",
        }
    }
}

/// Why jobs are rewound.
#[derive(Clone, Copy, Debug)]
pub struct Cause<'a> {
    /// The person, or the node whose loop came back.
    pub by: &'a str,
    /// Whether a loop did it: then it still counts how often.
    pub is_loop: bool,
    /// Before this instant the job does not start again.
    pub not_before: Option<Timestamp>,
    /// Why a person has to approve first, if that is so: a loop does not run again what a person has just cancelled.
    pub asks_first: Option<&'a str>,
    /// When.
    pub at: Timestamp,
}

/// What else follows when a job is rewound.
#[derive(Clone, Debug, PartialEq)]
pub struct Reset {
    /// What happened.
    pub event: JobEvent,
    /// The custom artifacts that it does not vouch for any more.
    pub unmarks: Vec<Artifact>,
}

/// Rewinds a job that is not running.
pub fn reset(record: &mut Record, cleanup: &Cleanup, cause: Cause<'_>) -> Reset {
    let has_started = record.started_at.is_some();
    let was_scheduled = !has_started && record.status.is_active();
    record.status = JobStatus::Queued;
    record.pid = None;
    record.process_start_time = None;
    record.started_at = None;
    record.finished_at = None;
    record.exit_code = None;
    record.session_path = None;
    record.outcome_path = None;
    let schedule = &mut record.schedule;
    schedule.wait_reason = None;
    schedule.waited_on.clear();
    schedule.ready_at = None;
    schedule.external = None;
    schedule.gave_up = false;
    schedule.skipped_failure = false;
    // Another loop may rewind it before it starts again.
    if has_started || !cause.is_loop {
        schedule.looped_on = None;
    }
    // A job that never started is still not due before its time.
    schedule.not_before = schedule.not_before.filter(|_| was_scheduled).max(cause.not_before);
    ask_again(record, cause);
    let metadata = &mut record.metadata;
    let attempt = metadata.number(Metadata::NODE_ATTEMPT).unwrap_or(1);
    // A loop counts the starts of its node, and one that never came about is none.
    if has_started || !cause.is_loop {
        metadata.set(Metadata::NODE_ATTEMPT, attempt.saturating_add(1));
    }
    for name in [
        Metadata::NODE_OUTCOME,
        Metadata::PAYLOAD_REFS,
        Metadata::AGENT_EXIT_CODE,
        Metadata::CANCEL_CLEANUP_STATUS,
        Metadata::CANCEL_CLEANUP_ERROR,
        Metadata::POLICY_ATTEMPT,
        Metadata::STEP_STARTED_AT,
        Metadata::FALLBACK,
        Metadata::LIVENESS,
        Metadata::PROCESS_SESSION,
        Metadata::DEAD_LETTER,
        Metadata::BREAKER_PERMIT,
        Metadata::PAUSED,
        Metadata::LOOP_TO,
    ] {
        metadata.clear(name);
    }
    if !cause.is_loop {
        metadata.clear(Metadata::LOOP_COUNT);
        // A person gives it its whole budget again.
        metadata.set(Metadata::ATTEMPTS_BEFORE, attempt);
        begin_deadline_again(record, cause.at);
    }
    if let Some(reason) = cause.asks_first {
        ask_first(record, reason, cause.at);
    }
    let metadata = &mut record.metadata;
    metadata.set(Metadata::RETRY_CLEANUP_STATUS, cleanup.name());
    match cleanup {
        Cleanup::Done | Cleanup::Skipped => {
            metadata.clear(Metadata::RETRY_CLEANUP_ERROR);
            metadata.clear_all("worktree_");
            metadata.set(Metadata::EXECUTION_ROOT, ".");
        }
        Cleanup::Degraded(error) => metadata.set(Metadata::RETRY_CLEANUP_ERROR, error.as_str()),
    }
    let is_custom = |artifact: &&Artifact| matches!(artifact, Artifact::Custom { .. });
    let event = JobEventKind::Rewound { by: cause.by.to_owned() };
    Reset {
        event: JobEvent { at: cause.at, attempt, event },
        unmarks: record.schedule.artifacts.iter().filter(is_custom).cloned().collect(),
    }
}

/// Gives a job that a person wants done again as much time as it had at first.
pub(super) fn begin_deadline_again(record: &mut Record, at: Timestamp) {
    let began = record.deadline_from().unwrap_or(record.created_at);
    if let Some(deadline) = record.schedule.limits.as_mut().and_then(|limits| limits.deadline.as_mut()) {
        let left = deadline.as_nanos().saturating_sub(began.as_nanos());
        *deadline = Timestamp::from_nanos(at.as_nanos().saturating_add(left));
    }
    record.metadata.set(Metadata::DEADLINE_FROM, at.to_string());
}

/// Lets a job wait for a person before it starts, as after a failure that its policy pauses.
fn ask_first(record: &mut Record, reason: &str, at: Timestamp) {
    let approval = Approval { reason: Some(reason.to_owned()), ..Approval::pending(Approval::BY_POLICY, at) };
    let before = record.schedule.approval.replace(approval);
    let before = before.and_then(|approval| serde_json::to_value(approval).ok());
    record.metadata.set(Metadata::PAUSED, before.unwrap_or(serde_json::Value::Bool(false)));
}

/// Asks again for an approval that a job needs.
fn ask_again(record: &mut Record, cause: Cause<'_>) {
    if let Some(before) = record.metadata.get(Metadata::PAUSED) {
        // Its policy asked for this one; the next attempt needs what the job needed before.
        record.schedule.approval = serde_json::from_value(before.clone()).ok();
    }
    if let Some(approval) = record.schedule.approval.as_mut().filter(|approval| approval.required) {
        *approval = Approval::pending(cause.by, cause.at);
    }
}
