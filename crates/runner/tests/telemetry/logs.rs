//! What is told of work on threads, in tasks and inline.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tidewheel_core::policy::{self, Failure, Policy};
use tidewheel_core::time::Span;
use tidewheel_core::work::Context;
use tidewheel_core::workflow::{Workflow, step};
use tidewheel_runner::{
    Executor, Options, Runner, RunnerOptions, SyncWork, react_until_satisfied, telemetry::TARGET,
};
use tidewheel_store::Status;
use tidewheel_testkit::{Capture, Heard, VirtualClock};

/// Fails once, in a thread or a task, and succeeds then.
fn flaky(is_async: bool) -> Workflow {
    let once = |context: &Context, x: i64| match context.attempt() {
        0 => Err(Failure::new("busy").code(503)),
        _ => Ok(x),
    };
    let flaky = if is_async {
        step("flaky", move |context: Context, x: i64| async move { once(&context, x) })
    } else {
        step("flaky", move |context: Context, x: i64| once(&context, x))
    };
    Workflow::new("w").add(flaky).policy(policy::default(), Policy::new().max_retries(1)).build().unwrap()
}

fn told(heard: &[Heard]) -> Vec<(&str, &str, &str)> {
    let events = heard.iter().filter(|heard| !heard.is_span);
    events
        .map(|heard| (heard.name, heard.get("attempt").unwrap(), heard.get("outcome").unwrap_or_default()))
        .collect()
}

const FLAKY: [(&str, &str, &str); 5] = [
    ("tidewheel.execute.start", "0", ""),
    ("tidewheel.execute.stop", "0", "failed"),
    ("tidewheel.execute.retry", "0", ""),
    ("tidewheel.execute.start", "1", ""),
    ("tidewheel.execute.stop", "1", "completed"),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_attempt_is_told_wherever_it_runs() {
    let capture = Capture::everywhere(TARGET);
    for (is_async, name) in [(true, "async"), (false, "sync")] {
        for (place, sync_work) in [("threads", SyncWork::Threads), ("inline", SyncWork::Inline)] {
            let id = format!("memory-{name}-{place}");
            let mut run = flaky(is_async).run(id.as_str());
            react_until_satisfied(&mut run, 1_i64, Options::new().sync_work(sync_work)).await.unwrap();
            assert_eq!(told(&capture.of_run(&id)), FLAKY, "{id}");
        }
        for executor in [Executor::Threads, Executor::Tasks, Executor::Inline] {
            let id = format!("durable-{name}-{executor:?}");
            let runner = Runner::in_memory(RunnerOptions::new().executor(executor)).await.unwrap();
            let run = runner.run(id.as_str(), &flaky(is_async), 1_i64).await.unwrap();
            run.result::<i64>("flaky").await.unwrap();
            assert_eq!(told(&capture.of_run(&id)), FLAKY, "{id}");
        }
    }
}

fn count(id: &str, name: &str) -> usize {
    Capture::everywhere(TARGET).of_run(id).iter().filter(|heard| heard.name == name).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_goes_on_after_a_pause_or_a_stop_is_told() {
    Capture::everywhere(TARGET);
    let workflow = Workflow::new("w").add(step("s", |x: i64| x)).build().unwrap();
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let run = runner.start("paused", &workflow).await.unwrap();
    run.pause().await.unwrap();
    assert_eq!(count("paused", "tidewheel.run.resume"), 0);
    run.resume().await.unwrap();
    assert_eq!(count("paused", "tidewheel.run.resume"), 1);
    run.resume().await.unwrap();
    assert_eq!(count("paused", "tidewheel.run.resume"), 1, "it goes on already");
    run.stop().await.unwrap();
    runner.resume("paused").await.unwrap();
    assert_eq!(count("paused", "tidewheel.run.resume"), 2);
}

/// A value that can be written once, when it is checked, and breaks when it is stored.
#[derive(Clone)]
struct Fragile(Arc<AtomicBool>);

impl Serialize for Fragile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.swap(true, Ordering::SeqCst) {
            std::panic::resume_unwind(Box::new("it broke"));
        }
        serializer.serialize_unit()
    }
}

impl<'de> Deserialize<'de> for Fragile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <()>::deserialize(deserializer)?;
        Ok(Self(Arc::default()))
    }
}

#[tokio::test]
async fn a_run_that_is_parked_is_told_and_counted() {
    Capture::everywhere(TARGET);
    let workflow = Workflow::new("w").add(step("s", |_: i64| Fragile(Arc::default()))).build().unwrap();
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let run = runner.run("parked", &workflow, 1_i64).await.unwrap();
    assert_eq!(run.wait().await.unwrap(), Status::Parked);
    assert_eq!(count("parked", "tidewheel.run.park"), 1);
    assert!(runner.metrics().contains("tidewheel_runs_total{status=\"parked\"} 1"));
}

#[tokio::test(start_paused = true)]
async fn what_is_given_up_is_told_once_with_its_reason() {
    Capture::everywhere(TARGET);
    let never = |is_async: bool| {
        if is_async {
            step("never", |x: i64| async move {
                std::future::pending::<()>().await;
                x
            })
        } else {
            step("never", |context: Context, x: i64| {
                while !context.cancellation().is_cancelled() {
                    std::thread::yield_now();
                }
                x
            })
        }
    };
    for is_async in [true, false] {
        for (code, policy) in
            [("timeout", Policy::new().timeout("1s")), ("heartbeat", Policy::new().heartbeat("1s"))]
        {
            let id = format!("given-up-{code}-{is_async}");
            let builder = Workflow::new("w").add(never(is_async));
            let workflow = builder.policy(policy::default(), policy.fallback_value(0)).build().unwrap();
            // A clock of its own: that of a paused runtime stands still while a thread is busy.
            let clock = VirtualClock::default();
            let options = Options::new().clock(Arc::new(clock.clone()));
            let mut run = workflow.run(id.as_str());
            let moving = async {
                while clock.sleepers() == 0 {
                    tokio::task::yield_now().await;
                }
                clock.advance(Span::from_secs(1));
            };
            let (driven, ()) = tokio::join!(react_until_satisfied(&mut run, 1_i64, options), moving);
            driven.unwrap();
            let heard = Capture::everywhere(TARGET).of_run(&id);
            let codes: Vec<(&str, Option<&str>)> = heard
                .iter()
                .filter(|heard| !heard.is_span)
                .map(|heard| (heard.name, heard.get("code")))
                .collect();
            let expected = [
                ("tidewheel.execute.start", None),
                ("tidewheel.execute.timeout", Some(code)),
                ("tidewheel.execute.stop", Some(code)),
                ("tidewheel.execute.fallback", Some(code)),
            ];
            assert_eq!(codes, expected, "{id}");
        }
    }
}
