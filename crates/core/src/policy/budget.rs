//! A retry budget as a pure state machine: tokens that retries take and that come back one by one.

use serde::{Deserialize, Serialize};

use super::options::RetryBudget;
use crate::time::Timestamp;

/// The state of a retry budget. A new one is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Tokens taken and not come back yet.
    taken: u32,
    /// From when on the next one comes back.
    since: Timestamp,
}

impl Budget {
    /// Returns how many tokens there are now.
    #[must_use]
    pub fn tokens(&self, config: &RetryBudget, now: Timestamp) -> u32 {
        config.tokens.saturating_sub(self.refilled(config, now).taken)
    }

    /// Takes a token for a retry; `None` when there is none.
    #[must_use]
    pub fn take(&self, config: &RetryBudget, now: Timestamp) -> Option<Self> {
        let refilled = self.refilled(config, now);
        if refilled.taken >= config.tokens {
            return None;
        }
        let since = if refilled.taken == 0 { now } else { refilled.since };
        Some(Self { taken: refilled.taken + 1, since })
    }

    /// Gives a token back that was taken for a retry that is not made.
    #[must_use]
    pub const fn given_back(&self) -> Self {
        Self { taken: self.taken.saturating_sub(1), since: self.since }
    }

    /// Lets come back what is due. A clock that runs backwards brings nothing.
    fn refilled(&self, config: &RetryBudget, now: Timestamp) -> Self {
        let interval = config.refill.as_millis().saturating_mul(1_000_000).max(1);
        let back = now.as_nanos().saturating_sub(self.since.as_nanos()) / interval;
        match u32::try_from(back) {
            Ok(back) if back < self.taken => {
                let since = self.since.as_nanos().saturating_add(u64::from(back).saturating_mul(interval));
                Self { taken: self.taken - back, since: Timestamp::from_nanos(since) }
            }
            _ => Self { taken: 0, since: now },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Span;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn tokens_are_spent_and_come_back_one_by_one() {
        let config = RetryBudget { name: "api".into(), tokens: 2, refill: Span::from_secs(10) };
        let full = Budget::default();
        assert_eq!(full.tokens(&config, at(0)), 2);
        let one_left = full.take(&config, at(1_000)).unwrap();
        let empty = one_left.take(&config, at(2_000)).unwrap();
        assert_eq!(empty.take(&config, at(10_999)), None);
        assert_eq!(empty.tokens(&config, at(11_000)), 1);
        assert_eq!(empty.tokens(&config, at(20_999)), 1);
        assert_eq!(empty.tokens(&config, at(21_000)), 2);
        assert_eq!(empty.tokens(&config, at(0)), 0, "a clock that runs backwards brings nothing");
    }

    #[test]
    fn waiting_long_never_gives_more_than_the_budget_holds() {
        let config = RetryBudget { name: "api".into(), tokens: 3, refill: Span::from_millis(1) };
        let spent = Budget::default().take(&config, at(5)).unwrap();
        assert_eq!(spent.tokens(&config, Timestamp::from_nanos(u64::MAX)), 3);
    }
}
