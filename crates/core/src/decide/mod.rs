//! Retry, fail or wait: the one function that decides every retry in the product, and the audited façade
//! on top of it.
//!
//! [`decide`] is the kernel. [`Engine`] is the façade: it validates requests, keeps budgets, refuses with
//! the name of the field, and asks the kernel. Neither executes anything nor reads a clock.

mod answer;
mod compute;
mod engine;
mod envelope;
mod evaluate;
mod kernel;
mod kernel_json;
mod reason;
mod record;
mod refusal;
mod turn;

pub use answer::Answer;
pub use compute::{Computation, ComputeRequest};
pub use engine::{Budgets, ConfigError, Engine, EngineCapability, EngineHeader, Wiring};
pub use envelope::{Envelope, WorkOrder};
pub use evaluate::{EvaluateRequest, Evaluation, StepState};
pub use kernel::{
    Action, CircuitView, Decision, OnCircuitOpen, OnNotRetryable, Outcome, RetryPolicy, Situation, decide,
};
pub use kernel_json::{decide_json, delay_json};
pub use reason::{Capability, ReasonCode};
pub use record::{Record, RecordError};
pub use refusal::{Refusal, Violation};
pub use turn::{Turn, TurnRequest};
