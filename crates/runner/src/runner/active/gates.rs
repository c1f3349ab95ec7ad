//! Work that does not begin as it is, or does not end here: it waits for a time, is let in, is ended by somebody
//! outside, or waits for a person. While it waits it has no slot, and what it waits for is in the log.

use std::sync::{Arc, Weak};

use tidewheel_core::decide::Action;
use tidewheel_core::event::{FailedAttempt, Hold};
use tidewheel_core::fact::RunnableId;
use tidewheel_core::policy::{ExecutionMode, Failure, OnFailure, Resolved};
use tidewheel_core::time::{Span, Timestamp};
use tidewheel_core::work::Token;
use tidewheel_core::{Executed, Outcome, Runnable, Ticket, Wait};
use tidewheel_store::{Letter, NewDeadLetter, Status, StoreError};

use super::life::{Active, Afterwards, storable};
use super::state::{By, Early, Mode, Out, Piece, State, Way};
use crate::driver::{Course, Known, Turn};
use crate::limits::{Ask, Asker, Entry, Held, Permits, waited_too_long};
use crate::pool::Place;
use crate::runner::keeper::AGAIN_AFTER;
use crate::runner::keys::{Claimed, Key};
use crate::telemetry;

/// What is to be asked of others and told them, when no lock is held.
#[derive(Default)]
pub(super) struct AtTheGates {
    pub(super) asks: Vec<Ask>,
    /// What was given and is not needed.
    pub(super) unwanted: Vec<Way>,
    succeeded: Vec<Permits>,
    failing: Vec<End>,
    /// Attempts that ended, of which all that matters is known.
    pub(super) ends: Vec<End>,
    outside: Vec<(Arc<Resolved>, bool)>,
    tokens_back: Vec<Arc<Resolved>>,
    /// Work that may be the same as other work, and wants to be let in.
    pub(super) keyed: Vec<(Runnable, Arc<Resolved>)>,
    /// Work that is over without a result and may be the same as other work: others may do it, and then it is over.
    pub(super) over: Vec<Ended>,
    /// Work that was put aside.
    letters: Vec<(Runnable, Failure)>,
}

/// The result of work that other work is the same as is looked for after the first of these, where nobody here tells,
/// then less often, and at last after the second: each look is an event of the log.
const LOOK_FOR_RESULT: (Span, Span) = (Span::from_secs(1), Span::from_secs(30));

/// An attempt that ended. What follows is decided when no lock is held: a policy may ask functions of the user's.
pub(super) struct End {
    place: Place,
    out: Out,
    outcome: Outcome,
    now: Timestamp,
    /// Who ended it from outside, and waits until that is stored.
    by: Option<By>,
}

/// An attempt that ended, and what follows.
pub(super) struct Ended {
    place: Place,
    out: Out,
    turn: Turn,
    /// Whether a token for a retry was taken.
    has_token: bool,
    /// Whether the work itself gave a result: that of a fallback is nobody else's.
    has_result: bool,
    now: Timestamp,
    by: Option<By>,
}

impl End {
    /// Tells whether other work may be the same.
    pub(super) fn is_keyed(&self) -> bool {
        self.out.driven.as_ref().is_some_and(|driven| driven.0.policy().idempotency_key.is_some())
    }

    pub(super) fn decided(mut self, known: Known) -> Ended {
        let driven = self.out.driven.as_mut().expect("invariant: only work under a policy comes here");
        let (runnable, course) = &mut **driven;
        let has_result = matches!(self.outcome, Outcome::Completed(_)) && !course.is_recovering();
        let turn = course.end(runnable.clone(), self.outcome, known, self.now);
        let has_token = known.retry_tokens.is_some_and(|tokens| tokens > 0);
        let Self { place, out, now, by, .. } = self;
        Ended { place, out, turn, has_token, has_result, now, by }
    }
}

impl Ended {
    /// Returns what follows for an attempt that did not begin.
    pub(super) const fn unbegun(place: Place, out: Out, turn: Turn, now: Timestamp) -> Self {
        Self { place, out, turn, has_token: false, has_result: false, now, by: None }
    }

