//! The runner as programs see it.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tidewheel_core::fact::{Payload, RunId, Value};
use tidewheel_core::time::Span;
use tidewheel_core::workflow::Workflow;
use tidewheel_store::{
    Clock, DeadLetter, Filter, Joined, Memory, Page, RealClock, RunRecord, Sqlite, Store, StoreError,
};
use tokio::sync::broadcast;
use tokio::task::AbortHandle;

use super::core::Core;
use super::elsewhere::CommandOutcome;
use super::error::{CommandError, StartError};
use super::handle::RunHandle;
use super::hooks::RunEvent;
use super::keeper::Asked;
use super::options::{RunnerOptions, StartOptions};
use super::start::IsNew;
use super::store_clock::StoreClock;

/// Drives runs that survive the end of the process.
///
/// ```
/// # mod tidewheel { pub use tidewheel_core::*; pub use tidewheel_runner::*; }
/// use tidewheel::workflow::{Workflow, step};
/// use tidewheel::Runner;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("orders.db");
/// let workflow = Workflow::new("numbers")
///     .add(step("inc", |x: i64| x + 1))
///     .add(step("double", |x: i64| x * 2).after("inc"))
///     .build()?;
///
/// let runner = Runner::open(&path).await?;                // SQLite, created if missing
/// let run = runner.start("first", &workflow).await?;      // the same id again: the same run
/// run.input_keyed("twenty", 20_i64).await?;               // the same key twice is one input
/// assert_eq!(run.result::<i64>("double").await?, 42);     // survives kill -9 in between
/// runner.shutdown().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Runner(pub(super) Arc<Service>);

pub(super) struct Service {
    pub(super) core: Arc<Core>,
    tasks: Vec<AbortHandle>,
}

