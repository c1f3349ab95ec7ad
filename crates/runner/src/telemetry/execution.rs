//! An attempt as a span, from its beginning to its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tidewheel_core::policy::{Failure, LogLevel, Resolved};
use tidewheel_core::{Outcome, Runnable};
use tokio::time::Instant;
use tracing::Span;
use tracing::field::Empty;

use super::events::{self, tell};
use super::table::{EXECUTE, START, STOP, TIMEOUT};

/// An attempt that somebody follows. Its end is told once: by whoever runs it, by whoever gives it up, or when it is
/// dropped.
#[derive(Clone)]
pub(crate) struct Execution(Arc<Inner>);

struct Inner {
    span: Span,
    runnable: Runnable,
    /// The one under which it is driven.
    policy: Arc<Resolved>,
    began: Instant,
    is_over: AtomicBool,
}

macro_rules! span {
    ($level:ident, $runnable:expr, $policy:expr) => {
        tracing::span!(
            target: super::TARGET,
            tracing::Level::$level,
            EXECUTE.name,
            run = $runnable.run_id().as_str(),
            node = events::node($runnable),
            attempt = $runnable.attempt(),
            prefix = $policy.telemetry_prefix.as_deref(),
            name = events::full_name($policy, &EXECUTE).as_deref(),
            metadata = events::metadata($policy).as_deref(),
            outcome = Empty,
            duration_us = Empty,
        )
    };
}

impl Execution {
    /// Begins an attempt; `None` where nobody listens.
    pub(crate) fn begin(runnable: &Runnable, policy: &Arc<Resolved>) -> Option<Self> {
        Self::in_span(runnable, policy, Self::new_span(runnable, policy)?)
    }

    /// Begins an attempt that may be given up; `None` where nobody listens. Whoever listens to grave things only does
    /// not hear of its beginning, but of that.
    pub(crate) fn begin_bounded(runnable: &Runnable, policy: &Arc<Resolved>) -> Option<Self> {
        let span = Self::new_span(runnable, policy)?;
        if span.is_disabled() && events::is_heard(policy, &TIMEOUT) {
            return Some(Self::new(runnable, policy, span));
        }
        Self::in_span(runnable, policy, span)
    }

    fn new_span(runnable: &Runnable, policy: &Resolved) -> Option<Span> {
        Some(match events::level(policy, &EXECUTE) {
            LogLevel::Off => return None,
            LogLevel::Error => span!(ERROR, runnable, policy),
            LogLevel::Warn => span!(WARN, runnable, policy),
            LogLevel::Info => span!(INFO, runnable, policy),
            LogLevel::Debug => span!(DEBUG, runnable, policy),
            LogLevel::Trace => span!(TRACE, runnable, policy),
        })
    }

    fn in_span(runnable: &Runnable, policy: &Arc<Resolved>, span: Span) -> Option<Self> {
        if span.is_disabled() {
            return None;
        }
        span.in_scope(|| tell!(START, runnable, policy, "attempt begins"));
        Some(Self::new(runnable, policy, span))
    }

    fn new(runnable: &Runnable, policy: &Arc<Resolved>, span: Span) -> Self {
        let (runnable, policy) = (runnable.clone(), Arc::clone(policy));
        let (began, is_over) = (Instant::now(), AtomicBool::new(false));
        Self(Arc::new(Inner { span, runnable, policy, began, is_over }))
    }

    /// Returns the span in which the work is done, if somebody follows it.
    pub(crate) fn span(followed: Option<&Self>) -> Span {
        followed.map_or_else(Span::none, |execution| execution.0.span.clone())
    }

    /// Ends an attempt.
    pub(crate) fn stop(&self, outcome: &Outcome) {
        let (word, failure) = match outcome {
            Outcome::Completed(_) | Outcome::FannedOut(_) => ("completed", None),
            Outcome::Failed(failure) | Outcome::Skipped(failure) => ("failed", Some(failure)),
        };
        self.0.stop(word, failure);
    }

    /// Ends an attempt that is given up.
    pub(crate) fn give_up(&self, why: &Failure) {
        self.0.span.in_scope(|| events::timeout(&self.0.runnable, &self.0.policy, why));
        self.0.stop("failed", Some(why));
    }
}

impl Inner {
    fn stop(&self, outcome: &'static str, failure: Option<&Failure>) {
        if self.is_over.swap(true, Ordering::AcqRel) {
            return;
        }
        let duration = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.span.record("outcome", outcome);
        self.span.record("duration_us", duration);
        self.span.in_scope(|| {
            tell!(
                STOP,
                &self.runnable,
                &self.policy,
                "attempt over",
                outcome = outcome,
                code = failure.and_then(events::code).as_deref(),
                error = failure.map(|failure| failure.message.as_str()),
                duration_us = duration,
            );
        });
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.stop("dropped", None);
    }
}
