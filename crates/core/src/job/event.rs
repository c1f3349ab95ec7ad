//! What happened to a job, one line each: why it was started again, and what came of it.

use serde::{Deserialize, Serialize};

use super::ended::Liveness;
use super::outcome::NodeOutcome;
use super::time_text;
use crate::decide::Decision;
use crate::policy::ErrorCode;
use crate::time::Timestamp;

/// One thing that happened to a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobEvent {
    /// When.
    #[serde(with = "time_text")]
    pub at: Timestamp,
    /// The start that it belongs to, counted from one over the life of the job; zero before the first.
    pub attempt: u32,
    /// What.
    pub event: JobEventKind,
}

/// What a decision about a failed attempt was about, beside its exit code: recovery needs all of it to repeat the
/// decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoggedFailure {
    /// What policies match the failure by.
    pub code: ErrorCode,
    /// Whether another attempt would end alike.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub non_retryable: bool,
    /// How the loss of its supervisor was noticed, if that was the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub liveness: Option<Liveness>,
    /// The last lines of its stderr, which the message ends with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complaint: Option<String>,
}

/// What happened to a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobEventKind {
    /// It was started.
    Dispatched {
        /// The attempt that its policy counts, from zero.
        policy_attempt: u32,
        /// Where the output of this attempt begins, counted from the first byte that was ever written to the log.
        stdout_offset: u64,
        /// Where its complaints begin.
        stderr_offset: u64,
    },
    /// An attempt failed, and this was decided.
    AttemptFailed {
        /// The exit code, if there was one.
        exit_code: Option<i32>,
        /// What happened.
        message: String,
        /// What follows, and why.
        decision: Decision,
        /// What the decision was about; releases before this field wrote none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<LoggedFailure>,
    },
    /// A start did not come about.
    Withdrawn {
        /// Why.
        reason: String,
    },
    /// It is over.
    Completed {
        /// How its node ended.
        outcome: NodeOutcome,
        /// The code.
        exit_code: Option<i32>,
        /// What happened.
        summary: Option<String>,
    },
    /// It was rewound.
    Rewound {
        /// Who wanted it: a person, or the node whose loop came back.
        by: String,
    },
    /// A person approved or rejected it.
    Decided {
        /// Whether it was approved.
        approved: bool,
        /// Who.
        by: String,
    },
}
