//! What a handle asks of its run: pause, resume, stop, cancel, retry, and what somebody outside says. Where the run is
//! driven makes no difference.

use tidewheel_core::fact::RunnableId;
use tidewheel_core::work::Token;
use tidewheel_store::{Refused, Status, StoreError};
use tokio::sync::oneshot;

use super::active::{Active, By, Lost, Retried, Said};
use super::error::{CommandError, StartError};
use super::handle::RunHandle;
use super::keeper::Asked;
use super::load::{Opened, Wake};

impl RunHandle {
    /// Stores progress that need not survive a crash and was not stored yet.
    ///
    /// # Errors
    /// The store failed.
    pub async fn checkpoint(&self) -> Result<(), CommandError> {
        match self.core.held(&self.id) {
            // One that has left is stored.
            Some(active) => {
                let (ack, stored) = oneshot::channel();
                // One that is about to leave stores everything anyway.
                if active.checkpoint(By::Caller(ack)) { self.answered(stored.await) } else { Ok(()) }
            }
            None => Ok(()),
        }
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
    /// There is no such run, or the store failed.
    pub async fn cancel(&self) -> Result<(), CommandError> {
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
                true
            }
            None => false,
        })
        .await?;
        if was_there {
            Ok(())
        } else {
            Err(CommandError::NoWork { run: self.id.clone(), work: work.to_string() })
        }
    }

    /// Gives work that failed all its attempts again, and what comes after it another chance; returns how many pieces.
    /// Where another process drives the run, it is asked, and nobody knows yet.
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
    /// What came after it went on without it, or the store failed.
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
            retried.is_some()
        })
        .await?;
        match retried {
            None => Ok(None),
            Some(Retried::Reopened(count)) => Ok(Some(count)),
            Some(Retried::Not(source)) => Err(CommandError::Retry { run: self.id.clone(), source }),
            Some(Retried::Cancelled) => Err(CommandError::Cancelled { run: self.id.clone() }),
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
                true
            }
            None => false,
        })
        .await?;
        if was_there { Ok(()) } else { Err(CommandError::NotAwaited { token: token.to_string() }) }
    }

    /// Stops new work from starting. What is under way comes to its end.
    ///
    /// # Errors
    /// There is no such run, or the store failed.
    pub async fn pause(&self) -> Result<(), CommandError> {
        self.command(&Asked::Pause, Active::pause).await
    }

    /// Goes on with a run that was paused, stopped or parked.
    ///
    /// # Errors
    /// There is no such run, or it cannot be driven here.
    pub async fn resume(&self) -> Result<(), CommandError> {
        loop {
            match self.core.open(&self.id, None, Wake::Keep).await {
                Ok(Opened::Here(active)) => {
                    let (ack, stored) = oneshot::channel();
                    if !active.resume(By::Caller(ack)) {
                        self.core.until_gone(&active).await;
                        continue;
                    }
                    return match stored.await {
                        Ok(Err(lost)) if lost.is_of_twin() => continue,
                        // It went on, and that is what went wrong: how it is then is another matter.
                        Ok(Err(Lost::Crashed(_))) => Ok(()),
                        answer => self.answered(answer),
                    };
                }
                Ok(Opened::Elsewhere) => return self.send(&Asked::Resume).await,
                Err(StartError::NotFound { run }) => return Err(CommandError::NotFound { run }),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Lets go of the run: it is stored, nobody drives it, and it can be resumed. Work that is under way is
    /// given up and offered again then.
    ///
    /// # Errors
    /// The store failed.
    pub async fn stop(&self) -> Result<(), CommandError> {
        self.command(&Asked::Stop, |active, by| active.leave(Some(Status::Stopped), by)).await
    }

    async fn command(
        &self,
        asked: &Asked,
        mut act: impl FnMut(&Active, By) -> bool,
    ) -> Result<(), CommandError> {
        loop {
            match self.core.open(&self.id, None, Wake::Keep).await {
                Ok(Opened::Here(active)) => match self.ask(|by| act(&active, by)).await {
                    Some(answer) => return answer,
                    // It was given back, and is loaded again.
                    None => self.core.until_gone(&active).await,
                },
                Ok(Opened::Elsewhere) | Err(StartError::Unregistered { .. }) => {
                    return self.send(asked).await;
                }
                Err(StartError::NotFound { run }) => return Err(CommandError::NotFound { run }),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Asks something and waits until it is stored; `None` if the run is about to leave and did not take it, went
    /// wrong before it was stored, or was one that somebody began to create while it existed.
    async fn ask(&self, act: impl FnOnce(By) -> bool) -> Option<Result<(), CommandError>> {
        let (ack, stored) = oneshot::channel();
        if !act(By::Caller(ack)) {
            return None;
        }
        match stored.await {
            Ok(Err(Lost::Crashed(_))) => None,
            Ok(Err(lost)) if lost.is_of_twin() => None,
            answer => Some(self.answered(answer)),
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
            Ok(Err(Lost::Crashed(why) | Lost::Otherwise(why))) => Err(StoreError::Other(why.into()).into()),
            Err(_) => Err(StoreError::Closed.into()),
        }
    }

    async fn send(&self, asked: &Asked) -> Result<(), CommandError> {
        match self.core.store().send(asked.command(&self.id)).await? {
            Ok(_) => Ok(()),
            Err(Refused::NotFound { run }) => Err(CommandError::NotFound { run }),
            Err(refused) => Err(refused.into()),
        }
    }
}
