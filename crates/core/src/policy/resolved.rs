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
use crate::event::Hold;
use crate::time::{Span, Timestamp};
use crate::work::call_user;

/// The first delay where a policy says nothing: long enough for a hiccup to pass.
pub const DEFAULT_BASE_DELAY: Span = Span::from_millis(500);
/// The longest delay where a policy says nothing: nobody should wonder whether anything still happens.
pub const DEFAULT_MAX_DELAY: Span = Span::from_millis(30_000);

/// What a piece of work runs under. Only [`Policy::resolved`] makes one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Resolved {
    /// How many attempts may follow the first.
    pub max_retries: u32,
    /// How long to wait before each of them.
    pub delays: Delays,
    /// How long one attempt may take.
    pub timeout: Limit,
    /// How long all attempts may take together.
    pub total_timeout: Limit,
    /// How long after the acceptance of its input the work may still run.
    pub deadline: Limit,
    /// What happens when the work has failed for good.
    pub on_failure: OnFailure,
    /// What to do once after the last attempt failed.
    pub fallback: Option<Fallback>,
    /// How the finished work is undone.
    pub compensation: Option<Compensation>,
    /// The failures that alone are retried; `None` for all.
    pub retryable_errors: Option<Vec<ErrorMatcher>>,
    /// The failures that are never retried.
    pub non_retryable_errors: Vec<ErrorMatcher>,
    /// The shared allowance that each retry is taken from.
    pub retry_budget: Option<RetryBudget>,
    /// What stops calling what keeps failing.
    pub circuit_breaker: Option<CircuitBreaker>,
    /// `None` where nobody said: see [`Resolved::mode_in_memory`] and [`Resolved::mode_with_store`].
    pub execution_mode: Option<ExecutionMode>,
    /// Who goes first when slots are few.
    pub priority: Priority,
    /// What makes two pieces of work the same.
    pub idempotency_key: Option<IdempotencyKey>,
    /// How long the work may wait for a slot.
    pub queue_timeout: Option<Span>,
    /// How many pieces of work may run at once.
    pub concurrency_limit: Option<ConcurrencyLimit>,
    /// How many pieces of work may start in any window.
    pub rate_limit: Option<RateLimit>,
    /// How long to wait before the first attempt.
    pub delay: Option<Span>,
    /// When the first attempt may start.
    pub scheduled_at: Option<Timestamp>,
    /// How long the work may be silent.
    pub heartbeat: Option<Span>,
    /// Whether the state of the run is kept as a whole after this work.
    pub checkpoint_after: bool,
    /// What the names of its telemetry begin with.
    pub telemetry_prefix: Option<String>,
    /// The level at which its events are logged.
    pub log_level: Option<LogLevel>,
    /// What telemetry and logs carry along.
    pub metadata: Map<String, serde_json::Value>,
    /// Which rule it is of, where limits count per rule.
    pub rule: Option<String>,
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
            rule: None,
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

    /// Tells whether the policy changes nothing: one call, and its outcome counts.
    ///
    /// A field that only says something to people does not count as a change.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        let Self {
            max_retries,
            delays: _,
            timeout,
            total_timeout,
            deadline,
            on_failure,
            fallback,
            compensation,
            retryable_errors: _,
            non_retryable_errors: _,
            retry_budget,
            circuit_breaker,
            execution_mode,
            priority,
            idempotency_key,
            queue_timeout,
            concurrency_limit,
            rate_limit,
            delay,
            scheduled_at,
            heartbeat,
            checkpoint_after,
            telemetry_prefix,
            log_level,
            metadata,
            rule: _,
        } = self;
        let limits = [timeout, total_timeout, deadline];
        *max_retries == 0
            && limits.into_iter().all(|limit| *limit == Limit::Infinity)
            && *on_failure == OnFailure::Halt
            && fallback.is_none()
            && compensation.is_none()
            && retry_budget.is_none()
            && circuit_breaker.is_none()
            && execution_mode.is_none()
            && *priority == Priority::Normal
            && idempotency_key.is_none()
            && queue_timeout.is_none()
            && concurrency_limit.is_none()
            && rate_limit.is_none()
            && delay.is_none()
            && scheduled_at.is_none()
            && heartbeat.is_none()
            && !checkpoint_after
            && telemetry_prefix.is_none()
            && log_level.is_none()
            && metadata.is_empty()
    }

    /// Tells whether work under this policy may have to wait before it begins: for a time, or until it is let in.
    #[must_use]
    pub fn is_gated(&self) -> bool {
        self.delay.is_some() || self.scheduled_at.is_some() || self.is_admitted()
    }

    /// Tells whether work under this policy has to be let in, each time it begins.
    #[must_use]
    pub fn is_admitted(&self) -> bool {
        self.rate_limit.is_some()
            || self.concurrency_limit.is_some()
            || self.circuit_breaker.is_some()
            || self.idempotency_key.is_some()
    }

    /// Returns why and until when the first attempt waits, of work that could begin now.
    #[must_use]
    pub fn begins_later(&self, now: Timestamp) -> Option<(Hold, Timestamp)> {
        let delay = self.delay.map(|delay| (Hold::Delay, now.saturating_add(delay)));
        let schedule = self.scheduled_at.map(|at| (Hold::Schedule, at));
        let later = delay.into_iter().chain(schedule).max_by_key(|(_, until)| *until);
        later.filter(|(_, until)| *until > now)
    }

    /// Returns when it is too late for work under this policy, whether it has begun or not: its deadline, that of the run,
    /// or the end of the time for all attempts.
    #[must_use]
    pub fn limit(
        &self,
        accepted_at: Option<Timestamp>,
        started_at: Option<Timestamp>,
        run_deadline: Option<Timestamp>,
    ) -> Option<Timestamp> {
        let deadline = accepted_at.and_then(|at| Some(at.saturating_add(self.deadline.span()?)));
        let total = started_at.and_then(|at| Some(at.saturating_add(self.total_timeout.span()?)));
        [deadline, total, run_deadline].into_iter().flatten().min()
    }

    /// Returns whether work under this policy that is too late ends without running anything and without telling a limit.
    #[must_use]
    pub fn only_fails_when_late(&self) -> bool {
        self.fallback.is_none() && self.idempotency_key.is_none() && self.on_failure != OnFailure::Pause
    }

    /// Returns whether a failure is one that this policy retries. Where a matcher panics, it is not.
    ///
    /// The failure's own word counts first, then what is never retried, then what alone is retried.
    #[must_use]
    pub fn retries(&self, failure: &Failure) -> bool {
        self.try_retries(failure).unwrap_or(false)
    }

    /// Returns whether a failure is one that this policy retries.
    ///
    /// # Errors
    /// A matcher of errors panicked.
    pub fn try_retries(&self, failure: &Failure) -> Result<bool, Failure> {
        let is_in = |errors: &[ErrorMatcher]| errors.iter().any(|matcher| matcher.matches(failure));
        call_user(|| {
            !failure.non_retryable
                && !is_in(&self.non_retryable_errors)
                && self.retryable_errors.as_deref().is_none_or(is_in)
        })
    }
}
