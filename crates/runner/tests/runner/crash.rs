//! The process ends in the middle: input and dispatch were stored before the work began, and the work runs again.

use std::sync::{Arc, Mutex};

use tidewheel_core::fact::{RunId, RunnableId};
use tidewheel_core::policy::{self, Backoff, ExecutionMode, Failure, Policy};
use tidewheel_core::time::Span;
use tidewheel_core::work::Context;
use tidewheel_core::workflow::{Workflow, step};
use tidewheel_runner::{Runner, RunnerOptions};
use tidewheel_store::{Clock as _, Memory, RealClock, Sqlite, Status, Store};
use tidewheel_testkit::VirtualClock;

use crate::world::{Disk, Gate, count, crash, gated, log};

type Calls = Arc<Mutex<Vec<(RunnableId, u32)>>>;

/// A step that waits for a word, and says which work it is.
fn watched(gate: &Gate, calls: &Calls) -> Workflow {
    watched_under(gate, calls, Policy::new())
}

fn watched_under(gate: &Gate, calls: &Calls, policy: Policy) -> Workflow {
    let (gate, calls) = (gate.clone(), Arc::clone(calls));
    let work = move |context: Context, x: i64| {
        let gate = gate.clone();
        calls.lock().expect("no panic").push((context.runnable_id(), context.attempt()));
        async move {
            gate.pass().await;
            x + 1
        }
    };
    Workflow::new("watched")
        .add(step("before", |x: i64| x * 10))
        .add(step("inc", work).after("before"))
        .policy(policy::default(), policy)
        .build()
        .expect("a sound workflow")
}

#[tokio::test]
async fn i17_work_that_was_under_way_runs_again_as_the_same_work_and_nothing_is_lost() {
    let (disk, gate, calls) = (Disk::new(), Gate::new(), Calls::default());
    let workflow = watched(&gate, &calls);
    let (runner, store) = disk.open().await;
    let run = runner.start("first", &workflow).await.unwrap();
    run.input_keyed("one", 1_i64).await.unwrap();
    gate.began().await;
    let events = log(&*store, "first").await;
    assert_eq!((count(&events, "input_accepted"), count(&events, "runnable_dispatched")), (1, 2));
    assert_eq!(count(&events, "runnable_completed"), 1);
    crash(runner, &store).await;

    let (runner, store) = disk.open().await;
    // Nobody has to start it: the runner takes up what is due.
    runner.register(&workflow).unwrap();
    gate.began().await;
    gate.open(1);
    let run = runner.get("first").await.unwrap();
    assert_eq!(run.result::<i64>("inc").await.unwrap(), 11);
    assert_eq!(run.results::<i64>("before").await.unwrap(), [10], "what was stored is not done again");
    let calls = calls.lock().unwrap().clone();
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[0], calls[1], "the same piece of work, the same attempt");
    assert_eq!(count(&log(&*store, "first").await, "runnable_dispatched"), 3);
    runner.shutdown().await;
}

#[tokio::test]
async fn i16_a_runner_that_begins_again_has_what_the_last_one_had() {
    let disk = Disk::new();
    let gate = Gate::new();
    let (runner, store) = disk.open().await;
    let run = runner.start("first", &gated(&gate)).await.unwrap();
    run.input(1_i64).await.unwrap();
    gate.open(1);
    assert_eq!(run.result::<i64>("inc").await.unwrap(), 2);
    crash(runner, &store).await;
    let (runner, store) = disk.open().await;
    let run = runner.start("first", &gated(&gate)).await.unwrap();
    assert_eq!(run.results::<i64>("inc").await.unwrap(), [2]);
    assert_eq!(run.wait().await.unwrap(), Status::Completed);
    run.input(2_i64).await.unwrap();
    gate.open(1);
    assert_eq!(run.result::<i64>("inc").await.unwrap(), 3);
    assert_eq!(gate.count(), 2, "nothing ran twice");
    assert_eq!(count(&log(&*store, "first").await, "input_accepted"), 2);
    runner.shutdown().await;
}

#[tokio::test]
async fn i16_a_retry_that_waits_keeps_its_due_time() {
    let clock = VirtualClock::default();
    let disk = Disk::with_clock(Arc::new(clock.clone()));
    let calls = Arc::new(Mutex::new(Vec::new()));
    let workflow = {
        let (calls, clock) = (Arc::clone(&calls), clock.clone());
        let flaky = move |x: i64| {
            let mut calls = calls.lock().unwrap();
            calls.push(clock.now().as_nanos() / 1_000_000);
            if calls.len() == 1 { Err(Failure::new("busy")) } else { Ok(x + 1) }
        };
        let slowly = Policy::new().max_retries(3).backoff(Backoff::Fixed).base_delay("1h").max_delay("1h");
        Workflow::new("flaky").add(step("inc", flaky)).policy(policy::default(), slowly).build().unwrap()
    };
    let lease = RunnerOptions::new().lease(Span::from_secs(1_000_000));
    let (runner, store) = disk.open_with(lease.clone()).await;
    let run = runner.run("first", &workflow, 1_i64).await.unwrap();
    let due = wake_at(&store).await;
    assert_eq!(due, 1_000 + 3_600_000);
    assert_eq!(run.status().await.unwrap(), Status::Waiting);
    drop(run);
    crash(runner, &store).await;

    clock.advance(Span::from_secs(1_000));
    let (runner, store) = disk.open_with(lease).await;
    let run = runner.start("first", &workflow).await.unwrap();
    assert_eq!(wake_at(&store).await, due);
    clock.advance(Span::from_secs(2_599));
    tokio::task::yield_now().await;
    assert_eq!(calls.lock().unwrap().len(), 1, "not yet due");
    clock.advance(Span::from_secs(1));
    assert_eq!(run.result::<i64>("inc").await.unwrap(), 2);
    assert_eq!(*calls.lock().unwrap(), [1_000, due]);
}

