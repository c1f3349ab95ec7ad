//! A circuit breaker as a pure state machine: closed, open, half open with permits. Time is an argument.

use serde::{Deserialize, Serialize};

use super::options::CircuitBreaker;
use crate::time::Timestamp;

/// The state of a breaker. A new one is closed.
///
/// ```text
///            failure_threshold failures in a row
///   closed ------------------------------------> open
///     ^                                           | reset_timeout is over
///     | half_open_permits probes succeeded        v
///     +---------------------------------------- half open --- a probe failed ---> open
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Breaker {
    state: State,
    /// Counts the changes of state, so that what started before a change does not count after it.
    epoch: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum State {
    Closed { failures: u32 },
    Open { until: Timestamp },
    HalfOpen { probes: u32, successes: u32 },
}

impl Default for State {
    fn default() -> Self {
        Self::Closed { failures: 0 }
    }
}

/// What a breaker says to work that wants to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Start, and bring the permit back with the outcome.
    Admitted(Breaker, Permit),
    /// Not now. The instant is when a probe may pass; `None` while others probe.
    Refused(Option<Timestamp>),
}

/// The right to one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permit {
    epoch: u64,
}

impl Breaker {
    /// Asks to start an attempt.
    #[must_use]
    pub fn admit(&self, config: &CircuitBreaker, now: Timestamp) -> Admission {
        let permit = Permit { epoch: self.epoch };
        match self.state {
            State::Closed { .. } => Admission::Admitted(*self, permit),
            State::Open { until } if now < until => Admission::Refused(Some(until)),
            State::Open { .. } => {
                let half_open = self.changed(State::HalfOpen { probes: 1, successes: 0 });
                Admission::Admitted(half_open, Permit { epoch: half_open.epoch })
            }
            State::HalfOpen { probes, successes } if probes + successes < config.half_open_permits => {
                let state = State::HalfOpen { probes: probes + 1, successes };
                Admission::Admitted(Self { state, ..*self }, permit)
            }
            State::HalfOpen { .. } => Admission::Refused(None),
        }
    }

    /// Counts an attempt that succeeded.
    #[must_use]
    pub fn succeeded(&self, config: &CircuitBreaker, permit: Permit) -> Self {
        if permit.epoch != self.epoch {
            return *self;
        }
        match self.state {
            State::Closed { .. } => Self { state: State::Closed { failures: 0 }, ..*self },
            State::Open { .. } => *self,
            State::HalfOpen { successes, .. } if successes + 1 >= config.half_open_permits => {
                self.changed(State::default())
            }
            State::HalfOpen { probes, successes } => {
                let state = State::HalfOpen { probes: probes.saturating_sub(1), successes: successes + 1 };
                Self { state, ..*self }
            }
        }
    }

    /// Counts an attempt that failed.
    #[must_use]
    pub fn failed(&self, config: &CircuitBreaker, permit: Permit, now: Timestamp) -> Self {
        if permit.epoch != self.epoch {
            return *self;
        }
        let open = State::Open { until: now.saturating_add(config.reset_timeout) };
        match self.state {
            State::Closed { failures } if failures + 1 >= config.failure_threshold => self.changed(open),
            State::Closed { failures } => Self { state: State::Closed { failures: failures + 1 }, ..*self },
            State::Open { .. } => *self,
            State::HalfOpen { .. } => self.changed(open),
        }
    }

    /// Takes a permit back whose attempt ended without an outcome: cancelled, or lost in a crash.
    #[must_use]
    pub fn released(&self, permit: Permit) -> Self {
        match self.state {
            State::HalfOpen { probes, successes } if permit.epoch == self.epoch => {
                let state = State::HalfOpen { probes: probes.saturating_sub(1), successes };
                Self { state, ..*self }
            }
            State::Closed { .. } | State::Open { .. } | State::HalfOpen { .. } => *self,
        }
    }

    /// Returns until when the breaker is open, as far as a time is known.
    #[must_use]
    pub const fn open_until(&self) -> Option<Timestamp> {
        match self.state {
            State::Open { until } => Some(until),
            State::Closed { .. } | State::HalfOpen { .. } => None,
        }
    }

    /// Returns the name of the state: `closed`, `open` or `half_open`.
    #[must_use]
    pub const fn state_name(&self) -> &'static str {
        match self.state {
            State::Closed { .. } => "closed",
            State::Open { .. } => "open",
            State::HalfOpen { .. } => "half_open",
        }
    }

    const fn changed(self, state: State) -> Self {
        Self { state, epoch: self.epoch + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Span;

    fn config() -> CircuitBreaker {
        CircuitBreaker {
            failure_threshold: 3,
            reset_timeout: Span::from_secs(10),
            half_open_permits: 2,
            ..CircuitBreaker::new("api")
        }
    }

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_millis(secs * 1_000)
    }

    fn admitted(breaker: &Breaker, now: Timestamp) -> (Breaker, Permit) {
        match breaker.admit(&config(), now) {
            Admission::Admitted(breaker, permit) => (breaker, permit),
            Admission::Refused(until) => panic!("refused until {until:?}"),
        }
    }

    fn opened() -> Breaker {
        (0..3).fold(Breaker::default(), |breaker, _| {
            let (breaker, permit) = admitted(&breaker, at(0));
            breaker.failed(&config(), permit, at(0))
        })
    }

    #[test]
    fn failures_in_a_row_open_it_and_a_success_between_them_does_not() {
        assert_eq!(opened().open_until(), Some(at(10)));
        let (breaker, permit) = admitted(&Breaker::default(), at(0));
        let mixed = breaker.failed(&config(), permit, at(0)).failed(&config(), permit, at(0));
        let mixed = mixed.succeeded(&config(), permit).failed(&config(), permit, at(0));
        assert_eq!(mixed.state_name(), "closed");
    }

    #[test]
    fn open_refuses_until_its_time_and_half_open_lets_the_permits_through() {
        let open = opened();
        assert_eq!(
            open.admit(&config(), Timestamp::from_nanos(at(10).as_nanos() - 1)),
            Admission::Refused(Some(at(10)))
        );
        let (breaker, first) = admitted(&open, at(10));
        let (breaker, second) = admitted(&breaker, at(10));
        assert_eq!(breaker.admit(&config(), at(11)), Admission::Refused(None));
        let breaker = breaker.succeeded(&config(), first);
        assert_eq!(breaker.state_name(), "half_open", "one of two probes is not enough");
        assert_eq!(breaker.succeeded(&config(), second), Breaker { epoch: 3, state: State::default() });
    }

    #[test]
    fn a_failed_probe_opens_it_again_and_a_late_success_changes_nothing() {
        let (breaker, first) = admitted(&opened(), at(10));
        let (breaker, second) = admitted(&breaker, at(10));
        let reopened = breaker.failed(&config(), first, at(12));
        assert_eq!(reopened.open_until(), Some(at(22)));
        assert_eq!(reopened.succeeded(&config(), second), reopened);
        assert_eq!(reopened.failed(&config(), second, at(30)), reopened);
    }

    #[test]
    fn a_lost_probe_gives_its_permit_back() {
        let (breaker, lost) = admitted(&opened(), at(10));
        let (breaker, _) = admitted(&breaker, at(10));
        let breaker = breaker.released(lost);
        assert!(matches!(breaker.admit(&config(), at(11)), Admission::Admitted(..)));
    }

    #[test]
    fn what_started_while_closed_does_not_close_an_open_breaker() {
        let (_, early) = admitted(&Breaker::default(), at(0));
        assert_eq!(opened().succeeded(&config(), early), opened());
    }
}
