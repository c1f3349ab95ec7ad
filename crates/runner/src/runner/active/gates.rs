//! Work that does not begin as it is, or does not end here: it waits for a time, is let in, is ended by somebody
//! outside, or waits for a person. While it waits it has no slot, and what it waits for is in the log.

use std::sync::{Arc, Weak};

use tidewheel_core::event::Hold;
use tidewheel_core::fact::RunnableId;
use tidewheel_core::policy::{Failure, Resolved};
use tidewheel_core::time::{Span, Timestamp};
use tidewheel_core::{Outcome, Runnable, Ticket, Wait};
use tidewheel_store::StoreError;

use super::end::{End, Ended};
use super::life::Active;
use super::state::{Mode, Piece, State, Way};
use crate::driver::Known;
use crate::limits::{Ask, Asker, Entry, Held, Permits, waited_too_long};
use crate::runner::keeper::AGAIN_AFTER;
use crate::runner::keys::{Claimed, Key};
use crate::telemetry;

/// What is to be asked of others and told them, when no lock is held.
#[derive(Default)]
pub(super) struct AtTheGates {
    pub(super) asks: Vec<Ask>,
    /// What was given and is not needed.
    pub(super) unwanted: Vec<Way>,
    pub(super) succeeded: Vec<Permits>,
    pub(super) failing: Vec<End>,
    /// Attempts that ended, of which all that matters is known.
    pub(super) ends: Vec<End>,
    pub(super) outside: Vec<(Arc<Resolved>, bool)>,
    pub(super) tokens_back: Vec<Arc<Resolved>>,
    /// Work that may be the same as other work, and wants to be let in.
    pub(super) keyed: Vec<(Runnable, Arc<Resolved>)>,
    /// Work that is over without a result and may be the same as other work: others may do it, and then it is over.
    pub(super) over: Vec<Ended>,
    /// Work that was put aside.
    pub(super) letters: Vec<(Runnable, Failure)>,
}

/// The result of work that other work is the same as is looked for after the first of these, where nobody here tells,
/// then less often, and at last after the second: each look is an event of the log.
const LOOK_FOR_RESULT: (Span, Span) = (Span::from_secs(1), Span::from_secs(30));

impl Active {
    /// Goes on with everything that waits.
    pub(super) fn go_on_waiting(&self, state: &mut State, now: Timestamp) {
        for wait in state.run.waits() {
            self.go_on_with(state, &wait, now);
        }
    }

    /// Goes on with a piece of work that waits: it is too late for it, it waits on, it asks to be let in, or it
    /// begins.
    pub(super) fn go_on_with(&self, state: &mut State, wait: &Wait, now: Timestamp) {
        let Wait { ticket, why, until, wanted_at, started_at, accepted_at, policy } = wait;
        match why {
            Some(Hold::Pause) => return,
            Some(Hold::External) => return self.look_outside(state, wait, now),
            _ => {}
        }
        let limit = policy.limit(*accepted_at, *started_at, self.deadline_of(*accepted_at));
        // It could have begun when what it waited for was over.
        let wanted_at = wanted_at.or(until.filter(|until| *until <= now));
        let queue_until = wanted_at.and_then(|at| Some(at.saturating_add(policy.queue_timeout?)));
        let is_asking = state.asking.contains(ticket.number());
        if limit.is_some_and(|limit| limit <= now) && policy.only_fails_when_late() {
            state.asking.remove(ticket.number());
            state.late.extend(state.run.waiting_runnable(ticket));
        } else if limit.is_some_and(|limit| limit <= now) {
            // How it is too late is for the course to say.
            self.dispatch(state, wait, Way::Free, now);
        } else if queue_until.is_some_and(|until| until <= now) {
            let span = policy.queue_timeout.unwrap_or_default();
            self.dispatch(state, wait, Way::Late(waited_too_long(span)), now);
        } else if until.is_some_and(|until| until > now) && !is_asking {
            let next = [*until, limit, queue_until].into_iter().flatten().min();
            self.look_at(state, ticket, next);
        } else if policy.is_admitted() {
            let is_keyed = policy.idempotency_key.is_some();
            if !is_asking {
                state.asking.insert(ticket.clone());
                if is_keyed && let Some(runnable) = state.run.waiting_runnable(ticket) {
                    state.keyed.push((runnable, Arc::clone(policy)));
                }
            }
            if !is_asking && !is_keyed {
                let asker = Arc::downgrade(&(self.strong() as Arc<dyn Asker>));
                state.asks.push(Ask::new(asker, u64::from(ticket.number()), Arc::clone(policy)));
            }
            self.look_at(state, ticket, [limit, queue_until].into_iter().flatten().min());
        } else {
            self.dispatch(state, wait, Way::Free, now);
        }
    }

