//! Inputs: each is taken once, however often and by however many it is given, and waits where there is too much
//! to do.

use std::time::Duration;

use tidewheel_core::workflow::{Workflow, accumulator, step};
use tidewheel_runner::{InputError, Runner, RunnerOptions};
use tidewheel_store::{Status, Store as _};

use crate::world::{Disk, Gate, Watched, count, crash, gated, log, numbers};

#[tokio::test(start_paused = true)]
async fn a_key_is_one_input_however_many_give_it_at_once() {
    let workflow =
        Workflow::new("sum").add(accumulator("sum", 0, |sum: i64, x: i64| sum + x)).build().unwrap();
    let store = Watched::new();
    let runner = store.runner(RunnerOptions::new()).await;
    let run = runner.start("first", &workflow).await.unwrap();
    let tasks: Vec<_> = (0..100)
        .map(|_| {
            let run = run.clone();
            tokio::spawn(async move { run.input_keyed("once", 5_i64).await })
        })
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    run.input_keyed("other", 1_i64).await.unwrap();
    run.wait().await.unwrap();
    assert_eq!(run.result::<i64>("sum").await.unwrap(), 6);
    assert_eq!(count(&log(&store, "first").await, "input_accepted"), 2);
}

/// Whoever gives a key again is told that it is stored when it is, not before.
#[tokio::test(start_paused = true)]
async fn a_key_that_is_given_again_is_acknowledged_when_the_first_is_stored() {
    let store = Watched::new();
    let runner = store.runner(RunnerOptions::new()).await;
    let run = runner.start("first", &numbers()).await.unwrap();
    store.hold(true);
    let give = || {
        let run = run.clone();
        tokio::spawn(async move { run.input_keyed("once", 5_i64).await })
    };
    let (one, other) = (give(), give());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!one.is_finished() && !other.is_finished());
    store.hold(false);
    one.await.unwrap().unwrap();
    other.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_key_is_one_input_across_restarts() {
    let disk = Disk::new();
    for _ in 0..3 {
        let (runner, store) = disk.open().await;
        let run = runner.start("first", &numbers()).await.unwrap();
        run.input_keyed("one", 1_i64).await.unwrap();
        assert_eq!(run.result::<i64>("sum").await.unwrap(), 6);
        assert_eq!(run.results::<i64>("sum").await.unwrap(), [6]);
        assert_eq!(count(&log(&*store, "first").await, "input_accepted"), 1);
        drop(run);
        crash(runner, &store).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_input_waits_while_the_run_has_much_to_do() {
    let gate = Gate::new();
    let runner = Runner::in_memory(RunnerOptions::new().max_open_work(3)).await.unwrap();
    let run = runner.start("first", &gated(&gate)).await.unwrap();
    for input in 0..4_i64 {
        run.input(input).await.unwrap();
    }
    let fifth = tokio::spawn({
        let run = run.clone();
        async move { run.input(4_i64).await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!fifth.is_finished());
    assert_eq!(run.state().await.unwrap().inputs_len(), 4);
    gate.open(1);
    fifth.await.unwrap().unwrap();
    gate.open(4);
    assert_eq!(run.wait().await.unwrap(), Status::Completed);
    assert_eq!(run.results::<i64>("inc").await.unwrap(), [1, 2, 3, 4, 5]);
}

/// The run is stopped while an input waits for room: it must not wait for a run that is gone.
#[tokio::test(start_paused = true)]
async fn an_input_that_waits_for_room_learns_that_the_run_was_stopped() {
    let gate = Gate::new();
    let runner = Runner::in_memory(RunnerOptions::new().max_open_work(1)).await.unwrap();
    let run = runner.start("first", &gated(&gate)).await.unwrap();
    for input in 0..2_i64 {
        run.input(input).await.unwrap();
    }
    let third = tokio::spawn({
        let run = run.clone();
        async move { run.input(2_i64).await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    run.stop().await.unwrap();
    let error = third.await.unwrap().unwrap_err();
    assert!(matches!(error, InputError::Over { status: Status::Stopped, .. }), "{error:?}");
}

/// Somebody who does not wait for a result any more must not keep others from the run.
#[tokio::test(start_paused = true)]
async fn whoever_gives_up_while_a_run_is_loaded_is_in_nobodys_way() {
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    for number in 0..20 {
        let run = runner.start(format!("run-{number}").as_str(), &numbers()).await.unwrap();
        run.stop().await.unwrap();
        let mut resume = Box::pin(run.resume());
        // One poll, and no more.
        let polled = std::future::poll_fn(|task| std::task::Poll::Ready(resume.as_mut().poll(task))).await;
        assert!(polled.is_pending());
        drop(resume);
        run.resume().await.unwrap();
        run.input(2_i64).await.unwrap();
        assert_eq!(run.result::<i64>("sum").await.unwrap(), 9);
        run.wait().await.unwrap();
    }
}

/// A run that rests and gets an input, again and again, is one run that rests.
#[tokio::test(start_paused = true)]
async fn a_run_with_one_input_after_the_other_stays_in_memory() {
    let store = Watched::new();
    let runner = store.runner(RunnerOptions::new().max_active_runs(2)).await;
    let run = runner.start("first", &numbers()).await.unwrap();
    for input in 0..100_i64 {
        run.input(input).await.unwrap();
        run.wait().await.unwrap();
    }
    let record = store.find(run.id()).await.unwrap().unwrap();
    assert_eq!(record.fence, 1, "it was never claimed again");
}

#[tokio::test(start_paused = true)]
async fn a_run_is_created_with_its_input_in_one_write() {
    let store = Watched::new();
    let runner = store.runner(RunnerOptions::new()).await;
    let workflow = Workflow::new("one").add(step("inc", |x: i64| x + 1)).build().unwrap();
    let run = runner.run("first", &workflow, 1_i64).await.unwrap();
    let first = &store.appends()[0];
    assert!(first.events.body().contains("input_accepted"));
    assert!(first.events.body().contains("runnable_dispatched"), "and with the dispatch of what it wakes");
    assert_eq!(run.result::<i64>("inc").await.unwrap(), 2);
    assert_eq!(store.appends().len(), 2);
}
