//! What people ask of a run that this process drives, and what they see of it.

use std::collections::HashMap;

use tidewheel_core::command::RunCommand;
use tidewheel_core::event::Hold;
use tidewheel_core::fact::{RunnableId, Value};
use tidewheel_core::policy::Failure;
use tidewheel_core::run::Run;
use tidewheel_core::time::Timestamp;
use tidewheel_core::{ReopenError, SignalError};
use tidewheel_store::{Letter, Status};

use super::life::{Active, Right};
use super::state::{Ack, By, Lost, Mode, Out, Piece, Rest, State};
use super::table::Taken;
use crate::pool::Place;

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

    /// Takes an input. The caller is answered when it is stored; a command of the store is handled with it, so that
    /// neither is found without the other.
    pub(in crate::runner) fn input(&self, value: Value, key: Option<String>, by: By) -> Taken {
        self.with(|state, now| {
            if state.is_gone() || state.changes_hands() {
                return Taken::Not;
            }
            if state.is_known(&by) {
                return Taken::Done;
            }
            if key.as_deref().is_some_and(|key| state.run.input_of_key(key).is_some()) {
                match by {
                    // It is there; a caller that gives it again waits until it is stored, too.
                    By::Caller(ack) => state.when_stored(ack),
                    By::Command(_) => state.answer(by),
                }
                return Taken::AlreadySo;
            }
            let by = match self.by_table(state, RunCommand::Input, by, now) {
                Ok(by) => by,
                Err(taken) => return taken,
            };
            state.run.plan_accepted(value, now, key);
            self.record(state, &[]);
            state.answer(by);
            Taken::Done
        })
    }

    /// Takes a signal for one component. The caller is answered when it is stored.
    pub(in crate::runner) fn signal(
        &self,
        component: &str,
        value: Value,
        by: By,
    ) -> Result<Taken, SignalError> {
        self.with(|state, now| {
            if state.is_gone() || state.changes_hands() {
                return Ok(Taken::Not);
            }
            if state.is_known(&by) {
                return Ok(Taken::Done);
            }
            let by = match self.by_table(state, RunCommand::Signal, by, now) {
                Ok(by) => by,
                Err(taken) => return Ok(taken),
            };
            if let Err(error) = state.run.plan_signal(component, value, Some(now)) {
                // What was asked through the store is seen to, or it would be asked for ever.
                if let By::Command(_) = by {
                    self.refuse(state, by, error.to_string());
                }
                return Err(error);
            }
            self.record(state, &[]);
            state.answer(by);
            Ok(Taken::Done)
        })
    }

    /// Returns how much work is pending; none in a run that does not go on here.
    pub(in crate::runner) fn open_len(&self) -> usize {
        let state = self.lock();
        if state.mode == Mode::Going { state.run.open_len() } else { 0 }
    }

    /// Stops new work from starting. What is under way comes to its end.
    pub(in crate::runner) fn pause(&self, by: By) -> Taken {
        self.with(|state, now| {
            if state.is_gone() || state.changes_hands() {
                return Taken::Not;
            }
            if state.is_known(&by) {
                return Taken::Done;
            }
            let by = match self.by_table(state, RunCommand::Pause, by, now) {
                Ok(by) => by,
                Err(taken) => return taken,
            };
            state.mode = Mode::Paused;
            state.asking.clear();
            state.answer(by);
            Taken::Done
        })
    }

    /// Goes on after a pause, or with a run that was stopped or put aside.
    pub(in crate::runner) fn resume(&self, by: By) -> Taken {
        let taken = self.with(|state, now| {
            if let Mode::Leaving { .. } | Mode::Gone { .. } = state.mode {
                return Taken::Not;
            }
            if state.is_known(&by) {
                return Taken::AlreadySo;
            }
            let by = match self.by_table(state, RunCommand::Resume, by, now) {
                Ok(by) => by,
                Err(taken) => return taken,
            };
            // The person who resumes it has seen to what failed.
            state.run.reopen_paused(Some(now));
            self.record(state, &[]);
            if let Mode::Aside { .. } = state.mode {
                // A resume gives it another chance.
                state.run.release_all();
                self.record(state, &[]);
            }
            self.go_on_from_pause(state, now);
            state.answer(by);
            Taken::Done
        });
        if let Taken::Done = taken {
            crate::telemetry::resume(self.id());
        }
        taken
    }

    fn go_on_from_pause(&self, state: &mut State, now: Timestamp) {
        state.pause_reason = None;
        state.mode = Mode::Going;
        // What was not taken up yet has its retries looked at then.
        if state.is_taken_up {
            self.go_on_waiting(state, now);
        }
    }

    /// Ends everything that is not over.
    pub(in crate::runner) fn cancel(&self, by: By) -> Taken {
        let (taken, out) = self.with(|state, now| {
            if state.is_gone() {
                return (Taken::Not, None);
            }
            if state.is_known(&by) {
                return (Taken::Done, None);
            }
            let by = match self.by_table(state, RunCommand::Cancel, by, now) {
                Ok(by) => by,
                Err(taken) => return (taken, None),
            };
            let cancelled = Failure::new("somebody cancelled the run").code("cancelled").non_retryable();
            state.run.cancel_all(&cancelled, Some(now));
            self.record(state, &[]);
            state.mode = Mode::Leaving { status: Status::Cancelled, reason: None };
            state.answer(by);
            state.asking.clear();
            let early: Vec<u32> = state.early.keys().copied().collect();
            early.into_iter().for_each(|number| state.refuse_early(number));
            let held = std::mem::take(&mut state.fresh.held);
            (Taken::Done, Some((std::mem::take(&mut state.out), held)))
        });
        self.give_up(out);
        taken
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

    /// Lets go of the run: it is stopped, and leaves this process.
    pub(in crate::runner) fn stop(&self, by: By) -> Taken {
        let (taken, out) = self.with(|state, now| {
            if state.is_gone() {
                return (Taken::Not, None);
            }
            if state.is_known(&by) {
                return (Taken::Done, None);
            }
            match self.by_table(state, RunCommand::Stop, by, now) {
                Ok(by) => {
                    // What waits for a person still does when the run is started again.
                    let reason = state.pause_reason.clone();
                    (Taken::Done, Some(self.send_away(state, (Status::Stopped, reason), by)))
                }
                Err(taken) => (taken, None),
            }
        });
        self.give_up(out);
        taken
    }

    /// Lets the run leave this process as it is, for the process that takes it next. Returns whether the caller is
    /// answered.
    pub(in crate::runner) fn leave(&self, ack: Ack) -> bool {
        let (is_taken, out) = self.with(|state, now| {
            if state.is_gone() {
                return (false, None);
            }
            if let Mode::Leaving { .. } | Mode::Aside { .. } = state.mode {
                state.answer(By::Caller(ack));
                return (true, None);
            }
            let (status, _, reason) = state.condition(now);
            (true, Some(self.send_away(state, (status, reason), By::Caller(ack))))
        });
        self.give_up(out);
        is_taken
    }

    /// Makes the run leave this process, with this status and the reason for it. Work that is under way is given up, and
    /// offered again.
    fn send_away(
        &self,
        state: &mut State,
        (status, reason): (Status, Option<String>),
        by: By,
    ) -> (HashMap<Place, Out>, Vec<Piece>) {
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
            // What was asked through the store is there for the next owner of the run; callers in this process ask again.
            if let By::Caller(ack) = early.by {
                drop(ack.send(Err(Lost::Crashed("it was given back".to_owned()))));
            }
        }
        state.mode = Mode::Leaving { status, reason };
        state.answer(by);
        (out, held)
    }

    /// Stops work that is not wanted any more. What it was given goes back; no lock may be held.
    fn give_up(&self, unwanted: Option<(HashMap<Place, Out>, Vec<Piece>)>) {
        let Some((out, held)) = unwanted else { return };
        let places: Vec<Place> = out.keys().copied().collect();
        self.core.pool().take_back(self.group, &places);
        for suspect in out.values().filter_map(|out| out.suspect.as_ref()) {
            suspect.ends(self.core.store());
        }
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
            let by = match self.by_table(state, RunCommand::Retry, by, now) {
                Ok(by) => by,
                Err(Taken::NoEffect { status, why }) => return Some(Retried::NoEffect { status, why }),
                Err(_) => return Some(Retried::Reopened(0)),
            };
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
            if count > 0
                && state.mode == Mode::Paused
                && state.pause_reason.is_some()
                && waiting_for_people(&state.run).is_empty()
            {
                self.go_on_from_pause(state, now);
            }
            Some(match (problem, count) {
                (Some(problem), 0) => {
                    self.refuse(state, by, problem.to_string());
                    Retried::Not(problem)
                }
                (None, 0) => {
                    self.refuse(state, by, "it has no work that failed".to_owned());
                    Retried::NothingFailed
                }
                (_, count) => {
                    state.answer(by);
                    Retried::Reopened(count)
                }
            })
        })
    }

    /// Lets no new work start in this process; how the run is stored does not change.
    pub(in crate::runner) fn hold_back(&self) {
        let mut state = self.lock();
        state.is_held_back = true;
    }

    /// Stores what is not stored yet.
    pub(in crate::runner) fn checkpoint(&self, by: By) -> Taken {
        self.with(|state, now| {
            if state.is_gone() || state.changes_hands() {
                return Taken::Not;
            }
            if state.is_known(&by) {
                return Taken::Done;
            }
            match self.by_table(state, RunCommand::Checkpoint, by, now) {
                Ok(by) => {
                    state.answer(by);
                    Taken::Done
                }
                Err(taken) => taken,
            }
        })
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
}

/// What became of work that was to be tried again.
pub(in crate::runner) enum Retried {
    /// So many pieces are.
    Reopened(usize),
    /// None is, for this reason.
    Not(ReopenError),
    /// None is: nothing failed.
    NothingFailed,
    /// None is, as the run is.
    NoEffect { status: Status, why: &'static str },
}

/// Returns the pieces of work that failed and wait until a person says how they go on.
pub(in crate::runner) fn waiting_for_people(run: &Run) -> Vec<RunnableId> {
    let waits = run.waits().into_iter().filter(|wait| wait.why == Some(Hold::Pause));
    waits.filter_map(|wait| Some(run.waiting_runnable(&wait.ticket)?.id())).collect()
}
