//! Questions and answers of the façade as JSON, one object each.

use serde::Serialize;
use serde_json::value::RawValue;

use super::compute::{Computation, ComputeFields, compute};
use super::engine::{Budgets, ConfigError, Engine, Wiring};
use super::evaluate::{EvaluateFields, Evaluation, evaluate};
use super::kernel::Decision;
use super::reason::Capability;
use super::refusal::{Checks, Refusal, Violation};
use super::turn::{self, Turn};
use crate::json::{Field, Fields};

/// What the engine answers to one line of JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer<'a> {
    /// An evaluation.
    Evaluated(Evaluation<'a>),
    /// A decision.
    Computed(Computation<'a>),
    /// Both, of one turn.
    Forwarded(Turn<'a>),
    /// The engine is switched off in the wiring.
    NotInvoked,
    /// A decision of the bare kernel.
    Decided(Decision),
    /// A delay of the bare backoff.
    Delayed {
        /// The delay.
        delay_ms: u64,
        /// The hash that jitter uses.
        hash: u64,
    },
    /// The request is refused.
    Refused(Refusal),
    /// The engine or the wiring that the line asks for cannot exist.
    ConfigError(Violation),
}

impl Answer<'_> {
    /// Returns the answer as one line of JSON: equal answers are equal bytes.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(&self.form()).expect("invariant: an answer has no key that is not a string")
    }

    /// Writes the answer as one line of JSON, without the line's end.
    ///
    /// # Errors
    /// The writer failed.
    pub fn write_json(&self, writer: impl std::io::Write) -> std::io::Result<()> {
        serde_json::to_writer(writer, &self.form()).map_err(std::io::Error::from)
    }

    fn form(&self) -> Form<'_> {
        match self {
            Self::Evaluated(evaluation) => Form::Ok { response: Response::Evaluation(evaluation) },
            Self::Computed(computation) => Form::Ok { response: Response::Computation(computation) },
            Self::Forwarded(Turn { evaluation, computation }) => {
                Form::Forwarded { policy_evaluate: evaluation, decision_compute: computation }
            }
            Self::NotInvoked => Form::NotInvokedDisabled,
            Self::Decided(decision) => Form::Decided(decision),
            Self::Delayed { delay_ms, hash } => {
                Form::Delayed { delay_ms: *delay_ms, hash_hex: format!("{hash:016x}") }
            }
            Self::Refused(refusal) => Form::Refuse(refusal),
            Self::ConfigError(detail) => Form::ConfigError { message: detail.to_string(), detail },
        }
    }
}

/// The answers as people and programs read them. The bare kernel answers flat, with the same `ok`.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Form<'a> {
    Ok {
        response: Response<'a>,
    },
    #[serde(rename = "ok")]
    Decided(&'a Decision),
    #[serde(rename = "ok")]
    Delayed {
        delay_ms: u64,
        hash_hex: String,
    },
    Forwarded {
        policy_evaluate: &'a Evaluation<'a>,
        decision_compute: &'a Computation<'a>,
    },
    NotInvokedDisabled,
    Refuse(&'a Refusal),
    ConfigError {
        message: String,
        detail: &'a Violation,
    },
}

enum Response<'a> {
    Evaluation(&'a Evaluation<'a>),
    Computation(&'a Computation<'a>),
}

impl Serialize for Response<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Evaluation(evaluation) => evaluation.serialize(serializer),
            Self::Computation(computation) => computation.serialize(serializer),
        }
    }
}

impl Engine {
    /// Answers an evaluation request in JSON: bare, or wrapped as `{"engine_config": …, "request": …}`.
    #[must_use]
    pub fn evaluate_json<'a>(&self, line: &'a str) -> Answer<'a> {
        self.answer(line, Capability::PolicyEvaluate, |call| {
            call.no_wiring()?;
            let request = call.request?;
            Ok(EvaluateFields::read(request).check(&call.engine).map(evaluate).map(Answer::Evaluated)?)
        })
    }

    /// Answers a decision request in JSON: bare, or wrapped as `{"engine_config": …, "request": …}`.
    #[must_use]
    pub fn compute_json<'a>(&self, line: &'a str) -> Answer<'a> {
        self.answer(line, Capability::DecisionCompute, |call| {
            call.no_wiring()?;
            let request = call.request?;
            Ok(ComputeFields::read(request).check(&call.engine).map(compute).map(Answer::Computed)?)
        })
    }

    /// Answers a flat turn in JSON: bare, or wrapped as
    /// `{"engine_config": …, "wiring_config": …, "request": …}`.
    #[must_use]
    pub fn turn_json<'a>(&self, line: &'a str) -> Answer<'a> {
        self.answer(line, Capability::PolicyEvaluate, |mut call| {
            let wiring = read_wiring(call.wiring.take())?;
            if !wiring.is_enabled() {
                return Ok(Answer::NotInvoked);
            }
            let request = call.request?;
            Ok(call.engine.turn_fields(turn::read(request, &wiring)).map(Answer::Forwarded)?)
        })
    }

    fn answer<'a>(
        &self,
        line: &'a str,
        capability: Capability,
        respond: impl FnOnce(Call<'a>) -> Result<Answer<'a>, Stop>,
    ) -> Answer<'a> {
        match Call::read(*self, line, capability).and_then(respond) {
            Ok(answer) => answer,
            Err(Stop::Refused(refusal)) => Answer::Refused(refusal),
            Err(Stop::Config(violation)) => Answer::ConfigError(violation),
        }
    }
}

