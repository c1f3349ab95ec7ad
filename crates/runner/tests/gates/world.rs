//! What these tests share: the homes of a run, steps that note when they began, and files that runners share.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidewheel_core::fact::RunId;
use tidewheel_core::policy::{self, CircuitBreaker, Failure, Policy};
use tidewheel_core::run::Run;
use tidewheel_core::time::Span;
use tidewheel_core::workflow::{Component, Workflow, step};
use tidewheel_runner::{Options, RunHandle, Runner, RunnerOptions, run_until_satisfied};
use tidewheel_store::{Clock, PutShared, Sqlite, Store};
use tidewheel_testkit::VirtualClock;
use tokio::time::Instant;

/// Where work is done, on the clock of the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    /// A runner; each input has its own run.
    Runner,
    /// One run in memory that has all the inputs.
    React,
}

pub(crate) const HOMES: [Home; 2] = [Home::Runner, Home::React];

impl Home {
    /// Feeds inputs at the same time, and returns what came of them when all work is over.
    pub(crate) async fn run(self, workflow: &Workflow, inputs: std::ops::Range<i64>) -> Vec<Run> {
        self.run_with(workflow, inputs, usize::MAX).await
    }

    pub(crate) async fn run_with(
        self,
        workflow: &Workflow,
        inputs: std::ops::Range<i64>,
        slots: usize,
    ) -> Vec<Run> {
        match self {
            Self::Runner => {
                let options = RunnerOptions::new().max_concurrency(slots.min(10_000));
                let runner = Runner::in_memory(options).await.unwrap();
                let mut runs = Vec::new();
                for input in inputs {
                    runs.push(start(&runner, format!("r{input}"), workflow, input).await);
                }
                let mut states = Vec::new();
                for run in &runs {
                    timed(run.wait()).await.unwrap();
                    states.push(run.state().await.unwrap());
                }
                states
            }
            Self::React => {
                let mut run = workflow.run("r");
                for input in inputs {
                    run.plan(input);
                }
                let options = Options::new().max_concurrency(slots);
                timed(run_until_satisfied(&mut run, options)).await.unwrap();
                assert!(!run.is_runnable(), "nothing is left open");
                vec![run]
            }
        }
    }
}

pub(crate) fn governed(
    components: impl IntoIterator<Item = Component>,
    rules: Vec<(policy::Matcher, Policy)>,
) -> Workflow {
    named("w", components, rules)
}

pub(crate) fn named(
    name: &str,
    components: impl IntoIterator<Item = Component>,
    rules: Vec<(policy::Matcher, Policy)>,
) -> Workflow {
    let mut builder = Workflow::new(name);
    for component in components {
        builder = builder.add(component);
    }
    builder.policies(rules).build().unwrap()
}

pub(crate) async fn start(
    runner: &Runner,
    id: impl Into<RunId>,
    workflow: &Workflow,
    input: i64,
) -> RunHandle {
    let run = runner.start(id, workflow).await.unwrap();
    run.input(input).await.unwrap();
    run
}

/// Waits for something as long as nothing hangs.
pub(crate) async fn timed<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(100_000), what).await.expect("it hangs")
}

/// When which input began, in milliseconds.
#[derive(Clone)]
pub(crate) struct Starts {
    time: Time,
    starts: Arc<Mutex<Vec<(i64, u64)>>>,
}

#[derive(Clone)]
enum Time {
    /// The time of the runtime since then.
    Runtime(Instant),
    Virtual(VirtualClock),
}

impl Starts {
    pub(crate) fn new() -> Self {
        Self { time: Time::Runtime(Instant::now()), starts: Arc::default() }
    }

    /// Returns starts in the time of a file.
    pub(crate) fn on(file: &File) -> Self {
        Self { time: Time::Virtual(file.clock.clone()), starts: Arc::default() }
    }

    pub(crate) fn now(&self) -> u64 {
        match &self.time {
            Time::Runtime(began) => u64::try_from(began.elapsed().as_millis()).unwrap(),
            Time::Virtual(clock) => clock.now().as_nanos() / 1_000_000,
        }
    }

    async fn sleep(&self, millis: u64) {
        match &self.time {
            Time::Runtime(_) => tokio::time::sleep(Duration::from_millis(millis)).await,
            Time::Virtual(clock) => {
                clock.sleep_until(clock.now().saturating_add(Span::from_millis(millis))).await;
            }
        }
    }

