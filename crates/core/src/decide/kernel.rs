//! The kernel: one pure function of integers that decides every retry. No clock, no allocation, no error.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::reason::ReasonCode;
use crate::policy::{Breaker, CircuitBreaker, Delays, JitterSeed, OnOpen, Resolved};
use crate::time::{Span, Timestamp};

/// Decides what happens to a piece of work now: try again at a time, give up, or wait.
///
/// The order of the tests is the precedence of the reasons. WAIT and FAIL keep the attempt; only RETRY_AT
/// advances it, by one.
///
/// ```
/// # use tidewheel_core as tidewheel;
/// use tidewheel::decide::{self, Action, Outcome, RetryPolicy, Situation};
/// use tidewheel::policy::{JitterSeed, Policy};
/// use tidewheel::time::Timestamp;
///
/// let policy = RetryPolicy::from(&Policy::llm().resolved()?);
/// let now = Timestamp::from_millis(10_000);
/// let failed = Situation::failed(0, now, JitterSeed::new("run-1", "classify"));
/// let decision = decide::decide(&policy, &failed);
/// assert_eq!(decision.action, Action::RetryAt(Timestamp::from_millis(11_000)));
/// assert_eq!(decision.attempt_next, 1);
/// # Ok::<(), tidewheel::Problems>(())
/// ```
#[must_use]
pub fn decide(policy: &RetryPolicy, situation: &Situation) -> Decision {
    let keep = |action, reason| Decision { action, reason, attempt_next: situation.attempt };

    if situation.cancelled {
        return keep(Action::Fail, ReasonCode::Cancelled);
    }
    if let Some(reason) = limit_reached(policy, situation, situation.now) {
        return keep(Action::Fail, reason);
    }
    let Outcome::Failed { retryable, retry_after } = situation.outcome else {
        return keep(Action::Wait(earlier_limit(policy, situation)), ReasonCode::AttemptRunning);
    };
    if retries_are_spent(policy, situation) {
        return keep(Action::Fail, ReasonCode::MaxRetriesReached);
    }
    if !retryable {
        return match policy.on_not_retryable {
            OnNotRetryable::Fail => keep(Action::Fail, ReasonCode::NotRetryable),
            OnNotRetryable::Wait => keep(Action::Wait(None), ReasonCode::NotRetryable),
        };
    }
    if let CircuitView::OpenUntil(until) = situation.circuit
        && until > situation.now
    {
        return match policy.on_circuit_open {
            OnCircuitOpen::Wait => keep(Action::Wait(Some(until)), ReasonCode::CircuitOpen),
            OnCircuitOpen::Fail => keep(Action::Fail, ReasonCode::CircuitOpen),
        };
    }
    if situation.retry_tokens == Some(0) {
        return keep(Action::Fail, ReasonCode::RetryBudgetExhausted);
    }
    let backoff = policy.delays.after(situation.attempt, situation.seed);
    let due = situation.now.saturating_add(backoff.max(retry_after.unwrap_or(Span::ZERO)));
    if policy.lookahead
        && let Some(reason) = limit_reached(policy, situation, due)
    {
        return keep(Action::Fail, reason);
    }
    Decision {
        action: Action::RetryAt(due),
        reason: ReasonCode::RetryScheduled,
        // Invariant: the attempt is below max_retries here, so there is a next one.
        attempt_next: situation.attempt + 1,
    }
}

/// Tells whether the time for all attempts of the step is over now.
pub(super) fn total_timeout_is_over(policy: &RetryPolicy, situation: &Situation) -> bool {
    total_timeout_reached(policy, situation, situation.now)
}

/// Tells whether the policy allows no further attempt.
pub(super) fn retries_are_spent(policy: &RetryPolicy, situation: &Situation) -> bool {
    situation.attempt >= policy.max_retries
}

fn limit_reached(policy: &RetryPolicy, situation: &Situation, at: Timestamp) -> Option<ReasonCode> {
    if total_timeout_reached(policy, situation, at) {
        Some(ReasonCode::Timeout)
    } else if situation.run_deadline.is_some_and(|deadline| at >= deadline) {
        Some(ReasonCode::DeadlineExceeded)
    } else {
        None
    }
}

fn total_timeout_reached(policy: &RetryPolicy, situation: &Situation, at: Timestamp) -> bool {
    policy.total_timeout.is_some_and(|limit| at.has_reached(situation.step_started_at, limit))
}

fn earlier_limit(policy: &RetryPolicy, situation: &Situation) -> Option<Timestamp> {
    let timeout = policy.total_timeout.map(|limit| situation.step_started_at.saturating_add(limit));
    match (timeout, situation.run_deadline) {
        (Some(timeout), Some(deadline)) => Some(timeout.min(deadline)),
        (timeout, deadline) => timeout.or(deadline),
    }
}

/// What a policy says about retries, in the kernel's terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How many attempts may follow the first.
    pub max_retries: u32,
    /// How long to wait before each of them.
    pub delays: Delays,
    /// The time for all attempts together, counted from the start of the step.
    pub total_timeout: Option<Span>,
    /// What follows a failure that is not retryable.
    pub on_not_retryable: OnNotRetryable,
    /// Whether a retry that would start at or after a limit fails now.
    pub lookahead: bool,
    /// What an open circuit breaker does.
    pub on_circuit_open: OnCircuitOpen,
}

