//! The parallel loop of a run in memory: each result is applied as it comes, and what it wakes is started at
//! once. It keeps no log and reads no policy; the facts are those of the serial loop of core.

use tidewheel_core::fact::Payload;
use tidewheel_core::run::Run;

use crate::workers::drive;

/// How a run is driven in parallel.
///
/// ```
/// use tidewheel_runner::{Options, SyncWork};
///
/// let options = Options::new().max_concurrency(8).sync_work(SyncWork::Inline);
/// # assert!(format!("{options:?}").contains('8'));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    pub(crate) max_concurrency: Option<usize>,
    pub(crate) sync_work: SyncWork,
}

/// Where work that is not async is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncWork {
    /// On the runtime's threads for blocking work. Whatever a step does, the runtime and the other steps go
    /// on, and steps that compute use all cores. A thread that is there takes one piece after the other, so
    /// that a chain or a burst of small steps does not change threads for each.
    #[default]
    Threads,
    /// Where the run is driven, and in the task of the async work that it waited for: no change of threads
    /// at all, for functions that take microseconds and do not block.
    Inline,
}

impl Options {
    /// Returns the defaults: no limit, and work that is not async on threads for it.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Limits how many pieces of work are under way at once; zero is taken as one. Without a limit, as many
    /// are as can be; the runtime has its own limit of threads for blocking work.
    #[must_use]
    pub const fn max_concurrency(mut self, limit: usize) -> Self {
        self.max_concurrency = Some(if limit == 0 { 1 } else { limit });
        self
    }

    /// Says where work that is not async is done.
    #[must_use]
    pub const fn sync_work(mut self, place: SyncWork) -> Self {
        self.sync_work = place;
        self
    }
}

/// Takes an input and runs until nothing is left to do, as much in parallel as the workflow and the options
/// allow.
///
/// Facts, their ids and their order are the same as those of the serial [`Run::react_until_satisfied`]. See
/// [`run_until_satisfied`] for what happens to work that panics and to a future that is dropped.
///
/// # Panics
/// There is no Tokio runtime around it.
///
/// ```
/// use tidewheel_core::workflow::{Workflow, step};
/// use tidewheel_runner::{Options, react_until_satisfied};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let workflow = Workflow::new("numbers")
///     .add(step("inc", |x: i64| async move { x + 1 }))
///     .add(step("double", |x: i64| x * 2))
///     .add(step("sum", |inc: i64, double: i64| inc + double).after(["inc", "double"]))
///     .build()?;
/// let mut run = workflow.run("first");
/// react_until_satisfied(&mut run, 5_i64, Options::new()).await;
/// assert_eq!(run.result::<i64>("sum")?, Some(16));
/// # Ok(())
/// # }
/// ```
pub async fn react_until_satisfied<T: Payload>(run: &mut Run, input: T, options: Options) -> &mut Run {
    run.plan(input);
    run_until_satisfied(run, options).await
}

/// Runs until nothing is left to do, or only work that was handed out elsewhere, as much in parallel as the
/// workflow and the options allow.
///
/// Work that panics, or whose task is cancelled, has failed; all other work goes on. Conditions are looked at
/// between one result and the next, so they should be quick.
///
/// When the future is dropped, async work is dropped at its next await point, blocking work that has begun
/// goes on to its end and its result is discarded, and the run offers all of it again: it can be driven on.
///
/// # Panics
/// There is no Tokio runtime around it.
pub async fn run_until_satisfied(run: &mut Run, options: Options) -> &mut Run {
    drive(run, options).await;
    run
}