    pub(crate) fn note(&self, input: i64) {
        self.starts.lock().unwrap().push((input, self.now()));
    }

    pub(crate) fn all(&self) -> Vec<(i64, u64)> {
        self.starts.lock().unwrap().clone()
    }

    /// Returns the inputs in the order in which they began.
    pub(crate) fn order(&self) -> Vec<i64> {
        self.all().into_iter().map(|(input, _)| input).collect()
    }

    /// Returns when they began.
    pub(crate) fn times(&self) -> Vec<u64> {
        self.all().into_iter().map(|(_, at)| at).collect()
    }

    /// Returns how many began.
    pub(crate) fn count(&self) -> usize {
        self.starts.lock().unwrap().len()
    }

    /// Returns a step that notes when it began and takes so many milliseconds.
    pub(crate) fn step(&self, name: &str, millis: u64) -> Component {
        self.failing(name, millis, |_| false)
    }

    /// The same, and some of its calls fail at their end, counted from zero.
    pub(crate) fn failing(
        &self,
        name: &str,
        millis: u64,
        fails: impl Fn(usize) -> bool + Send + Sync + 'static,
    ) -> Component {
        let (starts, fails) = (self.clone(), Arc::new(fails));
        step(name, move |x: i64| {
            let (starts, fails) = (starts.clone(), Arc::clone(&fails));
            async move {
                let call = starts.count();
                starts.note(x);
                if millis > 0 {
                    starts.sleep(millis).await;
                }
                if fails(call) { Err(Failure::new("down")) } else { Ok(x) }
            }
        })
    }
}

/// A breaker that opens after so many failures, for ten seconds.
pub(crate) fn breaker(failures: u32) -> CircuitBreaker {
    CircuitBreaker {
        failure_threshold: failures,
        reset_timeout: Span::from_secs(10),
        ..CircuitBreaker::new("api")
    }
}

/// Checks that no window ever saw more than the count.
pub(crate) fn assert_rate(mut starts: Vec<u64>, count: usize, window: u64) {
    starts.sort_unstable();
    for (index, start) in starts.iter().enumerate() {
        let inside = starts[index..].iter().take_while(|other| **other < start + window).count();
        assert!(inside <= count, "{inside} starts in the {window} ms after {start}: {starts:?}");
    }
}

/// A database that several runners share, on a clock that only the test moves.
pub(crate) struct File {
    folder: tempfile::TempDir,
    pub(crate) clock: VirtualClock,
}

impl File {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder"), clock: VirtualClock::default() }
    }

    /// Returns a runner with a connection of its own, as another process has it.
    pub(crate) async fn open(&self) -> (Runner, Arc<Sqlite>) {
        let path = self.folder.path().join("runs.db");
        let store = Arc::new(Sqlite::open(path, Arc::new(self.clock.clone())).expect("a database"));
        // Long: the clock makes leaps.
        let options = RunnerOptions::new().lease(Span::from_secs(1_000_000));
        let options = options.clock(Arc::new(self.clock.clone()));
        let runner = Runner::with_store(Arc::clone(&store) as Arc<dyn Store>, options).await;
        (runner.expect("a runner"), store)
    }

    pub(crate) fn advance(&self, millis: u64) {
        self.clock.advance(Span::from_millis(millis));
    }
}

/// Ends a runner as the end of its process would: nothing more is stored, and its lock is gone.
pub(crate) async fn crash(runner: Runner, store: &Sqlite) {
    drop(runner);
    store.close().await;
}

/// Waits until something is so. Nothing but the work of others has to happen for it.
pub(crate) async fn until(what: impl Fn() -> bool) {
    let real = std::time::Instant::now();
    while !what() {
        assert!(real.elapsed() < Duration::from_secs(30), "it hangs");
        tokio::task::yield_now().await;
    }
}

/// Lets everything that can happen now happen: what was handed to the store before is done when it answers, so a dozen
/// answers are enough for whatever follows from each other.
pub(crate) async fn settle(stores: &[&Sqlite]) {
    for round in 0..12 {
        for store in stores {
            for _ in 0..5 {
                tokio::task::yield_now().await;
            }
            let name = format!("{:p}-{round}", std::ptr::from_ref::<Sqlite>(store));
            let expected = store.shared("beat", &name).await.unwrap().map_or(0, |found| found.version);
            let body = Some("{}".to_owned());
            let put = PutShared { kind: "beat".to_owned(), name, expected, body };
            store.put_shared(vec![put]).await.unwrap();
        }
    }
}
