//! Many runs over few places, and nobody waits for somebody who has much to do.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidewheel_core::workflow::{Workflow, map, step};
use tidewheel_runner::{Runner, RunnerOptions};
use tidewheel_store::{Filter, Status};

use crate::world::{Gate, gated, numbers};

#[tokio::test]
async fn many_runs_over_few_places_all_finish() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let work = {
        let (now, most) = (Arc::clone(&now), Arc::clone(&most));
        move |x: i64| {
            let (now, most) = (Arc::clone(&now), Arc::clone(&most));
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::task::yield_now().await;
                now.fetch_sub(1, Ordering::SeqCst);
                x + 1
            }
        }
    };
    let workflow = Workflow::new("small")
        .add(step("inc", work))
        .add(step("double", |x: i64| x * 2).after("inc"))
        .build()
        .unwrap();
    let runner = Runner::in_memory(RunnerOptions::new().max_active_runs(50)).await.unwrap();
    let mut runs = Vec::new();
    for number in 0..5_000_i64 {
        runs.push(runner.run(format!("run-{number}").as_str(), &workflow, number).await.unwrap());
    }
    for (number, run) in (0..).zip(&runs) {
        assert_eq!(run.result::<i64>("double").await.unwrap(), (number + 1) * 2);
    }
    for run in &runs {
        assert_eq!(run.wait().await.unwrap(), Status::Completed);
    }
    let left = Filter { statuses: vec![Status::Running, Status::Waiting], ..Filter::default() };
    assert_eq!(runner.list(left).await.unwrap().rows.len(), 0);
    assert!(most.load(Ordering::SeqCst) <= 60, "{most:?}");
}

/// Nobody waits for a result: whoever rests has to make room for those who wait in the store.
#[tokio::test(start_paused = true)]
async fn runs_that_wait_for_room_begin_when_others_rest() {
    let runner = Runner::in_memory(RunnerOptions::new().max_active_runs(3)).await.unwrap();
    for number in 0..50 {
        runner.run(format!("run-{number}").as_str(), &numbers(), 1_i64).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let done = Filter { statuses: vec![Status::Completed], ..Filter::default() };
    assert_eq!(runner.list(done).await.unwrap().rows.len(), 50);
}

#[tokio::test(start_paused = true)]
async fn a_run_with_much_to_do_does_not_keep_another_one_waiting() {
    let order = Arc::new(Mutex::new(Vec::new()));
    let (many, few) = (Arc::clone(&order), Arc::clone(&order));
    let wide = Workflow::new("wide")
        .add(step("list", |x: u32| (0..x).collect::<Vec<u32>>()))
        .add(
            map("item", move |x: u32| {
                many.lock().expect("no panic").push("wide");
                x
            })
            .after("list"),
        )
        .build()
        .unwrap();
    let narrow = Workflow::new("narrow")
        .add(step("one", move |x: u32| {
            few.lock().expect("no panic").push("narrow");
            x
        }))
        .build()
        .unwrap();
    let options = RunnerOptions::new().max_concurrency(1).max_open_work(100_000);
    let runner = Runner::in_memory(options).await.unwrap();
    let wide = runner.run("wide", &wide, 10_000_u32).await.unwrap();
    while order.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    let before = order.lock().unwrap().len();
    let narrow = runner.run("narrow", &narrow, 1_u32).await.unwrap();
    narrow.result::<u32>("one").await.unwrap();
    let place = order.lock().unwrap().iter().position(|run| *run == "narrow").unwrap();
    // As many as end while the run is created; the rest comes after.
    assert!(place < 9_000, "{place} of 10000, {before} before it was started");
    assert_eq!(wide.wait().await.unwrap(), Status::Completed);
    assert_eq!(order.lock().unwrap().len(), 10_001);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_has_its_place_goes_on_while_others_wait_for_one() {
    let gate = Gate::new();
    let runner = Runner::in_memory(RunnerOptions::new().max_active_runs(1)).await.unwrap();
    let first = runner.run("first", &gated(&gate), 1_i64).await.unwrap();
    gate.began().await;
    let second = runner.run("second", &gated(&gate), 2_i64).await.unwrap();
    assert_eq!(second.status().await.unwrap(), Status::Running);
    first.input(3_i64).await.unwrap();
    gate.open(2);
    assert_eq!(first.result::<i64>("inc").await.unwrap(), 4);
    gate.open(1);
    assert_eq!(second.result::<i64>("inc").await.unwrap(), 3);
}
