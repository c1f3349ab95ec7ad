//! Work that fails and waits until a person says how it goes on.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidewheel_core::policy::{self, Failure, OnFailure, Policy};
use tidewheel_core::workflow::{Workflow, step};
use tidewheel_runner::{CommandError, ResultError, RunnerOptions};
use tidewheel_store::{Filter, Status, Store};

use crate::world::{Calls, Disk, count, crash, governed, in_memory, log, soon, start, until};

fn pausing(calls: &Calls, times: u32) -> Workflow {
    let after = step("after", |x: i64| x + 1).after("s");
    let rule = Policy::new().max_retries(1).on_failure(OnFailure::Pause);
    governed("pausing", [calls.failing("s", times), after], [(policy::name("s"), rule)])
}

#[tokio::test(start_paused = true)]
async fn the_run_is_paused_with_its_reason_and_nothing_else_begins() {
    let (calls, others, runner) = (Calls::default(), Arc::new(Mutex::new(Vec::new())), in_memory().await);
    let seen = Arc::clone(&others);
    // It begins when the other one has failed, unless the run is paused.
    let slow = step("slow", async |x: i64| {
        tokio::time::sleep(Duration::from_secs(5)).await;
        x
    });
    let later = step("later", move |x: i64| seen.lock().unwrap().push(x)).after("slow");
    let rule = Policy::new().max_retries(1).on_failure(OnFailure::Pause);
    let workflow = governed("w", [calls.failing("s", 2), slow, later], [(policy::name("s"), rule)]);
    let run = start(&runner, "r", &workflow, 42).await;
    assert_eq!(soon(run.wait()).await.unwrap(), Status::Paused);
    let told = soon(run.result::<i64>("s")).await.unwrap_err();
    assert!(matches!(&told, ResultError::Over { status: Status::Paused, .. }), "{told:?}");
    assert_eq!(told.to_string(), "run `r` is paused: `s` failed: down 1");
    let record = &runner.list(Filter::default()).await.unwrap().rows[0];
    assert_eq!((record.status, record.reason.as_deref()), (Status::Paused, Some("`s` failed: down 1")));
    tokio::time::sleep(Duration::from_secs(60)).await;
    // What was under way came to its end, and nothing began.
    assert_eq!(run.results::<i64>("slow").await.unwrap(), [42]);
    assert_eq!((calls.count(), others.lock().unwrap().len()), (2, 0));
    let record = &runner.list(Filter::default()).await.unwrap().rows[0];
    assert_eq!(record.reason.as_deref(), Some("`s` failed: down 1"), "later writes keep it");

    run.resume().await.unwrap();
    assert_eq!(soon(run.result::<i64>("s")).await.unwrap(), 42);
    assert_eq!(soon(run.wait()).await.unwrap(), Status::Completed);
    assert_eq!((calls.count(), others.lock().unwrap().len()), (3, 1));
    assert_eq!(runner.list(Filter::default()).await.unwrap().rows[0].reason, None);
}

#[tokio::test(start_paused = true)]
async fn resume_gives_all_attempts_again_and_it_may_pause_again() {
    let (calls, runner) = (Calls::default(), in_memory().await);
    let run = start(&runner, "r", &pausing(&calls, 3), 42).await;
    assert_eq!(soon(run.wait()).await.unwrap(), Status::Paused);
    assert_eq!(calls.count(), 2);
    run.resume().await.unwrap();
    assert_eq!(soon(run.result::<i64>("after")).await.unwrap(), 43, "the second of the new attempts");
    assert_eq!(calls.count(), 4);

    let calls = Calls::default();
    let runner = in_memory().await;
    let run = start(&runner, "r", &pausing(&calls, 4), 42).await;
    for attempts in [2, 4] {
        assert_eq!(soon(run.wait()).await.unwrap(), Status::Paused);
        assert_eq!(calls.count(), attempts);
        run.resume().await.unwrap();
    }
    assert_eq!(soon(run.result::<i64>("after")).await.unwrap(), 43);
}

#[tokio::test(start_paused = true)]
async fn retry_is_a_word_of_a_person_too() {
    for is_one in [true, false] {
        let (calls, runner) = (Calls::default(), in_memory().await);
        let run = start(&runner, "r", &pausing(&calls, 2), 42).await;
        assert_eq!(soon(run.wait()).await.unwrap(), Status::Paused);
        if is_one {
            let work = run.state().await.unwrap().waits()[0].ticket.clone();
            let work = run.state().await.unwrap().waiting_runnable(&work).unwrap().id();
            run.retry_work(work).await.unwrap();
        } else {
            assert_eq!(run.retry().await.unwrap(), Some(1));
        }
        assert_eq!(soon(run.result::<i64>("after")).await.unwrap(), 43);
    }
}

