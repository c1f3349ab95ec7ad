//! One run, for whoever wants something of it, wherever it is driven.

use std::fmt;
use std::sync::Arc;

use tidewheel_core::QueryError;
use tidewheel_core::fact::{Payload, RunId, Value};
use tidewheel_core::run::Run;
use tidewheel_core::time::Span;
use tidewheel_core::workflow::Workflow;
use tidewheel_store::{RunRecord, Status};
use tokio::sync::oneshot;

use super::active::{By, Lost, Mode, Seen, Taken};
use super::core::Core;
use super::error::{InputError, ResultError, StartError};
use super::keeper::Asked;
use super::load::{Opened, Wake};
use crate::pool::SlotLoan;

/// A run of a runner. Cheap to clone; dropping it changes nothing.
///
/// ```
/// # mod tidewheel { pub use tidewheel_core::*; pub use tidewheel_runner::*; pub use tidewheel_store as store; }
/// use tidewheel::workflow::{Workflow, accumulator, step};
/// use tidewheel::{Runner, RunnerOptions};
/// use tidewheel::store::Status;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let workflow = Workflow::new("votes")
///     .add(accumulator("votes", 0_u32, |sum: u32, votes: u32| sum + votes))
///     .add(step("report", |votes: u32| format!("{votes} votes")).after("votes"))
///     .build()?;
/// let runner = Runner::in_memory(RunnerOptions::new()).await?;
/// let run = runner.start("poll-1", &workflow).await?;
/// run.signal("votes", 2_u32).await?;                // an input for one component
/// run.input(3_u32).await?;
/// assert_eq!(run.wait().await?, Status::Completed); // until nothing is left to do
/// assert_eq!(run.result::<u32>("votes").await?, 5);
/// assert!(!run.state().await?.has_failed());        // all that a run in memory can be asked
///
/// let run = runner.start("poll-2", &workflow).await?;
/// run.pause().await?; // no work begins until it is resumed
/// assert_eq!(run.status().await?, Status::Paused);
/// run.resume().await?;
/// # runner.shutdown().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RunHandle {
    pub(super) core: Arc<Core>,
    pub(super) id: RunId,
    pub(super) workflow: Workflow,
}

/// How often to look at a run that another process drives: nobody tells this one what happens there.
pub(super) const LOOK_AGAIN: Span = Span::from_millis(50);

impl RunHandle {
    pub(super) const fn new(core: Arc<Core>, id: RunId, workflow: Workflow) -> Self {
        Self { core, id, workflow }
    }

    /// Returns the id.
    #[must_use]
    pub const fn id(&self) -> &RunId {
        &self.id
    }

    /// Gives the run an input. When this returns, the input is stored: it survives the end of the process.
    ///
    /// # Errors
    /// The input was not taken, or nobody knows: [`InputError::Lost`]. With a key it can be given again without
    /// harm: see [`RunHandle::input_keyed`].
    pub async fn input<T: Payload>(&self, input: T) -> Result<(), InputError> {
        self.take(Value::new(input), None).await
    }

    /// Gives the run an input under a key. The same key twice is one input.
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
    /// let run = runner.start("first", &workflow).await?;
    /// run.input_keyed("order-7", 41_i64).await?;
    /// run.input_keyed("order-7", 41_i64).await?; // whoever is unsure gives it again
    /// run.wait().await?;
    /// assert_eq!(run.results::<i64>("inc").await?, [42]);
    /// # runner.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As of [`RunHandle::input`].
    pub async fn input_keyed<T: Payload>(&self, key: impl Into<String>, input: T) -> Result<(), InputError> {
        self.take(Value::new(input), Some(key.into())).await
    }

