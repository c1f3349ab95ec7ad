//! What may be asked of runs from outside, each with what is refused at once because it would change nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::value::{RawValue, to_raw_value};
use tidewheel_core::command::{Effect, RunCommand};
use tidewheel_core::fact::{RunId, RunnableId};
use tidewheel_core::policy::Failure;
use tidewheel_core::view::{Story, WorkLine, WorkState};
use tidewheel_core::work::Token;
use tidewheel_store::{Command, Refused, Status, Store, StoreError};

use super::error::AskError;
use super::sent::Sent;
use crate::runner::definition::Definition;
use crate::runner::keeper::Asked;
use crate::runner::keys;

/// Asks things of runs and tells their stories, without driving any and without knowing their definitions.
///
/// ```
/// # mod tidewheel { pub use tidewheel_core::*; pub use tidewheel_runner::*; pub use tidewheel_store as store; }
/// use std::sync::Arc;
/// use tidewheel::workflow::{Workflow, step};
/// use tidewheel::{Control, Runner, RunnerOptions};
/// use tidewheel::store::{Memory, RealClock, Status, Store};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store: Arc<dyn Store> = Arc::new(Memory::new(Arc::new(RealClock::new())));
/// let runner = Runner::with_store(Arc::clone(&store), RunnerOptions::new()).await?;
/// let workflow = Workflow::new("numbers").add(step("inc", |x: i64| x + 1)).build()?;
/// let run = runner.start("first", &workflow).await?;
///
/// let control = Control::new(store);
/// let sent = control.pause(run.id()).await?;
/// control.until_handled(&sent).await?;
/// assert_eq!(run.status().await?, Status::Paused);
/// # runner.shutdown().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Control {
    pub(super) store: Arc<dyn Store>,
}

impl Control {
    /// Returns a control over the runs of a store.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// Tells the story of a run from what is stored, with times and with the identities of its work.
    ///
    /// # Errors
    /// There is no such run, or what is stored of it cannot be read.
    pub async fn story(&self, run: &RunId) -> Result<Story, AskError> {
        let unreadable = |source: Box<dyn std::error::Error + Send + Sync>| AskError::Unreadable {
            run: run.clone(),
            source,
        };
        let nodes = self.definition(run).await?.signature.nodes;
        let mut story = Story::of_run(run.clone(), nodes);
        for batch in self.store.read(run, 0).await? {
            let lines = batch.events.events().map_err(|error| unreadable(error.into()))?;
            for line in lines {
                story.add(line, Some(batch.at)).map_err(|error| unreadable(error.into()))?;
            }
        }
        Ok(story)
    }

    /// Returns the names of the components that a run was created with.
    ///
    /// # Errors
    /// There is no such run, or what is stored of it cannot be read.
    pub async fn components(&self, run: &RunId) -> Result<Vec<String>, AskError> {
        Ok(self.definition(run).await?.signature.nodes.into_keys().collect())
    }

    /// Asks to end all work of a run that is not over.
    ///
    /// # Errors
    /// There is no such run, nothing of it is left to do, or the store failed. To cancel a run that is cancelled is no
    /// error: nothing is written, and [`Sent::id`] says so.
    pub async fn cancel(&self, run: &RunId) -> Result<Sent, AskError> {
        self.ask(run, &Asked::Cancel, None).await
    }

    /// Asks to end one piece of work that is not over.
    ///
    /// # Errors
    /// There is no such run or no such work, it is over, or the store failed.
    pub async fn cancel_work(&self, run: &RunId, work: RunnableId) -> Result<Sent, AskError> {
        self.cancel_works(run, &[work]).await?.swap_remove(0)
    }

    /// Asks to end several pieces of work that are not over, each as [`cancel_work`](Self::cancel_work) does;
    /// the answers come in the same order.
    ///
    /// # Errors
    /// There is no such run, or what is stored of it cannot be read.
    pub async fn cancel_works(
        &self,
        run: &RunId,
        works: &[RunnableId],
    ) -> Result<Vec<Result<Sent, AskError>>, AskError> {
        let cannot = |_: &Story, line: &WorkLine| {
            line.state.is_over().then_some("nothing is left of it that could be cancelled")
        };
        self.ask_each(run, works, cannot, |work| Asked::CancelWork { work }).await
    }

    /// Asks to let no new work start. What is under way comes to its end.
    ///
    /// # Errors
    /// There is no such run, it does not go on anyway, or the store failed.
    pub async fn pause(&self, run: &RunId) -> Result<Sent, AskError> {
        self.ask(run, &Asked::Pause, None).await
    }

    /// Asks to go on with a run that was paused, stopped or parked.
    ///
    /// # Errors
    /// There is no such run, nothing holds it, or the store failed.
    pub async fn resume(&self, run: &RunId) -> Result<Sent, AskError> {
        self.ask(run, &Asked::Resume, None).await
    }

