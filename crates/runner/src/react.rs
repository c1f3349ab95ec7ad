//! The parallel loop of a run in memory: each result is applied as it comes, and what it wakes is started at
//! once, under the policies of the workflow and of the call. It keeps no log; the facts are those of the serial
//! loop of core.

use std::fmt;
use std::sync::Arc;

use tidewheel_core::Problems;
use tidewheel_core::fact::Payload;
use tidewheel_core::policy::{Overlay, Rules};
use tidewheel_core::run::Run;
use tidewheel_core::time::Span;
use tidewheel_store::{Clock, RealClock};

use crate::driver::{Home, check_run};
use crate::in_memory::drive;

/// How a run is driven in parallel.
///
/// ```
/// # mod tidewheel { pub use tidewheel_runner::*; pub use tidewheel_runner::Options as ReactOptions; }
/// use tidewheel::{ReactOptions, SyncWork};
///
/// let options = ReactOptions::new().max_concurrency(8).sync_work(SyncWork::Inline);
/// # assert!(format!("{options:?}").contains('8'));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub(crate) max_concurrency: Option<usize>,
    pub(crate) sync_work: SyncWork,
    pub(crate) policies: Option<(Rules, Overlay)>,
    pub(crate) deadline: Option<Span>,
    /// What the run has again when the call is over.
    pub(crate) rules_after: Option<Rules>,
    pub(crate) checkpoint: Option<Checkpoint>,
    clock: Option<Arc<dyn Clock>>,
}

/// What is called with the run after each cycle.
#[derive(Clone)]
pub(crate) struct Checkpoint(Arc<dyn Fn(&Run) + Send + Sync>);

impl Checkpoint {
    pub(crate) fn call(&self, run: &Run) {
        (self.0)(run);
    }
}

impl fmt::Debug for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(function)")
    }
}

/// Where work that is not async is done.
///
/// ```
/// # mod tidewheel { pub use tidewheel_core::*; pub use tidewheel_runner::*; pub use tidewheel_runner::Options as ReactOptions; }
/// use tidewheel::workflow::{Workflow, step};
/// use tidewheel::{ReactOptions, SyncWork, react_until_satisfied};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let workflow = Workflow::new("numbers").add(step("inc", |x: i64| x + 1)).build()?;
/// let mut run = workflow.run("first");
/// let quick = ReactOptions::new().sync_work(SyncWork::Inline);
/// react_until_satisfied(&mut run, 41_i64, quick).await?;
/// assert_eq!(run.result::<i64>("inc")?, Some(42));
/// # Ok(())
/// # }
/// ```
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

    /// Puts rules over those of the workflow, or in their place, for this call.
    #[must_use]
    pub fn policies(mut self, rules: Rules, overlay: Overlay) -> Self {
        self.policies = Some((rules, overlay));
        self
    }

    /// Says how long all of it may take. It holds without policies, too.
    #[must_use]
    pub const fn deadline(mut self, deadline: Span) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Calls a function with the run after each cycle: results were applied, and what they woke was handed
    /// out. The run waits for it; one that panics does not stop it.
    #[must_use]
    pub fn checkpoint(mut self, checkpoint: impl Fn(&Run) + Send + Sync + 'static) -> Self {
        self.checkpoint = Some(Checkpoint(Arc::new(checkpoint)));
        self
    }

    /// Takes another clock than that of the machine.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    pub(crate) fn clock_or_real(&self) -> Arc<dyn Clock> {
        self.clock.clone().unwrap_or_else(|| Arc::new(RealClock::new()))
    }
}

/// Takes an input and runs until nothing is left to do, as much in parallel as the workflow and the options
/// allow.
///
/// Facts, their ids and their order are the same as those of the serial [`Run::react_until_satisfied`]. See
/// [`run_until_satisfied`] for what happens to work that panics and to a future that is dropped.
///
/// # Errors
/// A policy has a field that cannot act here. Nothing was done, and the input was not taken.
///
/// # Panics
/// There is no Tokio runtime around it.
///
/// ```
/// # mod tidewheel { pub use tidewheel_core::*; pub use tidewheel_runner::*; pub use tidewheel_runner::Options as ReactOptions; }
/// use tidewheel::workflow::{Workflow, step};
/// use tidewheel::{ReactOptions, react_until_satisfied};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let workflow = Workflow::new("numbers")
///     .add(step("inc", |x: i64| async move { x + 1 }))
///     .add(step("double", |x: i64| x * 2))
///     .add(step("sum", |inc: i64, double: i64| inc + double).after(["inc", "double"]))
///     .build()?;
/// let mut run = workflow.run("first");
/// react_until_satisfied(&mut run, 5_i64, ReactOptions::new()).await?;
/// assert_eq!(run.result::<i64>("sum")?, Some(16));
/// # Ok(())
/// # }
/// ```
pub async fn react_until_satisfied<T: Payload>(
    run: &mut Run,
    input: T,
    mut options: Options,
) -> Result<&mut Run, Problems> {
    prepare(run, &mut options)?;
    run.plan(input);
    drive(run, options).await;
    Ok(run)
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
/// A retry waits without a slot: other work goes on in its place.
///
/// ```
/// # mod tidewheel { pub use tidewheel_core::*; pub use tidewheel_runner::*; pub use tidewheel_runner::Options as ReactOptions; }
/// use tidewheel::workflow::{Workflow, step};
/// use tidewheel::{ReactOptions, run_until_satisfied};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let workflow = Workflow::new("numbers").add(step("inc", |x: i64| x + 1)).build()?;
/// let mut run = workflow.run("first");
/// run.plan(1_i64);
/// run.plan(2_i64); // both inputs at once
/// run_until_satisfied(&mut run, ReactOptions::new()).await?;
/// assert_eq!(run.results::<i64>("inc")?, [2, 3]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// A policy has a field that cannot act here. Nothing was done.
///
/// # Panics
/// There is no Tokio runtime around it.
pub async fn run_until_satisfied(run: &mut Run, mut options: Options) -> Result<&mut Run, Problems> {
    prepare(run, &mut options)?;
    drive(run, options).await;
    Ok(run)
}

/// Gives the run the rules of the call, and checks that all of them can act.
fn prepare(run: &mut Run, options: &mut Options) -> Result<(), Problems> {
    match options.policies.take() {
        None => check_run(run, Home::Memory, |_| options.sync_work),
        Some((rules, overlay)) => {
            let own = run.rules().clone();
            let governed = run.clone().with_policies(rules, overlay);
            check_run(&governed, Home::Memory, |_| options.sync_work)?;
            *run = governed;
            options.rules_after = Some(own);
            Ok(())
        }
    }
}
