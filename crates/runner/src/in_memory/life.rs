//! The life of a run in memory: what can run now is found and begins, and what is left to do is done when no lock is
//! held.

use std::collections::VecDeque;
use std::sync::{Arc, MutexGuard};

use tidewheel_core::policy::Kind;
use tidewheel_core::time::Timestamp;
use tidewheel_core::work::call_user;
use tidewheel_core::{Executed, Outcome, Prepared, Runnable};

use super::end::Led;
use super::state::{Afterwards, Driven, Out, Shared, State};
use crate::driver::Course;
use crate::limits::{self, Entry};
use crate::pool::Place;

impl Shared {
    pub(super) fn apply(&self, mut state: MutexGuard<'_, State>, executed: Executed) {
        if let Some(run) = &mut state.run {
            run.apply(executed);
            self.go_on(state);
        }
    }

    /// Does what is left to do when no lock is held. Whoever is let in at once begins together with others.
    pub(super) fn finish(&self, mut afterwards: Afterwards) {
        loop {
            let Afterwards { jobs, asks, unwanted, ends, is_changed } = afterwards;
            if !jobs.is_empty() {
                self.pool.submit(jobs);
            }
            drop(unwanted);
            let mut entered = Vec::with_capacity(asks.len());
            for ask in asks {
                let id = ask.id;
                entered.extend(self.limits.enter(&self.workflow_name, ask).map(|entry| (id, entry)));
            }
            for (place, driven, outcome) in ends {
                self.end_attempt(place, driven, outcome);
            }
            if entered.is_empty() && !is_changed {
                return;
            }
            let (mut state, now) = (self.lock(), self.clock.now());
            afterwards = Afterwards { is_changed, ..Afterwards::default() };
            for (place, entry) in entered {
                self.enter(&mut state, place, entry, now, &mut afterwards);
            }
            if std::mem::take(&mut afterwards.is_changed) {
                self.advance(&mut state, &mut afterwards);
            }
        }
    }

    /// Hands in whatever can run now.
    pub(super) fn go_on(&self, mut state: MutexGuard<'_, State>) {
        let mut afterwards = Afterwards::default();
        self.advance(&mut state, &mut afterwards);
        drop(state);
        self.finish(afterwards);
    }

    /// Finds whatever can run now. Joins are done on the way: they call no function.
    fn advance(&self, state: &mut State, afterwards: &mut Afterwards) {
        loop {
            let Some(run) = &mut state.run else { return };
            let now = self.clock.now();
            let mut entries = VecDeque::new();
            let Prepared { runnables, held, .. } = if self.has_gates {
                run.prepare_admitted_by(now, None, |policy| {
                    let entry = self.limits.enter_at_once(&self.workflow_name, policy);
                    let is_in = entry.is_some();
                    entries.extend(entry);
                    is_in
                })
            } else {
                Prepared { runnables: run.prepare(), ..Prepared::default() }
            };
            if runnables.is_empty() && held.is_empty() {
                break;
            }
            for wait in held {
                self.go_on_with(state, self.pool.place(), &wait, now, afterwards);
            }
            afterwards.jobs.reserve_exact(runnables.len());
            for runnable in runnables {
                if runnable.node().kind == Kind::Join {
                    if let Some(run) = &mut state.run {
                        run.apply(runnable.execute());
                    }
                } else {
                    // Who has to be let in was, in this order.
                    let is_let_in = !runnable.is_plain() && runnable.policy().is_admitted();
                    let entry = if is_let_in { entries.pop_front() } else { None };
                    self.begin(state, runnable, entry, None, now, afterwards);
                }
            }
        }
        if let (Some(checkpoint), Some(run)) = (&self.checkpoint, &state.run) {
            // A bad function must not keep the work from going on, which was handed out a moment ago.
            if let Err(panic) = call_user(|| checkpoint.call(run)) {
                tracing::error!(run = %run.id(), why = panic.message, "checkpoint panicked");
            }
        }
        if state.is_satisfied() {
            self.satisfied.notify_one();
        }
    }

    pub(super) fn begin(
        &self,
        state: &mut State,
        runnable: Runnable,
        entry: Option<Entry>,
        queue_until: Option<Timestamp>,
        now: Timestamp,
        afterwards: &mut Afterwards,
    ) {
        let place = self.pool.place();
        if runnable.is_plain() && self.deadline.is_none() {
            let mut job = self.job(place, runnable);
            let ear = self.hears(&job.runnable).then(|| job.listen());
            state.out.insert(place, Out { ticket: job.runnable.ticket(), driven: None, ear });
            afterwards.jobs.push(job);
            return;
        }
        let course = Course::new(&runnable, Arc::clone(runnable.policy()), self.deadline_of(&runnable), now);
        let (failed, permits) = (Vec::new(), None);
        let driven = Box::new(Driven { runnable, course, failed, permits, is_asking: false, queue_until });
        self.begin_attempt(state, place, driven, entry, now, afterwards);
    }

    /// Begins an attempt that was let in, or needs not be.
    pub(super) fn begin_attempt(
        &self,
        state: &mut State,
        place: Place,
        mut driven: Box<Driven>,
        entry: Option<Entry>,
        now: Timestamp,
        afterwards: &mut Afterwards,
    ) {
        let runnable = driven.runnable.clone();
        driven.is_asking = false;
        let is_late = driven.queue_until.is_some_and(|until| until <= now);
        let turn = match entry {
            None if is_late && driven.course.limit().is_none_or(|limit| limit > now) => {
                let span = runnable.policy().queue_timeout.unwrap_or_default();
                state.deciding.insert(place, runnable.ticket());
                afterwards.ends.push((place, driven, Outcome::Failed(limits::waited_too_long(span))));
                return;
            }
            None => driven.course.begin(runnable, now),
            Some(Entry::Admitted(permits)) => {
                driven.permits = Some(permits);
                driven.course.begin(runnable, now)
            }
            Some(Entry::Shut(until)) => driven.course.shut(runnable, until, now),
        };
        match self.take_turn(state, place, driven, turn, afterwards) {
            Led::Job(job) => afterwards.jobs.push(*job),
            Led::Result(executed) => {
                if let Some(run) = &mut state.run {
                    run.apply(*executed);
                    afterwards.is_changed = true;
                }
            }
            Led::Nothing => {}
        }
    }
}
