//! Who does the work of a run: whoever ends a piece applies its result and takes the next piece. The lock
//! around the run puts the results in order. Conditions are looked at under it; no other work is done there.

use std::any::Any;
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use tidewheel_core::policy::{Failure, Kind};
use tidewheel_core::run::Run;
use tidewheel_core::workflow::Workflow;
use tidewheel_core::{Executed, Outcome, Runnable, Ticket};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::react::{Options, SyncWork};

/// Runs until nothing is left to do. The owner has the run back when the future is over or dropped.
pub(crate) async fn drive(owner: &mut Run, options: Options) {
    let run = std::mem::replace(owner, stand_in());
    let mut state = State { run: Some(run), ..State::default() };
    state.refill();
    let shared = Arc::new(Shared {
        sync_work: options.sync_work,
        limit: options.max_concurrency.unwrap_or(usize::MAX),
        runtime: Handle::current(),
        satisfied: Notify::new(),
        state: Mutex::new(state),
    });
    // Invariant: the lease is dropped before the worker, which then finds nothing that somebody else must do.
    let work = pin!(go_on(Arc::clone(&shared)));
    let lease = Lease { owner, shared };
    work.await;
    while !lease.shared.lock().is_satisfied() {
        lease.shared.satisfied.notified().await;
    }
}

/// A run that is driven. When it is dropped, the owner has the run back.
struct Lease<'r> {
    owner: &'r mut Run,
    shared: Arc<Shared>,
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        let run = state.run.take();
        let out = std::mem::take(&mut state.out);
        let (ready, later) = (std::mem::take(&mut state.ready), std::mem::take(&mut state.later));
        drop(state);
        if let Some(mut run) = run {
            // What is not over is offered again, in the order in which it was handed out.
            for (_, Out { ticket, task }) in out {
                if let Some(task) = task {
                    task.abort();
                }
                run.give_back(&ticket);
            }
            for runnable in later.iter().chain(&ready) {
                run.give_back(&runnable.ticket());
            }
            *self.owner = run;
        }
    }
}

/// Returns what the owner holds while the run is driven.
fn stand_in() -> Run {
    static NOTHING: LazyLock<Workflow> =
        LazyLock::new(|| Workflow::new("").build().expect("invariant: where no component is, none is wrong"));
    NOTHING.run("")
}

struct Shared {
    sync_work: SyncWork,
    limit: usize,
    runtime: Handle,
    /// Told when nothing is left to do.
    satisfied: Notify,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// `None` when the owner has it back.
    run: Option<Run>,
    /// What may begin when there is room, and is not async.
    ready: VecDeque<Runnable>,
    /// Async work that may begin when there is room.
    later: VecDeque<Runnable>,
    /// What is under way, in the order in which it was handed out.
    out: BTreeMap<u64, Out>,
    /// How many pieces have begun.
    next: u64,
    /// Workers that will look for a piece next.
    searching: usize,
}

struct Out {
    ticket: Ticket,
    /// Async work has a task.
    task: Option<AbortHandle>,
}

/// The place of a piece of work that is under way.
type Place = u64;

/// Runs a piece of work that is not async to its end.
fn call(runnable: Runnable) -> Result<Executed, Failure> {
    catch_unwind(AssertUnwindSafe(|| runnable.execute())).map_err(|payload| panicked(payload.as_ref()))
}

fn panicked(payload: &(dyn Any + Send)) -> Failure {
    let text = payload.downcast_ref::<&'static str>().map(|text| (*text).to_owned());
    let message = text.or_else(|| payload.downcast_ref::<String>().cloned());
    let message = message.unwrap_or_else(|| "panicked".to_owned());
    Failure { type_name: Some(Cow::Borrowed("panic")), ..Failure::new(message).code("panic") }
}

fn lost() -> Failure {
    Failure::new("its task was cancelled").code("lost")
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns one more worker if there is work that nobody is about to take. A burst of small pieces is over
    /// before many threads have started, and pieces that take long get as many as they need.
    fn another_worker(self: &Arc<Self>, state: &mut State) -> Option<Worker> {
        let wanted = state.searching == 0 && !state.ready.is_empty() && state.out.len() < self.limit;
        wanted.then(|| {
            state.searching += 1;
            Worker { shared: Arc::clone(self), stage: Stage::Asked }
        })
    }

    /// Tells the owner when nothing is left to do.
    fn tell_if_satisfied(&self, state: &State) {
        if state.is_satisfied() {
            self.satisfied.notify_one();
        }
    }
}

impl State {
    fn is_satisfied(&self) -> bool {
        self.ready.is_empty() && self.later.is_empty() && self.out.is_empty()
    }

    /// Takes whatever can run now. Joins are done on the way: they call no function.
    fn refill(&mut self) {
        let mut joined = true;
        while std::mem::take(&mut joined)
            && let Some(run) = &mut self.run
        {
            for runnable in run.prepare() {
                if runnable.node().kind == Kind::Join {
                    run.apply(runnable.execute());
                    joined = true;
                } else if runnable.is_async() {
                    self.later.push_back(runnable);
                } else {
                    self.ready.push_back(runnable);
                }
            }
        }
    }

    /// Takes a piece if there is one and room for it.
    fn claim(&mut self, limit: usize) -> Option<(Place, Runnable)> {
        if self.out.len() >= limit {
            return None;
        }
        let runnable = self.ready.pop_front()?;
        Some((self.begin(&runnable), runnable))
    }

    /// Takes all async work that there is room for.
    fn claim_async(&mut self, limit: usize) -> Vec<(Place, Runnable)> {
        let mut claimed = Vec::new();
        while self.out.len() < limit
            && let Some(runnable) = self.later.pop_front()
        {
            claimed.push((self.begin(&runnable), runnable));
        }
        claimed
    }

