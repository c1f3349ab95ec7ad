//! Things by a number that counts up.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Things by a number that counts up: nobody chooses the numbers, so the hash need not be hard to guess.
pub(crate) type ByNumber<T> = HashMap<u64, T, BuildHasherDefault<Spread>>;

#[derive(Default)]
pub(crate) struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(self.0 ^ u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // The golden ratio: it is odd, so that the low bits stay apart, and spreads them over the high ones.
        self.0 = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
