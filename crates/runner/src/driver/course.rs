//! The course of a piece of work: attempt, outcome, decision, and again. It knows no clock and runs nothing;
//! whoever drives the work tells it what happened and does what it says.

use std::sync::Arc;

use tidewheel_core::decide::{self, Action, CircuitView, ReasonCode, Record, RetryPolicy, Situation};
use tidewheel_core::event::FailedAttempt;
use tidewheel_core::fact::Value;
use tidewheel_core::policy::{Failure, Fallback, JitterSeed, OnFailure, OnOpen, Recovery, Resolved};
use tidewheel_core::time::{Span, Timestamp};
use tidewheel_core::work::call_user;
use tidewheel_core::{Executed, Outcome, Runnable};

use crate::telemetry;

/// Where a piece of work is under its policy.
#[derive(Clone, Debug)]
pub struct Course {
    policy: Arc<Resolved>,
    started_at: Timestamp,
    deadline: Option<Timestamp>,
    /// The failure that a fallback is to help out of, once it was asked.
    recovering: Option<Box<FailedAttempt>>,
    /// Whether its circuit breaker did not let the last attempt begin.
    is_shut: bool,
    /// Whether what comes of it is stored.
    is_stored: bool,
}

/// What is to be done with a piece of work.
#[derive(Debug)]
pub enum Turn {
    /// Run it now, this way.
    Run {
        /// The attempt, or what a fallback put in its place.
        runnable: Box<Runnable>,
        /// When it has to be over.
        until: Option<Until>,
    },
    /// Wait, then begin the next attempt.
    Retry(Box<FailedAttempt>),
    /// Wait until a person says how it goes on.
    Pause(Box<FailedAttempt>),
    /// Nothing more: this came of it.
    Over(Box<Executed>),
}

/// What a decision about a failure has to know of what is shared with others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// What the circuit breaker says.
    pub circuit: CircuitView,
    /// The tokens left for retries; `None` without a budget.
    pub retry_tokens: Option<u32>,
}

/// When an attempt has to be over, and because of what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Until {
    /// When.
    pub at: Timestamp,
    /// Because of what.
    pub bound: Bound,
    /// What bounds it however late it begins, where the time of the attempt itself is shorter.
    outer: Option<(Timestamp, Bound)>,
}

/// What bounds an attempt in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The time of one attempt.
    Timeout(Span),
    /// The time of all attempts together.
    TotalTimeout(Span),
    /// The deadline of what caused it.
    Deadline,
}

impl Until {
    /// Returns the bound of an attempt that began only now, after it waited for a slot: the time of one attempt
    /// counts from there, all else does not.
    ///
    /// # Errors
    /// The failure of an attempt for which it is too late.
    pub fn begun_at(self, now: Timestamp) -> Result<Self, Failure> {
        let until = match self.bound {
            Bound::Timeout(span) => {
                let at = now.saturating_add(span);
                match self.outer {
                    Some((outer, bound)) if outer < at => Self { at: outer, bound, outer: None },
                    Some(_) | None => Self { at, ..self },
                }
            }
            Bound::TotalTimeout(_) | Bound::Deadline => self,
        };
        match until.bound {
            Bound::TotalTimeout(_) if until.at <= now => Err(too_late_for_all()),
            Bound::Deadline if until.at <= now => Err(too_late_at_all()),
            Bound::Timeout(_) | Bound::TotalTimeout(_) | Bound::Deadline => Ok(until),
        }
    }

    /// Returns the same bound as another clock shows it.
    pub(crate) fn shifted(self, clock: impl Fn(Timestamp) -> Timestamp) -> Self {
        Self { at: clock(self.at), outer: self.outer.map(|(at, bound)| (clock(at), bound)), ..self }
    }

    /// Returns the failure of an attempt that was not over in time.
    #[must_use]
    pub fn failure(&self) -> Failure {
        match self.bound {
            Bound::Timeout(span) => Failure::new(format!("took longer than {span}")).code("timeout"),
            Bound::TotalTimeout(span) => {
                Failure::new(format!("all attempts together took longer than {span}")).code("timeout")
            }
            Bound::Deadline => Failure::new("was not over at its deadline").code("deadline_exceeded"),
        }
    }
}

impl Course {
    /// Returns the course of a piece of work under a policy.
    ///
    /// Deadlines count from the acceptance of the input that caused the work, or from now if nobody knows it.
    /// The deadline of the run holds with any policy.
    #[must_use]
    pub fn new(
        runnable: &Runnable,
        policy: Arc<Resolved>,
        run_deadline: Option<Timestamp>,
        now: Timestamp,
    ) -> Self {
        let accepted_at = runnable.accepted_at().unwrap_or(now);
        let own = policy.deadline.span().map(|span| accepted_at.saturating_add(span));
        let deadline = match (own, run_deadline) {
            (Some(own), Some(of_run)) => Some(own.min(of_run)),
            (own, of_run) => own.or(of_run),
        };
        Self {
            policy,
            started_at: runnable.started_at().unwrap_or(now),
            deadline,
            recovering: None,
            is_shut: false,
            is_stored: false,
        }
    }

