//! SCHED_POLICY_EVALUATE: what does the policy say about the last failure of a step?

use std::borrow::Cow;

use serde::Serialize;

use super::engine::Engine;
use super::envelope::{
    Envelope, EnvelopeFields, U16, U32, U64, WorkOrder, WorkOrderFields, check_schema_version, read_envelope,
};
use super::kernel::{self, Action, OnNotRetryable, Outcome, RetryPolicy, Situation};
use super::reason::{Capability, ReasonCode};
use super::refusal::{Checks, Refusal, must_be_true, non_zero, within};
use crate::json::{Field, Fields};
use crate::policy::{Backoff, Delays, Jitter, JitterSeed};
use crate::time::{Span, Timestamp};

/// A question about the last failure of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvaluateRequest<'a> {
    /// The version of this form: 1.
    pub schema_version: u32,
    /// Who asks, and within which bounds.
    pub envelope: Envelope,
    /// The step in question.
    pub step: StepState<'a>,
}

/// Where a step stands: its identity, its limits and its last failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepState<'a> {
    /// Which work it is about.
    pub work: WorkOrder<'a>,
    /// The present; not 0 and not before the start.
    pub now_ns: u64,
    /// When the first attempt of the step started; not 0.
    pub step_started_at_ns: u64,
    /// The time for all attempts together; not 0.
    pub timeout_ms: u32,
    /// How many attempts may follow the first, 0 to 1024.
    pub max_retries: u16,
    /// The delay before the next attempt, 1 to the envelope's bound.
    pub retry_backoff_ms: u32,
    /// The attempt that failed, counted from 0.
    pub attempt_index: u16,
    /// Why it failed, if it did; not 0.
    pub last_failure_reason_code: Option<u32>,
    /// The failures that may be retried: at least one, none of them 0, none twice.
    pub retryable_reason_codes: Cow<'a, [u32]>,
    /// The rule that waiting never advances the attempt; must be set.
    pub wait_is_pause_only: bool,
}

/// What the policy says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Evaluation<'a> {
    /// What was asked.
    pub capability_id: Capability,
    /// The posture: whether a retry is allowed, or the first reason why not.
    pub reason_code: ReasonCode,
    /// Echoed.
    pub correlation_id: u128,
    /// Echoed.
    pub turn_id: u64,
    /// Echoed.
    pub tenant_id: Cow<'a, str>,
    /// Echoed.
    pub work_order_id: Cow<'a, str>,
    /// Echoed.
    pub step_id: Cow<'a, str>,
    /// Echoed.
    pub attempt_index: u16,
    /// One more than the attempt when a retry is allowed, the same otherwise.
    pub next_attempt_index: u16,
    /// Whether the time for all attempts is over.
    pub timeout_exceeded: bool,
    /// Whether all retries were made.
    pub max_retries_reached: bool,
    /// Whether a retry is allowed.
    pub retry_allowed: bool,
    /// Echoed.
    pub retry_backoff_ms: u32,
    /// Always true.
    pub wait_is_pause_only: bool,
    /// Always true.
    pub deterministic: bool,
}

impl Engine {
    /// Evaluates what the policy says about a failure.
    ///
    /// # Errors
    /// A refusal that names the first field in violation.
    pub fn evaluate<'r>(&self, request: &'r EvaluateRequest<'_>) -> Result<Evaluation<'r>, Refusal> {
        let fields = EvaluateFields::of(request.schema_version, request.envelope, &request.step);
        fields.check(self).map(evaluate)
    }
}

/// A request whose fields are not checked yet.
pub(super) struct EvaluateFields<'a> {
    schema_version: Field<u32>,
    envelope: Field<EnvelopeFields>,
    work: WorkOrderFields<'a>,
    now_ns: Field<u64>,
    step_started_at_ns: Field<u64>,
    timeout_ms: Field<u32>,
    max_retries: Field<u16>,
    retry_backoff_ms: Field<u32>,
    attempt_index: Field<u16>,
    last_failure_reason_code: Field<u32>,
    retryable_reason_codes: Field<Cow<'a, [u32]>>,
    wait_is_pause_only: Field<bool>,
    /// What may hold keys that nobody asked for: the envelope and the request.
    surplus: Vec<Fields<'a>>,
}

impl<'a> EvaluateFields<'a> {
    pub(super) fn of(schema_version: u32, envelope: Envelope, step: &'a StepState<'_>) -> Self {
        Self {
            schema_version: Field::Given(schema_version),
            envelope: Field::Given(EnvelopeFields::of(envelope)),
            work: WorkOrderFields::of(&step.work),
            now_ns: Field::Given(step.now_ns),
            step_started_at_ns: Field::Given(step.step_started_at_ns),
            timeout_ms: Field::Given(step.timeout_ms),
            max_retries: Field::Given(step.max_retries),
            retry_backoff_ms: Field::Given(step.retry_backoff_ms),
            attempt_index: Field::Given(step.attempt_index),
            last_failure_reason_code: step.last_failure_reason_code.map_or(Field::Missing, Field::Given),
            retryable_reason_codes: Field::Given(Cow::Borrowed(&step.retryable_reason_codes)),
            wait_is_pause_only: Field::Given(step.wait_is_pause_only),
            surplus: Vec::new(),
        }
    }

