//! Work that has to give signs of life: whoever is silent for too long is given up.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use tidewheel_core::Outcome;
use tidewheel_core::policy::{self, OnFailure, Policy};
use tidewheel_core::work::Context;
use tidewheel_core::workflow::{Component, step};
use tidewheel_runner::{
    DriveOptions, Options, Runner, RunnerOptions, SyncWork, drive, react_until_satisfied,
};
use tokio::time::{Instant, sleep, timeout};

use crate::world::{Calls, HandClock, flaky_sync, governed, react, resolved};

/// Works for three seconds and gives a sign of life every 400 milliseconds, so many times.
fn beating(calls: &Calls, beats: u32) -> Component {
    let calls = calls.clone();
    step("beating", move |context: Context, x: i64| {
        calls.one_more();
        async move {
            for beat in 0..8 {
                if beat < beats {
                    context.heartbeat();
                }
                sleep(Duration::from_millis(400)).await;
            }
            x
        }
    })
}

fn alive() -> Policy {
    Policy::new().heartbeat("1s")
}

#[tokio::test(start_paused = true)]
async fn signs_of_life_keep_work_going_and_silence_ends_it() {
    for (beats, attempts, expected) in [(8, 1, 3_200), (3, 2, 2 * 1_800), (0, 2, 2 * 1_000)] {
        let calls = Calls::default();
        let workflow = governed([beating(&calls, beats)], policy::default(), alive().max_retries(1));
        let (run, took) = react(&workflow, Options::new()).await;
        assert_eq!((took, calls.count()), (expected, attempts), "{beats} beats");
        assert_eq!(run.failures().len(), usize::from(attempts > 1));
        for failed in run.failures() {
            assert_eq!(failed.failure.code, Some("heartbeat".into()));
            assert_eq!(failed.failure.message, "gave no sign of life for 1s");
        }

        // The same in a runner.
        let (runner, began) = (Runner::in_memory(RunnerOptions::new()).await.unwrap(), Instant::now());
        let durable = runner.run("r", &workflow, 1_i64).await.unwrap();
        let result = durable.result::<i64>("beating").await;
        assert_eq!(began.elapsed().as_millis(), expected, "{beats} beats");
        assert_eq!(result.is_ok(), attempts == 1, "{result:?}");

        // And by hand.
        let mut run = governed([beating(&calls, beats)], policy::default(), Policy::new()).run("r");
        run.plan(1_i64);
        let (policy, began) = (resolved(&alive().max_retries(1)), Instant::now());
        let executed = drive(run.prepare().remove(0), policy, DriveOptions::new()).await.unwrap();
        assert_eq!(began.elapsed().as_millis(), expected, "{beats} beats");
        assert_eq!(matches!(executed.outcome(), Outcome::Completed(_)), attempts == 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_sign_of_life_is_no_longer_life_than_the_timeout() {
    let calls = Calls::default();
    let workflow = governed([beating(&calls, 8)], policy::default(), alive().timeout("2s"));
    let (run, took) = react(&workflow, Options::new()).await;
    assert_eq!((took, run.failures()[0].failure.code.clone()), (2_000, Some("timeout".into())));
}

#[tokio::test(start_paused = true)]
async fn work_that_cannot_give_signs_of_life_has_to_be_over_in_that_time() {
    for (millis, is_over) in [(900, true), (1_100, false)] {
        let slow = step("slow", move |x: i64| async move {
            sleep(Duration::from_millis(millis)).await;
            x
        });
        let (run, took) = react(&governed([slow], policy::default(), alive()), Options::new()).await;
        assert_eq!((took, run.failures().is_empty()), (u128::from(millis.min(1_000)), is_over));
    }
}

#[tokio::test(start_paused = true)]
async fn a_sign_of_life_that_nobody_waits_for_does_nothing() {
    let calls = Calls::default();
    let (run, took) =
        react(&governed([beating(&calls, 8)], policy::default(), Policy::new()), Options::new()).await;
    assert_eq!((took, run.result::<i64>("beating").unwrap()), (3_200, Some(1)));
}

/// A blocking step that gives a sign of life whenever it is told to, and says so.
struct Puppet {
    told: mpsc::Sender<()>,
    says: mpsc::Receiver<bool>,
}

impl Puppet {
    fn new() -> (Component, Self) {
        let (told, hears) = mpsc::channel::<()>();
        let (says, heard) = mpsc::channel();
        let hears = Mutex::new(hears);
        let blocks = step("blocks", move |context: Context, x: i64| {
            let hears = hears.lock().unwrap();
            says.send(false).unwrap();
            while hears.recv_timeout(Duration::from_secs(30)).is_ok() {
                context.heartbeat();
                says.send(context.cancellation().is_cancelled()).unwrap();
            }
            x
        });
        (blocks, Self { told, says: heard })
    }

    /// Returns whether it was asked to stop, when it says something.
    async fn said(self) -> (Self, bool) {
        let waiting = tokio::task::spawn_blocking(move || {
            let is_cancelled = self.says.recv_timeout(Duration::from_secs(30)).unwrap();
            (self, is_cancelled)
        });
        waiting.await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blocking_piece_that_falls_silent_is_given_up_and_its_thread_is_counted() {
    let (blocks, puppet) = Puppet::new();
    let policy = alive().on_failure(OnFailure::Skip);
    let workflow = governed([blocks], policy::default(), policy);
    let clock = HandClock::new();
    let options = RunnerOptions::new().clock(Arc::<HandClock>::clone(&clock));
    let runner = Runner::in_memory(options).await.unwrap();
    let run = runner.run("r", &workflow, 1_i64).await.unwrap();
    let (mut puppet, _) = puppet.said().await;
    for _ in 0..4 {
        clock.advance(900);
        puppet.told.send(()).unwrap();
        let (again, is_cancelled) = puppet.said().await;
        assert!(!is_cancelled, "it is alive");
        puppet = again;
    }
    clock.advance(1_000);
    timeout(Duration::from_secs(30), run.wait()).await.unwrap().unwrap();
    assert_eq!(runner.abandoned_threads(), 1);
    puppet.told.send(()).unwrap();
    let (puppet, is_cancelled) = puppet.said().await;
    assert!(is_cancelled, "the token was raised");
    drop(puppet);
    let is_back = async {
        while runner.abandoned_threads() > 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(30), is_back).await.unwrap();
}

#[tokio::test]
async fn blocking_work_inline_cannot_be_given_up_so_its_heartbeat_is_refused() {
    let calls = Calls::default();
    let workflow = governed([flaky_sync("blocks", &calls, 0)], policy::default(), alive());
    let options = Options::new().sync_work(SyncWork::Inline);
    let problems = react_until_satisfied(&mut workflow.run("r"), 1_i64, options).await.unwrap_err();
    assert_eq!(problems.all()[0].path, "blocks.heartbeat");
    assert!(problems.to_string().contains("take the heartbeat away"), "{problems}");
    assert_eq!(calls.count(), 0);
}
