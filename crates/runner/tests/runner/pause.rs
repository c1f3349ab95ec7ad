//! A run that is paused starts nothing new until somebody resumes it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tidewheel_core::policy::{self, Backoff, Failure, Policy};
use tidewheel_core::workflow::{Workflow, step};
use tidewheel_runner::{ResultError, Runner, RunnerOptions};
use tidewheel_store::Status;

use crate::world::{Disk, Gate, crash};

/// A step that waits for a word, and one after it.
fn chain(gate: &Gate) -> Workflow {
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
        .expect("a sound workflow")
}

#[tokio::test(start_paused = true)]
async fn what_is_under_way_ends_and_nothing_new_starts() {
    let gate = Gate::new();
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let run = runner.run("first", &chain(&gate), 1_i64).await.unwrap();
    gate.began().await;
    run.pause().await.unwrap();
    assert_eq!(run.status().await.unwrap(), Status::Paused);
    gate.open(1);
    assert_eq!(run.result::<i64>("inc").await.unwrap(), 2);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(run.results::<i64>("double").await.unwrap(), Vec::<i64>::new());
    run.input(5_i64).await.unwrap();
    let error = run.result::<i64>("double").await.unwrap_err();
    assert!(matches!(error, ResultError::Over { status: Status::Paused, .. }), "{error}");
    assert_eq!(run.wait().await.unwrap(), Status::Paused);
    assert_eq!(gate.count(), 1);
    gate.open(1);
    run.resume().await.unwrap();
    assert_eq!(run.result::<i64>("double").await.unwrap(), 12);
    // The first input may come second.
    assert_eq!(run.wait().await.unwrap(), Status::Completed);
    assert_eq!(run.results::<i64>("double").await.unwrap(), [4, 12]);
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_a_result_learns_of_the_pause() {
    let gate = Gate::new();
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let run = runner.run("first", &chain(&gate), 1_i64).await.unwrap();
    gate.began().await;
    let waits = tokio::spawn({
        let run = run.clone();
        async move { run.result::<i64>("double").await }
    });
    tokio::task::yield_now().await;
    run.pause().await.unwrap();
    gate.open(1);
    let error = waits.await.unwrap().unwrap_err();
    assert!(matches!(error, ResultError::Over { status: Status::Paused, .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_is_due_during_a_pause_waits_for_its_end() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let flaky = move |x: i64| match counted.fetch_add(1, Ordering::Relaxed) {
        0 => Err(Failure::new("busy")),
        _ => Ok(x + 1),
    };
    let slowly = Policy::new().max_retries(1).backoff(Backoff::Fixed).base_delay("10s");
    let workflow =
        Workflow::new("flaky").add(step("inc", flaky)).policy(policy::default(), slowly).build().unwrap();
    for give_back in [false, true] {
        calls.store(0, Ordering::Relaxed);
        let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
        let run = runner.run("first", &workflow, 1_i64).await.unwrap();
        tokio::time::sleep(Duration::from_secs(5)).await;
        run.pause().await.unwrap();
        // After a while, a run with nothing to do does not stay in memory.
        tokio::time::sleep(Duration::from_secs(if give_back { 600 } else { 8 })).await;
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        run.resume().await.unwrap();
        assert_eq!(run.result::<i64>("inc").await.unwrap(), 2);
        assert_eq!(calls.load(Ordering::Relaxed), 2);
    }
}

#[tokio::test]
async fn a_pause_survives_a_restart_and_what_was_under_way_runs_after_it() {
    let (disk, gate) = (Disk::new(), Gate::new());
    let workflow = chain(&gate);
    let (runner, store) = disk.open().await;
    let run = runner.run("first", &workflow, 1_i64).await.unwrap();
    gate.began().await;
    run.pause().await.unwrap();
    crash(runner, &store).await;
    let (runner, _store) = disk.open().await;
    let run = runner.start("first", &workflow).await.unwrap();
    assert_eq!(run.wait().await.unwrap(), Status::Paused);
    // It is in memory now, and paused there, too.
    run.input(2_i64).await.unwrap();
    assert_eq!(run.status().await.unwrap(), Status::Paused);
    assert_eq!(gate.count(), 1);
    run.resume().await.unwrap();
    gate.open(2);
    assert_eq!(run.wait().await.unwrap(), Status::Completed);
    assert_eq!(run.results::<i64>("double").await.unwrap(), [4, 6]);
    assert_eq!(gate.count(), 3);
    runner.shutdown().await;
}
