//! What is asked through the store is done at once: the clock of these tests stands still, so nobody can look for it
//! from time to time.

use std::sync::Arc;

use tidewheel_core::policy::{self, Failure, OnFailure, Policy};
use tidewheel_core::workflow::{Workflow, step};
use tidewheel_runner::{RunHandle, Runner, RunnerOptions};
use tidewheel_store::{Clock, Memory, Sqlite, Status, Store};
use tidewheel_testkit::VirtualClock;

use crate::world::{Calls, Tokens, external, governed, soon, start, until};

/// A runner that drives, and another one that can only ask.
struct Two {
    driver: Runner,
    asker: Runner,
}

impl Two {
    async fn new(workflow: &Workflow) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(VirtualClock::default());
        let store: Arc<dyn Store> = Arc::new(Memory::new(Arc::clone(&clock)));
        let open = |options: RunnerOptions| {
            Runner::with_store(Arc::clone(&store), options.clock(Arc::clone(&clock)))
        };
        let driver = open(RunnerOptions::new()).await.unwrap();
        let asker = open(RunnerOptions::new().only_own_runs()).await.unwrap();
        asker.register(workflow).unwrap();
        Self { driver, asker }
    }

    /// Starts a run with the driver; returns it as the other one sees it.
    async fn start(&self, workflow: &Workflow) -> (RunHandle, RunHandle) {
        let run = start(&self.driver, "r", workflow, 41).await;
        (run, self.asker.get("r").await.unwrap())
    }
}

#[tokio::test]
async fn what_is_said_outside() {
    let tokens = Tokens::new();
    let after = step("after", |x: i64| x + 1).after("ask");
    let rules = [(policy::name("ask"), external().max_retries(1))];
    let workflow = governed("w", [tokens.step("ask"), after], rules);
    let two = Two::new(&workflow).await;
    let (run, _) = two.start(&workflow).await;
    let first = tokens.next().await;
    until(&run, Status::Waiting).await;
    two.asker.heartbeat(&first).await.unwrap();
    two.asker.fail(&first, Failure::new("no")).await.unwrap();
    let second = tokens.next().await;
    two.asker.complete(&second, 41_i64).await.unwrap();
    assert_eq!(soon(run.result::<i64>("after")).await.unwrap(), 42);
}

#[tokio::test]
async fn cancel_of_a_run_that_waits_outside_for_a_time_or_for_a_person() {
    let pausing = Policy::new().on_failure(OnFailure::Pause);
    let rules = [(external(), 0), (Policy::new().delay("1h"), 0), (pausing, 1)];
    for (rule, times) in rules {
        let workflow = governed("w", [Calls::default().failing("s", times)], [(policy::name("s"), rule)]);
        let two = Two::new(&workflow).await;
        let (run, there) = two.start(&workflow).await;
        soon(async {
            while run.status().await.unwrap() == Status::Running {
                tokio::task::yield_now().await;
            }
        })
        .await;
        there.cancel().await.unwrap();
        until(&run, Status::Cancelled).await;
    }
}

#[tokio::test]
async fn resume_and_retry_of_a_run_that_waits_for_a_person() {
    for is_retry in [true, false] {
        let rule = Policy::new().on_failure(OnFailure::Pause);
        let workflow = governed("w", [Calls::default().failing("s", 1)], [(policy::name("s"), rule)]);
        let two = Two::new(&workflow).await;
        let (run, there) = two.start(&workflow).await;
        until(&run, Status::Paused).await;
        if is_retry {
            assert_eq!(there.retry().await.unwrap(), None);
        } else {
            there.resume().await.unwrap();
        }
        until(&run, Status::Completed).await;
    }
}

#[tokio::test]
async fn retry_of_what_failed_or_was_put_aside() {
    for on_failure in [OnFailure::Halt, OnFailure::DeadLetter] {
        let rule = Policy::new().on_failure(on_failure);
        let workflow = governed("w", [Calls::default().failing("s", 1)], [(policy::name("s"), rule)]);
        let two = Two::new(&workflow).await;
        let (run, there) = two.start(&workflow).await;
        until(&run, Status::Failed).await;
        assert_eq!(there.retry().await.unwrap(), None);
        until(&run, Status::Completed).await;
        assert!(two.asker.dead_letters(None, None).await.unwrap().rows.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parked_run_takes_what_is_said_outside_and_goes_on_when_it_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let clock: Arc<dyn Clock> = Arc::new(VirtualClock::default());
    let open = async || {
        let store = Arc::new(Sqlite::open(folder.path().join("runs.db"), Arc::clone(&clock)).unwrap());
        let options = RunnerOptions::new().clock(Arc::clone(&clock));
        let runner = Runner::with_store(Arc::clone(&store) as Arc<dyn Store>, options).await.unwrap();
        (runner, store)
    };
    let (tokens, begun) = (Tokens::new(), Tokens::new());
    let seen = begun.clone();
    let stuck = step("stuck", move |context: tidewheel_core::work::Context, x: i64| {
        seen.give(&context);
        let lives = seen.count();
        async move {
            if lives <= 3 {
                std::future::pending::<()>().await;
            }
            x
        }
    });
    let workflow = governed("w", [tokens.step("ask"), stuck], [(policy::name("ask"), external())]);
    for life in 0..3 {
        let (runner, store) = open().await;
        let run = match life {
            0 => start(&runner, "r", &workflow, 41).await,
            _ => runner.start("r", &workflow).await.unwrap(),
        };
        begun.next().await;
        soon(async {
            while run.state().await.unwrap().waits().is_empty() {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
        })
        .await;
        run.checkpoint().await.unwrap();
        drop(run);
        crate::world::crash(runner, &store).await;
    }
    let token = tokens.next().await;
    let (driver, _) = open().await;
    driver.register(&workflow).unwrap();
    let run = driver.get("r").await.unwrap();
    until(&run, Status::Parked).await;
    let (stranger, _) = open().await;
    stranger.complete(&token, 5_i64).await.unwrap();
    soon(async {
        while run.results::<i64>("ask").await.unwrap() != [5] {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    })
    .await;
    assert_eq!(run.status().await.unwrap(), Status::Parked);
    run.resume().await.unwrap();
    assert_eq!(soon(run.result::<i64>("stuck")).await.unwrap(), 41);
}
