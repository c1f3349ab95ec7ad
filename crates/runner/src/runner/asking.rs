//! What a handle asks of its run: pause, resume, stop, cancel, retry, and what somebody outside says. Where the run is
//! driven makes no difference.

use tidewheel_core::fact::RunnableId;
use tidewheel_core::work::Token;
use tidewheel_store::{Refused, StoreError};
use tokio::sync::oneshot;

use super::active::{Active, By, Lost, Retried, Said, Taken};
use super::elsewhere::CommandOutcome;
use super::error::{CommandError, StartError};
use super::handle::RunHandle;
use super::keeper::Asked;
use super::load::{Opened, Wake};

impl RunHandle {
    /// Stores progress that need not survive a crash and was not stored yet.
    ///
    /// # Errors
    /// There is no such run, everything of it is stored, or the store failed.
    pub async fn checkpoint(&self) -> Result<CommandOutcome, CommandError> {
        self.command(&Asked::Checkpoint, Active::checkpoint).await
    }

    /// Ends all work of the run that is not over. Async work is dropped at its next await point; other work is
    /// told through its context.
    ///
    /// ```
    /// # mod tidewheel { pub use tidewheel_core::*; pub use tidewheel_runner::*; pub use tidewheel_store as store; }
    /// use tidewheel::workflow::{Workflow, step};
    /// use tidewheel::{Runner, RunnerOptions};
    /// use tidewheel::store::Status;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let workflow = Workflow::new("patience")
    ///     .add(step("wait", |_: u64| async { std::future::pending::<u64>().await }))
    ///     .build()?;
    /// let runner = Runner::in_memory(RunnerOptions::new()).await?;
    /// let run = runner.run("first", &workflow, 1_u64).await?;
    /// run.cancel().await?;
    /// assert_eq!(run.wait().await?, Status::Cancelled);
    /// # runner.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// There is no such run, nothing of it is left to do, or the store failed. To cancel a run that is cancelled is no
    /// error, and says so.
    pub async fn cancel(&self) -> Result<CommandOutcome, CommandError> {
        self.command(&Asked::Cancel, Active::cancel).await
    }

    /// Ends one piece of work.
    ///
    /// # Errors
    /// There is no such work that is not over, or the store failed.
    pub async fn cancel_work(&self, work: RunnableId) -> Result<(), CommandError> {
        let mut was_there = true;
        self.command(&Asked::CancelWork { work }, |active, by| match active.cancel_work(work, by) {
            Some(is_there) => {
                was_there = is_there;
                Taken::Done
            }
            None => Taken::Not,
        })
        .await?;
        if was_there {
            Ok(())
        } else {
            Err(CommandError::NoWork { run: self.id.clone(), work: work.to_string() })
        }
    }

