//! Who listens to running work: when it gave its last sign of life, and what it wants to have undone.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tidewheel_core::fact::Value;
use tidewheel_core::time::Timestamp;
use tidewheel_core::work::Signals;
use tidewheel_store::Clock;

/// The ear of one attempt at a piece of work.
#[derive(Default)]
pub(crate) struct Ear {
    /// `None` where nobody waits for signs of life: then they cost nothing.
    clock: Option<Arc<dyn Clock>>,
    /// When the last sign of life came, in nanoseconds; zero if none did.
    heard_at: AtomicU64,
    /// What undoes the work so far, in the order in which it was said.
    registered: Mutex<Vec<(String, Value)>>,
}

impl Ear {
    /// Returns an ear for work that has to give signs of life.
    pub(crate) fn for_heartbeats(clock: Arc<dyn Clock>) -> Self {
        Self { clock: Some(clock), ..Self::default() }
    }

    /// Returns when the last sign of life came.
    pub(crate) fn heard_at(&self) -> Option<Timestamp> {
        Some(self.heard_at.load(Ordering::Relaxed)).filter(|nanos| *nanos > 0).map(Timestamp::from_nanos)
    }

    /// Takes what undoes the work so far: components and what each is given, in the order in which it was said.
    pub(crate) fn take_registered(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut *self.registered.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Signals for Ear {
    fn heartbeat(&self) {
        if let Some(clock) = &self.clock {
            // Several threads of one piece may speak at once: the last word counts, not the slowest thread.
            self.heard_at.fetch_max(clock.now().as_nanos(), Ordering::Relaxed);
        }
    }

    fn register_compensation(&self, component: &str, value: Value) {
        let mut registered = self.registered.lock().unwrap_or_else(PoisonError::into_inner);
        registered.push((component.to_owned(), value));
    }
}

#[cfg(test)]
mod tests {
    use tidewheel_core::time::Span;
    use tidewheel_testkit::VirtualClock;

    use super::*;

    #[test]
    fn the_last_sign_of_life_counts_and_without_a_policy_none_does() {
        let clock = VirtualClock::default();
        let (ear, deaf) = (Ear::for_heartbeats(Arc::new(clock.clone())), Ear::default());
        assert_eq!(ear.heard_at(), None);
        for _ in 0..2 {
            clock.advance(Span::from_millis(5));
            ear.heartbeat();
            deaf.heartbeat();
            assert_eq!(ear.heard_at(), Some(clock.now()));
        }
        assert_eq!(deaf.heard_at(), None);
    }

    #[test]
    fn what_undoes_the_work_is_taken_once_and_in_order() {
        let ear = Ear::default();
        ear.register_compensation("refund", Value::new(1_u8));
        ear.register_compensation("release", Value::new(2_u8));
        let taken = ear.take_registered();
        let names: Vec<&str> = taken.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["refund", "release"]);
        assert!(ear.take_registered().is_empty());
    }
}
