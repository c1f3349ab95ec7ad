//! What is asked of runs while they come and go: each was a way in which a run, an input or an answer got lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tidewheel_core::time::Span;
use tidewheel_core::workflow::{Workflow, accumulator, step};
use tidewheel_runner::{Executor, InputError, Runner, RunnerOptions};
use tidewheel_store::{Memory, RealClock, Status, Store};

fn store() -> Arc<dyn Store> {
    Arc::new(Memory::new(Arc::new(RealClock::new())))
}

async fn open(store: &Arc<dyn Store>, options: RunnerOptions) -> Runner {
    Runner::with_store(Arc::clone(store), options.shutdown_grace(Span::from_millis(0))).await.unwrap()
}

fn sum() -> Workflow {
    Workflow::new("sum").add(accumulator("sum", 0_i64, |sum: i64, x: i64| sum + x)).build().unwrap()
}

/// The first call never comes back; later ones do.
fn stuck_once() -> (Workflow, Arc<AtomicU32>) {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let stuck = move |x: i64| {
        let is_first = counted.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            if is_first {
                std::future::pending::<()>().await;
            }
            x
        }
    };
    (Workflow::new("stuck").add(step("stuck", stuck)).build().unwrap(), calls)
}

async fn until(what: impl Fn() -> bool) {
    while !what() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future).await.unwrap()
}

