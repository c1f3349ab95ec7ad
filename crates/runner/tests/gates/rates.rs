//! Rate limits: in any window never more starts than the count, whoever asks and however often.

use std::time::Duration;

use tidewheel_core::policy::{self, Policy};
use tidewheel_runner::{Runner, RunnerOptions};
use tidewheel_store::Status;

use crate::world::{HOMES, Starts, assert_rate, governed, named, start, timed};

#[tokio::test(start_paused = true)]
async fn no_window_sees_more_starts_than_the_count_and_retries_are_starts() {
    for home in HOMES {
        let starts = Starts::new();
        let policy = Policy::new().max_retries(3).rate_limit(3, "1s");
        let failing = starts.failing("s", 0, |call| call % 3 == 0);
        let workflow = governed([failing], vec![(policy::default(), policy)]);
        let runs = home.run(&workflow, 0..20).await;
        assert!(runs.iter().all(|run| run.failures().is_empty()), "{home:?}");
        assert!(starts.count() > 25, "{home:?}: retries are among them");
        assert_rate(starts.times(), 3, 1_000);
        // No window is left unused: a start waits a thousandth of it longer than it must, at most.
        let least = (starts.count() as u64 - 1) / 3 * 1_000;
        assert!(starts.now() <= least + least / 500, "{home:?}: {} of {least}", starts.now());
    }
}

#[tokio::test(start_paused = true)]
async fn each_rule_counts_by_itself_and_names_count_together() {
    for home in HOMES {
        for (is_shared, seconds) in [(false, 2), (true, 5)] {
            let starts = Starts::new();
            let policy = match is_shared {
                true => Policy::new().shared_rate_limit("api", 2, "1s"),
                false => Policy::new().rate_limit(2, "1s"),
            };
            let workflow = governed(
                [starts.step("a", 0), starts.step("b", 0)],
                vec![(policy::name("a"), policy.clone()), (policy::name("b"), policy)],
            );
            home.run(&workflow, 0..6).await;
            let took = starts.now();
            let (least, most) = (seconds * 1_000, seconds * 1_000 + 10);
            assert!((least..=most).contains(&took), "{home:?}, shared {is_shared}: {took}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn rules_of_workflows_count_by_themselves() {
    let starts = Starts::new();
    let rules = || vec![(policy::default(), Policy::new().rate_limit(1, "1h"))];
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    for name in ["one", "other"] {
        let workflow = named(name, [starts.step("s", 0)], rules());
        timed(start(&runner, name, &workflow, 1).await.wait()).await.unwrap();
    }
    assert_eq!(starts.now(), 0);
}

#[tokio::test(start_paused = true)]
async fn work_that_is_cancelled_while_it_waits_takes_no_start() {
    let starts = Starts::new();
    let policy = Policy::new().rate_limit(1, "10s");
    let workflow = governed([starts.step("s", 0)], vec![(policy::default(), policy)]);
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let mut runs = Vec::new();
    for input in 0..5 {
        runs.push(start(&runner, format!("r{input}"), &workflow, input).await);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    for run in &runs[1..4] {
        run.cancel().await.unwrap();
    }
    assert_eq!(timed(runs[4].wait()).await.unwrap(), Status::Completed);
    let times = starts.times();
    assert!(times.len() == 2 && (10_000..=10_010).contains(&times[1]), "{times:?}");
}

#[tokio::test(start_paused = true)]
async fn work_that_waited_too_long_takes_no_start() {
    for home in HOMES {
        let starts = Starts::new();
        let (limit, hurried) = (Policy::new().shared_rate_limit("r", 1, "10s"), "3s");
        let workflow = governed(
            [starts.step("first", 0), starts.step("hurried", 0), starts.step("patient", 0)],
            vec![
                (policy::name("first"), limit.clone()),
                (policy::name("hurried"), limit.clone().delay("1s").queue_timeout(hurried)),
                (policy::name("patient"), limit.delay("2s")),
            ],
        );
        home.run(&workflow, 0..1).await;
        let times = starts.times();
        assert!(times.len() == 2 && (10_000..=10_010).contains(&times[1]), "{home:?}: {times:?}");
    }
}
