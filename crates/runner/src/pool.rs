//! Who does the work: a bounded number of pieces at once, functions on threads and async work in tasks, and
//! each run gets its turn. It knows nothing of runs; whoever handed a piece in learns what came of it.

use std::any::Any;
use std::borrow::Cow;
use std::cell::Cell;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tidewheel_core::policy::Failure;
use tidewheel_core::work::Cancellation;
use tidewheel_core::{Outcome, Runnable};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use crate::driver::{Until, within};
use crate::react::SyncWork;
use crate::timers::{TimerKey, Timers};

/// A piece of work in the pool, for as long as there is a pool.
pub(crate) type Place = u64;

/// Whoever hands pieces in.
pub(crate) trait Sink: Send + Sync + 'static {
    /// Takes what came of a piece. It is told once for each piece that was not taken back.
    fn ended(self: Arc<Self>, place: Place, outcome: Outcome);
}

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

/// A piece of work to be run once.
pub(crate) struct Job {
    pub(crate) sink: Arc<dyn Sink>,
    /// Pieces of one group take turns with those of others.
    pub(crate) group: u64,
    pub(crate) place: Place,
    pub(crate) runnable: Runnable,
    pub(crate) until: Option<Until>,
    pub(crate) cancellation: Option<Cancellation>,
    /// Whether it runs in a task, whatever it is.
    pub(crate) in_task: bool,
}

pub(crate) struct Pool {
    limit: usize,
    sync_work: SyncWork,
    runtime: Handle,
    timers: Arc<Timers>,
    next: AtomicU64,
    state: Mutex<State>,
    /// What its threads do when they have no piece.
    meanwhile: OnceLock<Arc<dyn Meanwhile>>,
}

#[derive(Default)]
struct State {
    /// What may begin when there is room, and needs a thread.
    ready: Turns,
    /// What may begin when there is room, and needs a task.
    later: Turns,
    out: ByNumber<Out>,
    /// How many pieces began, which tells one attempt at a place from the next.
    begun: u64,
    /// Whether the last piece that began was a task, so that a thread has the next turn where room is short.
    threads_turn: bool,
    /// Whether nobody wants anything any more.
    is_closed: bool,
    /// Workers that will look for a piece next.
    searching: usize,
    /// Threads whose work was given up and goes on nevertheless.
    abandoned: usize,
}

struct Out {
    sink: Arc<dyn Sink>,
    begun: u64,
    on: On,
    timer: Option<TimerKey>,
    cancellation: Option<Cancellation>,
}

/// Where a piece runs.
enum On {
    Thread,
    /// `None` until the task is there.
    Task(Option<AbortHandle>),
}

/// A piece that has a slot.
struct Attempt {
    begun: Begun,
    runnable: Runnable,
    until: Option<Until>,
}

/// One beginning of a piece. A place is used again by the next attempt, so it alone does not say whose result
/// this is.
#[derive(Clone, Copy)]
struct Begun {
    place: Place,
    begun: u64,
}

/// As many threads may be lost to work that does not stop; then work that could block more is refused.
const MOST_ABANDONED: usize = 256;

/// Things by a number that counts up: nobody chooses the numbers, so the hash need not be hard to guess.
pub(crate) type ByNumber<T> = HashMap<u64, T, BuildHasherDefault<Spread>>;