    /// Tells whether other work may be the same, and gets no result from this one.
    fn leaves_key(&self) -> bool {
        let is_keyed = |driven: &(Runnable, Course)| driven.0.policy().idempotency_key.is_some();
        !self.has_result
            && matches!(self.turn, Turn::Over(_))
            && self.out.driven.as_deref().is_some_and(is_keyed)
    }
}

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
        if limit.is_some_and(|limit| limit <= now) {
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
    fn look_at(&self, state: &mut State, ticket: &Ticket, at: Option<Timestamp>) {
        let (Some(at), timers) = (at, self.core.timers()) else { return };
        match state.looks.get(&ticket.number()) {
            Some((earlier, _)) if *earlier <= at => return,
            Some(later) => timers.cancel(*later),
            None => {}
        }
        let (this, look) = (Arc::downgrade(&self.strong()), ticket.clone());
        let timer = timers.at(at, move || {
            let Some(this) = this.upgrade() else { return };
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
            self.core.spawn(async move {
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
        self.core.spawn(async move {
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
        self.core.spawn(async move {
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
        self.core.spawn(async move {
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
        self.core.spawn(async move {
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
                    this.core.keys().wait(&key, Arc::downgrade(&this), number);
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
        if matches!(error, StoreError::Closed | StoreError::Broken) {
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

    /// Ends an attempt under a policy: what follows is decided, at once or when it is known what stands in the way.
    pub(super) fn end_attempt(
        &self,
        state: &mut State,
        place: Place,
        mut out: Out,
        outcome: Outcome,
        now: Timestamp,
        afterwards: &mut Afterwards,
    ) {
        let driven = out.driven.as_ref().expect("invariant: only work under a policy comes here");
        let (policy, is_fallback) = (Arc::clone(driven.0.policy()), driven.1.is_recovering());
        let gates = &mut afterwards.gates;
        state.deciding += 1;
        match &outcome {
            Outcome::Completed(_)
                if policy.execution_mode == Some(ExecutionMode::External) && !is_fallback =>
            {
                state.deciding -= 1;
                gates.unwanted.extend(out.permits.take().map(Way::In));
                self.wait_outside(state, &driven.0, now, now);
                if let Some(Early { said, by, .. }) = state.early.remove(&out.ticket.number()) {
                    self.take_said(state, &out.ticket, said, by, now);
                }
            }
            Outcome::Failed(_)
                if !is_fallback && (policy.circuit_breaker.is_some() || policy.retry_budget.is_some()) =>
            {
                gates.failing.push(End { place, out, outcome, now, by: None });
            }
            Outcome::Failed(_) => {
                gates.unwanted.extend(out.permits.take().map(Way::In));
                gates.ends.push(End { place, out, outcome, now, by: None });
            }
            Outcome::Completed(_) | Outcome::FannedOut(_) | Outcome::Skipped(_) => {
                gates.succeeded.extend(out.permits.take());
                gates.ends.push(End { place, out, outcome, now, by: None });
            }
        }
    }

    /// Does what follows from an attempt that ended.
    pub(super) fn take_decided(&self, state: &mut State, ended: Ended, afterwards: &mut Afterwards) {
        let Ended { place, out, turn, has_token, has_result: _, now, by } = ended;
        state.deciding = state.deciding.saturating_sub(1);
        state.ending.remove(&out.ticket.number());
        if let Turn::Retry(failed) = &turn {
            self.core.metrics().retry(failed.decided.decision.reason);
        }
        let is_retry = matches!(
            &turn,
            Turn::Retry(failed) if matches!(failed.decided.decision.action, Action::RetryAt(_))
        );
        if has_token && !is_retry {
            let driven = out.driven.as_ref().expect("invariant: only work under a policy comes here");
            afterwards.gates.tokens_back.push(Arc::clone(driven.0.policy()));
        }
        match (&state.mode, turn) {
            (Mode::Gone { .. }, _) => {}
            (Mode::Leaving { .. } | Mode::Aside { .. }, Turn::Run { .. }) => {
                state.run.give_back(&out.ticket);
                self.record(state, &[]);
                state.fresh.is_urgent = true;
            }
            (_, turn) => self.take_turn(state, place, out, turn, None, now, afterwards),
        }
        if let Some(by) = by {
            state.answer(by);
        }
        // A run that leaves waited for this.
        state.fresh.is_urgent |= matches!(state.mode, Mode::Leaving { .. });
    }

    /// Ends a piece of work for good.
    pub(super) fn end_work(
        &self,
        state: &mut State,
        out: &Out,
        executed: Executed,
        afterwards: &mut Afterwards,
    ) {
        let Some(driven) = &out.driven else { return self.apply(state, executed) };
        let (runnable, policy) = (&driven.0, driven.0.policy());
        if let (OnFailure::DeadLetter, Outcome::Failed(failure)) = (policy.on_failure, executed.outcome()) {
            let letter = dead_letter(runnable, &out.ticket, failure);
            afterwards.gates.letters.push((runnable.clone(), failure.clone()));
            state.fresh.letters.push(Letter::Bury(letter));
        }
        self.apply(state, executed);
        state.fresh.is_urgent |= policy.checkpoint_after;
    }

    /// Lets the run wait for a person, with the work that failed.
    pub(super) fn pause_for(&self, state: &mut State, out: &Out, failed: FailedAttempt, now: Timestamp) {
        let node = out.driven.as_ref().map(|driven| {
            let node = driven.0.node();
            node.name.unwrap_or_else(|| node.kind.name()).to_owned()
        });
        let reason = format!("`{}` failed: {}", node.unwrap_or_default(), failed.failure.message);
        state.run.fail_attempt(&out.ticket, failed);
        self.record(state, &[]);
        state.run.hold(&out.ticket, Hold::Pause, None, None, now);
        self.record(state, &[]);
        state.fresh.is_urgent = true;
        match state.mode {
            Mode::Going | Mode::Paused => {
                state.mode = Mode::Paused;
                state.asking.clear();
                state.pause_reason.get_or_insert(reason);
            }
            // Whoever has it next finds it so.
            Mode::Leaving { .. } if state.changes_hands() => {
                state.mode = Mode::Leaving { status: Status::Paused, reason: Some(reason) };
            }
            Mode::Aside { .. } | Mode::Leaving { .. } | Mode::Gone { .. } => {}
        }
    }

    /// Keeps what work said that would undo it. Nobody can undo with what does not exist: the work failed.
    pub(super) fn register_undos(&self, state: &mut State, out: &mut Out, outcome: Outcome) -> Outcome {
        let Some(ear) = out.ear.take() else { return outcome };
        let mut outcome = outcome;
        for (component, value) in ear.take_registered() {
            let registered = match storable(Outcome::Completed(value)) {
                Outcome::Completed(value) => {
                    state.run.register_undo(&out.ticket, &component, value).map(|_| ())
                }
                Outcome::Failed(failure) => Err(failure),
                Outcome::FannedOut(_) | Outcome::Skipped(_) => Ok(()),
            };
            match registered {
                Ok(()) => self.record(state, &[]),
                Err(failure) => outcome = Outcome::Failed(failure),
            }
        }
        outcome
    }

    /// Lets somebody outside end a piece of work that they have since then.
    fn wait_outside(&self, state: &mut State, runnable: &Runnable, since: Timestamp, now: Timestamp) {
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
    fn look_outside(&self, state: &mut State, wait: &Wait, now: Timestamp) {
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
    fn end_outside(
        &self,
        state: &mut State,
        ticket: &Ticket,
        outcome: Outcome,
        by: Option<By>,
        now: Timestamp,
    ) {
        let Some(runnable) = state.run.waiting_runnable(ticket) else { return };
        let deadline = self.deadline_of(runnable.accepted_at());
        let course = Course::new(&runnable, Arc::clone(runnable.policy()), deadline, now);
        let ticket = runnable.ticket();
        let driven = Some(Box::new((runnable, course)));
        let out = Out { ticket, is_durable: true, driven, permits: None, ear: None };
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
    fn take_said(&self, state: &mut State, ticket: &Ticket, said: Said, by: By, now: Timestamp) {
        match said {
            Said::Completed(value) => {
                self.end_outside(state, ticket, storable(Outcome::Completed(value)), Some(by), now);
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

/// What somebody outside says of a piece of work.
pub(in crate::runner) enum Said {
    Completed(tidewheel_core::fact::Value),
    Failed(Failure),
    Alive,
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

/// What people need to know of work that is put aside. Its attempts are in the log of the run.
fn dead_letter(runnable: &Runnable, ticket: &Ticket, failure: &Failure) -> NewDeadLetter {
    let node = runnable.node();
    let input = runnable.input().to_text().ok();
    let body = serde_json::json!({
        "v": 1,
        "number": ticket.number(),
        "input": input,
        "failure": failure,
        "attempts": ticket.attempt() + 1,
    });
    NewDeadLetter {
        node: node.name.unwrap_or_else(|| node.kind.name()).to_owned(),
        work: runnable.id().to_string(),
        body: body.to_string(),
    }
}
