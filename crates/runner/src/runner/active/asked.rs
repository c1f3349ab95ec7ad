//! What people ask of a run that this process drives, and what they see of it.

use tidewheel_core::SignalError;
use tidewheel_core::fact::{RunnableId, Value};
use tidewheel_core::policy::Failure;
use tidewheel_core::run::Run;
use tidewheel_core::time::Timestamp;
use tidewheel_store::{CommandId, Status};

use super::life::{Active, Right};
use super::state::{Ack, By, Mode, Rest, Seen};
use crate::runner::error::absence;

impl Active {
    /// Stores the run for the first time, with its first input if there is one.
    pub(in crate::runner) fn create(&self, input: Option<Value>, ack: Ack) {
        self.with(|state, now| {
            if let Some(input) = input {
                state.run.plan_accepted(input, now, None);
                self.record(state, &[]);
            }
            state.answer(By::Caller(ack));
        });
    }

    /// Returns the run as it is, and says when that is stored.
    pub(in crate::runner) fn stored(&self, ack: Ack) -> Run {
        self.with(|state, _| {
            state.when_stored(ack);
            state.run.clone()
        })
    }

    /// Takes an input. It is acknowledged when it is stored.
    pub(in crate::runner) fn input(&self, value: Value, key: Option<String>, ack: Ack) -> Result<(), Mode> {
        self.with(|state, now| {
            if let Mode::Aside { .. } | Mode::Leaving { .. } | Mode::Gone { .. } = state.mode {
                return Err(state.mode.clone());
            }
            if key.as_deref().is_some_and(|key| state.run.input_of_key(key).is_some()) {
                // It is there; whoever asks again waits until it is stored, too.
                state.when_stored(ack);
                return Ok(());
            }
            state.run.plan_accepted(value, now, key);
            self.record(state, &[]);
            state.answer(By::Caller(ack));
            Ok(())
        })
    }

    /// Takes a signal for one component, and tells whether it was taken: otherwise the run is about to leave. It is
    /// acknowledged when it is stored.
    pub(in crate::runner) fn signal(
        &self,
        component: &str,
        value: Value,
        by: By,
    ) -> Result<bool, SignalError> {
        self.with(|state, now| {
            let may_take = match state.mode {
                Mode::Going | Mode::Paused => true,
                Mode::Aside { status, .. } | Mode::Leaving { status, .. } => status != Status::Cancelled,
                Mode::Gone { .. } => false,
            };
            if state.is_gone() || state.changes_hands() {
                return Ok(false);
            }
            if state.is_known(&by) {
                return Ok(true);
            }
            if may_take {
                state.run.plan_signal(component, value, Some(now))?;
                self.record(state, &[]);
            } else {
                tracing::warn!(run = %self.id(), "signal for a run that was cancelled");
            }
            state.answer(by);
            Ok(true)
        })
    }

    /// Takes an input that somebody gave through the store, and says so with it: nobody may find the one without
    /// the other. Tells whether nothing more is to be done about it.
    pub(in crate::runner) fn input_asked(&self, value: Value, key: Option<String>, id: CommandId) -> bool {
        let by = By::Command(id);
        self.with(|state, now| {
            // A run that somebody stopped has it in its log when it is resumed.
            let may_take = match state.mode {
                Mode::Going | Mode::Paused => true,
                Mode::Aside { status, .. } | Mode::Leaving { status, .. } => status != Status::Cancelled,
                Mode::Gone { .. } => false,
            };
            if state.is_gone() || state.changes_hands() {
                return false;
            }
            if state.is_known(&by) {
                return true;
            }
            if !may_take {
                tracing::warn!(run = %self.id(), "input for a run that was cancelled");
            } else if key.as_deref().is_none_or(|key| state.run.input_of_key(key).is_none()) {
                state.run.plan_accepted(value, now, key);
                self.record(state, &[]);
            }
            state.answer(by);
            true
        })
    }

    /// Returns how much work is pending; none in a run that does not go on here.
    pub(in crate::runner) fn open_len(&self) -> usize {
        let state = self.lock();
        if state.mode == Mode::Going { state.run.open_len() } else { 0 }
    }

