//! The life of a run in this process: what happens to it, what is stored of it, and what starts then. A lock puts
//! everything in order; work, the store and hooks are never called under it.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use tidewheel_core::event::Event;
use tidewheel_core::fact::{RunId, Value};
use tidewheel_core::policy::{ExecutionMode, Failure, Kind, NodeInfo};
use tidewheel_core::run::Run;
use tidewheel_core::time::{Span, Timestamp};
use tidewheel_core::work::Cancellation;
use tidewheel_core::workflow::Workflow;
use tidewheel_core::{Executed, Outcome, Prepared, Runnable};
use tidewheel_store::{Append, Fence, Guard, Lease, NewRun, Status, Version};

use super::gates::{AtTheGates, Ended};
use super::state::{Asking, By, Flight, Fresh, Heard, Lost, Mode, Out, Piece, State, Telling, Way, What};
use crate::driver::{Course, Known, Turn};
use crate::limits::Permits;
use crate::pool::{Job, Place, Sink, call, panicked};
use crate::runner::commit::Submission;
use crate::runner::core::Core;
use crate::runner::hooks::RunEvent;
use crate::runner::options::{Checkpoints, Executor};
use crate::telemetry;

pub(in crate::runner) struct Active {
    this: Weak<Self>,
    pub(super) core: Arc<Core>,
    id: RunId,
    /// Its number in the pool.
    pub(super) group: u64,
    workflow: Workflow,
    /// The name of the workflow, for the limits.
    pub(super) workflow_name: Arc<str>,
    has_compensations: bool,
    deadline: Option<Span>,
    checkpoints: Checkpoints,
    /// Whether it counts among those that rest.
    resting: AtomicU8,
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
    /// Why it is paused, where there is something to say.
    pub(in crate::runner) pause_reason: Option<String>,
}

/// By what right a run is written.
pub(in crate::runner) enum Right {
    New(Box<NewRun>),
    Held(Lease),
}

/// What is left to do after the lock is released.
#[derive(Default)]
pub(super) struct Afterwards {
    jobs: Vec<Job>,
    inline: Vec<(Place, Runnable)>,
    submission: Option<Submission>,
    pub(super) gates: AtTheGates,
}

/// It has something to do.
const BUSY: u8 = 0;
/// It has nothing to do.
const RESTING: u8 = 1;
/// It waits to be let in, and has nothing else to do.
const IN_LINE: u8 = 2;

/// So often may the same attempt get lost with the process before somebody should look.
const MOST_LOST: u32 = 3;

impl Active {
    pub(in crate::runner) fn new(core: Arc<Core>, beginning: Beginning) -> Arc<Self> {
        let Beginning { run, workflow, deadline, checkpoints, right, version, mode, pause_reason } =
            beginning;
        let (id, group, stored_facts) = (run.id().clone(), core.next_group(), run.facts_len());
        Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            core,
            id,
            group,
            workflow_name: Arc::from(workflow.name()),
            has_compensations: workflow.has_compensations(),
            workflow,
            deadline,
            checkpoints,
            resting: AtomicU8::new(BUSY),
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
                asking: Asking::default(),
                looks: BTreeMap::new(),
                asks: Vec::new(),
                keys: BTreeMap::new(),
                keyed: Vec::new(),
                outside: Vec::new(),
                ending: BTreeSet::new(),
                early: BTreeMap::new(),
                pause_reason,
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
        let lost = state.run.prepare_lost(now).runnables;
        self.record(state, &[]);
        if lost.iter().any(|runnable| self.parks_if_lost(state, runnable)) {
            return;
        }
        state.fresh.held.extend(lost.into_iter().map(Piece::free));
        self.go_on_waiting(state, now);
    }

    /// Puts the run aside if an attempt got lost with its process again and again. Tells whether it did.
    pub(super) fn parks_if_lost(&self, state: &mut State, runnable: &Runnable) -> bool {
        if state.run.dispatches(&runnable.ticket()) <= MOST_LOST {
            return false;
        }
        let node = runnable.node().name.unwrap_or_else(|| runnable.node().kind.name()).to_owned();
        let reason = format!("`{node}` was lost {MOST_LOST} times with its process");
        state.mode = Mode::Leaving { status: Status::Parked, reason: Some(reason) };
        state.fresh.is_urgent = true;
        true
    }

