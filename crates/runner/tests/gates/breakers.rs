//! Circuit breakers: who shares them, what an open one does, and how it closes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use tidewheel_core::decide::{CircuitView, ReasonCode, Record};
use tidewheel_core::event::Hold;
use tidewheel_core::policy::{self, CircuitBreaker, OnFailure, OnOpen, Policy};
use tidewheel_core::workflow::Workflow;
use tidewheel_runner::{Runner, RunnerOptions};
use tidewheel_store::{Clock as _, Memory, RealClock, Status, Store};

use crate::world::{HOMES, Starts, breaker, governed, named, start, timed};

/// `bad` opens the breaker at once, and `good` begins a second later.
fn opened(good: &Starts, bad: &Starts, policy: Policy, on_open: OnOpen) -> Workflow {
    let breaker = CircuitBreaker { on_open, ..breaker(1) };
    governed(
        [bad.failing("bad", 0, |_| true), good.step("good", 0)],
        vec![
            (policy::name("bad"), Policy::new().circuit_breaker(breaker.clone())),
            (policy::name("good"), policy.delay("1s").circuit_breaker(breaker)),
        ],
    )
}

#[tokio::test(start_paused = true)]
async fn an_open_breaker_lets_work_wait_fail_or_be_skipped() {
    for home in HOMES {
        let (good, bad) = (Starts::new(), Starts::new());
        home.run(&opened(&good, &bad, Policy::new(), OnOpen::Wait), 0..1).await;
        assert_eq!((bad.times(), good.times()), (vec![0], vec![10_000]), "{home:?}: it waits");

        for (on_open, on_failure, is_skipped) in [
            (OnOpen::Fail, OnFailure::Halt, false),
            (OnOpen::Fail, OnFailure::Skip, true),
            (OnOpen::Skip, OnFailure::Halt, true),
        ] {
            let (good, bad) = (Starts::new(), Starts::new());
            let policy = Policy::new().max_retries(2).on_failure(on_failure);
            let runs = home.run(&opened(&good, &bad, policy, on_open), 0..1).await;
            assert_eq!((good.count(), good.now()), (0, 1_000), "{home:?}: it is over at once");
            let failures = runs[0].failures();
            let failed = failures.iter().find(|failed| failed.component == Some("good")).unwrap();
            assert_eq!(
                (failed.skipped, failed.reason),
                (is_skipped, Some(ReasonCode::CircuitOpen)),
                "{home:?}"
            );
            assert_eq!(failed.failure.code, Some("circuit_open".into()));
            assert!(failed.failure.message.starts_with("circuit breaker `api` is open until "));
        }
    }
}

/// Without retries, as by default, an open breaker skips what comes all the same.
#[tokio::test(start_paused = true)]
async fn an_open_breaker_skips_work_that_has_no_retries() {
    for home in HOMES {
        let (good, bad) = (Starts::new(), Starts::new());
        let runs = home.run(&opened(&good, &bad, Policy::new(), OnOpen::Skip), 0..1).await;
        assert_eq!(good.count(), 0, "{home:?}");
        let failures = runs[0].failures();
        let failed = failures.iter().find(|failed| failed.component == Some("good")).unwrap();
        assert!(failed.skipped, "{home:?}: {:?}", failed.failure);
        assert_eq!(failed.failure.code, Some("circuit_open".into()));
    }
}

#[tokio::test(start_paused = true)]
async fn workflows_and_runs_share_a_breaker_by_its_name() {
    let (bad, good) = (Starts::new(), Starts::new());
    let rules = || vec![(policy::default(), Policy::new().circuit_breaker(breaker(3)))];
    let failing = named("one", [bad.failing("s", 0, |_| true)], rules());
    let other = named("other", [good.step("t", 0)], rules());
    let stranger = CircuitBreaker { name: "another".to_owned(), ..breaker(3) };
    let stranger = named(
        "stranger",
        [good.step("u", 0)],
        vec![(policy::default(), Policy::new().circuit_breaker(stranger))],
    );
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    for input in 0..2 {
        timed(start(&runner, format!("bad{input}"), &failing, input).await.wait()).await.unwrap();
    }
    timed(start(&runner, "first", &other, 1).await.wait()).await.unwrap();
    for input in 2..5 {
        timed(start(&runner, format!("bad{input}"), &failing, input).await.wait()).await.unwrap();
    }
    let waiting = start(&runner, "second", &other, 2).await;
    timed(start(&runner, "third", &stranger, 3).await.wait()).await.unwrap();
    assert_eq!(waiting.status().await.unwrap(), Status::Waiting);
    assert_eq!(timed(waiting.wait()).await.unwrap(), Status::Completed);
    assert_eq!(good.all(), [(1, 0), (3, 0), (2, 10_000)], "a success between them starts the count again");
}

