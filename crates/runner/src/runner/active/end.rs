//! Attempts that ended, and what follows: a result, another attempt, a pause, a dead letter. Nothing begins here.

use std::sync::Arc;

use tidewheel_core::decide::Action;
use tidewheel_core::event::{FailedAttempt, Hold};
use tidewheel_core::policy::{ExecutionMode, Failure, OnFailure};
use tidewheel_core::time::Timestamp;
use tidewheel_core::{Executed, Outcome, Runnable, Ticket};
use tidewheel_store::{Letter, NewDeadLetter, Status};

use super::life::{Active, Afterwards};
use super::state::{By, Early, Mode, Out, State, Way};
use crate::driver::{Course, Known, Turn};
use crate::pool::Place;

/// An attempt that ended. What follows is decided when no lock is held: a policy may ask functions of the user's.
pub(super) struct End {
    pub(super) place: Place,
    pub(super) out: Out,
    pub(super) outcome: Outcome,
    pub(super) now: Timestamp,
    /// Who ended it from outside, and waits until that is stored.
    pub(super) by: Option<By>,
}

/// An attempt that ended, and what follows.
pub(super) struct Ended {
    pub(super) place: Place,
    pub(super) out: Out,
    pub(super) turn: Turn,
    /// Whether a token for a retry was taken.
    pub(super) has_token: bool,
    /// Whether the work itself gave a result: that of a fallback is nobody else's.
    pub(super) has_result: bool,
    pub(super) now: Timestamp,
    pub(super) by: Option<By>,
}

impl End {
    /// Tells whether other work may be the same.
    pub(super) fn is_keyed(&self) -> bool {
        self.out.driven.as_ref().is_some_and(|driven| driven.0.policy().idempotency_key.is_some())
    }

    pub(super) fn decided(mut self, known: Known) -> Ended {
        let driven = self.out.driven.as_mut().expect("invariant: only work under a policy comes here");
        let (runnable, course) = &mut **driven;
        let has_result = matches!(self.outcome, Outcome::Completed(_)) && !course.is_recovering();
        let turn = course.end(runnable.clone(), self.outcome, known, self.now);
        let has_token = known.retry_tokens.is_some_and(|tokens| tokens > 0);
        let Self { place, out, now, by, .. } = self;
        Ended { place, out, turn, has_token, has_result, now, by }
    }
}

impl Ended {
    /// Returns what follows for an attempt that did not begin.
    pub(super) const fn unbegun(place: Place, out: Out, turn: Turn, now: Timestamp) -> Self {
        Self { place, out, turn, has_token: false, has_result: false, now, by: None }
    }

    /// Tells whether other work may be the same, and gets no result from this one.
    pub(super) fn leaves_key(&self) -> bool {
        let is_keyed = |driven: &(Runnable, Course)| driven.0.policy().idempotency_key.is_some();
        !self.has_result
            && matches!(self.turn, Turn::Over(_))
            && self.out.driven.as_deref().is_some_and(is_keyed)
    }
}

impl Active {
    /// Ends an attempt under a policy: what follows is decided, at once or when it is known what stands in the way.
    pub(super) fn end_attempt(
        &self,
        state: &mut State,
        place: Place,
        mut out: Out,
        outcome: Outcome,
        now: Timestamp,
        afterwards: &mut Afterwards,
    ) {
        let driven = out.driven.as_ref().expect("invariant: only work under a policy comes here");
        let (policy, is_fallback) = (Arc::clone(driven.0.policy()), driven.1.is_recovering());
        let gates = &mut afterwards.gates;
        state.deciding += 1;
        match &outcome {
            Outcome::Completed(_)
                if policy.execution_mode == Some(ExecutionMode::External) && !is_fallback =>
            {
                state.deciding -= 1;
                gates.unwanted.extend(out.permits.take().map(Way::In));
                self.wait_outside(state, &driven.0, now, now);
                if let Some(Early { said, by, .. }) = state.early.remove(&out.ticket.number()) {
                    self.take_said(state, &out.ticket, said, by, now);
                }
            }
            Outcome::Failed(_)
                if !is_fallback && (policy.circuit_breaker.is_some() || policy.retry_budget.is_some()) =>
            {
                gates.failing.push(End { place, out, outcome, now, by: None });
            }
            Outcome::Failed(_) => {
                gates.unwanted.extend(out.permits.take().map(Way::In));
                gates.ends.push(End { place, out, outcome, now, by: None });
            }
            Outcome::Completed(_) | Outcome::FannedOut(_) | Outcome::Skipped(_) => {
                gates.succeeded.extend(out.permits.take());
                gates.ends.push(End { place, out, outcome, now, by: None });
            }
        }
    }

