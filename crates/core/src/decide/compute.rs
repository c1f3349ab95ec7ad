//! SCHED_DECISION_COMPUTE: what is to be done, given what the evaluation said?

use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};

use super::engine::Engine;
use super::envelope::{
    Envelope, EnvelopeFields, U16, U32, U64, WorkOrder, WorkOrderFields, check_schema_version, read_envelope,
};
use super::evaluate::{Evaluation, check_backoff_budget, facade_policy, facade_situation};
use super::kernel::{self, Decision, Outcome, RetryPolicy, Situation};
use super::reason::{Capability, ReasonCode};
use super::refusal::{Checks, Refusal, must_be_true, non_zero, within};
use crate::json::{Field, Fields};
use crate::time::Span;

/// A question about what to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComputeRequest<'a> {
    /// The version of this form: 1.
    pub schema_version: u32,
    /// Who asks, and within which bounds.
    pub envelope: Envelope,
    /// Which work it is about.
    pub work: WorkOrder<'a>,
    /// The present; not 0.
    pub now_ns: u64,
    /// The delay before the next attempt, 1 to the envelope's bound.
    pub retry_backoff_ms: u32,
    /// Whether the time for all attempts is over.
    pub timeout_exceeded: bool,
    /// Whether all retries were made.
    pub max_retries_reached: bool,
    /// Whether a retry is allowed; excludes both guards.
    pub retry_allowed: bool,
    /// The attempt that failed, counted from 0.
    pub attempt_index: u16,
    /// One more than the attempt when a retry is allowed, the same otherwise.
    pub next_attempt_index: u16,
    /// The rule that waiting never advances the attempt; must be set.
    pub wait_is_pause_only: bool,
}

/// A decision with the ids of its work, so that it can be audited alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Computation<'a> {
    /// What is to be done and why.
    pub decision: Decision,
    /// The envelope it was asked in.
    pub envelope: Envelope,
    /// The work it is about.
    pub work: WorkOrder<'a>,
    /// The attempt that failed.
    pub attempt_index: u16,
}

impl Serialize for Computation<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut form = serializer.serialize_struct("Computation", 13)?;
        form.serialize_field("capability_id", &Capability::DecisionCompute)?;
        form.serialize_field("reason_code", &self.decision.reason)?;
        form.serialize_field("correlation_id", &self.envelope.correlation_id)?;
        form.serialize_field("turn_id", &self.envelope.turn_id)?;
        form.serialize_field("tenant_id", &self.work.tenant_id)?;
        form.serialize_field("work_order_id", &self.work.work_order_id)?;
        form.serialize_field("step_id", &self.work.step_id)?;
        form.serialize_field("action", self.decision.action.name())?;
        form.serialize_field("attempt_index", &self.attempt_index)?;
        form.serialize_field("attempt_next_index", &self.decision.attempt_next)?;
        form.serialize_field("next_due_at_ns", &self.decision.action.due())?;
        form.serialize_field("wait_is_pause_only", &true)?;
        form.serialize_field("deterministic", &true)?;
        form.end()
    }
}

impl Engine {
    /// Computes what is to be done.
    ///
    /// # Errors
    /// A refusal that names the first field in violation.
    pub fn compute<'r>(&self, request: &'r ComputeRequest<'_>) -> Result<Computation<'r>, Refusal> {
        let fields = ComputeFields {
            schema_version: Field::Given(request.schema_version),
            envelope: Field::Given(EnvelopeFields::of(request.envelope)),
            work: WorkOrderFields::of(&request.work),
            now_ns: Field::Given(request.now_ns),
            retry_backoff_ms: Field::Given(request.retry_backoff_ms),
            timeout_exceeded: Field::Given(request.timeout_exceeded),
            max_retries_reached: Field::Given(request.max_retries_reached),
            retry_allowed: Field::Given(request.retry_allowed),
            attempt_index: Field::Given(request.attempt_index),
            next_attempt_index: Field::Given(request.next_attempt_index),
            wait_is_pause_only: Field::Given(request.wait_is_pause_only),
            surplus: Vec::new(),
        };
        fields.check(self).map(compute)
    }
}

/// A request whose fields are not checked yet.
pub(super) struct ComputeFields<'a> {
    schema_version: Field<u32>,
    envelope: Field<EnvelopeFields>,
    work: WorkOrderFields<'a>,
    now_ns: Field<u64>,
    retry_backoff_ms: Field<u32>,
    timeout_exceeded: Field<bool>,
    max_retries_reached: Field<bool>,
    retry_allowed: Field<bool>,
    attempt_index: Field<u16>,
    next_attempt_index: Field<u16>,
    wait_is_pause_only: Field<bool>,
    surplus: Vec<Fields<'a>>,
}

impl<'a> ComputeFields<'a> {
    pub(super) fn read(mut fields: Fields<'a>) -> Self {
        let (envelope, envelope_left) = read_envelope(&mut fields);
        Self {
            schema_version: fields.uint("schema_version", U32),
            envelope,
            work: WorkOrderFields::read(&mut fields),
            now_ns: fields.uint("now_ns", U64),
            retry_backoff_ms: fields.uint("retry_backoff_ms", U32),
            timeout_exceeded: fields.boolean("timeout_exceeded"),
            max_retries_reached: fields.boolean("max_retries_reached"),
            retry_allowed: fields.boolean("retry_allowed"),
            attempt_index: fields.uint("attempt_index", U16),
            next_attempt_index: fields.uint("next_attempt_index", U16),
            wait_is_pause_only: fields.boolean("wait_is_pause_only"),
            surplus: envelope_left.into_iter().chain([fields]).collect(),
        }
    }