    /// Says that what comes of it is stored: a value that JSON cannot carry is a failure.
    #[must_use]
    pub(crate) fn for_store(self) -> Self {
        Self { is_stored: true, ..self }
    }

    /// Returns the policy.
    #[must_use]
    pub const fn policy(&self) -> &Arc<Resolved> {
        &self.policy
    }

    /// Returns when it is too late for another attempt.
    pub(crate) fn limit(&self) -> Option<Timestamp> {
        self.total_timeout().map(|until| until.at).into_iter().chain(self.deadline).min()
    }

    /// Begins an attempt, unless it is too late for it.
    #[must_use]
    pub fn begin(&mut self, runnable: Runnable, now: Timestamp) -> Turn {
        let late = if self.deadline.is_some_and(|deadline| now >= deadline) {
            Some(too_late_at_all())
        } else if self.total_timeout().is_some_and(|until| now >= until.at) {
            Some(too_late_for_all())
        } else {
            None
        };
        match late {
            None => {
                self.is_shut = false;
                let outer = [self.total_timeout(), self.deadline()];
                let outer = outer.into_iter().flatten().min_by_key(|until| until.at);
                Turn::Run { runnable: Box::new(runnable), until: self.timeout_within(outer, now) }
            }
            Some(mut failure) => {
                let decided = self.decide(&runnable, &mut failure, Known::default(), now);
                match self.give_up(runnable, FailedAttempt { failure, decided }, now) {
                    Turn::Over(executed) => over(executed.unbegun()),
                    turn @ (Turn::Run { .. } | Turn::Retry(_) | Turn::Pause(_)) => turn,
                }
            }
        }
    }

    /// Ends an attempt that its circuit breaker does not let begin.
    #[must_use]
    pub fn shut(&mut self, runnable: Runnable, until: Timestamp, now: Timestamp) -> Turn {
        let name = self.policy.circuit_breaker.as_ref().map_or("", |breaker| breaker.name.as_str());
        let message = format!("circuit breaker `{name}` is open until {until}");
        let known = Known { circuit: CircuitView::OpenUntil(until), ..Known::default() };
        self.is_shut = true;
        self.end(runnable, Outcome::Failed(Failure::new(message).code("circuit_open")), known, now)
    }

    /// Tells whether what comes of the work now is that of a fallback.
    #[must_use]
    pub const fn is_recovering(&self) -> bool {
        self.recovering.is_some()
    }

    /// Takes what came of an attempt, or of the fallback, and says what follows.
    #[must_use]
    pub fn end(&mut self, runnable: Runnable, outcome: Outcome, known: Known, now: Timestamp) -> Turn {
        let mut failure = match (outcome, self.recovering.take()) {
            (Outcome::Failed(failure), None) => failure,
            (Outcome::Failed(failure), Some(last)) => {
                return self.fail_twice(runnable, *last, &failure, now);
            }
            (outcome, recovering) => {
                let executed = runnable.executed(outcome).ended_at(now);
                return over(match recovering {
                    None => executed,
                    Some(last) => executed.decided(*last),
                });
            }
        };
        let decided = self.decide(&runnable, &mut failure, known, now);
        let failed = FailedAttempt { failure, decided };
        match decided.decision.action {
            Action::RetryAt(_) | Action::Wait(_) => {
                telemetry::retry(&runnable, &self.policy, &failed);
                Turn::Retry(Box::new(failed))
            }
            Action::Fail => self.give_up(runnable, failed, now),
        }
    }

    fn decide(&self, runnable: &Runnable, failure: &mut Failure, known: Known, now: Timestamp) -> Record {
        let seed = JitterSeed::new(runnable.run_id().as_str(), &runnable.id().to_string());
        // A matcher that panics gives no answer, and without one nothing is tried again.
        let retryable = self.policy.try_retries(failure).unwrap_or_else(|panic| {
            failure.message =
                format!("{}; a matcher of errors in its policy panicked: {}", failure.message, panic.message);
            false
        });
        let situation = Situation {
            step_started_at: self.started_at,
            run_deadline: self.deadline,
            outcome: decide::Outcome::Failed { retryable, retry_after: failure.retry_after },
            circuit: known.circuit,
            retry_tokens: known.retry_tokens,
            ..Situation::failed(runnable.attempt(), now, seed)
        };
        Record::decide(RetryPolicy::from(self.policy.as_ref()), situation)
    }

