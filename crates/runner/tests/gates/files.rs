//! What holds for all runners of one database, each with a connection of its own, and after one of them is gone.

use std::sync::Arc;

use tidewheel_core::policy::{self, Policy};
use tidewheel_core::time::{Span, Timestamp};
use tidewheel_runner::Runner;
use tidewheel_store::{Clock, Sqlite, Status};

use crate::world::{File, Starts, assert_rate, breaker, crash, governed, settle, start, until};

/// Moves the clock in small steps until so many have begun.
async fn advance_until(file: &File, stores: &[&Sqlite], starts: &Starts, count: usize) {
    for _ in 0..400 {
        settle(stores).await;
        if starts.count() >= count {
            return;
        }
        file.advance(100);
    }
    panic!("only {} of {count} began: {:?}", starts.count(), starts.all());
}

#[tokio::test]
async fn a_rate_holds_over_runners_with_random_arrivals_retries_and_restarts() {
    let file = File::new();
    let starts = Starts::on(&file);
    let policy = Policy::new().max_retries(20).rate_limit(3, "1s");
    // One call of five fails, so that retries are among the starts.
    let work = starts.failing("s", 0, |call| call % 5 == 4);
    let workflow = governed([work], vec![(policy::default(), policy)]);
    let open = || async {
        let (runner, store) = file.open().await;
        runner.register(&workflow).unwrap();
        (runner, store)
    };
    let (mut a, mut store_a) = open().await;
    let (b, store_b) = open().await;
    let seed = 0x5eed_u64;
    let mut random = seed;
    let mut next = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let mut count = 0;
    for round in 0..14 {
        for _ in 0..next(4) {
            let runner = if next(2) == 0 { &a } else { &b };
            start(runner, format!("r{count}"), &workflow, count).await;
            count += 1;
        }
        settle(&[&store_a, &store_b]).await;
        if round % 5 == 3 {
            crash(a, &store_a).await;
            (a, store_a) = open().await;
        }
        file.advance(next(600));
    }
    let all = usize::try_from(count).unwrap();
    advance_until(&file, &[&store_a, &store_b], &starts, all).await;
    for run in 0..count {
        let run = b.get(format!("r{run}")).await.unwrap();
        for _ in 0..100 {
            if run.status().await.unwrap() == Status::Completed {
                break;
            }
            settle(&[&store_a, &store_b]).await;
            file.advance(200);
        }
        assert_eq!(run.status().await.unwrap(), Status::Completed, "seed {seed}");
    }
    assert!(starts.count() > all, "retries are among them");
    assert_rate(starts.times(), 3, 1_000);
}

#[tokio::test]
async fn slots_hold_over_runners_and_come_back_from_one_that_is_gone() {
    let file = File::new();
    let starts = Starts::on(&file);
    let policy = Policy::new().concurrency_limit(2);
    let workflow = governed([starts.step("s", 60_000)], vec![(policy::default(), policy)]);
    let ((a, store_a), (b, store_b)) = (file.open().await, file.open().await);
    for input in 0..2 {
        start(&a, format!("a{input}"), &workflow, input).await;
    }
    until(|| starts.count() == 2).await;
    for input in 10..13 {
        start(&b, format!("b{input}"), &workflow, input).await;
    }
    settle(&[&store_a, &store_b]).await;
    file.advance(30_000);
    settle(&[&store_a, &store_b]).await;
    assert_eq!(starts.count(), 2, "both slots are taken");

    crash(a, &store_a).await;
    file.advance(2_000);
    until(|| starts.count() >= 4).await;
    settle(&[&store_b]).await;
    let first = starts.all()[2..].to_vec();
    assert_eq!(first.len(), 2, "as many as were lost, and no more: {first:?}");
    let (c, store_c) = file.open().await;
    c.register(&workflow).unwrap();
    for _ in 0..3 {
        settle(&[&store_b, &store_c]).await;
        file.advance(60_000);
        settle(&[&store_b, &store_c]).await;
        file.advance(2_000);
    }
    until(|| starts.count() >= 7).await;
    assert_eq!(starts.count(), 7, "what was lost ran again, and everything once");
    drop((b, c));
}

