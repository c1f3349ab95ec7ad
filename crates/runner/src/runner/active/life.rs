//! The life of a run in this process: what happens to it, what is stored of it, and what starts then. A lock puts
//! everything in order; work, the store and hooks are never called under it.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use tidewheel_core::event::Event;
use tidewheel_core::fact::{RunId, Value};
use tidewheel_core::policy::{ExecutionMode, Failure, Kind, NodeInfo};
use tidewheel_core::run::Run;
use tidewheel_core::time::{Span, Timestamp};
use tidewheel_core::work::Cancellation;
use tidewheel_core::workflow::Workflow;
use tidewheel_core::{Executed, Outcome, Runnable, Ticket};
use tidewheel_store::{Append, Fence, Guard, Lease, NewRun, Status, Version};

use super::state::{Flight, Fresh, Heard, Lost, Mode, Out, State, Telling, What};
use crate::driver::{Course, Turn};
use crate::pool::{Job, Place, Sink, panicked};
use crate::runner::commit::Submission;
use crate::runner::core::Core;
use crate::runner::hooks::RunEvent;
use crate::runner::options::{Checkpoints, Executor};

pub(in crate::runner) struct Active {
    this: Weak<Self>,
    pub(super) core: Arc<Core>,
    id: RunId,
    /// Its number in the pool.
    pub(super) group: u64,
    workflow: Workflow,
    deadline: Option<Span>,
    checkpoints: Checkpoints,
    /// Whether it counts among those that rest.
    is_resting: AtomicBool,
    state: Mutex<State>,
}

/// What a run begins with in this process.
pub(in crate::runner) struct Beginning {
    pub(in crate::runner) run: Run,
    pub(in crate::runner) workflow: Workflow,
    pub(in crate::runner) deadline: Option<Span>,
    pub(in crate::runner) checkpoints: Checkpoints,
    pub(in crate::runner) right: Right,
    /// How many events are stored.
    pub(in crate::runner) version: Version,
    pub(in crate::runner) mode: Mode,
}

/// By what right a run is written.
pub(in crate::runner) enum Right {
    New(Box<NewRun>),
    Held(Lease),
}

/// What is left to do after the lock is released.
#[derive(Default)]
struct Afterwards {
    jobs: Vec<Job>,
    inline: Vec<(Place, Runnable)>,
    submission: Option<Submission>,
}

/// So often may the same attempt get lost with the process before somebody should look.
const MOST_LOST: u32 = 3;

