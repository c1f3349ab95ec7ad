//! A run that this process can drive no longer: its lease is over, or it went wrong. What is stored stays as it is.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::life::Active;
use super::state::{By, Lost, Mode};
use crate::pool::{Place, panicked};

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
    pub(super) fn guarded(&self, deed: impl FnOnce()) {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(deed)) {
            self.crash(panicked(payload.as_ref()).message);
        }
    }
}
