//! Timeouts, deadlines and slots on the runtime's clock.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidewheel_core::decide::ReasonCode;
use tidewheel_core::policy::{self, Backoff, Failure, OnFailure, Policy, Recovery};
use tidewheel_core::time::{Span, Timestamp};
use tidewheel_core::workflow::{Component, map, step};
use tidewheel_runner::{DriveOptions, Options, SyncWork, drive, react_until_satisfied};
use tokio::time::{Instant, sleep};

use crate::world::{Calls, built, flaky, governed, react, resolved};

/// A step whose first calls take so long each, and whose later calls take no time.
fn slow(name: &str, calls: &Calls, millis: &'static [u64]) -> Component {
    let calls = calls.clone();
    step(name, move |x: i64| {
        let before = calls.one_more() as usize;
        async move {
            sleep(Duration::from_millis(millis.get(before).copied().unwrap_or(0))).await;
            x + 1
        }
    })
}

fn fails_after(name: &str, calls: &Calls, millis: u64) -> Component {
    let calls = calls.clone();
    step(name, move |_: i64| {
        calls.one_more();
        async move {
            sleep(Duration::from_millis(millis)).await;
            Err::<i64, _>(Failure::new("no"))
        }
    })
}

#[tokio::test(start_paused = true)]
async fn g7_an_attempt_that_times_out_is_tried_again() {
    let calls = Calls::default();
    let policy = Policy::new().timeout("100ms").max_retries(1);
    let (run, took) =
        react(&governed([slow("slow", &calls, &[500])], policy::default(), policy), Options::new()).await;
    assert_eq!(run.result::<i64>("slow").unwrap(), Some(2));
    assert_eq!((calls.count(), took), (2, 100));
}

#[tokio::test(start_paused = true)]
async fn work_that_ends_at_its_timeout_has_ended() {
    let calls = Calls::default();
    let policy = Policy::new().timeout("100ms");
    let (run, took) =
        react(&governed([slow("slow", &calls, &[100])], policy::default(), policy), Options::new()).await;
    assert_eq!(run.result::<i64>("slow").unwrap(), Some(2));
    assert_eq!(took, 100);
}

#[tokio::test(start_paused = true)]
async fn g8_a_deadline_that_is_past_lets_nothing_begin() {
    let (calls, asked) = (Calls::default(), Calls::default());
    let counted = asked.clone();
    let policy = Policy::new().max_retries(3).fallback(move |_, _, _| {
        counted.one_more();
        Recovery::value(9_i64)
    });
    let workflow = governed([flaky("flaky", &calls, 0)], policy::default(), policy.clone());
    let mut run = workflow.run("r");
    run.plan(1_i64);
    let options = DriveOptions::new().deadline(Timestamp::from_millis(1));
    let executed = drive(run.prepare().remove(0), resolved(&policy), options).await.unwrap();
    run.apply(executed);
    assert_eq!((calls.count(), asked.count()), (0, 0));
    assert_eq!(run.failures()[0].failure.code, Some("deadline_exceeded".into()));
    assert_eq!(run.failures()[0].reason, Some(ReasonCode::DeadlineExceeded));

    // The same in the loop: the first step uses the time up, the second is not called.
    let (first, second) = (Calls::default(), Calls::default());
    let workflow = governed(
        [slow("first", &first, &[50]), flaky("second", &second, 0).after("first")],
        policy::name("second"),
        policy,
    );
    let (run, took) = react(&workflow, Options::new().deadline(Span::from_millis(50))).await;
    assert_eq!(took, 50);
    assert_eq!((first.count(), second.count(), asked.count()), (1, 0, 0));
    assert_eq!(run.result::<i64>("first").unwrap(), Some(2), "it ended at the last moment");
    assert_eq!(run.failures()[0].reason, Some(ReasonCode::DeadlineExceeded));
}

