//! Where the parts of a log that was turned over stand in all that was ever written to it. Reads no file.

/// How much of a log there is: what was dropped before it, what was put aside, and what stands in the log itself.
///
/// Places in a log count from the first byte that was ever written to it, so that they stay right when it is turned
/// over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogExtent {
    /// So many bytes are gone.
    pub dropped: u64,
    /// So many are in the part that was put aside.
    pub aside: u64,
    /// So many are in the log.
    pub length: u64,
}

impl LogExtent {
    /// Returns where the log itself begins.
    #[must_use]
    pub const fn base(self) -> u64 {
        self.dropped.saturating_add(self.aside)
    }

    /// Returns where the log ends.
    #[must_use]
    pub const fn end(self) -> u64 {
        self.base().saturating_add(self.length)
    }

    /// Returns the places at which attempts began, from those on record, the first attempt first.
    ///
    /// Earlier releases counted from the beginning of the file that was there at the time. They are recognised where
    /// an attempt began before the one that it came after, and are as exact as what is left allows.
    #[must_use]
    pub fn places(self, recorded: &[u64]) -> Vec<u64> {
        if recorded.is_sorted() {
            return recorded.to_vec();
        }
        let mut places = recorded.to_vec();
        // The file that an attempt began in: the log, the one that was put aside, or one that is gone.
        let mut begin = Some(self.base());
        for index in (0..places.len()).rev() {
            if recorded.get(index + 1).is_some_and(|next| recorded[index] > *next) {
                begin = begin.filter(|begin| *begin != self.dropped).map(|_| self.dropped);
            }
            places[index] = begin.map_or(0, |begin| begin.saturating_add(recorded[index]));
        }
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_from_the_first_byte_ever_written() {
        let log = LogExtent { dropped: 100, aside: 40, length: 7 };
        assert_eq!((log.base(), log.end()), (140, 147));
        assert_eq!(log.places(&[0, 90, 120, 141]), [0, 90, 120, 141]);
    }

    #[test]
    fn places_that_count_from_the_file_of_their_time_are_recognised() {
        let log = LogExtent { dropped: 0, aside: 10, length: 9 };
        assert_eq!(log.places(&[0, 10, 5]), [0, 10, 15]);
        let log = LogExtent { dropped: 10, aside: 20, length: 9 };
        assert_eq!(log.places(&[0, 10, 5, 3]), [0, 0, 15, 33]);
    }
}
