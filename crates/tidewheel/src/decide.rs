//! The decision: one pure function behind every retry, and the engine that answers requests about it.
//!
//! ```
//! use tidewheel::decide::{
//!     Action, CircuitView, Decision, OnCircuitOpen, OnNotRetryable, Outcome, ReasonCode, Record, RecordError,
//!     RetryPolicy, Situation, decide,
//! };
//! use tidewheel::policy::JitterSeed;
//! use tidewheel::prelude::*;
//!
//! let policy = RetryPolicy::from(&Policy::llm().resolved()?); // three retries, from one second on
//! let now = Timestamp::from_millis(10_000);
//! let failed = Situation::failed(0, now, JitterSeed::new("run-1", "classify"));
//! let decision: Decision = decide(&policy, &failed);
//! assert_eq!(decision.action, Action::RetryAt(Timestamp::from_millis(11_000)));
//! assert_eq!((decision.attempt_next, decision.reason), (1, ReasonCode::RetryScheduled));
//!
//! // An open circuit is waited for, or is the end.
//! let open = Situation { circuit: CircuitView::OpenUntil(Timestamp::from_millis(60_000)), ..failed };
//! assert_eq!(decide(&policy, &open).action, Action::Wait(Some(Timestamp::from_millis(60_000))));
//! let impatient = RetryPolicy { on_circuit_open: OnCircuitOpen::Fail, ..policy };
//! assert_eq!(decide(&impatient, &open).reason, ReasonCode::CircuitOpen);
//!
//! // A failure that no attempt helps is the end, unless somebody has to look at it.
//! let Outcome::Failed { retry_after, .. } = failed.outcome else { return Err("it failed".into()) };
//! let hopeless = Situation { outcome: Outcome::Failed { retryable: false, retry_after }, ..failed };
//! assert_eq!(decide(&policy, &hopeless).action, Action::Fail);
//! let careful = RetryPolicy { on_not_retryable: OnNotRetryable::Wait, ..policy };
//! assert_eq!(decide(&careful, &hopeless).action, Action::Wait(None));
//!
//! // What was asked and what was answered, as it is kept; asked again, it says the same.
//! let kept = Record::decide(policy, failed).to_json();
//! assert_eq!(Record::from_json(&kept)?.redecided().to_json(), kept);
//! assert!(matches!(Record::from_json("[]"), Err(RecordError::NoObject)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The [`Engine`] is for schedulers in other processes: a request is a line of JSON, or a value, and so is its answer.
//!
//! ```
//! use tidewheel::decide::{
//!     Answer, Budgets, Capability, Computation, ComputeRequest, ConfigError, Engine, EngineCapability, EngineHeader,
//!     Envelope, EvaluateRequest,
//!     Evaluation, Refusal, StepState, Turn, TurnRequest, Violation, Wiring, WorkOrder, decide_json, delay_json,
//! };
//!
//! let error: ConfigError = Engine::new(Budgets { max_diagnostics: 0, ..Budgets::default() }).unwrap_err();
//! assert_eq!(error.field, "max_diagnostics");
//! let budgets = Budgets::default();
//! let engine = Engine::new(budgets)?;
//! let step = StepState {
//!     work: WorkOrder { tenant_id: "shop".into(), work_order_id: "order-1".into(), step_id: "charge".into() },
//!     now_ns: 2_000_000,
//!     step_started_at_ns: 1_000_000,
//!     timeout_ms: 10_000,
//!     max_retries: 3,
//!     retry_backoff_ms: 500,
//!     attempt_index: 0,
//!     last_failure_reason_code: Some(503),
//!     retryable_reason_codes: vec![503].into(),
//!     wait_is_pause_only: true,
//! };
//! let envelope = Envelope {
//!     correlation_id: 1,
//!     turn_id: 1,
//!     max_retryable_reason_codes: budgets.max_retryable_reason_codes,
//!     max_diagnostics: budgets.max_diagnostics,
//!     max_backoff_ms: budgets.max_backoff_ms,
//! };
//! let request = EvaluateRequest { schema_version: 1, envelope: envelope.clone(), step: step.clone() };
//! let evaluation: Evaluation = engine.evaluate(&request)?;
//! assert!(evaluation.retry_allowed && evaluation.capability_id == Capability::PolicyEvaluate);
//!
//! let request = ComputeRequest {
//!     schema_version: 1,
//!     envelope,
//!     work: step.work.clone(),
//!     now_ns: step.now_ns,
//!     retry_backoff_ms: evaluation.retry_backoff_ms,
//!     timeout_exceeded: evaluation.timeout_exceeded,
//!     max_retries_reached: evaluation.max_retries_reached,
//!     retry_allowed: evaluation.retry_allowed,
//!     attempt_index: evaluation.attempt_index,
//!     next_attempt_index: evaluation.next_attempt_index,
//!     wait_is_pause_only: evaluation.wait_is_pause_only,
//! };
//! let computation: Computation = engine.compute(&request)?;
//! assert_eq!(computation.decision.attempt_next, 1);
//!
//! // Both at once.
//! let request = TurnRequest { schema_version: 1, correlation_id: 1, turn_id: 1, step };
//! let turn: Option<Turn> = engine.turn(&Wiring::default(), &request)?;
//! assert_eq!(turn.map(|turn| turn.computation.decision), Some(computation.decision));
//!
//! // What the engine is, for the system that calls it.
//! let EngineHeader { engine_id, capabilities, .. } = Engine::HEADER;
//! let evaluates: &EngineCapability = &capabilities[0];
//! assert_eq!((engine_id, evaluates.capability_id), ("PH1.SCHED", Capability::PolicyEvaluate));
//!
//! // As lines. A line that is wrong is refused, and the answer names the field.
//! for answer in [decide_json("{}"), delay_json("{}"), engine.evaluate_json("{}")] {
//!     let Answer::Refused(Refusal { detail: Violation { field, .. }, .. }) = answer else {
//!         return Err("it was taken".into());
//!     };
//!     assert!(!field.is_empty());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use tidewheel_core::decide::{
    Action, Answer, Budgets, Capability, CircuitView, Computation, ComputeRequest, ConfigError, Decision,
    Engine, EngineCapability, EngineHeader, Envelope, EvaluateRequest, Evaluation, OnCircuitOpen,
    OnNotRetryable, Outcome, ReasonCode, Record, RecordError, Refusal, RetryPolicy, Situation, StepState,
    Turn, TurnRequest, Violation, Wiring, WorkOrder, decide, decide_json, delay_json,
};
