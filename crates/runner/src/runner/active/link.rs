//! A way to a run for timers and lists of waiters, which may keep it for long. It keeps none of the memory of a run that
//! has left this process.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::life::Active;

/// The way to a run that is here; to nothing after it has left. A `Weak` alone would keep the whole allocation of the run.
pub(in crate::runner) struct Link(Mutex<Weak<Active>>);

impl Link {
    pub(super) fn new(active: Weak<Active>) -> Arc<Self> {
        Arc::new(Self(Mutex::new(active)))
    }

    /// Returns the run, if it is here.
    pub(in crate::runner) fn active(&self) -> Option<Arc<Active>> {
        self.lock().upgrade()
    }

    /// Returns whether the run is here.
    pub(in crate::runner) fn is_there(&self) -> bool {
        self.lock().strong_count() > 0
    }

    /// Leads to nothing from now on.
    fn cut(&self) {
        let active = std::mem::take(&mut *self.lock());
        drop(active);
    }

    fn lock(&self) -> MutexGuard<'_, Weak<Active>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Active {
    /// The run has left this process: nothing here keeps its memory any more, and nothing wakes it.
    pub(in crate::runner) fn unlink(&self) {
        self.link.cut();
        let looks = std::mem::take(&mut self.lock().looks);
        for timer in looks.into_values() {
            self.core.timers().cancel(timer);
        }
    }
}
