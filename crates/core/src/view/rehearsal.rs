//! A rehearsal: what a policy would do to work that fails in a given way. Nothing runs; time is counted.

use serde::Serialize;

use crate::decide::{Action, Decision, RetryPolicy, Situation, decide};
use crate::policy::{JitterSeed, Resolved};
use crate::time::{Span, Timestamp};

/// How the work behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// How many attempts fail before one succeeds.
    pub failures: u32,
    /// How long each attempt takes; a shorter timeout of the policy cuts it.
    pub attempt_takes: Span,
    /// Who is waiting, for jitter.
    pub seed: JitterSeed,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rehearsal {
    /// The attempts in order, at least one.
    pub attempts: Vec<Attempt>,
    /// Whether the last one succeeded.
    pub succeeded: bool,
    /// Whether more attempts would follow than a rehearsal counts.
    pub cut: bool,
    /// From the acceptance of the work to the end of the last attempt, in milliseconds.
    pub total_ms: u64,
}

/// One attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Attempt {
    /// When it started, in milliseconds after the work was accepted.
    pub start_ms: u64,
    /// When it ended.
    pub end_ms: u64,
    /// What was decided after it failed; `None` when it succeeded.
    pub decision: Option<Decision>,
}

/// Plays a script under a policy, by the same decisions that real work gets.
///
/// Delays, timeouts and deadlines act. What depends on other work is left out: circuit breakers, retry budgets,
/// limits and queues.
///
/// ```
/// # use tidewheel_core as tidewheel;
/// use tidewheel::policy::{JitterSeed, Policy};
/// use tidewheel::time::Span;
/// use tidewheel::view::{Script, rehearse};
///
/// let script = Script {
///     failures: 2,
///     attempt_takes: Span::from_millis(100),
///     seed: JitterSeed::new("run", "fetch"),
/// };
/// let rehearsal = rehearse(&Policy::llm().resolved()?, &script);
/// let starts: Vec<u64> = rehearsal.attempts.iter().map(|attempt| attempt.start_ms).collect();
/// assert_eq!(starts, [0, 1_100, 3_200]);
/// assert!(rehearsal.succeeded);
/// # Ok::<(), tidewheel::Problems>(())
/// ```
#[must_use]
pub fn rehearse(policy: &Resolved, script: &Script) -> Rehearsal {
    let rules = RetryPolicy::from(policy);
    let accepted = Timestamp::from_nanos(0);
    let first_start = accepted.saturating_add(policy.delay.unwrap_or(Span::ZERO));
    let deadline = policy.deadline.span().map(|span| accepted.saturating_add(span));
    let total = policy.total_timeout.span().map(|span| first_start.saturating_add(span));

    let mut attempts = Vec::new();
    let (mut start, mut attempt) = (first_start, 0);
    let (succeeded, cut) = loop {
        let timeout = policy.timeout.span().map(|timeout| start.saturating_add(timeout));
        let natural_end = start.saturating_add(script.attempt_takes);
        let forced_end =
            [timeout, total, deadline].into_iter().flatten().min().filter(|end| *end <= natural_end);
        let end = forced_end.unwrap_or(natural_end);
        let mut entry = Attempt { start_ms: millis(start), end_ms: millis(end), decision: None };
        if attempt >= script.failures && forced_end.is_none() {
            attempts.push(entry);
            break (true, false);
        }
        let situation = Situation {
            step_started_at: first_start,
            run_deadline: deadline,
            ..Situation::failed(attempt, end, script.seed)
        };
        let decision = decide(&rules, &situation);
        entry.decision = Some(decision);
        attempts.push(entry);
        match decision.action {
            Action::RetryAt(_) if attempts.len() >= MOST_ATTEMPTS => break (false, true),
            Action::RetryAt(due) => start = due,
            Action::Fail | Action::Wait(_) => break (false, false),
        }
        attempt = decision.attempt_next;
    };
    let total_ms = attempts.last().map_or(0, |last| last.end_ms);
    Rehearsal { attempts, succeeded, cut, total_ms }
}

/// Enough to see where a policy leads, and an end for one that would go on for ever.
const MOST_ATTEMPTS: usize = 1_000;

const fn millis(instant: Timestamp) -> u64 {
    instant.as_nanos() / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::ReasonCode;
    use crate::policy::{Backoff, Policy};

    fn script(failures: u32, millis: u64) -> Script {
        Script { failures, attempt_takes: Span::from_millis(millis), seed: JitterSeed::new("r", "n") }
    }

    fn last_reason(rehearsal: &Rehearsal) -> Option<ReasonCode> {
        rehearsal.attempts.last().and_then(|attempt| attempt.decision).map(|decision| decision.reason)
    }

    #[test]
    fn a_timeout_cuts_each_attempt_and_counts_as_a_failure() {
        let policy = Policy::new().max_retries(1).timeout("100ms").resolved().unwrap();
        let rehearsal = rehearse(&policy, &script(0, 500));
        assert_eq!(rehearsal.attempts.iter().map(|a| a.end_ms).collect::<Vec<_>>(), [100, 200]);
        assert_eq!(last_reason(&rehearsal), Some(ReasonCode::MaxRetriesReached));
    }

    #[test]
    fn the_time_for_all_attempts_ends_them() {
        let policy = Policy::new().max_retries(9).total_timeout("1s").resolved().unwrap();
        let rehearsal = rehearse(&policy, &script(9, 400));
        assert_eq!(rehearsal.attempts.iter().map(|a| a.end_ms).collect::<Vec<_>>(), [400, 800, 1_000]);
        assert_eq!(last_reason(&rehearsal), Some(ReasonCode::Timeout));
    }

    #[test]
    fn the_deadline_counts_from_the_acceptance_and_a_delay_comes_before_the_first_attempt() {
        let policy = Policy::new()
            .max_retries(9)
            .backoff(Backoff::Fixed)
            .delay("1s")
            .deadline("2s")
            .resolved()
            .unwrap();
        let rehearsal = rehearse(&policy, &script(9, 100));
        assert_eq!(rehearsal.attempts.iter().map(|a| a.start_ms).collect::<Vec<_>>(), [1_000, 1_600]);
        assert_eq!(last_reason(&rehearsal), Some(ReasonCode::DeadlineExceeded));
    }

    #[test]
    fn a_policy_without_end_is_cut() {
        let policy = Policy::new().max_retries(u32::MAX).backoff(Backoff::Fixed).resolved().unwrap();
        let rehearsal = rehearse(&policy, &script(u32::MAX, 1));
        assert!(rehearsal.cut && rehearsal.attempts.len() == MOST_ATTEMPTS);
    }
}