#[tokio::test]
async fn runs_that_were_attached_to_and_have_nothing_to_do_leave_room_for_others() {
    let store = store();
    let options = RunnerOptions::new().max_active_runs(4);
    let runner = open(&store, options.clone()).await;
    for number in 0..20 {
        let run = runner.run(format!("{number}").as_str(), &sum(), 1_i64).await.unwrap();
        assert_eq!(soon(run.result::<i64>("sum")).await.unwrap(), 1);
    }
    runner.shutdown().await;
    let runner = open(&store, options).await;
    for number in 0..20 {
        runner.start(format!("{number}").as_str(), &sum()).await.unwrap();
    }
    let run = runner.run("new", &sum(), 2_i64).await.unwrap();
    assert_eq!(soon(run.result::<i64>("sum")).await.unwrap(), 2);
    runner.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn inputs_from_elsewhere_count_once_each() {
    let store = store();
    let driver = open(&store, RunnerOptions::new()).await;
    let other = open(&store, RunnerOptions::new().only_own_runs()).await;
    // The run has work that keeps it where it is.
    let workflow = Workflow::new("both")
        .add(accumulator("sum", 0_i64, |sum: i64, x: i64| sum + x))
        .add(step("stuck", async |x: i64| {
            if x == 0 {
                std::future::pending::<()>().await;
            }
            x
        }))
        .build()
        .unwrap();
    other.register(&workflow).unwrap();
    let run = driver.run("a", &workflow, 0_i64).await.unwrap();
    let asker = other.get("a").await.unwrap();
    let asking = (1..=200_i64).map(|x| {
        let asker = asker.clone();
        tokio::spawn(async move { asker.input(x).await })
    });
    for asked in asking.collect::<Vec<_>>() {
        asked.await.unwrap().unwrap();
    }
    soon(async {
        while run.state().await.unwrap().inputs_len() < 201 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(run.state().await.unwrap().inputs_len(), 201);
    soon(async {
        while run.results::<i64>("sum").await.unwrap().last() != Some(&20_100) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    driver.shutdown().await;
    other.shutdown().await;
}

#[tokio::test]
async fn a_stopped_run_refuses_inputs_can_be_cancelled_and_nobody_waits_for_it_for_ever() {
    let store = store();
    let runner = open(&store, RunnerOptions::new()).await;
    let (workflow, calls) = stuck_once();
    let run = runner.run("a", &workflow, 1_i64).await.unwrap();
    until(|| calls.load(Ordering::SeqCst) == 1).await;
    run.stop().await.unwrap();
    let refused = run.input(2_i64).await;
    assert!(matches!(refused, Err(InputError::Over { status: Status::Stopped, .. })), "{refused:?}");
    assert_eq!(soon(run.wait()).await.unwrap(), Status::Stopped);
    soon(run.cancel()).await.unwrap();
    assert_eq!(soon(run.wait()).await.unwrap(), Status::Cancelled);
    assert_eq!(run.status().await.unwrap(), Status::Cancelled);
    runner.shutdown().await;
}

#[tokio::test]
async fn a_stopped_run_goes_on_when_it_is_resumed_at_once() {
    let runner = open(&store(), RunnerOptions::new()).await;
    let (workflow, calls) = stuck_once();
    let run = runner.run("a", &workflow, 1_i64).await.unwrap();
    until(|| calls.load(Ordering::SeqCst) == 1).await;
    let (stopped, resumed) = tokio::join!(run.stop(), run.resume());
    stopped.unwrap();
    resumed.unwrap();
    assert_eq!(soon(run.result::<i64>("stuck")).await.unwrap(), 1);
    runner.shutdown().await;
}

#[tokio::test]
async fn work_that_was_lost_in_a_paused_run_is_done_when_it_is_resumed() {
    let store = store();
    let (workflow, calls) = stuck_once();
    let runner = open(&store, RunnerOptions::new().lease(Span::from_millis(200))).await;
    let run = runner.run("a", &workflow, 1_i64).await.unwrap();
    until(|| calls.load(Ordering::SeqCst) == 1).await;
    run.pause().await.unwrap();
    // As if the process had ended.
    drop(runner);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let runner = open(&store, RunnerOptions::new()).await;
    runner.register(&workflow).unwrap();
    let run = runner.get("a").await.unwrap();
    // It is loaded as it is, to be asked something.
    run.pause().await.unwrap();
    run.resume().await.unwrap();
    assert_eq!(soon(run.result::<i64>("stuck")).await.unwrap(), 1);
    runner.shutdown().await;
}

#[tokio::test]
async fn a_run_that_was_lost_too_often_is_parked_and_can_be_resumed() {
    let store = store();
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let stuck = move |x: i64| {
        let calls = counted.fetch_add(1, Ordering::SeqCst) + 1;
        async move {
            if calls <= 3 {
                std::future::pending::<()>().await;
            }
            x
        }
    };
    let workflow = Workflow::new("stuck").add(step("stuck", stuck)).build().unwrap();
    for life in 1..=3 {
        let runner = open(&store, RunnerOptions::new().lease(Span::from_millis(100))).await;
        runner.register(&workflow).unwrap();
        if life == 1 {
            runner.run("a", &workflow, 1_i64).await.unwrap();
        }
        until(|| calls.load(Ordering::SeqCst) == life).await;
        // As if the process had ended.
        drop(runner);
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
    let runner = open(&store, RunnerOptions::new().lease(Span::from_millis(100))).await;
    runner.register(&workflow).unwrap();
    let run = runner.get("a").await.unwrap();
    assert_eq!(soon(run.wait()).await.unwrap(), Status::Parked);
    let told = run.result::<i64>("stuck").await.unwrap_err().to_string();
    assert!(told.contains("`stuck` was lost 3 times"), "{told}");
    assert_eq!(calls.load(Ordering::SeqCst), 3, "what is parked is not executed");
    run.resume().await.unwrap();
    assert_eq!(soon(run.result::<i64>("stuck")).await.unwrap(), 1);
    runner.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_stops_waiting_leaves_no_run_half_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let runner = Runner::open(&path).await.unwrap();
    for number in 0..50 {
        runner.start(format!("{number}").as_str(), &sum()).await.unwrap();
    }
    runner.shutdown().await;
    let runner = Runner::open_with(&path, RunnerOptions::new().only_own_runs()).await.unwrap();
    runner.register(&sum()).unwrap();
    for number in 0..50_u64 {
        let run = runner.get(format!("{number}").as_str()).await.unwrap();
        let patience = Duration::from_micros(number * 10);
        let _given_up = tokio::time::timeout(patience, run.input_keyed("one", 1_i64)).await;
        soon(run.input_keyed("one", 1_i64)).await.unwrap();
        assert_eq!(soon(run.result::<i64>("sum")).await.unwrap(), 1);
        assert_eq!(run.results::<i64>("sum").await.unwrap().last(), Some(&1));
    }
    runner.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn inputs_find_runs_that_are_just_given_back() {
    let store = store();
    // Idle runs are given back every few milliseconds, and there is room for few.
    let options =
        || RunnerOptions::new().executor(Executor::Inline).max_active_runs(3).lease(Span::from_millis(60));
    let runner = open(&store, options()).await;
    let mut tasks = Vec::new();
    for number in 0..10 {
        let runner = runner.clone();
        tasks.push(tokio::spawn(async move {
            let run = runner.start(format!("{number}").as_str(), &sum()).await.unwrap();
            for x in 1..=60_i64 {
                run.input(x).await.unwrap();
                if x % 3 == 0 {
                    tokio::time::sleep(Duration::from_millis(u64::try_from(x % 25).unwrap())).await;
                }
            }
            assert_eq!(soon(run.wait()).await.unwrap(), Status::Completed);
            assert_eq!(run.results::<i64>("sum").await.unwrap().last(), Some(&1_830));
        }));
    }
    for task in tasks {
        soon(task).await.unwrap();
    }
    runner.shutdown().await;
}
