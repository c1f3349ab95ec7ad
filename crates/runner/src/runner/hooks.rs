//! Who is told what happens. Everything is told after it was stored.

use std::sync::Arc;

use tidewheel_core::fact::RunId;
use tidewheel_core::policy::{Failure, NodeInfo};
use tidewheel_store::Status;

/// Is told what happens in runs, after it was stored. It should be quick: the runner waits for it. A panic in it is
/// logged and counted, and changes nothing: the next call comes.
///
/// ```
/// # mod tidewheel { pub use tidewheel_core::*; pub use tidewheel_runner::*; }
/// use std::sync::{Arc, Mutex};
/// use tidewheel::fact::RunId;
/// use tidewheel::policy::NodeInfo;
/// use tidewheel::workflow::{Workflow, step};
/// use tidewheel::{Hooks, Runner, RunnerOptions};
///
/// #[derive(Clone, Default)]
/// struct Diary(Arc<Mutex<Vec<String>>>);
///
/// impl Hooks for Diary {
///     fn completed(&self, run: &RunId, node: &NodeInfo<'_>) {
///         self.0.lock().unwrap().push(format!("{run}: {}", node.name.unwrap_or("?")));
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let diary = Diary::default();
/// let runner = Runner::in_memory(RunnerOptions::new().hooks(diary.clone())).await?;
/// let workflow = Workflow::new("numbers").add(step("inc", |x: i64| x + 1)).build()?;
/// runner.run("first", &workflow, 1_i64).await?.wait().await?;
/// runner.shutdown().await;
/// assert_eq!(*diary.0.lock().unwrap(), ["first: inc"]);
/// # Ok(())
/// # }
/// ```
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
///
/// ```
/// # mod tidewheel { pub use tidewheel_core::*; pub use tidewheel_runner::*; }
/// use tidewheel::workflow::{Workflow, step};
/// use tidewheel::{RunEvent, Runner, RunnerOptions};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let runner = Runner::in_memory(RunnerOptions::new()).await?;
/// let mut events = runner.subscribe();
/// let workflow = Workflow::new("numbers").add(step("inc", |x: i64| x + 1)).build()?;
/// runner.run("first", &workflow, 1_i64).await?;
/// let RunEvent { run, version, event } = events.recv().await?;
/// assert_eq!((run.as_str(), version), ("first", 0));
/// assert!(event.contains("fact_produced"));
/// # runner.shutdown().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEvent {
    /// The run.
    pub run: RunId,
    /// The number of the event in the log of the run.
    pub version: u64,
    /// The event as JSON, as it is stored.
    pub event: Arc<str>,
}
