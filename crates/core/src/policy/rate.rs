//! A rate limit as a pure state machine: at most so many starts in **any** window, not only in aligned ones.
//!
//! A bucket that refills evenly would let nearly twice the count through in some windows. So the starts of
//! the last window are kept, as runs of equal milliseconds.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::options::RateLimit;
use crate::time::{Span, Timestamp};

/// The starts that still count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// Milliseconds, rounded up, and how many starts fell on each; oldest first.
    starts: VecDeque<(u64, u32)>,
}

/// What a limit says to a start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slot {
    /// Start now; the state counts it.
    Now(Rate),
    /// Ask again at that instant: not before it is there a place.
    At(Timestamp),
}

impl Rate {
    /// Asks for a start now.
    #[must_use]
    pub fn take(&self, config: &RateLimit, now: Timestamp) -> Slot {
        // Rounding up can only make a start count longer, so the limit holds exactly. A clock that runs
        // backwards is held at the last start.
        let last = self.starts.back().map_or(0, |(millis, _)| *millis);
        let millis = now.as_nanos().div_ceil(1_000_000).max(last);
        let mut rate = self.clone();
        while rate.starts.front().is_some_and(|(start, _)| has_left(*start, config.window, now)) {
            rate.starts.pop_front();
        }
        let used: u64 = rate.starts.iter().map(|(_, count)| u64::from(*count)).sum();
        if used < u64::from(config.count) {
            match rate.starts.back_mut() {
                Some((start, count)) if *start == millis => *count += 1,
                _ => rate.starts.push_back((millis, 1)),
            }
            return Slot::Now(rate);
        }
        let oldest = rate.starts.front().map_or(millis, |(start, _)| *start);
        Slot::At(Timestamp::from_millis(oldest).saturating_add(config.window))
    }
}

fn has_left(start_millis: u64, window: Span, now: Timestamp) -> bool {
    now.has_reached(Timestamp::from_millis(start_millis), window)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three_a_second() -> RateLimit {
        RateLimit { count: 3, window: Span::from_secs(1), name: None }
    }

    #[test]
    fn a_full_window_says_when_to_come_again() {
        let config = three_a_second();
        let mut rate = Rate::default();
        for millis in [100, 200, 200] {
            let Slot::Now(next) = rate.take(&config, Timestamp::from_millis(millis)) else {
                panic!("a place")
            };
            rate = next;
        }
        assert_eq!(rate.take(&config, Timestamp::from_millis(300)), Slot::At(Timestamp::from_millis(1_100)));
        assert!(matches!(rate.take(&config, Timestamp::from_millis(1_100)), Slot::Now(_)));
    }

    #[test]
    fn no_window_ever_sees_more_than_the_count() {
        let config = three_a_second();
        let mut rate = Rate::default();
        let mut starts = Vec::new();
        let mut now = 1_u64;
        // Greedy and irregular: come back exactly when told, or a bit later.
        for step in 0_u64..500 {
            match rate.take(&config, Timestamp::from_nanos(now)) {
                Slot::Now(next) => {
                    rate = next;
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
}
