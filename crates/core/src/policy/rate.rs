//! A rate limit as a pure state machine: at most so many starts in **any** window, not only in aligned ones.
//!
//! A bucket that refills evenly would let nearly twice the count through in some windows. So the starts of
//! the last window are kept, counted in at most about a thousand grains of it.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::options::RateLimit;
use crate::time::{Span, Timestamp};

/// How many grains a window is counted in: starts may wait a thousandth of the window longer than they must.
const GRAINS: u64 = 1_000;

/// The starts that still count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// Milliseconds, rounded up to a grain, and how many starts fell on each; oldest first.
    starts: VecDeque<(u64, u32)>,
    /// How many there are in all.
    used: u64,
}

/// What a limit says to a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// Start now; it is counted.
    Now,
    /// Ask again at that instant: not before it is there a place.
    At(Timestamp),
}

impl Rate {
    /// Asks for a start now, and counts it if there is a place.
    #[must_use]
    pub fn take(&mut self, config: &RateLimit, now: Timestamp) -> Slot {
        while let Some((start, count)) = self.starts.front().copied()
            && has_left(start, config.window, now)
        {
            self.starts.pop_front();
            self.used = self.used.saturating_sub(u64::from(count));
        }
        if self.used >= u64::from(config.count)
            && let Some((oldest, _)) = self.starts.front()
        {
            return Slot::At(Timestamp::from_millis(*oldest).saturating_add(config.window));
        }
        // Rounding up can only make a start count longer, so the limit holds in any window. A clock that runs
        // backwards is held at the last start.
        let grain = (config.window.as_millis() / GRAINS).max(1);
        let last = self.starts.back().map_or(0, |(millis, _)| *millis);
        let millis = now.as_nanos().div_ceil(1_000_000).div_ceil(grain).saturating_mul(grain).max(last);
        match self.starts.back_mut() {
            Some((start, count)) if *start == millis => *count = count.saturating_add(1),
            _ => self.starts.push_back((millis, 1)),
        }
        self.used = self.used.saturating_add(1);
        Slot::Now
    }
}

fn has_left(start_millis: u64, window: Span, now: Timestamp) -> bool {
    now.has_reached(Timestamp::from_millis(start_millis), window)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(count: u32) -> RateLimit {
        RateLimit { count, window: Span::from_secs(1), name: None }
    }

    #[test]
    fn a_full_window_says_when_to_come_again() {
        let mut rate = Rate::default();
        for millis in [100, 200, 200] {
            assert_eq!(rate.take(&limit(3), Timestamp::from_millis(millis)), Slot::Now);
        }
        let full = rate.clone();
        assert_eq!(
            rate.take(&limit(3), Timestamp::from_millis(300)),
            Slot::At(Timestamp::from_millis(1_100))
        );
        assert_eq!(rate, full, "asking costs nothing");
        assert_eq!(rate.take(&limit(3), Timestamp::from_millis(1_100)), Slot::Now);
    }

    #[test]
    fn no_window_ever_sees_more_than_the_count() {
        let mut rate = Rate::default();
        let mut starts = Vec::new();
        let mut now = 1_u64;
        // Greedy and irregular: come back exactly when told, or a bit later.
        for step in 0_u64..500 {
            match rate.take(&limit(3), Timestamp::from_nanos(now)) {
                Slot::Now => {
                    starts.push(now);
                    now += (step * 7_919) % 350_000_000;
                }
                Slot::At(when) => now = when.as_nanos(),
            }
        }
        for (index, start) in starts.iter().enumerate() {
            let inside = starts[index..].iter().take_while(|other| **other < start + 1_000_000_000).count();
            assert!(inside <= 3, "{inside} starts in the second after {start}");
        }
        assert!(starts.len() > 200);
    }

    #[test]
    fn a_clock_that_runs_backwards_gives_no_more_places() {
        let mut rate = Rate::default();
        assert_eq!(rate.take(&limit(2), Timestamp::from_millis(5_000)), Slot::Now);
        assert_eq!(rate.take(&limit(2), Timestamp::from_millis(1_000)), Slot::Now);
        assert_eq!(
            rate.take(&limit(2), Timestamp::from_millis(2_500)),
            Slot::At(Timestamp::from_millis(6_000))
        );
    }

    #[test]
    fn the_state_stays_small_whatever_the_count() {
        let config = RateLimit { count: 1_000_000, window: Span::from_secs(60), name: None };
        let mut rate = Rate::default();
        for start in 0..1_000_000_u64 {
            assert_eq!(rate.take(&config, Timestamp::from_nanos(start * 59_000)), Slot::Now);
        }
        assert!(rate.starts.len() <= 1_001, "{} grains", rate.starts.len());
        assert!(matches!(rate.take(&config, Timestamp::from_millis(59_500)), Slot::At(_)));
    }
}