    fn begin(&mut self, runnable: &Runnable) -> Place {
        let place = self.next;
        self.next += 1;
        self.out.insert(place, Out { ticket: runnable.ticket(), task: None });
        place
    }

    fn apply(&mut self, executed: Executed) {
        if let Some(run) = &mut self.run {
            run.apply(executed);
            self.refill();
        }
    }

    fn complete(&mut self, place: Place, executed: Executed) {
        if self.out.remove(&place).is_some() {
            self.apply(executed);
        }
    }

    fn lose(&mut self, place: Place, failure: Failure) {
        if let Some(Out { ticket, .. }) = self.out.remove(&place) {
            self.apply(ticket.executed(Outcome::Failed(failure)));
        }
    }

    /// Ends everything that nobody will run.
    fn abandon(&mut self) {
        while let Some(runnable) = self.ready.pop_front().or_else(|| self.later.pop_front()) {
            self.apply(runnable.executed(Outcome::Failed(lost())));
        }
    }
}

/// Somebody who takes one piece after the other, from the moment when it is asked for.
struct Worker {
    shared: Arc<Shared>,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It has not begun, and will search when it does.
    Asked,
    /// It has a piece, or has left.
    Working,
    /// It ended a piece and searches for the next one.
    SearchingAgain,
}

/// Starts whatever can run now: async work in tasks, other work here or on a thread.
async fn go_on(shared: Arc<Shared>) {
    start_async(&shared);
    let worker = shared.another_worker(&mut shared.lock());
    match worker {
        None => {}
        Some(worker) if shared.sync_work == SyncWork::Threads => worker.start(),
        Some(worker) => worker.work_here().await,
    }
}

/// Gives all async work that may begin its tasks.
fn start_async(shared: &Arc<Shared>) {
    let claimed = shared.lock().claim_async(shared.limit);
    for (place, runnable) in claimed {
        spawn(shared, place, runnable);
    }
}

impl Worker {
    /// Lets it do its work somewhere else.
    fn start(self) {
        let runtime = self.shared.runtime.clone();
        match self.shared.sync_work {
            SyncWork::Threads => drop(runtime.spawn_blocking(move || self.work())),
            SyncWork::Inline => drop(runtime.spawn(self.work_here())),
        }
    }

    fn work(mut self) {
        while let Some((place, runnable)) = self.claim() {
            self.end(place, call(runnable));
        }
    }

    async fn work_here(mut self) {
        while let Some((place, runnable)) = self.claim() {
            self.end(place, call(runnable));
            // A long row of pieces must not keep other tasks of the runtime waiting.
            tokio::task::coop::consume_budget().await;
        }
    }

    /// Takes a piece, or leaves. If there are more, another thread gets them.
    fn claim(&mut self) -> Option<(Place, Runnable)> {
        let mut state = self.shared.lock();
        let claimed = state.claim(self.shared.limit);
        // Invariant: it stops searching under the lock under which it saw that there is nothing, so that
        // whoever makes something ready next knows that nobody is there.
        state.searching -= 1;
        self.stage = Stage::Working;
        self.shared.tell_if_satisfied(&state);
        let another = match self.shared.sync_work {
            SyncWork::Threads => self.shared.another_worker(&mut state),
            SyncWork::Inline => None,
        };
        drop(state);
        if let Some(another) = another {
            another.start();
        }
        claimed
    }

    fn end(&mut self, place: Place, result: Result<Executed, Failure>) {
        let mut state = self.shared.lock();
        match result {
            Ok(executed) => state.complete(place, executed),
            Err(failure) => state.lose(place, failure),
        }
        state.searching += 1;
        self.stage = Stage::SearchingAgain;
        let has_async = !state.later.is_empty();
        drop(state);
        if has_async {
            start_async(&self.shared);
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if self.stage == Stage::Working {
            return;
        }
        let mut state = self.shared.lock();
        state.searching -= 1;
        if self.stage == Stage::Asked {
            // The runtime shuts down: it has no thread for this one, nor for any other.
            state.abandon();
        }
        self.shared.tell_if_satisfied(&state);
        let another = self.shared.another_worker(&mut state);
        drop(state);
        if let Some(another) = another {
            another.start();
        }
    }
}

/// Gives async work a task, which applies its result and goes on from there.
fn spawn(shared: &Arc<Shared>, place: Place, runnable: Runnable) {
    let piece = Piece { shared: Arc::clone(shared), place, is_over: false };
    // Not under the lock: a runtime that shuts down drops the task at once, and the piece says so.
    let task = shared.runtime.spawn(async move {
        let executed = runnable.execute_async().await;
        go_on(piece.complete(executed)).await;
    });
    let mut state = shared.lock();
    if let Some(out) = state.out.get_mut(&place) {
        out.task = Some(task.abort_handle());
    } else if state.run.is_none() {
        drop(state);
        task.abort();
    }
}

/// A piece of work in a task. If it is dropped before it is over, it has failed.
struct Piece {
    shared: Arc<Shared>,
    place: Place,
    is_over: bool,
}

impl Piece {
    fn complete(mut self, executed: Executed) -> Arc<Shared> {
        self.is_over = true;
        let mut state = self.shared.lock();
        state.complete(self.place, executed);
        self.shared.tell_if_satisfied(&state);
        drop(state);
        Arc::clone(&self.shared)
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let mut state = self.shared.lock();
        state.lose(self.place, lost());
        self.shared.tell_if_satisfied(&state);
        let another = self.shared.another_worker(&mut state);
        drop(state);
        start_async(&self.shared);
        if let Some(another) = another {
            another.start();
        }
    }
}
