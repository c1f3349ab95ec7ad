//! Many small runs at once on several threads: nothing is lost, nothing is counted twice, nobody sleeps for ever.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use tidewheel_core::policy::{self, Backoff, Failure, OnFailure, Policy};
use tidewheel_core::workflow::{Workflow, map, reduce, rule, step};
use tidewheel_runner::{Options, SyncWork, react_until_satisfied, run_until_satisfied};
use tokio::time::timeout;

/// Longer than anything here takes on a busy machine.
const LONG: Duration = Duration::from_secs(120);

/// Fails at every third call, whoever calls.
fn moody(calls: &Arc<AtomicU64>) -> impl Fn(u64) -> Result<u64, Failure> + Send + Sync + Clone + 'static {
    let calls = Arc::clone(calls);
    move |x| {
        if calls.fetch_add(1, Ordering::Relaxed).is_multiple_of(3) {
            Err(Failure::new("moody"))
        } else {
            Ok(x + 1)
        }
    }
}

fn mixed(calls: &Arc<AtomicU64>) -> Workflow {
    let (sync, asynchronous) = (moody(calls), moody(calls));
    Workflow::new("w")
        .add(map("each", sync))
        .add(
            step("again", move |x: u64| {
                let answer = asynchronous(x);
                async move {
                    tokio::task::yield_now().await;
                    answer
                }
            })
            .after("each"),
        )
        .add(rule("even").when(|x: &u64| x.is_multiple_of(2)).then(|x: u64| x).after("again"))
        .add(reduce("sum", 0_u64, |sum: u64, x: u64| sum + x).after("again"))
        .policy(policy::name("even"), Policy::new().timeout("1h"))
        .policy(policy::default(), Policy::new().max_retries(1_000).backoff(Backoff::None))
        .build()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_runs_with_retries_all_come_to_their_end() {
    let calls = Arc::new(AtomicU64::new(0));
    let workflow = mixed(&calls);
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..200_usize {
        let workflow = workflow.clone();
        tasks.spawn(async move {
            let mut run = workflow.run(format!("r{number}").as_str());
            let mut options = Options::new();
            if number % 3 > 0 {
                options = options.max_concurrency(number % 3);
            }
            react_until_satisfied(&mut run, (0..20).collect::<Vec<u64>>(), options).await.unwrap();
            assert_eq!(run.result::<u64>("sum").unwrap(), Some((2..22).sum()));
            assert_eq!(run.fact_count("even").unwrap(), 10);
            assert!(!run.is_runnable());
        });
    }
    let all = async {
        while let Some(ended) = tasks.join_next().await {
            ended.unwrap();
        }
    };
    timeout(LONG, all).await.expect("nobody waits for a wake-up that was lost");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn runs_that_are_dropped_anywhere_can_be_driven_on() {
    let calls = Arc::new(AtomicU64::new(0));
    let workflow = mixed(&calls);
    for number in 0..200_u64 {
        let mut run = workflow.run(format!("r{number}").as_str());
        let options = Options::new().max_concurrency(usize::try_from(1 + number % 4).unwrap());
        run.plan((0..20).collect::<Vec<u64>>());
        for drops in 0..number % 4 {
            let mut driven = pin!(run_until_satisfied(&mut run, options.clone()));
            for _ in 0..(number * 7 + drops) % 50 {
                if driven.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
        timeout(LONG, run_until_satisfied(&mut run, options)).await.unwrap().unwrap();
        assert_eq!(run.result::<u64>("sum").unwrap(), Some((2..22).sum()), "run {number}");
    }
}

/// Keeps a thread for so long, and does not let go of it.
fn busy(micros: u64) {
    let start = Instant::now();
    while start.elapsed() < Duration::from_micros(micros) {
        std::hint::spin_loop();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_timeout_that_fires_while_the_work_ends_has_one_outcome() {
    for round in 0..10_u64 {
        let work = move |x: u64| {
            busy(800 + (x * 37 + round * 11) % 1_200);
            x
        };
        let workflow = Workflow::new("w")
            .add(map("each", work))
            .add(step("then", |x: u64| x).after("each"))
            .policy(
                policy::name("each"),
                Policy::new().timeout("1ms").max_retries(1).on_failure(OnFailure::Skip),
            )
            .build()
            .unwrap();
        let mut run = workflow.run("r");
        let options = Options::new().max_concurrency(2).sync_work(SyncWork::Threads);
        let driven = react_until_satisfied(&mut run, (0..40).collect::<Vec<u64>>(), options);
        timeout(LONG, driven).await.unwrap().unwrap();
        let (each, then, skipped) =
            (run.fact_count("each").unwrap(), run.fact_count("then").unwrap(), run.failures().len());
        assert_eq!(each, then);
        // The items, and the list that was taken apart.
        assert_eq!(each + skipped, 40, "{each} {skipped}");
        for value in run.results::<u64>("then").unwrap() {
            assert!(value < 40);
        }
    }
}