    /// Stops new work from starting. What is under way comes to its end. Tells whether it was taken: otherwise the
    /// run is about to leave.
    pub(in crate::runner) fn pause(&self, by: By) -> bool {
        self.with(|state, _| {
            if state.is_gone() || state.changes_hands() {
                return false;
            }
            if state.is_known(&by) {
                return true;
            }
            if state.mode == Mode::Going {
                state.mode = Mode::Paused;
            }
            state.answer(by);
            true
        })
    }

    /// Goes on after a pause, or with a run that was stopped or put aside. Tells whether it was taken.
    pub(in crate::runner) fn resume(&self, by: By) -> bool {
        self.with(|state, _| {
            if let Mode::Leaving { .. } | Mode::Gone { .. } = state.mode {
                return false;
            }
            if state.is_known(&by) {
                return true;
            }
            if let Mode::Paused | Mode::Aside { status: Status::Stopped | Status::Parked, .. } = state.mode {
                if let Mode::Aside { .. } = state.mode {
                    // Whoever resumes it gives it another chance.
                    state.run.release_all();
                    self.record(state, &[]);
                }
                state.mode = Mode::Going;
                // What was not taken up yet has its retries looked at then.
                if state.is_taken_up {
                    for (ticket, due) in state.run.retries() {
                        self.retry_at(ticket, due);
                    }
                }
            }
            state.answer(by);
            true
        })
    }

    /// Ends everything that is not over. Tells whether it was taken.
    pub(in crate::runner) fn cancel(&self, by: By) -> bool {
        let (is_taken, places) = self.with(|state, now| {
            if state.is_gone() {
                return (false, Vec::new());
            }
            if state.is_known(&by) {
                return (true, Vec::new());
            }
            let cancelled = Failure::new("somebody cancelled the run").code("cancelled").non_retryable();
            state.run.cancel_all(&cancelled, Some(now));
            self.record(state, &[]);
            state.mode = Mode::Leaving { status: Status::Cancelled, reason: None };
            state.answer(by);
            state.fresh.held.clear();
            (true, std::mem::take(&mut state.out).into_keys().collect())
        });
        self.core.pool().take_back(self.group, &places);
        is_taken
    }

    /// Ends one piece of work. Tells whether it was there; `None` if it was not taken.
    pub(in crate::runner) fn cancel_work(&self, id: RunnableId, by: By) -> Option<bool> {
        let (was_there, places) = self.with(|state, now| {
            if state.is_gone() {
                return (None, Vec::new());
            }
            if state.is_known(&by) {
                return (Some(true), Vec::new());
            }
            let ticket = state.run.ticket_of(id);
            let was_there = ticket.is_some();
            let mut places = Vec::new();
            if let Some(ticket) = ticket {
                let cancelled = Failure::new("somebody cancelled it").code("cancelled").non_retryable();
                state.run.cancel(&ticket, cancelled, Some(now));
                self.record(state, &[]);
                state.fresh.held.retain(|runnable| runnable.id() != id);
                if let Some(flight) = &mut state.in_flight {
                    flight.held.retain(|runnable| runnable.id() != id);
                }
                let out = state.out.iter().filter(|(_, out)| out.ticket.is_of(&ticket));
                places.extend(out.map(|(place, _)| *place));
                for place in &places {
                    state.out.remove(place);
                }
            }
            state.answer(by);
            (Some(was_there), places)
        });
        self.core.pool().take_back(self.group, &places);
        was_there
    }

