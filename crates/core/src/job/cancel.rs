//! What a cancellation changes in the record of a job. Ending its process is somebody else's part, and comes first.

use super::ended::CANCELLED;
use super::event::{JobEvent, JobEventKind};
use super::finish::conclude;
use super::id::JobId;
use super::metadata::Metadata;
use super::outcome::{JobOutcome, NodeOutcome};
use super::record::Record;
use super::reset::Cleanup;
use super::status::JobStatus;
use crate::command::{Effect, RunCommand};
use crate::time::Timestamp;

/// Why a job cannot be cancelled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("job {0} is not active")]
pub struct CancelError(pub JobId);

/// Writes into the record of a job that a person ended it, and what came of cleaning up after it.
///
/// # Errors
/// It is over already. Nothing was changed.
pub fn cancel(
    record: &mut Record,
    cleanup: &Cleanup,
    at: Timestamp,
) -> Result<(JobOutcome, JobEvent), CancelError> {
    if RunCommand::Cancel.effect_on_job(record.status) != Effect::Acts {
        return Err(CancelError(record.id.clone()));
    }
    let outcome = conclude(record, Some(CANCELLED), None, Vec::new(), (JobStatus::Cancelled, at));
    note_cleanup(record, cleanup);
    let (outcome_of_node, exit_code) = (NodeOutcome::Cancelled, Some(CANCELLED));
    let event = JobEventKind::Completed { outcome: outcome_of_node, exit_code, summary: None };
    let attempt = outcome.attempt;
    Ok((outcome, JobEvent { at, attempt, event }))
}

/// Writes into a record what came of cleaning up after a cancellation.
pub fn note_cleanup(record: &mut Record, cleanup: &Cleanup) {
    let metadata = &mut record.metadata;
    metadata.set(Metadata::CANCEL_CLEANUP_STATUS, cleanup.name());
    match cleanup {
        Cleanup::Done => {
            metadata.clear(Metadata::CANCEL_CLEANUP_ERROR);
            metadata.clear_all("worktree_");
            metadata.set(Metadata::EXECUTION_ROOT, ".");
        }
        Cleanup::Skipped => metadata.clear(Metadata::CANCEL_CLEANUP_ERROR),
        Cleanup::Degraded(error) => metadata.set(Metadata::CANCEL_CLEANUP_ERROR, error.as_str()),
    }
}
