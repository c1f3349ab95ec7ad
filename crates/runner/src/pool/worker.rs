//! Somebody who takes one piece after the other, and what it does when there is none.

use std::cell::Cell;
use std::sync::Arc;

use tidewheel_core::policy::Failure;
use tidewheel_core::time::Span;
use tidewheel_core::work::call_user;
use tidewheel_core::{Outcome, Runnable};

use super::attempt::Attempt;
use super::failure::{MOST_ABANDONED, TASK, lost, too_many_abandoned};
use super::loan::Blocking;
use super::slots::Pool;
use super::state::On;
use crate::react::SyncWork;
use crate::telemetry::{self, Execution};

/// What pieces wait for, and a thread of the pool can do when it has no piece: to hand it to somebody else would
/// cost more than many a piece.
pub(crate) trait Meanwhile: Send + Sync + 'static {
    /// Tells whether there is something to do.
    fn is_wanted(&self) -> bool;

    /// Lets somebody else do it.
    fn leave_it(&self);

    /// Does it, however long that takes, and returns what follows from it; `None` if nothing does.
    fn do_it(&self) -> Option<Box<dyn FnOnce()>>;
}

thread_local! {
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
}

/// Tells whether this is a thread of a pool, which will look after its [`Meanwhile`] itself.
pub(crate) fn is_worker() -> bool {
    IS_WORKER.get()
}

/// How long to wait before the machine is asked for a thread again, at first and at last.
const FIRST_TRY: Span = Span::from_millis(10);
const LAST_TRY: Span = Span::from_millis(1_000);

impl Pool {
    /// Does something on a thread of the runtime. Where the machine has none to give, and the runtime has none either, the
    /// runtime keeps it and unwinds the caller. Nothing is lost then: whatever gets a thread next finds it there, so that
    /// asking again is enough.
    fn on_thread(self: &Arc<Self>, deed: impl FnOnce() + Send + 'static) {
        if let Err(panic) = call_user(|| self.spawn_thread(deed)) {
            self.ask_again(FIRST_TRY, &panic);
        }
    }

    fn ask_again(self: &Arc<Self>, patience: Span, panic: &Failure) {
        tracing::error!(why = panic.message, "there is no thread for a worker: its work waits");
        self.timers.supervisor().report(TASK, panic);
        let (pool, next) = (Arc::downgrade(self), Span::from_millis(patience.as_millis() * 2).min(LAST_TRY));
        self.timers.at(self.timers.clock().now().saturating_add(patience), move || {
            let Some(pool) = pool.upgrade() else { return };
            if let Err(panic) = call_user(|| pool.spawn_thread(|| {})) {
                pool.ask_again(next, &panic);
            }
        });
    }

    fn spawn_thread(&self, deed: impl FnOnce() + Send + 'static) {
        #[cfg(test)]
        let Some(deed) = self.scarcity.take(deed) else { panic!("no thread") };
        drop(self.runtime.spawn_blocking(deed));
    }
}

/// For tests: a machine that has no thread to give for a while.
#[cfg(test)]
#[derive(Default)]
pub(super) struct Scarcity {
    pub(super) refusals: std::sync::atomic::AtomicUsize,
    kept: std::sync::Mutex<Vec<Box<dyn FnOnce() + Send>>>,
}

#[cfg(test)]
impl Scarcity {
    /// Returns what is to be done now, with all that was kept before; `None` while there is no thread.
    fn take(&self, deed: impl FnOnce() + Send + 'static) -> Option<Box<dyn FnOnce() + Send>> {
        use std::sync::atomic::Ordering::SeqCst;
        let mut kept = self.kept.lock().expect("no panic");
        kept.push(Box::new(deed));
        if self.refusals.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_ok() {
            return None;
        }
        let all = std::mem::take(&mut *kept);
        Some(Box::new(move || all.into_iter().for_each(|deed| deed())))
    }
}

/// Somebody who takes one piece after the other, from the moment when it is asked for.
pub(crate) struct Worker {
    pool: Arc<Pool>,
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

impl Worker {
    /// Returns one that counts as searching.
    pub(super) const fn new(pool: Arc<Pool>) -> Self {
        Self { pool, stage: Stage::Asked }
    }

    /// Lets it do its work somewhere else.
    pub(super) fn start(self) {
        let runtime = self.pool.runtime.clone();
        match self.pool.sync_work {
            SyncWork::Threads => {
                let pool = Arc::clone(&self.pool);
                pool.on_thread(move || self.work());
            }
            SyncWork::Inline => drop(runtime.spawn(self.work_here())),
        }
    }

    fn work(mut self) {
        let meanwhile = self.pool.meanwhile.get().cloned();
        loop {
            while let Some(attempt) = self.claim() {
                // Whatever this piece takes, nobody waits for it with something else.
                if let Some(meanwhile) = meanwhile.as_ref().filter(|meanwhile| meanwhile.is_wanted()) {
                    meanwhile.leave_it();
                }
                self.run_guarded(attempt);
            }
            let Some(then) = meanwhile.as_ref().and_then(|meanwhile| meanwhile.do_it()) else { return };
            // It takes what this makes ready, so nobody else has to be woken for it.
            self.pool.lock().searching += 1;
            self.stage = Stage::SearchingAgain;
            let _worker = OnWorker::begin();
            self.pool.timers.supervisor().call(TASK, then);
        }
    }

    /// Works where it is awaited.
    pub(crate) async fn work_here(mut self) {
        while let Some(attempt) = self.claim() {
            self.run_guarded(attempt);
            // A long row of pieces must not keep other tasks of the runtime waiting.
            tokio::task::coop::consume_budget().await;
        }
    }