    /// Does what follows from an attempt that ended.
    pub(super) fn take_decided(&self, state: &mut State, ended: Ended, afterwards: &mut Afterwards) {
        let Ended { place, out, turn, has_token, has_result: _, now, by } = ended;
        state.deciding = state.deciding.saturating_sub(1);
        state.ending.remove(&out.ticket.number());
        if let Turn::Retry(failed) = &turn {
            self.core.metrics().retry(failed.decided.decision.reason);
        }
        let is_retry = matches!(
            &turn,
            Turn::Retry(failed) if matches!(failed.decided.decision.action, Action::RetryAt(_))
        );
        if has_token && !is_retry {
            let driven = out.driven.as_ref().expect("invariant: only work under a policy comes here");
            afterwards.gates.tokens_back.push(Arc::clone(driven.0.policy()));
        }
        match (&state.mode, turn) {
            (Mode::Gone { .. }, _) => {}
            (Mode::Leaving { .. } | Mode::Aside { .. }, Turn::Run { .. }) => {
                state.run.give_back(&out.ticket);
                self.record(state, &[]);
                state.fresh.is_urgent = true;
            }
            (_, turn) => self.take_turn(state, place, out, turn, None, now, afterwards),
        }
        if let Some(by) = by {
            state.answer(by);
        }
        // A run that leaves waited for this.
        state.fresh.is_urgent |= matches!(state.mode, Mode::Leaving { .. });
    }

    /// Ends a piece of work for good.
    pub(super) fn end_work(
        &self,
        state: &mut State,
        out: &Out,
        executed: Executed,
        afterwards: &mut Afterwards,
    ) {
        let Some(driven) = &out.driven else { return self.apply(state, executed) };
        let (runnable, policy) = (&driven.0, driven.0.policy());
        if let (OnFailure::DeadLetter, Outcome::Failed(failure)) = (policy.on_failure, executed.outcome()) {
            let letter = dead_letter(runnable, &out.ticket, failure);
            afterwards.gates.letters.push((runnable.clone(), failure.clone()));
            state.fresh.letters.push(Letter::Bury(letter));
        }
        self.apply(state, executed);
        state.fresh.is_urgent |= policy.checkpoint_after;
    }

    /// Ends work that it is too late for. It did not begin, so that the log knows no attempt at it.
    pub(super) fn end_late(
        &self,
        state: &mut State,
        runnable: Runnable,
        now: Timestamp,
        afterwards: &mut Afterwards,
    ) {
        let deadline = self.deadline_of(runnable.accepted_at());
        let mut course = Course::new(&runnable, Arc::clone(runnable.policy()), deadline, now);
        let (ticket, turn) = (runnable.ticket(), course.begin(runnable.clone(), now));
        let driven = Some(Box::new((runnable, course)));
        let out = Out { ticket, is_durable: true, driven, permits: None, ear: None, suspect: None };
        state.refuse_early(out.ticket.number());
        match turn {
            Turn::Over(executed) => self.end_work(state, &out, *executed, afterwards),
            Turn::Run { .. } | Turn::Retry(_) | Turn::Pause(_) => {
                unreachable!("invariant: only work for which nothing runs when it is late comes here")
            }
        }
    }

    /// Lets the run wait for a person, with the work that failed.
    pub(super) fn pause_for(&self, state: &mut State, out: &Out, failed: FailedAttempt, now: Timestamp) {
        let node = out.driven.as_ref().map(|driven| {
            let node = driven.0.node();
            node.name.unwrap_or_else(|| node.kind.name()).to_owned()
        });
        let reason = format!("`{}` failed: {}", node.unwrap_or_default(), failed.failure.message);
        state.run.fail_attempt(&out.ticket, failed);
        self.record(state, &[]);
        state.run.hold(&out.ticket, Hold::Pause, None, None, now);
        self.record(state, &[]);
        state.fresh.is_urgent = true;
        match state.mode {
            Mode::Going | Mode::Paused => {
                state.mode = Mode::Paused;
                state.asking.clear();
                state.pause_reason.get_or_insert(reason);
            }
            // Whoever has it next finds it so.
            Mode::Leaving { .. } if state.changes_hands() => {
                state.mode = Mode::Leaving { status: Status::Paused, reason: Some(reason) };
            }
            Mode::Aside { .. } | Mode::Leaving { .. } | Mode::Gone { .. } => {}
        }
    }

    /// Keeps what work said that would undo it. Nobody can undo with what does not exist: the work failed.
    pub(super) fn register_undos(&self, state: &mut State, out: &mut Out, outcome: Outcome) -> Outcome {
        let Some(ear) = out.ear.take() else { return outcome };
        let mut outcome = outcome;
        for (component, value) in ear.take_registered() {
            let registered = match Outcome::Completed(value).storable() {
                Outcome::Completed(value) => {
                    state.run.register_undo(&out.ticket, &component, value).map(|_| ())
                }
                Outcome::Failed(failure) => Err(failure),
                Outcome::FannedOut(_) | Outcome::Skipped(_) => Ok(()),
            };
            match registered {
                Ok(()) => self.record(state, &[]),
                Err(failure) => outcome = Outcome::Failed(failure),
            }
        }
        outcome
    }
}

/// What people need to know of work that is put aside. Its attempts are in the log of the run.
fn dead_letter(runnable: &Runnable, ticket: &Ticket, failure: &Failure) -> NewDeadLetter {
    let node = runnable.node();
    let input = runnable.input().to_text().ok();
    let body = serde_json::json!({
        "v": 1,
        "number": ticket.number(),
        "input": input,
        "failure": failure,
        "attempts": ticket.attempt() + 1,
    });
    NewDeadLetter {
        node: node.name.unwrap_or_else(|| node.kind.name()).to_owned(),
        work: runnable.id().to_string(),
        body: body.to_string(),
    }
}
