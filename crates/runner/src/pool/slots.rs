//! The slots: what waits for one, what has one, and what is taken back or given up.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tidewheel_core::policy::Failure;
use tidewheel_core::{Outcome, Runnable};
use tokio::runtime::Handle;

use super::attempt::{Attempt, Begun};
use super::failure::{MOST_ABANDONED, TASK, lost, too_many_abandoned};
use super::job::{Job, Place, Sink};
use super::loan::{SLOT, Slot};
use super::queue::Spot;
use super::state::{On, Out, State};
use super::worker::{Meanwhile, Worker};
use crate::bounds::Bounds;
use crate::react::SyncWork;
use crate::telemetry::{Execution, Metrics};
use crate::timers::Timers;

pub(crate) struct Pool {
    pub(super) limit: usize,
    pub(super) sync_work: SyncWork,
    pub(super) runtime: Handle,
    pub(super) timers: Arc<Timers>,
    next: AtomicU64,
    state: Mutex<State>,
    /// What its threads do when they have no piece.
    pub(super) meanwhile: OnceLock<Arc<dyn Meanwhile>>,
    /// Who wants to know how long pieces wait.
    metrics: OnceLock<Arc<Metrics>>,
    #[cfg(test)]
    pub(super) scarcity: super::worker::Scarcity,
}

impl Pool {
    pub(crate) fn new(limit: usize, sync_work: SyncWork, timers: Arc<Timers>) -> Arc<Self> {
        let (next, state) = (AtomicU64::new(0), Mutex::default());
        let (runtime, meanwhile, metrics) = (Handle::current(), OnceLock::new(), OnceLock::new());
        Arc::new(Self {
            limit,
            sync_work,
            runtime,
            timers,
            next,
            state,
            meanwhile,
            metrics,
            #[cfg(test)]
            scarcity: super::worker::Scarcity::default(),
        })
    }

    /// Says who wants to know how long pieces wait.
    pub(crate) fn measure(&self, metrics: Arc<Metrics>) {
        let is_first = self.metrics.set(metrics).is_ok();
        debug_assert!(is_first, "it is said once");
    }

    /// Says what its threads do when they have no piece.
    pub(crate) fn do_meanwhile(&self, meanwhile: Arc<dyn Meanwhile>) {
        let is_first = self.meanwhile.set(meanwhile).is_ok();
        debug_assert!(is_first, "it is said once");
    }

