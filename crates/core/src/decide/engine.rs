//! The engine: budgets that are valid by construction, and the wiring that puts it into a caller's turn.

use super::envelope::{LONGEST_BACKOFF_MS, MOST_DIAGNOSTICS, MOST_REASON_CODES};
use super::reason::{Capability, ReasonCode};

/// Engines never call engines: the operating system above them does.
const ALLOWED_CALLERS: &str = "SELENE_OS_ONLY";

/// The scheduler engine. It holds budgets and nothing else: equal requests get equal answers.
///
/// ```
/// # use tidewheel_core as tidewheel;
/// use tidewheel::decide::{Budgets, Engine};
///
/// let engine = Engine::default();
/// let answer = engine.evaluate_json(r#"{"envelope": {}}"#);
/// assert!(answer.to_json().starts_with(r#"{"kind":"refuse""#));
///
/// let budgets = Budgets { max_backoff_ms: 0, ..Budgets::default() };
/// assert_eq!(Engine::new(budgets).unwrap_err().field, "max_backoff_ms");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Engine {
    budgets: Budgets,
}

/// What the façade says of itself to the system that calls it.
///
/// ```
/// # use tidewheel_core as tidewheel;
/// use tidewheel::decide::Engine;
///
/// let header = Engine::HEADER;
/// assert_eq!((header.engine_id, header.placement), ("PH1.SCHED", "ENTERPRISE_SUPPORT"));
/// assert_eq!(header.capabilities[0].allowed_callers, "SELENE_OS_ONLY");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct EngineHeader {
    /// What the engine is known by.
    pub engine_id: &'static str,
    /// What it is for.
    pub role: &'static str,
    /// Where it stands among the engines.
    pub placement: &'static str,
    /// The version of the requests that it takes.
    pub schema_version: u32,
    /// What may be asked of it.
    pub capabilities: &'static [EngineCapability],
}

/// One thing that may be asked of the façade.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct EngineCapability {
    /// What it is asked as.
    pub capability_id: Capability,
    /// Who may ask.
    pub allowed_callers: &'static str,
    /// What it does beside answering.
    pub side_effects: &'static str,
    /// What an answer or a refusal may say.
    pub reason_codes: &'static [ReasonCode],
}

impl Engine {
    /// What the façade says of itself.
    pub const HEADER: EngineHeader = EngineHeader {
        engine_id: "PH1.SCHED",
        role: "deterministic scheduler decision engine for WorkOrder retry/wait/fail control",
        placement: "ENTERPRISE_SUPPORT",
        schema_version: 1,
        capabilities: &[
            EngineCapability {
                capability_id: Capability::PolicyEvaluate,
                allowed_callers: ALLOWED_CALLERS,
                side_effects: "NONE",
                reason_codes: &[
                    ReasonCode::OkPolicyEvaluate,
                    ReasonCode::Timeout,
                    ReasonCode::MaxRetriesReached,
                    ReasonCode::NotRetryable,
                    ReasonCode::InputSchemaInvalid,
                    ReasonCode::UpstreamInputMissing,
                    ReasonCode::BudgetExceeded,
                    ReasonCode::InternalPipelineError,
                ],
            },
            EngineCapability {
                capability_id: Capability::DecisionCompute,
                allowed_callers: ALLOWED_CALLERS,
                side_effects: "NONE",
                reason_codes: &[
                    ReasonCode::OkDecisionCompute,
                    ReasonCode::RetryScheduled,
                    ReasonCode::Timeout,
                    ReasonCode::MaxRetriesReached,
                    ReasonCode::NotRetryable,
                    ReasonCode::InputSchemaInvalid,
                    ReasonCode::BudgetExceeded,
                    ReasonCode::InternalPipelineError,
                ],
            },
        ],
    };

    /// Returns an engine with these budgets.
    ///
    /// # Errors
    /// A budget is out of its range, so that no such engine can exist.
    pub fn new(budgets: Budgets) -> Result<Self, ConfigError> {
        budgets.check()?;
        Ok(Self { budgets })
    }

    /// Returns the budgets.
    #[must_use]
    pub const fn budgets(&self) -> &Budgets {
        &self.budgets
    }
}

/// The most that one request may ask of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budgets {
    /// The most reason codes in a list, 1 to 32.
    pub max_retryable_reason_codes: u8,
    /// The most violations listed after the first, 1 to 16.
    pub max_diagnostics: u8,
    /// The longest backoff, 1 to 86,400,000 ms.
    pub max_backoff_ms: u32,
}

impl Default for Budgets {
    fn default() -> Self {
        Self { max_retryable_reason_codes: 16, max_diagnostics: 8, max_backoff_ms: 300_000 }
    }
}

impl Budgets {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let bounds = [
            (
                "max_retryable_reason_codes",
                u32::from(self.max_retryable_reason_codes),
                u32::from(MOST_REASON_CODES),
            ),
            ("max_diagnostics", u32::from(self.max_diagnostics), u32::from(MOST_DIAGNOSTICS)),
            ("max_backoff_ms", self.max_backoff_ms, LONGEST_BACKOFF_MS),
        ];
        for (field, value, most) in bounds {
            if value == 0 || value > most {
                let reason = format!("must be within 1..={most}, got {value}");
                return Err(ConfigError { field: field.to_owned(), reason });
            }
        }
        Ok(())
    }
}

/// How a caller's turn reaches the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wiring {
    enabled: bool,
    bounds: Budgets,
}

impl Default for Wiring {
    fn default() -> Self {
        Self { enabled: true, bounds: Budgets::default() }
    }
}

impl Wiring {
    /// Returns the wiring that puts these bounds on each request.
    ///
    /// # Errors
    /// A bound is out of its range.
    pub fn new(bounds: Budgets) -> Result<Self, ConfigError> {
        bounds.check()?;
        Ok(Self { enabled: true, bounds })
    }

    /// Returns the same wiring switched off: a turn looks at nothing.
    #[must_use]
    pub const fn disabled(self) -> Self {
        Self { enabled: false, ..self }
    }

    /// Tells whether a turn reaches the engine.
    #[must_use]
    pub const fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// Returns the bounds.
    #[must_use]
    pub const fn bounds(&self) -> &Budgets {
        &self.bounds
    }
}

/// Why an engine or a wiring cannot exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} {reason}")]
pub struct ConfigError {
    /// The field that is wrong.
    pub field: String,
    /// What is wrong with it.
    pub reason: String,
}