impl Active {
    pub(in crate::runner) fn new(core: Arc<Core>, beginning: Beginning) -> Arc<Self> {
        let Beginning { run, workflow, deadline, checkpoints, right, version, mode } = beginning;
        let (id, group, stored_facts) = (run.id().clone(), core.next_group(), run.facts_len());
        Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            core,
            id,
            group,
            workflow,
            deadline,
            checkpoints,
            is_resting: AtomicBool::new(false),
            state: Mutex::new(State {
                run,
                right,
                version,
                mode,
                fresh: Fresh::default(),
                in_flight: None,
                out: HashMap::new(),
                stored_facts,
                waiters: Vec::new(),
                cycles: 0,
                is_held_back: false,
                is_broken: false,
                is_taken_up: false,
                last_command: None,
                again: Vec::new(),
                to_tell: VecDeque::new(),
                is_telling: false,
                deciding: 0,
            }),
        })
    }

    pub(in crate::runner) const fn id(&self) -> &RunId {
        &self.id
    }

    pub(in crate::runner) const fn workflow(&self) -> &Workflow {
        &self.workflow
    }

    /// Returns its number in the pool.
    pub(in crate::runner) const fn group(&self) -> u64 {
        self.group
    }

    /// Returns the fence of its lease; `None` while it is being created.
    pub(in crate::runner) fn fence(&self) -> Option<Fence> {
        match &self.lock().right {
            Right::New(_) => None,
            Right::Held(lease) => Some(lease.fence),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| {
            // A change ended in a panic: what is here is not what is stored, so nobody may go on with it.
            let mut state = poisoned.into_inner();
            self.state.clear_poison();
            if !matches!(state.mode, Mode::Gone { .. }) {
                state.mode = Mode::Gone { status: None, why: "it crashed".to_owned() };
                state.is_broken = true;
            }
            state
        })
    }

    pub(super) fn strong(&self) -> Arc<Self> {
        self.this.upgrade().expect("invariant: whoever calls holds it")
    }

    /// Goes on after the run was loaded. One that was set aside leaves again.
    pub(in crate::runner) fn go_on(&self) {
        self.with(|_, _| {});
    }

    /// Goes on after the run was loaded, unless it is here to be asked something.
    pub(in crate::runner) fn go_on_if_it_may(&self) {
        let is_aside = matches!(self.lock().mode, Mode::Aside { .. });
        if !is_aside {
            self.go_on();
        }
    }

    /// What was under way when the process of the run ended is run again, and what waited keeps its due time.
    fn take_up(&self, state: &mut State, now: Timestamp) {
        state.is_taken_up = true;
        let lost = state.run.prepare_lost(now);
        self.record(state, &[]);
        let too_often = lost.iter().find(|runnable| state.run.dispatches(&runnable.ticket()) > MOST_LOST);
        if let Some(runnable) = too_often {
            let node = runnable.node().name.unwrap_or_else(|| runnable.node().kind.name()).to_owned();
            let reason = format!("`{node}` was lost {MOST_LOST} times with its process");
            state.mode = Mode::Leaving { status: Status::Parked, reason: Some(reason) };
            state.fresh.is_urgent = true;
            return;
        }
        state.fresh.held.extend(lost);
        for (ticket, due) in state.run.retries() {
            self.retry_at(ticket, due);
        }
    }

    fn offer_again(&self, state: &mut State, runnable: &Runnable) {
        state.run.give_back(&runnable.ticket());
        self.record(state, &[]);
        state.fresh.is_urgent = true;
    }

    /// Begins the next attempt at a piece of work when it is due.
    pub(super) fn retry_at(&self, ticket: Ticket, due: Timestamp) {
        let this = Weak::clone(&self.this);
        self.core.timers().at(due, move || {
            if let Some(this) = this.upgrade() {
                this.guarded(|| this.retry(&ticket));
            }
        });
    }

    fn retry(&self, ticket: &Ticket) {
        self.with(|state, now| {
            if state.mode != Mode::Going || state.is_held_back {
                return;
            }
            if let Some(runnable) = state.run.prepare_retry(ticket, now) {
                let is_durable = self.is_durable(&runnable);
                self.record(state, &[is_durable]);
                if is_durable { state.fresh.held.push(runnable) } else { state.again.push(runnable) }
            }
        });
    }

    /// Changes the run under the lock and does then what the change leads to.
    ///
    /// A panic on the way would leave a run that is not what is stored: it is taken up again, and whoever caused
    /// the panic gets it back.
    pub(super) fn with<T>(&self, change: impl FnOnce(&mut State, Timestamp) -> T) -> T {
        match catch_unwind(AssertUnwindSafe(|| self.change(change))) {
            Ok(answer) => answer,
            Err(payload) => {
                self.crash(panicked(payload.as_ref()).message);
                resume_unwind(payload)
            }
        }
    }

    fn change<T>(&self, change: impl FnOnce(&mut State, Timestamp) -> T) -> T {
        let now = self.core.clock().now();
        let mut state = self.lock();
        let answer = change(&mut state, now);
        if let Mode::Aside { status, reason } = &state.mode {
            state.mode = Mode::Leaving { status: *status, reason: reason.clone() };
            state.fresh.is_urgent = true;
        }
        let mut afterwards = Afterwards::default();
        self.advance(&mut state, now, &mut afterwards);
        afterwards.submission = self.flush(&mut state, now);
        drop(state);
        self.finish(afterwards);
        self.tell_rest();
        answer
    }

    /// Says whether there is something to do in this run, where that has changed.
    ///
    /// It looks under the lock and tells under it, too: what was true a moment ago may have been overtaken.
    fn tell_rest(&self) {
        let state = self.lock();
        let is_idle = state.is_idle();
        if self.is_resting.swap(is_idle, Ordering::AcqRel) != is_idle {
            if is_idle { self.core.rests(self.strong()) } else { self.core.wakes(self) }
        }
        drop(state);
    }

    /// Hands out whatever can run now. Joins are done on the way: they call no function.
    fn advance(&self, state: &mut State, now: Timestamp, afterwards: &mut Afterwards) {
        state.cycles += 1;
        if state.mode == Mode::Going && !state.is_held_back && !state.is_taken_up {
            self.take_up(state, now);
        }
        if state.mode == Mode::Going {
            for runnable in std::mem::take(&mut state.again) {
                self.start(state, runnable, now, afterwards);
            }
        }
        while state.mode == Mode::Going && !state.is_held_back {
            let runnables = state.run.prepare_at(now);
            let durable: Vec<bool> = runnables.iter().map(|runnable| self.is_durable(runnable)).collect();
            self.record(state, &durable);
            if runnables.is_empty() {
                break;
            }
            for (runnable, is_durable) in runnables.into_iter().zip(durable) {
                if runnable.node().kind == Kind::Join {
                    state.run.apply(runnable.execute());
                    self.record(state, &[]);
                } else if is_durable {
                    state.fresh.held.push(runnable);
                } else {
                    self.start(state, runnable, now, afterwards);
                }
            }
        }
    }

    /// Tells whether the dispatch of a piece of work is stored before it starts.
    fn is_durable(&self, runnable: &Runnable) -> bool {
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
            fresh.events.push_with(write).expect("invariant: values are checked before they come here");
            if is_heard && let Ok(line) = event.to_json(&self.workflow) {
                fresh.heard.push(Heard { place, what: what_of(event, run), line: line.into() });
            }
        }
    }

    /// Puts together what is to be stored, if it is time for it and nothing is on its way.
    fn flush(&self, state: &mut State, now: Timestamp) -> Option<Submission> {
        if state.in_flight.is_some() || matches!(state.mode, Mode::Gone { .. }) {
            return None;
        }
        if !state.fresh.is_due(self.checkpoints, state.cycles, state.run.is_runnable()) {
            return None;
        }
        state.cycles = 0;
        let (status, wake_at, reason) = state.condition(now);
        let Fresh { events, heard, handled, acks, held, is_urgent: _ } = std::mem::take(&mut state.fresh);
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
            checkpoint: None,
            release: matches!(state.mode, Mode::Leaving { .. }),
            events,
        };
        let (count, facts) = (append.events.len(), state.run.facts_len());
        state.in_flight = Some(Flight { heard, count, acks, held, facts });
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
            for runnable in flight.held {
                self.start(&mut state, runnable, now, &mut afterwards);
            }
        } else {
            for runnable in &flight.held {
                self.offer_again(&mut state, runnable);
            }
        }
        let seen = state.stored_facts;
        state.stored_facts = flight.facts;
        state.wake_waiters(seen);
        self.advance(&mut state, now, &mut afterwards);
        afterwards.submission = self.flush(&mut state, now);
        let (is_over, has_left) = (state.is_over(), afterwards.submission.is_none() && state.has_left());
        let (is_idle, is_told) = (state.is_idle(), is_over && state.mode == Mode::Going);
        let status = state.condition(now).0;
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
        drop(state);
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

    /// Starts a piece of work whose dispatch is stored, or need not be.
    fn start(&self, state: &mut State, runnable: Runnable, now: Timestamp, afterwards: &mut Afterwards) {
        let place = self.core.pool().place();
        let is_durable = self.is_durable(&runnable);
        let deadline = self.deadline.and_then(|span| Some(runnable.accepted_at()?.saturating_add(span)));
        if runnable.is_plain() && deadline.is_none() {
            let out = Out { ticket: runnable.ticket(), is_durable, driven: None };
            state.out.insert(place, out);
            self.hand_in(place, runnable, None, afterwards);
            return;
        }
        let mut course = Course::new(&runnable, Arc::clone(runnable.policy()), deadline, now);
        let turn = course.begin(runnable.clone(), now);
        let out = Out { ticket: runnable.ticket(), is_durable, driven: Some(Box::new((runnable, course))) };
        self.take_turn(state, place, out, turn, afterwards);
    }

    fn take_turn(&self, state: &mut State, place: Place, out: Out, turn: Turn, afterwards: &mut Afterwards) {
        match turn {
            Turn::Run { runnable, until } => {
                state.out.insert(place, out);
                self.hand_in(place, *runnable, until, afterwards);
            }
            Turn::Retry(failed) => {
                let due = failed.due();
                state.run.fail_attempt(&out.ticket, *failed);
                self.record(state, &[]);
                state.fresh.is_urgent = true;
                self.retry_at(out.ticket, due);
            }
            Turn::Over(executed) => {
                // A fallback may have given the value.
                let outcome = storable(executed.outcome().clone());
                self.apply(state, executed.with_outcome(outcome));
            }
        }
    }

    fn apply(&self, state: &mut State, executed: Executed) {
        state.run.apply(executed);
        self.record(state, &[]);
    }

    fn hand_in(
        &self,
        place: Place,
        mut runnable: Runnable,
        until: Option<crate::driver::Until>,
        afterwards: &mut Afterwards,
    ) {
        let cancellation = runnable.wants_context().then(Cancellation::default);
        if let Some(cancellation) = &cancellation {
            runnable = runnable.with_cancellation(cancellation.clone());
        }
        let executor = self.core.options().executor_of(&runnable.node());
        if executor == Executor::Inline && !runnable.is_async() {
            afterwards.inline.push((place, runnable));
            return;
        }
        let in_task = executor == Executor::Tasks;
        let (sink, group) = (self.strong(), self.group);
        afterwards.jobs.push(Job { sink, group, place, runnable, until, cancellation, in_task });
    }

    /// Does what a change under the lock led to.
    fn finish(&self, afterwards: Afterwards) {
        let mut inline = self.hand_over(afterwards);
        // One after the other, however long the row gets.
        while let Some((place, runnable)) = inline.pop_front() {
            let outcome = match catch_unwind(AssertUnwindSafe(|| runnable.execute())) {
                Ok(executed) => executed.into_outcome(),
                Err(payload) => Outcome::Failed(panicked(payload.as_ref())),
            };
            let afterwards = self.take_end(place, outcome);
            inline.extend(self.hand_over(afterwards));
        }
    }

    /// Gives others what is theirs to do; what is to be done here comes back.
    fn hand_over(&self, afterwards: Afterwards) -> VecDeque<(Place, Runnable)> {
        let Afterwards { jobs, inline, submission } = afterwards;
        if let Some(submission) = submission {
            self.core.committer().submit(submission);
        }
        if !jobs.is_empty() {
            self.core.pool().submit(jobs);
        }
        inline.into()
    }

    fn take_end(&self, place: Place, outcome: Outcome) -> Afterwards {
        let outcome = storable(outcome);
        let now = self.core.clock().now();
        let mut state = self.lock();
        let mut afterwards = Afterwards::default();
        let Some(out) = state.out.remove(&place) else { return afterwards };
        let Out { ticket, is_durable, driven } = out;
        match driven {
            None => {
                let executed = ticket.executed(outcome);
                let executed = if is_durable { executed.ended_at(now) } else { executed };
                self.apply(&mut state, executed);
            }
            Some(mut driven) => {
                // A policy may ask functions of the user's, which may take their time.
                state.deciding += 1;
                drop(state);
                let (runnable, course) = &mut *driven;
                let turn = course.end(runnable.clone(), outcome, now);
                state = self.lock();
                state.deciding -= 1;
                match (&state.mode, turn) {
                    (Mode::Gone { .. }, _) => return afterwards,
                    (Mode::Leaving { .. } | Mode::Aside { .. }, Turn::Run { .. }) => {
                        self.offer_again(&mut state, &driven.0);
                    }
                    (_, turn) => {
                        let out = Out { ticket, is_durable, driven: Some(driven) };
                        self.take_turn(&mut state, place, out, turn, &mut afterwards);
                    }
                }
            }
        }
        self.advance(&mut state, now, &mut afterwards);
        afterwards.submission = self.flush(&mut state, now);
        afterwards
    }

    /// Tells whoever listens what was stored, in the order in which it was stored.
    fn tell_all(&self) {
        let mut is_first = true;
        loop {
            let telling = {
                let mut state = self.lock();
                if is_first && state.is_telling {
                    return;
                }
                is_first = false;
                let telling = state.to_tell.pop_front();
                state.is_telling = telling.is_some();
                telling
            };
            let Some(Telling { first, heard, idle }) = telling else { return };
            self.tell(first, &heard, idle);
        }
    }

    fn tell(&self, first: Version, heard: &[Heard], idle: Option<Status>) {
        for heard in heard {
            let version = first + u64::from(heard.place);
            self.core.publish(RunEvent { run: self.id.clone(), version, event: Arc::clone(&heard.line) });
        }
        let Some(hooks) = &self.core.options().hooks else { return };
        let tell = || {
            for (name, kind, what) in heard.iter().filter_map(|heard| heard.what.as_ref()) {
                let named = name.as_deref().and_then(|name| self.workflow.node_info(name));
                let node = named.unwrap_or_else(|| NodeInfo::unnamed(*kind));
                match what {
                    What::Dispatched(attempt) => hooks.dispatched(&self.id, &node, *attempt),
                    What::Completed => hooks.completed(&self.id, &node),
                    What::Failed(failure) => hooks.failed(&self.id, &node, failure),
                }
            }
            if let Some(status) = idle {
                hooks.idle(&self.id, status);
            }
        };
        // A hook that panics changes nothing.
        drop(catch_unwind(AssertUnwindSafe(tell)));
    }

    /// The run can no longer be written by this process.
    pub(in crate::runner) fn lose(&self, why: &Lost) {
        let mut state = self.lock();
        state.mode = Mode::Gone { status: None, why: why.to_string() };
        let flight = state.in_flight.take();
        let fresh = std::mem::take(&mut state.fresh);
        let places: Vec<Place> = std::mem::take(&mut state.out).into_keys().collect();
        state.waiters.clear();
        state.again.clear();
        drop(state);
        self.core.pool().take_back(self.group, &places);
        let acks = flight.into_iter().flat_map(|flight| flight.acks).chain(fresh.acks);
        for ack in acks {
            drop(ack.send(Err(why.clone())));
        }
        self.core.forget(self);
    }

    /// The store says that the lease of this process is over. The others of its runs will learn it, too.
    pub(in crate::runner) fn lose_late(&self, why: &Lost) {
        self.lose(why);
        self.core.late.notify_one();
    }

    /// The run went wrong in a way that is not the failure of its work. It is taken up again from what is stored.
    pub(in crate::runner) fn crash(&self, why: String) {
        let mut state = self.lock();
        if matches!(state.mode, Mode::Gone { .. }) && !std::mem::take(&mut state.is_broken) {
            return;
        }
        drop(state);
        let is_stored = self.fence().is_some();
        self.lose(&Lost::Crashed(why.clone()));
        if is_stored {
            self.core.crashed(&self.id, why);
        }
    }

    /// Keeps a panic, of ours or of a value that cannot be written, from taking anything else down: the run is
    /// taken up again from what is stored.
    fn guarded(&self, deed: impl FnOnce()) {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(deed)) {
            self.crash(panicked(payload.as_ref()).message);
        }
    }
}

