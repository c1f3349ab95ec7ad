//! The bare kernel and the bare backoff as JSON: the forms in which they are asked, and logged.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use super::answer::{Answer, whole_object};
use super::envelope::{U32, U64};
use super::kernel::{CircuitView, OnCircuitOpen, OnNotRetryable, Outcome, RetryPolicy, Situation, decide};
use super::reason::Capability;
use super::refusal::{Checks, Refusal, non_zero};
use crate::json::{self, Field, Fields};
use crate::policy::{
    Backoff, Coefficient, DEFAULT_BASE_DELAY, DEFAULT_MAX_DELAY, Delays, Jitter, JitterSeed,
};
use crate::time::{Span, Timestamp};

/// As many violations after the first as any engine reports.
const MAX_DIAGNOSTICS: u8 = 16;

/// Answers `{"policy": …, "context": …}` with the kernel's decision.
#[must_use]
pub fn decide_json(line: &str) -> Answer<'_> {
    match read_question(line) {
        Ok((policy, situation)) => Answer::Decided(decide(&policy, &situation)),
        Err(refusal) => Answer::Refused(refusal),
    }
}

/// Answers `{"policy": …, "seed": …, "attempt_index": …}` with the delay before the next attempt.
#[must_use]
pub fn delay_json(line: &str) -> Answer<'_> {
    let read = || -> Result<(Delays, JitterSeed, u32), Refusal> {
        let mut fields = whole_object(line, Capability::Delay)?;
        let mut checks = Checks::of(Capability::Delay);
        let mut surplus = Vec::new();
        let delays = checks.required("policy", fields.object("policy")).and_then(|mut policy| {
            let delays = read_delays(&mut checks, &mut policy);
            surplus.push(policy);
            delays
        });
        let seed = read_seed(&mut checks, &mut fields, delays.as_ref(), &mut surplus);
        let attempt = checks.required("attempt_index", fields.uint("attempt_index", U32));
        surplus.push(fields);
        checks.no_surplus(surplus);
        checks.finish(MAX_DIAGNOSTICS)?;
        let question = || Some((delays?, seed?, attempt?));
        Ok(question().expect("invariant: a field without a value is a violation"))
    };
    match read() {
        Ok((delays, seed, attempt)) => {
            let delay_ms = delays.after(attempt, seed).as_millis();
            Answer::Delayed { delay_ms, hash: seed.hash(attempt) }
        }
        Err(refusal) => Answer::Refused(refusal),
    }
}

/// Reads a kernel question: the policy first, then the context, unknown keys last.
pub(super) fn read_question(line: &str) -> Result<(RetryPolicy, Situation), Refusal> {
    let fields = whole_object(line, Capability::Kernel)?;
    read_question_fields(fields)
}

pub(super) fn read_question_fields(mut fields: Fields<'_>) -> Result<(RetryPolicy, Situation), Refusal> {
    let mut checks = Checks::of(Capability::Kernel);
    let mut surplus = Vec::new();
    let policy = checks
        .required("policy", fields.object("policy"))
        .and_then(|policy| read_policy(&mut checks, policy, &mut surplus));
    let situation = checks
        .required("context", fields.object("context"))
        .and_then(|context| read_situation(&mut checks, context, policy.as_ref(), &mut surplus));
    surplus.push(fields);
    checks.no_surplus(surplus);
    checks.finish(MAX_DIAGNOSTICS)?;
    let question = || Some((policy?.0, situation?));
    Ok(question().expect("invariant: a field without a value is a violation"))
}

/// Which failure codes a policy retries. The kernel itself only gets the answer.
enum RetryOn {
    All,
    Only(Vec<u32>),
    Except(Vec<u32>),
}

impl RetryOn {
    fn retries(&self, code: Option<u32>) -> bool {
        match (self, code) {
            (Self::All, _) => true,
            (Self::Only(codes), code) => code.is_some_and(|code| codes.contains(&code)),
            (Self::Except(codes), code) => !code.is_some_and(|code| codes.contains(&code)),
        }
    }
}

