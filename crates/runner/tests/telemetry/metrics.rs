//! What a runner counts.

use std::sync::Arc;

use tidewheel_core::fact::RunId;
use tidewheel_core::policy::{self, Failure, NodeInfo, Policy};
use tidewheel_core::time::Span;
use tidewheel_core::work::Context;
use tidewheel_core::workflow::{Workflow, step};
use tidewheel_runner::telemetry::prometheus_client::{encoding::text::encode, registry::Registry};
use tidewheel_runner::telemetry::{SIGNALS, SignalKind};
use tidewheel_runner::{Hooks, Runner, RunnerOptions};
use tidewheel_testkit::VirtualClock;
use tokio::sync::Semaphore;

/// Returns the value of a line of the text.
fn value(text: &str, line: &str) -> Option<f64> {
    text.lines().find_map(|other| other.strip_prefix(line)?.strip_prefix(' ')?.parse().ok())
}

fn flaky(failures: u32) -> Workflow {
    let flaky = step("flaky", move |context: Context, x: i64| async move {
        if context.attempt() < failures { Err(Failure::new("busy").code(503)) } else { Ok(x) }
    });
    Workflow::new("w").add(flaky).policy(policy::default(), Policy::new().max_retries(2)).build().unwrap()
}

/// Hooks that panic, so that panics are counted.
struct Panicking;

impl Hooks for Panicking {
    fn completed(&self, _: &RunId, _: &NodeInfo<'_>) {
        panic!("a hook of the test");
    }
}

#[tokio::test]
async fn every_metric_of_the_table_is_there_and_nothing_else() {
    let runner = Runner::in_memory(RunnerOptions::new().hooks(Panicking)).await.unwrap();
    let run = runner.run("r", &flaky(1), 1_i64).await.unwrap();
    run.wait().await.unwrap();
    let text = runner.metrics();
    let mut told: Vec<(&str, &str)> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')).collect();
    let mut table: Vec<(&str, &str)> = SIGNALS
        .iter()
        .filter(|signal| !matches!(signal.kind, SignalKind::Span | SignalKind::Event))
        .map(|signal| (signal.name.trim_end_matches("_total"), signal.kind.name()))
        .collect();
    told.sort_unstable();
    table.sort_unstable();
    assert_eq!(told, table, "{text}");
    for signal in SIGNALS.iter().filter(|signal| signal.kind == SignalKind::Counter) {
        let label = format!("{}{{{}=\"", signal.name, signal.fields[0]);
        assert!(text.contains(&label), "no {label} in {text}");
    }
    assert!(text.ends_with("# EOF\n"));
}

#[tokio::test]
async fn attempts_retries_and_runs_are_counted() {
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    runner.run("r", &flaky(1), 1_i64).await.unwrap().wait().await.unwrap();
    let text = runner.metrics();
    assert_eq!(value(&text, r#"tidewheel_attempts_total{outcome="failed"}"#), Some(1.0), "{text}");
    assert_eq!(value(&text, r#"tidewheel_attempts_total{outcome="completed"}"#), Some(1.0));
    assert_eq!(
        value(&text, r#"tidewheel_retries_total{reason="SCHED_RETRY_SCHEDULED"}"#),
        Some(1.0),
        "{text}"
    );
    assert_eq!(value(&text, r#"tidewheel_runs_total{status="completed"}"#), Some(1.0));
    assert_eq!(value(&text, "tidewheel_queue_wait_seconds_count"), Some(2.0), "one for each attempt");
    assert!(value(&text, "tidewheel_commit_seconds_count").unwrap() >= 3.0, "{text}");
}

#[tokio::test]
async fn a_run_that_is_cancelled_or_failed_is_counted_as_such() {
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    runner.run("failed", &flaky(9), 1_i64).await.unwrap().wait().await.unwrap();
    let endless = step("endless", |_: i64| std::future::pending::<i64>());
    let endless = Workflow::new("endless").add(endless).build().unwrap();
    runner.run("cancelled", &endless, 1_i64).await.unwrap().cancel().await.unwrap();
    let text = runner.metrics();
    assert_eq!(value(&text, r#"tidewheel_runs_total{status="failed"}"#), Some(1.0), "{text}");
    assert_eq!(value(&text, r#"tidewheel_runs_total{status="cancelled"}"#), Some(1.0), "{text}");
    assert_eq!(value(&text, r#"tidewheel_attempts_total{outcome="failed"}"#), Some(3.0), "{text}");
}

#[tokio::test]
async fn a_registry_of_ones_own_shows_what_is_so_at_the_moment() {
    let clock = VirtualClock::default();
    let options = RunnerOptions::new().max_concurrency(1).clock(Arc::new(clock.clone()));
    let runner = Runner::in_memory(options).await.unwrap();
    let mut registry = Registry::with_prefix("app");
    runner.register_metrics(&mut registry);
    let text = || {
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        text
    };
    assert_eq!(value(&text(), "app_tidewheel_slots_in_use"), Some(0.0), "{}", text());

    // Both are handed in at once, and there is one slot: the second one waits for two seconds.
    let (entered, door) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let waits = |name: &str| {
        let (told, held) = (Arc::clone(&entered), Arc::clone(&door));
        step(name, move |x: i64| {
            let (told, held) = (Arc::clone(&told), Arc::clone(&held));
            async move {
                told.add_permits(1);
                held.acquire().await.unwrap().forget();
                x
            }
        })
    };
    let workflow = Workflow::new("w").add(waits("first")).add(waits("second")).build().unwrap();
    let run = runner.run("r", &workflow, 1_i64).await.unwrap();
    entered.acquire().await.unwrap().forget();
    assert_eq!(value(&text(), "app_tidewheel_slots_in_use"), Some(1.0));
    assert_eq!(value(&text(), "app_tidewheel_runs_held"), Some(1.0));
    clock.advance(Span::from_secs(2));
    door.add_permits(2);
    run.wait().await.unwrap();
    assert_eq!(value(&text(), "app_tidewheel_queue_wait_seconds_sum"), Some(2.0), "{}", text());
    assert_eq!(value(&text(), "app_tidewheel_slots_in_use"), Some(0.0));
    assert_eq!(value(&text(), "app_tidewheel_abandoned_threads"), Some(0.0));

    drop((run, runner));
    while value(&text(), "app_tidewheel_runs_held").is_some() {
        // Its tasks still have to end.
        tokio::task::yield_now().await;
    }
}
