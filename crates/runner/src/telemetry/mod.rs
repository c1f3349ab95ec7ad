//! What the runner tells of itself: spans and events with `tracing`, metrics for Prometheus. The table says all names
//! and fields; code, tests and the guide keep to it.

mod events;
mod execution;
mod metrics;
#[cfg(feature = "otel")]
pub mod otel;
mod table;

pub(crate) use events::{breaker_change, dead_letter, fallback, hold, park, resume, retry, skipped, timeout};
pub(crate) use execution::Execution;
pub(crate) use metrics::{Gauges, Metrics};
pub use prometheus_client;
pub use table::{SIGNALS, Signal, SignalKind, TARGET};