    /// Looks at a piece of work that waits again, at an instant. Who looks earlier finds out when to look next, so
    /// one is enough, however often it is said.
    pub(super) fn look_at(&self, state: &mut State, ticket: &Ticket, at: Option<Timestamp>) {
        let (Some(at), timers) = (at, self.core.timers()) else { return };
        match state.looks.get(&ticket.number()) {
            Some((earlier, _)) if *earlier <= at => return,
            Some(later) => timers.cancel(*later),
            None => {}
        }
        let (link, look) = (Arc::clone(&self.link), ticket.clone());
        let timer = timers.at(at, move || {
            let Some(this) = link.active() else { return };
            this.guarded(|| {
                this.with(|state, now| {
                    state.looks.remove(&look.number());
                    if state.mode == Mode::Going
                        && !state.is_held_back
                        && let Some(wait) = state.run.wait(&look)
                    {
                        this.go_on_with(state, &wait, now);
                    }
                });
            });
        });
        state.looks.insert(ticket.number(), timer);
    }

    /// Begins an attempt at a piece of work that waited.
    fn dispatch(&self, state: &mut State, wait: &Wait, way: Way, now: Timestamp) {
        state.asking.remove(wait.ticket.number());
        let key = state.keys.remove(&wait.ticket.number());
        let Some(mut runnable) = state.run.prepare_retry(&wait.ticket, now) else { return };
        if let Some(key) = key {
            runnable = runnable.with_key(key);
        }
        let is_durable = self.is_durable(&runnable);
        self.record(state, &[is_durable]);
        if self.parks_if_lost(state, &runnable) {
            return;
        }
        let queue_until = wait.wanted_at.and_then(|at| Some(at.saturating_add(wait.policy.queue_timeout?)));
        let piece = Piece { runnable, way, queue_until };
        if is_durable { state.fresh.held.push(piece) } else { state.again.push(piece) }
    }

    /// Asks and tells others, when no lock is held.
    pub(super) fn go_to_the_gates(&self, gates: AtTheGates) {
        let AtTheGates {
            asks,
            unwanted,
            succeeded,
            failing,
            ends,
            outside,
            tokens_back,
            keyed,
            over,
            letters,
        } = gates;
        for (runnable, failure) in letters {
            telemetry::dead_letter(&runnable, runnable.policy(), &failure);
        }
        drop(unwanted);
        for end in ends {
            self.go_on_after(end);
        }
        for (runnable, policy) in keyed {
            self.claim_key(runnable, policy);
        }
        for ended in over {
            self.settle(ended);
        }
        let limits = self.core.limits();
        for permits in succeeded {
            limits.succeeded(permits);
        }
        for (policy, succeeded) in outside {
            limits.ended_outside(&self.workflow_name, &policy, succeeded);
        }
        for policy in tokens_back {
            limits.give_token_back(&self.workflow_name, &policy);
        }
        for mut end in failing {
            let permits = end.out.permits.take();
            let driven = end.out.driven.as_ref().expect("invariant: only work under a policy comes here");
            let known = limits.failed(&self.workflow_name, driven.0.policy(), permits);
            let this = self.strong();
            self.spawn_guarded(async move {
                // Without an answer the store is gone, and the run with it.
                let Ok(known) = known.await else { return };
                this.guarded(|| this.settle(end.decided(known)));
            });
        }
        for ask in asks {
            limits.ask(&self.workflow_name, ask);
        }
    }

