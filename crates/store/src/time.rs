//! The time of a store, as one process reads it.
//!
//! The store keeps the instant of its last write, and it only moves forward. Between two writes each process goes on
//! from there by its own clock, so that two processes whose clocks disagree mean the same instant by a due time.

use tidewheel_core::time::{Span, Timestamp};

/// How far the store's time is ahead of the clock of this process.
#[derive(Debug, Default)]
pub(crate) struct StoreTime {
    /// In nanoseconds; `None` before this process has met the store.
    ahead: Option<i128>,
}

impl StoreTime {
    /// Returns whether this process has met the store.
    pub(crate) const fn is_set(&self) -> bool {
        self.ahead.is_some()
    }

    /// Meets the store, or looks again who else keeps its time. `longest_lease` is the longest one of the owners of
    /// other processes that live: each of them writes the time at least once in that span.
    pub(crate) fn meet(&mut self, local: Timestamp, stored: Timestamp, longest_lease: Option<Span>) {
        self.ahead = Some(match (self.ahead, longest_lease) {
            // The clock of this process is the only one there is. What others made of the time stays where it is
            // ahead.
            (ahead, None) => ahead.unwrap_or(0).max(0),
            (Some(ahead), Some(_)) => ahead,
            // A clock that is further ahead than the last write of others can be old is wrong, or they are stopped.
            (None, Some(lease)) if local > stored.saturating_add(lease) => nanos(stored) - nanos(local),
            (None, Some(_)) => 0,
        });
    }

    /// Returns the store's time; it is never before that of the last write.
    pub(crate) fn now(&mut self, local: Timestamp, stored: Timestamp) -> Timestamp {
        let ahead = self.ahead.unwrap_or(0).max(nanos(stored) - nanos(local));
        self.ahead = Some(ahead);
        Timestamp::from_nanos(u64::try_from(nanos(local) + ahead).unwrap_or(u64::MAX))
    }
}

fn nanos(at: Timestamp) -> i128 {
    i128::from(at.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Span = Span::from_secs(30);

    const fn at(second: u64) -> Timestamp {
        Timestamp::from_millis(1_000_000_000 + second * 1_000)
    }

    #[test]
    fn a_clock_that_is_behind_goes_on_from_the_last_write() {
        let mut time = StoreTime::default();
        time.meet(at(0), at(3_600), Some(LEASE));
        assert_eq!(time.now(at(0), at(3_600)), at(3_600));
        assert_eq!(time.now(at(5), at(3_600)), at(3_605));
        assert_eq!(time.now(at(6), at(3_700)), at(3_700), "another process wrote");
    }

    #[test]
    fn a_clock_that_is_ahead_does_not_move_the_time_that_others_keep() {
        let mut time = StoreTime::default();
        time.meet(at(3_600), at(0), Some(LEASE));
        assert_eq!(time.now(at(3_600), at(0)), at(0));
        time.meet(at(3_610), at(0), Some(LEASE));
        assert_eq!(time.now(at(3_610), at(0)), at(10));
        time.meet(at(3_620), at(10), None);
        assert_eq!(time.now(at(3_620), at(10)), at(3_620), "no other process is left that keeps it");
    }

    #[test]
    fn a_clock_that_is_right_is_left_alone() {
        let mut time = StoreTime::default();
        time.meet(at(29), at(0), Some(LEASE));
        assert_eq!(time.now(at(29), at(0)), at(29));
    }

    #[test]
    fn the_first_process_after_a_pause_takes_its_own_clock_unless_that_is_behind() {
        for (local, now) in [(at(86_400), at(86_400)), (at(0), at(3_600))] {
            let mut time = StoreTime::default();
            time.meet(local, at(3_600), None);
            assert_eq!(time.now(local, at(3_600)), now);
        }
    }
}
