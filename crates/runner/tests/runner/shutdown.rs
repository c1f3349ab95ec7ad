//! A runner that is shut down waits for what is under way, and gives everything back.

use std::time::Duration;

use tidewheel_core::fact::RunId;
use tidewheel_core::policy::{self, Failure, OnFailure, Policy};
use tidewheel_core::time::Span;
use tidewheel_core::workflow::{Workflow, step};
use tidewheel_runner::{InputError, RunnerOptions, StartError};
use tidewheel_store::{Status, Store as _};

use crate::world::{Disk, Gate, Watched, count, gated, log, numbers};

#[tokio::test(start_paused = true)]
async fn work_under_way_ends_within_the_grace_and_nothing_new_starts() {
    let (store, gate) = (Watched::new(), Gate::new());
    let workflow = {
        let gate = gate.clone();
        let work = move |x: i64| {
            let gate = gate.clone();
            async move {
                gate.pass().await;
                x + 1
            }
        };
        Workflow::new("chain")
            .add(step("inc", work))
            .add(step("double", |x: i64| x * 2).after("inc"))
            .build()
            .unwrap()
    };
    let runner = store.runner(RunnerOptions::new()).await;
    let run = runner.run("first", &workflow, 1_i64).await.unwrap();
    gate.began().await;
    let shutdown = tokio::spawn(runner.clone().shutdown());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!shutdown.is_finished());
    let error = runner.start("second", &workflow).await.unwrap_err();
    assert!(matches!(error, StartError::Closed), "{error:?}");
    gate.open(1);
    shutdown.await.unwrap();
    let record = store.find(run.id()).await.unwrap().unwrap();
    assert_eq!((record.status, record.owner), (Status::Running, None));
    assert!(record.wake_at.is_some(), "somebody goes on with it at once");
    assert_eq!(count(&log(&store, "first").await, "fact_produced"), 2, "the input and `inc`");
    let error = run.input(2_i64).await.unwrap_err();
    assert!(matches!(error, InputError::Start(StartError::Closed)), "{error:?}");

    let next = store.runner(RunnerOptions::new()).await;
    next.register(&workflow).unwrap();
    let run = next.get("first").await.unwrap();
    assert_eq!(run.result::<i64>("double").await.unwrap(), 4);
    assert_eq!(gate.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn after_the_grace_work_is_given_up_and_offered_again() {
    let (store, gate) = (Watched::new(), Gate::new());
    for round in 1..=5 {
        let runner = store.runner(RunnerOptions::new().shutdown_grace(Span::from_secs(10))).await;
        runner.run("first", &gated(&gate), 1_i64).await.unwrap();
        gate.began().await;
        assert_eq!(gate.count(), round);
        let began = tokio::time::Instant::now();
        runner.shutdown().await;
        assert_eq!(began.elapsed().as_secs(), 10);
    }
    let runner = store.runner(RunnerOptions::new()).await;
    let run = runner.start("first", &gated(&gate)).await.unwrap();
    gate.open(1);
    assert_eq!(run.result::<i64>("inc").await.unwrap(), 2, "giving work back is no loss");
}

#[tokio::test]
async fn the_next_runner_takes_over_at_once() {
    let (disk, gate) = (Disk::new(), Gate::new());
    let workflow = gated(&gate);
    let (runner, _store) = disk.open_with(RunnerOptions::new().shutdown_grace(Span::from_millis(0))).await;
    let (next, store) = disk.open().await;
    next.register(&workflow).unwrap();
    for number in 0..10 {
        runner.run(format!("run-{number}").as_str(), &workflow, number).await.unwrap();
        gate.began().await;
    }
    let idle = runner.run("idle", &numbers(), 1_i64).await.unwrap();
    idle.wait().await.unwrap();
    gate.open(10);
    runner.shutdown().await;
    for number in 0..10_i64 {
        let id = format!("run-{number}");
        let run = next.get(id.as_str()).await.unwrap();
        assert_eq!(run.result::<i64>("inc").await.unwrap(), number + 1);
    }
    let record = store.find(&RunId::new("idle")).await.unwrap().unwrap();
    assert_eq!((record.owner, record.wake_at), (None, None), "nothing is to be done there");
    next.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_runner_with_nothing_to_do_shuts_down_at_once() {
    let store = Watched::new();
    let runner = store.runner(RunnerOptions::new()).await;
    let run = runner.run("first", &numbers(), 1_i64).await.unwrap();
    run.wait().await.unwrap();
    let began = tokio::time::Instant::now();
    runner.shutdown().await;
    assert_eq!(began.elapsed(), Duration::ZERO);
}

/// A workflow of one step that fails, which is named after what its policy makes of that.
fn failing(name: &str, on_failure: OnFailure) -> Workflow {
    Workflow::new(name)
        .add(step("pay", |_: i64| Err::<i64, _>(Failure::new("no money"))))
        .policy(policy::name("pay"), Policy::new().on_failure(on_failure))
        .build()
        .expect("a sound workflow")
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_given_back_keeps_the_reason_of_its_status() {
    let store = Watched::new();
    let runner = store.runner(RunnerOptions::new()).await;
    let of = async |id: &str| {
        let record = store.find(&RunId::new(id)).await.unwrap().unwrap();
        (record.status, record.reason)
    };
    for (id, on_failure) in [("skips", OnFailure::Skip), ("pauses", OnFailure::Pause)] {
        runner.run(id, &failing(id, on_failure), 1_i64).await.unwrap().wait().await.unwrap();
    }
    let skipped = (Status::Completed, Some("1 failure was skipped".to_owned()));
    let paused = (Status::Paused, Some("`pay` failed: no money".to_owned()));
    assert_eq!((of("skips").await, of("pauses").await), (skipped.clone(), paused.clone()));
    runner.shutdown().await;
    assert_eq!((of("skips").await, of("pauses").await), (skipped, paused));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_stopped_while_it_waits_for_a_person_keeps_the_reason_until_it_is_resumed() {
    let store = Watched::new();
    let runner = store.runner(RunnerOptions::new()).await;
    let workflow = failing("pauses", OnFailure::Pause);
    let run = runner.run("first", &workflow, 1_i64).await.unwrap();
    assert_eq!(run.wait().await.unwrap(), Status::Paused);
    let of_run = async || {
        let record = store.find(run.id()).await.unwrap().unwrap();
        (record.status, record.reason)
    };
    let reason = Some("`pay` failed: no money".to_owned());
    run.stop().await.unwrap();
    assert_eq!(of_run().await, (Status::Stopped, reason.clone()));
    let run = runner.start("first", &workflow).await.unwrap();
    run.checkpoint().await.unwrap();
    assert_eq!(of_run().await, (Status::Paused, reason));
}