    /// Lets the run leave this process. Work that is under way is given up and offered again. Tells whether it was
    /// taken.
    pub(in crate::runner) fn leave(&self, status: Option<Status>, by: By) -> bool {
        let (is_taken, places) = self.with(|state, now| {
            if state.is_gone() {
                return (false, Vec::new());
            }
            if state.is_known(&by) {
                return (true, Vec::new());
            }
            let is_leaving = matches!(state.mode, Mode::Leaving { .. } | Mode::Aside { .. });
            if is_leaving && !(state.changes_hands() && status.is_some()) {
                state.answer(by);
                return (true, Vec::new());
            }
            let out = std::mem::take(&mut state.out);
            for piece in out.values().filter(|piece| piece.is_durable) {
                state.run.give_back(&piece.ticket);
                self.record(state, &[]);
            }
            for runnable in std::mem::take(&mut state.fresh.held) {
                state.run.give_back(&runnable.ticket());
                self.record(state, &[]);
            }
            let status = status.unwrap_or_else(|| state.condition(now).0);
            state.mode = Mode::Leaving { status, reason: None };
            state.answer(by);
            (true, out.into_keys().collect())
        });
        self.core.pool().take_back(self.group, &places);
        is_taken
    }

    /// Lets no new work start in this process; how the run is stored does not change.
    pub(in crate::runner) fn hold_back(&self) {
        let mut state = self.lock();
        state.is_held_back = true;
    }

    /// Stores what is not stored yet.
    pub(in crate::runner) fn checkpoint(&self, by: By) -> bool {
        self.dismiss(by)
    }

    /// Says that nothing more is to be done about what was asked. Tells whether it was taken.
    pub(in crate::runner) fn dismiss(&self, by: By) -> bool {
        self.with(|state, _| {
            if state.is_gone() {
                return false;
            }
            if !state.is_known(&by) {
                state.answer(by);
            }
            true
        })
    }

    /// Lets somebody look at the run, with everything that is stored, and maybe a little more.
    pub(in crate::runner) fn look<T>(&self, look: impl FnOnce(&Run) -> T) -> T {
        look(&self.lock().run)
    }

    pub(in crate::runner) fn mode(&self) -> Mode {
        self.lock().mode.clone()
    }

    /// Gives the run back if nothing is to be done in it.
    pub(in crate::runner) fn rest(&self) -> Rest {
        let mut state = self.lock();
        let Right::Held(lease) = &state.right else { return Rest::Busy };
        if !state.is_idle() {
            return Rest::Busy;
        }
        // What waits for a time is taken up again by whoever takes runs that are due.
        let waits_here =
            state.run.is_runnable() && state.mode == Mode::Going && !self.core.options().takes_due_runs;
        if waits_here || !state.waiters.is_empty() {
            return Rest::Awaited;
        }
        let lease = lease.clone();
        state.mode = Mode::Gone { status: None, why: "it was given back".to_owned() };
        Rest::Over(lease)
    }

    /// Tells whether nothing is to be done in the run now.
    pub(in crate::runner) fn is_quiet(&self) -> bool {
        self.lock().is_quiet()
    }

    /// Returns what a component has for the last input, as far as it is stored; or somebody to wait for.
    pub(in crate::runner) fn see(&self, component: &str) -> Seen {
        let mut state = self.lock();
        if let Mode::Gone { .. } = state.mode {
            return Seen::Over { status: Status::Running };
        }
        let Some(input) = state.run.last_input() else { return Seen::NoInput };
        let is_over = !state.run.is_runnable() && state.in_flight.is_none() && state.fresh.events.is_empty();
        if is_over || state.run.gives_one_value(component) {
            let stored = state.stored_facts;
            if let Some(value) = state.run.value_for(component, input, stored) {
                return Seen::Value(value.clone());
            }
        }
        if is_over {
            let failures = state.run.failures();
            let own =
                failures.iter().find(|failed| failed.component == Some(component) && failed.input == input);
            return match own {
                Some(failed) => Seen::Failed(Box::new(failed.failure.clone())),
                None => Seen::Absent(absence(state.run.absence(component, input))),
            };
        }
        state.wait_for(Some(component.to_owned()))
    }

    /// Returns how the run is, when nothing is left to do or it does not go on by itself.
    pub(in crate::runner) fn see_end(&self) -> Seen {
        let mut state = self.lock();
        let is_stored = state.in_flight.is_none() && state.fresh.events.is_empty();
        if !state.run.is_runnable() && is_stored && state.mode == Mode::Going {
            let status = state.condition(Timestamp::from_nanos(0)).0;
            return Seen::Over { status };
        }
        state.wait_for(None)
    }
}
