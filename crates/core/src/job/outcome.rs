//! How a job ended, in a file of its own: what is left when its supervisor dies before it can tell the scheduler.

use serde::{Deserialize, Serialize};

use super::artifact::Artifact;
use super::id::JobId;
use super::status::JobStatus;
use super::time_text;
use crate::policy::{ErrorCode, word_enum};
use crate::time::Timestamp;

word_enum! {
    /// How a node ended.
    pub enum NodeOutcome {
        /// It did what it should.
        Succeeded = "succeeded",
        /// It did not.
        Failed = "failed",
        /// Somebody has to do something first.
        Blocked = "blocked",
        /// A person ended it.
        Cancelled = "cancelled",
        /// It was not needed.
        Skipped = "skipped",
    }
}

impl NodeOutcome {
    /// Returns how a node ended whose job stands there; `None` while it is active.
    #[must_use]
    pub const fn of(status: JobStatus) -> Option<Self> {
        match status {
            JobStatus::Queued
            | JobStatus::WaitingOnDeps
            | JobStatus::WaitingOnApproval
            | JobStatus::WaitingOnLocks
            | JobStatus::Running => None,
            JobStatus::Succeeded => Some(Self::Succeeded),
            JobStatus::Failed => Some(Self::Failed),
            JobStatus::Cancelled => Some(Self::Cancelled),
            JobStatus::BlockedByDependency | JobStatus::BlockedByApproval => Some(Self::Blocked),
            JobStatus::Skipped => Some(Self::Skipped),
        }
    }
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobOutcome {
    /// The version of this form.
    pub version: u32,
    /// The job.
    pub job_id: JobId,
    /// The start that it is the outcome of, counted from one over the life of the job.
    pub attempt: u32,
    /// Where the job stands.
    pub status: JobStatus,
    /// How its node ended.
    pub outcome: NodeOutcome,
    /// The code.
    pub exit_code: Option<i32>,
    /// What its policy knows the failure by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<ErrorCode>,
    /// Whether another attempt would end alike.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub non_retryable: bool,
    /// The last lines of its stderr, where the outcome stands for an end that is not on record yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complaint: Option<String>,
    /// When the attempt started.
    #[serde(default, with = "time_text::option")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(with = "time_text")]
    pub finished_at: Timestamp,
    /// What happened, in a sentence.
    pub summary: Option<String>,
    /// What it made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
}

impl JobOutcome {
    /// The version of the outcomes that this release writes.
    pub const VERSION: u32 = 1;

    /// Returns where the outcome of a job is, relative to the root.
    #[must_use]
    pub fn path(id: &JobId) -> String {
        format!(".tidewheel/jobs/{id}/outcome.json")
    }
}
