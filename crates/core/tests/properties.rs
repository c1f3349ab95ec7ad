//! The laws of the decision engine, each over at least 10,000 cases.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use proptest::prelude::*;
use tidewheel_core::decide::{
    Action, CircuitView, Decision, OnCircuitOpen, OnNotRetryable, Outcome, ReasonCode, Record, RetryPolicy,
    Situation, decide, decide_json,
};
use tidewheel_core::policy::{Backoff, Coefficient, Delays, Jitter, JitterSeed};
use tidewheel_core::time::{Span, Timestamp};

/// Numbers that meet: small ones, so that limits are hit and missed, and the ends of the range.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..20_u64, 4 => 0..100_000_u64, 1 => any::<u64>(), 1 => Just(u64::MAX)]
}

fn instant() -> impl Strategy<Value = Timestamp> {
    prop_oneof![3 => (0..20_u64).prop_map(Timestamp::from_millis), 1 => number().prop_map(Timestamp::from_nanos)]
}

fn span() -> impl Strategy<Value = Span> {
    number().prop_map(Span::from_millis)
}

fn attempt() -> impl Strategy<Value = u32> {
    prop_oneof![8 => 0..8_u32, 1 => 0..2_000_u32, 1 => Just(u32::MAX)]
}

fn delays() -> impl Strategy<Value = Delays> {
    let backoff = prop_oneof![
        Just(Backoff::None),
        Just(Backoff::Fixed),
        Just(Backoff::Linear),
        (1_000..5_000_u32).prop_map(|milli| Backoff::Exponential(Coefficient::from_milli(milli).unwrap())),
    ];
    let jitter = prop_oneof![Just(Jitter::None), Just(Jitter::Full), Just(Jitter::Equal)];
    (backoff, jitter, span(), span()).prop_map(|(backoff, jitter, base, max)| Delays {
        backoff,
        jitter,
        base,
        max,
    })
}

fn retry_policy() -> impl Strategy<Value = RetryPolicy> {
    let wait_or_fail = prop_oneof![Just(OnNotRetryable::Fail), Just(OnNotRetryable::Wait)];
    let on_open = prop_oneof![Just(OnCircuitOpen::Fail), Just(OnCircuitOpen::Wait)];
    (attempt(), delays(), prop::option::of(span()), wait_or_fail, any::<bool>(), on_open).prop_map(
        |(max_retries, delays, total_timeout, on_not_retryable, lookahead, on_circuit_open)| RetryPolicy {
            max_retries,
            delays,
            total_timeout,
            on_not_retryable,
            lookahead,
            on_circuit_open,
        },
    )
}

fn situation() -> impl Strategy<Value = Situation> {
    let outcome = prop_oneof![
        1 => Just(Outcome::Running),
        5 => (prop::bool::weighted(0.8), prop::option::of(span()))
            .prop_map(|(retryable, retry_after)| Outcome::Failed { retryable, retry_after }),
    ];
    let circuit =
        prop_oneof![3 => Just(CircuitView::Closed), 1 => instant().prop_map(CircuitView::OpenUntil)];
    let tokens = prop_oneof![3 => Just(None), 1 => (0..3_u32).prop_map(Some)];
    let times = (instant(), instant(), prop::option::of(instant()));
    (times, attempt(), outcome, circuit, tokens, prop::bool::weighted(0.1), any::<u64>()).prop_map(
        |((one, other, run_deadline), attempt, outcome, circuit, retry_tokens, cancelled, seed)| Situation {
            // A clock may have been set back in between.
            now: one,
            step_started_at: other,
            run_deadline,
            attempt,
            outcome,
            circuit,
            retry_tokens,
            cancelled,
            seed: JitterSeed::from_folded(seed),
        },
    )
}

