//! The table of all names and fields of our telemetry. Dashboards and alerts are built on it, so that to change it is
//! a breaking change.

use tidewheel_core::policy::LogLevel;

/// The target of all spans and events, for filters such as `tidewheel=debug`.
pub const TARGET: &str = "tidewheel";

/// Something that the runner tells of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub kind: SignalKind,
    /// At which level it is told where a policy says nothing; metrics have none.
    pub level: Option<LogLevel>,
    /// What it carries: fields, or the labels of a metric.
    pub fields: &'static [&'static str],
    /// When it is told, or what it counts.
    pub when: &'static str,
}

/// What a signal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalKind {
    /// A span of `tracing`.
    Span,
    /// An event of `tracing`.
    Event,
    /// A number that only grows.
    Counter,
    /// A number that is as it is.
    Gauge,
    /// How often a number was how large.
    Histogram,
}

impl SignalKind {
    /// Returns the word that the guide uses.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Span => "span",
            Self::Event => "event",
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

const fn span(
    name: &'static str,
    level: LogLevel,
    fields: &'static [&'static str],
    when: &'static str,
) -> Signal {
    Signal { name, kind: SignalKind::Span, level: Some(level), fields, when }
}

const fn event(
    name: &'static str,
    level: LogLevel,
    fields: &'static [&'static str],
    when: &'static str,
) -> Signal {
    Signal { name, kind: SignalKind::Event, level: Some(level), fields, when }
}

const fn metric(
    name: &'static str,
    kind: SignalKind,
    fields: &'static [&'static str],
    when: &'static str,
) -> Signal {
    Signal { name, kind, level: None, fields, when }
}

pub(super) const EXECUTE: Signal = span(
    "tidewheel.execute",
    LogLevel::Debug,
    &["run", "node", "attempt", "prefix", "name", "metadata", "outcome", "duration_us"],
    "an attempt, from its beginning to its end",
);
pub(super) const START: Signal = event(
    "tidewheel.execute.start",
    LogLevel::Debug,
    &["run", "node", "attempt", "prefix", "name", "metadata"],
    "an attempt begins",
);
pub(super) const STOP: Signal = event(
    "tidewheel.execute.stop",
    LogLevel::Debug,
    &["run", "node", "attempt", "prefix", "name", "metadata", "outcome", "code", "error", "duration_us"],
    "an attempt is over: completed, failed, or dropped because nobody wants it any more",
);
pub(super) const RETRY: Signal = event(
    "tidewheel.execute.retry",
    LogLevel::Info,
    &["run", "node", "attempt", "prefix", "name", "metadata", "reason", "code", "error", "delay_ms"],
    "an attempt failed and there will be another one",
);
pub(super) const TIMEOUT: Signal = event(
    "tidewheel.execute.timeout",
    LogLevel::Warn,
    &["run", "node", "attempt", "prefix", "name", "metadata", "code", "error"],
    "an attempt was given up: its time was over, it was silent for too long, or it got no slot",
);
pub(super) const FALLBACK: Signal = event(
    "tidewheel.execute.fallback",
    LogLevel::Warn,
    &["run", "node", "attempt", "prefix", "name", "metadata", "code", "error"],
    "the last attempt failed and the fallback is asked",
);
pub(super) const HOLD: Signal = event(
    "tidewheel.hold",
    LogLevel::Debug,
    &["run", "node", "attempt", "prefix", "name", "metadata", "why", "until"],
    "an attempt has to wait before it may begin, such as for a rate limit or an open breaker",
);
pub(super) const DEAD_LETTER: Signal = event(
    "tidewheel.dead_letter",
    LogLevel::Error,
    &["run", "node", "attempt", "prefix", "name", "metadata", "code", "error"],
    "work has failed for good and was put aside, to be driven again by a person",
);
pub(super) const BREAKER_CHANGE: Signal = event(
    "tidewheel.breaker.change",
    LogLevel::Warn,
    &["breaker", "from", "to"],
    "a circuit breaker opened, let probes through, or closed",
);
pub(super) const RUN_PARK: Signal = event(
    "tidewheel.run.park",
    LogLevel::Error,
    &["run", "reason"],
    "a run was put aside until a person resumes it",
);
pub(super) const RUN_SKIPPED: Signal = event(
    "tidewheel.run.skipped_failures",
    LogLevel::Warn,
    &["run", "reason"],
    "a run completed although work failed: its policy skips the failure",
);
pub(super) const RUN_RESUME: Signal = event(
    "tidewheel.run.resume",
    LogLevel::Info,
    &["run"],
    "a run that was stopped, paused or parked goes on",
);

pub(super) const RUNS: Signal = metric(
    "tidewheel_runs_total",
    SignalKind::Counter,
    &["status"],
    "runs that came to an end or were parked; one that gets another input comes to an end again",
);
pub(super) const ATTEMPTS: Signal =
    metric("tidewheel_attempts_total", SignalKind::Counter, &["outcome"], "attempts that are over");
pub(super) const RETRIES: Signal = metric(
    "tidewheel_retries_total",
    SignalKind::Counter,
    &["reason"],
    "attempts that failed and are followed by another",
);
pub(super) const PANICS: Signal = metric(
    "tidewheel_panics_total",
    SignalKind::Counter,
    &["task"],
    "panics in tasks of the runner, which were started again, and in hooks",
);
pub(super) const QUEUE_WAIT: Signal =
    metric("tidewheel_queue_wait_seconds", SignalKind::Histogram, &[], "how long attempts waited for a slot");
pub(super) const COMMIT: Signal =
    metric("tidewheel_commit_seconds", SignalKind::Histogram, &[], "how long the store took for a commit");
pub(super) const ABANDONED: Signal = metric(
    "tidewheel_abandoned_threads",
    SignalKind::Gauge,
    &[],
    "threads that go on with work that was given up",
);
pub(super) const SLOTS: Signal =
    metric("tidewheel_slots_in_use", SignalKind::Gauge, &[], "attempts that are under way");
pub(super) const HELD: Signal =
    metric("tidewheel_runs_held", SignalKind::Gauge, &[], "runs that this process holds in memory");

/// All signals.
pub const SIGNALS: &[Signal] = &[
    EXECUTE,
    START,
    STOP,
    RETRY,
    TIMEOUT,
    FALLBACK,
    HOLD,
    DEAD_LETTER,
    BREAKER_CHANGE,
    RUN_PARK,
    RUN_SKIPPED,
    RUN_RESUME,
    RUNS,
    ATTEMPTS,
    RETRIES,
    PANICS,
    QUEUE_WAIT,
    COMMIT,
    ABANDONED,
    SLOTS,
    HELD,
];
