//! Who is told what happens: subscribers and hooks, after it was stored and in order.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidewheel_core::fact::RunId;
use tidewheel_core::policy::{self, Backoff, Failure, NodeInfo, Policy};
use tidewheel_core::workflow::{Workflow, step};
use tidewheel_runner::{Hooks, RunEvent, Runner, RunnerOptions};
use tidewheel_store::{Status, Store as _};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use crate::world::{Disk, Gate, Watched, gated, log, numbers, parsed};

/// Takes what was told so far.
fn told(events: &mut Receiver<RunEvent>) -> Vec<RunEvent> {
    let mut all = Vec::new();
    loop {
        match events.try_recv() {
            Ok(event) => all.push(event),
            Err(TryRecvError::Empty | TryRecvError::Closed) => return all,
            Err(TryRecvError::Lagged(_)) => {}
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_sees_every_event_once_in_order_and_as_it_is_stored() {
    let store = Watched::new();
    let runner = store.runner(RunnerOptions::new()).await;
    let mut events = runner.subscribe();
    let run = runner.start("first", &numbers()).await.unwrap();
    for input in 0..20_i64 {
        run.input(input).await.unwrap();
    }
    run.wait().await.unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
    let told = told(&mut events);
    let stored = log(&store, "first").await;
    assert_eq!(told.len(), stored.len());
    for ((version, told), stored) in (0..).zip(told).zip(stored) {
        assert_eq!((told.run.as_str(), told.version), ("first", version));
        assert_eq!(parsed(&told.event), stored);
    }
}

/// On several threads, commits of one run follow each other closely.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_subscriber_sees_the_events_of_each_run_in_order_on_several_threads() {
    let disk = Disk::new();
    let (runner, store) = disk.open().await;
    let mut events = runner.subscribe();
    let tasks: Vec<_> = (0..4)
        .map(|number| {
            let runner = runner.clone();
            tokio::spawn(async move {
                let run = runner.start(format!("run-{number}").as_str(), &numbers()).await.unwrap();
                for input in 0..20_i64 {
                    run.input(input).await.unwrap();
                }
                run.wait().await.unwrap();
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let mut stored = 0;
    for number in 0..4 {
        stored += store.find(&format!("run-{number}").as_str().into()).await.unwrap().unwrap().version;
    }
    let mut versions = std::collections::BTreeMap::<String, u64>::new();
    while versions.values().sum::<u64>() < stored {
        let event = events.recv().await.unwrap();
        let next = versions.entry(event.run.as_str().to_owned()).or_default();
        assert_eq!(event.version, *next, "{}", event.run);
        *next += 1;
    }
    assert_eq!(versions.len(), 4);
    runner.shutdown().await;
}

/// Events of one commit were written down before and after somebody began to listen.
#[tokio::test(start_paused = true)]
async fn a_subscriber_that_comes_in_the_middle_is_told_the_right_versions() {
    let (store, gate) = (Watched::new(), Gate::new());
    let runner = store.runner(RunnerOptions::new()).await;
    let run = runner.start("first", &gated(&gate)).await.unwrap();
    store.hold(true);
    let give = |input: i64| {
        let run = run.clone();
        tokio::spawn(async move { run.input(input).await })
    };
    let mut given = vec![give(0)];
    tokio::task::yield_now().await;
    given.push(give(1));
    tokio::time::sleep(Duration::from_millis(1)).await;
    let mut events = runner.subscribe();
    given.push(give(2));
    tokio::time::sleep(Duration::from_millis(1)).await;
    store.hold(false);
    gate.open(3);
    for input in given {
        input.await.unwrap().unwrap();
    }
    run.wait().await.unwrap();
    let stored = log(&store, "first").await;
    let told = told(&mut events);
    assert!(!told.is_empty() && told.len() < stored.len());
    for event in told {
        let version = usize::try_from(event.version).unwrap();
        assert_eq!(parsed(&event.event), stored[version]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_subscriber_is_told_how_much_it_missed() {
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let mut events = runner.subscribe();
    let run = runner.start("first", &numbers()).await.unwrap();
    for input in 0..500_i64 {
        run.input(input).await.unwrap();
    }
    run.wait().await.unwrap();
    let Err(RecvError::Lagged(missed)) = events.recv().await else { panic!("it should have missed some") };
    assert!(missed > 0);
    assert_eq!(events.recv().await.unwrap().version, missed, "and goes on where it was cut");
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn push(&self, line: String) {
        self.0.lock().expect("no panic").push(line);
    }
}

impl Hooks for Log {
    fn dispatched(&self, run: &RunId, node: &NodeInfo<'_>, attempt: u32) {
        self.push(format!("{run} dispatched {} {attempt}", node.name.unwrap_or("?")));
    }

    fn completed(&self, run: &RunId, node: &NodeInfo<'_>) {
        self.push(format!("{run} completed {}", node.name.unwrap_or("?")));
    }

    fn failed(&self, run: &RunId, node: &NodeInfo<'_>, failure: &Failure) {
        self.push(format!("{run} failed {}: {failure}", node.name.unwrap_or("?")));
    }

    fn idle(&self, run: &RunId, status: Status) {
        self.push(format!("{run} idle {status}"));
    }
}

fn troubled() -> Workflow {
    Workflow::new("troubled")
        .add(step("inc", |x: i64| x + 1))
        .add(step("fails", |_: i64| Err::<i64, _>(Failure::new("no"))).after("inc"))
        .policy(policy::name("fails"), Policy::new().max_retries(1).backoff(Backoff::Fixed).base_delay("1s"))
        .build()
        .expect("a sound workflow")
}

#[tokio::test(start_paused = true)]
async fn hooks_are_called_in_order_and_idle_once_for_each_end() {
    let hooks = Log::default();
    let runner = Runner::in_memory(RunnerOptions::new().hooks(hooks.clone())).await.unwrap();
    let run = runner.start("a", &troubled()).await.unwrap();
    run.input(1_i64).await.unwrap();
    run.wait().await.unwrap();
    run.checkpoint().await.unwrap_err();
    run.checkpoint().await.unwrap_err();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(
        *hooks.0.lock().unwrap(),
        [
            "a dispatched inc 0",
            "a completed inc",
            "a dispatched fails 0",
            "a dispatched fails 1",
            "a failed fails: no",
            "a idle failed",
        ]
    );
}

struct Panics;

impl Hooks for Panics {
    fn dispatched(&self, _: &RunId, _: &NodeInfo<'_>, _: u32) {
        std::panic::resume_unwind(Box::new("a hook"));
    }

    fn completed(&self, _: &RunId, _: &NodeInfo<'_>) {
        std::panic::resume_unwind(Box::new("a hook"));
    }

    fn idle(&self, _: &RunId, _: Status) {
        std::panic::resume_unwind(Box::new("a hook"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_panics_changes_nothing() {
    let store = Watched::new();
    let runner = store.runner(RunnerOptions::new().hooks(Panics)).await;
    let run = runner.start("first", &numbers()).await.unwrap();
    for input in 1..4_i64 {
        run.input(input).await.unwrap();
        assert_eq!(run.result::<i64>("sum").await.unwrap(), (input + 1) * 3);
    }
    assert_eq!(run.wait().await.unwrap(), Status::Completed);
    let record = store.find(run.id()).await.unwrap().unwrap();
    assert_eq!(record.fence, 1, "it was not taken up again");
}