    async fn take(&self, value: Value, key: Option<String>) -> Result<(), InputError> {
        let text = value.to_text().map_err(InputError::Unserialisable)?;
        loop {
            if let Some(why) = self.core.committer().trouble() {
                return Err(InputError::Unavailable { why });
            }
            let active = match self.core.open(&self.id, None, Wake::Keep).await? {
                Opened::Here(active) => active,
                Opened::Elsewhere => {
                    let asked = Asked::Input { value: text, key };
                    return Ok(self.core.send(&self.id, &asked).await.map(drop)?);
                }
            };
            // A run that has much to do takes its time for more. One that leaves has nothing to do here.
            let mut loan = SlotLoan::default();
            while active.open_len() > self.core.options().max_open_work {
                // A blocking step keeps its slot; the run has others, or its own limit is the mistake.
                drop(loan.begin());
                self.core.sleep(Span::from_millis(1)).await;
            }
            loan.end().await;
            let (ack, stored) = oneshot::channel();
            match active.input(value.clone(), key.clone(), By::Caller(ack)) {
                Taken::Done | Taken::AlreadySo => {
                    if let Some(answer) = self.until_stored(stored).await {
                        return answer;
                    }
                }
                Taken::NoEffect { status, .. } => {
                    return Err(InputError::Over { run: self.id.clone(), status });
                }
                // It was given back, and is loaded again.
                Taken::Not => self.core.until_gone(&active).await,
            }
        }
    }

    /// Gives one of the components that take the input a value, and the others nothing: an answer of a person, a
    /// word from outside. It does not count as the last input. When this returns, it is stored.
    ///
    /// # Errors
    /// There is no such component that takes the input, the run takes no signals as it is, or it cannot be driven.
    pub async fn signal<T: Payload>(&self, component: &str, value: T) -> Result<(), InputError> {
        let value = Value::new(value);
        let text = value.to_text().map_err(InputError::Unserialisable)?;
        loop {
            let active = match self.core.open(&self.id, None, Wake::Keep).await? {
                Opened::Here(active) => active,
                Opened::Elsewhere => {
                    let asked = Asked::Signal { component: component.to_owned(), value: text };
                    return Ok(self.core.send(&self.id, &asked).await.map(drop)?);
                }
            };
            let (ack, stored) = oneshot::channel();
            match active.signal(component, value.clone(), By::Caller(ack))? {
                Taken::Done | Taken::AlreadySo => {
                    if let Some(answer) = self.until_stored(stored).await {
                        return answer;
                    }
                }
                Taken::NoEffect { status, .. } => {
                    return Err(InputError::Over { run: self.id.clone(), status });
                }
                // It was given back, and is loaded again.
                Taken::Not => self.core.until_gone(&active).await,
            }
        }
    }

    /// Waits until something is stored; `None` if it was given to a run that somebody began to create while it
    /// existed.
    async fn until_stored(
        &self,
        stored: oneshot::Receiver<Result<(), Lost>>,
    ) -> Option<Result<(), InputError>> {
        let why = match stored.await {
            Ok(Ok(())) => return Some(Ok(())),
            Ok(Err(lost)) if lost.is_of_twin() => return None,
            Ok(Err(Lost::Lease(why))) => {
                return Some(Err(InputError::LeaseLost { run: self.id.clone(), why }));
            }
            Ok(Err(lost)) => lost.to_string(),
            Err(_) => "the runner shuts down".to_owned(),
        };
        Some(Err(InputError::Lost { run: self.id.clone(), why }))
    }

    /// Waits for the value of a component for the last input.
    ///
    /// An async step that waits here for another run gives its slot back meanwhile, and has one again when this returns; a
    /// blocking step gets [`ResultError::WouldBlock`]. That is so where the step itself awaits this: a task that it spawned
    /// cannot give the slot of the step back, so that a step which waits for such a task keeps it, and where all slots are
    /// kept so, nothing goes on.
    ///
    /// What it returns is stored. If the component fails, or gives nothing, that is an error as soon as the run
    /// has nothing left to do.
    ///
    /// ```
    /// # mod tidewheel { pub use tidewheel_core::*; pub use tidewheel_runner::*; pub use tidewheel_store as store; }
    /// use tidewheel::workflow::{Workflow, step};
    /// use tidewheel::{ResultError, Runner, RunnerOptions};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let parse = step("parse", |text: String| text.parse::<i64>());
    /// let workflow = Workflow::new("numbers").add(parse).build()?;
    /// let runner = Runner::in_memory(RunnerOptions::new()).await?;
    /// let run = runner.run("first", &workflow, "42".to_owned()).await?;
    /// assert_eq!(run.result::<i64>("parse").await?, 42);
    /// run.input("forty-two".to_owned()).await?;
    /// assert!(matches!(run.result::<i64>("parse").await, Err(ResultError::Failed { .. })));
    /// # runner.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// There is no such value, and there will be none; or the run does not go on by itself.
    pub async fn result<T: Payload>(&self, component: &str) -> Result<T, ResultError> {
        let mut loan = SlotLoan::default();
        let value = self.value(component, &mut loan).await;
        loan.end().await;
        value?.get().map_err(ResultError::Type)
    }

