//! What a log keeps of attempts, and that it is enough: replayed, and decided again.

use std::sync::Arc;
use std::time::Duration;

use tidewheel_core::Outcome;
use tidewheel_core::decide::{Action, ReasonCode, Record};
use tidewheel_core::event::Event;
use tidewheel_core::policy::{self, Backoff, Failure, Jitter, OnFailure, Policy, Recovery};
use tidewheel_core::run::Run;
use tidewheel_core::time::Timestamp;
use tidewheel_core::workflow::{Workflow, map, reduce, rule, step};
use tidewheel_runner::DriveOptions;
use tidewheel_runner::driver::{Course, Known, Turn};

use crate::world::{Calls, HandClock, flaky, governed, logged, picture};

/// What a log says of the attempts at the only piece of work in it, in short.
fn told(log: &[Event]) -> Vec<String> {
    log.iter()
        .filter_map(|event| match event {
            Event::RunnableDispatched { attempt, .. } => Some(format!("dispatched {attempt}")),
            Event::AttemptFailed { failed, .. } => {
                let decision = failed.decided.decision;
                let wait = decision.action.due()?.as_nanos() - failed.decided.situation.now.as_nanos();
                Some(format!(
                    "failed {}: {} {} {} ms",
                    failed.failure,
                    decision.action.name(),
                    decision.reason.name(),
                    wait / 1_000_000
                ))
            }
            Event::RunnableCompleted { attempts, recovered, .. } => {
                Some(format!("completed {attempts} {}", recovered.is_some()))
            }
            Event::RunnableFailed { attempts, decided, .. } => {
                Some(format!("failed {attempts} {}", decided.as_ref()?.decision.reason.name()))
            }
            Event::RunnableSkipped { attempts, decided, .. } => {
                Some(format!("skipped {attempts} {}", decided.as_ref()?.decision.reason.name()))
            }
            _ => None,
        })
        .collect()
}

fn records(log: &[Event]) -> Vec<Record> {
    log.iter()
        .filter_map(|event| match event {
            Event::AttemptFailed { failed, .. } => Some(failed.decided),
            Event::RunnableCompleted { recovered, .. } => recovered.as_ref().map(|last| last.decided),
            Event::RunnableFailed { decided, .. } | Event::RunnableSkipped { decided, .. } => {
                decided.as_deref().copied()
            }
            _ => None,
        })
        .collect()
}

/// Every decision comes out again as it was logged, every line can be read, and every prefix is a run.
fn proves_itself(workflow: &Workflow, live: &Run, log: &[Event]) {
    for record in records(log) {
        assert_eq!(record.redecided().to_json(), record.to_json());
        let read = Record::from_json(&record.to_json()).unwrap();
        assert_eq!(read.redecided().to_json(), record.to_json());
    }
    let lines: Vec<String> = log.iter().map(|event| event.to_json(workflow).unwrap()).collect();
    for length in 0..=log.len() {
        let replayed = Run::replay(workflow, "r", &log[..length]).unwrap();
        let read = Run::replay_json(workflow, "r", lines[..length].iter().map(String::as_str)).unwrap();
        assert_eq!(picture(&replayed), picture(&read), "{length}");
    }
    let replayed = Run::replay(workflow, "r", log).unwrap();
    assert_eq!(picture(&replayed), picture(live));
}

#[tokio::test(start_paused = true)]
async fn each_attempt_is_dispatched_and_each_piece_ends_once() {
    let retry = || Policy::new().max_retries(2).backoff(Backoff::Linear).base_delay("100ms");
    for (failures, policy, wanted) in [
        (0, retry(), vec!["dispatched 0", "completed 1 false"]),
        (
            2,
            retry(),
            vec![
                "dispatched 0",
                "failed [503] busy: RETRY_AT SCHED_RETRY_SCHEDULED 100 ms",
                "dispatched 1",
                "failed [503] busy: RETRY_AT SCHED_RETRY_SCHEDULED 200 ms",
                "dispatched 2",
                "completed 3 false",
            ],
        ),
        (
            9,
            Policy::new().max_retries(1),
            vec![
                "dispatched 0",
                "failed [503] busy: RETRY_AT SCHED_RETRY_SCHEDULED 0 ms",
                "dispatched 1",
                "failed 2 SCHED_MAX_RETRIES_REACHED",
            ],
        ),
        (
            9,
            Policy::new().on_failure(OnFailure::Skip),
            vec!["dispatched 0", "skipped 1 SCHED_MAX_RETRIES_REACHED"],
        ),
        (9, Policy::new().fallback_value(5), vec!["dispatched 0", "completed 1 true"]),
        (9, retry().non_retryable_errors([503]), vec!["dispatched 0", "failed 1 SCHED_NOT_RETRYABLE"]),
        (
            9,
            Policy::new().max_retries(1).fallback(|_, _, _| {
                Recovery::run(|_: i64| -> Result<i64, Failure> { Err(Failure::new("nor this")) })
            }),
            vec![
                "dispatched 0",
                "failed [503] busy: RETRY_AT SCHED_RETRY_SCHEDULED 0 ms",
                "dispatched 1",
                "failed 2 SCHED_MAX_RETRIES_REACHED",
            ],
        ),
    ] {
        let calls = Calls::default();
        let workflow = governed([flaky("flaky", &calls, failures)], policy::default(), policy);
        let (run, log) = logged(workflow.run("r"), 1, DriveOptions::new()).await;
        assert_eq!(told(&log), wanted);
        proves_itself(&workflow, &run, &log);
    }
}

