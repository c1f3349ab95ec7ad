//! What a start changes in the record of a job, and how it is taken back when it did not come about.

use super::event::{JobEvent, JobEventKind};
use super::metadata::Metadata;
use super::record::Record;
use super::shared::Shared;
use super::status::JobStatus;
use crate::policy::Permit;
use crate::time::Timestamp;

/// Writes into the record of a job that it starts now. The permit is what [`Settled::permits`](super::Settled) has for it.
///
/// A job that starts for the first time since it was enqueued or rewound has the number of its attempt already, or is
/// at its first; each further start counts one up.
pub fn start(record: &mut Record, permit: Option<&Permit>, now: Timestamp) {
    let metadata = &mut record.metadata;
    let attempt = match (metadata.number(Metadata::NODE_ATTEMPT), record.started_at) {
        (None | Some(0), _) => 1,
        (Some(attempt), None) => attempt,
        (Some(attempt), Some(_)) => attempt.saturating_add(1),
    };
    metadata.set(Metadata::NODE_ATTEMPT, attempt);
    if metadata.number(Metadata::POLICY_ATTEMPT).is_none() {
        metadata.set(Metadata::POLICY_ATTEMPT, 0);
    }
    if metadata.get(Metadata::STEP_STARTED_AT).is_none() {
        metadata.set(Metadata::STEP_STARTED_AT, now.to_string());
    }
    for name in [
        Metadata::NODE_OUTCOME,
        Metadata::LIVENESS,
        Metadata::AGENT_EXIT_CODE,
        Metadata::BREAKER_PERMIT,
        Metadata::PROCESS_SESSION,
    ] {
        metadata.clear(name);
    }
    if let Some(permit) = permit {
        let permit = serde_json::to_value(permit).expect("invariant: a permit is a number in an object");
        metadata.set(Metadata::BREAKER_PERMIT, permit);
    }
    record.status = JobStatus::Running;
    record.started_at = Some(now);
    record.finished_at = None;
    record.exit_code = None;
    record.outcome_path = None;
    record.pid = None;
    record.process_start_time = None;
    record.schedule.wait_reason = None;
    record.schedule.ready_at = None;
    record.schedule.gave_up = false;
    record.schedule.looped_on = None;
    record.schedule.skipped_failure = false;
    record.schedule.not_before = None;
}

/// Takes back a start that did not come about: the record is as it was before, and its breaker gets its permit back.
///
/// A start that a rate limit has counted stays counted.
pub fn withdraw(
    record: &mut Record,
    before: &Record,
    shared: &mut Shared,
    reason: &str,
    now: Timestamp,
) -> JobEvent {
    let attempt = record.metadata.number(Metadata::NODE_ATTEMPT).unwrap_or(0);
    let breaker = record.schedule.limits.as_deref().and_then(|limits| limits.breaker.as_ref());
    if let (Some(config), Some(permit)) = (breaker, permit_of(record)) {
        shared.breaker(&config.name, |breaker| breaker.released(permit));
    }
    *record = before.clone();
    JobEvent { at: now, attempt, event: JobEventKind::Withdrawn { reason: reason.to_owned() } }
}

/// Returns what the circuit breaker of a job gave it for its attempt.
pub(super) fn permit_of(record: &Record) -> Option<Permit> {
    serde_json::from_value(record.metadata.get(Metadata::BREAKER_PERMIT)?.clone()).ok()
}