impl Sink for Active {
    fn ended(self: Arc<Self>, place: Place, outcome: Outcome) {
        self.guarded(|| self.finish(self.take_end(place, outcome)));
    }
}

/// Makes a value that cannot be written the failure of the work that gave it.
fn storable(outcome: Outcome) -> Outcome {
    let check = |value: &Value| match catch_unwind(AssertUnwindSafe(|| value.to_text())) {
        Ok(Ok(_)) => None,
        Ok(Err(error)) => Some(Failure::of(&error).code("unserialisable").non_retryable()),
        Err(payload) => Some(panicked(payload.as_ref()).code("unserialisable").non_retryable()),
    };
    let failure = match &outcome {
        Outcome::Completed(value) => check(value),
        Outcome::FannedOut(values) => values.iter().find_map(check),
        Outcome::Failed(_) | Outcome::Skipped(_) => None,
    };
    failure.map_or(outcome, Outcome::Failed)
}

/// Returns what hooks are told of an event.
fn what_of(event: &Event, run: &Run) -> Option<(Option<String>, Kind, What)> {
    let (act, what) = match event {
        Event::RunnableDispatched { act, attempt, .. } => (act, What::Dispatched(*attempt)),
        Event::RunnableCompleted { act, .. } => (act, What::Completed),
        Event::RunnableFailed { act, failure, .. } | Event::RunnableSkipped { act, failure, .. } => {
            (act, What::Failed(failure.clone()))
        }
        _ => return None,
    };
    let node = run.node_of(*act)?;
    Some((node.name.map(str::to_owned), node.kind, what))
}
