//! Who is told what happens. Everything is told after it was stored.

use std::sync::Arc;

use tidewheel_core::fact::RunId;
use tidewheel_core::policy::{Failure, NodeInfo};
use tidewheel_store::Status;

/// Is told what happens in runs, after it was stored. It should be quick: the runner waits for it. A panic in it
/// changes nothing.
pub trait Hooks: Send + Sync {
    /// A piece of work is about to start.
    fn dispatched(&self, _run: &RunId, _node: &NodeInfo<'_>, _attempt: u32) {}

    /// A piece of work gave its result.
    fn completed(&self, _run: &RunId, _node: &NodeInfo<'_>) {}

    /// A piece of work failed for good, or was skipped.
    fn failed(&self, _run: &RunId, _node: &NodeInfo<'_>, _failure: &Failure) {}

    /// Nothing is left to do in a run.
    fn idle(&self, _run: &RunId, _status: Status) {}
}

/// An event of a run, after it was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEvent {
    /// The run.
    pub run: RunId,
    /// The number of the event in the log of the run.
    pub version: u64,
    /// The event as JSON, as it is stored.
    pub event: Arc<str>,
}
