//! Policies: how a piece of work is run, chosen by matchers outside the graph.
//!
//! A [`Policy`] is what somebody wrote: the fields they care about. [`Rules`] are policies with matchers, in
//! order; the first match wins and is laid over the defaults, which gives a [`Resolved`] policy: every field
//! has its value, and nothing in it contradicts itself. Policies see small views of the engine ([`NodeInfo`],
//! [`Failure`], [`Recovery`]), never the engine.

mod backoff;
mod breaker;
mod budget;
mod check;
mod functions;
mod idle;
mod job;
mod matcher;
mod options;
mod parse;
mod presets;
mod rate;
mod record;
mod resolve;
mod resolved;
mod slots;
mod view;
mod written;

pub use backoff::{Backoff, Coefficient, Delays, Jitter, JitterSeed};
pub use breaker::{Admission, Breaker, Permit};
pub use budget::Budget;
pub use functions::{Compensation, CompensationFn, Fallback, FallbackFn, Function, IdempotencyKey, KeyFn};
pub use matcher::{Matcher, Pattern, default, kind, kinds, name, pattern, predicate, tag};
pub(crate) use options::word_enum;
pub use options::{
    CircuitBreaker, ConcurrencyLimit, ErrorMatcher, ExecutionMode, Limit, LogLevel, OnFailure, OnOpen,
    Priority, RateLimit, RetryBudget,
};
pub(crate) use parse::rule;
pub use rate::{Rate, Slot};
pub use record::{RecordedPolicy, RecordedRule};
pub use resolve::{Overlay, Resolution, Rule, Rules};
pub use resolved::{DEFAULT_BASE_DELAY, DEFAULT_MAX_DELAY, Resolved};
pub use slots::Slots;
pub use view::{ErrorCode, Failure, Kind, NodeInfo, Overrides, Recovery};
pub use written::Policy;
