//! Instants and spans of time.
//!
//! A whole number of nanoseconds and milliseconds: two machines agree about every instant. Whatever takes a span takes
//! a text, too.
//!
//! ```
//! use std::time::Duration;
//!
//! use tidewheel::time::{IntoLimit, IntoSpan, Span, SpanError, Timestamp, TimestampError};
//!
//! let noon = Timestamp::parse("2026-03-01T12:00:00Z")?;
//! assert_eq!(noon.saturating_add(Span::from_secs(90)), Timestamp::parse("2026-03-01T12:01:30Z")?);
//! let error: TimestampError = Timestamp::parse("noon").unwrap_err();
//! assert_eq!(error.text, "noon");
//!
//! fn seconds(span: impl IntoSpan) -> Result<u64, SpanError> {
//!     Ok(span.into_span()?.as_millis() / 1_000)
//! }
//! assert_eq!(seconds("2m")?, 120);
//! assert_eq!(seconds(Duration::from_secs(3))?, 3);
//! assert!(seconds("soon").is_err());
//!
//! // A limit may also be none.
//! assert_eq!("infinity".into_limit()?, None);
//! assert_eq!("10s".into_limit()?, Some(Span::from_secs(10)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use tidewheel_core::time::{IntoLimit, IntoSpan, Span, SpanError, Timestamp, TimestampError};