/// Why a line gets no ordinary answer.
enum Stop {
    Refused(Refusal),
    Config(Violation),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<ConfigError> for Stop {
    fn from(error: ConfigError) -> Self {
        Self::Config(Violation { field: error.field.into(), reason: error.reason.into() })
    }
}

/// One line, taken apart.
struct Call<'a> {
    engine: Engine,
    wiring: Option<&'a RawValue>,
    /// The request is looked at last, so that a switched-off engine refuses nothing.
    request: Result<Fields<'a>, Refusal>,
}

impl<'a> Call<'a> {
    /// The keys that tell a wrapped request from a bare one.
    const WRAPPER: [&'static str; 3] = ["engine_config", "wiring_config", "request"];

    fn read(engine: Engine, line: &'a str, capability: Capability) -> Result<Self, Stop> {
        let mut fields = whole_object(line, capability)?;
        if !Self::WRAPPER.iter().any(|key| fields.has(key)) {
            return Ok(Self { engine, wiring: None, request: Ok(fields) });
        }
        let engine = match fields.take("engine_config") {
            Some(raw) => Engine::new(read_budgets("engine_config", raw, *engine.budgets(), None)?)?,
            None => engine,
        };
        let wiring = fields.take("wiring_config");
        let mut checks = Checks::of(capability);
        let request = checks.required("request", fields.object("request"));
        checks.no_surplus(vec![fields]);
        let request = match (checks.finish(engine.budgets().max_diagnostics), request) {
            (Ok(()), Some(request)) => Ok(request),
            (Err(refusal), _) => Err(refusal),
            (Ok(()), None) => unreachable!("invariant: a request without a value is a violation"),
        };
        Ok(Self { engine, wiring, request })
    }

    /// Refuses a wiring where there is no turn: accepting it would do nothing.
    fn no_wiring(&self) -> Result<(), Stop> {
        if self.wiring.is_none() {
            return Ok(());
        }
        let reason = "has no effect here: only a turn has a wiring";
        Err(Stop::Config(Violation { field: "wiring_config".into(), reason: reason.into() }))
    }
}

/// Splits a line into the fields of its object; anything else is refused as the field `request`.
pub(super) fn whole_object(line: &str, capability: Capability) -> Result<Fields<'_>, Refusal> {
    let reason = match serde_json::from_str::<&RawValue>(line) {
        Ok(raw) => match Fields::split(raw) {
            Some(fields) => return Ok(fields),
            None => crate::json::mismatch(crate::json::MUST_BE_AN_OBJECT, raw),
        },
        Err(error) => format!("is not JSON: {error}").into(),
    };
    let mut checks = Checks::of(capability);
    checks.fail("request", reason);
    match checks.finish(0) {
        Err(refusal) => Err(refusal),
        Ok(()) => unreachable!("invariant: a violation was recorded"),
    }
}

/// Reads budgets over defaults; `enabled` is where a wiring has its switch.
fn read_budgets(
    name: &'static str,
    raw: &RawValue,
    defaults: Budgets,
    enabled: Option<&mut bool>,
) -> Result<Budgets, ConfigError> {
    let error =
        |field: &str, reason: &str| ConfigError { field: field.to_owned(), reason: reason.to_owned() };
    let Some(mut fields) = Fields::split(raw) else {
        return Err(error(name, &crate::json::mismatch(crate::json::MUST_BE_AN_OBJECT, raw)));
    };
    fn or_default<T>(name: &str, field: Field<T>, default: T) -> Result<T, ConfigError> {
        match field {
            Field::Given(value) => Ok(value),
            Field::Missing => Ok(default),
            Field::Wrong(reason) => Err(ConfigError { field: name.to_owned(), reason: reason.into_owned() }),
        }
    }
    let budgets = Budgets {
        max_retryable_reason_codes: or_default(
            "max_retryable_reason_codes",
            fields.uint("max_retryable_reason_codes", "must be an integer within 1..=32"),
            defaults.max_retryable_reason_codes,
        )?,
        max_diagnostics: or_default(
            "max_diagnostics",
            fields.uint("max_diagnostics", "must be an integer within 1..=16"),
            defaults.max_diagnostics,
        )?,
        max_backoff_ms: or_default(
            "max_backoff_ms",
            fields.uint("max_backoff_ms", "must be an integer within 1..=86400000"),
            defaults.max_backoff_ms,
        )?,
    };
    budgets.check()?;
    if let Some(enabled) = enabled {
        *enabled = or_default("sched_enabled", fields.boolean("sched_enabled"), true)?;
    }
    if let Some((field, reason)) = fields.surplus().next() {
        return Err(error(&field, reason));
    }
    Ok(budgets)
}

fn read_wiring(raw: Option<&RawValue>) -> Result<Wiring, ConfigError> {
    let Some(raw) = raw else { return Ok(Wiring::default()) };
    let mut enabled = true;
    let wiring = Wiring::new(read_budgets("wiring_config", raw, Budgets::default(), Some(&mut enabled))?)?;
    Ok(if enabled { wiring } else { wiring.disabled() })
}
