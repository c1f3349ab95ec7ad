//! Why a piece of work waits, was retried or failed, in sentences: what the log says, with the decision and the
//! reason code of each attempt, and what comes next and when.

use std::collections::BTreeMap;

use super::moment::{between, long, moment};
use super::story::{AttemptLine, Doing, WorkLine, WorkState};
use crate::decide::{Action, Decision, ReasonCode};
use crate::event::Hold;
use crate::time::Timestamp;

/// Explains one piece of work, in the order in which it happened; the last sentence says how it is.
#[must_use]
pub fn explain(work: &WorkLine, now: Timestamp) -> Vec<String> {
    let mut sentences = Vec::new();
    if let Some(of) = &work.undoes {
        sentences.push(format!("It undoes what {of} did."));
    }
    sentences.extend(queued(work, now));
    sentences.extend(held(work));
    let mut round = 0;
    for attempt in &work.attempts {
        if attempt.round > round {
            sentences.push(ANOTHER_CHANCE.to_owned());
        }
        round = attempt.round;
        sentences.extend(tried(attempt, work));
    }
    if work.round > round {
        sentences.push(ANOTHER_CHANCE.to_owned());
    }
    sentences.push(standing(work, now));
    sentences
}

/// Says how an attempt is called: it is counted from zero, so its number is that of the retry.
fn ordinal(attempt: u32) -> String {
    if attempt == 0 { "the first attempt".to_owned() } else { format!("retry {attempt}") }
}

/// Says the same at the beginning of a sentence.
fn at_beginning(attempt: u32) -> String {
    if attempt == 0 { "The first attempt".to_owned() } else { format!("Retry {attempt}") }
}

const ANOTHER_CHANCE: &str = "Then somebody gave it all its attempts again.";

/// Explains how long several pieces of work were held by what, a sentence for each component and cause.
pub fn explain_holds<'a>(works: impl Iterator<Item = &'a WorkLine>) -> Vec<String> {
    let mut sums: BTreeMap<(&str, Hold), (usize, u64)> = BTreeMap::new();
    for work in works {
        for (hold, nanos) in holds(work) {
            let (count, longest) = sums.entry((&work.node, hold)).or_default();
            *count += 1;
            *longest = nanos.max(*longest);
        }
    }
    let told = sums.into_iter().map(|((node, hold), (count, longest))| match count {
        1 => format!("{node} waited {} for {}.", long(longest), awaited(hold)),
        _ => format!("{count} pieces of {node} waited up to {} for {}.", long(longest), awaited(hold)),
    });
    told.collect()
}

/// Says how long it was held by what, where that is over.
fn held(work: &WorkLine) -> Vec<String> {
    let told = holds(work).into_iter();
    told.map(|(hold, nanos)| format!("It waited {} for {}.", long(nanos), awaited(hold))).collect()
}

/// Returns how many nanoseconds it was held by what, where that is over and worth a word.
fn holds(work: &WorkLine) -> BTreeMap<Hold, u64> {
    let mut sums: BTreeMap<Hold, u64> = BTreeMap::new();
    for stretch in &work.stretches {
        if let (Some(hold), Some(to)) = (stretch.hold, stretch.to) {
            *sums.entry(hold).or_default() += between(stretch.from, to);
        }
    }
    sums.retain(|_, nanos| *nanos >= WORTH);
    sums
}

/// Says what a hold waits for.
const fn awaited(hold: Hold) -> &'static str {
    match hold {
        Hold::Admission => "the word that it may begin",
        Hold::Delay => "the delay of its policy",
        Hold::Schedule => "the instant that its policy names",
        Hold::RateLimit => "its rate limit",
        Hold::ConcurrencyLimit => "its concurrency limit",
        Hold::CircuitBreaker => "its circuit breaker",
        Hold::Duplicate => "another piece of work that does the same",
        Hold::External => "somebody outside who ends it",
        Hold::Pause => "a person who says how it goes on",
    }
}