    /// Checks presence, type and range of each field in the order of the contract, then the budget.
    pub(super) fn check(self, engine: &Engine) -> Result<Valid<'a>, Refusal> {
        let budgets = engine.budgets();
        let mut checks = Checks::of(Capability::DecisionCompute);
        check_schema_version(&mut checks, self.schema_version);
        let envelope =
            checks.required("envelope", self.envelope).and_then(|fields| fields.check(&mut checks));
        let work = self.work.check(&mut checks);
        let now_ns = checks.tested("now_ns", self.now_ns, non_zero);
        let backoff_bound = envelope.map_or(u32::MAX, |envelope| envelope.max_backoff_ms);
        let retry_backoff_ms =
            checks.tested("retry_backoff_ms", self.retry_backoff_ms, within(1, backoff_bound));
        checks.tested("wait_is_pause_only", self.wait_is_pause_only, must_be_true);
        let timeout_exceeded = checks.required("timeout_exceeded", self.timeout_exceeded);
        let max_retries_reached = checks.required("max_retries_reached", self.max_retries_reached);
        let retry_allowed = checks.required("retry_allowed", self.retry_allowed);
        if retry_allowed == Some(true)
            && (timeout_exceeded == Some(true) || max_retries_reached == Some(true))
        {
            checks
                .fail("retry_allowed", "must be false when timeout_exceeded or max_retries_reached is true");
        }
        let attempt_index = checks.required("attempt_index", self.attempt_index);
        let next_attempt_index = checks.required("next_attempt_index", self.next_attempt_index);
        let mut no_next_attempt = false;
        if let (Some(attempt), Some(next), Some(allowed)) = (attempt_index, next_attempt_index, retry_allowed)
        {
            match attempt.checked_add(u16::from(allowed)) {
                Some(expected) if next != expected => {
                    let rule =
                        if allowed { "attempt_index + 1" } else { "attempt_index: no retry is allowed" };
                    checks.fail("next_attempt_index", format!("must be {expected} ({rule}), got {next}"));
                }
                Some(_) => {}
                None => no_next_attempt = true,
            }
        }
        checks.no_surplus(self.surplus);
        if checks.passed() {
            check_backoff_budget(&mut checks, engine, retry_backoff_ms);
        }
        if checks.passed() && no_next_attempt {
            let reason = "is 65535, the last one: a retry must advance it and cannot";
            checks.fail_with(ReasonCode::InternalPipelineError, "attempt_index", reason);
        }
        let max_diagnostics = envelope.map_or(budgets.max_diagnostics, |envelope| {
            envelope.max_diagnostics.min(budgets.max_diagnostics)
        });
        checks.finish(max_diagnostics)?;

        let valid = || {
            Some(Valid {
                envelope: envelope?,
                work: work?,
                now_ns: now_ns?,
                retry_backoff_ms: retry_backoff_ms?,
                timeout_exceeded: timeout_exceeded?,
                max_retries_reached: max_retries_reached?,
                retry_allowed: retry_allowed?,
                attempt_index: attempt_index?,
            })
        };
        Ok(valid().expect("invariant: a field without a value is a violation"))
    }
}

/// A request that passed its checks.
pub(super) struct Valid<'a> {
    envelope: Envelope,
    work: WorkOrder<'a>,
    now_ns: u64,
    retry_backoff_ms: u32,
    timeout_exceeded: bool,
    max_retries_reached: bool,
    retry_allowed: bool,
    attempt_index: u16,
}

/// Puts the flags in the kernel's terms: a timeout that is over is one of no time at all, and retries are
/// spent when none is allowed.
pub(super) fn compute(request: Valid<'_>) -> Computation<'_> {
    let policy = RetryPolicy {
        max_retries: if request.max_retries_reached { 0 } else { u32::MAX },
        total_timeout: request.timeout_exceeded.then_some(Span::ZERO),
        ..facade_policy(request.retry_backoff_ms)
    };
    let situation = Situation {
        outcome: Outcome::Failed { retryable: request.retry_allowed, retry_after: None },
        ..facade_situation(request.now_ns, request.attempt_index)
    };
    Computation {
        decision: kernel::decide(&policy, &situation),
        envelope: request.envelope,
        work: request.work,
        attempt_index: request.attempt_index,
    }
}

/// Computes what follows an evaluation, which needs no second validation.
pub(super) fn compute_after<'a>(
    evaluation: &Evaluation<'a>,
    envelope: Envelope,
    now_ns: u64,
) -> Computation<'a> {
    compute(Valid {
        envelope,
        work: WorkOrder {
            tenant_id: evaluation.tenant_id.clone(),
            work_order_id: evaluation.work_order_id.clone(),
            step_id: evaluation.step_id.clone(),
        },
        now_ns,
        retry_backoff_ms: evaluation.retry_backoff_ms,
        timeout_exceeded: evaluation.timeout_exceeded,
        max_retries_reached: evaluation.max_retries_reached,
        retry_allowed: evaluation.retry_allowed,
        attempt_index: evaluation.attempt_index,
    })
}
