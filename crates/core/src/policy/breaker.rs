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
    HalfOpen { probes: u32, successes: u32, since: Timestamp },
}

impl Default for State {
    fn default() -> Self {
        Self::Closed { failures: 0 }
    }
}

/// What a breaker says to work that wants to start.
#[derive(Debug, PartialEq, Eq)]
pub enum Admission {
    /// Start, and bring the permit back with the outcome.
    Admitted(Permit),
    /// Not now: ask again at that instant.
    Refused(Timestamp),
}

/// The right to one attempt. It is used up when its outcome is told; whoever tells it twice because nobody knows
/// whether the first time counted keeps a copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permit {
    epoch: u64,
}

impl Breaker {
    /// Asks to start an attempt.
    #[must_use]
    pub fn admit(&mut self, config: &CircuitBreaker, now: Timestamp) -> Admission {
        if let Some(until) = self.refuses_until(config, now) {
            return Admission::Refused(until);
        }
        match self.state {
            State::Closed { .. } => {}
            State::HalfOpen { probes, successes, since }
                if probes.saturating_add(successes) < config.half_open_permits =>
            {
                self.state = State::HalfOpen { probes: probes.saturating_add(1), successes, since };
            }
            // The time is over: of being open, or of waiting for probes that were lost.
            State::Open { .. } | State::HalfOpen { .. } => {
                self.change(State::HalfOpen { probes: 1, successes: 0, since: now });
            }
        }
        Admission::Admitted(Permit { epoch: self.epoch })
    }

    /// Returns until when no attempt may start; `None` if one may now.
    #[must_use]
    pub fn refuses_until(&self, config: &CircuitBreaker, now: Timestamp) -> Option<Timestamp> {
        let until = match self.state {
            State::Closed { .. } => return None,
            State::Open { until } => until,
            State::HalfOpen { probes, successes, .. }
                if probes.saturating_add(successes) < config.half_open_permits =>
            {
                return None;
            }
            // Probes that say nothing for that long were lost in a crash; nobody shall wait for them for ever.
            State::HalfOpen { since, .. } => since.saturating_add(config.reset_timeout),
        };
        (now < until).then_some(until)
    }

    /// Counts an attempt that succeeded.
    pub fn succeeded(&mut self, config: &CircuitBreaker, permit: Permit) {
        if permit.epoch != self.epoch {
            return;
        }
        match self.state {
            State::Closed { .. } => self.state = State::Closed { failures: 0 },
            State::Open { .. } => {}
            State::HalfOpen { successes, .. } if successes.saturating_add(1) >= config.half_open_permits => {
                self.change(State::default());
            }
            State::HalfOpen { probes, successes, since } => {
                let (probes, successes) = (probes.saturating_sub(1), successes.saturating_add(1));
                self.state = State::HalfOpen { probes, successes, since };
            }
        }
    }

    /// Counts an attempt that failed.
    pub fn failed(&mut self, config: &CircuitBreaker, permit: Permit, now: Timestamp) {
        if permit.epoch != self.epoch {
            return;
        }
        let open = State::Open { until: now.saturating_add(config.reset_timeout) };
        match self.state {
            State::Closed { failures } if failures.saturating_add(1) >= config.failure_threshold => {
                self.change(open);
            }
            State::Closed { failures } => self.state = State::Closed { failures: failures.saturating_add(1) },
            State::Open { .. } => {}
            State::HalfOpen { .. } => self.change(open),
        }
    }

    /// Takes a permit back whose attempt ended without an outcome: cancelled, or lost in a crash.
    pub fn released(&mut self, permit: Permit) {
        if let State::HalfOpen { probes, successes, since } = self.state
            && permit.epoch == self.epoch
        {
            self.state = State::HalfOpen { probes: probes.saturating_sub(1), successes, since };
        }
    }

    /// Returns until when it refuses an attempt that was let in before and failed; `None` if nothing changed since it
    /// was let in. What the attempt itself means for the breaker is not its own obstacle.
    #[must_use]
    pub fn refuses_again(
        &self,
        config: &CircuitBreaker,
        permit: &Permit,
        now: Timestamp,
    ) -> Option<Timestamp> {
        if permit.epoch == self.epoch { None } else { self.refuses_until(config, now) }
    }

    /// Returns the permit of an attempt that began long ago and of which nobody knows the permit any more: it counts
    /// while the breaker is closed.
    #[must_use]
    pub fn late_permit(&self) -> Option<Permit> {
        matches!(self.state, State::Closed { .. }).then_some(Permit { epoch: self.epoch })
    }

