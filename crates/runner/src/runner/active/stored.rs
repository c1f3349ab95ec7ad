//! What of a run goes to the store, and what follows when it is there. It writes nothing itself: that is done for
//! many runs together.

use std::panic::resume_unwind;

use tidewheel_core::Runnable;
use tidewheel_core::event::Event;
use tidewheel_core::policy::{ExecutionMode, Kind};
use tidewheel_core::time::Timestamp;
use tidewheel_store::{Append, Guard, Lease, Status};

use super::life::{Active, Afterwards, Right};
use super::state::{Flight, Fresh, Heard, Mode, State, Telling};
use super::tell::what_of;
use crate::runner::commit::Submission;
use crate::telemetry;

impl Active {
    /// Tells whether the dispatch of a piece of work is stored before it starts.
    pub(super) fn is_durable(&self, runnable: &Runnable) -> bool {
        runnable.node().kind != Kind::Join && runnable.policy().mode_with_store() != ExecutionMode::Sync
    }

    /// Writes down the last events of the run. Of dispatches, only those that are to be stored.
    pub(super) fn record(&self, state: &mut State, durable: &[bool]) {
        let State { run, fresh, .. } = state;
        let mut dispatches = durable.iter();
        let is_heard = self.core.is_heard();
        for event in run.last_events() {
            if let Event::RunnableDispatched { .. } = event
                && dispatches.next() == Some(&false)
            {
                continue;
            }
            let place = fresh.events.len();
            let write = |body: &mut Vec<u8>| event.write_json(&self.workflow, body);
            if let Err(error) = fresh.events.push_with(write) {
                // It could be written when the work gave it: its type changed its mind. The run crashes, and is taken up
                // again from what is stored.
                resume_unwind(Box::new(crate::words(&error)));
            }
            if is_heard && let Ok(line) = event.to_json(&self.workflow) {
                fresh.heard.push(Heard { place, what: what_of(event, run), line: line.into() });
            }
        }
    }

    /// Puts together what is to be stored, if it is time for it and nothing is on its way.
    pub(super) fn flush(&self, state: &mut State, now: Timestamp) -> Option<Submission> {
        if state.in_flight.is_some() || matches!(state.mode, Mode::Gone { .. }) {
            return None;
        }
        if !state.fresh.is_due(self.checkpoints, state.cycles, state.run.is_runnable()) {
            return None;
        }
        state.cycles = 0;
        let (status, wake_at, reason) = state.condition(now);
        let Fresh { events, heard, handled, acks, held, letters, is_urgent: _ } =
            std::mem::take(&mut state.fresh);
        let append = Append {
            run: self.id.clone(),
            guard: match &state.right {
                Right::New(new) => Guard::New(new.clone()),
                Right::Held(lease) => Guard::Held { key: lease.key, fence: lease.fence },
            },
            expected: state.version,
            status,
            reason,
            wake_at,
            handled,
            letters,
            checkpoint: None,
            // What an attempt came to is not lost because nobody knows yet what follows from it.
            release: matches!(state.mode, Mode::Leaving { .. }) && state.deciding == 0,
            events,
        };
        let (count, facts) = (append.events.len(), state.run.facts_len());
        let keyed = std::mem::take(&mut state.keyed);
        state.in_flight = Some(Flight { heard, count, acks, held, keyed, facts });
        Some(Submission { active: self.strong(), append, is_again: false })
    }

    /// What was on its way is stored. Without a lease, the one that is there is still good.
    pub(in crate::runner) fn committed(&self, lease: Option<Lease>) {
        self.guarded(|| self.take_commit(lease));
    }

    fn take_commit(&self, lease: Option<Lease>) {
        let now = self.core.clock().now();
        let mut state = self.lock();
        let Some(flight) = state.in_flight.take() else {
            // The run was given up meanwhile; nobody shall think that it is driven here.
            drop(state);
            self.core.give_back(lease.into_iter().collect());
            return;
        };
        if let Some(lease) = lease {
            state.right = Right::Held(lease);
        }
        let first = state.version;
        state.version += u64::from(flight.count);
        let mut afterwards = Afterwards::default();
        if state.mode == Mode::Going || state.mode == Mode::Paused {
            for piece in flight.held {
                self.start(&mut state, piece, now, &mut afterwards);
            }
        } else {
            for piece in flight.held {
                self.offer_again(&mut state, &piece.runnable);
                // Whatever it was given goes back when nobody has the lock.
                afterwards.gates.unwanted.push(piece.way);
            }
        }
        afterwards.gates.keyed.extend(flight.keyed);
        let seen = state.stored_facts;
        state.stored_facts = flight.facts;
        state.wake_waiters(seen);
        self.advance(&mut state, now, &mut afterwards);
        afterwards.submission = self.flush(&mut state, now);
        let (is_over, has_left) = (state.is_over(), afterwards.submission.is_none() && state.has_left());
        let (is_idle, is_told) = (state.is_idle(), is_over && state.mode == Mode::Going);
        let (status, _, reason) = state.condition(now);
        if has_left {
            let Mode::Leaving { status, reason } = &state.mode else { return };
            let why = reason.clone().unwrap_or_else(|| format!("it is {status}"));
            state.mode = Mode::Gone { status: Some(*status), why };
        }
        if is_over || has_left || is_idle && state.mode == Mode::Paused {
            state.waiters.clear();
        }
        // Without an event nothing came to its end just now.
        let idle = (is_told && flight.count > 0).then_some(status);
        state.to_tell.push_back(Telling { first, heard: flight.heard, idle });
        let parked = match &state.mode {
            Mode::Gone { status: Some(Status::Parked), why } => Some(why.clone()),
            Mode::Going | Mode::Paused | Mode::Aside { .. } | Mode::Leaving { .. } | Mode::Gone { .. } => {
                None
            }
        };
        drop(state);
        if let (Some(Status::Completed), Some(reason)) = (idle, reason) {
            telemetry::skipped(&self.id, &reason);
        }
        if idle.is_some() || has_left && matches!(status, Status::Parked | Status::Cancelled) {
            self.core.metrics().run(status);
        }
        if let Some(why) = parked.filter(|_| has_left) {
            telemetry::park(&self.id, &why);
        }
        for ack in flight.acks {
            // Whoever does not wait any more has their reasons.
            drop(ack.send(Ok(())));
        }
        self.tell_all();
        self.finish(afterwards);
        if has_left {
            self.core.forget(self);
        } else {
            self.tell_rest();
        }
    }
}