    /// Lends the slot of the step that waits here, if one does: the run may need it.
    fn lend(&self, loan: &mut SlotLoan) -> Result<(), ResultError> {
        let is_new = loan.begin().map_err(|_| ResultError::WouldBlock { run: self.id.clone() })?;
        if is_new && self.core.wants_room() {
            self.core.look.notify_one();
        }
        Ok(())
    }

    async fn value(&self, component: &str, loan: &mut SlotLoan) -> Result<Value, ResultError> {
        self.must_have(component)?;
        loop {
            if let Some(active) = self.core.held(&self.id) {
                match active.see(component) {
                    Seen::Value(value) => return Ok(value),
                    Seen::Failed(failure) => {
                        return Err(ResultError::Failed { component: component.to_owned(), failure });
                    }
                    Seen::Skipped(failure) => {
                        return Err(ResultError::Skipped { component: component.to_owned(), failure });
                    }
                    Seen::Absent(reason) => {
                        return Err(ResultError::Absent { component: component.to_owned(), reason });
                    }
                    Seen::NoInput => return Err(ResultError::NoInput { run: self.id.clone() }),
                    Seen::Wait(told) => {
                        self.lend(loan)?;
                        drop(told.await);
                    }
                    Seen::Over { status: status @ Status::Paused } => {
                        let (run, reason) = (self.id.clone(), active.pause_reason());
                        return Err(ResultError::Over { run, status, reason });
                    }
                    Seen::Over { .. } => {
                        self.lend(loan)?;
                        self.core.until_gone(&active).await;
                    }
                }
                continue;
            }
            let record = self.record().await?;
            if self.goes_on(&record).await? {
                self.lend(loan)?;
                self.until_driven(&record).await?;
                continue;
            }
            let run = self.stored_run(&record).await;
            match record.status {
                Status::Running | Status::Waiting | Status::Completed | Status::Failed => {
                    // What was asked of it may have been done since the record was read.
                    let run = run?;
                    if !run.is_runnable() {
                        return self.value_of(&run, component);
                    }
                }
                status @ (Status::Paused | Status::Stopped | Status::Parked | Status::Cancelled) => {
                    let reason = record.reason;
                    let over = |_| ResultError::Over { run: self.id.clone(), status, reason };
                    let value =
                        run.map_err(ResultError::Start).and_then(|run| self.value_of(&run, component));
                    return value.map_err(over);
                }
            }
        }
    }

    /// Tells whether a run that is not here has something to do, as far as the store knows.
    async fn goes_on(&self, record: &RunRecord) -> Result<bool, StartError> {
        let may_be_asked = match record.status {
            Status::Running => return Ok(true),
            Status::Waiting if record.wake_at.is_some() => return Ok(true),
            Status::Waiting | Status::Completed | Status::Failed => true,
            Status::Paused | Status::Stopped | Status::Parked | Status::Cancelled => false,
        };
        Ok(may_be_asked && !self.core.store().commands_of(&self.id).await?.is_empty())
    }

    /// Returns everything that a component produced, as far as it is stored.
    ///
    /// # Errors
    /// A value is of another type, or the run cannot be read.
    pub async fn results<T: Payload>(&self, component: &str) -> Result<Vec<T>, ResultError> {
        self.must_have(component)?;
        let run = self.stored_state().await?;
        run.results(component).map_err(|error| match error {
            QueryError::Value(error) => ResultError::Type(error),
            QueryError::NoComponent { name, nearest } | QueryError::NoOutput { name, nearest } => {
                ResultError::NoComponent { component: name, nearest }
            }
        })
    }

    fn must_have(&self, component: &str) -> Result<(), ResultError> {
        if self.workflow.has_component(component) {
            return Ok(());
        }
        let nearest = self.workflow.names_near(component);
        Err(ResultError::NoComponent { component: component.to_owned(), nearest })
    }

