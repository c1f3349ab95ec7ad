//! Why the runner could not do its part. Work that fails is no error of the runner: it is an outcome.

use tidewheel_core::command::RunCommand;
use tidewheel_core::event::Absence;
use tidewheel_core::fact::{RunId, ValueError};
use tidewheel_core::policy::Failure;
use tidewheel_core::work::Token;
use tidewheel_core::{Change, Problems, ReopenError, ReplayError, SignalError};
use tidewheel_store::{BatchError, Refused, Status, StoreError};

use super::active::Lost;

/// Why a run could not be started or resumed.
///
/// ```
/// # mod tidewheel { pub use tidewheel_core::*; pub use tidewheel_runner::*; }
/// use tidewheel::workflow::{Workflow, step};
/// use tidewheel::{Runner, RunnerOptions, StartError};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let runner = Runner::in_memory(RunnerOptions::new()).await?;
/// let numbers = Workflow::new("numbers").add(step("inc", |x: i64| x + 1)).build()?;
/// let words = Workflow::new("words").add(step("count", |text: String| text.len())).build()?;
/// runner.start("first", &numbers).await?;
/// assert!(matches!(runner.start("first", &words).await, Err(StartError::OtherWorkflow { .. })));
/// assert!(matches!(runner.get("second").await, Err(StartError::NotFound { .. })));
/// # runner.shutdown().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A policy contradicts itself or cannot act.
    #[error("a policy cannot act")]
    Policies(#[source] Problems),
    /// The run context lacks what components need.
    #[error("the run context lacks {}", missing.iter().map(|(node, key)| format!("`{key}` of `{node}`")).collect::<Vec<_>>().join(", "))]
    Context {
        /// Each component with the key that it needs.
        missing: Vec<(String, String)>,
    },
    /// Another definition was registered under that name and version.
    #[error(
        "workflow `{workflow}` version {version} is registered with other nodes: {}; give the new one another version",
        shown(changes)
    )]
    Registered {
        /// The workflow.
        workflow: String,
        /// The version.
        version: u32,
        /// How the new one differs.
        changes: Vec<Change>,
    },
    /// The same nodes were registered under that name and version with other rules of policy.
    #[error(
        "workflow `{workflow}` version {version} is registered with other policies, which differ from policies[{rule}] on; \
         give the new one another version, or give its rules to a run in its start options"
    )]
    RegisteredPolicies {
        /// The workflow.
        workflow: String,
        /// The version.
        version: u32,
        /// The first rule that differs, counted from zero.
        rule: usize,
    },
    /// The run was stored with another definition.
    #[error("run `{run}` was stored with another definition: {}", shown(changes))]
    Changed {
        /// The run.
        run: RunId,
        /// How the definition differs from the stored one.
        changes: Vec<Change>,
    },
    /// The run is one of another workflow.
    #[error(
        "run `{run}` is one of workflow `{found}` version {found_version}, not of `{wanted}` version {wanted_version}"
    )]
    OtherWorkflow {
        /// The run.
        run: RunId,
        /// The workflow that it is of.
        found: String,
        /// Its version.
        found_version: u32,
        /// The workflow that was given.
        wanted: String,
        /// Its version.
        wanted_version: u32,
    },
    /// The workflow of the run is not registered here.
    #[error("workflow `{workflow}` version {version} of run `{run}` is not registered here")]
    Unregistered {
        /// The run.
        run: RunId,
        /// The workflow.
        workflow: String,
        /// Its version.
        version: u32,
    },
    /// Rules of the run hold functions, which are never stored.
    #[error("rule {rule} of run `{run}` holds functions that are not stored: {}; start the run with the same rules again", functions.join(", "))]
    Functions {
        /// The run.
        run: RunId,
        /// The rule, counted from zero.
        rule: usize,
        /// The fields that hold functions.
        functions: Vec<String>,
    },
    /// The run exists and was started with other options, which these would not change.
    #[error(
        "run `{run}` exists and was started with other {}; start it with the same options, or without them",
        options.join(", ")
    )]
    OtherOptions {
        /// The run.
        run: RunId,
        /// The options that differ.
        options: Vec<&'static str>,
    },
    /// A run of that id exists.
    #[error("run `{run}` exists")]
    Exists {
        /// The run.
        run: RunId,
    },
    /// There is no such run.
    #[error("there is no run `{run}`")]
    NotFound {
        /// The run.
        run: RunId,
    },
    /// What is stored of the run cannot be read.
    #[error("what is stored of run `{run}` cannot be read")]
    Unreadable {
        /// The run.
        run: RunId,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The store failed.
    #[error("the store failed")]
    Store(#[from] StoreError),
    /// The store refused.
    #[error("the store refused")]
    Refused(#[from] Refused),
    /// The input cannot be written as JSON.
    #[error("the input cannot be stored")]
    Input(#[source] ValueError),
    /// The lease of this process was over before it was stored: another process may drive the run, and may
    /// not know of it. It can be asked again.
    #[error("the lease of run `{run}` was lost before this was stored: {why}; ask again")]
    LeaseLost {
        /// The run.
        run: RunId,
        /// How the lease was lost.
        why: String,
    },
    /// The runner shuts down.
    #[error("the runner shuts down")]
    Closed,
}

fn shown(changes: &[Change]) -> String {
    changes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl StartError {
    pub(super) fn unreadable(
        run: &RunId,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Unreadable { run: run.clone(), source: source.into() }
    }

    /// Returns the error of a start that was not stored.
    pub(super) fn of_loss(run: &RunId, lost: Lost) -> Self {
        match lost {
            Lost::Lease(why) => Self::LeaseLost { run: run.clone(), why },
            Lost::Exists | Lost::PerhapsOurs => Self::Exists { run: run.clone() },
            Lost::Crashed(_) | Lost::Otherwise(_) | Lost::NotAwaited(_) => {
                Self::Store(StoreError::Other(lost.to_string().into()))
            }
        }
    }

    pub(super) fn batch(run: &RunId, source: BatchError) -> Self {
        Self::unreadable(run, source)
    }

    pub(super) fn replay(run: &RunId, source: ReplayError) -> Self {
        Self::unreadable(run, source)
    }
}

/// Why an input was not taken.
///
/// ```
/// # mod tidewheel { pub use tidewheel_core::*; pub use tidewheel_runner::*; }
/// use tidewheel::workflow::{Workflow, step};
/// use tidewheel::{InputError, Runner, RunnerOptions};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let runner = Runner::in_memory(RunnerOptions::new()).await?;
/// let workflow = Workflow::new("numbers").add(step("inc", |x: i64| x + 1)).build()?;
/// let run = runner.start("first", &workflow).await?;
/// assert!(matches!(run.signal("dec", 1_i64).await, Err(InputError::Signal(_)))); // no such component
/// run.cancel().await?;
/// assert!(matches!(run.input(1_i64).await, Err(InputError::Over { .. })));
/// # runner.shutdown().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// It cannot be written as JSON.
    #[error("the input cannot be stored")]
    Unserialisable(#[source] ValueError),
    /// The run takes no input.
    #[error("run `{run}` is {status} and takes no input")]
    Over {
        /// The run.
        run: RunId,
        /// How it is.
        status: Status,
    },
    /// A signal has nowhere to go.
    #[error("the signal was not taken")]
    Signal(#[from] SignalError),
    /// The run could not be loaded.
    #[error("the run cannot be driven")]
    Start(#[from] StartError),
    /// The store failed. The input was not taken.
    #[error("the store failed")]
    Store(#[from] StoreError),
    /// The store cannot be used now. The input was not taken.
    #[error("the store cannot be used now: {why}")]
    Unavailable {
        /// What stands in the way.
        why: String,
    },
    /// The process that drives the run refused it after it was sent: the run was cancelled in between, or no component
    /// takes the signal.
    #[error("the process that drives run `{run}` did not take it: {why}")]
    NotApplied {
        /// The run.
        run: RunId,
        /// Why.
        why: String,
    },
    /// The lease of this process was over before the input was stored: another process may drive the run. With a key it
    /// can be given again without harm.
    #[error("the lease of run `{run}` was lost before the input was stored: {why}")]
    LeaseLost {
        /// The run.
        run: RunId,
        /// How the lease was lost.
        why: String,
    },
    /// The run went away before the input was stored: the runner shuts down, or the store failed for good.
    #[error("run `{run}` was lost before the input was stored: {why}")]
    Lost {
        /// The run.
        run: RunId,
        /// Why.
        why: String,
    },
}

/// Why there is no result.
///
/// ```
/// # mod tidewheel { pub use tidewheel_core::*; pub use tidewheel_runner::*; }
/// use tidewheel::policy::Failure;
/// use tidewheel::workflow::{Workflow, step};
/// use tidewheel::{ResultError, Runner, RunnerOptions};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let runner = Runner::in_memory(RunnerOptions::new()).await?;
/// let workflow = Workflow::new("numbers")
///     .add(step("inc", |_: i64| Err::<i64, _>(Failure::new("no"))))
///     .add(step("double", |x: i64| x * 2).after("inc"))
///     .build()?;
/// let run = runner.run("first", &workflow, 1_i64).await?;
/// assert!(matches!(run.result::<i64>("inc").await, Err(ResultError::Failed { .. })));
/// assert!(matches!(run.result::<i64>("double").await, Err(ResultError::Absent { .. })));
/// assert!(matches!(run.result::<i64>("triple").await, Err(ResultError::NoComponent { .. })));
/// # runner.shutdown().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
pub enum ResultError {
    /// The component failed.
    #[error("`{component}` failed: {failure}")]
    Failed {
        /// The component.
        component: String,
        /// Why.
        failure: Box<Failure>,
    },
    /// The component failed, and its policy lets that pass.
    #[error("`{component}` was skipped after it failed: {failure}")]
    Skipped {
        /// The component.
        component: String,
        /// Why it failed.
        failure: Box<Failure>,
    },
    /// The component gives nothing for the last input.
    #[error("`{component}` has no result: {}", absence(*reason))]
    Absent {
        /// The component.
        component: String,
        /// Why; `None` where a condition, of it or before it, was not true and nothing waits for it.
        reason: Option<Absence>,
    },
    /// The workflow has no such component.
    #[error("the workflow has no component `{component}`{}", near(nearest))]
    NoComponent {
        /// The name.
        component: String,
        /// The names that are nearest to it.
        nearest: Vec<String>,
    },
    /// The run had no input.
    #[error("run `{run}` had no input")]
    NoInput {
        /// The run.
        run: RunId,
    },
    /// The value is not of the type.
    #[error("the result is of another type")]
    Type(#[source] ValueError),
    /// A blocking step would wait for the run, and hold its thread and its slot meanwhile.
    #[error("a blocking step cannot wait for run `{run}`, which may need its slot: make the step async")]
    WouldBlock {
        /// The run.
        run: RunId,
    },
    /// The run does not go on by itself.
    #[error("run `{run}` is {status}{}", reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default())]
    Over {
        /// The run.
        run: RunId,
        /// How it is.
        status: Status,
        /// Why.
        reason: Option<String>,
    },
    /// The run could not be loaded.
    #[error("the run cannot be read")]
    Start(#[from] StartError),
    /// The store failed.
    #[error("the store failed")]
    Store(#[from] StoreError),
}

/// Why something could not be asked of a run.
///
/// ```
/// # mod tidewheel { pub use tidewheel_core::*; pub use tidewheel_runner::*; }
/// use tidewheel::workflow::{Workflow, step};
/// use tidewheel::{CommandError, Runner, RunnerOptions};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let runner = Runner::in_memory(RunnerOptions::new()).await?;
/// let workflow = Workflow::new("numbers").add(step("inc", |x: i64| x + 1)).build()?;
/// let run = runner.start("first", &workflow).await?;
/// let nothing = run.cancel_work(Default::default()).await;
/// assert!(matches!(nothing, Err(CommandError::NoWork { .. })));
/// run.cancel().await?;
/// assert!(matches!(run.retry().await, Err(CommandError::NoEffect { .. })));
/// # runner.shutdown().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// There is no such run.
    #[error("there is no run `{run}`")]
    NotFound {
        /// The run.
        run: RunId,
    },
    /// There is no such piece of work, or it is over.
    #[error("run `{run}` has no work `{work}` that is not over")]
    NoWork {
        /// The run.
        run: RunId,
        /// The piece of work.
        work: String,
    },
    /// Work is not tried again.
    #[error("work of run `{run}` is not tried again")]
    Retry {
        /// The run.
        run: RunId,
        /// Why.
        #[source]
        source: ReopenError,
    },
    /// The run has no work that failed.
    #[error("run `{run}` has no work that failed and could be tried again")]
    NothingFailed {
        /// The run.
        run: RunId,
    },
    /// The command has no effect as the run is.
    #[error("run `{run}` is {status}, and {command} has no effect: {why}")]
    NoEffect {
        /// The run.
        run: RunId,
        /// What was asked.
        command: RunCommand,
        /// How the run is.
        status: Status,
        /// Why it has no effect.
        why: &'static str,
    },
    /// The process that drives the run refused the command after it was sent: the run ended in between.
    #[error("the process that drives run `{run}` did not apply {command}: {why}")]
    NotApplied {
        /// The run.
        run: RunId,
        /// What was asked.
        command: RunCommand,
        /// Why.
        why: String,
    },
    /// The lease of this process was over before it was stored: another process may drive the run, and may
    /// not know of it. It can be asked again.
    #[error("the lease of run `{run}` was lost before this was stored: {why}; ask again")]
    LeaseLost {
        /// The run.
        run: RunId,
        /// How the lease was lost.
        why: String,
    },
    /// Nobody waits for what was said of a piece of work.
    #[error("nobody waits for `{token}`: the work is over, is at another attempt, or was never there")]
    NotAwaited {
        /// The token.
        token: String,
    },
    /// What was said cannot be stored.
    #[error("the value cannot be stored")]
    Unserialisable(#[source] ValueError),
    /// The run could not be loaded.
    #[error("the run cannot be driven")]
    Start(#[from] StartError),
    /// The store failed.
    #[error("the store failed")]
    Store(#[from] StoreError),
    /// The store refused.
    #[error("the store refused")]
    Refused(#[from] Refused),
}

impl CommandError {
    /// Returns the error of a word about work that another process refused: no work waits for it.
    pub(super) fn of_token(self, token: &Token) -> Self {
        match self {
            Self::NotApplied { .. } | Self::NoEffect { .. } => Self::NotAwaited { token: token.to_string() },
            error => error,
        }
    }
}

fn near(nearest: &[String]) -> String {
    let names: Vec<String> = nearest.iter().map(|name| format!("`{name}`")).collect();
    if names.is_empty() { String::new() } else { format!("; near to it are {}", names.join(", ")) }
}

/// Says in words why nothing came.
fn absence(why: Option<Absence>) -> String {
    match why {
        Some(Absence::Unsatisfied) => "its condition was not true".to_owned(),
        Some(Absence::Failed) => "it failed".to_owned(),
        Some(Absence::Skipped) => "it was skipped".to_owned(),
        Some(Absence::UpstreamFailed) => "something before it failed".to_owned(),
        Some(Absence::UpstreamSkipped) => "something before it was skipped".to_owned(),
        // What nobody waits for is not told of a condition that is not true.
        None => "its condition or one before it was not true, or a list was empty".to_owned(),
    }
}