impl Runner {
    /// Opens a runner on a SQLite database, which is created if it is missing.
    ///
    /// # Errors
    /// The database cannot be opened, or was written by a later release.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_with(path, RunnerOptions::new()).await
    }

    /// Opens a runner on a SQLite database.
    ///
    /// # Errors
    /// The database cannot be opened, or was written by a later release.
    pub async fn open_with(path: impl AsRef<Path>, mut options: RunnerOptions) -> Result<Self, StoreError> {
        let clock = options.clock.get_or_insert_with(|| Arc::new(RealClock::new()));
        let store = Sqlite::open(path.as_ref(), Arc::clone(clock))?;
        Self::with_store(Arc::new(store), options).await
    }

    /// Opens a runner whose runs are gone with the process: for tests, and for work that need not survive.
    ///
    /// # Errors
    /// None, in truth; the store might be another one.
    pub async fn in_memory(mut options: RunnerOptions) -> Result<Self, StoreError> {
        let clock = options.clock.get_or_insert_with(|| Arc::new(RealClock::new()));
        let store = Memory::new(Arc::clone(clock));
        Self::with_store(Arc::new(store), options).await
    }

    /// Opens a runner on any store. Due times are measured against the store's time, whatever the clock of the runner
    /// shows.
    ///
    /// # Errors
    /// The store failed.
    pub async fn with_store(store: Arc<dyn Store>, options: RunnerOptions) -> Result<Self, StoreError> {
        let clock: Arc<dyn Clock> = options.clock.clone().unwrap_or_else(|| Arc::new(RealClock::new()));
        let (asked, clock) = (clock.now(), StoreClock::new(clock));
        let Joined { owner, now } = store.join(options.lease).await?;
        clock.set(asked, now, clock.local().now());
        let core = Core::new(store, clock, owner, options);
        let tasks = core.start_tasks();
        Ok(Self(Arc::new(Service { core, tasks })))
    }

    /// Makes a workflow known: its runs in the store that nobody drives are driven here from now on, and its
    /// older versions may be registered beside it.
    ///
    /// ```
    /// # mod tidewheel { pub use tidewheel_core::*; pub use tidewheel_runner::*; pub use tidewheel_store as store; }
    /// use std::sync::Arc;
    /// use tidewheel::workflow::{Workflow, step};
    /// use tidewheel::{Runner, RunnerOptions};
    /// use tidewheel::store::{Memory, RealClock, Store};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let store: Arc<dyn Store> = Arc::new(Memory::new(Arc::new(RealClock::new())));
    /// let workflow = Workflow::new("numbers").add(step("inc", |x: i64| x + 1)).build()?;
    /// let runner = Runner::with_store(Arc::clone(&store), RunnerOptions::new()).await?;
    /// runner.run("first", &workflow, 41_i64).await?;
    /// runner.shutdown().await; // or the end of the process, however it comes
    ///
    /// let next = Runner::with_store(store, RunnerOptions::new()).await?;
    /// next.register(&workflow)?; // goes on with whatever is left of its runs
    /// assert_eq!(next.get("first").await?.result::<i64>("inc").await?, 42);
    /// # next.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A definition with other nodes or other policies has that name and version, or a policy cannot act.
    pub fn register(&self, workflow: &Workflow) -> Result<(), StartError> {
        self.register_with(workflow, &StartOptions::new())
    }

    /// Makes a workflow known, with what its runs are given when they are taken up again.
    ///
    /// # Errors
    /// As of [`Runner::register`].
    pub fn register_with(&self, workflow: &Workflow, options: &StartOptions) -> Result<(), StartError> {
        self.0.core.register(workflow, options)
    }

    /// Starts a run, or attaches to the one of that id and resumes it. When this returns, it is stored.
    ///
    /// # Errors
    /// The run is of another definition, or the store failed.
    pub async fn start(&self, id: impl Into<RunId>, workflow: &Workflow) -> Result<RunHandle, StartError> {
        self.start_with(id, workflow, &StartOptions::new()).await
    }

    /// Starts a run with options, or attaches to the one of that id and resumes it. A run that exists keeps the options
    /// that it was started with: the same may be given again, and others are refused by name.
    ///
    /// # Errors
    /// As of [`Runner::start`]; or the run exists with other options.
    pub async fn start_with(
        &self,
        id: impl Into<RunId>,
        workflow: &Workflow,
        options: &StartOptions,
    ) -> Result<RunHandle, StartError> {
        self.begin(id.into(), workflow, options, None, IsNew::May).await
    }

    /// Starts a run that must not exist yet.
    ///
    /// ```
    /// # mod tidewheel { pub use tidewheel_core::*; pub use tidewheel_runner::*; pub use tidewheel_store as store; }
    /// use tidewheel::workflow::{Workflow, step};
    /// use tidewheel::{Runner, RunnerOptions, StartError};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let workflow = Workflow::new("numbers").add(step("inc", |x: i64| x + 1)).build()?;
    /// let runner = Runner::in_memory(RunnerOptions::new()).await?;
    /// runner.start_new("first", &workflow).await?;
    /// let again = runner.start_new("first", &workflow).await;
    /// assert!(matches!(again, Err(StartError::Exists { .. })));
    /// # runner.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// It exists, or as of [`Runner::start`].
    pub async fn start_new(
        &self,
        id: impl Into<RunId>,
        workflow: &Workflow,
    ) -> Result<RunHandle, StartError> {
        self.begin(id.into(), workflow, &StartOptions::new(), None, IsNew::Must).await
    }

    /// Starts a run with its first input, stored together. A run of that id that exists is attached to, and gets
    /// no input.
    ///
    /// ```
    /// # mod tidewheel { pub use tidewheel_core::*; pub use tidewheel_runner::*; pub use tidewheel_store as store; }
    /// use tidewheel::workflow::{Workflow, step};
    /// use tidewheel::{Runner, RunnerOptions};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let workflow = Workflow::new("numbers").add(step("inc", |x: i64| x + 1)).build()?;
    /// let runner = Runner::in_memory(RunnerOptions::new()).await?;
    /// let run = runner.run("first", &workflow, 41_i64).await?;
    /// assert_eq!(run.result::<i64>("inc").await?, 42);
    /// # runner.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As of [`Runner::start`].
    pub async fn run<T: Payload>(
        &self,
        id: impl Into<RunId>,
        workflow: &Workflow,
        input: T,
    ) -> Result<RunHandle, StartError> {
        self.run_with(id, workflow, input, &StartOptions::new()).await
    }

    /// Starts a run with its first input and options.
    ///
    /// # Errors
    /// As of [`Runner::start`].
    pub async fn run_with<T: Payload>(
        &self,
        id: impl Into<RunId>,
        workflow: &Workflow,
        input: T,
        options: &StartOptions,
    ) -> Result<RunHandle, StartError> {
        self.begin(id.into(), workflow, options, Some(Value::new(input)), IsNew::May).await
    }

    async fn begin(
        &self,
        id: RunId,
        workflow: &Workflow,
        options: &StartOptions,
        input: Option<Value>,
        is_new: IsNew,
    ) -> Result<RunHandle, StartError> {
        self.0.core.start(&id, workflow, options, input, is_new).await?;
        Ok(RunHandle::new(Arc::clone(&self.0.core), id, workflow.clone()))
    }

    /// Returns a run that exists, if its workflow is registered here.
    ///
    /// # Errors
    /// There is no such run, its workflow is not known here, or the store failed.
    pub async fn get(&self, id: impl Into<RunId>) -> Result<RunHandle, StartError> {
        let (id, core) = (id.into(), &self.0.core);
        if let Some(active) = core.held(&id) {
            return Ok(RunHandle::new(Arc::clone(core), id, active.workflow().clone()));
        }
        let Some(record) = core.store().find(&id).await? else {
            return Err(StartError::NotFound { run: id });
        };
        let Some(known) = core.registered(&record.workflow, record.workflow_version) else {
            let (workflow, version) = (record.workflow, record.workflow_version);
            return Err(StartError::Unregistered { run: id, workflow, version });
        };
        Ok(RunHandle::new(Arc::clone(core), id, known.workflow.clone()))
    }

    /// Goes on with a run that was stopped, paused or parked, or that no process drives.
    ///
    /// # Errors
    /// There is no such run, nothing of it is left to do, or it cannot be driven here.
    pub async fn resume(&self, id: impl Into<RunId>) -> Result<RunHandle, CommandError> {
        let run = match self.get(id).await {
            Err(StartError::NotFound { run }) => return Err(CommandError::NotFound { run }),
            run => run?,
        };
        run.resume().await?;
        Ok(run)
    }

    /// Lets go of a run, wherever it is driven. Where its workflow is not registered here, the command goes through the
    /// store.
    ///
    /// ```
    /// # mod tidewheel { pub use tidewheel_core::*; pub use tidewheel_runner::*; pub use tidewheel_store as store; }
    /// use tidewheel::workflow::{Workflow, step};
    /// use tidewheel::{CommandError, CommandOutcome, Runner, RunnerOptions};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let workflow = Workflow::new("numbers").add(step("inc", |x: i64| x + 1)).build()?;
    /// let runner = Runner::in_memory(RunnerOptions::new()).await?;
    /// runner.start("first", &workflow).await?;
    /// assert_eq!(runner.stop("first").await?, CommandOutcome::Done);
    /// assert_eq!(runner.stop("first").await?, CommandOutcome::AlreadySo);
    /// assert!(matches!(runner.stop("second").await, Err(CommandError::NotFound { .. })));
    /// # runner.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// There is no such run, it does not go on anyway, or the store failed.
    pub async fn stop(&self, id: impl Into<RunId>) -> Result<CommandOutcome, CommandError> {
        match self.get(id).await {
            Ok(run) => run.stop().await,
            Err(StartError::NotFound { run }) => Err(CommandError::NotFound { run }),
            Err(StartError::Unregistered { run, .. }) => Ok(self.0.core.send(&run, &Asked::Stop).await?),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns work that was put aside after it failed, oldest first, page by page; of one run or of all. What is
    /// tried again with [`RunHandle::retry_work`] is no longer among it.
    ///
    /// # Errors
    /// The store failed.
    pub async fn dead_letters(
        &self,
        run: Option<&RunId>,
        after: Option<String>,
    ) -> Result<Page<DeadLetter>, StoreError> {
        self.0.core.store().dead_letters(run, after).await
    }

    /// Returns runs of the store, newest first, page by page.
    ///
    /// ```
    /// # mod tidewheel { pub use tidewheel_core::*; pub use tidewheel_runner::*; pub use tidewheel_store as store; }
    /// use tidewheel::workflow::{Workflow, step};
    /// use tidewheel::{Runner, RunnerOptions};
    /// use tidewheel::store::{Filter, Status};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let workflow = Workflow::new("numbers").add(step("inc", |x: i64| x + 1)).build()?;
    /// let runner = Runner::in_memory(RunnerOptions::new()).await?;
    /// runner.run("first", &workflow, 41_i64).await?.wait().await?;
    /// let over = Filter { statuses: vec![Status::Completed], ..Filter::default() };
    /// assert_eq!(runner.list(over).await?.rows[0].id.as_str(), "first");
    /// # runner.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The store failed.
    pub async fn list(&self, filter: Filter) -> Result<Page<RunRecord>, StoreError> {
        self.0.core.store().list(filter).await
    }

    /// Returns what happens from now on in the runs that are driven here, after it was stored. Whoever listens
    /// too slowly is told how much was missed.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<RunEvent> {
        self.0.core.subscribe()
    }

    /// Returns what stands in the way of the runner, if something does: the store cannot be used, and work waits until it
    /// can; or a task of the runner panicked within the last minute, and was started again. What is stored and found damaged
    /// is named, too: the runs, rows and indexes, and commits that are missing.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.0.core.committer().trouble().or_else(|| self.0.core.supervisor().trouble())
    }

    /// Returns how many threads go on with work that was given up because its time was over.
    #[must_use]
    pub fn abandoned_threads(&self) -> usize {
        self.0.core.pool().abandoned()
    }

    /// Returns what this runner counted and has at the moment, in the text form of OpenMetrics, which Prometheus reads.
    #[must_use]
    pub fn metrics(&self) -> String {
        let mut registry = Registry::default();
        self.register_metrics(&mut registry);
        let mut text = String::new();
        encode(&mut text, &registry).expect("invariant: a text takes whatever is written to it");
        text
    }

    /// Puts what this runner counts into a registry of the program's own. It stays right for as long as the runner is
    /// there.
    pub fn register_metrics(&self, registry: &mut Registry) {
        let core = &self.0.core;
        core.metrics().register(registry, Arc::downgrade(core));
    }

    /// Stops taking work, waits for what is under way, for at most the grace of the options, and gives all runs
    /// back: another process, or the next start of this one, goes on with them.
    pub async fn shutdown(self) {
        let core = &self.0.core;
        core.close();
        let until = core.local_clock().now().saturating_add(core.options().shutdown_grace);
        for active in core.all_held() {
            core.supervisor().call("shutdown", || active.hold_back());
        }
        while core.local_clock().now() < until && core.all_held().iter().any(|active| !active.is_quiet()) {
            tokio::select! {
                biased;
                () = core.changed.notified() => {}
                () = core.sleep(Span::from_millis(5)) => {}
            }
        }
        let mut farewells = Vec::new();
        for active in core.all_held() {
            let (ack, stored) = tokio::sync::oneshot::channel();
            let is_leaving = core.supervisor().call("shutdown", || active.leave(ack));
            if is_leaving == Some(true) {
                farewells.push(stored);
            }
        }
        let farewell = async {
            for stored in farewells {
                // A run that was lost needs no farewell.
                drop(stored.await);
            }
            drop(core.store().leave(core.owner()).await);
        };
        // A store that does not answer must not hold the process: what is stored is all that counts.
        tokio::select! {
            biased;
            () = farewell => {}
            () = core.sleep(FAREWELL) => {}
        }
    }
}

/// So long may it take to store that all runs were given back.
const FAREWELL: Span = Span::from_secs(5);

impl Drop for Service {
    fn drop(&mut self) {
        // Without a shutdown this is like the end of the process: what is stored is all that counts.
        self.core.close();
        for task in &self.tasks {
            task.abort();
        }
        self.core.drop_all();
    }
}

impl fmt::Debug for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runner").field("options", self.0.core.options()).finish_non_exhaustive()
    }
}
