//! A store that cannot be used for a while, and one write that is to blame.

use std::sync::Arc;
use std::time::Duration;

use tidewheel_core::time::Span;
use tidewheel_core::workflow::{Workflow, step};
use tidewheel_runner::{InputError, Runner, RunnerOptions, StartError};
use tidewheel_store::sqlite::Options;
use tidewheel_store::{Memory, RealClock, Sqlite, Status, Store, Unavailable};
use tidewheel_testkit::{Call, FaultyStore, Outage, When};

fn inc() -> Workflow {
    Workflow::new("inc").add(step("inc", |x: i64| x + 1)).build().unwrap()
}

fn faulty() -> Arc<FaultyStore> {
    Arc::new(FaultyStore::new(Arc::new(Memory::new(Arc::new(RealClock::new())))))
}

async fn runner_on(store: &Arc<FaultyStore>) -> Runner {
    let store: Arc<dyn Store> = Arc::clone(store) as Arc<dyn Store>;
    Runner::with_store(store, RunnerOptions::new()).await.unwrap()
}

#[tokio::test]
async fn while_the_disk_is_full_inputs_wait_or_are_refused_and_then_all_goes_on() {
    let store = faulty();
    let runner = runner_on(&store).await;
    let run = runner.start("a", &inc()).await.unwrap();
    run.input_keyed("first", 1_i64).await.unwrap();
    assert_eq!(run.wait().await.unwrap(), Status::Completed);
    store.fail_all(Some(Outage { why: Unavailable::Full, when: When::Before }));
    let waiting = tokio::spawn({
        let run = run.clone();
        async move { run.input_keyed("second", 2_i64).await }
    });
    while runner.trouble().is_none() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(runner.trouble().unwrap().contains("the disk is full"), "{:?}", runner.trouble());
    let refused = run.input_keyed("third", 3_i64).await;
    assert!(matches!(refused, Err(InputError::Unavailable { .. })), "{refused:?}");
    assert!(!waiting.is_finished(), "what was taken is not acknowledged");
    store.fail_all(None);
    waiting.await.unwrap().unwrap();
    assert_eq!(run.result::<i64>("inc").await.unwrap(), 3);
    assert_eq!(runner.trouble(), None);
    assert_eq!(run.results::<i64>("inc").await.unwrap(), [2, 3]);
    runner.shutdown().await;
}

#[tokio::test]
async fn a_new_run_whose_answer_got_lost_is_no_other_run() {
    let store = faulty();
    let runner = runner_on(&store).await;
    store.fail_nth(Call::Append, 1, Outage { why: Unavailable::Io, when: When::After });
    let run = runner.start_new("a", &inc()).await.unwrap();
    let second = runner.start_new("a", &inc()).await;
    assert!(matches!(second, Err(StartError::Exists { .. })), "{second:?}");
    run.input(1_i64).await.unwrap();
    assert_eq!(run.result::<i64>("inc").await.unwrap(), 2);
    runner.shutdown().await;
}

#[tokio::test]
async fn whoever_starts_a_run_that_is_just_being_created_waits_until_it_is_stored() {
    let store = faulty();
    let runner = runner_on(&store).await;
    store.fail_all(Some(Outage { why: Unavailable::Full, when: When::Before }));
    let starts: Vec<_> = (0..3)
        .map(|_| {
            let runner = runner.clone();
            tokio::spawn(async move { runner.start("a", &inc()).await.map(drop) })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(starts.iter().all(|start| !start.is_finished()), "nobody is told that it is there");
    store.fail_all(None);
    for start in starts {
        start.await.unwrap().unwrap();
    }
    runner.shutdown().await;
}

#[tokio::test]
async fn a_shutdown_does_not_wait_for_ever_for_a_store_that_fails() {
    let store = faulty();
    let options = RunnerOptions::new().shutdown_grace(Span::from_millis(50));
    let runner = Runner::with_store(Arc::clone(&store) as Arc<dyn Store>, options).await.unwrap();
    runner.run("a", &inc(), 1_i64).await.unwrap().wait().await.unwrap();
    store.fail_all(Some(Outage { why: Unavailable::Io, when: When::Before }));
    tokio::time::timeout(Duration::from_secs(20), runner.shutdown()).await.unwrap();
}

#[tokio::test]
async fn a_write_that_is_refused_harms_no_other_run() {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open_with(
        folder.path().join("runs.db"),
        Arc::new(RealClock::new()),
        &Options::new().bytes_at_most(50_000),
    )
    .unwrap();
    let runner = Runner::with_store(Arc::new(store), RunnerOptions::new()).await.unwrap();
    let long = Workflow::new("long")
        .add(step("repeat", |times: i64| "long ".repeat(usize::try_from(times).unwrap())))
        .build()
        .unwrap();
    let bad = runner.run("bad", &long, 100_000_i64).await.unwrap();
    let mut good = Vec::new();
    for number in 0..50_i64 {
        good.push(runner.run(format!("good-{number}").as_str(), &long, number).await.unwrap());
    }
    for (number, run) in good.iter().enumerate() {
        assert_eq!(run.result::<String>("repeat").await.unwrap(), "long ".repeat(number));
    }
    assert_eq!(bad.wait().await.unwrap(), Status::Parked);
    let told = bad.result::<String>("repeat").await.unwrap_err().to_string();
    assert!(told.contains("`bad` is parked: the store failed"), "{told}");
    assert_eq!(runner.trouble(), None);
    good[0].input(2_i64).await.unwrap();
    assert_eq!(good[0].result::<String>("repeat").await.unwrap(), "long long ");
    runner.shutdown().await;
}
