//! A clock that stands still until a test moves it; whoever sleeps is woken by the move.

use tidewheel_core::time::{Span, Timestamp};
use tidewheel_store::{Clock, Sleep};
use tokio::sync::watch;

/// The time as a test wants it. Clones are the same clock.
#[derive(Clone, Debug)]
pub struct VirtualClock {
    now: watch::Sender<Timestamp>,
}

impl VirtualClock {
    /// Sets a clock to an instant.
    #[must_use]
    pub fn new(now: Timestamp) -> Self {
        Self { now: watch::Sender::new(now) }
    }

    /// Moves the clock and wakes those whose time has come.
    pub fn advance(&self, span: Span) {
        self.now.send_modify(|now| *now = now.saturating_add(span));
    }

    /// Moves the clock to an instant, if that is not past.
    pub fn advance_to(&self, at: Timestamp) {
        self.now.send_modify(|now| *now = (*now).max(at));
    }

    /// Returns how many wait for a later time.
    #[must_use]
    pub fn sleepers(&self) -> usize {
        self.now.receiver_count()
    }
}

impl Default for VirtualClock {
    /// Sets a clock to one second after the epoch, so that a test can speak of the time before.
    fn default() -> Self {
        Self::new(Timestamp::from_millis(1_000))
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        *self.now.borrow()
    }

    fn sleep_until(&self, at: Timestamp) -> Sleep {
        let mut now = self.now.subscribe();
        Box::pin(async move {
            if now.wait_for(|now| *now >= at).await.is_err() {
                // Nobody is left who could move the clock.
                std::future::pending::<()>().await;
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn sleepers_wake_when_the_clock_is_moved_and_not_before() {
        let clock = VirtualClock::default();
        let at = clock.now().saturating_add(Span::from_secs(2));
        let sleeper = tokio::spawn(clock.sleep_until(at));
        clock.advance(Span::from_secs(1));
        tokio::task::yield_now().await;
        assert_eq!((sleeper.is_finished(), clock.sleepers()), (false, 1));
        clock.advance_to(at);
        sleeper.await.unwrap();
        clock.sleep_until(at).await;
        clock.advance_to(Timestamp::from_nanos(0));
        assert_eq!((clock.now(), clock.sleepers()), (at, 0));
    }
}
