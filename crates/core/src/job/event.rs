//! What happened to a job, one line each: why it was started again, and what came of it.

use serde::{Deserialize, Serialize};

use super::outcome::NodeOutcome;
use super::time_text;
use crate::decide::Decision;
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
