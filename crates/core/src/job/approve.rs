//! What a person says to a job that waits for an approval.

use super::ended::BLOCKED;
use super::event::{JobEvent, JobEventKind};
use super::finish::conclude;
use super::id::JobId;
use super::metadata::Metadata;
use super::outcome::JobOutcome;
use super::record::Record;
use super::reset::begin_deadline_again;
use super::schedule::{Approval, ApprovalState, WaitKind, WaitReason};
use super::settle::note;
use super::status::JobStatus;
use crate::time::Timestamp;

/// Why nobody can approve or reject a job.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApproveError {
    /// It needs no approval.
    #[error("job {0} is not configured for approval gating")]
    NotGated(JobId),
    /// It runs already.
    #[error("job {0} is running")]
    Running(JobId),
    /// It is over.
    #[error("job {id} is terminal ({status})")]
    Terminal {
        /// The job.
        id: JobId,
        /// Where it stands.
        status: JobStatus,
    },
    /// Somebody did so before.
    #[error("job {id} is already {state}")]
    Decided {
        /// The job.
        id: JobId,
        /// What was said.
        state: ApprovalState,
    },
}

/// Who decides, and when.
#[derive(Clone, Copy, Debug)]
pub struct By<'a> {
    /// The person.
    pub actor: &'a str,
    /// The instant.
    pub at: Timestamp,
}

/// Approves a job. The next pass asks its other gates.
///
/// # Errors
/// There is nothing to approve. Nothing was changed.
pub fn approve(record: &mut Record, by: By<'_>) -> Result<JobEvent, ApproveError> {
    let approval = open_approval(record)?;
    approval.state = ApprovalState::Approved;
    approval.decided_at = Some(by.at);
    approval.decided_by = Some(by.actor.to_owned());
    approval.reason = None;
    if record.metadata.get(Metadata::PAUSED).is_some() {
        // It failed, and somebody gives it all its attempts and all its time again.
        for name in [Metadata::POLICY_ATTEMPT, Metadata::STEP_STARTED_AT, Metadata::FALLBACK] {
            record.metadata.clear(name);
        }
        record.schedule.not_before = None;
        begin_deadline_again(record, by.at);
    }
    Ok(event(record, true, by))
}

/// Rejects a job: it is over.
///
/// # Errors
/// There is nothing to reject. Nothing was changed.
pub fn reject(
    record: &mut Record,
    reason: Option<&str>,
    by: By<'_>,
) -> Result<(JobOutcome, JobEvent), ApproveError> {
    let reason = reason.filter(|reason| !reason.trim().is_empty());
    let approval = open_approval(record)?;
    approval.state = ApprovalState::Rejected;
    approval.decided_at = Some(by.at);
    approval.decided_by = Some(by.actor.to_owned());
    approval.reason = reason.map(str::to_owned);
    let detail = reason.unwrap_or("approval rejected").to_owned();
    let ended = (JobStatus::BlockedByApproval, by.at);
    let outcome = conclude(record, Some(BLOCKED), Some(detail.clone()), Vec::new(), ended);
    note(&mut record.schedule.waited_on, WaitKind::Approval);
    record.schedule.wait_reason = Some(WaitReason::new(WaitKind::Approval, detail));
    Ok((outcome, event(record, false, by)))
}

fn open_approval(record: &mut Record) -> Result<&mut Approval, ApproveError> {
    let (id, status) = (&record.id, record.status);
    let Some(approval) = record.schedule.approval.as_mut().filter(|approval| approval.required) else {
        return Err(ApproveError::NotGated(id.clone()));
    };
    if status == JobStatus::Running {
        return Err(ApproveError::Running(id.clone()));
    }
    if status.is_terminal() {
        return Err(ApproveError::Terminal { id: id.clone(), status });
    }
    match approval.state {
        ApprovalState::Pending => Ok(approval),
        state @ (ApprovalState::Approved | ApprovalState::Rejected) => {
            Err(ApproveError::Decided { id: id.clone(), state })
        }
    }
}

fn event(record: &Record, approved: bool, by: By<'_>) -> JobEvent {
    let attempt = record.metadata.number(Metadata::NODE_ATTEMPT).unwrap_or(0);
    JobEvent { at: by.at, attempt, event: JobEventKind::Decided { approved, by: by.actor.to_owned() } }
}
