//! Attempts of a run in memory that ended, and what follows: a result, another attempt, or a fallback.

use std::sync::{Arc, Weak};

use tidewheel_core::decide::Action;
use tidewheel_core::{Executed, Outcome, Ticket};

use super::state::{Afterwards, Driven, Out, Shared, State};
use crate::driver::{Known, Turn};
use crate::ear::Ear;
use crate::limits::Permits;
use crate::pool::{Job, Place, Sink};

impl Sink for Shared {
    fn began(self: Arc<Self>, place: Place) {
        let mut state = self.lock();
        let driven = state.out.get_mut(&place).and_then(|out| out.driven.as_mut());
        let beginning = driven.and_then(|driven| driven.permits.as_mut()?.begun());
        drop(state);
        drop(beginning);
    }

    fn ended(self: Arc<Self>, place: Place, outcome: Outcome) {
        let mut state = self.lock();
        let Some(Out { ticket, driven, ear }) = state.out.remove(&place) else { return };
        let outcome = register_undos(&mut state, ear, &ticket, outcome);
        let Some(driven) = driven else { return self.apply(state, ticket.executed(outcome)) };
        state.deciding.insert(place, ticket);
        drop(state);
        self.end_attempt(place, driven, outcome);
    }
}

/// What a turn of a driven piece leads to.
pub(super) enum Led {
    /// A job to hand in.
    Job(Box<Job>),
    /// A result to apply.
    Result(Box<Executed>),
    /// A wait.
    Nothing,
}

impl Shared {
    /// Ends an attempt under a policy. No lock is held: the limits tell others, and a policy may ask functions of the
    /// user's, which may take their time.
    pub(super) fn end_attempt(&self, place: Place, mut driven: Box<Driven>, outcome: Outcome) {
        let policy = Arc::clone(driven.runnable.policy());
        let permits = driven.permits.take();
        let is_shared = policy.circuit_breaker.is_some() || policy.retry_budget.is_some();
        match &outcome {
            Outcome::Failed(_) if is_shared && !driven.course.is_recovering() => {
                let mut known = self.limits.failed(&self.workflow_name, &policy, permits);
                match known.try_recv() {
                    Ok(known) => self.decide(place, driven, outcome, known),
                    // Somebody else is about to find it out.
                    Err(_) => {
                        let this = self.sink();
                        drop(self.pool.runtime().spawn(async move {
                            if let Ok(known) = known.await {
                                this.decide(place, driven, outcome, known);
                            }
                        }));
                    }
                }
                return;
            }
            Outcome::Failed(_) => drop(permits),
            Outcome::Completed(_) | Outcome::FannedOut(_) | Outcome::Skipped(_) => {
                if let Some(permits) = permits {
                    self.limits.succeeded(permits);
                }
            }
        }
        self.decide(place, driven, outcome, Known::default());
    }

    fn decide(&self, place: Place, mut driven: Box<Driven>, outcome: Outcome, known: Known) {
        let turn = driven.course.end(driven.runnable.clone(), outcome, known, self.clock.now());
        let is_retry = matches!(
            &turn,
            Turn::Retry(failed) if matches!(failed.decided.decision.action, Action::RetryAt(_))
        );
        if known.retry_tokens.is_some_and(|tokens| tokens > 0) && !is_retry {
            self.limits.give_token_back(&self.workflow_name, driven.runnable.policy());
        }
        let mut state = self.lock();
        if state.deciding.remove(&place).is_none() {
            // The owner has the run back.
            return;
        }
        let mut afterwards = Afterwards::default();
        match self.take_turn(&mut state, place, driven, turn, &mut afterwards) {
            Led::Job(job) => {
                drop(state);
                self.pool.submit([*job]);
            }
            Led::Result(executed) => self.apply(state, *executed),
            Led::Nothing => drop(state),
        }
        self.finish(afterwards);
    }

    pub(super) fn take_turn(
        &self,
        state: &mut State,
        place: Place,
        mut driven: Box<Driven>,
        turn: Turn,
        afterwards: &mut Afterwards,
    ) -> Led {
        if !matches!(turn, Turn::Run { .. }) {
            afterwards.unwanted.extend(driven.permits.take());
        }
        match turn {
            Turn::Run { runnable, until } => {
                let mut job = self.job(place, *runnable);
                if driven.permits.as_ref().is_some_and(Permits::wants_beginning) {
                    job.terms().tells_beginning = true;
                }
                // The time to wait for a slot counts from when the attempt could begin; a fallback has its own.
                let queue_until = driven.queue_until.take().filter(|_| !driven.course.is_recovering());
                if queue_until.is_some() {
                    job.terms().queue_until = queue_until;
                }
                let ear = self.hears(&job.runnable).then(|| job.listen());
                state.out.insert(place, Out { ticket: driven.runnable.ticket(), driven: Some(driven), ear });
                if until.is_some() {
                    job.terms().until = until;
                }
                if job.is_bounded() {
                    let cancellation = tidewheel_core::work::Cancellation::default();
                    job.runnable = job.runnable.with_cancellation(cancellation.clone());
                    job.terms().cancellation = Some(cancellation);
                }
                Led::Job(Box::new(job))
            }
            Turn::Retry(failed) => {
                let (due, next) = (failed.due(), failed.decided.decision.attempt_next);
                driven.failed.push(*failed);
                driven.runnable = driven.runnable.with_attempt(next);
                state.waiting.insert(place, driven);
                let this = Weak::clone(&self.this);
                self.timers.at(due, move || {
                    if let Some(this) = this.upgrade() {
                        this.retry(place);
                    }
                });
                Led::Nothing
            }
            Turn::Pause(_) => unreachable!("invariant: what waits for a person is refused in memory"),
            Turn::Over(executed) => Led::Result(Box::new(executed.after_attempts(driven.failed))),
        }
    }
}

/// Keeps what work said that would undo it. Nobody can undo with what does not exist: the work failed.
fn register_undos(state: &mut State, ear: Option<Arc<Ear>>, ticket: &Ticket, outcome: Outcome) -> Outcome {
    let (Some(ear), Some(run)) = (ear, &mut state.run) else { return outcome };
    let mut outcome = outcome;
    for (component, value) in ear.take_registered() {
        if let Err(failure) = run.register_undo(ticket, &component, value) {
            outcome = Outcome::Failed(failure);
        }
    }
    outcome
}