#[tokio::test(start_paused = true)]
async fn every_prefix_of_a_log_with_attempts_replays() {
    let (calls, other) = (Calls::default(), Calls::default());
    let counted = other.clone();
    let workflow = Workflow::new("w")
        .add(flaky("flaky", &calls, 2))
        .add(step("list", |x: i64| vec![x, x + 1, x + 2]).after("flaky"))
        .add(
            map("each", move |x: i64| if counted.one_more() < 2 { Err(Failure::new("busy")) } else { Ok(x) })
                .after("list"),
        )
        .add(reduce("sum", 0_i64, |sum: i64, x: i64| sum + x).after("each"))
        .add(rule("rule").when(|x: &i64| -> bool { panic!("about {x}") }).then(|x: i64| x))
        .add(step("slow", |x: i64| async move {
            tokio::time::sleep(Duration::from_secs(5)).await;
            x
        }))
        .add(step("after", |x: i64| x).after("slow"))
        .policy(policy::name("slow"), Policy::new().timeout("1s").on_failure(OnFailure::Skip))
        .policy(
            policy::default(),
            Policy::new()
                .max_retries(3)
                .backoff(Backoff::exponential())
                .jitter(Jitter::Equal)
                .base_delay("100ms"),
        )
        .build()
        .unwrap();
    let (run, log) = logged(workflow.run("r"), 1, DriveOptions::new()).await;
    assert_eq!(run.result::<i64>("sum").unwrap(), Some(2 + 3 + 4));
    assert_eq!(records(&log).len(), 2 + 2 + 4 + 1);
    proves_itself(&workflow, &run, &log);
}

/// A scheduler that keeps every step of the way, as one with a store does: attempt by attempt.
#[tokio::test]
async fn a_log_that_is_kept_attempt_by_attempt_is_the_state_at_every_step() {
    let (calls, clock) = (Calls::default(), HandClock::new());
    let policy =
        Policy::new().max_retries(3).backoff(Backoff::Linear).base_delay("100ms").total_timeout("10s");
    let workflow = governed([flaky("flaky", &calls, 2)], policy::default(), policy);
    let mut run = workflow.run("r");
    let now = || tidewheel_store::Clock::now(clock.as_ref());
    clock.advance(1_000);
    let mut log = run.plan_accepted(tidewheel_core::fact::Value::new(1_i64), now(), None).to_vec();
    let mut runnable = run.prepare_at(now()).remove(0);
    log.extend_from_slice(run.last_events());
    loop {
        let ticket = runnable.ticket();
        // A scheduler that lost everything but the log knows as much as one that did not.
        let replayed = Run::replay(&workflow, "r", &log).unwrap();
        assert_eq!(picture(&replayed), picture(&run));
        assert_eq!(replayed.dispatches(&ticket), run.dispatches(&ticket));
        let mut course = Course::new(&runnable, Arc::clone(runnable.policy()), None, now());
        let Turn::Run { runnable: attempt, until } = course.begin(runnable.clone(), now()) else { panic!() };
        assert_eq!(until.unwrap().at, Timestamp::from_millis(11_000), "counted from the first attempt");
        let outcome = attempt.execute().into_outcome();
        clock.advance(10);
        match course.end(runnable, outcome, Known::default(), now()) {
            Turn::Retry(failed) => {
                let due = failed.due();
                log.extend_from_slice(run.fail_attempt(&ticket, *failed));
                let replayed = Run::replay(&workflow, "r", &log).unwrap();
                assert_eq!(picture(&replayed), picture(&run));
                let waits = replayed.waits();
                assert_eq!(waits.len(), 1);
                assert_eq!(waits[0].until, Some(due));
                clock.advance((due.as_nanos() - now().as_nanos()) / 1_000_000);
                runnable = run.prepare_retry(&ticket, now()).unwrap();
                log.extend_from_slice(run.last_events());
            }
            Turn::Over(executed) => {
                assert!(matches!(executed.outcome(), Outcome::Completed(_)));
                log.extend_from_slice(run.apply(*executed));
                break;
            }
            Turn::Run { .. } | Turn::Pause(_) => panic!("there is no fallback, and nobody waits"),
        }
    }
    assert_eq!(
        told(&log),
        [
            "dispatched 0",
            "failed [503] busy: RETRY_AT SCHED_RETRY_SCHEDULED 100 ms",
            "dispatched 1",
            "failed [503] busy: RETRY_AT SCHED_RETRY_SCHEDULED 200 ms",
            "dispatched 2",
            "completed 3 false",
        ]
    );
    proves_itself(&workflow, &run, &log);
    let first = records(&log)[0];
    assert_eq!(first.decision.reason, ReasonCode::RetryScheduled);
    assert_eq!(first.decision.action, Action::RetryAt(Timestamp::from_millis(1_110)));
    assert_eq!(first.situation.step_started_at, Timestamp::from_millis(1_000));
}
