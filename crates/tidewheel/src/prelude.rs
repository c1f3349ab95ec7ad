//! The names that nearly every program needs: `use tidewheel::prelude::*`.
//!
//! What only some programs need is in its module: decisions in [`decide`](crate::decide), what people look at in
//! [`view`](crate::view), what schedulers are made of in [`driver`](crate::driver), [`run`](crate::run) and
//! [`event`](crate::event).

pub use tidewheel_core::Problems;
pub use tidewheel_core::decide::ReasonCode;
pub use tidewheel_core::event::Absence;
pub use tidewheel_core::fact::Value;
pub use tidewheel_core::policy::{
    Backoff, CircuitBreaker, ErrorMatcher, ExecutionMode, Failure, Jitter, Kind, Matcher, NodeInfo,
    OnFailure, Overlay, Policy, Priority, Recovery, Rules, default, kind, kinds, name, pattern, predicate,
    tag,
};
pub use tidewheel_core::run::Run;
pub use tidewheel_core::time::{Span, Timestamp};
pub use tidewheel_core::work::{Context, RunContext};
pub use tidewheel_core::workflow::{
    BuildErrors, Component, Fold, Meta, Workflow, accumulator, all, any, compensation, cond, condition, map,
    not, reduce, rule, state_machine, step, test,
};
pub use tidewheel_runner::process::command;
pub use tidewheel_runner::react::{
    Options as ReactOptions, SyncWork, react_until_satisfied, run_until_satisfied,
};
pub use tidewheel_runner::runner::{
    Checkpoints, CommandError, InputError, ResultError, RunHandle, Runner, RunnerOptions, StartError,
    StartOptions,
};
pub use tidewheel_store::{Filter, RunRecord, Status};
