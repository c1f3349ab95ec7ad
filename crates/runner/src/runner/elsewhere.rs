//! Commands for runs that another process drives, or that this process cannot drive: a row in the store. The caller is
//! answered when the owner process has handled the row, so that nothing is acknowledged that was refused.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tidewheel_core::command::{Effect, RunCommand};
use tidewheel_core::fact::RunId;
use tidewheel_store::{CommandId, Refused, RunRecord, Status, StoreError, Version};

use super::core::Core;
use super::error::{CommandError, InputError, StartError};
use super::handle::LOOK_AGAIN;
use super::keeper::Asked;
use super::load::{Opened, Wake};

/// What became of a command.
///
/// ```
/// # mod tidewheel { pub use tidewheel_core::*; pub use tidewheel_runner::*; }
/// use tidewheel::workflow::{Workflow, step};
/// use tidewheel::{CommandOutcome, Runner, RunnerOptions};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let workflow = Workflow::new("numbers").add(step("inc", |x: i64| x + 1)).build()?;
/// let runner = Runner::in_memory(RunnerOptions::new()).await?;
/// let run = runner.start("first", &workflow).await?;
/// assert_eq!(run.cancel().await?, CommandOutcome::Done);
/// assert_eq!(run.cancel().await?, CommandOutcome::AlreadySo);
/// # runner.shutdown().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandOutcome {
    /// It took effect, and that is stored.
    Done,
    /// What it asks for was so already; nothing was changed.
    AlreadySo,
    /// It is stored, and no process drives the run: the next one that knows its workflow applies it, or writes the event
    /// `command_refused` with the reason.
    Sent,
}

/// Why a command that goes through the store was not applied.
pub(super) enum SendError {
    NotFound { run: RunId },
    NoEffect { run: RunId, command: RunCommand, status: Status, why: &'static str },
    NotApplied { run: RunId, command: RunCommand, why: String },
    Start(StartError),
    Store(StoreError),
    Refused(Refused),
}

impl From<StoreError> for SendError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<StartError> for SendError {
    fn from(error: StartError) -> Self {
        Self::Start(error)
    }
}

impl From<SendError> for CommandError {
    fn from(error: SendError) -> Self {
        match error {
            SendError::NotFound { run } => Self::NotFound { run },
            SendError::NoEffect { run, command, status, why } => Self::NoEffect { run, command, status, why },
            SendError::NotApplied { run, command, why } => Self::NotApplied { run, command, why },
            SendError::Start(error) => Self::Start(error),
            SendError::Store(error) => Self::Store(error),
            SendError::Refused(refused) => Self::Refused(refused),
        }
    }
}

impl From<SendError> for InputError {
    fn from(error: SendError) -> Self {
        match error {
            SendError::NotFound { run } => Self::Start(StartError::NotFound { run }),
            SendError::NoEffect { run, status, .. } => Self::Over { run, status },
            SendError::NotApplied { run, why, .. } => Self::NotApplied { run, why },
            SendError::Start(error) => Self::Start(error),
            SendError::Store(error) => Self::Store(error),
            SendError::Refused(refused) => Self::Start(StartError::Refused(refused)),
        }
    }
}

/// The first look whether a command is handled comes after this; each further one after twice the time.
const FIRST_LOOK: Duration = Duration::from_millis(1);

/// An event of a log, as far as it is about commands.
#[derive(Deserialize)]
struct Line {
    #[serde(default)]
    command_refused: Option<RefusedCommand>,
}

#[derive(Deserialize)]
struct RefusedCommand {
    command: i64,
    why: String,
}

impl Core {
    /// Returns the answer to a command that changes nothing as the run is stored; `None` if it may change something.
    pub(super) async fn answer_at_once(
        &self,
        record: &RunRecord,
        command: RunCommand,
    ) -> Result<Option<CommandOutcome>, SendError> {
        let status = record.status;
        let effect = command.effect_on_run(status);
        // What was asked before and is not handled yet may change how the run is.
        if effect == Effect::Acts || !self.store().commands_of(&record.id).await?.is_empty() {
            return Ok(None);
        }
        match effect {
            Effect::Acts => Ok(None),
            Effect::AlreadySo => Ok(Some(CommandOutcome::AlreadySo)),
            Effect::Refused(why) => Err(SendError::NoEffect { run: record.id.clone(), command, status, why }),
        }
    }

    /// Returns what is stored of a run that a command is for.
    pub(super) async fn commanded(&self, run: &RunId) -> Result<RunRecord, SendError> {
        self.store().find(run).await?.ok_or_else(|| SendError::NotFound { run: run.clone() })
    }

    /// Sends a command through the store, and waits until the process that drives the run has handled it.
    pub(super) async fn send(
        self: &Arc<Self>,
        run: &RunId,
        asked: &Asked,
    ) -> Result<CommandOutcome, SendError> {
        let record = self.commanded(run).await?;
        if asked.is_of_whole_run()
            && let Some(outcome) = self.answer_at_once(&record, asked.verb()).await?
        {
            return Ok(outcome);
        }
        let id = match self.store().send(asked.command(run)).await? {
            Ok(id) => id,
            Err(Refused::NotFound { run }) => return Err(SendError::NotFound { run }),
            Err(refused) => return Err(SendError::Refused(refused)),
        };
        let mut pause = FIRST_LOOK;
        loop {
            let open = self.store().commands_of(run).await?;
            if open.iter().all(|command| command.id != id) {
                return match self.refusal(run, record.version, id).await? {
                    Some(why) => Err(SendError::NotApplied { run: run.clone(), command: asked.verb(), why }),
                    None => self.commanded(run).await.map(|_| CommandOutcome::Done),
                };
            }
            if !self.is_or_gets_driven(run).await? {
                return Ok(CommandOutcome::Sent);
            }
            // The owner process has a clock of its own, so that this wait is one of this process.
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(LOOK_AGAIN.as_millis()));
        }
    }

    /// Returns why a command was refused, if it was, from what was stored since.
    async fn refusal(&self, run: &RunId, since: Version, id: CommandId) -> Result<Option<String>, SendError> {
        for stored in self.store().read(run, since).await? {
            let lines = stored.events.events().map_err(|error| StartError::batch(run, error))?;
            for line in lines.into_iter().filter(|line| line.contains("command_refused")) {
                let line: Line =
                    serde_json::from_str(line).map_err(|error| StartError::unreadable(run, error))?;
                if let Some(refused) = line.command_refused.filter(|refused| refused.command == id.0) {
                    return Ok(Some(refused.why));
                }
            }
        }
        Ok(None)
    }

    /// Returns whether a live process drives a run. One that no process drives is loaded here, where it can be: that
    /// applies its commands.
    async fn is_or_gets_driven(self: &Arc<Self>, run: &RunId) -> Result<bool, SendError> {
        let record = self.commanded(run).await?;
        if let Some(owner) = record.owner
            && self.store().owners().await?.contains(&owner)
        {
            return Ok(true);
        }
        if self.is_closing() || self.registered(&record.workflow, record.workflow_version).is_none() {
            return Ok(false);
        }
        match self.open(run, None, Wake::Keep).await {
            Ok(Opened::Here(active)) => {
                active.go_on();
                Ok(true)
            }
            Ok(Opened::Elsewhere) => Ok(true),
            Err(StartError::Store(error)) => Err(error.into()),
            Err(error) => {
                tracing::warn!(%run, error = crate::words(&error), "run cannot be loaded to apply a command");
                Ok(false)
            }
        }
    }
}