    /// Gives work that failed all its attempts again, and what comes after it another chance; returns how many pieces.
    /// Where another process drives the run, that process knows how many.
    ///
    /// ```
    /// # mod tidewheel { pub use tidewheel_core::*; pub use tidewheel_runner::*; pub use tidewheel_store as store; }
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicBool, Ordering};
    /// use tidewheel::workflow::{Workflow, step};
    /// use tidewheel::{Runner, RunnerOptions};
    /// use tidewheel::store::Status;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let is_open = Arc::new(AtomicBool::new(false));
    /// let bank = Arc::clone(&is_open);
    /// let pay = step("pay", move |cents: u64| {
    ///     if bank.load(Ordering::SeqCst) { Ok(cents) } else { Err("the bank is closed".to_owned()) }
    /// });
    /// let workflow = Workflow::new("payment").add(pay).build()?;
    /// let runner = Runner::in_memory(RunnerOptions::new()).await?;
    /// let run = runner.run("first", &workflow, 500_u64).await?;
    /// assert_eq!(run.wait().await?, Status::Failed);
    ///
    /// is_open.store(true, Ordering::SeqCst);
    /// assert_eq!(run.retry().await?, Some(1)); // one piece of work
    /// assert_eq!(run.result::<u64>("pay").await?, 500);
    /// # runner.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Nothing failed, the run was cancelled, what came after it went on without it, or the store failed.
    pub async fn retry(&self) -> Result<Option<usize>, CommandError> {
        self.retry_works(None).await
    }

    /// Gives one piece of work that failed all its attempts again.
    ///
    /// # Errors
    /// It did not fail, what came after it went on without it, or the store failed.
    pub async fn retry_work(&self, work: RunnableId) -> Result<(), CommandError> {
        self.retry_works(Some(work)).await.map(|_| ())
    }

    async fn retry_works(&self, work: Option<RunnableId>) -> Result<Option<usize>, CommandError> {
        let mut retried = None;
        self.command(&Asked::Retry { work }, |active, by| {
            retried = active.retry(work, by);
            match retried {
                None => Taken::Not,
                Some(Retried::NoEffect { status, why }) => Taken::NoEffect { status, why },
                Some(Retried::Reopened(_) | Retried::Not(_) | Retried::NothingFailed) => Taken::Done,
            }
        })
        .await?;
        match retried {
            None | Some(Retried::NoEffect { .. }) => Ok(None),
            Some(Retried::Reopened(count)) => Ok(Some(count)),
            Some(Retried::Not(source)) => Err(CommandError::Retry { run: self.id.clone(), source }),
            Some(Retried::NothingFailed) => Err(CommandError::NothingFailed { run: self.id.clone() }),
        }
    }

    pub(super) async fn end_from_outside(
        &self,
        token: &Token,
        asked: &Asked,
        mut said: impl FnMut() -> Said,
    ) -> Result<(), CommandError> {
        let mut was_there = true;
        self.command(asked, |active, by| match active.end_from_outside(token, said(), by) {
            Some(is_there) => {
                was_there = is_there;
                Taken::Done
            }
            None => Taken::Not,
        })
        .await
        .map_err(|error| error.of_token(token))?;
        if was_there { Ok(()) } else { Err(CommandError::NotAwaited { token: token.to_string() }) }
    }

    /// Stops new work from starting. What is under way comes to its end.
    ///
    /// # Errors
    /// There is no such run, it does not go on anyway, or the store failed.
    pub async fn pause(&self) -> Result<CommandOutcome, CommandError> {
        self.command(&Asked::Pause, Active::pause).await
    }

    /// Goes on with a run that was paused, stopped or parked.
    ///
    /// # Errors
    /// There is no such run, nothing of it is left to do, or it cannot be driven here.
    pub async fn resume(&self) -> Result<CommandOutcome, CommandError> {
        self.command(&Asked::Resume, Active::resume).await
    }

    /// Lets go of the run: it is stored, no process drives it, and it can be resumed. Work that is under way is
    /// given up and offered again then.
    ///
    /// # Errors
    /// There is no such run, it does not go on anyway, or the store failed.
    pub async fn stop(&self) -> Result<CommandOutcome, CommandError> {
        self.command(&Asked::Stop, Active::stop).await
    }

    /// Gives the run a command, wherever it is driven. What has no effect as the run is stored is answered without
    /// loading it.
    async fn command(
        &self,
        asked: &Asked,
        mut act: impl FnMut(&Active, By) -> Taken,
    ) -> Result<CommandOutcome, CommandError> {
        loop {
            if asked.is_of_whole_run() && self.core.held(&self.id).is_none() {
                let record = self.core.commanded(&self.id).await?;
                if let Some(outcome) = self.core.answer_at_once(&record, asked.verb()).await? {
                    return Ok(outcome);
                }
            }
            let active = match self.core.open(&self.id, None, Wake::Keep).await {
                Ok(Opened::Here(active)) => active,
                Ok(Opened::Elsewhere) | Err(StartError::Unregistered { .. }) => {
                    return Ok(self.core.send(&self.id, asked).await?);
                }
                Err(StartError::NotFound { run }) => return Err(CommandError::NotFound { run }),
                Err(error) => return Err(error.into()),
            };
            let (ack, stored) = oneshot::channel();
            let outcome = match act(&active, By::Caller(ack)) {
                Taken::Not => {
                    // It was given back, and is loaded again.
                    self.core.until_gone(&active).await;
                    continue;
                }
                Taken::NoEffect { status, why } => {
                    let (run, command) = (self.id.clone(), asked.verb());
                    return Err(CommandError::NoEffect { run, command, status, why });
                }
                Taken::Done => CommandOutcome::Done,
                Taken::AlreadySo => CommandOutcome::AlreadySo,
            };
            match stored.await {
                // It went on, and that is what went wrong: how it is then is another matter.
                Ok(Err(Lost::Crashed(_))) if matches!(asked, Asked::Resume) => return Ok(outcome),
                Ok(Err(Lost::Crashed(_))) => self.core.until_gone(&active).await,
                // The command was given to a run that was to be created and existed: that one is asked next.
                Ok(Err(lost)) if lost.is_of_twin() => {}
                answer => return self.answered(answer).map(|()| outcome),
            }
        }
    }

    fn answered(
        &self,
        answer: Result<Result<(), Lost>, oneshot::error::RecvError>,
    ) -> Result<(), CommandError> {
        match answer {
            Ok(Ok(())) => Ok(()),
            Ok(Err(Lost::Exists | Lost::PerhapsOurs)) => Err(Refused::Exists { run: self.id.clone() }.into()),
            Ok(Err(Lost::NotAwaited(token))) => Err(CommandError::NotAwaited { token: token.to_string() }),
            Ok(Err(Lost::Lease(why))) => Err(CommandError::LeaseLost { run: self.id.clone(), why }),
            Ok(Err(Lost::Crashed(why) | Lost::Otherwise(why))) => Err(StoreError::Other(why.into()).into()),
            Err(_) => Err(StoreError::Closed.into()),
        }
    }
}
