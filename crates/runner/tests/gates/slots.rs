//! Concurrency limits: how many are under way at once, and that no slot is ever lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tidewheel_core::policy::{self, CircuitBreaker, Failure, Policy};
use tidewheel_core::workflow::{Component, step};
use tidewheel_runner::{Runner, RunnerOptions};
use tidewheel_store::Status;

use crate::world::{HOMES, Starts, governed, named, start, timed};

/// How many are under way, and how many were at most.
#[derive(Clone, Default)]
struct Level {
    now: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

/// Goes down when the work ends, however it ends.
struct UnderWay(Level);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Level {
    fn step(&self, name: &str, millis: u64) -> Component {
        let level = self.clone();
        step(name, move |x: i64| {
            let level = level.clone();
            async move {
                level.most.fetch_max(level.now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                let _under_way = UnderWay(level);
                tokio::time::sleep(Duration::from_millis(millis)).await;
                if x % 3 == 2 { Err(Failure::new("down")) } else { Ok(x) }
            }
        })
    }

    fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }
}

#[tokio::test(start_paused = true)]
async fn never_more_than_the_limit_are_under_way_and_all_are_at_last() {
    for home in HOMES {
        let (level, starts) = (Level::default(), Starts::new());
        let policy = Policy::new().max_retries(1).concurrency_limit(3);
        let workflow = governed([level.step("s", 100)], vec![(policy::default(), policy)]);
        let runs = home.run(&workflow, 0..10).await;
        let failures: usize = runs.iter().map(|run| run.failures().len()).sum();
        assert_eq!((level.most(), failures), (3, 3), "{home:?}");
        // Thirteen attempts, three at a time.
        assert_eq!(starts.now(), 500, "{home:?}: no slot is idle while somebody waits");
    }
}

#[tokio::test(start_paused = true)]
async fn each_rule_counts_by_itself_and_names_count_together() {
    for home in HOMES {
        for (is_shared, most) in [(false, 4), (true, 2)] {
            let level = Level::default();
            let policy = match is_shared {
                true => Policy::new().shared_concurrency_limit("db", 2),
                false => Policy::new().concurrency_limit(2),
            };
            let workflow = governed(
                [level.step("a", 100), level.step("b", 100)],
                vec![(policy::name("a"), policy.clone()), (policy::name("b"), policy)],
            );
            home.run(&workflow, 0..6).await;
            assert_eq!(level.most(), most, "{home:?}: shared: {is_shared}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn work_with_other_gates_gets_the_slots_of_a_name_in_turn() {
    for home in HOMES {
        let starts = Starts::new();
        // The breaker gives the second one a line of its own.
        let policy = Policy::new().shared_concurrency_limit("db", 1);
        let other = policy.clone().circuit_breaker(CircuitBreaker::new("api"));
        let workflow = governed(
            [starts.step("a", 100), starts.step("b", 100)],
            vec![(policy::name("a"), policy), (policy::name("b"), other)],
        );
        home.run(&workflow, 0..20).await;
        let times: Vec<u64> = (0..40).map(|turn| turn * 100).collect();
        assert_eq!(starts.times(), times, "{home:?}: one after the other, with no pause between them");
    }
}

#[tokio::test(start_paused = true)]
async fn lines_that_share_slots_take_turns() {
    for home in HOMES {
        let (many, few) = (Starts::new(), Starts::new());
        let policy = Policy::new().shared_concurrency_limit("db", 1);
        let other = policy.clone().circuit_breaker(CircuitBreaker::new("api"));
        let workflow = governed(
            [many.step("many", 100), few.step("few", 100)],
            vec![
                (policy::name("many"), policy),
                // One that comes when all the others wait.
                (policy::name("few"), other.delay("1s")),
            ],
        );
        home.run(&workflow, 0..30).await;
        let first = few.times()[0];
        assert!(first <= 1_200, "{home:?}: it waited until {first}");
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_is_cancelled_timed_out_or_fails_gives_the_slot_back() {
    let starts = Starts::new();
    let policy = Policy::new().concurrency_limit(2).timeout("30s");
    let fails = |call| call == 0;
    let workflow = governed([starts.failing("s", 10_000, fails)], vec![(policy::default(), policy.clone())]);
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let mut runs = Vec::new();
    for input in 0..6 {
        runs.push(start(&runner, format!("r{input}"), &workflow, input).await);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    // One of those that have a slot, and one of those that wait.
    runs[1].cancel().await.unwrap();
    runs[4].cancel().await.unwrap();
    let mut ends = Vec::new();
    for run in &runs {
        ends.push(timed(run.wait()).await.unwrap());
    }
    let (failed, cancelled, done) = (Status::Failed, Status::Cancelled, Status::Completed);
    assert_eq!(ends, [failed, cancelled, done, done, cancelled, done]);
    assert_eq!(starts.all(), [(0, 0), (1, 0), (2, 1_000), (3, 10_000), (5, 11_000)]);

    let late = Starts::new();
    let policy = policy.timeout("5s");
    let workflow = named("late", [late.step("s", 10_000)], vec![(policy::default(), policy)]);
    for input in 0..6 {
        runs.push(start(&runner, format!("late{input}"), &workflow, input).await);
    }
    for run in &runs {
        timed(run.wait()).await.unwrap();
    }
    let began = late.times()[0];
    let times: Vec<u64> = late.times().into_iter().map(|at| at - began).collect();
    assert_eq!(times, [0, 0, 5_000, 5_000, 10_000, 10_000]);
}

#[tokio::test(start_paused = true)]
async fn two_limits_on_different_steps_never_wait_for_each_other() {
    for home in HOMES {
        let (a, b) = (Starts::new(), Starts::new());
        let workflow = governed(
            [a.step("a", 10), b.step("b", 10).after("a"), a.step("c", 10).after("b")],
            vec![
                (policy::name("a"), Policy::new().shared_concurrency_limit("one", 1)),
                (policy::name("b"), Policy::new().shared_concurrency_limit("two", 1)),
                (policy::name("c"), Policy::new().shared_concurrency_limit("one", 1)),
            ],
        );
        home.run(&workflow, 0..20).await;
        assert_eq!((a.count(), b.count(), a.now()), (40, 20, 400), "{home:?}");
    }
}