    /// Asks to let go of a run: nobody drives it then, and it can be resumed.
    ///
    /// # Errors
    /// There is no such run, it does not go on anyway, or the store failed.
    pub async fn stop(&self, run: &RunId) -> Result<Sent, AskError> {
        self.ask(run, &Asked::Stop, None).await
    }

    /// Gives one component of a run a value.
    ///
    /// # Errors
    /// There is no such run or no such component, the run was cancelled, or the store failed.
    pub async fn signal(&self, run: &RunId, component: &str, value: Box<RawValue>) -> Result<Sent, AskError> {
        let known = self.components(run).await?;
        if !known.iter().any(|name| name == component) {
            return Err(AskError::NoComponent { run: run.clone(), component: component.to_owned(), known });
        }
        let asked = Asked::Signal { component: component.to_owned(), value };
        self.ask(run, &asked, None).await
    }

    /// Asks to try failed work again, with all the attempts that its policy allows: one piece, or all of the run.
    ///
    /// # Errors
    /// There is no such run or no such work, it did not fail, or the store failed.
    pub async fn retry(&self, run: &RunId, work: Option<RunnableId>) -> Result<Sent, AskError> {
        if let Some(work) = work {
            return self.retry_works(run, &[work]).await?.swap_remove(0);
        }
        let why = no_retry_of_any(&self.story(run).await?);
        self.ask(run, &Asked::Retry { work: None }, why).await
    }

    /// Asks to try several pieces of work again that failed, each as [`retry`](Self::retry) does; the answers
    /// come in the same order.
    ///
    /// # Errors
    /// There is no such run, or what is stored of it cannot be read.
    pub async fn retry_works(
        &self,
        run: &RunId,
        works: &[RunnableId],
    ) -> Result<Vec<Result<Sent, AskError>>, AskError> {
        self.ask_each(run, works, Story::no_retry, |work| Asked::Retry { work: Some(work) }).await
    }

    /// Gives the result of work that is done elsewhere.
    ///
    /// # Errors
    /// The token is none, or of work that is over; or the store failed.
    pub async fn complete(&self, token: &str, value: &RawValue) -> Result<Sent, AskError> {
        let run = self.awaited(token).await?;
        let asked = Asked::Complete { token: token.to_owned(), value: value.to_owned() };
        self.ask(&run, &asked, None).await
    }

    /// Says that work that is done elsewhere failed.
    ///
    /// # Errors
    /// The token is none, or of work that is over; or the store failed.
    pub async fn fail(&self, token: &str, failure: &Failure) -> Result<Sent, AskError> {
        let run = self.awaited(token).await?;
        let failure = to_raw_value(failure).expect("invariant: a failure has no key that is not a string");
        let asked = Asked::Fail { token: token.to_owned(), failure };
        self.ask(&run, &asked, None).await
    }

    /// Says that work that is done elsewhere is still being done.
    ///
    /// # Errors
    /// The token is none, or of work that is over; or the store failed.
    pub async fn heartbeat(&self, token: &str) -> Result<Sent, AskError> {
        let run = self.awaited(token).await?;
        let asked = Asked::Heartbeat { token: token.to_owned() };
        self.ask(&run, &asked, None).await
    }

    /// Removes results that were kept for work with the same `idempotency_key`, where the run that gave them is gone.
    /// Returns how many.
    ///
    /// # Errors
    /// The store failed.
    pub async fn forget_keys(&self) -> Result<usize, StoreError> {
        keys::forget_gone(self.store.as_ref()).await
    }

    /// Asks the same of several pieces of work. What is stored of the run is read once for all of them.
    async fn ask_each(
        &self,
        run: &RunId,
        works: &[RunnableId],
        cannot: impl Fn(&Story, &WorkLine) -> Option<&'static str>,
        asked: impl Fn(RunnableId) -> Asked,
    ) -> Result<Vec<Result<Sent, AskError>>, AskError> {
        let story = self.story(run).await?;
        let lines: BTreeMap<_, _> = story.works.iter().filter_map(|line| Some((line.id?, line))).collect();
        let mut answers = Vec::with_capacity(works.len());
        for work in works {
            answers.push(match lines.get(work).map(|line| (line, cannot(&story, line))) {
                None => Err(AskError::NoWork { run: run.clone(), work: *work }),
                Some((line, Some(why))) => Err(AskError::work(run, line, why)),
                Some((_, None)) => self.ask(run, &asked(*work), None).await,
            });
        }
        Ok(answers)
    }

