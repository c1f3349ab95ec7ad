//! The time, as a value that a test can hold.

use std::fmt;
use std::pin::Pin;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tidewheel_core::time::Timestamp;
use tokio::time::Instant;

/// A wait until some instant.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Tells the time and waits for it.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Returns the present.
    fn now(&self) -> Timestamp;

    /// Waits until an instant; one that is past is over at once.
    fn sleep_until(&self, at: Timestamp) -> Sleep;
}

/// The clock of the machine: wall time when it was made, and from there on the monotonic time of the runtime, so
/// that it never goes back. A runtime whose clock is paused holds this one, too.
#[derive(Clone, Copy, Debug)]
pub struct RealClock {
    began_at: Timestamp,
    began: Instant,
}

impl RealClock {
    /// Sets the clock by the wall time.
    #[must_use]
    pub fn new() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Self { began_at: timestamp(since), began: Instant::now() }
    }

    /// Returns a clock that shows an instant now and goes on from there. On a paused runtime of Tokio it stands still
    /// while there is work and jumps to the next timer when there is none: the same test gives the same times.
    #[must_use]
    pub fn starting_at(at: Timestamp) -> Self {
        Self { began_at: at, began: Instant::now() }
    }
}

impl Default for RealClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for RealClock {
    fn now(&self) -> Timestamp {
        let passed = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Timestamp::from_nanos(self.began_at.as_nanos().saturating_add(passed))
    }

    fn sleep_until(&self, at: Timestamp) -> Sleep {
        let nanos = at.as_nanos().saturating_sub(self.began_at.as_nanos());
        // Somewhere behind the end of time the runtime would refuse to count.
        let instant = self.began.checked_add(Duration::from_nanos(nanos));
        Box::pin(async move {
            match instant {
                Some(instant) => tokio::time::sleep_until(instant).await,
                None => std::future::pending().await,
            }
        })
    }
}

fn timestamp(since_epoch: Duration) -> Timestamp {
    Timestamp::from_nanos(u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX))
}
