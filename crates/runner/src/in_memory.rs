//! A run in memory and who does its work: whoever ends a piece applies its result and hands in what it woke.
//! The lock around the run puts the results in order. Conditions are looked at under it; no other work is done
//! there.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

use tidewheel_core::event::FailedAttempt;
use tidewheel_core::policy::{Kind, Overlay, Rules};
use tidewheel_core::run::Run;
use tidewheel_core::time::Timestamp;
use tidewheel_core::workflow::Workflow;
use tidewheel_core::{Executed, Outcome, Runnable, Ticket};
use tidewheel_store::Clock;
use tokio::runtime::Handle;
use tokio::sync::Notify;

use crate::driver::{Course, Turn};
use crate::pool::{ByNumber, Job, Place, Pool, Sink};
use crate::react::{Checkpoint, Options, SyncWork};
use crate::timers::Timers;

/// Runs until nothing is left to do. The owner has the run back when the future is over or dropped.
pub(crate) async fn drive(owner: &mut Run, options: Options) {
    let clock = options.clock_or_real();
    let timers = Timers::new(Arc::clone(&clock), Handle::current());
    let sync_work = options.sync_work;
    let pool = Pool::new(options.max_concurrency.unwrap_or(usize::MAX), sync_work, Arc::clone(&timers));
    let run = std::mem::replace(owner, stand_in());
    let began_at = clock.now();
    let shared = Arc::new_cyclic(|this| Shared {
        this: Weak::clone(this),
        began_at,
        deadline: options.deadline.map(|span| began_at.saturating_add(span)),
        clock,
        checkpoint: options.checkpoint,
        pool: Arc::clone(&pool),
        timers,
        satisfied: Notify::new(),
        state: Mutex::new(State { run: Some(run), ..State::default() }),
    });
    // Invariant: the lease is dropped before the worker, which then finds nothing that somebody else must do.
    let mut work = pin!(match sync_work {
        SyncWork::Inline => Some(pool.worker_here().work_here()),
        SyncWork::Threads => None,
    });
    let lease = Lease { owner, rules_after: options.rules_after, shared };
    lease.shared.go_on(lease.shared.lock());
    if let Some(work) = work.as_mut().as_pin_mut() {
        work.await;
    }
    while !lease.shared.lock().is_satisfied() {
        lease.shared.satisfied.notified().await;
    }
}

/// A run that is driven. When it is dropped, the owner has the run back.
struct Lease<'r> {
    owner: &'r mut Run,
    /// What the run has again then, if the rules of one call were over its own.
    rules_after: Option<Rules>,
    shared: Arc<Shared>,
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        let run = state.run.take();
        let out = std::mem::take(&mut state.out);
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        let places: Vec<Place> = out.keys().copied().collect();
        self.shared.pool.close(GROUP, &places);
        self.shared.timers.close();
        if let Some(mut run) = run {
            // What is not over is offered again, in the order in which it was handed out.
            let tickets = out.into_iter().map(|(place, out)| (place, out.ticket));
            let mut open: BTreeMap<Place, Ticket> = tickets.collect();
            open.extend(waiting.into_iter().map(|(place, driven)| (place, driven.runnable.ticket())));
            for ticket in open.values() {
                run.give_back(ticket);
            }
            if let Some(rules) = self.rules_after.take() {
                run = run.with_policies(rules, Overlay::Replace);
            }
            *self.owner = run;
        }
    }
}

/// All pieces are of one run.
const GROUP: u64 = 0;

/// Returns what the owner holds while the run is driven.
fn stand_in() -> Run {
    static NOTHING: LazyLock<Workflow> =
        LazyLock::new(|| Workflow::new("").build().expect("invariant: where no component is, none is wrong"));
    NOTHING.run("")
}

struct Shared {
    this: Weak<Self>,
    clock: Arc<dyn Clock>,
    began_at: Timestamp,
    deadline: Option<Timestamp>,
    checkpoint: Option<Checkpoint>,
    pool: Arc<Pool>,
    timers: Arc<Timers>,
    /// Told when nothing is left to do.
    satisfied: Notify,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// `None` when the owner has it back.
    run: Option<Run>,
    /// What is under way.
    out: ByNumber<Out>,
    /// What waits for its next attempt, and has no slot.
    waiting: BTreeMap<Place, Box<Driven>>,
}

struct Out {
    ticket: Ticket,
    /// `None` under a policy that changes nothing.
    driven: Option<Box<Driven>>,
}

/// A piece of work under a policy.
struct Driven {
    runnable: Runnable,
    course: Course,
    failed: Vec<FailedAttempt>,
}

impl State {
    fn is_satisfied(&self) -> bool {
        self.out.is_empty() && self.waiting.is_empty()
    }
}

impl Sink for Shared {
    fn ended(self: Arc<Self>, place: Place, outcome: Outcome) {
        let mut state = self.lock();
        let Some(Out { ticket, driven }) = state.out.remove(&place) else { return };
        match driven {
            None => self.apply(state, ticket.executed(outcome)),
            Some(mut driven) => {
                let turn = driven.course.end(driven.runnable.clone(), outcome, self.clock.now());
                let job = self.take_turn(&mut state, place, driven, turn);
                self.submit_or_go_on(state, job);
            }
        }
    }
}

