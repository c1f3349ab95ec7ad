//! The store's time as this process reads it: its own clock, shifted by what the store says whenever it is joined or a
//! lease is renewed. Due times are measured against it. Durations inside the process are measured by its own clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tidewheel_core::time::{Span, Timestamp};
use tidewheel_store::{Clock, Sleep};
use tokio::sync::watch;

/// Clones are the same clock.
#[derive(Clone, Debug)]
pub(super) struct StoreClock(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    local: Arc<dyn Clock>,
    /// By how many nanoseconds the store's time is ahead.
    ahead: AtomicI64,
    /// The same, for those that sleep: they count anew when it changes.
    changes: watch::Sender<i64>,
}

impl StoreClock {
    pub(super) fn new(local: Arc<dyn Clock>) -> Self {
        let (ahead, changes) = (AtomicI64::new(0), watch::Sender::new(0));
        Self(Arc::new(Shared { local, ahead, changes }))
    }

    /// Returns the clock of the process.
    pub(super) fn local(&self) -> &Arc<dyn Clock> {
        &self.0.local
    }

    /// Takes what the store said its time was, between two instants of the clock of the process.
    ///
    /// What fits is left as it is, so that the time it took to ask does not make the clock tremble.
    pub(super) fn set(&self, asked: Timestamp, now: Timestamp, answered: Timestamp) {
        let ahead_of = |local: Timestamp| {
            let nanos = i128::from(now.as_nanos()) - i128::from(local.as_nanos());
            i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
        };
        let (least, most) = (ahead_of(answered.max(asked)), ahead_of(asked));
        let known = self.0.ahead.load(Ordering::Relaxed);
        let ahead = known.clamp(least, most);
        if ahead != known {
            self.0.ahead.store(ahead, Ordering::Relaxed);
            self.0.changes.send_replace(ahead);
        }
    }

    /// Returns which instant of the clock of the process an instant of the store is.
    pub(super) fn to_local(&self, at: Timestamp) -> Timestamp {
        shifted(at, self.0.ahead.load(Ordering::Relaxed).saturating_neg())
    }
}

impl Clock for StoreClock {
    fn now(&self) -> Timestamp {
        shifted(self.0.local.now(), self.0.ahead.load(Ordering::Relaxed))
    }

    fn sleep_until(&self, at: Timestamp) -> Sleep {
        let shared = Arc::clone(&self.0);
        Box::pin(async move {
            let mut changes = shared.changes.subscribe();
            loop {
                let ahead = *changes.borrow_and_update();
                tokio::select! {
                    biased;
                    () = shared.local.sleep_until(shifted(at, ahead.saturating_neg())) => return,
                    // Its sender is held here, so it never ends.
                    _ = changes.changed() => {}
                }
            }
        })
    }

    fn suspended(&self) -> Span {
        self.0.local.suspended()
    }
}

const fn shifted(at: Timestamp, nanos: i64) -> Timestamp {
    Timestamp::from_nanos(at.as_nanos().saturating_add_signed(nanos))
}

#[cfg(test)]
mod tests {
    use tidewheel_testkit::VirtualClock;

    use super::*;

    const fn at(second: u64) -> Timestamp {
        Timestamp::from_millis(10_000_000 + second * 1_000)
    }

    #[test]
    fn it_shows_what_the_store_says_and_does_not_tremble() {
        let local = VirtualClock::new(at(0));
        let clock = StoreClock::new(Arc::new(local.clone()));
        for (asked, said, answered, shows) in
            [(0, 1, 2, 2), (0, 0, 9, 2), (0, 3_600, 0, 3_602), (2, 3_603, 9, 3_602), (9, 9, 9, 2)]
        {
            clock.set(at(asked), at(said), at(answered));
            local.advance_to(at(2));
            assert_eq!(clock.now(), at(shows), "asked {asked}, said {said}, answered {answered}");
            assert_eq!(clock.to_local(clock.now()), local.now());
        }
    }

    #[tokio::test]
    async fn whoever_sleeps_wakes_when_the_store_says_that_it_is_time() {
        let local = VirtualClock::new(at(0));
        let clock = StoreClock::new(Arc::new(local.clone()));
        let sleeper = tokio::spawn(clock.sleep_until(at(100)));
        tokio::task::yield_now().await;
        clock.set(at(0), at(90), at(0));
        tokio::task::yield_now().await;
        local.advance(Span::from_secs(9));
        tokio::task::yield_now().await;
        assert!(!sleeper.is_finished());
        local.advance(Span::from_secs(1));
        sleeper.await.unwrap();
    }
}
