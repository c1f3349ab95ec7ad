//! What was asked of a run, and whether it is done. It asks nothing itself.

use std::time::Duration;

use tidewheel_store::{CommandId, RunRecord, StoreError};

use super::ask::Control;
use super::error::AskError;
use crate::runner::handle::LOOK_AGAIN;

/// Something that was asked of a run.
///
/// ```
/// # mod tidewheel { pub use tidewheel_core::*; pub use tidewheel_runner::*; pub use tidewheel_store as store; }
/// use std::sync::Arc;
/// use tidewheel::workflow::{Workflow, step};
/// use tidewheel::{Control, Runner, RunnerOptions, Sent};
/// use tidewheel::store::{Memory, RealClock, Status, Store};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let store: Arc<dyn Store> = Arc::new(Memory::new(Arc::new(RealClock::new())));
/// # let runner = Runner::with_store(Arc::clone(&store), RunnerOptions::new()).await?;
/// # let workflow = Workflow::new("numbers").add(step("inc", |x: i64| x + 1)).build()?;
/// # let run = runner.start("first", &workflow).await?;
/// let control = Control::new(store);
/// let sent: Sent = control.stop(run.id()).await?;
/// assert_ne!(sent.record.status, Status::Stopped); // as it was before
/// control.until_handled(&sent).await?;
/// assert_eq!(control.refusal(&sent).await?, None);
/// # runner.shutdown().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Sent {
    /// Its number; `None` if what it asks for is so already, and nothing was written.
    pub id: Option<CommandId>,
    /// The run as it was before.
    pub record: RunRecord,
}

impl Control {
    /// Returns whether what was asked is done, or was put away because it could not be.
    ///
    /// # Errors
    /// The store failed.
    pub async fn is_handled(&self, sent: &Sent) -> Result<bool, StoreError> {
        let Some(id) = sent.id else { return Ok(true) };
        let open = self.store.commands_of(&sent.record.id).await?;
        Ok(open.iter().all(|command| command.id != id))
    }

    /// Returns why something that was asked was not done; `None` if it was done, or is not handled yet.
    ///
    /// # Errors
    /// The run is gone, or cannot be read.
    pub async fn refusal(&self, sent: &Sent) -> Result<Option<String>, AskError> {
        let Some(id) = sent.id else { return Ok(None) };
        let mut story = self.story(&sent.record.id).await?;
        Ok(story.refused.remove(&id.0))
    }

    /// Waits until what was asked is done, or was put away because it could not be. If nobody takes the run up,
    /// that is for ever.
    ///
    /// # Errors
    /// The store failed.
    pub async fn until_handled(&self, sent: &Sent) -> Result<(), StoreError> {
        while !self.is_handled(sent).await? {
            tokio::time::sleep(Duration::from_millis(LOOK_AGAIN.as_millis())).await;
        }
        Ok(())
    }
}