#[tokio::test(start_paused = true)]
async fn retry_does_not_end_a_pause_that_a_person_made() {
    let (calls, runner) = (Calls::default(), in_memory().await);
    let stuck = step("stuck", async |_: i64| std::future::pending::<i64>().await);
    let workflow = governed("w", [calls.failing("s", 1), stuck], []);
    let run = start(&runner, "r", &workflow, 42).await;
    soon(async {
        while run.state().await.unwrap().failures().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    run.pause().await.unwrap();
    assert_eq!(run.retry().await.unwrap(), Some(1));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!((run.status().await.unwrap(), calls.count()), (Status::Paused, 1));
    run.resume().await.unwrap();
    assert_eq!(soon(run.result::<i64>("s")).await.unwrap(), 42);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_survives_the_end_of_the_process_with_its_reason() {
    let (disk, calls) = (Disk::new(), Calls::default());
    let workflow = pausing(&calls, 2);
    let (runner, store) = disk.open().await;
    let run = start(&runner, "r", &workflow, 42).await;
    assert_eq!(soon(run.wait()).await.unwrap(), Status::Paused);
    crash(runner, &store).await;

    // A program that is started again does not end the pause.
    let (runner, store) = disk.open().await;
    let run = runner.start("r", &workflow).await.unwrap();
    run.input(1_i64).await.unwrap();
    let record = store.find(run.id()).await.unwrap().unwrap();
    assert_eq!((record.status, record.reason.as_deref()), (Status::Paused, Some("`s` failed: down 1")));
    assert_eq!(calls.count(), 2);
    crash(runner, &store).await;

    let (runner, store) = disk.open().await;
    runner.register(&workflow).unwrap();
    let run = runner.resume("r").await.unwrap();
    assert_eq!(soon(run.wait()).await.unwrap(), Status::Completed);
    assert_eq!(run.results::<i64>("after").await.unwrap(), [43, 2]);
    assert_eq!(count(&log(&*store, "r").await, "runnable_reopened"), 1);
    runner.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_and_resume_reach_a_paused_run_that_another_runner_has_or_nobody() {
    for is_dropped in [true, false] {
        for is_retry in [true, false] {
            let (disk, calls) = (Disk::new(), Calls::default());
            let workflow = pausing(&calls, 2);
            let (driver, store) = disk.open().await;
            let run = start(&driver, "r", &workflow, 42).await;
            assert_eq!(soon(run.wait()).await.unwrap(), Status::Paused);
            let mut driver = Some(driver);
            if is_dropped {
                crash(driver.take().unwrap(), &store).await;
            }
            let (other, _) = disk.open_with(RunnerOptions::new().only_own_runs()).await;
            other.register(&workflow).unwrap();
            let there = other.get("r").await.unwrap();
            if is_retry {
                there.retry().await.unwrap();
            } else {
                there.resume().await.unwrap();
            }
            until(&there, Status::Completed).await;
            assert_eq!(there.results::<i64>("after").await.unwrap(), [43], "{is_dropped} {is_retry}");
            other.shutdown().await;
            drop(driver);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waits_for_a_person_can_be_stopped_and_resumed_or_cancelled() {
    let (calls, runner) = (Calls::default(), in_memory().await);
    let workflow = pausing(&calls, 2);
    let run = start(&runner, "stopped", &workflow, 42).await;
    assert_eq!(soon(run.wait()).await.unwrap(), Status::Paused);
    run.stop().await.unwrap();
    assert_eq!(run.status().await.unwrap(), Status::Stopped);
    // To start the program again is no word about what failed.
    let run = runner.start("stopped", &workflow).await.unwrap();
    assert_eq!(soon(run.wait()).await.unwrap(), Status::Paused);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(calls.count(), 2);
    run.stop().await.unwrap();
    run.resume().await.unwrap();
    assert_eq!(soon(run.result::<i64>("after")).await.unwrap(), 43);

    let calls = Calls::default();
    let runner = in_memory().await;
    let run = start(&runner, "cancelled", &pausing(&calls, 2), 42).await;
    assert_eq!(soon(run.wait()).await.unwrap(), Status::Paused);
    run.cancel().await.unwrap();
    assert_eq!(soon(run.wait()).await.unwrap(), Status::Cancelled);
    let refused = run.retry().await;
    assert!(matches!(refused, Err(CommandError::NoEffect { status: Status::Cancelled, .. })), "{refused:?}");
    assert_eq!(calls.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_fails_while_the_runner_shuts_down_waits_for_a_person_in_the_next_one() {
    let store: std::sync::Arc<dyn Store> =
        Arc::new(tidewheel_store::Memory::new(Arc::new(tidewheel_store::RealClock::new())));
    let calls = Calls::default();
    let counted = calls.clone();
    let slow = step("s", move |x: i64| {
        let call = counted.next();
        async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if call == 0 { Err(Failure::new("down")) } else { Ok(x) }
        }
    });
    let rule = Policy::new().on_failure(OnFailure::Pause);
    let workflow = governed("w", [slow], [(policy::name("s"), rule)]);
    let open = || tidewheel_runner::Runner::with_store(Arc::clone(&store), RunnerOptions::new());
    let runner = open().await.unwrap();
    start(&runner, "r", &workflow, 42).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    runner.shutdown().await;
    let runner = open().await.unwrap();
    runner.register(&workflow).unwrap();
    let run = runner.get("r").await.unwrap();
    assert_eq!(soon(run.wait()).await.unwrap(), Status::Paused);
    run.resume().await.unwrap();
    assert_eq!(soon(run.result::<i64>("s")).await.unwrap(), 42);
}