fn read_policy<'a>(
    checks: &mut Checks,
    mut fields: Fields<'a>,
    surplus: &mut Vec<Fields<'a>>,
) -> Option<(RetryPolicy, RetryOn)> {
    let max_retries = checks.required("max_retries", fields.uint("max_retries", U32));
    let delays = read_delays(checks, &mut fields);
    let total_timeout = checks.optional("total_timeout_ms", fields.uint("total_timeout_ms", U64));
    let retry_on = read_retry_on(checks, &mut fields, surplus);
    let on_not_retryable = one_of(
        checks,
        &mut fields,
        "on_not_retryable",
        &[("fail", OnNotRetryable::Fail), ("wait", OnNotRetryable::Wait)],
    );
    let lookahead = checks.optional("lookahead", fields.boolean("lookahead"));
    let on_circuit_open = one_of(
        checks,
        &mut fields,
        "on_circuit_open",
        &[("wait", OnCircuitOpen::Wait), ("fail", OnCircuitOpen::Fail)],
    );
    surplus.push(fields);
    let policy = RetryPolicy {
        max_retries: max_retries?,
        delays: delays?,
        total_timeout: total_timeout.map(Span::from_millis),
        on_not_retryable: on_not_retryable.unwrap_or_default(),
        lookahead: lookahead.unwrap_or(true),
        on_circuit_open: on_circuit_open.unwrap_or_default(),
    };
    Some((policy, retry_on?))
}

fn read_delays(checks: &mut Checks, fields: &mut Fields<'_>) -> Option<Delays> {
    let backoff = fields.string("backoff");
    let backoff = checks.tested("backoff", backoff, |name| match name.as_ref() {
        "none" | "fixed" | "linear" | "exponential" => Ok(()),
        _ => Err(Cow::Borrowed("must be one of none, fixed, linear, exponential")),
    });
    let base = checks.optional("base_delay_ms", fields.uint("base_delay_ms", U64));
    let max = checks.optional("max_delay_ms", fields.uint("max_delay_ms", U64));
    let coefficient = match checks.optional("coefficient_milli", fields.uint("coefficient_milli", U32)) {
        None => Coefficient::DOUBLE,
        Some(milli) => Coefficient::from_milli(milli).unwrap_or_else(|| {
            checks.fail("coefficient_milli", format!("must be at least 1000, got {milli}"));
            Coefficient::DOUBLE
        }),
    };
    let jitter = one_of(
        checks,
        fields,
        "jitter",
        &[("none", Jitter::None), ("full", Jitter::Full), ("equal", Jitter::Equal)],
    );
    Some(Delays {
        backoff: match backoff?.as_ref() {
            "fixed" => Backoff::Fixed,
            "linear" => Backoff::Linear,
            "exponential" => Backoff::Exponential(coefficient),
            _ => Backoff::None,
        },
        jitter: jitter.unwrap_or_default(),
        base: base.map_or(DEFAULT_BASE_DELAY, Span::from_millis),
        max: max.map_or(DEFAULT_MAX_DELAY, Span::from_millis),
    })
}

fn read_retry_on<'a>(
    checks: &mut Checks,
    fields: &mut Fields<'a>,
    surplus: &mut Vec<Fields<'a>>,
) -> Option<RetryOn> {
    const WANTED: &str = r#"must be "all", {"only": [codes]} or {"except": [codes]}"#;
    let Some(raw) = fields.take("retry_on") else { return Some(RetryOn::All) };
    if raw.get() == r#""all""# {
        return Some(RetryOn::All);
    }
    let Some(mut lists) = Fields::split(raw) else {
        checks.fail("retry_on", json::mismatch(WANTED, raw));
        return None;
    };
    let only = lists.uints::<u32>("only", U32);
    let except = lists.uints::<u32>("except", U32);
    surplus.push(lists);
    match (only, except) {
        (Field::Given(codes), Field::Missing) => Some(RetryOn::Only(codes)),
        (Field::Missing, Field::Given(codes)) => Some(RetryOn::Except(codes)),
        (Field::Wrong(reason), _) => {
            checks.fail("only", *reason);
            None
        }
        (_, Field::Wrong(reason)) => {
            checks.fail("except", *reason);
            None
        }
        (Field::Given(_), Field::Given(_)) | (Field::Missing, Field::Missing) => {
            checks.fail("retry_on", WANTED);
            None
        }
    }
}