/// Says what holds it now.
fn holding(hold: Hold, on: Option<&str>) -> String {
    let named = |what: &str| on.map_or_else(|| format!("its {what}"), |on| format!("{what} {on}"));
    match hold {
        Hold::Admission => "It waits for the word that it may begin".to_owned(),
        Hold::Delay => "The delay of its policy is not over".to_owned(),
        Hold::Schedule => "Its policy names the instant when it begins".to_owned(),
        Hold::RateLimit => {
            format!("It waits for {}: as many have begun as may in that time", named("rate limit"))
        }
        Hold::ConcurrencyLimit => {
            format!("It waits for {}: as many are under way as may be", named("concurrency limit"))
        }
        Hold::CircuitBreaker => {
            format!("It waits for {}, which is open: what it calls keeps failing", named("circuit breaker"))
        }
        Hold::Duplicate => {
            let key = on.map(|on| format!(", with the key {on}")).unwrap_or_default();
            format!("Another piece of work does the same{key}, and it takes that one's result")
        }
        Hold::External => match on {
            Some(token) => format!("Somebody outside ends it, with the token {token}"),
            None => "Somebody outside ends it".to_owned(),
        },
        Hold::Pause => "It failed, and a person is to say how it goes on".to_owned(),
    }
}

/// What is shorter is not worth a word, in nanoseconds.
const WORTH: u64 = 1_000_000;

/// Says how long it waited for somebody who does it, if that is worth a word.
fn queued(work: &WorkLine, now: Timestamp) -> Option<String> {
    let waits = work.stretches.iter().filter(|stretch| stretch.doing == Doing::Queue && stretch.to.is_some());
    let nanos: u64 = waits.map(|stretch| between(stretch.from, stretch.to.unwrap_or(now))).sum();
    (nanos >= WORTH).then(|| format!("It waited {} in the queue.", long(nanos)))
}

fn tried(attempt: &AttemptLine, work: &WorkLine) -> Option<String> {
    let name = at_beginning(attempt.number);
    let times = attempt.dispatched_at.len();
    let lost = format!("{name} was handed out {times} times, since the process that had it was lost");
    let Some(failure) = &attempt.failure else {
        return (times > 1).then(|| format!("{lost}."));
    };
    let mut sentence = if times > 1 { format!("{lost}; then it") } else { name };
    sentence.push_str(" failed");
    if let (Some(began), Some(ended)) = (attempt.dispatched_at.last(), attempt.decided_at) {
        sentence.push_str(" after ");
        sentence.push_str(&long(between(*began, ended)));
    }
    let said = failure.to_string();
    sentence.push_str(": ");
    sentence.push_str(said.trim_end_matches('.'));
    sentence.push('.');
    if let Some(decision) = attempt.decision {
        sentence.push(' ');
        sentence.push_str(&decided(decision, attempt, work));
    }
    Some(sentence)
}

/// Says what was decided and why.
fn decided(decision: Decision, attempt: &AttemptLine, work: &WorkLine) -> String {
    let code = decision.reason;
    let wait = |until: Timestamp| long(attempt.decided_at.map_or(0, |at| between(at, until)));
    match decision.action {
        Action::RetryAt(due) => {
            let of = work.retries_allowed.map(|allowed| format!(" of {allowed}")).unwrap_or_default();
            let after = match &attempt.failure.as_ref().and_then(|failure| failure.retry_after) {
                Some(asked) => format!("; the failure itself asked for {asked}"),
                None => String::new(),
            };
            let next = decision.attempt_next;
            let is_next = |other: &AttemptLine| other.number == next && other.round == attempt.round;
            let comes = match work.attempts.iter().any(is_next) {
                true => "came",
                false => "comes",
            };
            format!("Retry {next}{of} {comes} {} later{after} ({code}).", wait(due))
        }
        Action::Wait(Some(until)) => {
            format!("It waited {} then: {} ({code}).", wait(until), why(code, work.retries_allowed))
        }
        Action::Wait(None) => format!("It waited then: {} ({code}).", why(code, work.retries_allowed)),
        Action::Fail => format!("No other attempt followed: {} ({code}).", why(code, work.retries_allowed)),
    }
}