/// The kernel once more, written from its description: a list of questions, the first yes wins. The last part
/// of the answer is when to look again.
fn naive(policy: &RetryPolicy, s: &Situation) -> (&'static str, ReasonCode, Option<u64>) {
    let now = u128::from(s.now.as_nanos());
    let nanos = |span: Span| u128::from(span.as_millis()) * 1_000_000;
    let started = u128::from(s.step_started_at.as_nanos());
    // A span that cannot be counted in nanoseconds is never over.
    let countable = |span: &Span| nanos(*span) <= u128::from(u64::MAX);
    // A clock that was set back has counted nothing yet.
    let total_over = |at: u128| {
        let total = policy.total_timeout.filter(countable);
        total.is_some_and(|span| at.saturating_sub(started) >= nanos(span))
    };
    let deadline = s.run_deadline.map(|at| u128::from(at.as_nanos()));
    let over = |end: Option<u128>, at: u128| end.is_some_and(|end| at >= end);
    let (retryable, retry_after) = match s.outcome {
        Outcome::Running => (false, None),
        Outcome::Failed { retryable, retry_after } => (retryable, retry_after),
    };
    let delay = nanos(policy.delays.after(s.attempt, s.seed)).max(retry_after.map_or(0, nanos));
    let due = (now + delay).min(u128::from(u64::MAX));
    let open = matches!(s.circuit, CircuitView::OpenUntil(until) if u128::from(until.as_nanos()) > now);
    let on_not_retryable = if policy.on_not_retryable == OnNotRetryable::Fail { "FAIL" } else { "WAIT" };
    let on_open = if policy.on_circuit_open == OnCircuitOpen::Fail { "FAIL" } else { "WAIT" };
    let questions = [
        (s.cancelled, "FAIL", ReasonCode::Cancelled),
        (total_over(now), "FAIL", ReasonCode::Timeout),
        (over(deadline, now), "FAIL", ReasonCode::DeadlineExceeded),
        (s.outcome == Outcome::Running, "WAIT", ReasonCode::AttemptRunning),
        (s.attempt >= policy.max_retries, "FAIL", ReasonCode::MaxRetriesReached),
        (!retryable, on_not_retryable, ReasonCode::NotRetryable),
        (open, on_open, ReasonCode::CircuitOpen),
        (s.retry_tokens == Some(0), "FAIL", ReasonCode::RetryBudgetExhausted),
        (policy.lookahead && total_over(due), "FAIL", ReasonCode::Timeout),
        (policy.lookahead && over(deadline, due), "FAIL", ReasonCode::DeadlineExceeded),
    ];
    let first = questions.into_iter().find(|(yes, ..)| *yes);
    let (action, reason) =
        first.map_or(("RETRY_AT", ReasonCode::RetryScheduled), |(_, action, reason)| (action, reason));
    let limits = [policy.total_timeout.map(|span| started + nanos(span)), deadline];
    let wake = match (action, reason, s.circuit) {
        ("WAIT", ReasonCode::AttemptRunning, _) => limits.into_iter().flatten().min(),
        ("WAIT", ReasonCode::CircuitOpen, CircuitView::OpenUntil(until)) => {
            Some(u128::from(until.as_nanos()))
        }
        _ => None,
    };
    (action, reason, wake.map(|at| u64::try_from(at).unwrap_or(u64::MAX)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn the_kernel_answers_like_its_description(policy in retry_policy(), situation in situation()) {
        let decision = decide(&policy, &situation);
        let wake = decision.action.wake().map(Timestamp::as_nanos);
        prop_assert_eq!((decision.action.name(), decision.reason, wake), naive(&policy, &situation));
    }

    #[test]
    fn only_a_retry_advances_and_by_one_and_never_into_the_past(policy in retry_policy(), situation in situation()) {
        let decision = decide(&policy, &situation);
        match decision.action {
            Action::RetryAt(due) => {
                prop_assert_eq!(decision.attempt_next, situation.attempt + 1);
                prop_assert!(due >= situation.now);
                prop_assert!(situation.attempt < policy.max_retries);
            }
            Action::Fail | Action::Wait(_) => prop_assert_eq!(decision.attempt_next, situation.attempt),
        }
    }

    #[test]
    fn equal_in_equal_out_whatever_was_decided_before(
        questions in prop::collection::vec((retry_policy(), situation()), 1..5),
    ) {
        let ask = |(policy, situation): &(RetryPolicy, Situation)| decide(policy, situation);
        let forwards: Vec<Decision> = questions.iter().map(ask).collect();
        let mut backwards: Vec<Decision> = questions.iter().rev().map(ask).collect();
        backwards.reverse();
        prop_assert_eq!(forwards, backwards);
    }

    #[test]
    fn more_retries_never_turn_a_retry_into_a_failure(policy in retry_policy(), situation in situation(), more in attempt()) {
        let generous = RetryPolicy { max_retries: policy.max_retries.saturating_add(more), ..policy };
        let decision = decide(&policy, &situation);
        if matches!(decision.action, Action::RetryAt(_)) {
            prop_assert_eq!(decide(&generous, &situation), decision);
        }
    }

    #[test]
    fn delays_stay_within_their_bounds(delays in delays(), attempt in attempt(), seed in any::<u64>()) {
        let seed = JitterSeed::from_folded(seed);
        let delay = delays.after(attempt, seed);
        let raw = Delays { jitter: Jitter::None, ..delays }.after(attempt, seed);
        prop_assert!(raw <= delays.max);
        match delays.jitter {
            _ if raw.is_zero() => prop_assert!(delay.is_zero()),
            Jitter::None => prop_assert_eq!(delay, raw),
            Jitter::Full => prop_assert!(!delay.is_zero() && delay <= raw),
            Jitter::Equal => prop_assert!(delay.as_millis() >= raw.as_millis().div_ceil(2) && delay <= raw),
        }
    }

    #[test]
    fn delays_never_shrink_from_attempt_to_attempt(delays in delays(), attempt in 0..200_u32) {
        let (seed, steady) = (JitterSeed::from_folded(0), Delays { jitter: Jitter::None, ..delays });
        prop_assert!(steady.after(attempt, seed) <= steady.after(attempt + 1, seed));
    }

    #[test]
    fn a_logged_decision_is_made_again_to_the_same_bytes(policy in retry_policy(), situation in situation()) {
        let logged = Record::decide(policy, situation).to_json();
        let read = Record::from_json(&logged).unwrap();
        prop_assert_eq!(read.redecided().to_json(), &logged[..]);
        prop_assert_eq!((read.policy, read.situation), (policy, situation));
        let falsified = Record { decision: Decision { attempt_next: 77, ..read.decision }, ..read };
        prop_assert_eq!(falsified.redecided().to_json(), &logged[..], "a false decision is found out");
    }

    #[test]
    fn a_logged_decision_can_be_asked_again_as_a_question(policy in retry_policy(), situation in situation()) {
        let record = Record::decide(policy, situation);
        let logged = record.to_json();
        let (question, _) = logged.rsplit_once(r#","decision":"#).unwrap();
        let question = question.replacen(r#""v":1,"#, "", 1);
        let answer = decide_json(&format!("{question}}}")).to_json();
        let decision: Decision = serde_json::from_str(&answer.replace(r#""kind":"ok","#, "")).unwrap();
        prop_assert_eq!(decision, record.decision);
    }
}