    /// Goes on after an attempt of which all that matters is known. A result that others wait for is kept before
    /// anybody goes on with it.
    fn go_on_after(&self, end: End) {
        let driven = end.out.driven.as_ref().expect("invariant: only work under a policy comes here");
        let (key, value) = match &end.outcome {
            Outcome::Completed(value) if !driven.1.is_recovering() => (Key::of(&driven.0), value.clone()),
            Outcome::Completed(_) | Outcome::FannedOut(_) | Outcome::Failed(_) | Outcome::Skipped(_) => {
                return self.settle(end.decided(Known::default()));
            }
        };
        let (Ok(Some(key)), this) = (key, self.strong()) else {
            return self.settle(end.decided(Known::default()));
        };
        let work = driven.0.id().to_string();
        self.spawn_guarded(async move {
            while let Err(error) = this.core.keys().done(&key, this.id(), &work, &value).await {
                if !this.is_patient(&error).await {
                    return;
                }
            }
            this.guarded(|| this.decided(end.decided(Known::default())));
        });
    }

    /// Does what follows from an attempt. Whoever waits for the result of work that is over without one may do it
    /// before that is stored: should this process end in between, nobody waits for what never comes.
    fn settle(&self, ended: Ended) {
        let driven = ended.out.driven.as_ref().filter(|_| ended.leaves_key());
        let Some((runnable, Ok(Some(key)))) = driven.map(|driven| (&driven.0, Key::of(&driven.0))) else {
            return self.decided(ended);
        };
        let (this, work) = (self.strong(), runnable.id().to_string());
        self.spawn_guarded(async move {
            if this.free_key(&key, &work).await {
                this.guarded(|| this.decided(ended));
            }
        });
    }

    /// Lets others do what a piece of work was to do for them. Tells whether it could be said.
    async fn free_key(&self, key: &Key, work: &str) -> bool {
        while let Err(error) = self.core.keys().free(key, self.id(), work).await {
            if !self.is_patient(&error).await {
                return false;
            }
        }
        true
    }

    /// Lets others do what work was to do for them that somebody ended here.
    pub(super) fn leave_key_of(&self, runnable: &Runnable) {
        let Ok(Some(key)) = Key::of(runnable) else { return };
        let (this, work) = (self.strong(), runnable.id().to_string());
        self.spawn_guarded(async move {
            this.free_key(&key, &work).await;
        });
    }

    /// Finds out whether other work is the same, before a piece of work is let in.
    fn claim_key(&self, runnable: Runnable, policy: Arc<Resolved>) {
        let (this, number) = (self.strong(), runnable.ticket().number());
        let key = match Key::of(&runnable) {
            Ok(Some(key)) => key,
            Ok(None) => return self.ask_to_be_let_in(number, policy),
            Err(failure) => return self.go_in(number, Way::Late(failure)),
        };
        let (id, work) = (runnable.id(), runnable.id().to_string());
        self.spawn_guarded(async move {
            let claimed = loop {
                match this.core.keys().claim(&key, this.id(), &work).await {
                    Ok(claimed) => break claimed,
                    Err(error) if this.is_patient(&error).await => {}
                    Err(_) => return,
                }
            };
            if matches!(claimed, Claimed::Mine) && this.is_ended_early(number, id) {
                this.free_key(&key, &work).await;
                return;
            }
            this.guarded(|| match claimed {
                Claimed::Mine => {
                    this.lock().keys.insert(number, Arc::from(key.text.as_str()));
                    this.ask_to_be_let_in(number, policy);
                }
                Claimed::Done(value) => {
                    // Others here wait for it, too, if it was done elsewhere.
                    this.core.keys().wake(&key);
                    this.go_in(number, Way::Done(value));
                }
                Claimed::Taken => {
                    this.core.keys().wait(&key, &this.link, number);
                    this.wait_for_same(number, key.text.clone());
                }
            });
        });
    }

    /// Gives up its places in the lines before limits.
    pub(in crate::runner) fn leave_lines(&self) {
        let asker: Weak<dyn Asker> = Arc::downgrade(&(self.strong() as Arc<dyn Asker>));
        self.core.limits().leave(&asker);
    }

