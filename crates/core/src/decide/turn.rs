//! One turn: evaluate and decide over one flat input, within the bounds of the caller's wiring.

use super::compute::{Computation, compute_after};
use super::engine::{Engine, Wiring};
use super::envelope::{Envelope, EnvelopeFields, U64};
use super::evaluate::{EvaluateFields, Evaluation, StepState, evaluate};
use super::refusal::Refusal;
use crate::json::{Field, Fields};

/// A question about a failure and what to do about it. The wiring puts the bounds of the envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnRequest<'a> {
    /// The version of this form: 1.
    pub schema_version: u32,
    /// Ties the decision to what caused it; not 0.
    pub correlation_id: u128,
    /// The turn of the caller; not 0.
    pub turn_id: u64,
    /// The step in question.
    pub step: StepState<'a>,
}

/// What came of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn<'a> {
    /// What the policy says.
    pub evaluation: Evaluation<'a>,
    /// What is to be done.
    pub computation: Computation<'a>,
}

impl Engine {
    /// Evaluates and decides in one turn; `None` when the wiring is switched off and nothing was looked at.
    ///
    /// # Errors
    /// A refusal that names the first field in violation.
    pub fn turn<'r>(
        &self,
        wiring: &Wiring,
        request: &'r TurnRequest<'_>,
    ) -> Result<Option<Turn<'r>>, Refusal> {
        if !wiring.is_enabled() {
            return Ok(None);
        }
        let bounds = wiring.bounds();
        let envelope = Envelope {
            correlation_id: request.correlation_id,
            turn_id: request.turn_id,
            max_retryable_reason_codes: bounds.max_retryable_reason_codes,
            max_diagnostics: bounds.max_diagnostics,
            max_backoff_ms: bounds.max_backoff_ms,
        };
        self.turn_fields(EvaluateFields::of(request.schema_version, envelope, &request.step)).map(Some)
    }

    /// Evaluates and decides over a flat input that is not checked yet.
    pub(super) fn turn_fields<'a>(&self, fields: EvaluateFields<'a>) -> Result<Turn<'a>, Refusal> {
        let valid = fields.check(self)?;
        let (envelope, now_ns) = (valid.envelope, valid.now_ns);
        let evaluation = evaluate(valid);
        let computation = compute_after(&evaluation, envelope, now_ns);
        Ok(Turn { evaluation, computation })
    }
}

/// Reads a flat input, whose envelope the wiring completes.
pub(super) fn read<'a>(mut fields: Fields<'a>, wiring: &Wiring) -> EvaluateFields<'a> {
    let bounds = wiring.bounds();
    let envelope = EnvelopeFields {
        correlation_id: fields.u128("correlation_id"),
        turn_id: fields.uint("turn_id", U64),
        max_retryable_reason_codes: Field::Given(bounds.max_retryable_reason_codes),
        max_diagnostics: Field::Given(bounds.max_diagnostics),
        max_backoff_ms: Field::Given(bounds.max_backoff_ms),
    };
    EvaluateFields::read_with(fields, Field::Given(envelope), None)
}
