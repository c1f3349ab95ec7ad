//! Work of a run in memory that does not begin as it is: it waits for an instant, or to be let in, and is given up when
//! that takes too long.

use std::sync::{Arc, Weak};

use tidewheel_core::Wait;
use tidewheel_core::policy::Resolved;
use tidewheel_core::time::Timestamp;

use super::state::{Afterwards, Driven, Shared, State, Waiting};
use crate::limits::{Ask, Asker, Entry, Held};
use crate::pool::Place;

impl Asker for Shared {
    fn admitted(self: Arc<Self>, id: u64, entry: Entry) {
        let mut afterwards = Afterwards::default();
        self.enter(&mut self.lock(), id, entry, self.clock.now(), &mut afterwards);
        self.finish(afterwards);
    }

    fn wants(&self, id: u64) -> bool {
        let state = self.lock();
        state.held.contains_key(&id) || state.waiting.get(&id).is_some_and(|driven| driven.is_asking)
    }

    /// Nobody looks at a run in memory while it waits.
    fn waits(self: Arc<Self>, _id: u64, _held: Held) {}
}

impl Shared {
    /// Begins an attempt that waited to be let in. What nobody wants any more goes back.
    pub(super) fn enter(
        &self,
        state: &mut State,
        place: Place,
        entry: Entry,
        now: Timestamp,
        afterwards: &mut Afterwards,
    ) {
        if state.waiting.get(&place).is_some_and(|driven| driven.is_asking)
            && let Some(driven) = state.waiting.remove(&place)
        {
            return self.begin_attempt(state, place, driven, Some(entry), now, afterwards);
        }
        let State { run, held, .. } = state;
        let begun =
            held.remove(&place).zip(run.as_mut()).and_then(|(Waiting { ticket, queue_until }, run)| {
                Some((run.prepare_retry(&ticket, now)?, queue_until))
            });
        match (begun, entry) {
            (Some((runnable, queue_until)), entry) => {
                self.begin(state, runnable, Some(entry), queue_until, now, afterwards);
            }
            (None, Entry::Admitted(permits)) => afterwards.unwanted.push(permits),
            (None, Entry::Shut(_)) => {}
        }
    }

    /// Goes on with a piece of work that waits for its first attempt: it is too late for it, it waits on, it asks to be
    /// let in, or it begins.
    pub(super) fn go_on_with(
        &self,
        state: &mut State,
        place: Place,
        wait: &Wait,
        now: Timestamp,
        afterwards: &mut Afterwards,
    ) {
        let limit =
            wait.policy.limit(wait.accepted_at.or(Some(self.began_at)), wait.started_at, self.deadline);
        // It could have begun when what it waited for was over.
        let wanted_at = wait.wanted_at.or(wait.until).filter(|at| *at <= now);
        let queue_until = wanted_at.and_then(|at| Some(at.saturating_add(wait.policy.queue_timeout?)));
        let late_at = [limit, queue_until].into_iter().flatten().min();
        let is_late = late_at.is_some_and(|at| at <= now);
        let waits_until = wait.until.filter(|until| *until > now);
        if is_late || waits_until.is_none() && !wait.policy.is_admitted() {
            state.held.remove(&place);
            let runnable = state.run.as_mut().and_then(|run| run.prepare_retry(&wait.ticket, now));
            if let Some(runnable) = runnable {
                self.begin(state, runnable, None, queue_until, now, afterwards);
            }
            return;
        }
        state.held.insert(place, Waiting { ticket: wait.ticket.clone(), queue_until });
        if waits_until.is_none() {
            afterwards.asks.push(self.ask(place, &wait.policy));
        }
        self.look_at(place, [waits_until, late_at].into_iter().flatten().min());
    }

    fn ask(&self, place: Place, policy: &Arc<Resolved>) -> Ask {
        Ask::new(Weak::<Self>::clone(&self.this), place, Arc::clone(policy))
    }

    /// Looks at a piece of work that waits for its first attempt again, at an instant.
    fn look_at(&self, place: Place, at: Option<Timestamp>) {
        let Some(at) = at else { return };
        let this = Weak::clone(&self.this);
        self.timers.at(at, move || {
            let Some(this) = this.upgrade() else { return };
            let mut state = this.lock();
            let State { run, held, .. } = &mut *state;
            let wait = held.get(&place).and_then(|waiting| run.as_ref()?.wait(&waiting.ticket));
            if let Some(wait) = wait {
                let mut afterwards = Afterwards::default();
                this.go_on_with(&mut state, place, &wait, this.clock.now(), &mut afterwards);
                drop(state);
                this.finish(afterwards);
            }
        });
    }

    /// Begins the next attempt, or asks for it to be let in.
    pub(super) fn retry(&self, place: Place) {
        let mut state = self.lock();
        let mut afterwards = Afterwards::default();
        let Some(driven) = state.waiting.get_mut(&place) else { return };
        let policy = Arc::clone(driven.runnable.policy());
        let now = self.clock.now();
        if policy.is_admitted() {
            driven.is_asking = true;
            driven.queue_until = policy.queue_timeout.map(|span| now.saturating_add(span));
            let late_at = [driven.course.limit(), driven.queue_until].into_iter().flatten().min();
            drop(state);
            if let Some(late_at) = late_at {
                self.give_up_at(place, late_at);
            }
            self.finish(Afterwards { asks: vec![self.ask(place, &policy)], ..afterwards });
            return;
        }
        if let Some(driven) = state.waiting.remove(&place) {
            self.begin_attempt(&mut state, place, driven, None, now, &mut afterwards);
        }
        drop(state);
        self.finish(afterwards);
    }

    /// Ends an attempt that was not let in by an instant.
    fn give_up_at(&self, place: Place, at: Timestamp) {
        let this = Weak::clone(&self.this);
        self.timers.at(at, move || {
            let Some(this) = this.upgrade() else { return };
            let (mut state, now) = (this.lock(), this.clock.now());
            let is_late = |driven: &Driven| {
                let limits = [driven.course.limit(), driven.queue_until];
                driven.is_asking && limits.into_iter().flatten().any(|at| at <= now)
            };
            // It may be another attempt that waits now.
            if !state.waiting.get(&place).is_some_and(|driven| is_late(driven)) {
                return;
            }
            let mut afterwards = Afterwards::default();
            if let Some(driven) = state.waiting.remove(&place) {
                this.begin_attempt(&mut state, place, driven, None, now, &mut afterwards);
            }
            drop(state);
            this.finish(afterwards);
        });
    }
}