    /// Reads a request with a nested envelope.
    pub(super) fn read(mut fields: Fields<'a>) -> Self {
        let (envelope, left) = read_envelope(&mut fields);
        Self::read_with(fields, envelope, left)
    }

    /// Reads the rest of a request whose envelope was read already.
    pub(super) fn read_with(
        mut fields: Fields<'a>,
        envelope: Field<EnvelopeFields>,
        envelope_left: Option<Fields<'a>>,
    ) -> Self {
        Self {
            schema_version: fields.uint("schema_version", U32),
            envelope,
            work: WorkOrderFields::read(&mut fields),
            now_ns: fields.uint("now_ns", U64),
            step_started_at_ns: fields.uint("step_started_at_ns", U64),
            timeout_ms: fields.uint("timeout_ms", U32),
            max_retries: fields.uint("max_retries", "must be an integer within 0..=1024"),
            retry_backoff_ms: fields.uint("retry_backoff_ms", U32),
            attempt_index: fields.uint("attempt_index", U16),
            last_failure_reason_code: fields.uint("last_failure_reason_code", U32),
            retryable_reason_codes: match fields.uints("retryable_reason_codes", U32) {
                Field::Given(codes) => Field::Given(Cow::Owned(codes)),
                Field::Missing => Field::Missing,
                Field::Wrong(reason) => Field::Wrong(reason),
            },
            wait_is_pause_only: fields.boolean("wait_is_pause_only"),
            surplus: envelope_left.into_iter().chain([fields]).collect(),
        }
    }

    /// Checks presence, type and range of each field in the order of the contract, then the budgets.
    pub(super) fn check(self, engine: &Engine) -> Result<Valid<'a>, Refusal> {
        let budgets = engine.budgets();
        let mut checks = Checks::of(Capability::PolicyEvaluate);
        check_schema_version(&mut checks, self.schema_version);
        let envelope =
            checks.required("envelope", self.envelope).and_then(|fields| fields.check(&mut checks));
        let work = self.work.check(&mut checks);
        let now = checks.tested("now_ns", self.now_ns, non_zero);
        let started = checks.required("step_started_at_ns", self.step_started_at_ns);
        if started == Some(0) {
            checks.fail("now_ns", "must not be 0, nor must step_started_at_ns");
        } else if let (Some(now), Some(started)) = (now, started)
            && now < started
        {
            checks.fail("now_ns", "must not be before step_started_at_ns");
        }
        let timeout_ms = checks.tested("timeout_ms", self.timeout_ms, non_zero);
        let max_retries = checks.tested("max_retries", self.max_retries, within(0, 1024));
        let backoff_bound = envelope.map_or(u32::MAX, |envelope| envelope.max_backoff_ms);
        let retry_backoff_ms =
            checks.tested("retry_backoff_ms", self.retry_backoff_ms, within(1, backoff_bound));
        let attempt_index = checks.required("attempt_index", self.attempt_index);
        let codes = checks.tested("retryable_reason_codes", self.retryable_reason_codes, |codes| {
            check_codes(codes, envelope.as_ref())
        });
        let last_failure = checks.optional("last_failure_reason_code", self.last_failure_reason_code);
        if last_failure == Some(0) {
            checks.fail("last_failure_reason_code", "must not be 0");
        }
        checks.tested("wait_is_pause_only", self.wait_is_pause_only, must_be_true);
        checks.no_surplus(self.surplus);
        if checks.passed() {
            if let Some(codes) = &codes
                && codes.len() > usize::from(budgets.max_retryable_reason_codes)
            {
                let reason = format!(
                    "has {} codes, the engine's budget is {}",
                    codes.len(),
                    budgets.max_retryable_reason_codes
                );
                checks.fail_with(ReasonCode::BudgetExceeded, "retryable_reason_codes", reason);
            }
            check_backoff_budget(&mut checks, engine, retry_backoff_ms);
        }
        let max_diagnostics = envelope.map_or(budgets.max_diagnostics, |envelope| {
            envelope.max_diagnostics.min(budgets.max_diagnostics)
        });
        checks.finish(max_diagnostics)?;