    /// Takes a piece, or leaves. If there are more, another thread gets them.
    fn claim(&mut self) -> Option<Attempt> {
        let mut state = self.pool.lock();
        let job = if state.taken() < self.pool.limit { state.ready.pop() } else { None };
        let claimed = job.map(|job| state.begin(job, On::Thread));
        // Invariant: it stops searching under the lock under which it saw that there is nothing, so that
        // whoever makes something ready next knows that nobody is there.
        state.searching -= 1;
        self.stage = Stage::Working;
        let another = match self.pool.sync_work {
            SyncWork::Threads => self.pool.another_worker(&mut state),
            SyncWork::Inline => None,
        };
        // Tasks that left the room to more urgent pieces may begin when those have begun.
        let has_tasks =
            (!state.later.is_empty() || !state.returning.is_empty()) && state.in_use() < self.pool.limit;
        drop(state);
        if has_tasks {
            self.pool.start(self.pool.lock());
        }
        if let Some(another) = another {
            another.start();
        }
        claimed
    }

    /// Runs a piece. Whatever panics around it, it is over, and the worker takes the next one.
    fn run_guarded(&mut self, attempt: Attempt) {
        let begun = attempt.begun;
        let Err(panic) = call_user(|| self.run(attempt)) else { return };
        self.pool.timers.supervisor().report(TASK, &panic);
        let mut state = self.pool.lock();
        let out = state.remove(begun);
        if self.stage == Stage::Working {
            // As after any other end: see there.
            state.abandoned = state.abandoned.saturating_sub(usize::from(out.is_none()));
            state.searching += 1;
            self.stage = Stage::SearchingAgain;
        }
        drop(state);
        self.pool.tell(begun.place, out, Outcome::Failed(panic));
    }

    fn run(&mut self, mut attempt: Attempt) {
        let begun = attempt.begun;
        attempt.tell_beginning(self.pool.timers.supervisor());
        self.pool.note_wait(&attempt);
        let mut followed = None;
        let outcome = match attempt.bounds(|| self.pool.timers.clock().now()) {
            Ok(None) => {
                followed = Execution::begin(&attempt.runnable, attempt.runnable.policy());
                call_in(attempt.runnable, followed.as_ref())
            }
            Ok(Some(_)) | Err(_) if self.pool.abandoned() >= MOST_ABANDONED => {
                Outcome::Failed(too_many_abandoned())
            }
            Err(late) => {
                telemetry::timeout(&attempt.runnable, attempt.runnable.policy(), &late);
                Outcome::Failed(late)
            }
            Ok(Some(bounds)) => {
                followed = Execution::begin_bounded(&attempt.runnable, attempt.runnable.policy());
                self.pool.watch(begun, bounds, followed.clone());
                call_in(attempt.runnable, followed.as_ref())
            }
        };
        let mut state = self.pool.lock();
        let out = state.remove(begun);
        if out.is_none() {
            // Somebody gave the piece up; this thread was counted as lost and is back.
            state.abandoned = state.abandoned.saturating_sub(1);
        }
        // It takes what the result makes ready, so nobody else has to be woken for it.
        state.searching += 1;
        self.stage = Stage::SearchingAgain;
        let has_tasks = !state.later.is_empty() || !state.returning.is_empty();
        drop(state);
        // Of a piece that was given up, the end was told then.
        if let (Some(execution), Some(_)) = (followed, &out) {
            // A subscriber that panics must not keep the result from its waiters.
            self.pool.timers.supervisor().call(TASK, || execution.stop(&outcome));
        }
        {
            let _worker = self.pool.meanwhile.get().map(|_| OnWorker::begin());
            self.pool.tell(begun.place, out, outcome);
        }
        if has_tasks {
            self.pool.start(self.pool.lock());
        }
    }
}

/// Marks a thread as one of a pool that looks after its [`Meanwhile`] next. Never while it runs a piece: nobody knows
/// what that waits for.
struct OnWorker;

impl OnWorker {
    fn begin() -> Self {
        IS_WORKER.set(true);
        Self
    }
}

impl Drop for OnWorker {
    fn drop(&mut self) {
        IS_WORKER.set(false);
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Some(meanwhile) = self.pool.meanwhile.get().filter(|meanwhile| meanwhile.is_wanted()) {
            meanwhile.leave_it();
        }
        if self.stage == Stage::Working {
            return;
        }
        let mut state = self.pool.lock();
        state.searching -= 1;
        let mut unrun = Vec::new();
        if self.stage == Stage::Asked {
            // The runtime shuts down: it has no thread for this one, nor for any other.
            unrun.extend(std::iter::from_fn(|| state.ready.pop()));
            unrun.iter().for_each(|job| state.waits_no_more(job));
        }
        self.pool.start(state);
        for job in unrun {
            self.pool.fail(job, lost());
        }
    }
}

/// Runs a piece of work that is not async to its end, where nobody can give it up.
pub(crate) fn call(runnable: Runnable) -> Outcome {
    let followed = Execution::begin(&runnable, runnable.policy());
    let outcome = call_in(runnable, followed.as_ref());
    if let Some(execution) = followed {
        execution.stop(&outcome);
    }
    outcome
}

fn call_in(runnable: Runnable, followed: Option<&Execution>) -> Outcome {
    let span = Execution::span(followed);
    let _entered = span.enter();
    let _blocking = Blocking::begin();
    match call_user(|| runnable.execute()) {
        Ok(executed) => executed.into_outcome(),
        Err(panic) => Outcome::Failed(panic),
    }
}
