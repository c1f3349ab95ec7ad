//! The life of a run in this process: what happens to it, what is stored of it, and what starts then. A lock puts
//! everything in order; work, the store and hooks are never called under it.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use tidewheel_core::fact::{RunId, RunnableId};
use tidewheel_core::policy::Kind;
use tidewheel_core::run::Run;
use tidewheel_core::time::{Span, Timestamp};
use tidewheel_core::work::call_user;
use tidewheel_core::workflow::Workflow;
use tidewheel_core::{Executed, Outcome, Prepared, Runnable};
use tidewheel_store::{Fence, Lease, NewRun, Status, Version};

use super::end::Ended;
use super::gates::AtTheGates;
use super::link::Link;
use super::state::{Asking, Fresh, Mode, Piece, State};
use super::suspect::{NOTED_FROM, Suspect};
use crate::driver::Known;
use crate::pool::{Job, Place, Sink, call};
use crate::runner::commit::Submission;
use crate::runner::core::Core;
use crate::runner::options::Checkpoints;

pub(in crate::runner) struct Active {
    this: Weak<Self>,
    /// For timers and lists that may keep it longer than the run is here.
    pub(super) link: Arc<Link>,
    pub(super) core: Arc<Core>,
    pub(super) id: RunId,
    /// Its number in the pool.
    pub(super) group: u64,
    pub(super) workflow: Workflow,
    /// The name of the workflow, for the limits.
    pub(super) workflow_name: Arc<str>,
    pub(super) has_compensations: bool,
    pub(super) deadline: Option<Span>,
    pub(super) checkpoints: Checkpoints,
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
    pub(super) jobs: Vec<Job>,
    pub(super) inline: Vec<(Place, Runnable)>,
    /// What goes alone.
    pub(super) alone: Vec<Job>,
    /// What got lost before and is over now.
    pub(super) cleared: Vec<Suspect>,
    pub(super) submission: Option<Submission>,
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
            link: Link::new(Weak::clone(this)),
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
                has_lost: false,
                last_command: None,
                again: Vec::new(),
                late: Vec::new(),
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
        self.guarded(|| self.with(|_, _| {}));
    }

    /// Goes on after the run was loaded, unless it is here to be asked something.
    pub(in crate::runner) fn go_on_if_it_may(&self) {
        let is_aside = matches!(self.lock().mode, Mode::Aside { .. });
        if !is_aside {
            self.go_on();
        }
    }

    /// What was under way when the process of the run ended is run again, and what waited keeps its due time. Work that
    /// got lost before counts as lost again only if it was being executed: else it was only beside what failed.
    fn take_up(&self, state: &mut State, now: Timestamp) {
        state.is_taken_up = true;
        let key = match &state.right {
            Right::Held(lease) => Some(lease.key),
            Right::New(_) => None,
        };
        let (mut noted, mut has_lost) = (None, false);
        let was_executed = |work: RunnableId, dispatches: u32| {
            has_lost = true;
            let noted = noted.get_or_insert_with(|| {
                let noted = key.map(|key| self.core.store().take_executions(key));
                noted.unwrap_or_default().into_iter().collect::<BTreeSet<String>>()
            });
            // What parked the run stays lost until a person resumes it, although it is not executed meanwhile.
            !(NOTED_FROM..=MOST_LOST).contains(&dispatches) || noted.contains(&work.to_string())
        };
        let lost = state.run.prepare_lost_if(now, was_executed).runnables;
        state.has_lost = has_lost;
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

    pub(super) fn offer_again(&self, state: &mut State, runnable: &Runnable) {
        state.run.give_back(&runnable.ticket());
        self.record(state, &[]);
        state.fresh.is_urgent = true;
    }

    /// Changes the run under the lock and does then what the change leads to.
    ///
    /// A panic on the way would leave a run that is not what is stored: it is taken up again, and whoever caused
    /// the panic gets it back.
    pub(super) fn with<T>(&self, change: impl FnOnce(&mut State, Timestamp) -> T) -> T {
        match call_user(|| self.change(change)) {
            Ok(answer) => answer,
            Err(panic) => {
                self.crash(panic.message.clone());
                resume_unwind(Box::new(panic.message))
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
    pub(super) fn tell_rest(&self) {
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
    pub(super) fn advance(&self, state: &mut State, now: Timestamp, afterwards: &mut Afterwards) {
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
            let Prepared { runnables, held, late } = state.run.prepare_in_time(now, Some(now), self.deadline);
            let durable: Vec<bool> = runnables.iter().map(|runnable| self.is_durable(runnable)).collect();
            self.record(state, &durable);
            if runnables.is_empty() && held.is_empty() && late.is_empty() && state.late.is_empty() {
                break;
            }
            for wait in held {
                self.go_on_with(state, &wait, now);
            }
            for runnable in late.into_iter().chain(std::mem::take(&mut state.late)) {
                self.end_late(state, runnable, now, afterwards);
            }
            for (runnable, is_durable) in runnables.into_iter().zip(durable) {
                if runnable.node().kind == Kind::Join {
                    // Its parts are facts, which were checked.
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

    pub(super) fn apply(&self, state: &mut State, executed: Executed) {
        state.run.apply(executed);
        self.record(state, &[]);
    }

    /// Does what a change under the lock led to.
    pub(super) fn finish(&self, afterwards: Afterwards) {
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
        let Afterwards { jobs, inline, alone, cleared, submission, gates } = afterwards;
        for suspect in cleared {
            suspect.ends(self.core.store());
        }
        for job in alone {
            self.hand_in_alone(job);
        }
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
        let outcome = outcome.storable();
        let now = self.core.clock().now();
        let mut state = self.lock();
        let mut afterwards = Afterwards::default();
        let Some(mut out) = state.out.remove(&place) else { return afterwards };
        self.core.metrics().attempt(&outcome);
        afterwards.cleared.extend(out.suspect.take().map(|suspect| *suspect));
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
}

impl Sink for Active {
    fn began(self: Arc<Self>, place: Place) {
        self.begin_now(place);
    }

    fn ended(self: Arc<Self>, place: Place, outcome: Outcome) {
        self.guarded(|| self.finish(self.take_end(place, outcome)));
    }
}