#[tokio::test(start_paused = true)]
async fn as_many_probes_as_it_says_close_it_for_everybody_at_once_and_a_failed_one_opens_it_again() {
    for home in HOMES {
        let starts = Starts::new();
        let breaker = CircuitBreaker { half_open_permits: 2, ..breaker(1) };
        let policy = Policy::new().delay("1s").circuit_breaker(breaker.clone());
        let workflow = |fails: fn(usize) -> bool, starts: &Starts| {
            let bad = Starts::new();
            governed(
                [
                    bad.failing("bad", 0, |_| true),
                    starts.failing("good", 5_000, fails),
                    starts.failing("also", 5_000, fails),
                    starts.failing("third", 5_000, fails),
                ],
                vec![
                    (policy::name("bad"), Policy::new().circuit_breaker(breaker.clone())),
                    // The rate is in nobody's way, and gives it a line of its own.
                    (policy::name("third"), policy.clone().rate_limit(1_000, "1s")),
                    (policy::default(), policy.clone()),
                ],
            )
        };
        home.run(&workflow(|_| false, &starts), 0..1).await;
        assert_eq!(starts.times(), [10_000, 10_000, 15_000], "{home:?}: two probes, then the rest at once");

        let starts = Starts::new();
        home.run(&workflow(|call| call == 0, &starts), 0..1).await;
        assert_eq!(starts.times(), [10_000, 10_000, 25_000], "{home:?}: a failure opens it again");
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_ran_always_counts_so_that_a_poison_item_ends() {
    for home in HOMES {
        let starts = Starts::new();
        let policy = Policy::new().max_retries(7).circuit_breaker(breaker(2));
        let workflow = governed([starts.failing("s", 0, |_| true)], vec![(policy::default(), policy)]);
        let runs = home.run(&workflow, 0..1).await;
        let expected = [0, 0, 10_000, 20_000, 30_000, 40_000, 50_000, 60_000];
        assert_eq!(starts.times(), expected, "{home:?}: each failed probe opens it again");
        let failures = runs[0].failures();
        assert_eq!((failures[0].attempts, failures[0].reason), (8, Some(ReasonCode::MaxRetriesReached)));
    }
}

/// With the breaker open, all but the first were said to wait for a concurrency limit, until an instant that was over.
#[tokio::test(start_paused = true)]
async fn everybody_who_waits_is_told_of_the_gate_that_is_closed_now() {
    let starts = Starts::new();
    let policy = Policy::new().concurrency_limit(1).circuit_breaker(breaker(1));
    let workflow =
        governed([starts.failing("s", 1_000, |call| call == 0)], vec![(policy::default(), policy)]);
    let clock = Arc::new(RealClock::new());
    let store: Arc<dyn Store> = Arc::new(Memory::new(Arc::<RealClock>::clone(&clock)));
    let options = RunnerOptions::new().clock(Arc::<RealClock>::clone(&clock));
    let runner = Runner::with_store(store, options).await.unwrap();
    let mut runs = Vec::new();
    for number in 0..5 {
        runs.push(start(&runner, format!("r{number}"), &workflow, number).await);
    }
    let mut seen = Vec::new();
    for _ in 0..4 {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let mut whys = BTreeSet::new();
        for run in &runs {
            for wait in run.state().await.unwrap().waits() {
                let is_shut = wait.why == Some(Hold::CircuitBreaker);
                assert!(!is_shut || wait.until.is_some_and(|until| until > clock.now()), "{wait:?}");
                whys.extend(wait.why);
            }
        }
        seen.push(whys.into_iter().collect::<Vec<_>>());
    }
    let (slots, shut) = (vec![Hold::ConcurrencyLimit], vec![Hold::CircuitBreaker]);
    assert_eq!((&seen[0], &seen[2], &seen[3]), (&slots, &shut, &shut));
    for run in &runs {
        timed(run.wait()).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_probe_gives_its_permit_back() {
    let (bad, good) = (Starts::new(), Starts::new());
    let rules = || vec![(policy::default(), Policy::new().circuit_breaker(breaker(1)))];
    let failing = named("one", [bad.failing("s", 0, |_| true)], rules());
    let other = named("other", [good.step("t", 5_000)], rules());
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    timed(start(&runner, "bad", &failing, 0).await.wait()).await.unwrap();
    let (probe, next) = (start(&runner, "probe", &other, 1).await, start(&runner, "next", &other, 2).await);
    tokio::time::sleep(Duration::from_millis(12_000)).await;
    assert_eq!(good.all(), [(1, 10_000)]);
    probe.cancel().await.unwrap();
    timed(next.wait()).await.unwrap();
    assert_eq!(good.all(), [(1, 10_000), (2, 12_000)]);
}

/// A line of a log, as far as it matters here.
#[derive(Deserialize)]
struct Line {
    attempt_failed: Option<Body>,
}

#[derive(Deserialize)]
struct Body {
    failed: Decided,
}

#[derive(Deserialize)]
struct Decided {
    decided: Box<RawValue>,
}

#[tokio::test(start_paused = true)]
async fn what_the_breaker_said_is_in_the_log_and_decides_the_same_again() {
    let store: Arc<dyn Store> = Arc::new(Memory::new(Arc::new(RealClock::new())));
    let options = RunnerOptions::new().clock(Arc::new(RealClock::new()));
    let runner = Runner::with_store(Arc::clone(&store), options).await.unwrap();
    // The slow one fails when the quick ones have opened the breaker.
    let slow = Starts::new();
    let quick = Starts::new();
    let policy = Policy::new().max_retries(1).circuit_breaker(breaker(2));
    let rules =
        vec![(policy::name("slow"), policy), (policy::default(), Policy::new().circuit_breaker(breaker(2)))];
    let workflow =
        governed([slow.failing("slow", 1_000, |call| call == 0), quick.failing("quick", 0, |_| true)], rules);
    let first = start(&runner, "r", &workflow, 0).await;
    let second = start(&runner, "second", &workflow, 1).await;
    timed(first.wait()).await.unwrap();
    timed(second.wait()).await.unwrap();

    let mut decided = Vec::new();
    for run in ["r", "second"] {
        for stored in store.read(&run.into(), 0).await.unwrap() {
            for line in stored.events.events().unwrap() {
                if let Line { attempt_failed: Some(body) } = serde_json::from_str(line).unwrap() {
                    let record = Record::from_json(body.failed.decided.get()).unwrap();
                    assert_eq!(record.redecided().to_json(), body.failed.decided.get());
                    decided.push(record);
                }
            }
        }
    }
    let waits = decided.iter().filter(|record| record.decision.reason == ReasonCode::CircuitOpen);
    let views: Vec<CircuitView> = waits.map(|record| record.situation.circuit).collect();
    assert!(!views.is_empty(), "{decided:?}");
    assert!(views.iter().all(|view| matches!(view, CircuitView::OpenUntil(_))), "{views:?}");
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_says_nothing_is_given_up_after_a_while() {
    for home in HOMES {
        let (bad, good) = (Starts::new(), Starts::new());
        let breaker = breaker(1);
        let policy = Policy::new().delay("1s").circuit_breaker(breaker.clone());
        let workflow = governed(
            [bad.failing("bad", 0, |_| true), good.step("good", 25_000), good.step("also", 25_000)],
            vec![(policy::name("bad"), Policy::new().circuit_breaker(breaker)), (policy::default(), policy)],
        );
        home.run(&workflow, 0..1).await;
        assert_eq!(good.times(), [10_000, 20_000], "{home:?}");
    }
}
