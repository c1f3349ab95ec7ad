//! Processes on one store whose clocks are hours apart, and a machine that is suspended in the middle of work: no piece
//! of work is executed twice, and no run of a healthy process is taken or parked.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidewheel_core::policy::{self, Backoff, Failure, Policy};
use tidewheel_core::time::{Span, Timestamp};
use tidewheel_core::work::Context;
use tidewheel_core::workflow::{Workflow, step};
use tidewheel_runner::{Executor, Runner, RunnerOptions};
use tidewheel_store::{Clock, Filter, Memory, RealClock, Sleep, Status, Store};

use crate::service::mixed;

const NOON: Timestamp = Timestamp::from_millis(1_700_000_000_000);
const HOUR: u64 = 3_600_000;

/// The clock of one process on a machine that may be suspended.
#[derive(Clone, Debug)]
struct ProcessClock {
    clock: RealClock,
    suspended: Arc<AtomicU64>,
}

impl Clock for ProcessClock {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn sleep_until(&self, at: Timestamp) -> Sleep {
        self.clock.sleep_until(at)
    }

    fn suspended(&self) -> Span {
        Span::from_millis(self.suspended.load(Ordering::SeqCst))
    }
}

/// What was executed: each piece of work with how often it began, and whether it is under way.
#[derive(Clone, Default)]
struct Executions(Arc<Mutex<BTreeMap<Piece, (u32, bool)>>>);

/// The order, the step and the attempt.
type Piece = (u64, String, u32);

impl Executions {
    fn begin(&self, work: &Piece) {
        let mut all = self.0.lock().expect("one thread");
        let (count, is_running) = all.entry(work.clone()).or_default();
        assert!(!*is_running, "{work:?} is executed twice at once");
        (*count, *is_running) = (*count + 1, true);
    }

    fn end(&self, work: &Piece) {
        self.0.lock().expect("one thread").get_mut(work).expect("it began").1 = false;
    }

    fn check(&self, seed: u64, pieces: usize) {
        let all = self.0.lock().expect("one thread");
        assert_eq!(all.len(), pieces, "seed {seed}");
        for (work, (count, is_running)) in all.iter() {
            assert_eq!((*count, *is_running), (1, false), "seed {seed}: {work:?}");
        }
    }
}

/// Two steps: one that fails at first and takes a while, and one that waits before it begins.
fn workflow(seed: u64, executions: &Executions, wait: &str) -> Workflow {
    let pieces = executions.clone();
    let work = move |name: &'static str, fails: bool| {
        let pieces = pieces.clone();
        move |context: Context, order: u64| {
            let (pieces, piece) = (pieces.clone(), (order, name.to_owned(), context.attempt()));
            async move {
                pieces.begin(&piece);
                let millis = 500 + mixed(seed, order, u64::from(piece.2)) % 20_000;
                tokio::time::sleep(Duration::from_millis(millis)).await;
                pieces.end(&piece);
                if fails && piece.2 == 0 { Err(Failure::new("at first")) } else { Ok(order) }
            }
        }
    };
    Workflow::new("orders")
        .add(step("charge", work("charge", true)))
        .add(step("ship", work("ship", false)).after("charge"))
        .policy(
            policy::name("charge"),
            Policy::new().max_retries(1).backoff(Backoff::Fixed).base_delay("20s").timeout("60s"),
        )
        .policy(policy::name("ship"), Policy::new().delay(wait))
        .build()
        .expect("a sound workflow")
}

/// Simulates processes with these clocks, in milliseconds after noon, on one store. Returns how long all of it took, by
/// the clocks of the processes.
fn simulate(seed: u64, skews: &[i64], wait: &'static str, suspend: Option<Span>) -> Duration {
    const RUNS: u64 = 60;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let suspended = Arc::new(AtomicU64::new(0));
        let clock = |skew: i64| -> Arc<dyn Clock> {
            let at = Timestamp::from_millis((NOON.as_nanos() / 1_000_000).saturating_add_signed(skew));
            Arc::new(ProcessClock { clock: RealClock::starting_at(at), suspended: Arc::clone(&suspended) })
        };
        let store = Memory::new(clock(skews[0]));
        let executions = Executions::default();
        let workflow = workflow(seed, &executions, wait);
        let mut processes = Vec::new();
        for skew in skews {
            // The store and the runner of a process go by the same clock.
            let clock = clock(*skew);
            let seen = Arc::new(store.seen_by(Arc::clone(&clock)));
            // So few runs at once that many are given back while they wait, and taken by any of them.
            let options = RunnerOptions::new().clock(clock).executor(Executor::Tasks).max_active_runs(8);
            let runner = Runner::with_store(seen, options).await.expect("a runner");
            runner.register(&workflow).expect("a sound workflow");
            processes.push(runner);
        }
        let began = tokio::time::Instant::now();
        for order in 0..RUNS {
            let process = &processes[usize::try_from(order).expect("few") % processes.len()];
            process.run(format!("order-{order}"), &workflow, order).await.expect("a new run");
            tokio::time::sleep(Duration::from_millis(mixed(seed, order, 7) % 2_000)).await;
        }
        if let Some(span) = suspend {
            // Once in the middle of attempts, and once when all that is left is to wait.
            for moment in [5, 200] {
                tokio::time::sleep(Duration::from_secs(moment)).await;
                suspended.fetch_add(span.as_millis(), Ordering::SeqCst);
            }
        }
        loop {
            let page = store.list(Filter { limit: Some(100), ..Filter::default() }).await.expect("a list");
            for record in &page.rows {
                let is_sound = matches!(record.status, Status::Running | Status::Waiting | Status::Completed);
                assert!(is_sound, "seed {seed}: {record:?}");
            }
            if page.rows.iter().all(|record| record.status == Status::Completed) {
                break;
            }
            assert!(began.elapsed() < Duration::from_secs(7_200), "seed {seed}: {:?}", page.rows);
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let took = began.elapsed();
        // One piece for each of the two attempts at `charge`, and one for `ship`.
        executions.check(seed, usize::try_from(RUNS * 3).expect("few"));
        for process in processes {
            assert_eq!(process.trouble(), None, "seed {seed}");
            process.shutdown().await;
        }
        took
    })
}

#[test]
fn clocks_that_are_an_hour_apart_execute_nothing_twice_and_take_nothing() {
    let hour = HOUR.cast_signed();
    for seed in 0..10 {
        for skews in [[0, -hour, 0], [0, hour, 0], [-hour, 0, hour], [hour, -hour, 0]] {
            let took = simulate(seed, &skews, "90s", None);
            // An hour more or less would show.
            assert!(took < Duration::from_secs(600), "seed {seed}, {skews:?}: {took:?}");
        }
    }
}

/// What became due meanwhile is due, and attempts that were suspended have not used up their time.
#[test]
fn a_machine_that_was_suspended_executes_nothing_twice_and_is_late_with_nothing() {
    let hour = HOUR.cast_signed();
    for seed in 0..10 {
        for skews in [[0, 0, 0], [hour, -hour, 0]] {
            let took = simulate(seed, &skews, "1h", Some(Span::from_millis(8 * HOUR)));
            assert!(took < Duration::from_secs(1_800), "seed {seed}, {skews:?}: {took:?}");
        }
    }
}
