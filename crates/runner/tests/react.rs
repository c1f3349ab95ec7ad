//! The parallel loop as people meet it: what runs beside what, where it runs, and what failures do.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::future::pending;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::task::{Context, Waker};
use std::thread::ThreadId;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tidewheel_core::event::Absence;
use tidewheel_core::workflow::{Workflow, accumulator, map, reduce, rule, step};
use tidewheel_runner::{Options, SyncWork, react_until_satisfied, run_until_satisfied};
use tokio::time::{Instant, sleep, timeout};

const EVERYWHERE: [SyncWork; 2] = [SyncWork::Threads, SyncWork::Inline];

fn at(place: SyncWork) -> Options {
    Options::new().sync_work(place)
}

fn waits(ms: u64) -> impl Fn(i64) -> std::pin::Pin<Box<dyn Future<Output = i64> + Send>> + Send + Sync {
    move |x| {
        Box::pin(async move {
            sleep(Duration::from_millis(ms)).await;
            x + 1
        })
    }
}

/// Three steps that wait 200, 300 and 150 ms, and one after them.
fn three_checks() -> Workflow {
    Workflow::new("checks")
        .add(step("a", waits(200)))
        .add(step("b", waits(300)))
        .add(step("c", waits(150)))
        .add(step("sum", |a: i64, b: i64, c: i64| a + b + c).after(["a", "b", "c"]))
        .build()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn independent_async_steps_take_as_long_as_the_slowest() {
    for place in EVERYWHERE {
        let mut run = three_checks().run("r");
        let start = Instant::now();
        react_until_satisfied(&mut run, 1_i64, at(place)).await.unwrap();
        assert_eq!(start.elapsed(), Duration::from_millis(300), "{place:?}");
        assert_eq!(run.result::<i64>("sum").unwrap(), Some(6));
        assert!(!run.is_runnable());
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_one_runs_one_piece_at_a_time() {
    for (limit, took) in [(0, 650), (1, 650), (2, 350), (3, 300)] {
        for place in EVERYWHERE {
            let mut run = three_checks().run("r");
            let start = Instant::now();
            react_until_satisfied(&mut run, 1_i64, at(place).max_concurrency(limit)).await.unwrap();
            assert_eq!(start.elapsed(), Duration::from_millis(took), "{limit} {place:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_result_wakes_starts_at_once_and_waits_for_nothing_else() {
    for place in EVERYWHERE {
        let workflow = Workflow::new("w")
            .add(step("slow", waits(1_000)))
            .add(step("fast", waits(100)))
            .add(step("next", waits(100)).after("fast"))
            .add(step("last", waits(700)).after("next"))
            .build()
            .unwrap();
        let mut run = workflow.run("r");
        let start = Instant::now();
        react_until_satisfied(&mut run, 0_i64, at(place)).await.unwrap();
        assert_eq!(start.elapsed(), Duration::from_millis(1_000), "{place:?}");
        assert_eq!(run.result::<i64>("last").unwrap(), Some(3));
    }
}

#[tokio::test]
async fn the_limit_is_reached_and_never_exceeded() {
    for place in EVERYWHERE {
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (counted, seen) = (Arc::clone(&now), Arc::clone(&most));
        let together = Arc::new(tokio::sync::Barrier::new(5));
        let item = move |x: i64| {
            let (counted, seen) = (Arc::clone(&counted), Arc::clone(&seen));
            let together = Arc::clone(&together);
            async move {
                seen.fetch_max(counted.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                // Nobody gets further before five are under way.
                together.wait().await;
                counted.fetch_sub(1, Ordering::SeqCst);
                x
            }
        };
        let (counted, seen) = (Arc::clone(&now), Arc::clone(&most));
        let sync = move |x: i64| {
            seen.fetch_max(counted.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            counted.fetch_sub(1, Ordering::SeqCst);
            x
        };
        let workflow =
            Workflow::new("w").add(map("each", item)).add(step("then", sync).after("each")).build().unwrap();
        let mut run = workflow.run("r");
        let items: Vec<i64> = (0..200).collect();
        let driven = react_until_satisfied(&mut run, items.clone(), at(place).max_concurrency(5));
        timeout(Duration::from_secs(30), driven).await.unwrap().unwrap();
        assert_eq!(run.results::<i64>("then").unwrap(), items);
        assert_eq!(most.load(Ordering::SeqCst), 5, "{place:?}");
    }
}

#[tokio::test]
async fn blocking_steps_run_beside_each_other_and_beside_the_runtime() {
    let together = Arc::new(Barrier::new(3));
    let (to_step, from_task) = mpsc::channel::<i64>();
    let from_task = std::sync::Mutex::new(from_task);
    let mut builder = Workflow::new("w").add(step("waits_for_a_task", move |x: i64| {
        x + from_task.lock().unwrap().recv_timeout(Duration::from_secs(30)).unwrap()
    }));
    for name in ["a", "b", "c"] {
        let together = Arc::clone(&together);
        builder = builder.add(step(name, move |x: i64| {
            together.wait();
            x
        }));
    }
    let mut run = builder.build().unwrap().run("r");
    let task = tokio::spawn(async move { to_step.send(40) });
    timeout(Duration::from_secs(30), react_until_satisfied(&mut run, 2_i64, Options::new()))
        .await
        .unwrap()
        .unwrap();
    task.await.unwrap().unwrap();
    assert_eq!(run.result::<i64>("waits_for_a_task").unwrap(), Some(42));
    assert_eq!(run.productions().len(), 4);
}

#[tokio::test]
async fn many_steps_that_block_each_get_a_thread() {
    const MANY: usize = 64;
    let together = Arc::new(Barrier::new(MANY));
    let wait = move |x: usize| {
        together.wait();
        x
    };
    let mut run = Workflow::new("w").add(map("each", wait)).build().unwrap().run("r");
    let items: Vec<usize> = (0..MANY).collect();
    react_until_satisfied(&mut run, items.clone(), Options::new()).await.unwrap();
    assert_eq!(run.results::<usize>("each").unwrap(), items);
}

/// Who ran a step, without a type that serde does not know.
fn thread() -> String {
    let id: ThreadId = std::thread::current().id();
    format!("{id:?}")
}

#[tokio::test]
async fn inline_work_stays_on_the_thread_and_other_work_leaves_it() {
    let workflow = Workflow::new("w").add(step("where", |_: i64| thread())).build().unwrap();
    for (place, stays) in [(SyncWork::Inline, true), (SyncWork::Threads, false)] {
        let mut run = workflow.run("r");
        react_until_satisfied(&mut run, 1_i64, at(place)).await.unwrap();
        assert_eq!(run.result::<String>("where").unwrap().unwrap() == thread(), stays, "{place:?}");
    }
}

#[tokio::test]
async fn a_long_row_of_inline_steps_lets_other_tasks_have_their_turn() {
    let ticks = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&ticks);
    let ticking = tokio::spawn(async move {
        loop {
            counted.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    let mut run = Workflow::new("w").add(map("each", |x: i64| x + 1)).build().unwrap().run("r");
    react_until_satisfied(&mut run, (0..5_000).collect::<Vec<i64>>(), at(SyncWork::Inline)).await.unwrap();
    ticking.abort();
    assert_eq!(run.fact_count("each").unwrap(), 5_000);
    assert!(ticks.load(Ordering::Relaxed) > 10);
}

#[tokio::test]
async fn a_panic_is_the_failure_of_its_step_wherever_it_happens() {
    for place in EVERYWHERE {
        let workflow = Workflow::new("w")
            .add(step("sync", |_: i64| -> i64 { panic!("at once") }))
            .add(step("early", |x: i64| async move { if x > 0 { panic!("before the await") } else { x } }))
            .add(step("late", |x: i64| async move {
                tokio::task::yield_now().await;
                if x > 0 { panic!("after the await") } else { x }
            }))
            .add(reduce("fold", 0_i64, |_: i64, _: i64| -> i64 { panic!("in a reduce") }).after("list"))
            .add(step("list", |x: i64| vec![x]))
            .add(accumulator("state", 0_i64, |_: i64, _: i64| -> i64 { panic!("in a state") }))
            .add(rule("rule").when(|_: &i64| -> bool { panic!("in a condition") }).then(|x: i64| x))
            .add(step("after", |x: i64| x).after("late"))
            .add(step("good", |x: i64| x + 1))
            .build()
            .unwrap();
        let mut run = workflow.run("r");
        react_until_satisfied(&mut run, 1_i64, at(place)).await.unwrap();
        let mut failed: Vec<_> = run
            .failures()
            .iter()
            .map(|failed| (failed.component.unwrap(), failed.failure.message.as_str()))
            .collect();
        failed.sort_unstable();
        assert_eq!(
            failed,
            [
                ("early", "before the await"),
                ("fold", "in a reduce"),
                ("late", "after the await"),
                ("rule", "in a condition"),
                ("state", "in a state"),
                ("sync", "at once"),
            ]
        );
        assert_eq!(run.absence("after", 0), Some(Absence::UpstreamFailed));
        assert_eq!(run.result::<i64>("good").unwrap(), Some(2));
        assert!(!run.is_runnable());
    }
}

#[tokio::test(start_paused = true)]
async fn c6_a_join_waits_for_the_slow_branch() {
    for place in EVERYWHERE {
        let workflow = Workflow::new("w")
            .add(step("slow", waits(100)))
            .add(step("fast", |x: i64| x + 2))
            .add(step("sum", |slow: i64, fast: i64| slow + fast).after(["slow", "fast"]))
            .build()
            .unwrap();
        let mut run = workflow.run("r");
        let start = Instant::now();
        let early = react_until_satisfied(&mut run, 10_i64, at(place));
        assert!(timeout(Duration::from_millis(99), early).await.is_err(), "{place:?}");
        assert_eq!(run.result::<i64>("fast").unwrap(), Some(12), "the fast branch is through");
        assert_eq!(run.result::<i64>("sum").unwrap(), None, "the join waits");

        let (mut run, start_again) = (workflow.run("r"), Instant::now());
        react_until_satisfied(&mut run, 10_i64, at(place)).await.unwrap();
        assert_eq!(start_again.elapsed(), Duration::from_millis(100), "no longer than the slow branch");
        assert_eq!(run.result::<i64>("sum").unwrap(), Some(23));
        assert_eq!(start.elapsed(), Duration::from_millis(199));
    }
}

/// A value whose copies cannot be made, which a map needs when it takes a list apart.
#[derive(Serialize, Deserialize)]
struct Unique(i64);

impl Clone for Unique {
    fn clone(&self) -> Self {
        panic!("there is only one")
    }
}

#[tokio::test]
async fn a_panic_in_the_code_of_a_value_is_the_failure_of_what_touched_it() {
    for place in EVERYWHERE {
        let workflow = Workflow::new("w")
            .add(map("each", |unique: Unique| unique.0))
            .add(reduce("sum", 0_i64, |sum: i64, x: i64| sum + x).after("each"))
            .add(step("good", |_: serde_json::Value| 1_i64))
            .build()
            .unwrap();
        let mut run = workflow.run("r");
        react_until_satisfied(&mut run, vec![Unique(1)], at(place)).await.unwrap();
        let failures = run.failures();
        assert_eq!(failures.len(), 1);
        assert_eq!(failures[0].failure.message, "there is only one");
        assert_eq!(failures[0].failure.code, Some("panic".into()));
        assert_eq!(run.absence("sum", 0), Some(Absence::UpstreamFailed));
        assert_eq!(run.result::<i64>("good").unwrap(), Some(1));
        assert!(!run.is_runnable());
    }
}

#[test]
fn work_whose_task_is_cancelled_has_failed_and_the_loop_goes_on() {
    for place in EVERYWHERE {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let entered = runtime.enter();
        let workflow = Workflow::new("w")
            .add(step("never", |x: i64| async move {
                pending::<()>().await;
                x
            }))
            .add(step("after", |x: i64| x).after("never"))
            .add(accumulator("state", 0_i64, |sum: i64, x: i64| sum + x).after("never"))
            .build()
            .unwrap();
        let mut run = workflow.run("r");
        {
            // Driven from outside the runtime, so that it can be shut down in between.
            let mut driven = pin!(react_until_satisfied(&mut run, 1_i64, at(place)));
            let mut task = Context::from_waker(Waker::noop());
            assert!(driven.as_mut().poll(&mut task).is_pending());
            drop(entered);
            runtime.shutdown_timeout(Duration::from_secs(30));
            while driven.as_mut().poll(&mut task).is_pending() {
                std::thread::yield_now();
            }
        }
        assert!(!run.is_runnable());
        let failures = run.failures();
        assert_eq!(failures.len(), 1, "{place:?}");
        assert_eq!(failures[0].component, Some("never"));
        assert_eq!(failures[0].failure.code, Some("lost".into()));
        assert_eq!(run.absence("after", 0), Some(Absence::UpstreamFailed));
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_future_was_dropped_can_be_driven_on() {
    for place in EVERYWHERE {
        for limit in [1, 2, usize::MAX] {
            let calls = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&calls);
            let workflow = Workflow::new("w")
                .add(step("fast", waits(100)))
                .add(step("slow", move |x: i64| {
                    counted.fetch_add(1, Ordering::SeqCst);
                    waits(1_000)(x)
                }))
                .add(step("other", waits(1_000)))
                .add(step("sum", |a: i64, b: i64, c: i64| a + b + c).after(["fast", "slow", "other"]))
                .build()
                .unwrap();
            let mut run = workflow.run("r");
            let options = at(place).max_concurrency(limit);
            let first = react_until_satisfied(&mut run, 1_i64, options.clone());
            assert!(timeout(Duration::from_millis(500), first).await.is_err());
            assert_eq!(run.result::<i64>("fast").unwrap(), Some(2), "what was over stays over");
            assert!(run.is_runnable());
            run_until_satisfied(&mut run, options.clone()).await.unwrap();
            assert!(!run.is_runnable());
            assert_eq!(run.result::<i64>("sum").unwrap(), Some(6), "{place:?} {limit}");
            assert_eq!(
                calls.load(Ordering::SeqCst),
                2,
                "at least once: it was under way when it was dropped"
            );
        }
    }
}

#[tokio::test]
async fn blocking_work_that_ends_after_the_drop_changes_nothing() {
    let (release, held) = mpsc::channel::<()>();
    let held = std::sync::Mutex::new(Some(held));
    let workflow = Workflow::new("w")
        .add(step("blocks", move |x: i64| {
            let held = held.lock().unwrap().take();
            if let Some(held) = held {
                held.recv().unwrap();
            }
            x + 1
        }))
        .build()
        .unwrap();
    let mut run = workflow.run("r");
    {
        let mut driven = pin!(react_until_satisfied(&mut run, 1_i64, Options::new()));
        assert!(driven.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    assert_eq!(run.next_runnables().len(), 1, "it is offered again");
    release.send(()).unwrap_or_default();
    run_until_satisfied(&mut run, Options::new()).await.unwrap();
    assert_eq!(run.results::<i64>("blocks").unwrap(), [2]);
}

#[tokio::test]
async fn work_that_was_handed_out_elsewhere_is_left_alone() {
    let workflow = Workflow::new("w")
        .add(step("inc", |x: i64| x + 1))
        .add(step("double", |x: i64| x * 2))
        .build()
        .unwrap();
    let mut run = workflow.run("r");
    run.plan(5_i64);
    let elsewhere = run.prepare().remove(0);
    run_until_satisfied(&mut run, Options::new()).await.unwrap();
    assert!(run.is_runnable());
    let executed = elsewhere.execute();
    run.apply(executed);
    run_until_satisfied(&mut run, Options::new()).await.unwrap();
    assert_eq!(run.result::<i64>("inc").unwrap(), Some(6));
}

#[tokio::test]
async fn a_run_with_nothing_to_do_is_over_at_once() {
    let mut run = Workflow::new("w").build().unwrap().run("r");
    assert_eq!(react_until_satisfied(&mut run, 1_i64, Options::new()).await.unwrap().productions().len(), 0);
    assert_eq!(run.id().as_str(), "r");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn large_runs_come_to_their_end() {
    for place in EVERYWHERE {
        let workflow = Workflow::new("w")
            .add(map("each", |x: u64| x + 1))
            .add(
                step("again", |x: u64| async move {
                    tokio::task::yield_now().await;
                    x * 2
                })
                .after("each"),
            )
            .add(reduce("sum", 0_u64, |sum: u64, x: u64| sum + x).after("again"))
            .build()
            .unwrap();
        let mut run = workflow.run("r");
        react_until_satisfied(&mut run, (0..20_000).collect::<Vec<u64>>(), at(place)).await.unwrap();
        assert_eq!(run.result::<u64>("sum").unwrap(), Some((1..=20_000).sum::<u64>() * 2));
    }
}

#[tokio::test(start_paused = true)]
async fn a_checkpoint_that_panics_does_not_stop_its_run_or_another_one() {
    let calls = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&calls);
    let sore = move |_: &tidewheel_core::run::Run| {
        seen.fetch_add(1, Ordering::Relaxed);
        panic!("no checkpoint");
    };
    let workflow = three_checks();
    let (mut bad, mut good) = (workflow.run("bad"), workflow.run("good"));
    let (bad_end, good_end) = tokio::join!(
        react_until_satisfied(&mut bad, 1_i64, Options::new().checkpoint(sore)),
        react_until_satisfied(&mut good, 2_i64, Options::new()),
    );
    assert_eq!(bad_end.unwrap().result::<i64>("sum").unwrap(), Some(6));
    assert_eq!(good_end.unwrap().result::<i64>("sum").unwrap(), Some(9));
    assert!(calls.load(Ordering::Relaxed) > 1, "it is called again after it panicked");
}
