//! The parts that every request of the façade has: the bounded envelope and the ids of the work.

use std::borrow::Cow;

use super::refusal::{Checks, non_zero, within};
use crate::json::{Field, Fields};

pub(super) const SCHEMA_VERSION: u32 = 1;
pub(super) const MOST_REASON_CODES: u8 = 32;
pub(super) const MOST_DIAGNOSTICS: u8 = 16;
pub(super) const LONGEST_BACKOFF_MS: u32 = 86_400_000;

/// Who asks, and the bounds that the asker puts on the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Ties the decision to what caused it; not 0.
    pub correlation_id: u128,
    /// The turn of the caller; not 0.
    pub turn_id: u64,
    /// The most reason codes a request may list, 1 to 32.
    pub max_retryable_reason_codes: u8,
    /// The most violations a refusal may list after the first, 1 to 16.
    pub max_diagnostics: u8,
    /// The longest backoff a request may ask for, 1 to 86,400,000 ms.
    pub max_backoff_ms: u32,
}

/// Which piece of work the request is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkOrder<'a> {
    /// Not blank, at most 64 bytes of ASCII.
    pub tenant_id: Cow<'a, str>,
    /// Not blank, at most 128 bytes.
    pub work_order_id: Cow<'a, str>,
    /// 1 to 96 bytes of `[A-Za-z0-9_-:./]`.
    pub step_id: Cow<'a, str>,
}

/// An envelope whose fields are not checked yet.
pub(super) struct EnvelopeFields {
    pub(super) correlation_id: Field<u128>,
    pub(super) turn_id: Field<u64>,
    pub(super) max_retryable_reason_codes: Field<u8>,
    pub(super) max_diagnostics: Field<u8>,
    pub(super) max_backoff_ms: Field<u32>,
}

impl EnvelopeFields {
    pub(super) fn of(envelope: Envelope) -> Self {
        Self {
            correlation_id: Field::Given(envelope.correlation_id),
            turn_id: Field::Given(envelope.turn_id),
            max_retryable_reason_codes: Field::Given(envelope.max_retryable_reason_codes),
            max_diagnostics: Field::Given(envelope.max_diagnostics),
            max_backoff_ms: Field::Given(envelope.max_backoff_ms),
        }
    }

    pub(super) fn read(fields: &mut Fields<'_>) -> Self {
        Self {
            correlation_id: fields.u128("correlation_id"),
            turn_id: fields.uint("turn_id", U64),
            max_retryable_reason_codes: fields
                .uint("max_retryable_reason_codes", "must be an integer within 1..=32"),
            max_diagnostics: fields.uint("max_diagnostics", "must be an integer within 1..=16"),
            max_backoff_ms: fields.uint("max_backoff_ms", U32),
        }
    }

    pub(super) fn check(self, checks: &mut Checks) -> Option<Envelope> {
        let correlation_id = checks.tested("correlation_id", self.correlation_id, non_zero);
        let turn_id = checks.tested("turn_id", self.turn_id, non_zero);
        let max_retryable_reason_codes = checks.tested(
            "max_retryable_reason_codes",
            self.max_retryable_reason_codes,
            within(1, MOST_REASON_CODES),
        );
        let max_diagnostics =
            checks.tested("max_diagnostics", self.max_diagnostics, within(1, MOST_DIAGNOSTICS));
        let max_backoff_ms =
            checks.tested("max_backoff_ms", self.max_backoff_ms, within(1, LONGEST_BACKOFF_MS));
        Some(Envelope {
            correlation_id: correlation_id?,
            turn_id: turn_id?,
            max_retryable_reason_codes: max_retryable_reason_codes?,
            max_diagnostics: max_diagnostics?,
            max_backoff_ms: max_backoff_ms?,
        })
    }
}

pub(super) const U16: &str = "must be an integer within 0..=65535";
pub(super) const U32: &str = "must be an integer within 0..=4294967295";
pub(super) const U64: &str = "must be an integer within 0..=18446744073709551615";

/// Reads a nested envelope; what is left of it is returned, so that unknown keys can be refused last.
pub(super) fn read_envelope<'a>(fields: &mut Fields<'a>) -> (Field<EnvelopeFields>, Option<Fields<'a>>) {
    match fields.object("envelope") {
        Field::Given(mut inner) => (Field::Given(EnvelopeFields::read(&mut inner)), Some(inner)),
        Field::Missing => (Field::Missing, None),
        Field::Wrong(reason) => (Field::Wrong(reason), None),
    }
}

/// The ids of the work, not checked yet.
pub(super) struct WorkOrderFields<'a> {
    pub(super) tenant_id: Field<Cow<'a, str>>,
    pub(super) work_order_id: Field<Cow<'a, str>>,
    pub(super) step_id: Field<Cow<'a, str>>,
}

impl<'a> WorkOrderFields<'a> {
    pub(super) fn of(work: &'a WorkOrder<'_>) -> Self {
        Self {
            tenant_id: Field::Given(Cow::Borrowed(&work.tenant_id)),
            work_order_id: Field::Given(Cow::Borrowed(&work.work_order_id)),
            step_id: Field::Given(Cow::Borrowed(&work.step_id)),
        }
    }

    pub(super) fn read(fields: &mut Fields<'a>) -> Self {
        Self {
            tenant_id: fields.string("tenant_id"),
            work_order_id: fields.string("work_order_id"),
            step_id: fields.string("step_id"),
        }
    }

    pub(super) fn check(self, checks: &mut Checks) -> Option<WorkOrder<'a>> {
        let tenant_id = checks.tested("tenant_id", self.tenant_id, |id| {
            bounded(id, 64)?;
            if id.is_ascii() { Ok(()) } else { Err(Cow::Borrowed("must be ASCII")) }
        });
        let work_order_id = checks.tested("work_order_id", self.work_order_id, |id| bounded(id, 128));
        let step_id = checks.tested("step_id", self.step_id, |id| {
            bounded(id, 96)?;
            let allowed = |b: u8| b.is_ascii_alphanumeric() || b"_-:./".contains(&b);
            if id.bytes().all(allowed) {
                Ok(())
            } else {
                Err(Cow::Borrowed("must have only letters, digits and _ - : . /"))
            }
        });
        Some(WorkOrder { tenant_id: tenant_id?, work_order_id: work_order_id?, step_id: step_id? })
    }
}

fn bounded(id: &str, most: usize) -> Result<(), Cow<'static, str>> {
    // Nearly every id begins with a visible character; only the others need the tables of Unicode.
    if !id.as_bytes().first().is_some_and(u8::is_ascii_graphic) && id.trim().is_empty() {
        return Err(Cow::Borrowed("must not be blank"));
    }
    if id.len() > most {
        return Err(Cow::Owned(format!("must have at most {most} bytes, got {}", id.len())));
    }
    Ok(())
}

/// Checks a version that may be absent.
pub(super) fn check_schema_version(checks: &mut Checks, field: Field<u32>) {
    if let Some(version) = checks.optional("schema_version", field)
        && version != SCHEMA_VERSION
    {
        checks.fail("schema_version", format!("must be {SCHEMA_VERSION}, got {version}"));
    }
}
