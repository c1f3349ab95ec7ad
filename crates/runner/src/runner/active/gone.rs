//! A run that this process can drive no longer: its lease is over, or it went wrong. What is stored stays as it is.

use tidewheel_core::work::{CaughtFuture, call_user};
use tidewheel_store::Status;

use super::life::Active;
use super::state::{By, Lost, Mode};
use crate::pool::Place;

impl Active {
    /// The run can no longer be written by this process.
    pub(in crate::runner) fn lose(&self, why: &Lost) {
        let mut state = self.lock();
        state.mode = Mode::Gone { status: None, why: why.to_string() };
        let flight = state.in_flight.take();
        let fresh = std::mem::take(&mut state.fresh);
        let out = std::mem::take(&mut state.out);
        let places: Vec<Place> = out.keys().copied().collect();
        state.waiters.clear();
        state.asking.clear();
        let again = std::mem::take(&mut state.again);
        let early = std::mem::take(&mut state.early);
        drop(state);
        self.core.pool().take_back(self.group, &places);
        drop((again, out));
        self.leave_lines();
        let early = early.into_values().filter_map(|early| match early.by {
            By::Caller(ack) => Some(ack),
            By::Command(_) => None,
        });
        let acks = flight.into_iter().flat_map(|flight| flight.acks).chain(fresh.acks).chain(early);
        for ack in acks {
            drop(ack.send(Err(why.clone())));
        }
        self.core.forget(self);
    }

    /// Returns whether nothing is left to do in the run for good, as far as this process knows.
    pub(in crate::runner) fn is_over(&self) -> bool {
        let state = self.lock();
        let is_cancelled = matches!(state.mode, Mode::Gone { status: Some(Status::Cancelled), .. });
        is_cancelled || !state.run.is_runnable() && state.run.inputs_len() > 0
    }

    /// The store says that the lease of this process is over. The others of its runs will learn it, too.
    pub(in crate::runner) fn lose_late(&self, why: &Lost) {
        self.lose(why);
        self.core.late.notify_one();
    }

    /// The run went wrong in a way that is not the failure of its work. It is taken up again from what is stored.
    pub(in crate::runner) fn crash(&self, why: String) {
        let mut state = self.lock();
        if matches!(state.mode, Mode::Gone { .. }) && !std::mem::take(&mut state.is_broken) {
            return;
        }
        drop(state);
        let is_stored = self.fence().is_some();
        self.lose(&Lost::Crashed(why.clone()));
        if is_stored {
            self.core.crashed(&self.id, why);
        }
    }

    /// Keeps a panic, of ours or of a value that cannot be written, from taking anything else down: the run is
    /// taken up again from what is stored.
    pub(in crate::runner) fn guarded(&self, deed: impl FnOnce()) {
        if let Err(panic) = call_user(deed) {
            self.crash(panic.message);
        }
    }

    /// Lets something happen for the run beside all else. A panic in it is as in [`Active::guarded`].
    pub(super) fn spawn_guarded(&self, task: impl Future<Output = ()> + Send + 'static) {
        let this = self.strong();
        self.core.spawn(async move {
            if let Err(panic) = CaughtFuture::new(Box::pin(task)).await {
                this.crash(panic.message);
            }
        });
    }
}
