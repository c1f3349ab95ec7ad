//! A policy in which every field has its value. One exists only if nothing in it contradicts itself.

use serde_json::Map;

use super::backoff::{Backoff, Delays, Jitter};
use super::functions::{Compensation, Fallback, IdempotencyKey};
use super::options::{
    CircuitBreaker, ConcurrencyLimit, ErrorMatcher, ExecutionMode, Limit, LogLevel, OnFailure, Priority,
    RateLimit, RetryBudget,
};
use super::view::Failure;
use super::written::Policy;
use crate::time::{Span, Timestamp};

/// The first delay where a policy says nothing: long enough for a hiccup to pass.
pub const DEFAULT_BASE_DELAY: Span = Span::from_millis(500);
/// The longest delay where a policy says nothing: nobody should wonder whether anything still happens.
pub const DEFAULT_MAX_DELAY: Span = Span::from_millis(30_000);

/// What a piece of work runs under. The fields mean what they mean in [`Policy`].
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "each field is described by the builder method of the same name")]
pub struct Resolved {
    pub max_retries: u32,
    pub delays: Delays,
    pub timeout: Limit,
    pub total_timeout: Limit,
    pub deadline: Limit,
    pub on_failure: OnFailure,
    pub fallback: Option<Fallback>,
    pub compensation: Option<Compensation>,
    pub retryable_errors: Option<Vec<ErrorMatcher>>,
    pub non_retryable_errors: Vec<ErrorMatcher>,
    pub retry_budget: Option<RetryBudget>,
    pub circuit_breaker: Option<CircuitBreaker>,
    /// `None` where nobody said: see [`Resolved::mode_in_memory`] and [`Resolved::mode_with_store`].
    pub execution_mode: Option<ExecutionMode>,
    pub priority: Priority,
    pub idempotency_key: Option<IdempotencyKey>,
    pub queue_timeout: Option<Span>,
    pub concurrency_limit: Option<ConcurrencyLimit>,
    pub rate_limit: Option<RateLimit>,
    pub delay: Option<Span>,
    pub scheduled_at: Option<Timestamp>,
    pub heartbeat: Option<Span>,
    pub checkpoint_after: bool,
    pub telemetry_prefix: Option<String>,
    pub log_level: Option<LogLevel>,
    pub metadata: Map<String, serde_json::Value>,
}

impl Default for Resolved {
    fn default() -> Self {
        Self::laid_over_defaults(&Policy::new())
    }
}

impl Resolved {
    /// Fills in what a policy does not say. The policy must have been checked.
    pub(super) fn laid_over_defaults(policy: &Policy) -> Self {
        let written = policy.clone();
        Self {
            max_retries: written.max_retries.unwrap_or(0),
            delays: Delays {
                backoff: written.backoff.unwrap_or(Backoff::None),
                jitter: written.jitter.unwrap_or(Jitter::None),
                base: written.base_delay.unwrap_or(DEFAULT_BASE_DELAY),
                max: written.max_delay.unwrap_or(DEFAULT_MAX_DELAY),
            },
            timeout: written.timeout.unwrap_or_default(),
            total_timeout: written.total_timeout.unwrap_or_default(),
            deadline: written.deadline.unwrap_or_default(),
            on_failure: written.on_failure.unwrap_or(OnFailure::Halt),
            fallback: written.fallback,
            compensation: written.compensation,
            retryable_errors: written.retryable_errors,
            non_retryable_errors: written.non_retryable_errors.unwrap_or_default(),
            retry_budget: written.retry_budget,
            circuit_breaker: written.circuit_breaker,
            execution_mode: written.execution_mode,
            priority: written.priority.unwrap_or(Priority::Normal),
            idempotency_key: written.idempotency_key,
            queue_timeout: written.queue_timeout,
            concurrency_limit: written.concurrency_limit,
            rate_limit: written.rate_limit,
            delay: written.delay,
            scheduled_at: written.scheduled_at,
            heartbeat: written.heartbeat,
            checkpoint_after: written.checkpoint_after.unwrap_or(false),
            telemetry_prefix: written.telemetry_prefix,
            log_level: written.log_level,
            metadata: written.metadata.unwrap_or_default(),
        }
    }

    /// Returns the mode of execution in memory: `sync` where nobody said.
    #[must_use]
    pub fn mode_in_memory(&self) -> ExecutionMode {
        self.execution_mode.unwrap_or(ExecutionMode::Sync)
    }

    /// Returns the mode of execution with a store: `durable` where nobody said.
    #[must_use]
    pub fn mode_with_store(&self) -> ExecutionMode {
        self.execution_mode.unwrap_or(ExecutionMode::Durable)
    }

    /// Tells whether a failure is one that this policy retries.
    ///
    /// The failure's own word counts first, then what is never retried, then what alone is retried.
    #[must_use]
    pub fn retries(&self, failure: &Failure) -> bool {
        let is_in = |errors: &[ErrorMatcher]| errors.iter().any(|matcher| matcher.matches(failure));
        !failure.non_retryable
            && !is_in(&self.non_retryable_errors)
            && self.retryable_errors.as_deref().is_none_or(is_in)
    }
}
