//! Work that got lost with its process before: it is noted while it is executed, so that another process knows what the
//! end of this one can be blamed on, and what got lost twice is executed one piece at a time. Other work costs nothing.

use std::sync::Arc;

use tidewheel_core::Runnable;
use tidewheel_store::Store;
use tokio::sync::OwnedSemaphorePermit;

use super::life::{Active, Right};
use super::state::State;
use crate::pool::{Job, Place};

/// An attempt that was handed out as often is noted while it is executed: it got lost before.
pub(super) const NOTED_FROM: u32 = 2;
/// An attempt that was handed out as often goes alone among its like: it was under way when a process died.
const ALONE_FROM: u32 = 3;

/// Work that got lost with a process before.
pub(super) struct Suspect {
    note: Arc<Note>,
    dispatches: u32,
    /// While it has this, no other goes alone.
    alone: Option<OwnedSemaphorePermit>,
}

/// What is noted of work while it is executed.
pub(super) struct Note {
    key: i64,
    work: String,
}

impl Note {
    pub(super) fn begins(&self, store: &dyn Store) {
        store.note_execution(self.key, &self.work);
    }
}

impl Suspect {
    /// Returns what is to be done about an attempt that got lost before; `None` for nearly all.
    pub(super) fn of(state: &State, runnable: &Runnable) -> Option<Box<Self>> {
        if !state.has_lost {
            return None;
        }
        let Right::Held(lease) = &state.right else { return None };
        let dispatches = state.run.dispatches(&runnable.ticket());
        (dispatches >= NOTED_FROM).then(|| {
            let note = Arc::new(Note { key: lease.key, work: runnable.id().to_string() });
            Box::new(Self { note, dispatches, alone: None })
        })
    }

    /// Returns whether it is executed one at a time with its like.
    pub(super) const fn goes_alone(&self) -> bool {
        self.dispatches >= ALONE_FROM
    }

    pub(super) fn note(&self) -> Arc<Note> {
        Arc::clone(&self.note)
    }

    /// Takes back what was noted: it ended, or is given up in order.
    pub(super) fn ends(&self, store: &dyn Store) {
        store.forget_execution(self.note.key, &self.note.work);
    }
}

impl Active {
    /// Hands work in that goes alone, when no other does.
    pub(super) fn hand_in_alone(&self, job: Job) {
        let this = self.strong();
        self.core.spawn(async move {
            let Ok(alone) = this.core.quarantine().acquire_owned().await else { return };
            if this.goes_alone(job.place, alone) {
                this.core.pool().submit([job]);
            }
        });
    }

    /// Gives a piece what it waited for, and returns whether it still wants it.
    fn goes_alone(&self, place: Place, alone: OwnedSemaphorePermit) -> bool {
        let mut state = self.lock();
        let suspect = state.out.get_mut(&place).and_then(|out| out.suspect.as_mut());
        suspect.is_some_and(|suspect| suspect.alone.replace(alone).is_none())
    }
}
