//! Why something was not asked of a run.

use tidewheel_core::fact::{RunId, RunnableId};
use tidewheel_core::view::WorkLine;
use tidewheel_core::work::TokenError;
use tidewheel_store::{Refused, Status, StoreError};

/// Why something was not asked. Nothing was written.
///
/// ```
/// # mod tidewheel { pub use tidewheel_runner::*; pub use tidewheel_store as store; }
/// use std::sync::Arc;
/// use tidewheel::{AskError, Control};
/// use tidewheel::store::{Memory, RealClock};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let control = Control::new(Arc::new(Memory::new(Arc::new(RealClock::new()))));
/// match control.cancel(&"nobody".into()).await {
///     Err(AskError::NotFound { run }) => assert_eq!(run.as_str(), "nobody"),
///     other => panic!("{other:?}"),
/// }
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// There is no such run.
    #[error("there is no run `{run}`")]
    NotFound {
        /// The run.
        run: RunId,
    },
    /// It would change nothing, as the run is.
    #[error("run `{run}` is {status}: {why}")]
    Idle {
        /// The run.
        run: RunId,
        /// How it is.
        status: Status,
        /// Why it would change nothing.
        why: &'static str,
    },
    /// The run has no such component.
    #[error("run `{run}` has no component `{component}`")]
    NoComponent {
        /// The run.
        run: RunId,
        /// The component.
        component: String,
        /// Those that it has.
        known: Vec<String>,
    },
    /// The run has no such piece of work.
    #[error("run `{run}` has no work `{work}`")]
    NoWork {
        /// The run.
        run: RunId,
        /// The piece of work.
        work: RunnableId,
    },
    /// The piece of work is in no state for this.
    #[error("`{node}` of run `{run}` is {state}: {why}")]
    Work {
        /// The run.
        run: RunId,
        /// Its component.
        node: String,
        /// How it is.
        state: &'static str,
        /// Why it would change nothing.
        why: &'static str,
    },
    /// The text is no token of an attempt.
    #[error(transparent)]
    Token(#[from] TokenError),
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
}

impl AskError {
    /// There is no such run.
    pub(super) fn not_found(run: &RunId) -> Self {
        Self::NotFound { run: run.clone() }
    }

    /// The piece of work is in no state for it.
    pub(super) fn work(run: &RunId, line: &WorkLine, why: &'static str) -> Self {
        Self::Work { run: run.clone(), node: line.node.clone(), state: line.state.name(), why }
    }
}
