//! Work that somebody outside ends, by its token: how they get it, what they say of it, and when it is too late for
//! it. What follows then is decided elsewhere.

use std::sync::Arc;

use tidewheel_core::event::Hold;
use tidewheel_core::policy::{ExecutionMode, Failure, Resolved};
use tidewheel_core::time::{Span, Timestamp};
use tidewheel_core::work::Token;
use tidewheel_core::{Outcome, Runnable, Ticket, Wait};

use super::end::End;
use super::life::{Active, Afterwards};
use super::state::{By, Early, Mode, Out, State};
use crate::driver::Course;

/// What somebody outside says of a piece of work.
pub(in crate::runner) enum Said {
    Completed(tidewheel_core::fact::Value),
    Failed(Failure),
    Alive,
}

impl Active {
    /// Lets somebody outside end a piece of work that they have since then.
    pub(super) fn wait_outside(
        &self,
        state: &mut State,
        runnable: &Runnable,
        since: Timestamp,
        now: Timestamp,
    ) {
        let (ticket, policy, accepted_at) = (runnable.ticket(), runnable.policy(), runnable.accepted_at());
        let ends = [
            policy.timeout.span().map(|span| since.saturating_add(span)),
            policy.heartbeat.map(|span| now.saturating_add(span)),
            // Somebody has to look then, too, wherever the run is.
            policy.limit(accepted_at, runnable.started_at(), self.deadline_of(accepted_at)),
        ];
        let until = ends.into_iter().flatten().min();
        state.run.hold(&ticket, Hold::External, None, until, now);
        self.record(state, &[]);
        state.fresh.is_urgent = true;
        if let Some(wait) = state.run.wait(&ticket) {
            self.look_outside(state, &wait, now);
        }
    }

    /// Looks at a piece of work that somebody outside ends: it may be too late for it.
    pub(super) fn look_outside(&self, state: &mut State, wait: &Wait, now: Timestamp) {
        let Wait { ticket, until, wanted_at, started_at, accepted_at, policy, .. } = wait;
        if state.ending.contains(&ticket.number()) {
            return;
        }
        let is_over = |since: Option<Timestamp>, span: Option<Span>| {
            let over = since.zip(span).filter(|(since, span)| since.saturating_add(*span) <= now);
            over.map(|(_, span)| span)
        };
        let is_late = self.deadline_of(*accepted_at).is_some_and(|deadline| deadline <= now);
        let late = if is_late || is_over(*accepted_at, policy.deadline.span()).is_some() {
            Some(Failure::new("was not over at its deadline").code("deadline_exceeded"))
        } else if let Some(span) = is_over(*started_at, policy.total_timeout.span()) {
            Some(Failure::new(format!("all attempts together took longer than {span}")).code("timeout"))
        } else if let Some(span) = is_over(*wanted_at, policy.timeout.span()) {
            Some(Failure::new(format!("took longer than {span}")).code("timeout"))
        } else {
            let silent = policy.heartbeat.filter(|_| until.is_some_and(|until| until <= now));
            silent.map(|span| Failure::new(format!("gave no sign of life for {span}")).code("heartbeat"))
        };
        match late {
            Some(failure) => self.end_outside(state, ticket, Outcome::Failed(failure), None, now),
            None => self.look_at(state, ticket, *until),
        }
    }

    /// Ends a piece of work that somebody outside had. Whoever said so is answered when what follows is stored.
    pub(super) fn end_outside(
        &self,
        state: &mut State,
        ticket: &Ticket,
        outcome: Outcome,
        by: Option<By>,
        now: Timestamp,
    ) {
        let Some(runnable) = state.run.waiting_runnable(ticket) else { return };
        let deadline = self.deadline_of(runnable.accepted_at());
        let course = Course::new(&runnable, Arc::clone(runnable.policy()), deadline, now).for_store();
        let ticket = runnable.ticket();
        let driven = Some(Box::new((runnable, course)));
        let out = Out { ticket, is_durable: true, driven, permits: None, ear: None, suspect: None };
        state.ending.insert(out.ticket.number());
        state.outside.push(End { place: self.core.pool().place(), out, outcome, now, by });
    }