#[tokio::test]
async fn runners_share_a_breaker_and_one_that_closes_it_lets_the_others_go_on() {
    let file = File::new();
    let (bad, good) = (Starts::on(&file), Starts::on(&file));
    let rules = || vec![(policy::default(), Policy::new().circuit_breaker(breaker(1)))];
    let failing = crate::world::named("bad", [bad.failing("s", 0, |_| true)], rules());
    let other = crate::world::named("good", [good.step("t", 3_000)], rules());
    let ((a, store_a), (b, store_b)) = (file.open().await, file.open().await);
    let stores = [&*store_a, &*store_b];
    start(&a, "bad", &failing, 0).await;
    until(|| bad.count() == 1).await;
    settle(&stores).await;
    start(&a, "a", &other, 1).await;
    start(&b, "b", &other, 2).await;
    settle(&stores).await;
    assert_eq!(good.count(), 0, "it is open for both");
    file.advance(10_000);
    settle(&stores).await;
    assert_eq!(good.times(), [11_000], "one probe, whoever is quicker");
    file.advance(3_000);
    settle(&stores).await;
    // The other one looks now and then: nobody tells it.
    for _ in 0..8 {
        file.advance(250);
        settle(&stores).await;
    }
    assert_eq!(good.count(), 2, "it need not wait for the end of the probes");
    drop((a, b));
}

#[tokio::test]
async fn runners_share_a_retry_budget() {
    let file = File::new();
    let starts = Starts::on(&file);
    let policy = Policy::new().max_retries(9).retry_budget("b", 2, "1h");
    let workflow = governed([starts.failing("s", 0, |_| true)], vec![(policy::default(), policy)]);
    let ((a, store_a), (b, store_b)) = (file.open().await, file.open().await);
    start(&a, "a", &workflow, 1).await.wait().await.unwrap();
    assert_eq!(starts.count(), 3);
    start(&b, "b", &workflow, 2).await.wait().await.unwrap();
    assert_eq!(starts.count(), 4, "nothing is left for the second one");
    drop((a, b, store_a, store_b));
}

/// Opens a runner again in the middle of a wait, and says when the work began.
async fn begins_after_a_restart(policy: impl Fn(Timestamp) -> Policy) -> Vec<u64> {
    let file = File::new();
    let starts = Starts::on(&file);
    let at = file.clock.now().saturating_add(Span::from_secs(100));
    let workflow = governed([starts.step("s", 50_000)], vec![(policy::default(), policy(at))]);
    let open = || async {
        let (runner, store) = file.open().await;
        runner.register(&workflow).unwrap();
        (runner, store)
    };
    let reopened = |runner: Runner, store: Arc<Sqlite>| async move {
        crash(runner, &store).await;
    };
    let (runner, store) = open().await;
    start(&runner, "r", &workflow, 1).await;
    file.advance(40_000);
    settle(&[&store]).await;
    reopened(runner, store).await;
    let (runner, store) = open().await;
    settle(&[&store]).await;
    file.advance(59_999);
    settle(&[&store]).await;
    assert_eq!(starts.count(), 0, "it is not time yet");
    file.advance(1);
    until(|| starts.count() == 1).await;
    settle(&[&store]).await;
    // In the middle of the attempt.
    file.advance(7_000);
    settle(&[&store]).await;
    reopened(runner, store).await;
    let (runner, store) = open().await;
    until(|| starts.count() == 2).await;
    file.advance(50_000);
    let run = runner.get("r").await.unwrap();
    assert_eq!(run.wait().await.unwrap(), Status::Completed);
    drop((runner, store));
    starts.times()
}

#[tokio::test]
async fn a_wait_for_a_time_survives_a_restart_and_is_not_waited_again() {
    let began = [101_000, 108_000];
    assert_eq!(begins_after_a_restart(|_| Policy::new().delay("100s")).await, began);
    assert_eq!(begins_after_a_restart(|at| Policy::new().scheduled_at(at)).await, began);
}
