//! One look at each field that people or others outside steer.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidewheel_core::policy::{self, ExecutionMode, Failure, OnFailure, Policy};
use tidewheel_core::work::{Context, Token};
use tidewheel_core::workflow::{compensation, step};
use tidewheel_runner::{Runner, RunnerOptions};
use tidewheel_store::Status;

use crate::world::{governed, start, timed};

#[tokio::test(start_paused = true)]
async fn somebody_outside_ends_it() {
    let tokens = Arc::new(Mutex::new(Vec::<Token>::new()));
    let seen = Arc::clone(&tokens);
    let work = move |ctx: Context, x: i64| {
        seen.lock().unwrap().push(ctx.token());
        async move { x }
    };
    let workflow = governed(
        [step("s", work), step("after", |x: i64| x + 1).after("s")],
        vec![(policy::name("s"), Policy::new().execution_mode(ExecutionMode::External))],
    );
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let run = start(&runner, "r", &workflow, 1_i64).await;
    while tokens.lock().unwrap().is_empty() || run.status().await.unwrap() != Status::Waiting {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let token = tokens.lock().unwrap()[0].clone();
    runner.complete(&token, 41_i64).await.unwrap();
    assert_eq!(timed(run.result::<i64>("after")).await.unwrap(), 42);
    assert!(runner.complete(&token, 41_i64).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn dead_letters_are_tried_again() {
    let calls = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&calls);
    let work = move |x: i64| {
        let call = seen.fetch_add(1, Ordering::SeqCst);
        async move { if call < 2 { Err(Failure::new("down")) } else { Ok(x) } }
    };
    let workflow = governed(
        [step("s", work), step("after", |x: i64| x + 1).after("s")],
        vec![(policy::name("s"), Policy::new().max_retries(1).on_failure(OnFailure::DeadLetter))],
    );
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let run = start(&runner, "r", &workflow, 41_i64).await;
    assert_eq!(timed(run.wait()).await.unwrap(), Status::Failed);
    let letters = runner.dead_letters(None, None).await.unwrap().rows;
    assert_eq!(letters.len(), 1, "{letters:?}");
    assert_eq!(run.retry().await.unwrap(), Some(1));
    assert_eq!(timed(run.result::<i64>("after")).await.unwrap(), 42);
    assert_eq!(runner.dead_letters(None, None).await.unwrap().rows.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_person_lets_it_go_on() {
    let calls = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&calls);
    let work = move |x: i64| {
        let call = seen.fetch_add(1, Ordering::SeqCst);
        async move { if call < 2 { Err(Failure::new("down")) } else { Ok(x) } }
    };
    let workflow = governed(
        [step("s", work)],
        vec![(policy::name("s"), Policy::new().max_retries(1).on_failure(OnFailure::Pause))],
    );
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let run = start(&runner, "r", &workflow, 42_i64).await;
    assert_eq!(timed(run.wait()).await.unwrap(), Status::Paused);
    run.resume().await.unwrap();
    assert_eq!(timed(run.result::<i64>("s")).await.unwrap(), 42);
}

#[tokio::test(start_paused = true)]
async fn what_was_done_is_undone_in_reverse() {
    let undone = Arc::new(Mutex::new(Vec::new()));
    let (one, two) = (Arc::clone(&undone), Arc::clone(&undone));
    let workflow = governed(
        [
            step("book", |x: i64| x + 1),
            step("charge", |ctx: Context, x: i64| {
                ctx.register_compensation("refund", x * 100);
                x + 1
            })
            .after("book"),
            step("ship", |_: i64| Err::<i64, _>(Failure::new("no"))).after("charge"),
            compensation("unbook", move |x: i64| one.lock().unwrap().push(("unbook", x))),
            compensation("refund", move |x: i64| two.lock().unwrap().push(("refund", x))),
        ],
        vec![
            (policy::name("book"), Policy::new().compensation_node("unbook")),
            (policy::name("ship"), Policy::new().on_failure(OnFailure::Compensate)),
        ],
    );
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let run = start(&runner, "r", &workflow, 1_i64).await;
    assert_eq!(timed(run.wait()).await.unwrap(), Status::Failed);
    assert_eq!(*undone.lock().unwrap(), [("refund", 200), ("unbook", 2)]);
}

#[tokio::test(start_paused = true)]
async fn the_same_work_is_done_once() {
    let calls = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&calls);
    let work = move |x: i64| {
        seen.fetch_add(1, Ordering::SeqCst);
        async move {
            tokio::time::sleep(Duration::from_millis(100)).await;
            x
        }
    };
    let policy = Policy::new().idempotency_key(|_, _| "same".to_owned());
    let workflow = governed([step("s", work)], vec![(policy::default(), policy)]);
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let one = start(&runner, "one", &workflow, 1_i64).await;
    let two = start(&runner, "two", &workflow, 2_i64).await;
    let (one, two) =
        (timed(one.result::<i64>("s")).await.unwrap(), timed(two.result::<i64>("s")).await.unwrap());
    assert_eq!(one, two);
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}
