//! A runner, a store and a service on one clock.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidewheel_core::decide::ReasonCode;
use tidewheel_core::policy::{self, Backoff, CircuitBreaker, OnFailure, Policy, Priority};
use tidewheel_core::time::{Span, Timestamp};
use tidewheel_core::work::Context;
use tidewheel_core::workflow::{Workflow, step};
use tidewheel_runner::{Executor, Runner, RunnerOptions};
use tidewheel_store::{Clock, Filter, Memory, RealClock, Status, Store};

use crate::service::{Call, Service, mixed};

/// Everything that a simulation depends on.
pub(crate) struct World {
    pub(crate) seed: u64,
    pub(crate) runs: usize,
    pub(crate) began: Timestamp,
    pub(crate) rate: u32,
    pub(crate) window: Span,
    pub(crate) threshold: u32,
    pub(crate) permits: u32,
    pub(crate) reset: Span,
    pub(crate) tokens: u32,
    pub(crate) refill: Span,
    pub(crate) most_at_once: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    High,
    Normal,
    Low,
}

/// How a run ended.
pub(crate) struct End {
    pub(crate) level: Level,
    pub(crate) status: Status,
    pub(crate) ended: Timestamp,
}

pub(crate) struct Outcome {
    pub(crate) calls: Vec<Call>,
    pub(crate) runs: BTreeMap<String, End>,
    pub(crate) letters: usize,
    pub(crate) retries: u64,
    /// The log of every run, in the order of their names.
    pub(crate) log: Vec<String>,
}

impl World {
    pub(crate) fn new(seed: u64, runs: usize) -> Self {
        Self {
            seed,
            runs,
            began: Timestamp::from_millis(1_700_000_000_000),
            rate: 100,
            window: Span::from_secs(1),
            threshold: 5,
            permits: 2,
            reset: Span::from_secs(5),
            tokens: 200,
            refill: Span::from_millis(50),
            most_at_once: 40,
        }
    }

    /// Runs the simulation: one thread, and time goes by when there is nothing else to do.
    pub(crate) fn run(&self) -> Outcome {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime");
        runtime.block_on(Box::pin(self.simulate()))
    }

    async fn simulate(&self) -> Outcome {
        let clock: Arc<dyn Clock> = Arc::new(RealClock::starting_at(self.began));
        let store = Arc::new(Memory::new(Arc::clone(&clock)));
        let options = RunnerOptions::new()
            .clock(Arc::clone(&clock))
            .max_concurrency(self.most_at_once)
            .executor(Executor::Tasks);
        let runner = Runner::with_store(Arc::<Memory>::clone(&store), options).await.expect("a runner");
        let service = Service::new(self.seed, self.began, Arc::clone(&clock));
        let levels =
            [Level::High, Level::Normal, Level::Low].map(|level| (level, self.workflow(level, &service)));
        let mut handles = Vec::with_capacity(self.runs);
        for order in 0..self.runs as u64 {
            let (level, workflow) = &levels[(mixed(self.seed, order, 1) % 3) as usize];
            let id = format!("order-{order:06}");
            let run = runner.start(id.as_str(), workflow).await.expect("a new run");
            run.input(order).await.expect("an input");
            handles.push((id, *level, run));
        }
        let mut runs = BTreeMap::new();
        for (id, level, run) in handles {
            let status = match tokio::time::timeout(std::time::Duration::from_secs(7_200), run.wait()).await {
                Ok(status) => status.expect("an end"),
                Err(_) => {
                    let record = store.find(run.id()).await.expect("a record");
                    panic!("seed {}: {id} has no end: {record:?} at {}", self.seed, clock.now());
                }
            };
            let record = store.find(run.id()).await.expect("a record").expect("a run");
            runs.insert(id, End { level, status, ended: record.updated_at });
        }
        let mut letters = 0;
        let mut after = None;
        loop {
            let page = runner.dead_letters(None, after).await.expect("letters");
            letters += page.rows.len();
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let (log, retries) = read(store.as_ref()).await;
        runner.shutdown().await;
        Outcome { calls: service.calls(), runs, letters, retries, log }
    }

    fn workflow(&self, level: Level, service: &Service) -> Workflow {
        let service = service.clone();
        let call = move |context: Context, order: u64| service.clone().call(order, context.attempt());
        let breaker = CircuitBreaker {
            failure_threshold: self.threshold,
            reset_timeout: self.reset,
            half_open_permits: self.permits,
            ..CircuitBreaker::new("service")
        };
        let policy = Policy::new()
            .max_retries(3)
            .backoff(Backoff::exponential())
            .base_delay("200ms")
            .circuit_breaker(breaker)
            .shared_rate_limit("service", self.rate, self.window)
            .retry_budget("service", self.tokens, self.refill)
            .on_failure(OnFailure::DeadLetter)
            .priority(match level {
                Level::High => Priority::High,
                Level::Normal => Priority::Normal,
                Level::Low => Priority::Low,
            });
        Workflow::new(match level {
            Level::High => "high",
            Level::Normal => "normal",
            Level::Low => "low",
        })
        .add(step("call", call))
        .add(step("after", |double: u64| async move { double + 1 }).after("call"))
        .policy(policy::name("call"), policy)
        .build()
        .expect("a sound workflow")
    }
}

impl Outcome {
    pub(crate) fn mean_end(&self, level: Level) -> u64 {
        let ends: Vec<u64> = self
            .runs
            .values()
            .filter(|run| run.level == level)
            .map(|run| run.ended.as_nanos() / 1_000_000)
            .collect();
        ends.iter().sum::<u64>() / ends.len().max(1) as u64
    }

    pub(crate) fn took(&self, began: Timestamp) -> Span {
        let last = self.runs.values().map(|run| run.ended.as_nanos()).max().unwrap_or(began.as_nanos());
        Span::from_millis((last - began.as_nanos()) / 1_000_000)
    }
}

/// Reads the log of every run, and counts the retries that were decided.
async fn read(store: &dyn Store) -> (Vec<String>, u64) {
    let mut logs = BTreeMap::new();
    let mut filter = Filter::default();
    loop {
        let page = store.list(filter.clone()).await.expect("a list");
        for record in page.rows {
            let stored = store.read(&record.id, 0).await.expect("a log");
            let mut log = String::new();
            for batch in stored {
                for line in batch.events.events().expect("events") {
                    log.push_str(line);
                    log.push('\n');
                }
            }
            logs.insert(record.id.to_string(), log);
        }
        filter.after = page.next;
        if filter.after.is_none() {
            break;
        }
    }
    let scheduled = format!("\"{}\"", ReasonCode::RetryScheduled.name());
    let retries = logs.values().map(|log| log.matches(&scheduled).count() as u64).sum();
    (logs.into_values().collect(), retries)
}