#[tokio::test(start_paused = true)]
async fn g8_a_deadline_in_the_future_changes_nothing_and_a_near_one_cuts_attempts_short() {
    let calls = Calls::default();
    let policy = Policy::new().deadline("30ms").fallback_value(7_i64);
    let workflow = governed([slow("slow", &calls, &[500])], policy::default(), policy.clone());
    let (run, took) = react(&workflow, Options::new()).await;
    assert_eq!((took, run.failures().len()), (30, 1), "no fallback is called after the deadline");
    assert_eq!(run.failures()[0].failure.code, Some("deadline_exceeded".into()));
    let workflow = governed([slow("slow", &calls, &[])], policy::default(), policy);
    let (run, _) = react(&workflow, Options::new()).await;
    assert_eq!(run.result::<i64>("slow").unwrap(), Some(2));

    let calls = Calls::default();
    let policy = Policy::new().deadline("120ms").max_retries(5);
    let workflow = governed([fails_after("fails", &calls, 50)], policy::default(), policy);
    let (run, took) = react(&workflow, Options::new()).await;
    assert_eq!((calls.count(), took), (3, 120));
    assert_eq!(run.failures()[0].reason, Some(ReasonCode::DeadlineExceeded));

    let calls = Calls::default();
    let policy = Policy::new().deadline("120ms").max_retries(5).backoff(Backoff::Fixed).base_delay("80ms");
    let workflow = governed([fails_after("fails", &calls, 50)], policy::default(), policy);
    let (_, took) = react(&workflow, Options::new()).await;
    assert_eq!((calls.count(), took), (1, 50), "a retry due after the deadline fails now");
}

#[tokio::test(start_paused = true)]
async fn a_deadline_of_a_policy_counts_from_the_input_and_not_from_each_step() {
    let (first, second) = (Calls::default(), Calls::default());
    let workflow = governed(
        [slow("first", &first, &[60]), slow("second", &second, &[60]).after("first")],
        policy::default(),
        Policy::new().deadline("100ms"),
    );
    let (run, took) = react(&workflow, Options::new()).await;
    assert_eq!(took, 100);
    assert_eq!(run.result::<i64>("first").unwrap(), Some(2));
    assert_eq!(run.failures()[0].component, Some("second"));
}

