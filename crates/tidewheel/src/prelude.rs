//! The names that nearly every program needs: `use tidewheel::prelude::*`.

pub use tidewheel_core::Problems;
pub use tidewheel_core::decide::{Action, Decision, ReasonCode, RetryPolicy, Situation, decide};
pub use tidewheel_core::fact::Value;
pub use tidewheel_core::policy::{
    Backoff, CircuitBreaker, ErrorMatcher, ExecutionMode, Failure, Jitter, JitterSeed, Kind, Matcher,
    NodeInfo, OnFailure, Overlay, Policy, Priority, Recovery, Rules, default, kind, kinds, name, pattern,
    predicate, tag,
};
pub use tidewheel_core::time::{Span, Timestamp};
pub use tidewheel_core::view::{Rehearsal, Script, rehearse};
