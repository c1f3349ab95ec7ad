//! Numbers that look random and can be had again.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::time::{Duration, SystemTime};

use crate::is_full;

/// A source of numbers, and what it began with.
pub(crate) struct Random(u64);

impl Random {
    /// Begins with the seed of the environment, and says it. Without one, the whole storms find new cases each time,
    /// and the small ones are the same on each machine.
    #[expect(clippy::print_stdout, reason = "what failed can be had again only with its seed")]
    pub(crate) fn new(what: &str) -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let drawn = if is_full() { u64::from(now.subsec_nanos()) << 20 ^ now.as_secs() } else { 1 };
        let given = std::env::var("TIDEWHEEL_STORM_SEED").ok();
        let seed = given.map_or(drawn, |seed| seed.parse().expect("TIDEWHEEL_STORM_SEED is a number"));
        println!("{what}: TIDEWHEEL_STORM_SEED={seed}");
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below another one.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end).unwrap()).unwrap()
    }

    /// Returns one of them.
    pub(crate) fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    /// Returns a short while; the shortest ones are the most frequent.
    pub(crate) fn while_of(&mut self, longest: Duration) -> Duration {
        let parts = u32::try_from(self.below(1_000)).unwrap();
        longest * parts * parts / 1_000_000
    }
}