    /// There is no further attempt: the fallback may help, once, unless the deadline is over.
    fn give_up(&mut self, runnable: Runnable, last: FailedAttempt, now: Timestamp) -> Turn {
        let is_late = self.deadline.is_some_and(|deadline| now >= deadline);
        let is_cancelled = last.decided.decision.reason == ReasonCode::Cancelled;
        let fallback = self.policy.fallback.as_ref().filter(|_| !is_late && !is_cancelled);
        let Some(fallback) = fallback else { return self.fail(runnable, last, now) };
        telemetry::fallback(&runnable, &self.policy, &last.failure);
        let recovery = match fallback {
            Fallback::Value(value) => Recovery::Value(Value::new(value.clone())),
            Fallback::Overrides(overrides) => Recovery::RetryWith(overrides.clone()),
            Fallback::Function(function) => {
                let ask = || function.call()(&runnable.node(), &runnable.input(), &last.failure);
                match call_user(ask) {
                    Ok(recovery) => recovery,
                    Err(failure) => {
                        return self.fail_twice(runnable, last, &failure, now);
                    }
                }
            }
        };
        let other = match recovery {
            Recovery::Value(value) => {
                if self.is_stored
                    && let Some(failure) = value.unserialisable()
                {
                    return self.fail_twice(runnable, last, &failure, now);
                }
                let executed = runnable.executed(Outcome::Completed(value)).ended_at(now);
                return over(executed.decided(last));
            }
            Recovery::RetryWith(overrides) => runnable.with_overrides(overrides),
            Recovery::Run(work) => runnable.with_work(work),
        };
        self.recovering = Some(Box::new(last));
        Turn::Run { runnable: Box::new(other), until: self.timeout_within(self.deadline(), now) }
    }

    /// The fallback failed, too.
    fn fail_twice(
        &self,
        runnable: Runnable,
        mut last: FailedAttempt,
        failure: &Failure,
        now: Timestamp,
    ) -> Turn {
        last.failure.message = format!("{}; its fallback failed, too: {failure}", last.failure.message);
        self.fail(runnable, last, now)
    }

    /// Nothing helped: `on_failure` says what that means.
    fn fail(&self, runnable: Runnable, last: FailedAttempt, now: Timestamp) -> Turn {
        let failure = last.failure.clone();
        let breaker = self.policy.circuit_breaker.as_ref();
        // Without a retry left the decision has another reason, and the breaker is open all the same.
        let is_shut = self.is_shut || last.decided.decision.reason == ReasonCode::CircuitOpen;
        let outcome = match self.policy.on_failure {
            _ if is_shut && breaker.is_some_and(|breaker| breaker.on_open == OnOpen::Skip) => {
                Outcome::Skipped(failure)
            }
            OnFailure::Pause => return Turn::Pause(Box::new(last)),
            OnFailure::Skip => Outcome::Skipped(failure),
            OnFailure::Halt | OnFailure::Fallback | OnFailure::Compensate | OnFailure::DeadLetter => {
                Outcome::Failed(failure)
            }
        };
        let undoes = self.policy.on_failure == OnFailure::Compensate && matches!(outcome, Outcome::Failed(_));
        let executed = runnable.executed(outcome).decided(last).ended_at(now);
        over(if undoes { executed.and_undo() } else { executed })
    }

    /// Returns the time of one attempt, or what is over before that.
    fn timeout_within(&self, outer: Option<Until>, now: Timestamp) -> Option<Until> {
        let Some(span) = self.policy.timeout.span() else { return outer };
        let at = now.saturating_add(span);
        match outer {
            Some(outer) if outer.at < at => Some(outer),
            Some(Until { at: last, bound, .. }) => {
                Some(Until { at, bound: Bound::Timeout(span), outer: Some((last, bound)) })
            }
            None => Some(Until { at, bound: Bound::Timeout(span), outer: None }),
        }
    }

    fn total_timeout(&self) -> Option<Until> {
        let span = self.policy.total_timeout.span()?;
        Some(Until {
            at: self.started_at.saturating_add(span),
            bound: Bound::TotalTimeout(span),
            outer: None,
        })
    }

    fn deadline(&self) -> Option<Until> {
        self.deadline.map(|at| Until { at, bound: Bound::Deadline, outer: None })
    }
}

fn too_late_at_all() -> Failure {
    Failure::new("its deadline was over before it could begin").code("deadline_exceeded")
}

fn too_late_for_all() -> Failure {
    Failure::new("the time for all attempts was over before it could begin").code("timeout")
}

fn over(executed: Executed) -> Turn {
    Turn::Over(Box::new(executed))
}