    /// Returns where its tasks run.
    pub(crate) const fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Returns a place for a piece that will be handed in.
    pub(crate) fn place(&self) -> Place {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns a piece with what its policy says to the pool. Whoever hands it in adds when it has to be over.
    pub(crate) fn job(&self, sink: Arc<dyn Sink>, group: u64, place: Place, runnable: Runnable) -> Job {
        Job::new(sink, group, place, runnable, self.timers.clock())
    }

    /// Hands pieces in. They begin when there is room.
    pub(crate) fn submit(self: &Arc<Self>, jobs: impl IntoIterator<Item = Job>) {
        let mut state = self.lock();
        if state.is_closed {
            drop(state);
            return;
        }
        let mut has_impatient = false;
        let now = self.metrics.get().map(|_| self.timers.clock().now());
        for mut job in jobs {
            job.handed_in = now;
            if let Some(until) = job.queue_until() {
                state.impatient.insert((until, job.place), Spot::of(&job));
                has_impatient = true;
            }
            if job.needs_task() { state.later.push(job) } else { state.ready.push(job) }
        }
        self.start(state);
        if has_impatient {
            // What began at once does not wait any more.
            self.look_after_impatient(&mut self.lock());
        }
    }

    /// Takes back pieces of a group that have not begun, and stops those that have: async work at its next
    /// await point, other work when it looks. Nobody is told of what comes of it.
    pub(crate) fn take_back(self: &Arc<Self>, group: u64, places: &[Place]) {
        let taken: HashSet<Place> = places.iter().copied().collect();
        let mut state = self.lock();
        let mut jobs = state.ready.take_back(group, &taken);
        jobs.extend(state.later.take_back(group, &taken));
        jobs.iter().for_each(|job| state.waits_no_more(job));
        let mut stopped = Vec::new();
        for place in places {
            if let Some(out) = state.take_out(*place) {
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

    /// Returns how many pieces have a slot.
    pub(crate) fn slots_in_use(&self) -> usize {
        self.lock().in_use()
    }

    /// Returns how many threads go on with work that was given up.
    pub(crate) fn abandoned(&self) -> usize {
        self.lock().abandoned
    }

    /// Returns somebody who works where it is called until there is nothing to claim: for work that runs
    /// inline. It counts as searching from now on, so that what is handed in is left to it.
    pub(crate) fn worker_here(self: &Arc<Self>) -> Worker {
        self.lock().searching += 1;
        Worker::new(Arc::clone(self))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts whatever there is room for.
    pub(super) fn start(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        if state.abandoned >= MOST_ABANDONED && !state.ready.is_empty() {
            let refused = state.ready.take_bounded();
            refused.iter().for_each(|job| state.waits_no_more(job));
            self.refuse(refused);
        }
        let given_back = state.give_slots_back(self.limit);
        let mut tasks = Vec::new();
        while state.has_room_for_task(self.limit)
            && let Some(job) = state.later.pop()
        {
            tasks.push(state.begin(job, On::Task(None)));
        }
        let worker = self.another_worker(&mut state);
        drop(state);
        for give in given_back {
            // A piece that does not wait any more goes on without being told.
            let _told = give.send(());
        }
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
        let this = Arc::clone(self);
        let refusing = async move {
            for job in jobs {
                this.fail(job, too_many_abandoned());
            }
        };
        drop(self.runtime.spawn(refusing));
    }

    /// Returns one more worker if there is work that nobody is about to take. A burst of small pieces is over
    /// before many threads have started, and pieces that take long get as many as they need.
    pub(super) fn another_worker(self: &Arc<Self>, state: &mut State) -> Option<Worker> {
        let wanted = state.searching == 0 && !state.ready.is_empty() && state.taken() < self.limit;
        wanted.then(|| {
            state.searching += 1;
            Worker::new(Arc::clone(self))
        })
    }

    /// Gives a piece a task.
    fn spawn(self: &Arc<Self>, mut attempt: Attempt) {
        let begun = attempt.begun;
        self.note_wait(&attempt);
        let piece = Piece { pool: Arc::clone(self), begun, is_over: false };
        let (clock, supervisor) = (Arc::clone(self.timers.clock()), Arc::clone(self.timers.supervisor()));
        let slot = Slot { pool: Arc::clone(self), begun };
        // Not under the lock: a runtime that shuts down drops the task at once, and the piece says so.
        let task = self.runtime.spawn(SLOT.scope(slot, async move {
            attempt.tell_beginning(&supervisor);
            let is_bounded = attempt.is_bounded();
            let followed = if is_bounded {
                None
            } else {
                Execution::begin(&attempt.runnable, attempt.runnable.policy())
            };
            let outcome = if followed.is_none() && !is_bounded {
                attempt.runnable.execute_async().await.into_outcome()
            } else {
                // Apart, so that the task of a plain piece has no room for all of this.
                Box::pin(attempt.in_task(followed, clock)).await
            };
            piece.end(outcome);
        }));
        match self.lock().out.get_mut(&begun.place) {
            Some(out) if out.begun == begun.begun => out.on = On::Task(Some(task.abort_handle())),
            // It is over, or was taken back before anybody could stop it.
            Some(_) | None => task.abort(),
        }
    }

    /// Notes how long a piece waited for its slot.
    pub(super) fn note_wait(&self, attempt: &Attempt) {
        if let (Some(metrics), Some(handed_in)) = (self.metrics.get(), attempt.handed_in) {
            metrics.waited(handed_in, self.timers.clock().now());
        }
    }

    /// Ends a piece, if it was not ended otherwise.
    fn end(self: &Arc<Self>, begun: Begun, outcome: Outcome) {
        let out = self.lock().remove(begun);
        self.tell(begun.place, out, outcome);
    }

    pub(super) fn tell(self: &Arc<Self>, place: Place, out: Option<Out>, outcome: Outcome) {
        let Some(out) = out else { return };
        if let Some(timer) = out.timer {
            self.timers.cancel(timer);
        }
        // Whatever goes wrong there, the pieces of others have to begin.
        self.timers.supervisor().call(TASK, || out.sink.ended(place, outcome));
    }

    /// Sees to it that a piece on a thread is given up when its time is over or it was silent for too long.
    pub(super) fn watch(self: &Arc<Self>, begun: Begun, bounds: Bounds, followed: Option<Execution>) {
        let Some(at) = bounds.next_look() else { return };
        let pool = Arc::downgrade(self);
        let timer = self.timers.at(at, move || {
            let Some(pool) = pool.upgrade() else { return };
            match bounds.over_at(pool.timers.clock().now()) {
                Some(failure) => pool.give_up(begun, failure, followed.as_ref()),
                // There was a sign of life meanwhile.
                None => pool.watch(begun, bounds, followed),
            }
        });
        match self.lock().out.get_mut(&begun.place) {
            Some(out) if out.begun == begun.begun => out.timer = Some(timer),
            Some(_) | None => self.timers.cancel(timer),
        }
    }

    /// Gives up a piece on a thread. The thread goes on, and nobody listens to it.
    fn give_up(self: &Arc<Self>, begun: Begun, why: Failure, followed: Option<&Execution>) {
        let out = {
            let mut state = self.lock();
            let out = state.remove(begun);
            state.abandoned += usize::from(out.is_some());
            out
        };
        if let Some(out) = &out {
            // Before the thread learns of it and comes back.
            if let Some(execution) = followed {
                execution.give_up(&why);
            }
            self.stop(out);
        }
        self.tell(begun.place, out, Outcome::Failed(why));
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use tidewheel_core::policy::Priority;
    use tidewheel_core::time::Span;
    use tidewheel_core::workflow::{Component, Workflow, map, step};
    use tidewheel_store::{Clock as _, RealClock};
    use tidewheel_testkit::VirtualClock;

    use super::*;

    /// Tells the test what it is told, and panics if it is to.
    struct Listener {
        told: mpsc::Sender<(Place, Outcome)>,
        panics: bool,
    }

    impl Sink for Listener {
        fn ended(self: Arc<Self>, place: Place, outcome: Outcome) {
            self.told.send((place, outcome)).expect("the test listens");
            assert!(!self.panics, "a bad sink");
        }
    }

    fn pool(limit: usize) -> Arc<Pool> {
        let timers = Timers::new(Arc::new(RealClock::new()), Handle::current());
        Pool::new(limit, SyncWork::Threads, timers)
    }

    fn listener(panics: bool) -> (Arc<Listener>, mpsc::Receiver<(Place, Outcome)>) {
        let (told, heard) = mpsc::channel();
        (Arc::new(Listener { told, panics }), heard)
    }

    fn jobs(pool: &Pool, sink: &Arc<Listener>, component: Component, items: usize) -> Vec<Job> {
        let workflow = Workflow::new("w").add(component).build().expect("it is whole");
        let mut run = workflow.run("r");
        run.plan((0..items).collect::<Vec<usize>>());
        let mut runnables = run.prepare();
        if items > 0 {
            run.apply(runnables.remove(0).execute());
            runnables = run.prepare();
        }
        let job = |runnable| pool.job(Arc::<Listener>::clone(sink), 0, pool.place(), runnable);
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
            let (pool, (sink, heard)) = (pool(1), listener(true));
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

    #[tokio::test(start_paused = true)]
    async fn pieces_wait_while_the_machine_has_no_thread_and_each_runs_once_when_it_has() {
        let (pool, (sink, heard)) = (pool(2), listener(false));
        pool.scarcity.refusals.store(3, Ordering::SeqCst);
        let (called, calls) = mpsc::channel();
        let component = map("each", move |x: usize| called.send(x).expect("the test listens"));
        pool.submit(jobs(&pool, &sink, component, 5));
        let mut told = Vec::new();
        while told.len() < 5 {
            // The clock goes on when nothing else is to be done.
            tokio::time::sleep(Duration::from_millis(1)).await;
            told.extend(heard.try_iter());
        }
        assert!(told.iter().all(|(_, outcome)| matches!(outcome, Outcome::Completed(_))), "{told:?}");
        let mut items: Vec<usize> = calls.try_iter().collect();
        items.sort_unstable();
        assert_eq!(items, [0, 1, 2, 3, 4]);
        let trouble = pool.timers.supervisor().trouble().expect("it is reported");
        assert!(trouble.contains("no thread"), "{trouble}");
    }

    /// A clock that panics when it is asked what time it is, as long as it is to.
    #[derive(Debug)]
    struct SoreClock(RealClock, std::sync::atomic::AtomicBool);

    impl tidewheel_store::Clock for SoreClock {
        fn now(&self) -> tidewheel_core::time::Timestamp {
            assert!(!self.1.swap(false, Ordering::SeqCst), "no time");
            self.0.now()
        }

        fn sleep_until(&self, at: tidewheel_core::time::Timestamp) -> tidewheel_store::Sleep {
            self.0.sleep_until(at)
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_panic_around_a_piece_is_the_failure_of_that_piece_and_its_worker_goes_on() {
        for is_async in [true, false] {
            let clock = Arc::new(SoreClock(RealClock::new(), false.into()));
            let timers = Timers::new(Arc::<SoreClock>::clone(&clock), Handle::current());
            let pool = Pool::new(1, SyncWork::Threads, timers);
            let (sink, heard) = listener(false);
            let component =
                if is_async { map("each", |x: usize| async move { x }) } else { map("each", |x: usize| x) };
            let mut handed_in = jobs(&pool, &sink, component, 3);
            for job in &mut handed_in {
                job.terms().silence = Some(Span::from_secs(3_600));
            }
            clock.1.store(true, Ordering::SeqCst);
            pool.submit(handed_in);
            let mut told = Vec::new();
            until(|| {
                told.extend(heard.try_iter().map(|(_, outcome)| outcome));
                told.len() == 3
            })
            .await;
            let failed = told.iter().filter_map(|outcome| match outcome {
                Outcome::Failed(failure) => Some(failure.code.clone()),
                _ => None,
            });
            assert_eq!(failed.collect::<Vec<_>>(), [Some("panic".into())], "{told:?}");
            until(|| pool.lock().out.is_empty() && pool.lock().searching == 0).await;
        }
    }

    #[tokio::test]
    async fn a_task_that_was_taken_back_before_it_was_there_does_not_run() {
        let (pool, (sink, heard)) = (pool(1), listener(false));
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
        let (pool, (sink, heard)) = (pool(2), listener(false));
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
        let (pool, (sink, heard)) = (pool(2), listener(false));
        let late = jobs(&pool, &sink, map("each", |x: usize| x), 3);
        pool.close(0, &[]);
        pool.submit(late);
        assert!(pool.lock().ready.is_empty());
        drop(sink);
        assert!(heard.recv().is_err(), "nobody holds on to it");
    }

    /// Blocks the one slot of a pool until it is let go.
    async fn block(pool: &Arc<Pool>, sink: &Arc<Listener>) -> mpsc::Sender<()> {
        let (release, held) = mpsc::channel::<()>();
        let (held, (entered, entries)) = (Mutex::new(held), mpsc::channel());
        let blocks = step("blocks", move |_: serde_json::Value| {
            entered.send(()).expect("the test listens");
            held.lock().map(|held| held.recv_timeout(Duration::from_secs(30)).is_ok()).is_ok()
        });
        pool.submit(jobs(pool, sink, blocks, 0));
        until(|| entries.try_recv().is_ok()).await;
        release
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_is_urgent_begins_first_wherever_it_runs() {
        let (pool, (sink, heard)) = (pool(1), listener(false));
        let release = block(&pool, &sink).await;
        let mut names = Vec::new();
        for (priority, is_async) in [
            (Priority::Low, true),
            (Priority::Low, false),
            (Priority::Normal, false),
            (Priority::Normal, true),
            (Priority::High, true),
            (Priority::High, false),
        ] {
            let component =
                if is_async { map("each", |x: usize| async move { x }) } else { map("each", |x: usize| x) };
            for job in jobs(&pool, &sink, component, 1) {
                names.push((job.place, priority));
                pool.submit([Job { priority, ..job }]);
            }
        }
        release.send(()).expect("somebody waits");
        let mut told = Vec::new();
        until(|| {
            told.extend(heard.try_iter().map(|(place, _)| place));
            told.len() == 7
        })
        .await;
        let level = |place: &Place| names.iter().find(|name| name.0 == *place).map(|name| name.1);
        let levels: Vec<Priority> = told[1..].iter().filter_map(level).collect();
        let expected = [Priority::High, Priority::Normal, Priority::Low].map(|level| [level; 2]);
        assert_eq!(levels, expected.as_flattened());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn neither_tasks_nor_threads_wait_for_ever_behind_what_is_more_urgent() {
        for urgent_is_async in [true, false] {
            let (pool, (sink, heard)) = (pool(1), listener(false));
            let release = block(&pool, &sink).await;
            let sort = |is_async: bool| {
                if is_async { map("each", |x: usize| async move { x }) } else { map("each", |x: usize| x) }
            };
            let modest = jobs(&pool, &sink, sort(!urgent_is_async), 1).remove(0);
            let place = modest.place;
            pool.submit([Job { priority: Priority::Low, ..modest }]);
            let urgent = jobs(&pool, &sink, sort(urgent_is_async), 100);
            pool.submit(urgent.into_iter().map(|job| Job { priority: Priority::High, ..job }));
            release.send(()).expect("somebody waits");
            let mut told = Vec::new();
            until(|| {
                told.extend(heard.try_iter().map(|(place, _)| place));
                told.len() == 102
            })
            .await;
            let turn = told.iter().position(|other| *other == place).expect("it had a turn");
            assert!((8..=10).contains(&turn), "after eight that are more urgent, not {turn}");
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_piece_without_a_slot_in_time_is_told_so_and_does_not_begin() {
        for is_async in [true, false] {
            let clock = VirtualClock::default();
            let timers = Timers::new(Arc::new(clock.clone()), Handle::current());
            let pool = Pool::new(1, SyncWork::Threads, timers);
            let (sink, heard) = listener(false);
            let release = block(&pool, &sink).await;
            let (called, calls) = mpsc::channel();
            let component = if is_async {
                map("each", move |x: usize| {
                    called.send(x).expect("the test listens");
                    async move { x }
                })
            } else {
                map("each", move |x: usize| called.send(x).expect("the test listens"))
            };
            let times = [30_u64, 10, 20, 10];
            let handed_in: Vec<Job> = jobs(&pool, &sink, component, 4)
                .into_iter()
                .zip(times)
                .map(|(job, millis)| {
                    let mut job = job;
                    job.terms().queue_until = Some(clock.now().saturating_add(Span::from_millis(millis)));
                    job
                })
                .collect();
            let places: Vec<Place> = handed_in.iter().map(|job| job.place).collect();
            pool.submit(handed_in);
            let mut late = Vec::new();
            for (millis, so_far) in [(10, 2), (10, 3)] {
                until(|| clock.sleepers() == 1).await;
                clock.advance(Span::from_millis(millis));
                until(|| {
                    late.extend(heard.try_iter());
                    late.len() == so_far
                })
                .await;
            }
            let told: Vec<Place> = late.iter().map(|(place, _)| *place).collect();
            assert_eq!(told, [places[1], places[3], places[2]]);
            for (_, outcome) in late {
                let Outcome::Failed(failure) = outcome else { panic!("it cannot have begun") };
                assert_eq!(failure.code, Some("queue_timeout".into()));
            }
            release.send(()).expect("somebody waits");
            until(|| heard.try_iter().any(|(place, _)| place == places[0])).await;
            assert_eq!(calls.try_iter().collect::<Vec<_>>(), [0], "only the first got its slot in time");
            assert!(pool.lock().impatient.is_empty());
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_is_taken_back_or_began_is_not_late_any_more() {
        let clock = VirtualClock::default();
        let timers = Timers::new(Arc::new(clock.clone()), Handle::current());
        let pool = Pool::new(1, SyncWork::Threads, timers);
        let (sink, heard) = listener(false);
        let release = block(&pool, &sink).await;
        let until_then = clock.now().saturating_add(Span::from_millis(10));
        let mut waiting = jobs(&pool, &sink, map("each", |x: usize| x), 2);
        waiting.iter_mut().for_each(|job| job.terms().queue_until = Some(until_then));
        let places: Vec<Place> = waiting.iter().map(|job| job.place).collect();
        pool.submit(waiting);
        pool.take_back(0, &places[..1]);
        assert_eq!(pool.lock().impatient.len(), 1);
        release.send(()).expect("somebody waits");
        let mut told = Vec::new();
        until(|| {
            told.extend(heard.try_iter());
            told.len() == 2
        })
        .await;
        assert!(pool.lock().impatient.is_empty());
        clock.advance(Span::from_millis(50));
        until(|| clock.sleepers() == 0).await;
        assert!(told.iter().all(|(_, outcome)| matches!(outcome, Outcome::Completed(_))), "{told:?}");
        assert_eq!(heard.try_iter().count(), 0);
    }
}
