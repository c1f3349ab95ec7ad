//! What a runner tells of itself: spans and events of `tracing`, and metrics for Prometheus.
//!
//! [`SIGNALS`] is the whole list; it changes only with a breaking release.
//!
//! ```
//! use tidewheel::prelude::*;
//! use tidewheel::telemetry::prometheus_client::registry::Registry;
//! use tidewheel::telemetry::{SIGNALS, Signal, SignalKind, TARGET};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let is_metric =
//!     |signal: &&Signal| matches!(signal.kind, SignalKind::Counter | SignalKind::Gauge | SignalKind::Histogram);
//! assert!(SIGNALS.iter().filter(is_metric).count() > 5);
//! assert_eq!(TARGET, "tidewheel"); // what a filter of `tracing` names
//!
//! let runner = Runner::in_memory(RunnerOptions::new()).await?;
//! let mut registry = Registry::default();
//! runner.register_metrics(&mut registry); // beside those of your program
//! assert!(runner.metrics().contains("tidewheel")); // or as a page of their own
//! runner.shutdown().await;
//! # Ok(())
//! # }
//! ```

#[cfg(feature = "otel")]
pub use tidewheel_runner::telemetry::otel;
pub use tidewheel_runner::telemetry::{SIGNALS, Signal, SignalKind, TARGET, prometheus_client};
