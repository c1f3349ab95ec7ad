//! Refusals: what is wrong with a request, first violation first, each with the name of its field.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::reason::{Capability, ReasonCode};
use crate::json::{Field, Fields};

/// Why the engine gave no decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// What was asked.
    pub capability_id: Capability,
    /// The class of the refusal.
    pub reason_code: ReasonCode,
    /// The first violation as a sentence.
    pub message: String,
    /// The first violation.
    pub detail: Violation,
    /// The violations after the first, as many as the envelope and the engine allow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<Violation>,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// The last part of the name of the field.
    pub field: Cow<'static, str>,
    /// What is wrong with it.
    pub reason: Cow<'static, str>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.field, self.reason)
    }
}

/// Collects the violations of one request in the order in which its fields are checked.
pub(super) struct Checks {
    capability: Capability,
    missing: ReasonCode,
    first: Option<(ReasonCode, Violation)>,
    later: Vec<Violation>,
}

impl Checks {
    /// No engine reports more violations than this after the first.
    const MOST_DIAGNOSTICS: usize = 16;

    /// Starts the checks of a capability. Only an evaluation has an upstream to blame for absent fields.
    pub(super) fn of(capability: Capability) -> Self {
        let missing = match capability {
            Capability::PolicyEvaluate => ReasonCode::UpstreamInputMissing,
            Capability::DecisionCompute | Capability::Kernel | Capability::Delay => {
                ReasonCode::InputSchemaInvalid
            }
        };
        Self { capability, missing, first: None, later: Vec::new() }
    }

    /// Records a violation of the schema.
    pub(super) fn fail(&mut self, field: impl Into<Cow<'static, str>>, reason: impl Into<Cow<'static, str>>) {
        self.fail_with(ReasonCode::InputSchemaInvalid, field, reason);
    }

    /// Records a violation of some class.
    #[cold]
    pub(super) fn fail_with(
        &mut self,
        code: ReasonCode,
        field: impl Into<Cow<'static, str>>,
        reason: impl Into<Cow<'static, str>>,
    ) {
        let violation = Violation { field: field.into(), reason: reason.into() };
        if self.first.is_none() {
            self.first = Some((code, violation));
        } else if self.later.len() < Self::MOST_DIAGNOSTICS {
            self.later.push(violation);
        }
    }

    /// Returns the value of a required field, or records what is wrong.
    pub(super) fn required<T>(&mut self, name: &'static str, field: Field<T>) -> Option<T> {
        match field {
            Field::Given(value) => return Some(value),
            Field::Missing => self.fail_with(self.missing, name, "is missing"),
            Field::Wrong(reason) => self.fail(name, *reason),
        }
        None
    }

    /// Returns the value of an optional field, or records that it is of the wrong type.
    pub(super) fn optional<T>(&mut self, name: &'static str, field: Field<T>) -> Option<T> {
        match field {
            Field::Missing => None,
            given => self.required(name, given),
        }
    }

    /// Returns the value of a required field if it passes its test, or records the reason.
    pub(super) fn tested<T>(
        &mut self,
        name: &'static str,
        field: Field<T>,
        test: impl FnOnce(&T) -> Result<(), Cow<'static, str>>,
    ) -> Option<T> {
        let value = self.required(name, field)?;
        match test(&value) {
            Ok(()) => Some(value),
            Err(reason) => {
                self.fail(name, reason);
                None
            }
        }
    }

    /// Records every field of each object that is unknown or given twice.
    pub(super) fn no_surplus(&mut self, objects: Vec<Fields<'_>>) {
        for (name, reason) in objects.into_iter().flat_map(Fields::surplus).take(1 + Self::MOST_DIAGNOSTICS) {
            self.fail(shortened(&name), reason);
        }
    }

    /// Tells whether nothing is wrong so far.
    pub(super) fn passed(&self) -> bool {
        self.first.is_none()
    }

    /// Returns the refusal, if anything was wrong, with at most that many violations after the first.
    pub(super) fn finish(self, max_diagnostics: u8) -> Result<(), Refusal> {
        let Some((reason_code, detail)) = self.first else { return Ok(()) };
        let mut diagnostics = self.later;
        diagnostics.truncate(usize::from(max_diagnostics));
        Err(Refusal {
            capability_id: self.capability,
            reason_code,
            message: detail.to_string(),
            detail,
            diagnostics,
        })
    }
}

/// Keeps a name from outside to a length that a line of a log can bear.
fn shortened(name: &str) -> String {
    const MOST: usize = 64;
    match name.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

/// Returns a test that a number lies in a range.
pub(super) fn within<T: PartialOrd + fmt::Display>(
    low: T,
    high: T,
) -> impl FnOnce(&T) -> Result<(), Cow<'static, str>> {
    move |value| {
        if *value >= low && *value <= high {
            Ok(())
        } else {
            Err(Cow::Owned(format!("must be within {low}..={high}, got {value}")))
        }
    }
}

/// Tests that a number is not zero.
pub(super) fn non_zero<T: PartialEq + Default>(value: &T) -> Result<(), Cow<'static, str>> {
    if *value == T::default() { Err(Cow::Borrowed("must not be 0")) } else { Ok(()) }
}

/// Tests a flag that must be set.
pub(super) fn must_be_true(value: &bool) -> Result<(), Cow<'static, str>> {
    if *value { Ok(()) } else { Err(Cow::Borrowed("must be true")) }
}