#[tokio::test(start_paused = true)]
async fn g9_the_deadline_of_the_run_holds_with_and_without_policies() {
    for with_policies in [true, false] {
        for place in [SyncWork::Threads, SyncWork::Inline] {
            for (deadline, value, took_wanted) in [(50, None, 50), (5_000, Some(2), 200)] {
                let calls = Calls::default();
                let component = slow("slow", &calls, &[200]);
                let workflow = if with_policies {
                    governed([component], policy::default(), Policy::new().max_retries(1))
                } else {
                    built([component])
                };
                let options = Options::new().deadline(Span::from_millis(deadline)).sync_work(place);
                let (run, took) = react(&workflow, options).await;
                assert_eq!(run.result::<i64>("slow").unwrap(), value);
                assert_eq!((took, calls.count()), (took_wanted, 1), "{with_policies} {place:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn all_attempts_together_have_their_time() {
    let calls = Calls::default();
    let policy = Policy::new().total_timeout("250ms").timeout("100ms").max_retries(9);
    let workflow = governed([slow("slow", &calls, &[500; 9])], policy::default(), policy);
    let (run, took) = react(&workflow, Options::new()).await;
    assert_eq!((calls.count(), took), (3, 250), "the third attempt has what is left");
    assert_eq!(run.failures()[0].reason, Some(ReasonCode::Timeout));
    assert!(run.failures()[0].failure.message.contains("all attempts"), "{:?}", run.failures()[0].failure);

    let calls = Calls::default();
    let policy = Policy::new()
        .total_timeout("250ms")
        .max_retries(9)
        .backoff(Backoff::Linear)
        .base_delay("100ms")
        .fallback_value(5_i64);
    let workflow = governed([fails_after("fails", &calls, 10)], policy::default(), policy);
    let (run, took) = react(&workflow, Options::new()).await;
    assert_eq!((calls.count(), took), (2, 120), "a retry due after it fails now");
    assert_eq!(run.result::<i64>("fails").unwrap(), Some(5), "a fallback may still help");
}

#[tokio::test(start_paused = true)]
async fn the_time_of_an_attempt_begins_when_it_begins_and_not_when_it_is_queued() {
    let item = |x: i64| async move {
        sleep(Duration::from_millis(80)).await;
        x
    };
    let workflow = governed([map("each", item)], policy::name("each"), Policy::new().timeout("100ms"));
    let mut run = workflow.run("r");
    let start = Instant::now();
    let items: Vec<i64> = (0..5).collect();
    react_until_satisfied(&mut run, items.clone(), Options::new().max_concurrency(1)).await.unwrap();
    assert_eq!(run.results::<i64>("each").unwrap(), items);
    assert_eq!(start.elapsed(), Duration::from_millis(400));
}

#[tokio::test(start_paused = true)]
async fn what_is_too_late_when_its_turn_comes_is_not_called() {
    let calls = Calls::default();
    let item = {
        let calls = calls.clone();
        move |x: i64| {
            calls.one_more();
            async move {
                sleep(Duration::from_millis(80)).await;
                x
            }
        }
    };
    let mut run = built([map("each", item)]).run("r");
    let options = Options::new().max_concurrency(1).deadline(Span::from_millis(200));
    react_until_satisfied(&mut run, (0..9_i64).collect::<Vec<_>>(), options).await.unwrap();
    assert_eq!(calls.count(), 3);
    assert_eq!(run.results::<i64>("each").unwrap(), [0, 1]);
    assert_eq!(run.failures().len(), 7);
    assert!(run.failures().iter().all(|failed| failed.reason == Some(ReasonCode::DeadlineExceeded)));
}

#[tokio::test(start_paused = true)]
async fn g10_the_checkpoint_sees_the_state_after_each_cycle() {
    for place in [SyncWork::Threads, SyncWork::Inline] {
        let workflow = built([
            step("a", |x: i64| x + 1),
            step("b", |x: i64| x + 1).after("a"),
            step("c", |x: i64| x + 1).after("b"),
        ]);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&seen);
        let options = Options::new().sync_work(place).checkpoint(move |run| {
            told.lock().unwrap().push(run.productions().len());
        });
        react(&workflow, options).await;
        assert_eq!(*seen.lock().unwrap(), [0, 1, 2, 3]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_checkpoint_that_panics_does_not_stop_the_run() {
    for place in [SyncWork::Threads, SyncWork::Inline] {
        let workflow =
            built([step("a", |x: i64| x + 1), step("b", |x: i64| async move { x + 1 }).after("a")]);
        let options = Options::new().sync_work(place).checkpoint(|_| panic!("full disk"));
        let reacting = tokio::time::timeout(Duration::from_secs(60), react(&workflow, options));
        let (run, _) = reacting.await.unwrap();
        assert_eq!(run.result::<i64>("b").unwrap(), Some(3));
    }
}

#[tokio::test(start_paused = true)]
async fn g15_a_wait_holds_no_slot() {
    for place in [SyncWork::Threads, SyncWork::Inline] {
        let calls = Calls::default();
        let at = Arc::new(Mutex::new(None));
        let told = Arc::clone(&at);
        let unrelated = step("unrelated", move |x: i64| {
            *told.lock().unwrap() = Some(Instant::now());
            x
        });
        let policy = Policy::new()
            .max_retries(2)
            .backoff(Backoff::Linear)
            .base_delay("200ms")
            .on_failure(OnFailure::Skip);
        let workflow = governed([flaky("fails", &calls, 9), unrelated], policy::name("fails"), policy);
        let start = Instant::now();
        let (run, took) = react(&workflow, Options::new().max_concurrency(1).sync_work(place)).await;
        assert_eq!((calls.count(), took), (3, 600));
        assert_eq!(calls.gaps(), [200, 400]);
        assert_eq!(at.lock().unwrap().unwrap() - start, Duration::ZERO, "it did not wait at all");
        assert_eq!(run.result::<i64>("unrelated").unwrap(), Some(1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_row_of_tasks_does_not_keep_a_function_waiting() {
    for place in [SyncWork::Threads, SyncWork::Inline] {
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut components = Vec::new();
        for link in 0..50 {
            let told = Arc::clone(&order);
            let component = step(format!("link{link}"), move |x: i64| {
                told.lock().unwrap().push("link");
                async move { x }
            });
            components.push(if link == 0 { component } else { component.after(format!("link{}", link - 1)) });
        }
        let told = Arc::clone(&order);
        components.push(step("function", move |x: i64| {
            told.lock().unwrap().push("function");
            x
        }));
        react(&built(components), Options::new().max_concurrency(1).sync_work(place)).await;
        let at = order.lock().unwrap().iter().position(|name| *name == "function").unwrap();
        assert!(at <= 2, "{at}");
    }
}
