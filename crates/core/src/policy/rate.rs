//! A rate limit as a pure state machine: at most so many starts in **any** window, not only in aligned ones.
//!
//! A bucket that refills evenly would let nearly twice the count through in some windows. So the starts of
//! the last window are kept, counted in at most about a thousand grains of it.

use std::collections::{BTreeMap, VecDeque};

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
    /// Starts that were allowed and have not happened yet, by who has them: until then nobody knows for which window
    /// they count, so they count for every one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    coming: BTreeMap<i64, u32>,
}

/// What a limit says to a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// Start now; it is counted.
    Now,
    /// Ask again at that instant: not before it is there a place.
    At(Timestamp),
    /// Ask again when a start that was allowed has happened, or will not.
    Later,
}

impl Rate {
    /// Asks for a start now, and counts it if there is a place.
    #[must_use]
    pub fn take(&mut self, config: &RateLimit, now: Timestamp) -> Slot {
        match self.refusal(config, now) {
            Some(refusal) => refusal,
            None => {
                self.count(config, now);
                Slot::Now
            }
        }
    }

    /// Asks for a start that will happen soon, and keeps a place for it: whoever has it says when it happened.
    #[must_use]
    pub fn reserve(&mut self, config: &RateLimit, holder: i64, now: Timestamp) -> Slot {
        match self.refusal(config, now) {
            Some(refusal) => refusal,
            None => {
                let coming = self.coming.entry(holder).or_default();
                *coming = coming.saturating_add(1);
                Slot::Now
            }
        }
    }

    /// Counts a start for which there is a place: it happened now at the latest.
    pub fn began(&mut self, config: &RateLimit, holder: i64, now: Timestamp) {
        if self.give_back(holder) {
            self.count(config, now);
        }
    }

    /// Gives a place back whose start will not happen. Tells whether there was one.
    pub fn give_back(&mut self, holder: i64) -> bool {
        let Some(coming) = self.coming.get_mut(&holder) else { return false };
        *coming = coming.saturating_sub(1);
        if *coming == 0 {
            self.coming.remove(&holder);
        }
        true
    }

    /// Counts the starts of holders that are gone as if they had happened now: nobody knows whether they did.
    pub fn keep(&mut self, is_there: impl Fn(i64) -> bool, now: Timestamp) {
        let mut gone = 0_u32;
        self.coming.retain(|holder, coming| {
            let stays = is_there(*holder);
            gone = if stays { gone } else { gone.saturating_add(*coming) };
            stays
        });
        if gone > 0 {
            self.add(now.as_nanos().div_ceil(1_000_000), gone);
        }
    }

    /// Returns who has starts that have not happened yet.
    pub fn holders(&self) -> impl Iterator<Item = i64> {
        self.coming.keys().copied()
    }

    /// Returns why there is no place now.
    fn refusal(&mut self, config: &RateLimit, now: Timestamp) -> Option<Slot> {
        while let Some((start, count)) = self.starts.front().copied()
            && has_left(start, config.window, now)
        {
            self.starts.pop_front();
            self.used = self.used.saturating_sub(u64::from(count));
        }
        let coming: u64 = self.coming.values().copied().map(u64::from).sum();
        if self.used.saturating_add(coming) < u64::from(config.count) {
            return None;
        }
        Some(match self.starts.front() {
            Some((oldest, _)) => Slot::At(Timestamp::from_millis(*oldest).saturating_add(config.window)),
            None => Slot::Later,
        })
    }

    fn count(&mut self, config: &RateLimit, now: Timestamp) {
        // Rounding up can only make a start count longer, so the limit holds in any window.
        let grain = (config.window.as_millis() / GRAINS).max(1);
        self.add(now.as_nanos().div_ceil(1_000_000).div_ceil(grain).saturating_mul(grain), 1);
    }

    fn add(&mut self, millis: u64, starts: u32) {
        // A clock that runs backwards is held at the last start.
        let last = self.starts.back().map_or(0, |(millis, _)| *millis);
        let millis = millis.max(last);
        match self.starts.back_mut() {
            Some((start, count)) if *start == millis => *count = count.saturating_add(starts),
            _ => self.starts.push_back((millis, starts)),
        }
        self.used = self.used.saturating_add(u64::from(starts));
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
    fn a_start_that_has_not_happened_counts_until_it_did_and_from_then_on() {
        let (mut rate, two) = (Rate::default(), limit(2));
        let at = Timestamp::from_millis;
        assert_eq!(rate.reserve(&two, 1, at(0)), Slot::Now);
        assert_eq!(rate.reserve(&two, 1, at(0)), Slot::Now);
        assert_eq!(rate.reserve(&two, 2, at(5_000)), Slot::Later, "both may begin at any moment");
        rate.began(&two, 1, at(5_000));
        assert_eq!(rate.reserve(&two, 2, at(5_500)), Slot::At(at(6_000)));
        assert!(rate.give_back(1), "it will not begin");
        assert_eq!(rate.reserve(&two, 2, at(5_500)), Slot::Now);
        rate.keep(|holder| holder != 2, at(5_600));
        assert_eq!(
            rate.reserve(&two, 1, at(5_900)),
            Slot::At(at(6_000)),
            "it may have begun before it was gone"
        );
        assert_eq!(rate.reserve(&two, 1, at(6_000)), Slot::Now);
        assert_eq!(rate.reserve(&two, 1, at(6_000)), Slot::At(at(6_600)));
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
                Slot::Later => panic!("all starts happen at once"),
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