/// A policy in the kernel's terms: it always looks ahead, and what is not retryable fails.
impl From<&Resolved> for RetryPolicy {
    fn from(policy: &Resolved) -> Self {
        let on_open = policy.circuit_breaker.as_ref().map_or(OnOpen::Wait, |breaker| breaker.on_open);
        Self {
            max_retries: policy.max_retries,
            delays: policy.delays,
            total_timeout: policy.total_timeout.span(),
            on_not_retryable: OnNotRetryable::Fail,
            lookahead: true,
            on_circuit_open: match on_open {
                OnOpen::Wait => OnCircuitOpen::Wait,
                OnOpen::Fail | OnOpen::Skip => OnCircuitOpen::Fail,
            },
        }
    }
}

/// What follows a failure that is not retryable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnNotRetryable {
    /// The work fails.
    #[default]
    Fail,
    /// The work waits until somebody changes something.
    Wait,
}

/// What an open circuit breaker does to a retry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnCircuitOpen {
    /// The retry waits until the breaker lets a probe through.
    #[default]
    Wait,
    /// The work fails.
    Fail,
}

/// Everything outside the policy that a decision depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Situation {
    /// The present.
    pub now: Timestamp,
    /// When the first attempt of the step started.
    pub step_started_at: Timestamp,
    /// When the whole run must be over.
    pub run_deadline: Option<Timestamp>,
    /// The attempt in question, counted from zero.
    pub attempt: u32,
    /// What became of it.
    pub outcome: Outcome,
    /// What the circuit breaker says.
    pub circuit: CircuitView,
    /// The tokens left in the retry budget; `None` without one.
    pub retry_tokens: Option<u32>,
    /// Whether somebody cancelled the work.
    pub cancelled: bool,
    /// The identity that jitter depends on.
    pub seed: JitterSeed,
}

impl Situation {
    /// Returns the plain case: an attempt that started and failed just now, with nothing else in the way.
    #[must_use]
    pub const fn failed(attempt: u32, now: Timestamp, seed: JitterSeed) -> Self {
        Self {
            now,
            step_started_at: now,
            run_deadline: None,
            attempt,
            outcome: Outcome::Failed { retryable: true, retry_after: None },
            circuit: CircuitView::Closed,
            retry_tokens: None,
            cancelled: false,
            seed,
        }
    }
}

/// What became of an attempt that did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It has not ended.
    Running,
    /// It failed.
    Failed {
        /// Whether the policy retries this failure; the policy is asked, the kernel gets the answer.
        retryable: bool,
        /// How long the failure itself asked to wait.
        retry_after: Option<Span>,
    },
}

/// What the kernel has to know of a circuit breaker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CircuitView {
    /// Nothing in the way.
    #[default]
    Closed,
    /// Open until then; at that instant a probe may pass.
    OpenUntil(Timestamp),
}

impl CircuitView {
    /// Returns what a breaker says now to a retry.
    #[must_use]
    pub fn of(breaker: &Breaker, config: &CircuitBreaker, now: Timestamp) -> Self {
        breaker.refuses_until(config, now).map_or(Self::Closed, Self::OpenUntil)
    }
}

/// What to do, why, and the attempt that comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What to do.
    pub action: Action,
    /// Why.
    pub reason: ReasonCode,
    /// The next attempt: one more for a retry, the same otherwise.
    pub attempt_next: u32,
}

/// The three things that can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Try again at that instant.
    RetryAt(Timestamp),
    /// Give up.
    Fail,
    /// Do nothing now; look again at that instant if one is known.
    Wait(Option<Timestamp>),
}

impl Action {
    /// Returns the name that logs use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::RetryAt(_) => "RETRY_AT",
            Self::Fail => "FAIL",
            Self::Wait(_) => "WAIT",
        }
    }

    /// Returns the due time of a retry.
    #[must_use]
    pub const fn due(self) -> Option<Timestamp> {
        match self {
            Self::RetryAt(due) => Some(due),
            Self::Fail | Self::Wait(_) => None,
        }
    }

    /// Returns when a wait is to be looked at again.
    #[must_use]
    pub const fn wake(self) -> Option<Timestamp> {
        match self {
            Self::Wait(wake) => wake,
            Self::Fail | Self::RetryAt(_) => None,
        }
    }
}

/// The stored form of a decision: flat, with every field always there.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DecisionForm {
    action: String,
    reason_code: ReasonCode,
    attempt_next_index: u32,
    next_due_at_ns: Option<Timestamp>,
    wake_at_ns: Option<Timestamp>,
}

impl Serialize for Decision {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        DecisionForm {
            action: self.action.name().to_owned(),
            reason_code: self.reason,
            attempt_next_index: self.attempt_next,
            next_due_at_ns: self.action.due(),
            wake_at_ns: self.action.wake(),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Decision {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let form = DecisionForm::deserialize(deserializer)?;
        let action = match (form.action.as_str(), form.next_due_at_ns, form.wake_at_ns) {
            ("RETRY_AT", Some(due), None) => Action::RetryAt(due),
            ("FAIL", None, None) => Action::Fail,
            ("WAIT", None, wake) => Action::Wait(wake),
            (action, ..) => {
                let message = format!("action `{action}` does not fit its times");
                return Err(serde::de::Error::custom(message));
            }
        };
        Ok(Self { action, reason: form.reason_code, attempt_next: form.attempt_next_index })
    }
}
