//! Slots that pieces lend out while they wait for another run: what the other run needs a slot for can begin, and who
//! lent one gets one back before new work begins. A piece on a thread cannot lend its thread, and is refused.

use std::cell::Cell;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::attempt::Begun;
use super::slots::Pool;

tokio::task_local! {
    /// The slot of the piece that this task does.
    pub(super) static SLOT: Slot;
}

thread_local! {
    static IS_BLOCKING: Cell<bool> = const { Cell::new(false) };
}

/// The slot of a piece in a task.
#[derive(Clone)]
pub(super) struct Slot {
    pub(super) pool: Arc<Pool>,
    pub(super) begun: Begun,
}

/// A piece on a thread would wait for work that may need its slot.
#[derive(Debug)]
pub(crate) struct WouldBlock;

/// Marks a thread as one that runs a piece which cannot give its slot back.
pub(super) struct Blocking(bool);

impl Blocking {
    pub(super) fn begin() -> Self {
        Self(IS_BLOCKING.replace(true))
    }
}

impl Drop for Blocking {
    fn drop(&mut self) {
        IS_BLOCKING.set(self.0);
    }
}

/// The slot of the piece that waits here, while it is lent out. Outside of a piece there is none to lend.
#[derive(Default)]
pub(crate) struct SlotLoan(Option<Slot>);

impl SlotLoan {
    /// Lends the slot out, if it is not. Returns whether it was lent now.
    ///
    /// # Errors
    /// The piece runs on a thread.
    pub(crate) fn begin(&mut self) -> Result<bool, WouldBlock> {
        if self.0.is_some() {
            return Ok(false);
        }
        if IS_BLOCKING.get() {
            return Err(WouldBlock);
        }
        let Ok(slot) = SLOT.try_with(Clone::clone) else { return Ok(false) };
        slot.pool.lend(slot.begun);
        self.0 = Some(slot);
        Ok(true)
    }

    /// Waits until the piece has a slot again.
    pub(crate) async fn end(mut self) {
        let wanted = self.0.take().and_then(|slot| slot.pool.want_back(slot.begun));
        if let Some(given) = wanted {
            // A pool that is gone has no slots, and nothing that could want one.
            drop(given.await);
        }
    }
}

impl Drop for SlotLoan {
    fn drop(&mut self) {
        // The piece stopped waiting, as in a `select!`, and goes on at once: there is one more at work for a while.
        if let Some(slot) = self.0.take() {
            slot.pool.take_slot(slot.begun);
        }
    }
}

impl Pool {
    /// Returns how many pieces wait without their slot.
    pub(crate) fn lent(&self) -> usize {
        self.lock().lent
    }

    fn lend(self: &Arc<Self>, begun: Begun) {
        let mut state = self.lock();
        state.lend(begun);
        self.start(state);
    }

    fn want_back(self: &Arc<Self>, begun: Begun) -> Option<oneshot::Receiver<()>> {
        let mut state = self.lock();
        let given = state.want_back(begun);
        self.start(state);
        given
    }

    fn take_slot(&self, begun: Begun) {
        self.lock().take_slot(begun);
    }
}
