//! Who gets a slot first, and who does not wait for one any longer.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidewheel_core::policy::{self, Policy, Priority};
use tidewheel_core::workflow::{Component, Workflow, step};
use tidewheel_runner::{Options, Runner, RunnerOptions};

use crate::world::{Calls, governed, react};

/// Steps that note the order in which they began, the least urgent written first.
fn ordered(is_async: bool) -> (Workflow, Arc<Mutex<Vec<&'static str>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noting = |name: &'static str| -> Component {
        let seen = Arc::clone(&seen);
        let note = move |x: i64| {
            seen.lock().unwrap().push(name);
            x
        };
        if is_async { step(name, move |x: i64| std::future::ready(note(x))) } else { step(name, note) }
    };
    let workflow = Workflow::new("w")
        .add(noting("low"))
        .add(noting("normal"))
        .add(noting("high"))
        .policy(policy::name("low"), Policy::new().priority(Priority::Low))
        .policy(policy::name("high"), Policy::new().priority(Priority::High))
        .build()
        .unwrap();
    (workflow, seen)
}

#[tokio::test]
async fn what_is_urgent_goes_first_when_slots_are_few() {
    for is_async in [true, false] {
        let (workflow, seen) = ordered(is_async);
        react(&workflow, Options::new().max_concurrency(1)).await;
        assert_eq!(*seen.lock().unwrap(), ["high", "normal", "low"], "in memory, async: {is_async}");

        let (workflow, seen) = ordered(is_async);
        let runner = Runner::in_memory(RunnerOptions::new().max_concurrency(1)).await.unwrap();
        let run = runner.run("r", &workflow, 1_i64).await.unwrap();
        run.wait().await.unwrap();
        assert_eq!(*seen.lock().unwrap(), ["high", "normal", "low"], "durable, async: {is_async}");
    }
}

/// A step that has the only slot for five seconds, and one that does not wait so long for it.
fn crowded(calls: &Calls) -> Workflow {
    let calls = calls.clone();
    let has_it = step("has_it", |x: i64| async move {
        tokio::time::sleep(Duration::from_secs(5)).await;
        x
    });
    let wants_it = step("wants_it", move |x: i64| {
        calls.one_more();
        x
    });
    let policy = Policy::new().queue_timeout("1s").max_retries(1);
    governed([has_it, wants_it], policy::name("wants_it"), policy)
}

#[tokio::test(start_paused = true)]
async fn work_that_gets_no_slot_in_time_fails_without_being_called() {
    let calls = Calls::default();
    let workflow = crowded(&calls);
    let (run, took) = react(&workflow, Options::new().max_concurrency(1)).await;
    assert_eq!((calls.count(), took), (0, 5_000));
    let failed = &run.failures()[0];
    assert_eq!((failed.failure.code.clone(), failed.attempts), (Some("queue_timeout".into()), 2));
    assert_eq!(failed.failure.message, "waited longer than 1s for a slot");
    assert_eq!(run.result::<i64>("has_it").unwrap(), Some(1), "nobody else is concerned");

    react(&workflow, Options::new().max_concurrency(2)).await;
    assert_eq!(calls.count(), 1, "with a slot for it, it is called");
}

#[tokio::test(start_paused = true)]
async fn durable_work_that_gets_no_slot_in_time_fails_without_being_called() {
    let calls = Calls::default();
    let runner = Runner::in_memory(RunnerOptions::new().max_concurrency(1)).await.unwrap();
    let run = runner.run("r", &crowded(&calls), 1_i64).await.unwrap();
    let error = run.result::<i64>("wants_it").await.unwrap_err();
    assert!(error.to_string().contains("waited longer than 1s for a slot"), "{error}");
    assert_eq!(run.result::<i64>("has_it").await.unwrap(), 1, "nobody else is concerned");
    assert_eq!(run.state().await.unwrap().failures()[0].attempts, 2);
    assert_eq!(calls.count(), 0);
}