/// Says a reason in words.
pub(super) fn why(reason: ReasonCode, retries_allowed: Option<u32>) -> String {
    match (reason, retries_allowed) {
        (ReasonCode::MaxRetriesReached, Some(0)) => "its policy allows no retries".to_owned(),
        (ReasonCode::MaxRetriesReached, Some(1)) => {
            "the one retry that its policy allows was made".to_owned()
        }
        (ReasonCode::MaxRetriesReached, Some(all)) => {
            format!("all {all} retries that its policy allows were made")
        }
        (ReasonCode::MaxRetriesReached, None) => "all retries that its policy allows were made".to_owned(),
        (ReasonCode::Timeout, _) => {
            "the time for all attempts together is over, or would be when a retry starts".to_owned()
        }
        (ReasonCode::DeadlineExceeded, _) => {
            "the deadline of the run is over, or would be when a retry starts".to_owned()
        }
        (ReasonCode::NotRetryable, _) => "its policy does not retry such a failure".to_owned(),
        (ReasonCode::Cancelled, _) => "somebody cancelled it".to_owned(),
        (ReasonCode::CircuitOpen, _) => "its circuit breaker is open".to_owned(),
        (ReasonCode::RetryBudgetExhausted, _) => "the shared retry budget is empty".to_owned(),
        (ReasonCode::AttemptRunning, _) => "the attempt is still under way".to_owned(),
        (ReasonCode::RetryScheduled, _) => "the next attempt has its time".to_owned(),
        (
            ReasonCode::OkPolicyEvaluate
            | ReasonCode::OkDecisionCompute
            | ReasonCode::InputSchemaInvalid
            | ReasonCode::UpstreamInputMissing
            | ReasonCode::BudgetExceeded
            | ReasonCode::InternalPipelineError,
            _,
        ) => "see the reason code".to_owned(),
    }
}

/// Says how it is, and what comes next.
fn standing(work: &WorkLine, now: Timestamp) -> String {
    let of_round = work.attempts.iter().filter(|attempt| attempt.round == work.round);
    let retries = of_round.count().saturating_sub(1);
    let ended = work.ended_at.map(|at| format!(" {}", moment(at, now))).unwrap_or_default();
    let since = || {
        let open = work.stretches.last().filter(|stretch| stretch.to.is_none());
        open.map(|stretch| format!(" for {}", long(between(stretch.from, now)))).unwrap_or_default()
    };
    match work.state {
        WorkState::Held { why, until } => {
            let next = match until {
                Some(until) if until > now && why == Hold::External => {
                    format!("Next: they end it, or its time is over {}.", moment(until, now))
                }
                Some(until) if until > now => format!("Next: somebody looks at it {}.", moment(until, now)),
                Some(_) => "Next: it has its turn when the run goes on and what it needs is free.".to_owned(),
                None if why == Hold::External => "Next: nothing until they do.".to_owned(),
                None => "Next: nothing by itself.".to_owned(),
            };
            format!("{}. That has been so{}. {next}", holding(why, work.held_on.as_deref()), since())
        }
        WorkState::Replaced => "It failed, and was tried again as another piece of work.".to_owned(),
        WorkState::Pending => format!("It has not begun, and has been in the queue{}.", since()),
        WorkState::Running => {
            let name = at_beginning(work.attempts.last().map_or(0, |attempt| attempt.number));
            format!("{name} has been under way{}.", since())
        }
        WorkState::Waiting { until } => {
            let next = work.attempts.last().and_then(|attempt| attempt.decision);
            let name = ordinal(next.map_or(0, |decision| decision.attempt_next));
            let due = if until <= now {
                format!("was due {}, and starts as soon as somebody takes it up", moment(until, now))
            } else {
                format!("is due {}", moment(until, now))
            };
            format!("Next: {name} {due}.")
        }
        WorkState::Completed if retries == 0 => format!("It completed{ended}."),
        WorkState::Completed if retries == 1 => format!("It completed{ended}, with one retry."),
        WorkState::Completed => format!("It completed{ended}, with {retries} retries."),
        WorkState::Recovered => format!("A fallback gave its result{ended}."),
        WorkState::Failed => match (&work.failure, work.decision) {
            (Some(failure), None) => {
                format!("It failed for good{ended}: {}.", failure.to_string().trim_end_matches('.'))
            }
            _ => format!("It failed for good{ended}."),
        },
        WorkState::Skipped => format!("It was skipped{ended}: its policy lets the failure pass."),
    }
}
