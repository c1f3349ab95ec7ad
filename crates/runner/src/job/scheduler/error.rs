//! Why the scheduler did not do what it was asked.

use tidewheel_core::job::{ApproveError, ArtifactError, CancelError, ExternalError, JobId, RewindError};
use tidewheel_store::jobs::JobStoreError;

/// Why the scheduler did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum SchedulerError {
    /// There is no such job.
    #[error("no background job {0}")]
    NoJob(JobId),
    /// The store could not do its part.
    #[error(transparent)]
    Store(#[from] JobStoreError),
    /// The job cannot be approved or rejected.
    #[error(transparent)]
    Approve(#[from] ApproveError),
    /// The job cannot be cancelled.
    #[error(transparent)]
    Cancel(#[from] CancelError),
    /// The job cannot be ended from outside.
    #[error(transparent)]
    External(#[from] ExternalError),
    /// The job cannot be retried.
    #[error(transparent)]
    Rewind(#[from] RewindError),
    /// Something is in the way of a retry.
    #[error("no job was reset")]
    NotReset(#[source] JobStoreError),
    /// The job did not end in time.
    #[error("job {0} was asked to end and has not; its supervisor is still at it")]
    StillRunning(JobId),
    /// Its processes could not be ended.
    #[error("cannot end the processes of job {id}")]
    Processes {
        /// The job.
        id: JobId,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// A file of the job could not be used while it was ended.
    #[error("job {id} was asked to end, and may still run")]
    NotEnded {
        /// The job.
        id: JobId,
        /// What went wrong.
        #[source]
        source: JobStoreError,
    },
    /// A supervisor was started by hand.
    #[error("job {0} is not handed over to this process: the scheduler starts its supervisor")]
    NotHandedOver(JobId),
    /// Another process serves the directory already.
    #[error("another daemon serves this directory already")]
    AlreadyServed,
    /// It says that it makes something that cannot be.
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    /// What came of an attempt is known, and is not on record.
    #[error("job {id} has ended ({ended}), and that could not be put on record: {why}")]
    Unwritten {
        /// The job.
        id: JobId,
        /// How it ended.
        ended: String,
        /// What was in the way.
        why: String,
    },
    /// Somebody else enqueued or removed something in between.
    #[error("{0}")]
    Enqueue(String),
}

impl SchedulerError {
    /// Tells whether there was no room for what was to be written, of which there may be some later.
    #[must_use]
    pub fn lacks_room(&self) -> bool {
        matches!(self, Self::Store(error) if error.lacks_room())
    }
}

/// Says what went wrong, with its causes.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
