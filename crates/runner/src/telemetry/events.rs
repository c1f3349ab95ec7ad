//! The events of `tracing`, one function each. What an event carries is put together only where somebody listens.

use tidewheel_core::Runnable;
use tidewheel_core::event::FailedAttempt;
use tidewheel_core::fact::RunId;
use tidewheel_core::policy::{Failure, LogLevel, Resolved};
use tidewheel_core::time::Timestamp;
use tracing::level_filters::LevelFilter;

use super::table::{
    BREAKER_CHANGE, DEAD_LETTER, FALLBACK, HOLD, RETRY, RUN_PARK, RUN_RESUME, RUN_SKIPPED, Signal, TARGET,
    TIMEOUT,
};

/// Tells an event of a piece of work at the level that the policy says under which it is driven, with what that adds.
macro_rules! tell {
    ($signal:ident, $runnable:expr, $policy:expr, $message:literal $(, $field:ident = $value:expr)* $(,)?) => {
        match $crate::telemetry::events::level($policy, &$signal) {
            LogLevel::Off => {}
            LogLevel::Error => tell!(@ ERROR, $signal, $runnable, $policy, $message $(, $field = $value)*),
            LogLevel::Warn => tell!(@ WARN, $signal, $runnable, $policy, $message $(, $field = $value)*),
            LogLevel::Info => tell!(@ INFO, $signal, $runnable, $policy, $message $(, $field = $value)*),
            LogLevel::Debug => tell!(@ DEBUG, $signal, $runnable, $policy, $message $(, $field = $value)*),
            LogLevel::Trace => tell!(@ TRACE, $signal, $runnable, $policy, $message $(, $field = $value)*),
        }
    };
    (@ $level:ident, $signal:ident, $runnable:expr, $policy:expr, $message:literal $(, $field:ident = $value:expr)*) => {
        tracing::event!(
            name: $signal.name,
            target: $crate::telemetry::TARGET,
            tracing::Level::$level,
            run = $runnable.run_id().as_str(),
            node = $crate::telemetry::events::node($runnable),
            attempt = $runnable.attempt(),
            $($field = $value,)*
            prefix = $policy.telemetry_prefix.as_deref(),
            name = $crate::telemetry::events::full_name($policy, &$signal).as_deref(),
            metadata = $crate::telemetry::events::metadata($policy).as_deref(),
            $message
        )
    };
}
pub(super) use tell;

/// An attempt failed, and there will be another one.
pub(crate) fn retry(runnable: &Runnable, policy: &Resolved, failed: &FailedAttempt) {
    let delay =
        || failed.due().as_nanos().saturating_sub(failed.decided.situation.now.as_nanos()) / 1_000_000;
    tell!(
        RETRY,
        runnable,
        policy,
        "retry scheduled",
        reason = failed.decided.decision.reason.name(),
        code = code(&failed.failure).as_deref(),
        error = failed.failure.message.as_str(),
        delay_ms = delay(),
    );
}

/// An attempt was given up, or got no slot.
pub(crate) fn timeout(runnable: &Runnable, policy: &Resolved, why: &Failure) {
    tell!(
        TIMEOUT,
        runnable,
        policy,
        "attempt given up",
        code = code(why).as_deref(),
        error = why.message.as_str(),
    );
}

/// The last attempt failed, and the fallback is asked.
pub(crate) fn fallback(runnable: &Runnable, policy: &Resolved, after: &Failure) {
    tell!(
        FALLBACK,
        runnable,
        policy,
        "fallback asked",
        code = code(after).as_deref(),
        error = after.message.as_str(),
    );
}

/// An attempt has to wait before it may begin.
pub(crate) fn hold(runnable: &Runnable, policy: &Resolved, why: &str, until: Option<Timestamp>) {
    tell!(
        HOLD,
        runnable,
        policy,
        "attempt waits",
        why = why,
        until = until.map(|until| until.to_string()).as_deref(),
    );
}

/// Work has failed for good and was put aside.
pub(crate) fn dead_letter(runnable: &Runnable, policy: &Resolved, why: &Failure) {
    tell!(
        DEAD_LETTER,
        runnable,
        policy,
        "work put aside",
        code = code(why).as_deref(),
        error = why.message.as_str(),
    );
}

/// A circuit breaker changed its state.
pub(crate) fn breaker_change(breaker: &str, from: &str, to: &str) {
    tracing::event!(
        name: BREAKER_CHANGE.name,
        target: TARGET,
        tracing::Level::WARN,
        breaker,
        from,
        to,
        "circuit breaker changed"
    );
}