    /// Writes the row, unless the table of commands by status says that it would change nothing, or there is another
    /// reason. What was asked before and is not handled yet is counted as if it were.
    async fn ask(&self, run: &RunId, asked: &Asked, why: Option<&'static str>) -> Result<Sent, AskError> {
        let record = self.store.find(run).await?.ok_or_else(|| AskError::not_found(run))?;
        let status = record.status;
        let effect = match asked.verb().effect_on_run(status) {
            // One piece of work that is not over is no run that is cancelled.
            Effect::AlreadySo if !asked.is_of_whole_run() => Effect::Acts,
            Effect::Acts => why.map_or(Effect::Acts, Effect::Refused),
            effect => effect,
        };
        let waiting = self.store.commands_of(run).await?;
        if waiting.is_empty() {
            match effect {
                Effect::Refused(why) => return Err(AskError::Idle { run: run.clone(), status, why }),
                Effect::AlreadySo => return Ok(Sent { id: None, record }),
                Effect::Acts => {}
            }
        } else if let Some(why) = refused_behind(&waiting, status, asked) {
            return Err(AskError::Idle { run: run.clone(), status, why });
        }
        match self.store.send(asked.command(run)).await? {
            Ok(id) => Ok(Sent { id: Some(id), record }),
            Err(Refused::NotFound { run }) => Err(AskError::NotFound { run }),
            Err(refused) => Err(refused.into()),
        }
    }

    async fn definition(&self, run: &RunId) -> Result<Definition, AskError> {
        let text = self.store.definition(run).await?.ok_or_else(|| AskError::not_found(run))?;
        Definition::read(run, &text)
            .map_err(|error| AskError::Unreadable { run: run.clone(), source: error.into() })
    }

    async fn work(&self, run: &RunId, work: RunnableId) -> Result<WorkLine, AskError> {
        let lines = self.story(run).await?.works;
        let line = lines.into_iter().find(|line| line.id == Some(work));
        line.ok_or_else(|| AskError::NoWork { run: run.clone(), work })
    }

    /// Returns the run of a token for which somebody waits.
    async fn awaited(&self, token: &str) -> Result<RunId, AskError> {
        let token: Token = token.parse()?;
        let line = self.work(&token.run, token.work).await?;
        // One that is under way may wait for it in a moment; one that failed never does again.
        let is_last = line.attempts.last().is_some_and(|attempt| {
            attempt.number == token.attempt && attempt.round == token.round && attempt.failure.is_none()
        });
        if is_last && !line.state.is_over() {
            return Ok(token.run);
        }
        Err(AskError::work(&token.run, &line, "nobody waits for this attempt any more"))
    }
}

impl std::fmt::Debug for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Control").finish_non_exhaustive()
    }
}

/// Returns why a command has no effect behind those that wait to be handled.
fn refused_behind(waiting: &[Command], status: Status, asked: &Asked) -> Option<&'static str> {
    let then = waiting.iter().fold(status, |status, command| status_behind(status, &command.kind));
    match (asked.verb().effect_on_run(then), then) {
        (Effect::Acts | Effect::AlreadySo, _) => None,
        (Effect::Refused(_), Status::Cancelled) => Some("a command that was sent before cancels it"),
        (Effect::Refused(_), Status::Stopped) => Some("a command that was sent before stops it"),
        (Effect::Refused(why), _) => Some(why),
    }
}

/// Returns how a run is after a command of that kind, as far as the command alone says so.
fn status_behind(status: Status, kind: &str) -> Status {
    // The end of one piece of work, or what an older release does not know, says nothing of the run.
    let Some(command) = RunCommand::from_name(kind) else { return status };
    if command.effect_on_run(status) != Effect::Acts {
        return status;
    }
    match command {
        RunCommand::Cancel => Status::Cancelled,
        RunCommand::Pause => Status::Paused,
        RunCommand::Stop => Status::Stopped,
        RunCommand::Resume | RunCommand::Retry => Status::Running,
        RunCommand::Input | RunCommand::Signal if status != Status::Paused => Status::Running,
        RunCommand::Input
        | RunCommand::Signal
        | RunCommand::Checkpoint
        | RunCommand::Complete
        | RunCommand::Fail
        | RunCommand::Heartbeat => status,
    }
}

/// Returns why nothing of a run can be tried again; `None` if something can.
fn no_retry_of_any(story: &Story) -> Option<&'static str> {
    let whys: Vec<_> = story.works.iter().map(|work| (work, story.no_retry(work))).collect();
    if whys.iter().any(|(_, why)| why.is_none()) {
        return None;
    }
    let failed = whys.iter().find(|(work, _)| matches!(work.state, WorkState::Failed | WorkState::Skipped));
    Some(if failed.is_some() {
        "what failed was undone with its input"
    } else {
        "only work that failed can be tried again"
    })
}