    /// Takes what ended outside.
    pub(super) fn take_outside(&self, state: &mut State, afterwards: &mut Afterwards) {
        let gates = &mut afterwards.gates;
        for end in std::mem::take(&mut state.outside) {
            let driven = end.out.driven.as_ref().expect("invariant: only work under a policy comes here");
            let policy = Arc::clone(driven.0.policy());
            let succeeded = !matches!(end.outcome, Outcome::Failed(_));
            state.deciding += 1;
            let needs_token = !succeeded && policy.retry_budget.is_some();
            if needs_token {
                gates.failing.push(end);
            } else {
                gates.ends.push(end);
            }
            if policy.circuit_breaker.is_some() {
                gates.outside.push((policy, succeeded));
            }
        }
    }

    /// Ends a piece of work that somebody outside has, or says that it is alive. Tells whether it was there; `None` if
    /// this was not taken.
    pub(in crate::runner) fn end_from_outside(&self, token: &Token, said: Said, by: By) -> Option<bool> {
        self.with(|state, now| {
            if state.is_gone() || state.changes_hands() {
                return None;
            }
            if state.is_known(&by) {
                return Some(true);
            }
            let ticket = state
                .run
                .ticket_of(token.work)
                .filter(|ticket| ticket.attempt() == token.attempt && ticket.round() == token.round);
            match ticket.filter(|ticket| self.has_outside(state, ticket, now)) {
                Some(ticket) => {
                    let is_early =
                        state.run.wait(&ticket).is_none_or(|wait| wait.why != Some(Hold::External));
                    match said {
                        Said::Alive if is_early => state.answer(by),
                        said if is_early => {
                            state.early.insert(ticket.number(), Early { token: token.clone(), said, by });
                        }
                        said => self.take_said(state, &ticket, said, by, now),
                    }
                    Some(true)
                }
                None => {
                    self.refuse(state, by, format!("nobody waits for the token {token}"));
                    Some(false)
                }
            }
        })
    }

    /// Tells whether somebody outside has a piece of work, or will: they may be quicker than the function that gave
    /// it to them, or than the store.
    fn has_outside(&self, state: &mut State, ticket: &Ticket, now: Timestamp) -> bool {
        let number = ticket.number();
        if state.ending.contains(&number) || state.early.contains_key(&number) {
            return false;
        }
        let is_external = |policy: &Resolved| policy.execution_mode == Some(ExecutionMode::External);
        let wait = state.run.wait(ticket);
        match wait.as_ref().map(|wait| (wait.why, is_external(&wait.policy))) {
            Some((Some(Hold::External), _)) => return true,
            Some((Some(Hold::Pause), _) | (_, false)) => return false,
            Some((_, true)) | None => {}
        }
        if state.run.dispatches(ticket) == 0 {
            return false;
        }
        if let Some(out) = state.out.values().find(|out| out.ticket.is_of(ticket)) {
            return out.driven.as_ref().is_some_and(|driven| is_external(driven.0.policy()));
        }
        let pieces = state.in_flight.iter().flat_map(|flight| &flight.held).chain(&state.fresh.held);
        if state.mode == Mode::Going || pieces.into_iter().any(|piece| piece.runnable.ticket().is_of(ticket))
        {
            return true;
        }
        // Its function began in a process that is gone, and does not begin again by itself.
        state.run.hold(ticket, Hold::External, None, None, now);
        self.record(state, &[]);
        let Some(runnable) = state.run.waiting_runnable(ticket) else { return false };
        if is_external(runnable.policy()) {
            self.wait_outside(state, &runnable, now, now);
            return true;
        }
        state.run.give_back(ticket);
        self.record(state, &[]);
        false
    }

    /// Does what somebody outside said of a piece of work that they have.
    pub(super) fn take_said(&self, state: &mut State, ticket: &Ticket, said: Said, by: By, now: Timestamp) {
        match said {
            Said::Completed(value) => {
                self.end_outside(state, ticket, Outcome::Completed(value).storable(), Some(by), now);
            }
            Said::Failed(failure) => {
                self.end_outside(state, ticket, Outcome::Failed(failure), Some(by), now);
            }
            Said::Alive => {
                let since = state.run.wait(ticket).and_then(|wait| wait.wanted_at).unwrap_or(now);
                if let Some(runnable) = state.run.waiting_runnable(ticket) {
                    self.wait_outside(state, &runnable, since, now);
                }
                state.answer(by);
            }
        }
    }
}
