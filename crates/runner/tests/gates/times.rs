//! When work may begin, and until when: delays, schedules, the patience of a queue, deadlines.

use tidewheel_core::decide::ReasonCode;
use tidewheel_core::policy::{self, Policy};
use tidewheel_core::time::{Span, Timestamp};
use tidewheel_core::workflow::Workflow;
use tidewheel_store::{Clock, RealClock};

use crate::world::{HOMES, Starts, breaker, governed};

#[tokio::test(start_paused = true)]
async fn a_delay_counts_for_the_first_attempt_only() {
    for home in HOMES {
        let starts = Starts::new();
        let policy = Policy::new().delay("5s").max_retries(1);
        let workflow =
            governed([starts.failing("s", 0, |call| call == 0)], vec![(policy::default(), policy)]);
        home.run(&workflow, 0..1).await;
        assert_eq!(starts.times(), [5_000, 5_000], "{home:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn work_begins_when_it_is_scheduled_or_at_once_if_that_is_past() {
    for home in HOMES {
        let starts = Starts::new();
        let now = RealClock::new().now();
        let at = now.saturating_add(Span::from_secs(3_600));
        let workflow = governed(
            [starts.step("later", 0), starts.step("past", 0)],
            vec![
                (policy::name("later"), Policy::new().scheduled_at(at)),
                (policy::name("past"), Policy::new().scheduled_at(Timestamp::from_millis(5))),
            ],
        );
        home.run(&workflow, 0..1).await;
        let times = starts.times();
        // The wall clock goes on while the test is set up.
        assert!(times[0] == 0 && (3_500_000..=3_600_000).contains(&times[1]), "{home:?}: {times:?}");
    }
}

/// What can stand in the way: `first` takes it, `second` wants it ten milliseconds later.
fn in_the_way(what: &str, starts: &Starts, first: &Starts, next: &Starts, policy: Policy) -> Workflow {
    let with = |policy: Policy| match what {
        "rate" => policy.shared_rate_limit("r", 1, "10s"),
        "slots" => policy.shared_concurrency_limit("c", 1),
        _ => policy.circuit_breaker(breaker(1)),
    };
    let fails = what == "breaker";
    let millis = if what == "slots" { 10_000 } else { 0 };
    governed(
        [
            first.failing("first", millis, move |_| fails),
            starts.step("go", 10),
            starts.step("second", 0).after("go"),
            next.step("next", 0).after("second"),
        ],
        vec![(policy::name("first"), with(Policy::new())), (policy::name("second"), with(policy))],
    )
}

#[tokio::test(start_paused = true)]
async fn work_that_cannot_begin_in_time_fails_then_and_is_never_called() {
    for home in HOMES {
        for what in ["rate", "slots", "breaker"] {
            for (policy, code, at) in [
                (Policy::new().queue_timeout("3s"), "queue_timeout", 3_010),
                (Policy::new().deadline("4s"), "deadline_exceeded", 4_000),
            ] {
                let (starts, first) = (Starts::new(), Starts::new());
                let workflow = in_the_way(what, &starts, &first, &Starts::new(), policy);
                let runs = home.run(&workflow, 0..1).await;
                let failures = runs[0].failures();
                let failed = failures.iter().find(|failed| failed.component == Some("second"));
                let failed = failed.unwrap_or_else(|| panic!("{home:?}, {what}, {code}: it did not fail"));
                assert_eq!(failed.failure.code, Some(code.into()), "{home:?}, {what}");
                assert_eq!(starts.times(), [0], "{home:?}, {what}, {code}: only `go` was called");
                // With slots the first one takes ten seconds.
                let over = if what == "slots" { 10_000 } else { at };
                assert_eq!(starts.now(), over, "{home:?}, {what}, {code}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_follows_work_that_waited_too_long_begins_then() {
    for home in HOMES {
        for what in ["rate", "slots", "breaker"] {
            let (starts, first, next) = (Starts::new(), Starts::new(), Starts::new());
            let policy = Policy::new().queue_timeout("3s").fallback_value(5);
            let workflow = in_the_way(what, &starts, &first, &next, policy);
            home.run(&workflow, 0..1).await;
            assert_eq!((starts.times(), next.all()), (vec![0], vec![(5, 3_010)]), "{home:?}, {what}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_is_not_let_in_in_time_fails_then() {
    for home in HOMES {
        for (policy, code, at) in [
            (Policy::new().queue_timeout("3s"), "queue_timeout", 3_000),
            (Policy::new().deadline("4s"), "deadline_exceeded", 4_000),
            (Policy::new().total_timeout("5s"), "timeout", 5_000),
        ] {
            let starts = Starts::new();
            // The one start of the rate is used up by the first attempt.
            let policy = policy.max_retries(1).rate_limit(1, "10s");
            let workflow = governed([starts.failing("s", 0, |_| true)], vec![(policy::default(), policy)]);
            let runs = home.run(&workflow, 0..1).await;
            let failures = runs[0].failures();
            assert_eq!(failures[0].failure.code, Some(code.into()), "{home:?}");
            assert_eq!((starts.times(), starts.now()), (vec![0], at), "{home:?}, {code}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_patience_of_a_queue_counts_over_the_limit_and_the_pool_together() {
    for home in HOMES {
        let (busy, starts) = (Starts::new(), Starts::new());
        // Let in after two seconds, and then the only slot of the pool is taken until four.
        let policy = Policy::new().queue_timeout("3s").shared_rate_limit("r", 1, "2s");
        let workflow = governed(
            [
                busy.step("first", 0),
                busy.step("busy", 4_000).after("first"),
                starts.step("second", 0).after("first"),
            ],
            vec![
                (policy::name("first"), Policy::new().shared_rate_limit("r", 1, "2s")),
                (policy::name("second"), policy),
            ],
        );
        let runs = home.run_with(&workflow, 0..1, 1).await;
        let failures = runs[0].failures();
        assert_eq!(failures.len(), 1, "{home:?}");
        assert_eq!(failures[0].failure.code, Some("queue_timeout".into()), "{home:?}");
        assert_eq!((starts.count(), starts.now()), (0, 4_000), "{home:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_was_too_long_is_a_failure_that_is_retried() {
    for home in HOMES {
        let (starts, first) = (Starts::new(), Starts::new());
        let policy = Policy::new().queue_timeout("4s").max_retries(1);
        let workflow = in_the_way("rate", &starts, &first, &Starts::new(), policy);
        let runs = home.run(&workflow, 0..1).await;
        let failures = runs[0].failures();
        assert_eq!((failures[0].attempts, failures[0].reason), (2, Some(ReasonCode::MaxRetriesReached)));
        assert_eq!(starts.now(), 8_010, "{home:?}");

        let (starts, first) = (Starts::new(), Starts::new());
        let policy = Policy::new().queue_timeout("4s").max_retries(2);
        let workflow = in_the_way("rate", &starts, &first, &Starts::new(), policy);
        let runs = home.run(&workflow, 0..1).await;
        // A start may wait a thousandth of the window longer than it must.
        let times = starts.times();
        assert_eq!(runs[0].failures().len(), 0, "{home:?}");
        assert!((10_000..=10_010).contains(&times[1]), "{home:?}: {times:?}");
    }
}
