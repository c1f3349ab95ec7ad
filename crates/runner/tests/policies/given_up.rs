//! Work that is not over in time, and futures that are dropped: what goes on, what is discarded, what is told.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::Duration;

use tidewheel_core::policy::{self, Backoff, Failure, OnFailure, Policy, Recovery};
use tidewheel_core::work::Context;
use tidewheel_core::workflow::{map, step};
use tidewheel_runner::{DriveOptions, Options, SyncWork, drive, react_until_satisfied, run_until_satisfied};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::world::{Calls, HandClock, built, flaky, governed, react, resolved};

/// Polls a future until nothing of it can go on by itself.
async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

/// A call that blocks until it is let go, one channel per call.
struct Gate {
    entered: mpsc::Sender<u32>,
    doors: Vec<Mutex<mpsc::Receiver<i64>>>,
}

fn gate(calls: usize) -> (Gate, mpsc::Receiver<u32>, Vec<mpsc::Sender<i64>>) {
    let (entered, told) = mpsc::channel();
    let (keys, doors) =
        (0..calls).map(|_| mpsc::channel()).map(|(key, door)| (key, Mutex::new(door))).unzip();
    (Gate { entered, doors }, told, keys)
}

impl Gate {
    fn pass(&self, call: u32) -> i64 {
        self.entered.send(call).unwrap();
        self.doors[call as usize].lock().unwrap().recv_timeout(Duration::from_secs(30)).unwrap()
    }
}