    fn offer_again(&self, state: &mut State, runnable: &Runnable) {
        state.run.give_back(&runnable.ticket());
        self.record(state, &[]);
        state.fresh.is_urgent = true;
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
        let resting = match (state.is_idle(), state.asking.is_empty()) {
            (false, _) => BUSY,
            (true, true) => RESTING,
            (true, false) => IN_LINE,
        };
        if self.resting.swap(resting, Ordering::AcqRel) != resting {
            if resting == BUSY { self.core.wakes(self) } else { self.core.rests(self.strong()) }
        }
        drop(state);
    }

    /// Tells whether it waits to be let in, and has nothing else to do.
    pub(in crate::runner) fn is_in_line(&self) -> bool {
        self.resting.load(Ordering::Acquire) == IN_LINE
    }

    /// Hands out whatever can run now. Joins are done on the way: they call no function.
    fn advance(&self, state: &mut State, now: Timestamp, afterwards: &mut Afterwards) {
        state.cycles += 1;
        if state.mode == Mode::Going && !state.is_held_back && !state.is_taken_up {
            self.take_up(state, now);
        }
        if state.mode == Mode::Going {
            for piece in std::mem::take(&mut state.again) {
                self.start(state, piece, now, afterwards);
            }
        }
        while state.mode == Mode::Going && !state.is_held_back {
            let Prepared { runnables, held } = state.run.prepare_admitted(now, Some(now));
            let durable: Vec<bool> = runnables.iter().map(|runnable| self.is_durable(runnable)).collect();
            self.record(state, &durable);
            if runnables.is_empty() && held.is_empty() {
                break;
            }
            for wait in held {
                self.go_on_with(state, &wait, now);
            }
            for (runnable, is_durable) in runnables.into_iter().zip(durable) {
                if runnable.node().kind == Kind::Join {
                    state.run.apply(runnable.execute());
                    self.record(state, &[]);
                } else if is_durable {
                    state.fresh.held.push(Piece::free(runnable));
                } else {
                    self.start(state, Piece::free(runnable), now, afterwards);
                }
            }
        }
        self.take_outside(state, afterwards);
        afterwards.gates.asks.append(&mut state.asks);
        if state.in_flight.is_none() && state.fresh.events.is_empty() {
            afterwards.gates.keyed.append(&mut state.keyed);
        } else {
            // What is to be stored has to be there first.
            state.fresh.is_urgent |= !state.keyed.is_empty() && !state.fresh.events.is_empty();
        }
    }

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
        let parked = match &state.mode {
            Mode::Gone { status: Some(Status::Parked), why } => Some(why.clone()),
            Mode::Going | Mode::Paused | Mode::Aside { .. } | Mode::Leaving { .. } | Mode::Gone { .. } => {
                None
            }
        };
        drop(state);
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

