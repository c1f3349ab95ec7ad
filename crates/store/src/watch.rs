//! Leases as one process sees them: an owner is late when this process has watched it for a whole lease without seeing
//! it renew. No clock is compared with that of another process, so it does not matter what those show.

use std::collections::BTreeMap;

use tidewheel_core::time::{Span, Timestamp};

use crate::record::OwnerId;

/// What changes whenever an owner renews.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Renewal {
    /// How often it renewed.
    pub(crate) count: u64,
    /// Until when it need not renew again, by its own clock.
    pub(crate) expires_at: Timestamp,
}

/// The owners that this process has seen, and since when each has not renewed.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    seen: BTreeMap<OwnerId, Seen>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    renewal: Renewal,
    /// When this renewal was seen first.
    since: Timestamp,
    /// When this process looked last.
    looked: Timestamp,
}

impl Watch {
    /// Looks at an owner at an instant of this process's own clock, and returns whether its lease is over.
    ///
    /// Who looks away for half a lease or longer has to begin anew: it may have been stopped or suspended, or its clock
    /// may have jumped, and an owner to which the same happened is about to renew. An owner renews each third of
    /// its lease, so no such gap can make one late that does.
    pub(crate) fn is_late(&mut self, owner: OwnerId, renewal: Renewal, lease: Span, now: Timestamp) -> bool {
        let first = Seen { renewal, since: now, looked: now };
        let seen = self.seen.entry(owner).or_insert(first);
        let half = Span::from_millis(lease.as_millis() / 2);
        let looked_away = now < seen.looked || (now > seen.looked && now.has_reached(seen.looked, half));
        if seen.renewal != renewal || looked_away {
            *seen = first;
        }
        seen.looked = now;
        now.has_reached(seen.since, lease)
    }

    /// Forgets an owner that is none any more.
    pub(crate) fn forget(&mut self, owner: OwnerId) {
        self.seen.remove(&owner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Span = Span::from_secs(30);
    const OWNER: OwnerId = OwnerId(1);

    const fn at(second: u64) -> Timestamp {
        Timestamp::from_millis(1_000_000 + second * 1_000)
    }

    const fn renewal(count: u64) -> Renewal {
        Renewal { count, expires_at: Timestamp::from_nanos(0) }
    }

    fn look(watch: &mut Watch, count: u64, second: u64) -> bool {
        watch.is_late(OWNER, renewal(count), LEASE, at(second))
    }

    #[test]
    fn an_owner_that_does_not_renew_is_late_after_a_lease_and_not_before() {
        let mut watch = Watch::default();
        for second in [0, 10, 20, 29] {
            assert!(!look(&mut watch, 0, second), "{second}");
        }
        assert!(look(&mut watch, 0, 30) && look(&mut watch, 0, 31));
    }

    #[test]
    fn one_look_never_makes_an_owner_late() {
        assert!(!look(&mut Watch::default(), 0, 1_000_000));
    }

    #[test]
    fn an_owner_that_renews_is_never_late() {
        let mut watch = Watch::default();
        assert!((0..100).all(|third| !look(&mut watch, third / 2, third * 10)));
    }

    #[test]
    fn a_jump_of_the_clock_makes_no_owner_late() {
        for jump in [15, 3_600, 1_000_000] {
            let mut watch = Watch::default();
            assert!(!look(&mut watch, 0, 0) && !look(&mut watch, 0, 10));
            assert!(!look(&mut watch, 0, 10 + jump), "{jump}");
            assert!(!look(&mut watch, 0, 24 + jump), "{jump}");
        }
        let mut watch = Watch::default();
        assert!(!look(&mut watch, 0, 3_600) && !look(&mut watch, 0, 0) && !look(&mut watch, 0, 14));
    }

    #[test]
    fn an_owner_that_is_forgotten_is_watched_anew() {
        let mut watch = Watch::default();
        assert!([0, 10, 20].into_iter().all(|second| !look(&mut watch, 0, second)));
        watch.forget(OWNER);
        assert!(!look(&mut watch, 0, 30));
    }

    #[test]
    fn a_lease_as_long_as_time_is_never_over() {
        let mut watch = Watch::default();
        let forever = Span::from_millis(u64::MAX);
        for second in [0, 1_000_000_000, u64::from(u32::MAX)] {
            assert!(!watch.is_late(OWNER, renewal(0), forever, at(second)));
        }
    }
}