/// Waits until the run waits for its next attempt, and returns when that is due.
async fn wake_at(store: &Sqlite) -> u64 {
    loop {
        let record = store.find(&RunId::new("first")).await.expect("a store").expect("a run");
        if let (Status::Waiting, Some(at)) = (record.status, record.wake_at) {
            return at.as_nanos() / 1_000_000;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn work_that_is_lost_three_times_parks_its_run_which_can_be_resumed() {
    // One clock for all: time is held, so that clocks made later would lag behind.
    let clock = Arc::new(RealClock::new());
    let store = Arc::new(Memory::new(clock.clone()));
    let gate = Gate::new();
    for lost in 0..3 {
        let options = RunnerOptions::new().clock(clock.clone()).lease(Span::from_secs(1));
        let runner = Runner::with_store(Arc::clone(&store) as Arc<dyn Store>, options).await.unwrap();
        let run = runner.start("first", &gated(&gate)).await.unwrap();
        // One piece of work: only what was being executed when its process ended counts as lost again.
        run.input_keyed("one", 1_i64).await.unwrap();
        gate.began().await;
        assert_eq!(gate.count(), lost + 1);
        drop(run);
        drop(runner);
        // The lease of the one that is gone ends.
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    }
    let options = RunnerOptions::new().clock(clock.clone()).lease(Span::from_secs(1));
    let runner = Runner::with_store(Arc::clone(&store) as Arc<dyn Store>, options).await.unwrap();
    let run = runner.start("first", &gated(&gate)).await.unwrap();
    assert_eq!(run.wait().await.unwrap(), Status::Parked);
    let record = store.find(run.id()).await.unwrap().unwrap();
    assert_eq!(record.reason.as_deref(), Some("`inc` was lost 3 times with its process"));
    let error = run.result::<i64>("inc").await.unwrap_err();
    assert_eq!(error.to_string(), "run `first` is parked: `inc` was lost 3 times with its process");
    // A program that is started again and again does not bring it back; somebody who looked does.
    let run = runner.start("first", &gated(&gate)).await.unwrap();
    assert_eq!(run.wait().await.unwrap(), Status::Parked);
    assert_eq!(gate.count(), 3);
    run.resume().await.unwrap();
    gate.began().await;
    gate.open(1);
    assert_eq!(run.result::<i64>("inc").await.unwrap(), 2);
}

#[tokio::test]
async fn work_in_sync_mode_runs_again_after_a_crash_without_a_dispatch() {
    let (disk, gate, calls) = (Disk::new(), Gate::new(), Calls::default());
    let sync = Policy::new().execution_mode(ExecutionMode::Sync);
    let workflow = watched_under(&gate, &calls, sync);
    let (runner, store) = disk.open().await;
    runner.run("first", &workflow, 1_i64).await.unwrap();
    gate.began().await;
    crash(runner, &store).await;
    let (runner, store) = disk.open().await;
    let run = runner.start("first", &workflow).await.unwrap();
    gate.began().await;
    gate.open(1);
    assert_eq!(run.result::<i64>("inc").await.unwrap(), 11);
    let events = log(&*store, "first").await;
    assert_eq!(count(&events, "runnable_dispatched"), 0);
    assert_eq!(count(&events, "fact_produced"), 3);
    let calls = calls.lock().unwrap().clone();
    assert_eq!(calls[0], calls[1]);
    runner.shutdown().await;
}

/// Work under way holds on to the run, and the run to the store: the end of the runner must end all of it.
#[tokio::test(start_paused = true)]
async fn a_runner_that_is_dropped_in_the_middle_lets_go_of_its_work_and_of_its_store() {
    struct Dropped(Arc<tokio::sync::Notify>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }
    let (gate, dropped) = (Gate::new(), Arc::new(tokio::sync::Notify::new()));
    let workflow = {
        let (gate, dropped) = (gate.clone(), Arc::clone(&dropped));
        let work = move |x: i64| {
            let (gate, guard) = (gate.clone(), Dropped(Arc::clone(&dropped)));
            async move {
                gate.pass().await;
                drop(guard);
                x
            }
        };
        Workflow::new("held").add(step("hold", work)).build().unwrap()
    };
    let store = Arc::new(Memory::new(Arc::new(RealClock::new())));
    let options = RunnerOptions::new().clock(Arc::new(RealClock::new()));
    let runner = Runner::with_store(Arc::clone(&store) as Arc<dyn Store>, options).await.unwrap();
    runner.run("first", &workflow, 1_i64).await.unwrap();
    gate.began().await;
    drop(runner);
    dropped.notified().await;
    while Arc::strong_count(&store) > 1 {
        tokio::task::yield_now().await;
    }
}