    /// Returns the run as it is: its facts, failures and what is pending. A copy, to look at.
    ///
    /// # Errors
    /// The run cannot be read.
    pub async fn state(&self) -> Result<Run, ResultError> {
        if let Some(active) = self.core.held(&self.id) {
            return Ok(active.look(Clone::clone));
        }
        let record = self.record().await?;
        Ok(self.stored_run(&record).await?)
    }

    /// Waits until nothing is left to do, or the run does not go on by itself, and returns how it is then. A step that waits
    /// here does with its slot what it does in [`RunHandle::result`].
    ///
    /// # Errors
    /// The run cannot be read.
    pub async fn wait(&self) -> Result<Status, ResultError> {
        let mut loan = SlotLoan::default();
        let status = self.until_over(&mut loan).await;
        loan.end().await;
        status
    }

    async fn until_over(&self, loan: &mut SlotLoan) -> Result<Status, ResultError> {
        loop {
            if let Some(active) = self.core.held(&self.id) {
                match active.see_end() {
                    Seen::Over { status: status @ Status::Paused } => return Ok(status),
                    Seen::Over { status } if active.mode() == Mode::Going => return Ok(status),
                    Seen::Wait(told) => {
                        self.lend(loan)?;
                        drop(told.await);
                    }
                    _ => {
                        self.lend(loan)?;
                        self.core.until_gone(&active).await;
                    }
                }
                continue;
            }
            let record = self.record().await?;
            if !self.goes_on(&record).await? {
                return Ok(record.status);
            }
            self.lend(loan)?;
            self.until_driven(&record).await?;
        }
    }

    /// Returns how the run is.
    ///
    /// # Errors
    /// The store failed, or the run is gone.
    pub async fn status(&self) -> Result<Status, ResultError> {
        Ok(self.record().await?.status)
    }

    pub(super) async fn record(&self) -> Result<RunRecord, StartError> {
        let record = self.core.store().find(&self.id).await?;
        record.ok_or_else(|| StartError::NotFound { run: self.id.clone() })
    }

    /// Sees to it that a run with work to do is driven, here or elsewhere, and lets some time pass.
    pub(super) async fn until_driven(&self, record: &RunRecord) -> Result<(), StartError> {
        if record.owner.is_none()
            && record.status == Status::Running
            && self.core.room() > 0
            && let Opened::Here(active) = self.core.open(&self.id, None, Wake::Keep).await?
        {
            active.go_on();
            return Ok(());
        }
        tokio::select! {
            biased;
            () = self.core.changed.notified() => {}
            () = self.core.sleep(LOOK_AGAIN) => {}
        }
        Ok(())
    }

    pub(super) async fn stored_run(&self, record: &RunRecord) -> Result<Run, StartError> {
        let definition = self.core.store().definition(&self.id).await?.unwrap_or_default();
        let (run, ..) = self.core.read_run(record, &definition, None).await?;
        Ok(run)
    }

    /// Returns the run as it is, as soon as that is stored.
    async fn stored_state(&self) -> Result<Run, ResultError> {
        while let Some(active) = self.core.held(&self.id) {
            let (ack, stored) = oneshot::channel();
            let run = active.stored(ack);
            if let Ok(Ok(())) = stored.await {
                return Ok(run);
            }
            self.core.until_gone(&active).await;
        }
        self.state().await
    }

    fn value_of(&self, run: &Run, component: &str) -> Result<Value, ResultError> {
        let Some(input) = run.last_input() else {
            return Err(ResultError::NoInput { run: self.id.clone() });
        };
        if let Some(value) = run.value_for(component, input, run.facts_len()) {
            return Ok(value.clone());
        }
        let component = component.to_owned();
        let failures = run.failures();
        let own =
            failures.iter().find(|failed| failed.component == Some(&component) && failed.input == input);
        Err(match own {
            Some(failed) if failed.skipped => {
                ResultError::Skipped { component, failure: Box::new(failed.failure.clone()) }
            }
            Some(failed) => ResultError::Failed { component, failure: Box::new(failed.failure.clone()) },
            None => ResultError::Absent { reason: run.absence(&component, input), component },
        })
    }
}

impl fmt::Debug for RunHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunHandle").field("id", &self.id).finish_non_exhaustive()
    }
}