async fn entered(told: mpsc::Receiver<u32>, call: u32) -> mpsc::Receiver<u32> {
    tokio::task::spawn_blocking(move || {
        assert_eq!(told.recv_timeout(Duration::from_secs(30)).unwrap(), call);
        told
    })
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_late_result_of_an_attempt_that_was_given_up_is_not_that_of_the_next_attempt() {
    let (gate, told, keys) = gate(2);
    let (calls, over) = (Calls::default(), Arc::new(Mutex::new(None)));
    let (first_over, first_is_over) = oneshot::channel();
    *over.lock().unwrap() = Some(first_over);
    let counted = calls.clone();
    let blocks = step("blocks", move |_: i64| {
        let call = counted.one_more();
        let value = gate.pass(call);
        if call == 0 {
            over.lock().unwrap().take().unwrap().send(()).unwrap();
        }
        value
    });
    let workflow = governed([blocks], policy::default(), Policy::new().timeout("50ms").max_retries(1));
    let clock = HandClock::new();
    let mut run = workflow.run("r");
    let options = Options::new().clock(Arc::<HandClock>::clone(&clock));
    let driving = tokio::spawn(async move {
        react_until_satisfied(&mut run, 1_i64, options).await.unwrap();
        run
    });
    let told = entered(told, 0).await;
    // The timer is set before the work is called, so it fires now.
    clock.advance(50);
    let _told = entered(told, 1).await;
    keys[0].send(111).unwrap();
    first_is_over.await.unwrap();
    // The thread of the first attempt is about to say that it is over; it needs no more than a moment.
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    assert!(!driving.is_finished(), "the second attempt is still under way");
    keys[1].send(222).unwrap();
    let run = timeout(Duration::from_secs(30), driving).await.unwrap().unwrap();
    assert_eq!(run.results::<i64>("blocks").unwrap(), [222]);
    assert_eq!(calls.count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn blocking_work_past_its_timeout_is_told_so_and_the_run_goes_on_without_it() {
    let (release, held) = mpsc::channel::<()>();
    let held = Mutex::new(held);
    let (saw, seen) = mpsc::channel();
    let (enter, is_in) = oneshot::channel();
    let enter = Mutex::new(Some(enter));
    let stuck = step("stuck", move |context: Context, x: i64| {
        enter.lock().unwrap().take().unwrap().send(()).unwrap();
        held.lock().unwrap().recv_timeout(Duration::from_secs(30)).unwrap();
        saw.send(context.cancellation().is_cancelled()).unwrap();
        x
    });
    let workflow = governed(
        [stuck, step("after", |x: i64| x).after("stuck"), step("beside", |x: i64| x + 1)],
        policy::name("stuck"),
        Policy::new().timeout("50ms").on_failure(OnFailure::Skip),
    );
    let clock = HandClock::new();
    let mut run = workflow.run("r");
    let options = Options::new().clock(Arc::<HandClock>::clone(&clock)).max_concurrency(1);
    {
        let mut driven = pin!(react_until_satisfied(&mut run, 1_i64, options));
        assert!(timeout(Duration::ZERO, driven.as_mut()).await.is_err());
        is_in.await.unwrap();
        clock.advance(50);
        timeout(Duration::from_secs(30), driven).await.unwrap().unwrap();
    }
    assert_eq!(run.result::<i64>("beside").unwrap(), Some(2), "the slot was given to somebody else");
    assert_eq!(run.failures()[0].failure.code, Some("timeout".into()));
    assert!(run.failures()[0].skipped);
    release.send(()).unwrap();
    let seen = tokio::task::spawn_blocking(move || seen.recv_timeout(Duration::from_secs(30)).unwrap());
    assert!(seen.await.unwrap(), "the token was raised");
    assert_eq!(run.results::<i64>("stuck").unwrap(), Vec::<i64>::new(), "its result is discarded");
}

#[tokio::test(flavor = "multi_thread")]
async fn blocking_work_that_is_driven_by_hand_is_given_up_too() {
    let (release, held) = mpsc::channel::<()>();
    let held = Mutex::new(held);
    let (saw, seen) = oneshot::channel();
    let saw = Mutex::new(Some(saw));
    let (enter, is_in) = oneshot::channel();
    let enter = Mutex::new(Some(enter));
    let stuck = step("stuck", move |context: Context, x: i64| {
        enter.lock().unwrap().take().unwrap().send(()).unwrap();
        held.lock().unwrap().recv_timeout(Duration::from_secs(30)).unwrap();
        saw.lock().unwrap().take().unwrap().send(context.cancellation().is_cancelled()).unwrap();
        x
    });
    let mut run = built([stuck]).run("r");
    run.plan(1_i64);
    let clock = HandClock::new();
    let options = DriveOptions::new().clock(Arc::<HandClock>::clone(&clock));
    let policy = resolved(&Policy::new().timeout("50ms"));
    let driving = tokio::spawn(drive(run.prepare().remove(0), policy, options));
    is_in.await.unwrap();
    clock.advance(50);
    run.apply(driving.await.unwrap().unwrap());
    assert_eq!(run.failures()[0].failure.code, Some("timeout".into()));
    release.send(()).unwrap();
    assert!(seen.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn async_work_past_its_timeout_is_dropped() {
    struct Guard(Arc<AtomicBool>);
    impl Drop for Guard {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    for by_hand in [false, true] {
        let dropped = Arc::new(AtomicBool::new(false));
        let guarded = Arc::clone(&dropped);
        let never = step("never", move |x: i64| {
            let guard = Guard(Arc::clone(&guarded));
            async move {
                std::future::pending::<()>().await;
                drop(guard);
                x
            }
        });
        let policy = Policy::new().timeout("50ms");
        if by_hand {
            let mut run = built([never]).run("r");
            run.plan(1_i64);
            drive(run.prepare().remove(0), resolved(&policy), DriveOptions::new()).await.unwrap();
        } else {
            let (_, took) = react(&governed([never], policy::default(), policy), Options::new()).await;
            assert_eq!(took, 50);
        }
        assert!(dropped.load(Ordering::SeqCst), "by hand: {by_hand}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_dropped_while_it_waits_for_a_retry_can_be_driven_on() {
    for place in [SyncWork::Threads, SyncWork::Inline] {
        let calls = Calls::default();
        let policy = Policy::new().max_retries(5).backoff(Backoff::Fixed).base_delay("10s");
        let workflow = governed(
            [flaky("flaky", &calls, 2), step("after", |x: i64| x * 10).after("flaky")],
            policy::default(),
            policy,
        );
        let mut run = workflow.run("r");
        let options = Options::new().sync_work(place);
        let first = timeout(Duration::from_secs(5), react_until_satisfied(&mut run, 1_i64, options.clone()));
        assert!(first.await.is_err());
        assert_eq!(calls.count(), 1, "it waits");
        assert!(run.is_runnable());
        assert_eq!(run.clone().next_runnables().len(), 1, "it is offered again");
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(calls.count(), 1, "a timer of the dropped future does nothing");
        run_until_satisfied(&mut run, options).await.unwrap();
        assert_eq!(run.result::<i64>("after").unwrap(), Some(20));
        assert_eq!(calls.count(), 3);
    }
}

// Not paused: a clock that runs ahead would wake those who sleep too long.
#[tokio::test]
async fn nobody_sleeps_for_a_run_that_is_over() {
    for _ in 0..5 {
        // A function on a thread, so that its timeout is a timer and not a part of its task. It is over when
        // whoever serves the timers has had a chance to fall asleep.
        let (release, held) = mpsc::channel();
        let held = Mutex::new(held);
        let (entered, is_in) = oneshot::channel();
        let entered = Mutex::new(Some(entered));
        let waits = step("waits", move |x: i64| {
            entered.lock().unwrap().take().unwrap().send(()).unwrap();
            held.lock().unwrap().recv_timeout(Duration::from_secs(30)).unwrap();
            x
        });
        let workflow = governed([waits], policy::default(), Policy::new().timeout("1h"));
        let letting_go = tokio::spawn(async move {
            is_in.await.unwrap();
            settle().await;
            release.send(()).unwrap();
        });
        react(&workflow, Options::new()).await;
        letting_go.await.unwrap();
    }
    settle().await;
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_fallback_past_the_timeout_is_given_up_and_is_not_tried_again() {
    let calls = Calls::default();
    let counted = calls.clone();
    let policy = Policy::new().timeout("50ms").max_retries(1).fallback(move |_, _, failure: &Failure| {
        assert_eq!(failure.code, Some("timeout".into()));
        let counted = counted.clone();
        Recovery::run(move |x: i64| {
            counted.one_more();
            async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                x
            }
        })
    });
    let never = step("never", |x: i64| async move {
        std::future::pending::<()>().await;
        x
    });
    let (run, took) = react(&governed([never], policy::default(), policy), Options::new()).await;
    assert_eq!((took, calls.count()), (150, 1));
    let failures = run.failures();
    assert_eq!(failures[0].attempts, 2);
    assert!(failures[0].failure.message.contains("its fallback failed, too"), "{:?}", failures[0]);
}

#[test]
fn work_that_is_lost_with_its_runtime_is_not_tried_again() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let entered = runtime.enter();
    let never = step("never", |x: i64| async move {
        std::future::pending::<()>().await;
        x
    });
    let workflow = governed([never], policy::default(), Policy::new().max_retries(3));
    let mut run = workflow.run("r");
    {
        // Driven from outside the runtime, so that it can be shut down in between.
        let mut driven = pin!(react_until_satisfied(&mut run, 1_i64, Options::new()));
        let mut task = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(driven.as_mut().poll(&mut task).is_pending());
        drop(entered);
        runtime.shutdown_timeout(Duration::from_secs(30));
        assert!(driven.as_mut().poll(&mut task).is_ready(), "nobody is there to make another attempt");
    }
    assert_eq!(run.failures()[0].failure.code, Some("lost".into()));
    assert_eq!(run.failures()[0].attempts, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn threads_are_lost_up_to_a_limit_and_then_work_that_could_block_more_is_refused() {
    // More than the runtime has threads for, all at once and for good.
    const MANY: usize = 1_000;
    let (door, calls) = (Arc::new((Mutex::new(false), Condvar::new())), Calls::default());
    let (held, counted) = (Arc::clone(&door), calls.clone());
    let blocks = map("each", move |x: usize| {
        counted.one_more();
        let (is_open, changed) = &*held;
        drop(changed.wait_while(is_open.lock().unwrap(), |is_open| !*is_open).unwrap());
        x
    });
    let policy = Policy::new().timeout("10ms").on_failure(OnFailure::Skip);
    let workflow = governed([blocks], policy::name("each"), policy);
    let clock = HandClock::new();
    let options = Options::new().clock(Arc::<HandClock>::clone(&clock));
    let driving = tokio::spawn(async move {
        let mut run = workflow.run("r");
        react_until_satisfied(&mut run, (0..MANY).collect::<Vec<_>>(), options).await.unwrap();
        run
    });
    let moving = async {
        while !driving.is_finished() {
            clock.advance(10);
            tokio::task::yield_now().await;
        }
    };
    let in_time = timeout(Duration::from_secs(60), moving).await;
    *door.0.lock().unwrap() = true;
    door.1.notify_all();
    in_time.expect("nobody waits for a thread that does not come");
    let run = driving.await.unwrap();
    let with_code = |code: &'static str| {
        run.failures().iter().filter(|failed| failed.failure.code == Some(code.into())).count()
    };
    assert_eq!(with_code("timeout") + with_code("abandoned_threads"), MANY);
    assert!(with_code("timeout") >= 256, "{}", with_code("timeout"));
    assert!(with_code("abandoned_threads") >= MANY - 512, "{}", with_code("abandoned_threads"));
    assert!(calls.count() as usize >= with_code("timeout"), "whatever is past its time was called");
}