    /// Starts a piece of work whose dispatch is stored, or need not be.
    fn start(&self, state: &mut State, piece: Piece, now: Timestamp, afterwards: &mut Afterwards) {
        let Piece { runnable, way, queue_until } = piece;
        let place = self.core.pool().place();
        let is_durable = self.is_durable(&runnable);
        let deadline = self.deadline_of(runnable.accepted_at());
        let ticket = runnable.ticket();
        if runnable.is_plain() && deadline.is_none() {
            let out = Out { ticket, is_durable, driven: None, permits: None, ear: None };
            self.hand_in(state, place, out, runnable, None, None, afterwards);
            return;
        }
        let mut course = Course::new(&runnable, Arc::clone(runnable.policy()), deadline, now);
        let mut out = Out { ticket, is_durable, driven: None, permits: None, ear: None };
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
                // A fallback may have given the value.
                let outcome = storable(executed.outcome().clone());
                self.end_work(state, &out, executed.with_outcome(outcome), afterwards);
            }
        }
    }

    pub(super) fn apply(&self, state: &mut State, executed: Executed) {
        state.run.apply(executed);
        self.record(state, &[]);
    }

    #[expect(clippy::too_many_arguments, reason = "all of it is one piece")]
    fn hand_in(
        &self,
        state: &mut State,
        place: Place,
        mut out: Out,
        mut runnable: Runnable,
        until: Option<crate::driver::Until>,
        queue_until: Option<Timestamp>,
        afterwards: &mut Afterwards,
    ) {
        let wants_context = runnable.wants_context();
        let cancellation = wants_context.then(Cancellation::default);
        if let Some(cancellation) = &cancellation {
            runnable = runnable.with_cancellation(cancellation.clone());
        }
        let tells_beginning = out.permits.as_ref().is_some_and(Permits::wants_beginning);
        let executor = self.core.options().executor_of(&runnable.node());
        let is_inline = executor == Executor::Inline && !runnable.is_async();
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
            let terms = job.terms();
            (terms.until, terms.cancellation) = (until, cancellation);
            terms.queue_until = queue_until.or(terms.queue_until);
        }
        if tells_beginning {
            job.terms().tells_beginning = true;
        }
        job.in_task = executor == Executor::Tasks;
        afterwards.jobs.push(job);
    }

    /// Says to the limits that a piece of work begins.
    fn begin_now(&self, place: Place) {
        let mut state = self.lock();
        let permits = state.out.get_mut(&place).and_then(|out| out.permits.as_mut());
        let beginning = permits.and_then(Permits::begun);
        drop(state);
        // It is said by dropping it, and no lock may be held.
        drop(beginning);
    }

    /// Does what a change under the lock led to.
    fn finish(&self, afterwards: Afterwards) {
        let mut inline = self.hand_over(afterwards);
        // One after the other, however long the row gets.
        while let Some((place, runnable)) = inline.pop_front() {
            self.begin_now(place);
            let afterwards = self.take_end(place, call(runnable));
            inline.extend(self.hand_over(afterwards));
        }
    }

    /// Gives others what is theirs to do; what is to be done here comes back.
    fn hand_over(&self, afterwards: Afterwards) -> VecDeque<(Place, Runnable)> {
        let Afterwards { jobs, inline, submission, gates } = afterwards;
        if let Some(submission) = submission {
            self.core.committer().submit(submission);
        }
        if !jobs.is_empty() {
            self.core.pool().submit(jobs);
        }
        self.go_to_the_gates(gates);
        inline.into()
    }

    fn take_end(&self, place: Place, outcome: Outcome) -> Afterwards {
        let outcome = storable(outcome);
        let now = self.core.clock().now();
        let mut state = self.lock();
        let mut afterwards = Afterwards::default();
        let Some(mut out) = state.out.remove(&place) else { return afterwards };
        self.core.metrics().attempt(&outcome);
        let outcome = self.register_undos(&mut state, &mut out, outcome);
        if out.driven.is_some() {
            self.end_attempt(&mut state, place, out, outcome, now, &mut afterwards);
            if let Some(end) = afterwards.gates.ends.pop_if(|end| !end.is_keyed()) {
                // A policy may ask functions of the user's, which may take their time.
                drop(state);
                let ended = end.decided(Known::default());
                state = self.lock();
                self.take_decided(&mut state, ended, &mut afterwards);
            }
        } else {
            state.refuse_early(out.ticket.number());
            let executed = out.ticket.clone().executed(outcome);
            let executed = if out.is_durable { executed.ended_at(now) } else { executed };
            self.apply(&mut state, executed);
        }
        self.advance(&mut state, now, &mut afterwards);
        afterwards.submission = self.flush(&mut state, now);
        afterwards
    }

    /// Goes on with attempts that ended, when it is known what they mean.
    pub(super) fn decided(&self, ended: Ended) {
        let now = self.core.clock().now();
        let mut state = self.lock();
        let mut afterwards = Afterwards::default();
        self.take_decided(&mut state, ended, &mut afterwards);
        self.advance(&mut state, now, &mut afterwards);
        afterwards.submission = self.flush(&mut state, now);
        drop(state);
        self.finish(afterwards);
        self.tell_rest();
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
        let out = std::mem::take(&mut state.out);
        let places: Vec<Place> = out.keys().copied().collect();
        state.waiters.clear();
        state.asking.clear();
        let again = std::mem::take(&mut state.again);
        let early = std::mem::take(&mut state.early);
        drop(state);
        self.core.pool().take_back(self.group, &places);
        drop((again, out));
        self.leave_lines();
        let early = early.into_values().filter_map(|early| match early.by {
            By::Caller(ack) => Some(ack),
            By::Command(_) => None,
        });
        let acks = flight.into_iter().flat_map(|flight| flight.acks).chain(fresh.acks).chain(early);
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
    pub(super) fn guarded(&self, deed: impl FnOnce()) {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(deed)) {
            self.crash(panicked(payload.as_ref()).message);
        }
    }
}

impl Sink for Active {
    fn began(self: Arc<Self>, place: Place) {
        self.begin_now(place);
    }

    fn ended(self: Arc<Self>, place: Place, outcome: Outcome) {
        self.guarded(|| self.finish(self.take_end(place, outcome)));
    }
}

/// Makes a value that cannot be written the failure of the work that gave it.
pub(super) fn storable(outcome: Outcome) -> Outcome {
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
