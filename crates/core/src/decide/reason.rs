//! The vocabulary of decisions: reason codes and capabilities, with the numbers and names that logs keep.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Why a decision, an evaluation or a refusal is what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum ReasonCode {
    /// An evaluation found that a retry is allowed.
    OkPolicyEvaluate = 0x5343_0001,
    /// Reserved for a computation that needs no other word.
    OkDecisionCompute = 0x5343_0002,
    /// The next attempt has a due time.
    RetryScheduled = 0x5343_0010,
    /// As many retries as the policy allows were made.
    MaxRetriesReached = 0x5343_0011,
    /// The time for all attempts together is over, or would be when the retry starts.
    Timeout = 0x5343_0012,
    /// The failure is none that the policy retries.
    NotRetryable = 0x5343_0013,
    /// The deadline of the run is over, or would be when the retry starts.
    DeadlineExceeded = 0x5343_0014,
    /// Somebody cancelled the work.
    Cancelled = 0x5343_0015,
    /// The attempt has not ended yet.
    AttemptRunning = 0x5343_0016,
    /// The circuit breaker is open.
    CircuitOpen = 0x5343_0017,
    /// The shared retry budget has no token left.
    RetryBudgetExhausted = 0x5343_0018,
    /// The request is malformed.
    InputSchemaInvalid = 0x5343_00F1,
    /// The request lacks what an earlier stage has to provide.
    UpstreamInputMissing = 0x5343_00F2,
    /// The request asks for more than the engine's budgets allow.
    BudgetExceeded = 0x5343_00F3,
    /// The engine cannot give an answer that keeps its own invariants.
    InternalPipelineError = 0x5343_00F4,
}

impl ReasonCode {
    /// Every code, in the order of the numbers.
    pub const ALL: [Self; 15] = [
        Self::OkPolicyEvaluate,
        Self::OkDecisionCompute,
        Self::RetryScheduled,
        Self::MaxRetriesReached,
        Self::Timeout,
        Self::NotRetryable,
        Self::DeadlineExceeded,
        Self::Cancelled,
        Self::AttemptRunning,
        Self::CircuitOpen,
        Self::RetryBudgetExhausted,
        Self::InputSchemaInvalid,
        Self::UpstreamInputMissing,
        Self::BudgetExceeded,
        Self::InternalPipelineError,
    ];

    /// Returns the stable number.
    #[must_use]
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// Returns the stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OkPolicyEvaluate => "PH1_SCHED_OK_POLICY_EVALUATE",
            Self::OkDecisionCompute => "PH1_SCHED_OK_DECISION_COMPUTE",
            Self::RetryScheduled => "SCHED_RETRY_SCHEDULED",
            Self::MaxRetriesReached => "SCHED_MAX_RETRIES_REACHED",
            Self::Timeout => "SCHED_TIMEOUT",
            Self::NotRetryable => "SCHED_NOT_RETRYABLE",
            Self::DeadlineExceeded => "SCHED_DEADLINE_EXCEEDED",
            Self::Cancelled => "SCHED_CANCELLED",
            Self::AttemptRunning => "SCHED_ATTEMPT_RUNNING",
            Self::CircuitOpen => "SCHED_CIRCUIT_OPEN",
            Self::RetryBudgetExhausted => "SCHED_RETRY_BUDGET_EXHAUSTED",
            Self::InputSchemaInvalid => "PH1_SCHED_INPUT_SCHEMA_INVALID",
            Self::UpstreamInputMissing => "PH1_SCHED_UPSTREAM_INPUT_MISSING",
            Self::BudgetExceeded => "PH1_SCHED_BUDGET_EXCEEDED",
            Self::InternalPipelineError => "PH1_SCHED_INTERNAL_PIPELINE_ERROR",
        }
    }

    /// Returns the code with that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.name() == name)
    }
}

impl fmt::Display for ReasonCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for ReasonCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for ReasonCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::from_name(&name).ok_or_else(|| serde::de::Error::custom(format!("no reason code `{name}`")))
    }
}

/// What was asked of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Capability {
    /// What does the policy say about this failure?
    #[serde(rename = "SCHED_POLICY_EVALUATE")]
    PolicyEvaluate,
    /// What is to be done, given the evaluation?
    #[serde(rename = "SCHED_DECISION_COMPUTE")]
    DecisionCompute,
    /// A decision of the bare kernel.
    #[serde(rename = "SCHED_KERNEL")]
    Kernel,
    /// A delay of the bare backoff.
    #[serde(rename = "SCHED_DELAY")]
    Delay,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_listed_once_in_order_and_found_by_name() {
        assert!(ReasonCode::ALL.windows(2).all(|pair| pair[0].number() < pair[1].number()));
        for code in ReasonCode::ALL {
            assert_eq!(ReasonCode::from_name(code.name()), Some(code));
        }
        assert_eq!(ReasonCode::RetryBudgetExhausted.number(), 0x5343_0018);
    }
}