/// What a turn of a driven piece leads to.
enum Led {
    /// A job to hand in.
    Job(Box<Job>),
    /// A result to apply.
    Result(Box<Executed>),
    /// A wait.
    Nothing,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sink(&self) -> Arc<Self> {
        self.this.upgrade().expect("invariant: whoever calls holds it")
    }

    fn submit_or_go_on(&self, state: MutexGuard<'_, State>, led: Led) {
        match led {
            Led::Job(job) => {
                drop(state);
                self.pool.submit([*job]);
            }
            Led::Result(executed) => self.apply(state, *executed),
            Led::Nothing => {}
        }
    }

    fn apply(&self, mut state: MutexGuard<'_, State>, executed: Executed) {
        if let Some(run) = &mut state.run {
            run.apply(executed);
            self.go_on(state);
        }
    }

    /// Hands in whatever can run now. Joins are done on the way: they call no function.
    fn go_on(&self, mut state: MutexGuard<'_, State>) {
        let mut jobs = Vec::new();
        loop {
            let Some(run) = &mut state.run else { return };
            let runnables = run.prepare();
            if runnables.is_empty() {
                break;
            }
            jobs.reserve_exact(runnables.len());
            for runnable in runnables {
                if runnable.node().kind == Kind::Join {
                    if let Some(run) = &mut state.run {
                        run.apply(runnable.execute());
                    }
                } else {
                    self.begin(&mut state, runnable, &mut jobs);
                }
            }
        }
        if let (Some(checkpoint), Some(run)) = (&self.checkpoint, &state.run) {
            // A bad function must not keep the work from going on, which was handed out a moment ago.
            let called = catch_unwind(AssertUnwindSafe(|| checkpoint.call(run)));
            drop(called);
        }
        if state.is_satisfied() {
            self.satisfied.notify_one();
        }
        drop(state);
        if !jobs.is_empty() {
            self.pool.submit(jobs);
        }
    }

    fn begin(&self, state: &mut State, runnable: Runnable, jobs: &mut Vec<Job>) {
        let place = self.pool.place();
        if runnable.is_plain() && self.deadline.is_none() {
            state.out.insert(place, Out { ticket: runnable.ticket(), driven: None });
            jobs.push(self.job(place, runnable));
            return;
        }
        let now = self.clock.now();
        let mut course =
            Course::new(&runnable, Arc::clone(runnable.policy()), self.deadline_of(&runnable), now);
        let turn = course.begin(runnable.clone(), now);
        let driven = Box::new(Driven { runnable, course, failed: Vec::new() });
        match self.take_turn(state, place, driven, turn) {
            Led::Job(job) => jobs.push(*job),
            Led::Result(executed) => {
                if let Some(run) = &mut state.run {
                    run.apply(*executed);
                }
            }
            Led::Nothing => {}
        }
    }

    /// Returns when a piece must be over. Nobody said when its input was accepted: when the run was driven, at
    /// the latest.
    fn deadline_of(&self, runnable: &Runnable) -> Option<Timestamp> {
        let own = runnable.policy().deadline.span().filter(|_| runnable.accepted_at().is_none());
        let own = own.map(|span| self.began_at.saturating_add(span));
        own.into_iter().chain(self.deadline).min()
    }

    fn take_turn(&self, state: &mut State, place: Place, mut driven: Box<Driven>, turn: Turn) -> Led {
        match turn {
            Turn::Run { runnable, until } => {
                state.out.insert(place, Out { ticket: driven.runnable.ticket(), driven: Some(driven) });
                let mut job = self.job(place, *runnable);
                if until.is_some() {
                    job.until = until;
                    let cancellation = tidewheel_core::work::Cancellation::default();
                    job.runnable = job.runnable.with_cancellation(cancellation.clone());
                    job.cancellation = Some(cancellation);
                }
                Led::Job(Box::new(job))
            }
            Turn::Retry(failed) => {
                let (due, next) = (failed.due(), failed.decided.decision.attempt_next);
                driven.failed.push(*failed);
                driven.runnable = driven.runnable.with_attempt(next);
                state.waiting.insert(place, driven);
                let this = Weak::clone(&self.this);
                self.timers.at(due, move || {
                    if let Some(this) = this.upgrade() {
                        this.retry(place);
                    }
                });
                Led::Nothing
            }
            Turn::Over(executed) => Led::Result(Box::new(executed.after_attempts(driven.failed))),
        }
    }

    fn retry(&self, place: Place) {
        let mut state = self.lock();
        let Some(mut driven) = state.waiting.remove(&place) else { return };
        let turn = driven.course.begin(driven.runnable.clone(), self.clock.now());
        let led = self.take_turn(&mut state, place, driven, turn);
        self.submit_or_go_on(state, led);
    }

    fn job(&self, place: Place, runnable: Runnable) -> Job {
        let sink = self.sink();
        Job { sink, group: GROUP, place, runnable, until: None, cancellation: None, in_task: false }
    }
}
