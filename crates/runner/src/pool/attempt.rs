//! A piece that has a slot, and how it is done in a task. It knows nothing of other pieces.

use std::sync::Arc;

use tidewheel_core::policy::Failure;
use tidewheel_core::time::Timestamp;
use tidewheel_core::{Executed, Outcome, Runnable};
use tidewheel_store::Clock;
use tracing::Instrument;

use super::failure::TASK;
use super::job::{Place, Sink, Terms};
use crate::bounds::{Bounds, within};
use crate::supervise::Supervisor;
use crate::telemetry::{self, Execution};

/// A piece that has a slot.
pub(super) struct Attempt {
    pub(super) begun: Begun,
    pub(super) runnable: Runnable,
    pub(super) handed_in: Option<Timestamp>,
    pub(super) terms: Option<Box<Terms>>,
    /// Who wants to know that it begins.
    pub(super) told: Option<Arc<dyn Sink>>,
}

/// One beginning of a piece. A place is used again by the next attempt, so it alone does not say whose result
/// this is.
#[derive(Clone, Copy)]
pub(super) struct Begun {
    pub(super) place: Place,
    pub(super) begun: u64,
}

impl Attempt {
    /// Says that it begins, to whoever wants to know.
    pub(super) fn tell_beginning(&mut self, supervisor: &Supervisor) {
        if let Some(sink) = self.told.take() {
            // Whatever goes wrong there, the piece has to begin.
            let place = self.begun.place;
            supervisor.call(TASK, || sink.began(place));
        }
    }

    /// Returns what bounds it when it begins now. Where nothing does, nobody asks what time it is.
    ///
    /// # Errors
    /// It is too late for it.
    pub(super) fn bounds(&self, now: impl FnOnce() -> Timestamp) -> Result<Option<Bounds>, Failure> {
        let Some(terms) = self.terms.as_ref().filter(|terms| terms.is_bounded()) else { return Ok(None) };
        Bounds::begun_at(now(), terms.until, terms.silence, terms.ear.clone()).map(Some)
    }

    pub(super) fn is_bounded(&self) -> bool {
        self.terms.as_ref().is_some_and(|terms| terms.is_bounded())
    }

    /// Does the work in a task, as long as its bounds allow.
    pub(super) async fn in_task(self, followed: Option<Execution>, clock: Arc<dyn Clock>) -> Outcome {
        let (bounds, followed) = match self.bounds(|| clock.now()) {
            Ok(None) => (None, followed),
            Ok(Some(bounds)) => {
                (Some(bounds), Execution::begin_bounded(&self.runnable, self.runnable.policy()))
            }
            Err(late) => {
                telemetry::timeout(&self.runnable, self.runnable.policy(), &late);
                return Outcome::Failed(late);
            }
        };
        let work = self.runnable.execute_async().instrument(Execution::span(followed.as_ref()));
        let executed = match bounds {
            None => Ok(work.await),
            Some(bounds) => within(work, &bounds, clock.as_ref()).await,
        };
        if let (Err(failure), Some(execution)) = (&executed, &followed) {
            execution.give_up(failure);
        }
        let outcome = executed.map_or_else(Outcome::Failed, Executed::into_outcome);
        if let Some(execution) = followed {
            execution.stop(&outcome);
        }
        outcome
    }
}
