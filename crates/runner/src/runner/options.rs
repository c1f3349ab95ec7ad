//! How a runner works, and how one run is started.

use std::fmt;
use std::sync::Arc;

use tidewheel_core::Problem;
use tidewheel_core::policy::{Matcher, NodeInfo, Overlay, Rules};
use tidewheel_core::time::Span;
use tidewheel_core::work::RunContext;
use tidewheel_store::Clock;

use super::hooks::Hooks;

/// How a runner works.
///
/// ```
/// # mod tidewheel { pub use tidewheel_core::*; pub use tidewheel_runner::*; }
/// use tidewheel::time::Span;
/// use tidewheel::RunnerOptions;
///
/// let options = RunnerOptions::new().max_concurrency(16).lease(Span::from_secs(10));
/// # assert!(format!("{options:?}").contains("16"));
/// ```
#[derive(Clone)]
pub struct RunnerOptions {
    pub(super) max_concurrency: usize,
    pub(super) max_active_runs: usize,
    pub(super) max_open_work: usize,
    pub(super) executor: Executor,
    pub(super) executors: Vec<(Matcher, Executor)>,
    pub(super) lease: Span,
    pub(super) takes_due_runs: bool,
    pub(super) shutdown_grace: Span,
    pub(super) clock: Option<Arc<dyn Clock>>,
    pub(super) hooks: Option<Arc<dyn Hooks>>,
}

/// Where work is done.
///
/// ```
/// # mod tidewheel { pub use tidewheel_core::*; pub use tidewheel_runner::*; }
/// use tidewheel::policy::tag;
/// use tidewheel::{Executor, RunnerOptions};
///
/// // Nothing here blocks but what says so.
/// let options = RunnerOptions::new().executor(Executor::Tasks).executor_for(tag("blocks"), Executor::Threads);
/// # assert!(format!("{options:?}").contains("Tasks"));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Executor {
    /// Functions on threads for blocking work, async work in tasks. Whatever a step does, the rest goes on.
    #[default]
    Threads,
    /// Everything in tasks of the runtime: for functions that do not block.
    Tasks,
    /// Functions where the runner itself is, one after the other: for functions that take microseconds. Async
    /// work runs in tasks all the same.
    Inline,
}

/// A run has so many pieces of work at once before an input waits.
const MAX_OPEN_WORK: usize = 10_000;
/// Beyond so many, runs wait in the store; idle ones are given back.
const MAX_ACTIVE_RUNS: usize = 2_000;
/// Enough for work that waits for others; work that computes is bounded by the cores anyway.
const MAX_CONCURRENCY: usize = 256;

impl Default for RunnerOptions {
    fn default() -> Self {
        Self {
            max_concurrency: MAX_CONCURRENCY,
            max_active_runs: MAX_ACTIVE_RUNS,
            max_open_work: MAX_OPEN_WORK,
            executor: Executor::Threads,
            executors: Vec::new(),
            lease: Span::from_secs(30),
            takes_due_runs: true,
            shutdown_grace: Span::from_secs(60),
            clock: None,
            hooks: None,
        }
    }
}

impl RunnerOptions {
    /// Returns the defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Limits how many pieces of work are under way at once, over all runs; zero is taken as one.
    #[must_use]
    pub fn max_concurrency(mut self, limit: usize) -> Self {
        self.max_concurrency = limit.max(1);
        self
    }

    /// Limits how many runs are held in memory at once; the others wait in the store. Zero is taken as one.
    #[must_use]
    pub fn max_active_runs(mut self, limit: usize) -> Self {
        self.max_active_runs = limit.max(1);
        self
    }

    /// Limits how much work one run may have pending before its next input waits; zero is taken as one.
    #[must_use]
    pub fn max_open_work(mut self, limit: usize) -> Self {
        self.max_open_work = limit.max(1);
        self
    }

    /// Says where work is done.
    #[must_use]
    pub const fn executor(mut self, executor: Executor) -> Self {
        self.executor = executor;
        self
    }

    /// Says where the work of some components is done; the first match wins.
    #[must_use]
    pub fn executor_for(mut self, matcher: Matcher, executor: Executor) -> Self {
        self.executors.push((matcher, executor));
        self
    }

    /// Says for how long a run belongs to a process that cannot be heard. It is renewed three times as often.
    #[must_use]
    pub const fn lease(mut self, lease: Span) -> Self {
        self.lease = lease;
        self
    }

    /// Leaves runs alone that nobody in this process asked for: only what is started or resumed here is driven.
    #[must_use]
    pub const fn only_own_runs(mut self) -> Self {
        self.takes_due_runs = false;
        self
    }

    /// Says how long a shutdown waits for work that is under way.
    #[must_use]
    pub const fn shutdown_grace(mut self, grace: Span) -> Self {
        self.shutdown_grace = grace;
        self
    }

    /// Takes another clock than that of the machine.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Tells somebody what happens.
    #[must_use]
    pub fn hooks(mut self, hooks: impl Hooks + 'static) -> Self {
        self.hooks = Some(Arc::new(hooks));
        self
    }

