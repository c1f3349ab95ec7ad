//! What a runner is told by somebody outside who has a piece of its work: the result, the failure, or that it is alive.
//! Whose process drives the run makes no difference.

use serde_json::value::to_raw_value;
use tidewheel_core::fact::{Payload, Value};
use tidewheel_core::policy::Failure;
use tidewheel_core::work::Token;

use super::active::Said;
use super::error::{CommandError, StartError};
use super::keeper::Asked;
use super::service::Runner;

impl Runner {
    /// Ends a piece of work from outside: this is its result. The work was given the token with
    /// [`Context::token`](tidewheel_core::work::Context::token); whoever has it may be another process.
    ///
    /// ```
    /// # mod tidewheel { pub use tidewheel_core::*; pub use tidewheel_runner::*; pub use tidewheel_store as store; }
    /// use std::time::Duration;
    /// use tidewheel::policy::{ExecutionMode, Policy, name};
    /// use tidewheel::store::Status;
    /// use tidewheel::work::{Context, Token};
    /// use tidewheel::workflow::{Workflow, step};
    /// use tidewheel::{Runner, RunnerOptions};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (hand_out, mut tokens) = tokio::sync::mpsc::unbounded_channel::<Token>();
    /// let workflow = Workflow::new("letters")
    ///     .add(step("translate", move |context: Context, text: String| {
    ///         drop(hand_out.send(context.token())); // to a person, or to another machine
    ///         text
    ///     }))
    ///     .policy(name("translate"), Policy::new().execution_mode(ExecutionMode::External))
    ///     .build()?;
    /// let runner = Runner::in_memory(RunnerOptions::new()).await?;
    /// let run = runner.run("first", &workflow, "Moin".to_owned()).await?;
    /// let token = tokens.recv().await.expect("the work hands it out");
    /// while run.status().await? != Status::Waiting {
    ///     tokio::time::sleep(Duration::from_millis(1)).await; // until the function has returned, and that is stored
    /// }
    /// runner.complete(&token, "Hello".to_owned()).await?;
    /// assert_eq!(run.result::<String>("translate").await?, "Hello");
    /// # runner.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// No work waits for it, or the store failed. Where no process that knows the workflow drives the run, the result is
    /// stored until one does.
    pub async fn complete<T: Payload>(&self, token: &Token, value: T) -> Result<(), CommandError> {
        let value = Value::new(value);
        let text = value.to_text().map_err(CommandError::Unserialisable)?;
        let asked = Asked::Complete { token: token.to_string(), value: text };
        self.end_outside(token, &asked, || Said::Completed(value.clone())).await
    }

    /// Ends an attempt at a piece of work from outside: it failed. Its policy says what follows.
    ///
    /// # Errors
    /// No work waits for it, or the store failed.
    pub async fn fail(&self, token: &Token, failure: Failure) -> Result<(), CommandError> {
        let text = to_raw_value(&failure).expect("invariant: a failure has no key that is not a string");
        let asked = Asked::Fail { token: token.to_string(), failure: text };
        self.end_outside(token, &asked, || Said::Failed(failure.clone())).await
    }

    /// Says that a piece of work that somebody outside has is alive.
    ///
    /// # Errors
    /// No work waits for it, or the store failed.
    pub async fn heartbeat(&self, token: &Token) -> Result<(), CommandError> {
        let asked = Asked::Heartbeat { token: token.to_string() };
        self.end_outside(token, &asked, || Said::Alive).await
    }

    async fn end_outside(
        &self,
        token: &Token,
        asked: &Asked,
        said: impl FnMut() -> Said,
    ) -> Result<(), CommandError> {
        match self.get(token.run.clone()).await {
            Ok(run) => run.end_from_outside(token, asked, said).await,
            // Whoever drives it knows its workflow.
            Err(StartError::Unregistered { run, .. }) => {
                let sent = self.0.core.send(&run, asked).await;
                sent.map(drop).map_err(|error| CommandError::from(error).of_token(token))
            }
            Err(StartError::NotFound { run }) => Err(CommandError::NotFound { run }),
            Err(error) => Err(error.into()),
        }
    }
}
