//! What the runner tells of itself, as whoever runs it sees it: in logs, in metrics, and in the guide.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod fields;
mod guide;
mod logs;
mod metrics;
