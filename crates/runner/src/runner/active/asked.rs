//! What people ask of a run that this process drives, and what they see of it.

use std::collections::HashMap;

use tidewheel_core::event::Hold;
use tidewheel_core::fact::{RunnableId, Value};
use tidewheel_core::policy::Failure;
use tidewheel_core::run::Run;
use tidewheel_core::time::Timestamp;
use tidewheel_core::{ReopenError, SignalError};
use tidewheel_store::{CommandId, Letter, Status};

use super::life::{Active, Right};
use super::state::{Ack, By, Lost, Mode, Out, Piece, Rest, Seen, State};
use crate::pool::Place;
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
                if let Err(error) = state.run.plan_signal(component, value, Some(now)) {
                    // What was asked through the store is seen to, or it would be asked for ever.
                    if let By::Command(_) = by {
                        self.refuse(state, by, error.to_string());
                    }
                    return Err(error);
                }
                self.record(state, &[]);
                state.answer(by);
            } else {
                tracing::warn!(run = %self.id(), "signal for a run that was cancelled");
                self.refuse(state, by, "the run was cancelled".to_owned());
            }
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
                state.asking.clear();
            }
            state.answer(by);
            true
        })
    }

    /// Goes on after a pause, or with a run that was stopped or put aside. Tells whether it was taken.
    pub(in crate::runner) fn resume(&self, by: By) -> bool {
        let mut goes_on = false;
        let is_taken = self.with(|state, now| {
            if let Mode::Leaving { .. } | Mode::Gone { .. } = state.mode {
                return false;
            }
            if state.is_known(&by) {
                return true;
            }
            if let Mode::Paused | Mode::Aside { status: Status::Stopped | Status::Parked, .. } = state.mode {
                // Whoever lets it go on has seen to what failed.
                state.run.reopen_paused(Some(now));
                self.record(state, &[]);
                if let Mode::Aside { .. } = state.mode {
                    // Whoever resumes it gives it another chance.
                    state.run.release_all();
                    self.record(state, &[]);
                }
                goes_on = true;
                self.go_on_from_pause(state, now);
            }
            state.answer(by);
            true
        });
        if goes_on {
            crate::telemetry::resume(self.id());
        }
        is_taken
    }

    fn go_on_from_pause(&self, state: &mut State, now: Timestamp) {
        state.pause_reason = None;
        state.mode = Mode::Going;
        // What was not taken up yet has its retries looked at then.
        if state.is_taken_up {
            self.go_on_waiting(state, now);
        }
    }

    /// Ends everything that is not over. Tells whether it was taken.
    pub(in crate::runner) fn cancel(&self, by: By) -> bool {
        let (is_taken, out) = self.with(|state, now| {
            if state.is_gone() {
                return (false, None);
            }
            if state.is_known(&by) {
                return (true, None);
            }
            let cancelled = Failure::new("somebody cancelled the run").code("cancelled").non_retryable();
            state.run.cancel_all(&cancelled, Some(now));
            self.record(state, &[]);
            state.mode = Mode::Leaving { status: Status::Cancelled, reason: None };
            state.answer(by);
            state.asking.clear();
            let early: Vec<u32> = state.early.keys().copied().collect();
            early.into_iter().for_each(|number| state.refuse_early(number));
            let held = std::mem::take(&mut state.fresh.held);
            (true, Some((std::mem::take(&mut state.out), held)))
        });
        self.give_up(out);
        is_taken
    }

    /// Ends one piece of work. Tells whether it was there; `None` if it was not taken.
    pub(in crate::runner) fn cancel_work(&self, id: RunnableId, by: By) -> Option<bool> {
        let (was_there, out, ended) = self.with(|state, now| {
            if state.is_gone() {
                return (None, None, None);
            }
            if state.is_known(&by) {
                return (Some(true), None, None);
            }
            let ticket = state.run.ticket_of(id);
            let was_there = ticket.is_some();
            let (mut given_up, mut held, mut keyed) = (HashMap::new(), Vec::new(), None);
            if let Some(ticket) = ticket {
                state.asking.remove(ticket.number());
                state.refuse_early(ticket.number());
                keyed = state.run.waiting_runnable(&ticket);
                let cancelled = Failure::new("somebody cancelled it").code("cancelled").non_retryable();
                state.run.cancel(&ticket, cancelled, Some(now));
                self.record(state, &[]);
                held.extend(state.fresh.held.extract_if(.., |piece| piece.runnable.id() == id));
                if let Some(flight) = &mut state.in_flight {
                    held.extend(flight.held.extract_if(.., |piece| piece.runnable.id() == id));
                }
                given_up.extend(state.out.extract_if(|_, out| out.ticket.is_of(&ticket)));
            }
            let driven = given_up.values().filter_map(|out| out.driven.as_deref());
            let pieces = held.iter().map(|piece| &piece.runnable);
            let ended = driven.map(|driven| &driven.0).chain(pieces).next().or(keyed.as_ref()).cloned();
            if was_there {
                state.answer(by);
            } else {
                self.refuse(state, by, "there is no such work that is not over".to_owned());
            }
            (Some(was_there), Some((given_up, held)), ended)
        });
        self.give_up(out);
        if let Some(runnable) = ended {
            self.leave_key_of(&runnable);
        }
        was_there
    }

    /// Lets the run leave this process. Work that is under way is given up and offered again. Tells whether it was
    /// taken.
    pub(in crate::runner) fn leave(&self, status: Option<Status>, by: By) -> bool {
        let (is_taken, out) = self.with(|state, now| {
            if state.is_gone() {
                return (false, None);
            }
            if state.is_known(&by) {
                return (true, None);
            }
            let is_leaving = matches!(state.mode, Mode::Leaving { .. } | Mode::Aside { .. });
            if is_leaving && !(state.changes_hands() && status.is_some()) {
                state.answer(by);
                return (true, None);
            }
            let out = std::mem::take(&mut state.out);
            for piece in out.values().filter(|piece| piece.is_durable) {
                state.run.give_back(&piece.ticket);
                self.record(state, &[]);
            }
            let held = std::mem::take(&mut state.fresh.held);
            for piece in &held {
                state.run.give_back(&piece.runnable.ticket());
                self.record(state, &[]);
            }
            state.asking.clear();
            for early in std::mem::take(&mut state.early).into_values() {
                // What was asked through the store is there for whoever has the run next; others ask again.
                if let By::Caller(ack) = early.by {
                    drop(ack.send(Err(Lost::Crashed("it was given back".to_owned()))));
                }
            }
            let status = status.unwrap_or_else(|| state.condition(now).0);
            state.mode = Mode::Leaving { status, reason: None };
            state.answer(by);
            (true, Some((out, held)))
        });
        self.give_up(out);
        is_taken
    }

    /// Stops work that is not wanted any more. What it was given goes back; no lock may be held.
    fn give_up(&self, unwanted: Option<(HashMap<Place, Out>, Vec<Piece>)>) {
        let Some((out, held)) = unwanted else { return };
        let places: Vec<Place> = out.keys().copied().collect();
        self.core.pool().take_back(self.group, &places);
        drop((out, held));
    }

    /// Gives work that failed all its attempts again: one piece, or all. Returns how many; `None` if it was not taken.
    pub(in crate::runner) fn retry(&self, work: Option<RunnableId>, by: By) -> Option<Retried> {
        self.with(|state, now| {
            if state.is_gone() || state.changes_hands() {
                return None;
            }
            if state.is_known(&by) {
                return Some(Retried::Reopened(0));
            }
            if let Mode::Aside { status: Status::Cancelled, .. }
            | Mode::Leaving { status: Status::Cancelled, .. } = state.mode
            {
                state.answer(by);
                return Some(Retried::Cancelled);
            }
            let works = match work {
                Some(work) => vec![work],
                None => state.run.failed_works().into_iter().chain(waiting_for_people(&state.run)).collect(),
            };
            let (mut count, mut problem) = (0, None);
            for work in works {
                match state.run.reopen(work, Some(now)).map(|_| ()) {
                    Ok(()) => {
                        self.record(state, &[]);
                        state.fresh.letters.push(Letter::Raise { work: work.to_string() });
                        count += 1;
                    }
                    Err(error) => {
                        tracing::warn!(run = %self.id(), %work, %error, "work is not tried again");
                        problem = Some(error);
                    }
                }
            }
            // It waited for a person because of what failed, and that is seen to.
            if state.mode == Mode::Paused
                && state.pause_reason.is_some()
                && waiting_for_people(&state.run).is_empty()
            {
                self.go_on_from_pause(state, now);
            }
            match &problem {
                Some(problem) if count == 0 => self.refuse(state, by, problem.to_string()),
                Some(_) | None => state.answer(by),
            }
            Some(match problem {
                Some(problem) if count == 0 => Retried::Not(problem),
                Some(_) | None => Retried::Reopened(count),
            })
        })
    }

    /// Lets no new work start in this process; how the run is stored does not change.
    pub(in crate::runner) fn hold_back(&self) {
        let mut state = self.lock();
        state.is_held_back = true;
    }

    /// Stores what is not stored yet.
    pub(in crate::runner) fn checkpoint(&self, by: By) -> bool {
        self.dismiss(by, None)
    }

    /// Says that nothing more is to be done about what was asked. Tells whether it was taken.
    pub(in crate::runner) fn dismiss(&self, by: By, why: Option<String>) -> bool {
        self.with(|state, _| {
            if state.is_gone() {
                return false;
            }
            if !state.is_known(&by) {
                match why {
                    Some(why) => self.refuse(state, by, why),
                    None => state.answer(by),
                }
            }
            true
        })
    }

    /// Answers whoever asked for something that is not done. Who asked through the store finds the reason in the log.
    pub(super) fn refuse(&self, state: &mut State, by: By, why: String) {
        if let By::Command(id) = &by {
            state.run.refuse_command(id.0, why);
            self.record(state, &[]);
        }
        state.answer(by);
    }

    /// Lets somebody look at the run, with everything that is stored, and maybe a little more.
    pub(in crate::runner) fn look<T>(&self, look: impl FnOnce(&Run) -> T) -> T {
        look(&self.lock().run)
    }

    pub(in crate::runner) fn mode(&self) -> Mode {
        self.lock().mode.clone()
    }

    /// Returns why the run is paused, where there is something to say.
    pub(in crate::runner) fn pause_reason(&self) -> Option<String> {
        self.lock().pause_reason.clone()
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

/// What became of work that was to be tried again.
pub(in crate::runner) enum Retried {
    /// So many pieces are.
    Reopened(usize),
    /// None is, for this reason.
    Not(ReopenError),
    /// None is: the run was cancelled.
    Cancelled,
}

/// Returns the pieces of work that failed and wait until a person says how they go on.
pub(in crate::runner) fn waiting_for_people(run: &Run) -> Vec<RunnableId> {
    let waits = run.waits().into_iter().filter(|wait| wait.why == Some(Hold::Pause));
    waits.filter_map(|wait| Some(run.waiting_runnable(&wait.ticket)?.id())).collect()
}
