//! A concurrency limit as a pure state machine: who has how many of the slots.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The slots that are taken, by holder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slots {
    holders: BTreeMap<i64, u32>,
}

impl Slots {
    /// Tells whether there is a slot, where so many may be taken.
    #[must_use]
    pub fn has_room(&self, limit: u32) -> bool {
        self.taken() < u64::from(limit)
    }

    /// Returns how many are taken.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.holders.values().copied().map(u64::from).sum()
    }

    /// Takes a slot, whether there is room or not.
    pub fn take(&mut self, holder: i64) {
        let count = self.holders.entry(holder).or_default();
        *count = count.saturating_add(1);
    }

    /// Gives a slot back. A holder that has none changes nothing.
    pub fn give_back(&mut self, holder: i64) {
        if let Some(count) = self.holders.get_mut(&holder) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.holders.remove(&holder);
            }
        }
    }

    /// Gives back what holders have that are gone.
    pub fn keep(&mut self, is_there: impl Fn(i64) -> bool) {
        self.holders.retain(|holder, _| is_there(*holder));
    }

    /// Returns who has slots.
    pub fn holders(&self) -> impl Iterator<Item = i64> {
        self.holders.keys().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_taken_given_back_and_freed_with_their_holder() {
        let mut slots = Slots::default();
        slots.take(1);
        slots.take(2);
        assert!(!slots.has_room(2) && slots.has_room(3));
        slots.give_back(1);
        slots.give_back(1);
        assert_eq!(slots.taken(), 1, "nobody gives back what they do not have");
        slots.keep(|holder| holder != 2);
        assert_eq!(slots, Slots::default());
    }
}