fn read_situation<'a>(
    checks: &mut Checks,
    mut fields: Fields<'a>,
    policy: Option<&(RetryPolicy, RetryOn)>,
    surplus: &mut Vec<Fields<'a>>,
) -> Option<Situation> {
    let now = checks.required("now_ns", fields.uint("now_ns", U64));
    let started = checks.required("step_started_at_ns", fields.uint("step_started_at_ns", U64));
    let run_deadline = checks.optional("run_deadline_ns", fields.uint("run_deadline_ns", U64));
    let attempt = checks.required("attempt_index", fields.uint("attempt_index", U32));
    let outcome = read_outcome(checks, &mut fields, policy.map(|(_, retry_on)| retry_on), surplus);
    let circuit = read_circuit(checks, &mut fields, surplus);
    let retry_tokens = checks.optional("retry_tokens", fields.uint("retry_tokens", U32));
    let cancelled = checks.optional("cancelled", fields.boolean("cancelled"));
    let seed = read_seed(checks, &mut fields, policy.map(|(policy, _)| &policy.delays), surplus);
    surplus.push(fields);
    Some(Situation {
        now: Timestamp::from_nanos(now?),
        step_started_at: Timestamp::from_nanos(started?),
        run_deadline: run_deadline.map(Timestamp::from_nanos),
        attempt: attempt?,
        outcome: outcome?,
        circuit: circuit?,
        retry_tokens,
        cancelled: cancelled.unwrap_or(false),
        seed: seed?,
    })
}

fn read_outcome<'a>(
    checks: &mut Checks,
    fields: &mut Fields<'a>,
    retry_on: Option<&RetryOn>,
    surplus: &mut Vec<Fields<'a>>,
) -> Option<Outcome> {
    const WANTED: &str = r#"must be "running" or {"failed": {…}}"#;
    let Some(raw) = fields.take("outcome") else {
        checks.fail("outcome", "is missing");
        return None;
    };
    if raw.get() == r#""running""# {
        return Some(Outcome::Running);
    }
    let mut object = split_or_fail(checks, "outcome", WANTED, raw)?;
    let failed = object.object("failed");
    surplus.push(object);
    let mut failed = checks.required("failed", failed)?;
    let code = match failed.uint::<u32>("code", U32) {
        Field::Missing => None,
        given => checks.tested("code", given, non_zero),
    };
    let non_retryable = checks.optional("non_retryable", failed.boolean("non_retryable"));
    let retry_after = checks.optional("retry_after_ms", failed.uint("retry_after_ms", U64));
    surplus.push(failed);
    Some(Outcome::Failed {
        retryable: !non_retryable.unwrap_or(false) && retry_on?.retries(code),
        retry_after: retry_after.map(Span::from_millis),
    })
}

fn read_circuit<'a>(
    checks: &mut Checks,
    fields: &mut Fields<'a>,
    surplus: &mut Vec<Fields<'a>>,
) -> Option<CircuitView> {
    const WANTED: &str = r#"must be "closed" or {"open_until_ns": …}"#;
    let Some(raw) = fields.take("breaker") else { return Some(CircuitView::Closed) };
    if raw.get() == r#""closed""# {
        return Some(CircuitView::Closed);
    }
    let mut object = split_or_fail(checks, "breaker", WANTED, raw)?;
    let until = object.uint("open_until_ns", U64);
    surplus.push(object);
    checks.required("open_until_ns", until).map(|until| CircuitView::OpenUntil(Timestamp::from_nanos(until)))
}

/// Reads who is waiting: names, or the folded form of a logged decision. Without jitter nobody needs it.
fn read_seed<'a>(
    checks: &mut Checks,
    fields: &mut Fields<'a>,
    delays: Option<&Delays>,
    surplus: &mut Vec<Fields<'a>>,
) -> Option<JitterSeed> {
    const WANTED: &str = r#"must be {"run_id": …, "node": …} or 16 hexadecimal digits"#;
    let Some(raw) = fields.take("seed") else {
        if delays.is_some_and(|delays| delays.jitter != Jitter::None) {
            checks.fail("seed", "is missing: jitter is a function of it");
            return None;
        }
        return Some(JitterSeed::new("", ""));
    };
    if let Some(text) = json::string(raw) {
        let is_hex = text.len() == 16 && text.bytes().all(|b| b.is_ascii_hexdigit());
        let folded = if is_hex { u64::from_str_radix(&text, 16).ok() } else { None };
        if folded.is_none() {
            checks.fail("seed", WANTED);
        }
        return folded.map(JitterSeed::from_folded);
    }
    let mut object = split_or_fail(checks, "seed", WANTED, raw)?;
    let salt = checks.optional("salt", object.string("salt"));
    let run_id = checks.required("run_id", object.string("run_id"));
    let node = checks.required("node", object.string("node"));
    surplus.push(object);
    Some(JitterSeed::salted(salt.as_deref().unwrap_or(JitterSeed::SALT), &run_id?, &node?))
}

