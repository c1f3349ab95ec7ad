//! The time, as a value that a test can hold.

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tidewheel_core::time::{Span, Timestamp};
use tokio::time::Instant;

/// A wait until some instant.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Tells the time and waits for it.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Returns the present.
    fn now(&self) -> Timestamp;

    /// Waits until an instant; one that is past is over at once.
    fn sleep_until(&self, at: Timestamp) -> Sleep;

    /// Returns for how long the machine was suspended since this clock was made. `now` does not show it: an attempt that
    /// was suspended has not used up its time. A store adds it to its own time, so that what became due meanwhile is.
    fn suspended(&self) -> Span {
        Span::from_millis(0)
    }
}

/// The clock of the machine: wall time when it was made, and from there on the monotonic time of the runtime, so
/// that it never goes back. A runtime whose clock is paused holds this one, too.
#[derive(Clone, Copy, Debug)]
pub struct RealClock {
    began_at: Timestamp,
    began: Instant,
    /// For how long the machine had been suspended before, in milliseconds.
    suspended_before: u64,
}

impl RealClock {
    /// Sets the clock by the wall time.
    #[must_use]
    pub fn new() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Self::starting_at(timestamp(since))
    }

    /// Returns a clock that shows an instant now and goes on from there. On a paused runtime of Tokio it stands still
    /// while there is work and jumps to the next timer when there is none: the same test gives the same times.
    #[must_use]
    pub fn starting_at(at: Timestamp) -> Self {
        Self { began_at: at, began: Instant::now(), suspended_before: SUSPENDED.look() }
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

    fn suspended(&self) -> Span {
        Span::from_millis(SUSPENDED.look().saturating_sub(self.suspended_before))
    }
}

/// Returns the time of a process's own clock, with the time in which the machine was suspended.
pub(crate) fn with_suspends(clock: &dyn Clock) -> Timestamp {
    clock.now().saturating_add(clock.suspended())
}

/// For how long the machine was suspended since it was started, as this process has noticed.
static SUSPENDED: Suspended = Suspended(AtomicU64::new(0));

/// In milliseconds.
struct Suspended(AtomicU64);

/// The two clocks of the kernel are read one after the other, so a shorter difference means nothing.
const SHORTEST_SUSPEND: u64 = 100;

impl Suspended {
    fn look(&self) -> u64 {
        if let Some(slept) = difference() {
            self.note(slept);
        }
        self.0.load(Ordering::Relaxed)
    }

    /// Takes a difference of the clocks for what it is: noise, or another suspend.
    fn note(&self, slept: u64) {
        let known = self.0.load(Ordering::Relaxed);
        if slept >= known.saturating_add(SHORTEST_SUSPEND) {
            self.0.fetch_max(slept, Ordering::Relaxed);
        }
    }
}

/// Returns by how many milliseconds the clock that goes on in a suspend is ahead of the one that does not. `None` where
/// this thread was interrupted between the two.
#[cfg(target_os = "linux")]
fn difference() -> Option<u64> {
    use rustix::time::{ClockId, clock_gettime};
    let nanos = |clock| {
        let time = clock_gettime(clock);
        i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
    };
    let (before, with_suspends, after) =
        (nanos(ClockId::Monotonic), nanos(ClockId::Boottime), nanos(ClockId::Monotonic));
    if after - before > 1_000_000 {
        return None;
    }
    u64::try_from((with_suspends - after) / 1_000_000).ok()
}

/// Elsewhere nothing tells the two apart.
#[cfg(not(target_os = "linux"))]
fn difference() -> Option<u64> {
    None
}

fn timestamp(since_epoch: Duration) -> Timestamp {
    Timestamp::from_nanos(u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suspend_is_noticed_once_and_noise_is_none() {
        let suspended = Suspended(AtomicU64::new(0));
        let noted = |slept| {
            suspended.note(slept);
            suspended.0.load(Ordering::Relaxed)
        };
        assert_eq!(
            [3, 99, 60_000, 59_990, 60_050, 3_660_000].map(noted),
            [0, 0, 60_000, 60_000, 60_000, 3_660_000]
        );
    }

    #[test]
    fn a_clock_counts_only_the_suspends_of_its_own_life() {
        assert!(RealClock::new().suspended() < Span::from_secs(1));
    }
}