    pub(super) fn executor_of(&self, node: &NodeInfo<'_>) -> Executor {
        self.try_executor_of(node).unwrap_or_else(|problem| {
            tracing::error!(%problem, "the executor is chosen as if nothing had been said");
            self.executor
        })
    }

    /// Returns where the work of a node runs.
    ///
    /// # Errors
    /// A predicate panicked.
    pub(super) fn try_executor_of(&self, node: &NodeInfo<'_>) -> Result<Executor, Box<Problem>> {
        for (index, (matcher, executor)) in self.executors.iter().enumerate() {
            match matcher.try_matches(node) {
                Ok(false) => {}
                Ok(true) => return Ok(*executor),
                Err(panic) => {
                    let name = node.name.unwrap_or_else(|| node.kind.name());
                    let message = format!("panicked for `{name}`: {}", panic.message);
                    let place = format!("executor_for[{index}].match.predicate");
                    let problem =
                        Problem::new(place, message).help("let the predicate answer for every node");
                    return Err(Box::new(problem));
                }
            }
        }
        Ok(self.executor)
    }
}

impl fmt::Debug for RunnerOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunnerOptions")
            .field("max_concurrency", &self.max_concurrency)
            .field("max_active_runs", &self.max_active_runs)
            .field("executor", &self.executor)
            .field("lease", &self.lease)
            .finish_non_exhaustive()
    }
}

/// How one run is started.
///
/// ```
/// # mod tidewheel { pub use tidewheel_core::*; pub use tidewheel_runner::*; }
/// use tidewheel::policy::{Overlay, Policy, Rules, name};
/// use tidewheel::time::Span;
/// use tidewheel::work::{Context, RunContext};
/// use tidewheel::workflow::{Workflow, step};
/// use tidewheel::{Checkpoints, Runner, RunnerOptions, StartOptions};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let call = |context: Context, x: i64| match context.value("key") {
///     Some(_) => Ok(x + 1),
///     None => Err("no key".to_owned()),
/// };
/// let workflow = Workflow::new("numbers").add(step("call", call).needs("key")).build()?;
/// let options = StartOptions::new()
///     .context(RunContext::new().global("key", "secret")) // is never stored
///     .policies(Rules::new([(name("call"), Policy::io())])?, Overlay::Merge)
///     .checkpoints(Checkpoints::OnComplete)
///     .deadline(Span::from_secs(60));
/// let runner = Runner::in_memory(RunnerOptions::new()).await?;
/// let run = runner.run_with("first", &workflow, 1_i64, &options).await?;
/// assert_eq!(run.result::<i64>("call").await?, 2);
/// # runner.shutdown().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct StartOptions {
    pub(super) policies: Option<(Rules, Overlay)>,
    pub(super) context: RunContext,
    pub(super) has_context: bool,
    pub(super) deadline: Option<Span>,
    /// `None` where nothing is said, which means the default.
    pub(super) checkpoints: Option<Checkpoints>,
}

/// When the progress of work is stored that need not survive a crash: work whose policy says `sync`. All other
/// work is stored before it starts and after it ends, whatever this says.
///
/// ```
/// # mod tidewheel { pub use tidewheel_runner::*; }
/// use tidewheel::{Checkpoints, StartOptions};
///
/// let often = StartOptions::new();
/// let seldom = StartOptions::new().checkpoints(Checkpoints::EveryN(100)); // less to write, more to do again
/// # assert!(format!("{often:?}{seldom:?}").contains("EveryN(100)"));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checkpoints {
    /// After each cycle.
    #[default]
    EveryCycle,
    /// After so many cycles, and when nothing is left to do.
    EveryN(u32),
    /// When nothing is left to do.
    OnComplete,
    /// When somebody asks for it, and when nothing is left to do.
    Manual,
}

impl StartOptions {
    /// Tells whether there is something in it that the store does not keep: values from outside, functions.
    pub(super) const fn holds_what_is_not_stored(&self) -> bool {
        self.has_context || self.policies.is_some()
    }

    /// Returns whether nothing is said of what is stored with a run.
    pub(super) const fn is_plain(&self) -> bool {
        self.policies.is_none() && self.deadline.is_none() && self.checkpoints.is_none()
    }

    /// Returns the defaults: the rules of the workflow, nothing from outside, no deadline.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts rules over those of the workflow, or in their place. They are stored with the run.
    #[must_use]
    pub fn policies(mut self, rules: Rules, overlay: Overlay) -> Self {
        self.policies = Some((rules, overlay));
        self
    }

    /// Gives the run values from outside. They are never stored: the program that resumes the run gives them again. They
    /// are those of this process: a run that another process drives has that process's, until this one takes it up.
    #[must_use]
    pub fn context(mut self, context: RunContext) -> Self {
        self.context = context;
        self.has_context = true;
        self
    }

    /// Says how long after its acceptance an input may cause work.
    #[must_use]
    pub const fn deadline(mut self, deadline: Span) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Says when progress is stored that need not survive a crash.
    #[must_use]
    pub const fn checkpoints(mut self, checkpoints: Checkpoints) -> Self {
        self.checkpoints = Some(checkpoints);
        self
    }
}