    /// Tells whether somebody ended a piece of work while it was on its way to be let in.
    fn is_ended_early(&self, number: u32, id: RunnableId) -> bool {
        let state = self.lock();
        !state.asking.contains(number) && state.run.ticket_of(id).is_none()
    }

    fn ask_to_be_let_in(&self, number: u32, policy: Arc<Resolved>) {
        let asker = Arc::downgrade(&(self.strong() as Arc<dyn Asker>));
        self.core.limits().ask(&self.workflow_name, Ask::new(asker, u64::from(number), policy));
    }

    /// Lets a piece of work wait for one that is the same.
    fn wait_for_same(&self, number: u32, key: String) {
        self.with(|state, now| {
            let Some(ticket) = state.asking.remove(number).filter(|_| !state.is_gone()) else { return };
            let since = state.run.wait(&ticket).and_then(|wait| wait.wanted_at).unwrap_or(now);
            let waited = Span::from_millis(now.as_nanos().saturating_sub(since.as_nanos()) / 1_000_000);
            let until = now.saturating_add(waited.clamp(LOOK_FOR_RESULT.0, LOOK_FOR_RESULT.1));
            state.run.hold(&ticket, Hold::Duplicate, Some(key), Some(until), now);
            self.record(state, &[]);
            state.fresh.is_urgent = true;
            self.look_at(state, &ticket, Some(until));
        });
    }

    /// Looks at a piece of work that waits for one that is the same, which is over.
    pub(in crate::runner) fn look_now(&self, number: u32) {
        self.guarded(|| {
            self.with(|state, now| {
                let same = |wait: &Wait| wait.ticket.number() == number && wait.why == Some(Hold::Duplicate);
                let wait = state.run.waits().into_iter().find(same);
                if let Some(wait) = wait.filter(|_| state.mode == Mode::Going && !state.is_held_back) {
                    self.go_on_with(state, &Wait { until: Some(now), ..wait }, now);
                }
            });
        });
    }

    /// Waits a while after the store failed, and tells whether another try makes sense.
    async fn is_patient(&self, error: &StoreError) -> bool {
        tracing::warn!(run = %self.id(), error = crate::words(error), "keys cannot be read or written");
        if matches!(error, StoreError::Closed | StoreError::Broken | StoreError::Moved { .. }) {
            return false;
        }
        self.core.sleep(AGAIN_AFTER).await;
        true
    }

    /// Begins a piece of work that waited to be let in, this way.
    fn go_in(&self, number: u32, way: Way) {
        let unwanted = self.with(|state, now| {
            let ticket = state.asking.remove(number);
            let may_begin = state.mode == Mode::Going && !state.is_held_back;
            let wait = ticket.filter(|_| may_begin).and_then(|ticket| state.run.wait(&ticket));
            let Some(wait) = wait else { return Some(way) };
            self.dispatch(state, &wait, way, now);
            None
        });
        drop(unwanted);
    }
}

impl Asker for Active {
    fn admitted(self: Arc<Self>, id: u64, entry: Entry) {
        self.guarded(|| {
            let way = match entry {
                Entry::Admitted(permits) => Way::In(permits),
                Entry::Shut(until) => Way::Shut(until),
            };
            if let Ok(number) = u32::try_from(id) {
                self.go_in(number, way);
            }
        });
    }

    fn wants(&self, id: u64) -> bool {
        u32::try_from(id).is_ok_and(|number| self.lock().asking.contains(number))
    }

    fn waits(self: Arc<Self>, id: u64, held: Held) {
        self.guarded(|| {
            let Held { why, on, until } = held;
            let waiting = self.with(|state, now| {
                let ticket = u32::try_from(id).ok().and_then(|number| state.asking.tell(number));
                let ticket = ticket.filter(|_| !state.is_gone())?;
                state.run.hold(&ticket, why, Some(on), Some(until), now);
                self.record(state, &[]);
                state.fresh.is_urgent = true;
                state.run.waiting_runnable(&ticket)
            });
            if let Some(runnable) = waiting {
                telemetry::hold(&runnable, runnable.policy(), why.name(), Some(until));
            }
        });
    }
}