/// A run was put aside.
pub(crate) fn park(run: &RunId, reason: &str) {
    tracing::event!(
        name: RUN_PARK.name,
        target: TARGET,
        tracing::Level::ERROR,
        run = run.as_str(),
        reason,
        "run parked"
    );
}

/// A run completed although work failed.
pub(crate) fn skipped(run: &RunId, reason: &str) {
    tracing::event!(
        name: RUN_SKIPPED.name,
        target: TARGET,
        tracing::Level::WARN,
        run = run.as_str(),
        reason,
        "run completed with skipped failures"
    );
}

/// A run goes on after it was stopped, paused or parked.
pub(crate) fn resume(run: &RunId) {
    tracing::event!(
        name: RUN_RESUME.name,
        target: TARGET,
        tracing::Level::INFO,
        run = run.as_str(),
        "run resumed"
    );
}

/// Returns at which level something of a piece of work is told; `Off` where nobody listens at all.
pub(super) fn level(policy: &Resolved, signal: &Signal) -> LogLevel {
    if LevelFilter::current() == LevelFilter::OFF {
        return LogLevel::Off;
    }
    policy.log_level.or(signal.level).unwrap_or(LogLevel::Off)
}

/// Tells whether somebody may listen to something of a piece of work.
pub(super) fn is_heard(policy: &Resolved, signal: &Signal) -> bool {
    let filter = match level(policy, signal) {
        LogLevel::Off => return false,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    filter <= LevelFilter::current()
}

/// Returns the name of the node, or its kind where it has none.
pub(super) fn node(runnable: &Runnable) -> &str {
    let node = runnable.node();
    node.name.unwrap_or_else(|| node.kind.name())
}

/// Returns the name of a signal with the prefix of the policy in front, if it has one: names of `tracing` are static.
pub(super) fn full_name(policy: &Resolved, signal: &Signal) -> Option<String> {
    policy.telemetry_prefix.as_ref().map(|prefix| format!("{prefix}.{}", signal.name))
}

/// Returns what a policy lets telemetry carry along, as JSON.
pub(super) fn metadata(policy: &Resolved) -> Option<String> {
    let metadata = &policy.metadata;
    if metadata.is_empty() { None } else { serde_json::to_string(metadata).ok() }
}

/// Returns the code of a failure as a word.
pub(super) fn code(failure: &Failure) -> Option<String> {
    failure.code.as_ref().map(ToString::to_string)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use tidewheel_core::Outcome;
    use tidewheel_core::fact::Value;
    use tidewheel_core::policy::{self, Policy};
    use tidewheel_core::workflow::{Workflow, step};
    use tidewheel_testkit::{Capture, Heard};
    use tracing::Level;

    use super::{Failure, LogLevel, Runnable, TARGET, Timestamp};
    use crate::driver::{Course, Known, Turn};
    use crate::telemetry::{
        Execution, SIGNALS, SignalKind, breaker_change, dead_letter, hold, park, resume, skipped, timeout,
    };

    /// A run of its own, so that it is told apart from all others.
    fn runnable(run: &str, policy: Policy) -> Runnable {
        let builder = Workflow::new("w").add(step("greet", |x: i64| x));
        let workflow = builder.policy(policy::default(), policy).build().expect("it is whole");
        let mut run = workflow.run(run);
        run.plan(1_i64);
        run.prepare().remove(0)
    }

    /// Tells everything there is to tell, and returns what was heard.
    fn everything(run: &str, policy: Policy) -> Vec<Heard> {
        let capture = Capture::everywhere(TARGET);
        let runnable = runnable(run, policy.max_retries(1).fallback_value(7));
        let failure = || Failure::new("busy").code(503);
        let execution = Execution::begin(&runnable, runnable.policy()).expect("somebody listens");
        execution.stop(&Outcome::Completed(Value::new(1_i64)));
        execution.stop(&Outcome::Completed(Value::new(1_i64)));
        let execution = Execution::begin(&runnable, runnable.policy()).expect("somebody listens");
        execution.give_up(&Failure::new("took longer than 1s").code("timeout"));
        drop(Execution::begin(&runnable, runnable.policy()));

        // A retry, and then the fallback.
        let now = Timestamp::from_millis(1_000);
        let mut course = Course::new(&runnable, Arc::clone(runnable.policy()), None, now);
        let turn = course.end(runnable.clone(), Outcome::Failed(failure()), Known::default(), now);
        assert!(matches!(turn, Turn::Retry(_)));
        let turn =
            course.end(runnable.clone().with_attempt(1), Outcome::Failed(failure()), Known::default(), now);
        assert!(matches!(turn, Turn::Over(_)));

        hold(&runnable, runnable.policy(), "rate_limit", Some(now));
        dead_letter(&runnable, runnable.policy(), &failure());
        breaker_change(run, "closed", "open");
        park(runnable.run_id(), "it was lost 3 times");
        skipped(runnable.run_id(), "1 failure was skipped");
        resume(runnable.run_id());
        let is_ours = |heard: &Heard| [heard.get("run"), heard.get("breaker")].contains(&Some(run));
        capture.all().into_iter().filter(is_ours).collect()
    }

    fn level_of(level: LogLevel) -> Option<Level> {
        match level {
            LogLevel::Off => None,
            LogLevel::Error => Some(Level::ERROR),
            LogLevel::Warn => Some(Level::WARN),
            LogLevel::Info => Some(Level::INFO),
            LogLevel::Debug => Some(Level::DEBUG),
            LogLevel::Trace => Some(Level::TRACE),
        }
    }

    #[test]
    fn what_is_told_is_what_the_table_says() {
        let mut told: BTreeMap<(&str, bool), (Level, Vec<&str>)> = BTreeMap::new();
        for heard in everything("table", Policy::new()) {
            let mut fields = heard.fields.clone();
            fields.sort_unstable();
            told.insert((heard.name, heard.is_span), (heard.level, fields));
        }
        let mut table = BTreeMap::new();
        for signal in SIGNALS {
            let is_span = match signal.kind {
                SignalKind::Span => true,
                SignalKind::Event => false,
                SignalKind::Counter | SignalKind::Gauge | SignalKind::Histogram => continue,
            };
            let mut fields = signal.fields.to_vec();
            fields.sort_unstable();
            let level = signal.level.and_then(level_of).expect("it has a level");
            table.insert((signal.name, is_span), (level, fields));
        }
        assert_eq!(told, table);
    }

    #[test]
    fn an_attempt_is_over_once_however_it_ends() {
        let heard = everything("over", Policy::new());
        let ends: Vec<(Option<&str>, Option<&str>)> = heard
            .iter()
            .filter(|heard| heard.name == "tidewheel.execute.stop")
            .map(|heard| (heard.get("outcome"), heard.get("code")))
            .collect();
        assert_eq!(
            ends,
            [(Some("completed"), None), (Some("failed"), Some("timeout")), (Some("dropped"), None)]
        );
        let spans: Vec<Option<&str>> =
            heard.iter().filter(|heard| heard.is_span).map(|heard| heard.get("outcome")).collect();
        assert_eq!(spans, [Some("completed"), Some("failed"), Some("dropped")]);
        assert!(heard.iter().filter(|heard| heard.is_span).all(|heard| heard.get("duration_us").is_some()));
    }

    #[test]
    fn a_retry_says_why_and_when() {
        let heard = everything("retry", Policy::new().base_delay("250ms").backoff(policy::Backoff::Fixed));
        let retry =
            heard.iter().find(|heard| heard.name == "tidewheel.execute.retry").expect("there was one");
        let told = ["run", "node", "attempt", "code", "error", "delay_ms"].map(|field| retry.get(field));
        assert_eq!(told, ["retry", "greet", "0", "503", "busy", "250"].map(Some));
        assert!(retry.get("reason").is_some_and(|reason| !reason.is_empty()), "{retry:?}");
    }

    #[test]
    fn a_policy_says_the_level_the_prefix_and_what_is_carried_along() {
        for level in LogLevel::ALL {
            let policy =
                Policy::new().log_level(*level).telemetry_prefix("orders.llm").metadata("team", "search");
            let (capture, run) = (Capture::everywhere(TARGET), format!("fields-{level}"));
            let runnable = runnable(&run, policy);
            drop(Execution::begin(&runnable, runnable.policy()));
            timeout(&runnable, runnable.policy(), &Failure::new("late").code("timeout"));
            let heard = capture.of_run(&run);
            let Some(expected) = level_of(*level) else {
                assert!(heard.is_empty(), "{heard:?}");
                continue;
            };
            assert_eq!(heard.len(), 4, "{heard:?}");
            for heard in heard {
                assert_eq!(heard.level, expected);
                assert_eq!(heard.get("prefix"), Some("orders.llm"));
                assert_eq!(heard.get("name"), Some(format!("orders.llm.{}", heard.name).as_str()));
                assert_eq!(heard.get("metadata"), Some(r#"{"team":"search"}"#));
            }
        }
    }
}
