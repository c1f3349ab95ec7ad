//! What a runner counts. Whoever reads it pays for it: the rest is a few additions to atomics.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tidewheel_core::Outcome;
use tidewheel_core::decide::ReasonCode;
use tidewheel_core::time::Timestamp;
use tidewheel_store::Status;

use super::table::{ABANDONED, ATTEMPTS, COMMIT, HELD, PANICS, QUEUE_WAIT, RETRIES, RUNS, SLOTS, Signal};

/// One label and its value.
type Labels = [(&'static str, &'static str); 1];

/// From a tenth of a millisecond, which is a good commit, to five minutes, which nobody should wait.
const BUCKETS: [f64; 14] =
    [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0];

/// The counters and histograms of one runner.
pub(crate) struct Metrics {
    runs: Family<Labels, Counter>,
    attempts: Family<Labels, Counter>,
    retries: Family<Labels, Counter>,
    panics: Family<Labels, Counter>,
    /// The two that count every attempt, so that nobody has to look for them.
    completed: Counter,
    failed: Counter,
    queue_wait: Histogram,
    commit: Histogram,
}

impl Metrics {
    pub(crate) fn new() -> Arc<Self> {
        let attempts = Family::<Labels, Counter>::default();
        let of = |outcome| attempts.get_or_create(&[(ATTEMPTS.fields[0], outcome)]).clone();
        Arc::new(Self {
            completed: of("completed"),
            failed: of("failed"),
            runs: Family::default(),
            retries: Family::default(),
            panics: Family::default(),
            queue_wait: Histogram::new(BUCKETS),
            commit: Histogram::new(BUCKETS),
            attempts,
        })
    }

    /// A run came to an end, or was put aside.
    pub(crate) fn run(&self, status: Status) {
        self.runs.get_or_create(&[(RUNS.fields[0], status.name())]).inc();
    }

    /// An attempt is over.
    pub(crate) fn attempt(&self, outcome: &Outcome) {
        match outcome {
            Outcome::Completed(_) | Outcome::FannedOut(_) => self.completed.inc(),
            Outcome::Failed(_) | Outcome::Skipped(_) => self.failed.inc(),
        };
    }

    /// An attempt failed, and there will be another one.
    pub(crate) fn retry(&self, reason: ReasonCode) {
        self.retries.get_or_create(&[(RETRIES.fields[0], reason.name())]).inc();
    }

    /// A task or a hook panicked.
    pub(crate) fn panic(&self, task: &'static str) {
        self.panics.get_or_create(&[(PANICS.fields[0], task)]).inc();
    }

    /// An attempt has its slot.
    pub(crate) fn waited(&self, from: Timestamp, until: Timestamp) {
        self.queue_wait.observe(seconds(from, until));
    }

    /// The store has answered.
    pub(crate) fn committed(&self, from: Timestamp, until: Timestamp) {
        self.commit.observe(seconds(from, until));
    }

    /// Puts everything into a registry.
    pub(crate) fn register(&self, registry: &mut Registry, gauges: impl Gauges) {
        // The library adds the suffix of counters itself.
        for (signal, family) in
            [(RUNS, &self.runs), (ATTEMPTS, &self.attempts), (RETRIES, &self.retries), (PANICS, &self.panics)]
        {
            registry.register(signal.name.trim_end_matches("_total"), signal.when, family.clone());
        }
        for (signal, histogram) in [(QUEUE_WAIT, &self.queue_wait), (COMMIT, &self.commit)] {
            registry.register(signal.name, signal.when, histogram.clone());
        }
        registry.register_collector(Box::new(AtScrape(gauges)));
    }
}

#[expect(clippy::cast_precision_loss, reason = "of a span in nanoseconds, nobody misses the last digits")]
fn seconds(from: Timestamp, until: Timestamp) -> f64 {
    until.as_nanos().saturating_sub(from.as_nanos()) as f64 / 1e9
}

/// What a runner has at the moment. It is looked at when somebody reads.
pub(crate) trait Gauges: Send + Sync + 'static {
    /// Returns the numbers of the abandoned threads, of the slots in use, and of the runs held; `None` if the runner
    /// is gone.
    fn now(&self) -> Option<[usize; 3]>;
}

struct AtScrape<G>(G);

impl<G: Gauges> Collector for AtScrape<G> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(numbers) = self.0.now() else { return Ok(()) };
        let signals: [Signal; 3] = [ABANDONED, SLOTS, HELD];
        for (signal, number) in signals.into_iter().zip(numbers) {
            let gauge = ConstGauge::new(i64::try_from(number).unwrap_or(i64::MAX));
            let kind = gauge.metric_type();
            gauge.encode(encoder.encode_descriptor(signal.name, signal.when, None, kind)?)?;
        }
        Ok(())
    }
}

impl<G> fmt::Debug for AtScrape<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AtScrape")
    }
}