        let valid = || {
            Some(Valid {
                envelope: envelope?,
                work: work?,
                now_ns: now?,
                step_started_at_ns: started?,
                timeout_ms: timeout_ms?,
                max_retries: max_retries?,
                retry_backoff_ms: retry_backoff_ms?,
                attempt_index: attempt_index?,
                retryable: last_failure.is_some_and(|code| codes.is_some_and(|codes| codes.contains(&code))),
            })
        };
        Ok(valid().expect("invariant: a field without a value is a violation"))
    }
}

/// Tests a backoff against the engine's budget.
pub(super) fn check_backoff_budget(checks: &mut Checks, engine: &Engine, retry_backoff_ms: Option<u32>) {
    let budget = engine.budgets().max_backoff_ms;
    if let Some(backoff) = retry_backoff_ms
        && backoff > budget
    {
        let reason = format!("is {backoff}, the engine's budget is {budget}");
        checks.fail_with(ReasonCode::BudgetExceeded, "retry_backoff_ms", reason);
    }
}

fn check_codes(codes: &[u32], envelope: Option<&Envelope>) -> Result<(), Cow<'static, str>> {
    if codes.is_empty() {
        return Err(Cow::Borrowed("must not be empty"));
    }
    if let Some(envelope) = envelope
        && codes.len() > usize::from(envelope.max_retryable_reason_codes)
    {
        let most = envelope.max_retryable_reason_codes;
        return Err(Cow::Owned(format!(
            "must have at most {most} codes (the envelope's bound), got {}",
            codes.len()
        )));
    }
    if codes.contains(&0) {
        return Err(Cow::Borrowed("must not contain 0"));
    }
    // A list that was not bounded by an envelope has a violation already; comparing only its head keeps a
    // huge list from costing its square.
    let head = &codes[..codes.len().min(usize::from(super::envelope::MOST_REASON_CODES))];
    if let Some(twice) = head.iter().enumerate().find(|(i, code)| head[..*i].contains(code)) {
        return Err(Cow::Owned(format!("must be unique, {} is there twice", twice.1)));
    }
    Ok(())
}

/// A request that passed its checks.
pub(super) struct Valid<'a> {
    pub(super) envelope: Envelope,
    work: WorkOrder<'a>,
    pub(super) now_ns: u64,
    step_started_at_ns: u64,
    timeout_ms: u32,
    max_retries: u16,
    retry_backoff_ms: u32,
    attempt_index: u16,
    retryable: bool,
}

pub(super) fn evaluate(request: Valid<'_>) -> Evaluation<'_> {
    let policy = RetryPolicy {
        max_retries: u32::from(request.max_retries),
        total_timeout: Some(Span::from_millis(u64::from(request.timeout_ms))),
        ..facade_policy(request.retry_backoff_ms)
    };
    let situation = Situation {
        step_started_at: Timestamp::from_nanos(request.step_started_at_ns),
        // No failure yet counts as one that is not retryable, so that a spent limit is still reported.
        outcome: Outcome::Failed { retryable: request.retryable, retry_after: None },
        ..facade_situation(request.now_ns, request.attempt_index)
    };
    let decision = kernel::decide(&policy, &situation);
    let retry_allowed = matches!(decision.action, Action::RetryAt(_));
    Evaluation {
        capability_id: Capability::PolicyEvaluate,
        reason_code: if retry_allowed { ReasonCode::OkPolicyEvaluate } else { decision.reason },
        correlation_id: request.envelope.correlation_id,
        turn_id: request.envelope.turn_id,
        tenant_id: request.work.tenant_id,
        work_order_id: request.work.work_order_id,
        step_id: request.work.step_id,
        attempt_index: request.attempt_index,
        // Invariant: a retry is below max_retries, which is at most 1024.
        next_attempt_index: request.attempt_index + u16::from(retry_allowed),
        timeout_exceeded: kernel::total_timeout_is_over(&policy, &situation),
        max_retries_reached: kernel::retries_are_spent(&policy, &situation),
        retry_allowed,
        retry_backoff_ms: request.retry_backoff_ms,
        wait_is_pause_only: true,
        deterministic: true,
    }
}

/// The façade in the kernel's terms: a fixed backoff, no look-ahead, waiting on what is not retryable.
pub(super) const fn facade_policy(retry_backoff_ms: u32) -> RetryPolicy {
    let backoff = Span::from_millis(retry_backoff_ms as u64);
    RetryPolicy {
        max_retries: 0,
        delays: Delays { backoff: Backoff::Fixed, jitter: Jitter::None, base: backoff, max: backoff },
        total_timeout: None,
        on_not_retryable: OnNotRetryable::Wait,
        lookahead: false,
        on_circuit_open: kernel::OnCircuitOpen::Wait,
    }
}

pub(super) const fn facade_situation(now_ns: u64, attempt_index: u16) -> Situation {
    // The façade has no jitter, so the seed has no effect.
    Situation::failed(attempt_index as u32, Timestamp::from_nanos(now_ns), JitterSeed::from_folded(0))
}