#[derive(Default)]
pub(crate) struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(self.0 ^ u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // The golden ratio: it is odd, so that the low bits stay apart, and spreads them over the high ones.
        self.0 = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// Pieces in turns: one of each group, and again.
#[derive(Default)]
struct Turns {
    groups: ByNumber<VecDeque<Job>>,
    order: VecDeque<u64>,
    /// The room of a group that has nothing any more, for the next one that has: often it is the same one.
    spare: VecDeque<Job>,
}

impl Turns {
    fn push(&mut self, job: Job) {
        let group = job.group;
        let jobs = self.groups.entry(group).or_insert_with(|| std::mem::take(&mut self.spare));
        if jobs.is_empty() {
            self.order.push_back(group);
        }
        jobs.push_back(job);
    }

    fn pop(&mut self) -> Option<Job> {
        let group = self.order.pop_front()?;
        let Entry::Occupied(mut jobs) = self.groups.entry(group) else { return None };
        let job = jobs.get_mut().pop_front();
        if jobs.get().is_empty() {
            self.spare = jobs.remove();
        } else {
            self.order.push_back(group);
        }
        job
    }

    fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Takes out what has a bound in time and did not begin.
    fn take_bounded(&mut self) -> Vec<Job> {
        let mut bounded = Vec::new();
        let mut free = Vec::new();
        while let Some(job) = self.pop() {
            if job.until.is_some() { bounded.push(job) } else { free.push(job) }
        }
        free.into_iter().for_each(|job| self.push(job));
        bounded
    }

    /// Takes pieces of a group back that did not begin.
    fn take_back(&mut self, group: u64, places: &HashSet<Place>) -> VecDeque<Job> {
        let Some(jobs) = self.groups.remove(&group) else { return VecDeque::new() };
        let (taken, left): (VecDeque<Job>, VecDeque<Job>) =
            jobs.into_iter().partition(|job| places.contains(&job.place));
        if left.is_empty() {
            self.order.retain(|other| *other != group);
        } else {
            self.groups.insert(group, left);
        }
        taken
    }
}

impl Pool {
    pub(crate) fn new(limit: usize, sync_work: SyncWork, timers: Arc<Timers>) -> Arc<Self> {
        let (next, state) = (AtomicU64::new(0), Mutex::default());
        let (runtime, meanwhile) = (Handle::current(), OnceLock::new());
        Arc::new(Self { limit, sync_work, runtime, timers, next, state, meanwhile })
    }

    /// Says what its threads do when they have no piece.
    pub(crate) fn do_meanwhile(&self, meanwhile: Arc<dyn Meanwhile>) {
        let is_first = self.meanwhile.set(meanwhile).is_ok();
        debug_assert!(is_first, "it is said once");
    }

    /// Returns a place for a piece that will be handed in.
    pub(crate) fn place(&self) -> Place {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Hands pieces in. They begin when there is room.
    pub(crate) fn submit(self: &Arc<Self>, jobs: impl IntoIterator<Item = Job>) {
        let mut state = self.lock();
        if state.is_closed {
            drop(state);
            return;
        }
        for job in jobs {
            let needs_task = job.in_task || job.runnable.is_async();
            if needs_task { state.later.push(job) } else { state.ready.push(job) }
        }
        self.start(state);
    }

    /// Takes back pieces of a group that have not begun, and stops those that have: async work at its next
    /// await point, other work when it looks. Nobody is told of what comes of it.
    pub(crate) fn take_back(self: &Arc<Self>, group: u64, places: &[Place]) {
        let taken: HashSet<Place> = places.iter().copied().collect();
        let mut state = self.lock();
        let jobs: Vec<Job> = state
            .ready
            .take_back(group, &taken)
            .into_iter()
            .chain(state.later.take_back(group, &taken))
            .collect();
        let mut stopped = Vec::new();
        for place in places {
            if let Some(out) = state.out.remove(place) {
                // A thread cannot be stopped.
                state.abandoned += usize::from(matches!(out.on, On::Thread));
                stopped.push(out);
            }
        }
        self.start(state);
        drop(jobs);
        for out in stopped {
            self.stop(&out);
        }
    }

    /// Takes everything back, and whatever is handed in from now on: by somebody who was about to when nobody
    /// wanted it any more.
    pub(crate) fn close(self: &Arc<Self>, group: u64, places: &[Place]) {
        self.lock().is_closed = true;
        self.take_back(group, places);
    }

    /// Returns how many threads go on with work that was given up.
    pub(crate) fn abandoned(&self) -> usize {
        self.lock().abandoned
    }

    /// Returns somebody who works where it is called until there is nothing to claim: for work that runs
    /// inline. It counts as searching from now on, so that what is handed in is left to it.
    pub(crate) fn worker_here(self: &Arc<Self>) -> Worker {
        self.lock().searching += 1;
        Worker { pool: Arc::clone(self), stage: Stage::Asked }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts whatever there is room for.
    fn start(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        if state.abandoned >= MOST_ABANDONED && !state.ready.is_empty() {
            self.refuse(state.ready.take_bounded());
        }
        let mut tasks = Vec::new();
        while state.out.len() + usize::from(state.threads_turn && !state.ready.is_empty()) < self.limit
            && let Some(job) = state.later.pop()
        {
            tasks.push(state.begin(job, On::Task(None)));
        }
        let worker = self.another_worker(&mut state);
        drop(state);
        for attempt in tasks {
            self.spawn(attempt);
        }
        if let Some(worker) = worker {
            worker.start();
        }
    }

    /// Fails pieces that could block more threads. There may be no thread left to say so, and whoever is told
    /// may hand in the next one, so that a task does it.
    fn refuse(self: &Arc<Self>, jobs: Vec<Job>) {
        if jobs.is_empty() {
            return;
        }
        let refusing = async move {
            for job in jobs {
                let outcome = Outcome::Failed(too_many_abandoned());
                let told = catch_unwind(AssertUnwindSafe(|| job.sink.ended(job.place, outcome)));
                drop(told);
            }
        };
        drop(self.runtime.spawn(refusing));
    }

    /// Returns one more worker if there is work that nobody is about to take. A burst of small pieces is over
    /// before many threads have started, and pieces that take long get as many as they need.
    fn another_worker(self: &Arc<Self>, state: &mut State) -> Option<Worker> {
        let wanted = state.searching == 0 && !state.ready.is_empty() && state.out.len() < self.limit;
        wanted.then(|| {
            state.searching += 1;
            Worker { pool: Arc::clone(self), stage: Stage::Asked }
        })
    }

    /// Gives a piece a task.
    fn spawn(self: &Arc<Self>, attempt: Attempt) {
        let Attempt { begun, runnable, until } = attempt;
        let piece = Piece { pool: Arc::clone(self), begun, is_over: false };
        let clock = Arc::clone(self.timers.clock());
        // Not under the lock: a runtime that shuts down drops the task at once, and the piece says so.
        let task = self.runtime.spawn(async move {
            let outcome = match until.map(|until| until.begun_at(clock.now())) {
                None => runnable.execute_async().await.into_outcome(),
                Some(Err(late)) => Outcome::Failed(late),
                Some(Ok(until)) => match within(runnable.execute_async(), until.at, clock.as_ref()).await {
                    Some(executed) => executed.into_outcome(),
                    None => Outcome::Failed(until.failure()),
                },
            };
            piece.end(outcome);
        });
        match self.lock().out.get_mut(&begun.place) {
            Some(out) if out.begun == begun.begun => out.on = On::Task(Some(task.abort_handle())),
            // It is over, or was taken back before anybody could stop it.
            Some(_) | None => task.abort(),
        }
    }

    /// Ends a piece, if it was not ended otherwise.
    fn end(self: &Arc<Self>, begun: Begun, outcome: Outcome) {
        let out = self.lock().remove(begun);
        self.tell(begun.place, out, outcome);
    }

    fn tell(self: &Arc<Self>, place: Place, out: Option<Out>, outcome: Outcome) {
        let Some(out) = out else { return };
        if let Some(timer) = out.timer {
            self.timers.cancel(timer);
        }
        // Whatever goes wrong there, the pieces of others have to begin.
        let told = catch_unwind(AssertUnwindSafe(|| out.sink.ended(place, outcome)));
        drop(told);
    }

    /// Gives up a piece on a thread that is not over in time. The thread goes on, and nobody listens to it.
    fn give_up(self: &Arc<Self>, begun: Begun, until: Until) {
        let out = {
            let mut state = self.lock();
            let out = state.remove(begun);
            state.abandoned += usize::from(out.is_some());
            out
        };
        if let Some(out) = &out {
            self.stop(out);
        }
        self.tell(begun.place, out, Outcome::Failed(until.failure()));
        self.start(self.lock());
    }

    fn stop(&self, out: &Out) {
        if let Some(cancellation) = &out.cancellation {
            cancellation.cancel();
        }
        if let On::Task(Some(task)) = &out.on {
            task.abort();
        }
        if let Some(timer) = out.timer {
            self.timers.cancel(timer);
        }
    }
}

impl State {
    fn begin(&mut self, job: Job, on: On) -> Attempt {
        let Job { sink, place, runnable, until, cancellation, .. } = job;
        self.begun += 1;
        self.threads_turn = matches!(on, On::Task(_));
        let begun = self.begun;
        self.out.insert(place, Out { sink, begun, on, timer: None, cancellation });
        Attempt { begun: Begun { place, begun }, runnable, until }
    }

    /// Takes a piece out that is over, unless it was given up: its place may be that of the next attempt now.
    fn remove(&mut self, begun: Begun) -> Option<Out> {
        match self.out.entry(begun.place) {
            Entry::Occupied(out) if out.get().begun == begun.begun => Some(out.remove()),
            Entry::Occupied(_) | Entry::Vacant(_) => None,
        }
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
    /// Lets it do its work somewhere else.
    fn start(self) {
        let runtime = self.pool.runtime.clone();
        match self.pool.sync_work {
            SyncWork::Threads => drop(runtime.spawn_blocking(move || self.work())),
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
                self.run(attempt);
            }
            let Some(then) = meanwhile.as_ref().and_then(|meanwhile| meanwhile.do_it()) else { return };
            // It takes what this makes ready, so nobody else has to be woken for it.
            self.pool.lock().searching += 1;
            self.stage = Stage::SearchingAgain;
            let _worker = OnWorker::begin();
            then();
        }
    }

    /// Works where it is awaited.
    pub(crate) async fn work_here(mut self) {
        while let Some(attempt) = self.claim() {
            self.run(attempt);
            // A long row of pieces must not keep other tasks of the runtime waiting.
            tokio::task::coop::consume_budget().await;
        }
    }

    /// Takes a piece, or leaves. If there are more, another thread gets them.
    fn claim(&mut self) -> Option<Attempt> {
        let mut state = self.pool.lock();
        let job = if state.out.len() < self.pool.limit { state.ready.pop() } else { None };
        let claimed = job.map(|job| state.begin(job, On::Thread));
        // Invariant: it stops searching under the lock under which it saw that there is nothing, so that
        // whoever makes something ready next knows that nobody is there.
        state.searching -= 1;
        self.stage = Stage::Working;
        let another = match self.pool.sync_work {
            SyncWork::Threads => self.pool.another_worker(&mut state),
            SyncWork::Inline => None,
        };
        drop(state);
        if let Some(another) = another {
            another.start();
        }
        claimed
    }

    fn run(&mut self, attempt: Attempt) {
        let Attempt { begun, runnable, until } = attempt;
        let outcome = match until.map(|until| until.begun_at(self.pool.timers.clock().now())) {
            None => call(runnable),
            Some(_) if self.pool.abandoned() >= MOST_ABANDONED => Outcome::Failed(too_many_abandoned()),
            Some(Err(late)) => Outcome::Failed(late),
            Some(Ok(until)) => {
                self.watch(begun, until);
                call(runnable)
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
        let has_tasks = !state.later.is_empty();
        drop(state);
        {
            let _worker = self.pool.meanwhile.get().map(|_| OnWorker::begin());
            self.pool.tell(begun.place, out, outcome);
        }
        if has_tasks {
            self.pool.start(self.pool.lock());
        }
    }

    /// Sees to it that a piece is given up when its time is over.
    fn watch(&self, begun: Begun, until: Until) {
        let pool = Arc::downgrade(&self.pool);
        let timer = self.pool.timers.at(until.at, move || {
            if let Some(pool) = pool.upgrade() {
                pool.give_up(begun, until);
            }
        });
        match self.pool.lock().out.get_mut(&begun.place) {
            Some(out) if out.begun == begun.begun => out.timer = Some(timer),
            Some(_) | None => self.pool.timers.cancel(timer),
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
        }
        self.pool.start(state);
        for job in unrun {
            let told = catch_unwind(AssertUnwindSafe(|| job.sink.ended(job.place, Outcome::Failed(lost()))));
            drop(told);
        }
    }
}

/// A piece of work in a task. If it is dropped before it is over, it has failed.
struct Piece {
    pool: Arc<Pool>,
    begun: Begun,
    is_over: bool,
}

impl Piece {
    fn end(mut self, outcome: Outcome) {
        self.is_over = true;
        self.pool.end(self.begun, outcome);
        self.pool.start(self.pool.lock());
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        if !self.is_over {
            self.pool.end(self.begun, Outcome::Failed(lost()));
            self.pool.start(self.pool.lock());
        }
    }
}

/// Runs a piece of work that is not async to its end.
fn call(runnable: Runnable) -> Outcome {
    match catch_unwind(AssertUnwindSafe(|| runnable.execute())) {
        Ok(executed) => executed.into_outcome(),
        Err(payload) => Outcome::Failed(panicked(payload.as_ref())),
    }
}

pub(crate) fn panicked(payload: &(dyn Any + Send)) -> Failure {
    let text = payload.downcast_ref::<&'static str>().map(|text| (*text).to_owned());
    let message = text.or_else(|| payload.downcast_ref::<String>().cloned());
    let message = message.unwrap_or_else(|| "panicked".to_owned());
    Failure { type_name: Some(Cow::Borrowed("panic")), ..Failure::new(message).code("panic") }
}

/// The runtime shut down. Another attempt is of no use: nobody is there who could make it.
fn lost() -> Failure {
    Failure::new("its task was cancelled").code("lost").non_retryable()
}

fn too_many_abandoned() -> Failure {
    let message = format!("{MOST_ABANDONED} threads are busy with work that was given up and does not stop");
    Failure::new(message).code("abandoned_threads")
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use tidewheel_core::workflow::{Component, Workflow, map, step};
    use tidewheel_store::RealClock;

    use super::*;

    /// Tells the test what it is told, and panics if it is to.
    struct Ear {
        told: mpsc::Sender<(Place, Outcome)>,
        panics: bool,
    }

    impl Sink for Ear {
        fn ended(self: Arc<Self>, place: Place, outcome: Outcome) {
            self.told.send((place, outcome)).expect("the test listens");
            assert!(!self.panics, "a bad sink");
        }
    }

    fn pool(limit: usize) -> Arc<Pool> {
        let timers = Timers::new(Arc::new(RealClock::new()), Handle::current());
        Pool::new(limit, SyncWork::Threads, timers)
    }

    fn ear(panics: bool) -> (Arc<Ear>, mpsc::Receiver<(Place, Outcome)>) {
        let (told, heard) = mpsc::channel();
        (Arc::new(Ear { told, panics }), heard)
    }

    fn jobs(pool: &Pool, sink: &Arc<Ear>, component: Component, items: usize) -> Vec<Job> {
        let workflow = Workflow::new("w").add(component).build().expect("it is whole");
        let mut run = workflow.run("r");
        run.plan((0..items).collect::<Vec<usize>>());
        let mut runnables = run.prepare();
        if items > 0 {
            run.apply(runnables.remove(0).execute());
            runnables = run.prepare();
        }
        let job = |runnable| Job {
            sink: Arc::<Ear>::clone(sink),
            group: 0,
            place: pool.place(),
            runnable,
            until: None,
            cancellation: None,
            in_task: false,
        };
        runnables.into_iter().map(job).collect()
    }

    /// Waits for something without a clock: other threads get their turn in between.
    async fn until(mut is_so: impl FnMut() -> bool) {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_sink_that_panics_does_not_keep_others_from_beginning() {
        for is_async in [true, false] {
            let (pool, (sink, heard)) = (pool(1), ear(true));
            let component =
                if is_async { map("each", |x: usize| async move { x }) } else { map("each", |x: usize| x) };
            pool.submit(jobs(&pool, &sink, component, 20));
            let mut count = 0;
            until(|| {
                count += heard.try_iter().count();
                count == 20
            })
            .await;
            until(|| pool.lock().out.is_empty() && pool.lock().searching == 0).await;
        }
    }

    #[tokio::test]
    async fn a_task_that_was_taken_back_before_it_was_there_does_not_run() {
        let (pool, (sink, heard)) = (pool(1), ear(false));
        let (called, calls) = mpsc::channel();
        let never = step("never", move |_: serde_json::Value| {
            called.send(()).expect("the test listens");
            std::future::pending::<u8>()
        });
        let job = jobs(&pool, &sink, never, 0).remove(0);
        let place = job.place;
        let attempt = pool.lock().begin(job, On::Task(None));
        pool.take_back(0, &[place]);
        pool.spawn(attempt);
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        assert_eq!(calls.try_iter().count(), 0);
        assert_eq!(heard.try_iter().count(), 0, "nobody is told");
        assert_eq!(pool.abandoned(), 0, "a task is no thread");
        assert_eq!(Handle::current().metrics().num_alive_tasks(), 0);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn only_threads_that_go_on_count_as_abandoned_and_only_while_they_do() {
        let (pool, (sink, heard)) = (pool(2), ear(false));
        let (release, held) = mpsc::channel::<()>();
        let (held, (entered, entries)) = (Mutex::new(held), mpsc::channel());
        let blocks = map("each", move |x: usize| {
            entered.send(()).expect("the test listens");
            held.lock().map(|held| held.recv_timeout(Duration::from_secs(30)).is_ok()).is_ok_and(|_| x > 0)
        });
        let jobs = jobs(&pool, &sink, blocks, 10);
        let places: Vec<Place> = jobs.iter().map(|job| job.place).collect();
        pool.submit(jobs);
        let mut count = 0;
        until(|| {
            count += entries.try_iter().count();
            count == 2
        })
        .await;
        pool.take_back(0, &places);
        pool.take_back(0, &places);
        assert_eq!(pool.abandoned(), 2, "eight had not begun");
        release.send(()).expect("somebody waits");
        until(|| pool.abandoned() == 1).await;
        release.send(()).expect("somebody waits");
        until(|| pool.abandoned() == 0).await;
        assert_eq!(heard.try_iter().count(), 0);
        until(|| pool.lock().searching == 0).await;
    }

    #[tokio::test]
    async fn what_comes_too_late_for_a_closed_pool_is_dropped() {
        let (pool, (sink, heard)) = (pool(2), ear(false));
        let late = jobs(&pool, &sink, map("each", |x: usize| x), 3);
        pool.close(0, &[]);
        pool.submit(late);
        assert!(pool.lock().ready.is_empty());
        drop(sink);
        assert!(heard.recv().is_err(), "nobody holds on to it");
    }

    #[test]
    fn groups_take_turns() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let _entered = runtime.enter();
        let (pool, (sink, _heard)) = (pool(1), ear(false));
        let mut turns = Turns::default();
        for (group, count) in [(1, 3), (2, 1), (3, 2)] {
            for job in jobs(&pool, &sink, map("each", |x: usize| x), count) {
                turns.push(Job { group, ..job });
            }
        }
        let order: Vec<u64> = std::iter::from_fn(|| turns.pop()).map(|job| job.group).collect();
        assert_eq!(order, [1, 2, 3, 1, 3, 1]);
        assert!(turns.is_empty());
    }
}
