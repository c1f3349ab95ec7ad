//! Work of a run that starts: its policy says how, and it goes to the pool, or is done here. What is stored of it is not
//! its business.

use std::sync::Arc;

use tidewheel_core::time::Timestamp;
use tidewheel_core::work::Cancellation;
use tidewheel_core::{Outcome, Runnable};

use super::end::Ended;
use super::life::{Active, Afterwards};
use super::state::{Out, Piece, State, Way};
use super::suspect::Suspect;
use crate::driver::{Course, Known, Turn, Until};
use crate::limits::Permits;
use crate::pool::Place;
use crate::runner::options::Executor;

impl Active {
    /// Starts a piece of work whose dispatch is stored, or need not be.
    pub(super) fn start(&self, state: &mut State, piece: Piece, now: Timestamp, afterwards: &mut Afterwards) {
        let Piece { runnable, way, queue_until } = piece;
        let place = self.core.pool().place();
        let is_durable = self.is_durable(&runnable);
        let deadline = self.deadline_of(runnable.accepted_at());
        let ticket = runnable.ticket();
        if runnable.is_plain() && deadline.is_none() {
            let out = Out { ticket, is_durable, driven: None, permits: None, ear: None, suspect: None };
            self.hand_in(state, place, out, runnable, None, None, afterwards);
            return;
        }
        let mut course = Course::new(&runnable, Arc::clone(runnable.policy()), deadline, now).for_store();
        let mut out = Out { ticket, is_durable, driven: None, permits: None, ear: None, suspect: None };
        let is_keyed = runnable.policy().idempotency_key.is_some() && !matches!(way, Way::Done(_));
        let turn = match way {
            Way::Free => course.begin(runnable.clone(), now),
            Way::In(permits) => {
                out.permits = Some(permits);
                course.begin(runnable.clone(), now)
            }
            Way::Shut(until) => course.shut(runnable.clone(), until, now),
            Way::Done(value) => {
                course.end(runnable.clone(), Outcome::Completed(value), Known::default(), now)
            }
            Way::Late(failure) => {
                out.driven = Some(Box::new((runnable, course)));
                return self.end_attempt(state, place, out, Outcome::Failed(failure), now, afterwards);
            }
        };
        out.driven = Some(Box::new((runnable, course)));
        if is_keyed && matches!(turn, Turn::Over(_)) {
            state.deciding += 1;
            afterwards.gates.over.push(Ended::unbegun(place, out, turn, now));
            return;
        }
        self.take_turn(state, place, out, turn, queue_until, now, afterwards);
    }

    /// Returns when a piece must be over because its run must.
    pub(super) fn deadline_of(&self, accepted_at: Option<Timestamp>) -> Option<Timestamp> {
        self.deadline.and_then(|span| Some(accepted_at?.saturating_add(span)))
    }

    #[expect(clippy::too_many_arguments, reason = "all of it is one turn")]
    pub(super) fn take_turn(
        &self,
        state: &mut State,
        place: Place,
        mut out: Out,
        turn: Turn,
        queue_until: Option<Timestamp>,
        now: Timestamp,
        afterwards: &mut Afterwards,
    ) {
        if !matches!(turn, Turn::Run { .. }) {
            state.refuse_early(out.ticket.number());
            // It did not begin, or is over: what it was given for that goes back.
            afterwards.gates.unwanted.extend(out.permits.take().map(Way::In));
        }
        match turn {
            Turn::Run { runnable, until } => {
                self.hand_in(state, place, out, *runnable, until, queue_until, afterwards);
            }
            Turn::Retry(failed) => {
                state.run.fail_attempt(&out.ticket, *failed);
                self.record(state, &[]);
                state.fresh.is_urgent = true;
                if let Some(wait) = state.run.wait(&out.ticket) {
                    self.go_on_with(state, &wait, now);
                }
            }
            Turn::Pause(failed) => self.pause_for(state, &out, *failed, now),
            Turn::Over(executed) => {
                self.end_work(state, &out, *executed, afterwards);
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "all of it is one piece")]
    fn hand_in(
        &self,
        state: &mut State,
        place: Place,
        mut out: Out,
        mut runnable: Runnable,
        until: Option<Until>,
        queue_until: Option<Timestamp>,
        afterwards: &mut Afterwards,
    ) {
        let wants_context = runnable.wants_context();
        let cancellation = wants_context.then(Cancellation::default);
        if let Some(cancellation) = &cancellation {
            runnable = runnable.with_cancellation(cancellation.clone());
        }
        out.suspect = Suspect::of(state, &runnable);
        let is_suspect = out.suspect.is_some();
        let is_alone = out.suspect.as_ref().is_some_and(|suspect| suspect.goes_alone());
        let tells_beginning = is_suspect || out.permits.as_ref().is_some_and(Permits::wants_beginning);
        let executor = self.core.options().executor_of(&runnable.node());
        let is_inline = executor == Executor::Inline && !runnable.is_async() && !is_alone;
        let mut job = self.core.pool().job(self.strong(), self.group, place, runnable);
        if wants_context && self.has_compensations {
            out.ear = Some(job.listen());
        }
        state.out.insert(place, out);
        if is_inline {
            afterwards.inline.push((place, job.runnable));
            return;
        }
        if until.is_some() || cancellation.is_some() || queue_until.is_some() {
            // The pool goes by the clock of this process.
            let local = |at| self.core.store_clock().to_local(at);
            let terms = job.terms();
            (terms.until, terms.cancellation) = (until.map(|until| until.shifted(local)), cancellation);
            terms.queue_until = queue_until.map(local).or(terms.queue_until);
        }
        if tells_beginning {
            job.terms().tells_beginning = true;
        }
        job.in_task = executor == Executor::Tasks;
        if is_alone { afterwards.alone.push(job) } else { afterwards.jobs.push(job) }
    }

    /// Says to the limits that a piece of work begins, and notes it if it got lost before.
    pub(super) fn begin_now(&self, place: Place) {
        let mut state = self.lock();
        let Some(out) = state.out.get_mut(&place) else { return };
        let beginning = out.permits.as_mut().and_then(Permits::begun);
        let note = out.suspect.as_ref().map(|suspect| suspect.note());
        drop(state);
        if let Some(note) = note {
            note.begins(self.core.store());
        }
        // It is said by dropping it, and no lock may be held.
        drop(beginning);
    }
}
