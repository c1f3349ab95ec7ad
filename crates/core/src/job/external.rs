//! Jobs whose work is done elsewhere: an attempt waits without a process until the worker outside gives its token, or
//! until its time is over.

use super::ended::Ended;
use super::id::JobId;
use super::metadata::Metadata;
use super::record::Record;
use super::schedule::{ExternalWait, WaitKind, WaitReason};
use super::settle::note;
use super::shared::Shared;
use super::start::{permit_of, start};
use super::status::JobStatus;
use crate::command::{Effect, RunCommand};
use crate::policy::{Permit, Resolved};
use crate::time::Timestamp;

/// What a job waits for whose work is done elsewhere.
const DETAIL: &str = "waiting on external completion";

/// Why a job cannot be completed or failed from outside.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExternalError {
    /// As the job stands, the command would have no effect.
    #[error("job {id} is {status}: {why}")]
    Refused {
        /// The job.
        id: JobId,
        /// Where it stands.
        status: JobStatus,
        /// Why, as the table of commands says it.
        why: &'static str,
    },
    /// No attempt of it waits for a worker outside.
    #[error("job {id} waits for no external completion ({status})")]
    NotWaiting {
        /// The job.
        id: JobId,
        /// Where it stands.
        status: JobStatus,
    },
    /// The token belongs to an earlier attempt.
    #[error(
        "the token is of attempt {given} of job {id}, which is over; attempt {current} waits with a token of its own"
    )]
    OldToken {
        /// The job.
        id: JobId,
        /// The attempt of the token.
        given: u32,
        /// The attempt that waits.
        current: u32,
    },
    /// The token is not of this job.
    #[error("the token is not that of job {0}")]
    WrongToken(JobId),
    /// Its policy waits for no heartbeat.
    #[error("the policy of job {0} has no heartbeat, so that one has no effect")]
    NoHeartbeat(JobId),
    /// The value is not what a contract of the job asks for.
    #[error("{0}")]
    Misfit(String),
    /// The job makes nothing that a value could be the payload of.
    #[error("job {0} produces no custom artifact when it succeeds, so that a value has no effect")]
    NoArtifact(JobId),
}

/// Writes into the record of a job that its work begins elsewhere, under this token.
///
/// The attempt is over at the latest when its timeout, the total timeout or the deadline is, or when the worker has given
/// no sign of life for as long as the policy says.
pub fn start_external(
    record: &mut Record,
    permit: Option<&Permit>,
    policy: &Resolved,
    secret: &str,
    now: Timestamp,
) {
    start(record, permit, now);
    let attempt = record.metadata.number(Metadata::NODE_ATTEMPT).unwrap_or(1);
    let began = record.metadata.text(Metadata::STEP_STARTED_AT);
    let began = began.and_then(|text| Timestamp::parse(text).ok());
    let deadline = record.schedule.limits.as_deref().and_then(|limits| limits.deadline);
    let timeout = policy.timeout.span().map(|span| now.saturating_add(span));
    record.status = JobStatus::WaitingOnDeps;
    record.schedule.external = Some(Box::new(ExternalWait {
        token: format!("{attempt}-{secret}"),
        until: timeout.into_iter().chain(policy.limit(None, began, deadline)).min(),
        heartbeat_ms: policy.heartbeat.map(|span| span.as_millis()),
        heard_at: now,
    }));
    note(&mut record.schedule.waited_on, WaitKind::External);
    record.schedule.wait_reason = Some(WaitReason::new(WaitKind::External, DETAIL));
}

/// Checks that an attempt of a job waits for this command, under this token.
///
/// # Errors
/// It does not; nothing was changed.
pub fn check_token<'a>(
    record: &'a mut Record,
    command: RunCommand,
    token: &str,
) -> Result<&'a mut ExternalWait, ExternalError> {
    let (id, status) = (record.id.clone(), record.status);
    if let Effect::Refused(why) = command.effect_on_job(status) {
        return Err(ExternalError::Refused { id, status, why });
    }
    let Some(external) = record.schedule.external.as_deref_mut() else {
        return Err(ExternalError::NotWaiting { id, status });
    };
    if external.token == token {
        return Ok(external);
    }
    let attempt = |token: &str| token.split_once('-').and_then(|(attempt, _)| attempt.parse::<u32>().ok());
    match (attempt(token), attempt(&external.token)) {
        (Some(given), Some(current)) if given < current => {
            Err(ExternalError::OldToken { id, given, current })
        }
        _ => Err(ExternalError::WrongToken(id)),
    }
}

/// Returns how an attempt ended whose worker outside took too long, or gave no sign of life.
#[must_use]
pub fn overdue(external: &ExternalWait, now: Timestamp) -> Option<Ended> {
    let silent = external.silent_at().filter(|at| *at <= now);
    if external.until.is_some_and(|until| until <= now && silent.is_none_or(|silent| until <= silent)) {
        let summary = Some("the external completion timed out (exit 124)".to_owned());
        return Some(Ended { summary, ..Ended::timed_out(now) });
    }
    silent.map(|_| {
        let summary = Some("the external worker gave no sign of life (exit 124)".to_owned());
        Ended { code: "heartbeat".into(), summary, ..Ended::timed_out(now) }
    })
}

/// Gives back what the circuit breaker of a job gave for an attempt that comes to no end of its own: it was cancelled or
/// rewound.
pub fn release_permit(record: &mut Record, shared: &mut Shared) {
    let breaker = record.schedule.limits.as_deref().and_then(|limits| limits.breaker.as_ref());
    if let (Some(config), Some(permit)) = (breaker, permit_of(record)) {
        shared.breaker(&config.name, |breaker| breaker.released(permit));
    }
    record.metadata.clear(Metadata::BREAKER_PERMIT);
}