    /// Tells whether it is half open: what its probes come to may change it at any time.
    #[must_use]
    pub const fn is_probed(&self) -> bool {
        matches!(self.state, State::HalfOpen { .. })
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

    fn change(&mut self, state: State) {
        *self = Self { state, epoch: self.epoch.wrapping_add(1) };
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

    fn admitted(breaker: &mut Breaker, now: Timestamp) -> Permit {
        match breaker.admit(&config(), now) {
            Admission::Admitted(permit) => permit,
            Admission::Refused(until) => panic!("refused until {until}"),
        }
    }

    fn fail(breaker: &mut Breaker, now: Timestamp) {
        let permit = admitted(breaker, now);
        breaker.failed(&config(), permit, now);
    }

    fn opened() -> Breaker {
        let mut breaker = Breaker::default();
        for _ in 0..3 {
            fail(&mut breaker, at(0));
        }
        breaker
    }

    #[test]
    fn failures_in_a_row_open_it_and_a_success_between_them_does_not() {
        assert_eq!(opened().refuses_until(&config(), at(9)), Some(at(10)));
        let mut mixed = Breaker::default();
        fail(&mut mixed, at(0));
        fail(&mut mixed, at(0));
        let permit = admitted(&mut mixed, at(0));
        mixed.succeeded(&config(), permit);
        fail(&mut mixed, at(0));
        assert_eq!(mixed.state_name(), "closed");
    }

    #[test]
    fn open_refuses_until_its_time_and_half_open_lets_the_permits_through() {
        let mut breaker = opened();
        let just_before = Timestamp::from_nanos(at(10).as_nanos() - 1);
        assert_eq!(breaker.admit(&config(), just_before), Admission::Refused(at(10)));
        let (first, second) = (admitted(&mut breaker, at(10)), admitted(&mut breaker, at(10)));
        assert_eq!(breaker.admit(&config(), at(11)), Admission::Refused(at(20)));
        breaker.succeeded(&config(), first);
        assert_eq!(breaker.state_name(), "half_open", "one of two probes is not enough");
        assert_eq!(breaker.admit(&config(), at(11)), Admission::Refused(at(20)), "no third probe");
        breaker.succeeded(&config(), second);
        assert_eq!(breaker.state_name(), "closed");
        assert_eq!(breaker.refuses_until(&config(), at(11)), None);
    }

    #[test]
    fn a_failed_probe_opens_it_again_and_a_late_outcome_changes_nothing() {
        let mut breaker = opened();
        let (first, second) = (admitted(&mut breaker, at(10)), admitted(&mut breaker, at(10)));
        breaker.failed(&config(), first, at(12));
        let reopened = breaker;
        assert_eq!(reopened.refuses_until(&config(), at(12)), Some(at(22)));
        breaker.succeeded(&config(), second);
        assert_eq!(breaker, reopened);
    }

    #[test]
    fn a_lost_probe_gives_its_permit_back_or_is_given_up_after_a_while() {
        let mut breaker = opened();
        let (lost, silent) = (admitted(&mut breaker, at(10)), admitted(&mut breaker, at(10)));
        breaker.released(lost);
        let third = admitted(&mut breaker, at(11));
        assert_eq!(breaker.admit(&config(), at(19)), Admission::Refused(at(20)));
        let fresh = admitted(&mut breaker, at(20));
        let before = breaker;
        breaker.succeeded(&config(), silent);
        breaker.released(third);
        assert_eq!(breaker, before, "what was given up does not count any more");
        breaker.succeeded(&config(), fresh);
        assert_eq!(breaker.state_name(), "half_open");
    }

    #[test]
    fn what_started_while_closed_does_not_close_an_open_breaker() {
        let mut breaker = Breaker::default();
        let early = admitted(&mut breaker, at(0));
        for _ in 0..3 {
            fail(&mut breaker, at(0));
        }
        breaker.succeeded(&config(), early);
        assert_eq!(breaker.state_name(), "open");
    }

    #[test]
    fn a_stored_state_at_the_end_of_its_numbers_does_not_panic() {
        for stored in [
            r#"{"state":{"half_open":{"probes":4294967295,"successes":1,"since":0}},"epoch":1}"#,
            r#"{"state":{"closed":{"failures":4294967295}},"epoch":18446744073709551615}"#,
        ] {
            let mut breaker: Breaker = serde_json::from_str(stored).unwrap();
            fail(&mut breaker, at(100));
            assert_eq!(breaker.state_name(), "open");
        }
    }
}
