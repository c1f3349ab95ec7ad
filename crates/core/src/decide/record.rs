//! A decision as a log keeps it: with all that it was made of, so that it can be made again.

use serde::Serialize;
use serde_json::value::RawValue;

use super::kernel::{Decision, RetryPolicy, Situation, decide};
use super::kernel_json::{ContextForm, PolicyForm, read_question_fields};
use super::refusal::Refusal;
use crate::json::{Field, Fields};

/// A decision with its policy and its situation.
///
/// The logged form has the fields `policy` and `context` of a kernel question, so that anybody can ask again.
///
/// ```
/// # use tidewheel_core as tidewheel;
/// use tidewheel::decide::{Record, RetryPolicy, Situation};
/// use tidewheel::policy::{JitterSeed, Policy};
/// use tidewheel::time::Timestamp;
///
/// let policy = RetryPolicy::from(&Policy::llm().resolved()?);
/// let seed = JitterSeed::new("run-1", "classify");
/// let record = Record::decide(policy, Situation::failed(1, Timestamp::from_millis(5), seed));
/// let logged = record.to_json();
/// let read = Record::from_json(&logged)?;
/// assert_eq!(read.redecided().to_json(), logged);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// What the policy said.
    pub policy: RetryPolicy,
    /// What was the case.
    pub situation: Situation,
    /// What was decided.
    pub decision: Decision,
}

impl Record {
    /// Decides and keeps what the decision was made of.
    #[must_use]
    pub fn decide(policy: RetryPolicy, situation: Situation) -> Self {
        Self { policy, situation, decision: decide(&policy, &situation) }
    }

    /// Decides again from what was kept. An honest record comes out as it went in.
    #[must_use]
    pub fn redecided(&self) -> Self {
        Self::decide(self.policy, self.situation)
    }

    /// Returns the record as one line of JSON: equal records are equal bytes.
    #[must_use]
    pub fn to_json(&self) -> String {
        let form = Form {
            v: VERSION,
            policy: PolicyForm::from(&self.policy),
            context: ContextForm::from(&self.situation),
            decision: &self.decision,
        };
        serde_json::to_string(&form).expect("invariant: a record has no key that is not a string")
    }

    /// Reads a logged record; the decision is taken as logged, not made again.
    ///
    /// # Errors
    /// The text is no record.
    pub fn from_json(text: &str) -> Result<Self, RecordError> {
        let raw: &RawValue = serde_json::from_str(text).map_err(RecordError::Json)?;
        let mut fields = Fields::split(raw).ok_or(RecordError::NoObject)?;
        match fields.uint("v", "must be an integer") {
            Field::Given(VERSION) => {}
            Field::Given(found) => return Err(RecordError::Version { found }),
            Field::Missing | Field::Wrong(_) => return Err(RecordError::NoVersion),
        }
        let decision = fields.take("decision").ok_or(RecordError::NoDecision)?;
        let decision = serde_json::from_str(decision.get()).map_err(RecordError::Json)?;
        let (policy, situation) = read_question_fields(fields).map_err(Box::new)?;
        Ok(Self { policy, situation, decision })
    }
}

/// The version of the logged form.
const VERSION: u32 = 1;

#[derive(Serialize)]
struct Form<'a> {
    v: u32,
    policy: PolicyForm,
    context: ContextForm,
    decision: &'a Decision,
}

/// Why a text is no logged decision.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// It is not JSON, or its decision is not one.
    #[error("the record cannot be read")]
    Json(#[source] serde_json::Error),
    /// It is some other JSON value.
    #[error("the record is not an object")]
    NoObject,
    /// It does not say which version it has.
    #[error("the record has no version")]
    NoVersion,
    /// It was written by a later release.
    #[error("the record has version {found}, this release reads {VERSION}")]
    Version {
        /// The version it has.
        found: u32,
    },
    /// It has a question and no decision.
    #[error("the record has no decision")]
    NoDecision,
    /// Its policy or its context is malformed.
    #[error("the record is malformed")]
    Malformed(#[from] Box<Refusal>),
}