fn split_or_fail<'a>(
    checks: &mut Checks,
    name: &'static str,
    wanted: &'static str,
    raw: &'a RawValue,
) -> Option<Fields<'a>> {
    let fields = Fields::split(raw);
    if fields.is_none() {
        let given_word = raw.get().starts_with('"');
        checks.fail(name, if given_word { Cow::Borrowed(wanted) } else { json::mismatch(wanted, raw) });
    }
    fields
}

/// Reads an optional word out of a fixed list.
fn one_of<T: Copy>(
    checks: &mut Checks,
    fields: &mut Fields<'_>,
    name: &'static str,
    words: &[(&'static str, T)],
) -> Option<T> {
    let given = checks.optional(name, fields.string(name))?;
    let found = words.iter().find(|(word, _)| *word == given).map(|(_, value)| *value);
    if found.is_none() {
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        checks.fail(name, format!("must be one of {}", known.join(", ")));
    }
    found
}

/// A kernel policy as it is logged, in the form in which it may be asked again.
#[derive(Serialize)]
pub(super) struct PolicyForm {
    max_retries: u32,
    backoff: &'static str,
    base_delay_ms: u64,
    max_delay_ms: u64,
    coefficient_milli: u32,
    jitter: Jitter,
    total_timeout_ms: Option<u64>,
    on_not_retryable: &'static str,
    lookahead: bool,
    on_circuit_open: &'static str,
}

impl From<&RetryPolicy> for PolicyForm {
    fn from(policy: &RetryPolicy) -> Self {
        let coefficient = match policy.delays.backoff {
            Backoff::Exponential(coefficient) => coefficient,
            Backoff::None | Backoff::Fixed | Backoff::Linear => Coefficient::DOUBLE,
        };
        Self {
            max_retries: policy.max_retries,
            backoff: policy.delays.backoff.name(),
            base_delay_ms: policy.delays.base.as_millis(),
            max_delay_ms: policy.delays.max.as_millis(),
            coefficient_milli: coefficient.as_milli(),
            jitter: policy.delays.jitter,
            total_timeout_ms: policy.total_timeout.map(Span::as_millis),
            on_not_retryable: match policy.on_not_retryable {
                OnNotRetryable::Fail => "fail",
                OnNotRetryable::Wait => "wait",
            },
            lookahead: policy.lookahead,
            on_circuit_open: match policy.on_circuit_open {
                OnCircuitOpen::Wait => "wait",
                OnCircuitOpen::Fail => "fail",
            },
        }
    }
}

/// A situation as it is logged, in the form in which it may be asked again.
#[derive(Serialize)]
pub(super) struct ContextForm {
    now_ns: Timestamp,
    step_started_at_ns: Timestamp,
    run_deadline_ns: Option<Timestamp>,
    attempt_index: u32,
    outcome: OutcomeForm,
    breaker: CircuitForm,
    retry_tokens: Option<u32>,
    cancelled: bool,
    seed: String,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum OutcomeForm {
    Running,
    Failed { non_retryable: bool, retry_after_ms: Option<u64> },
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum CircuitForm {
    Closed,
    OpenUntilNs(Timestamp),
}

impl From<&Situation> for ContextForm {
    fn from(situation: &Situation) -> Self {
        Self {
            now_ns: situation.now,
            step_started_at_ns: situation.step_started_at,
            run_deadline_ns: situation.run_deadline,
            attempt_index: situation.attempt,
            outcome: match situation.outcome {
                Outcome::Running => OutcomeForm::Running,
                Outcome::Failed { retryable, retry_after } => OutcomeForm::Failed {
                    non_retryable: !retryable,
                    retry_after_ms: retry_after.map(Span::as_millis),
                },
            },
            breaker: match situation.circuit {
                CircuitView::Closed => CircuitForm::Closed,
                CircuitView::OpenUntil(until) => CircuitForm::OpenUntilNs(until),
            },
            retry_tokens: situation.retry_tokens,
            cancelled: situation.cancelled,
            seed: format!("{:016x}", situation.seed.folded()),
        }
    }
}
