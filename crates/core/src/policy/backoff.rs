//! How long to wait before a retry: backoff and jitter as pure functions of the attempt and its identity.
//!
//! A stored schedule must replay for ever, so nothing here may change what it returns: no random numbers,
//! no floating point.

use std::fmt;

use super::options::word_enum;
use crate::time::Span;

/// How the delay grows from attempt to attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backoff {
    /// No delay.
    #[default]
    None,
    /// The base delay each time.
    Fixed,
    /// The base delay times the number of the failed attempt, counted from one.
    Linear,
    /// The base delay times a coefficient to the power of the attempt, counted from zero.
    Exponential(Coefficient),
}

impl Backoff {
    /// Returns an exponential backoff that doubles.
    ///
    /// ```
    /// # use tidewheel_core as tidewheel;
    /// use tidewheel::policy::{Backoff, JitterSeed, Policy};
    ///
    /// let policy = Policy::new().max_retries(3).backoff(Backoff::exponential()).base_delay("1s").resolved()?;
    /// let delay = |failed| policy.delays.after(failed, JitterSeed::new("run-1", "fetch")).to_string();
    /// assert_eq!([delay(0), delay(1), delay(2)], ["1s", "2s", "4s"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn exponential() -> Self {
        Self::Exponential(Coefficient::DOUBLE)
    }

    /// Returns the name that policy files use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Fixed => "fixed",
            Self::Linear => "linear",
            Self::Exponential(_) => "exponential",
        }
    }
}

/// The growth of an exponential backoff, in thousandths and at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coefficient(u32);

impl Coefficient {
    /// Two: each delay is double the one before.
    pub const DOUBLE: Self = Self(2_000);

    /// Returns the coefficient of that many thousandths, or `None` below one, where delays would shrink.
    #[must_use]
    pub const fn from_milli(milli: u32) -> Option<Self> {
        if milli < 1_000 { None } else { Some(Self(milli)) }
    }

    /// Returns the coefficient for a number with at most three decimals, such as `1.5`.
    #[must_use]
    pub fn from_number(number: f64) -> Option<Self> {
        let milli = number * 1_000.0;
        let whole = milli.round();
        if (milli - whole).abs() > 1e-6 || !(1_000.0..=f64::from(u32::MAX)).contains(&whole) {
            return None;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the range was checked and the number is whole"
        )]
        Self::from_milli(whole as u32)
    }

    /// Returns the thousandths.
    #[must_use]
    pub const fn as_milli(self) -> u32 {
        self.0
    }
}

/// Writes `2` or `1.5`.
impl fmt::Display for Coefficient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / 1_000, self.0 % 1_000);
        if rest == 0 {
            return write!(f, "{whole}");
        }
        write!(f, "{whole}.{}", format!("{rest:03}").trim_end_matches('0'))
    }
}

word_enum! {
    /// How a delay is spread, so that work which failed together does not come back together.
    #[derive(Default)]
    pub enum Jitter {
        /// The delay as it is.
        #[default]
        None = "none",
        /// Anything from one millisecond to the delay.
        Full = "full",
        /// Anything from half the delay, rounded up, to the delay.
        Equal = "equal",
    }
}

/// The delays of one policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delays {
    /// How they grow.
    pub backoff: Backoff,
    /// How they are spread.
    pub jitter: Jitter,
    /// The first delay.
    pub base: Span,
    /// The longest delay, applied before jitter.
    pub max: Span,
}

impl Delays {
    /// Returns the delay after the failed `attempt` (counted from zero) of the work that `seed` identifies.
    ///
    /// ```
    /// # use tidewheel_core as tidewheel;
    /// use tidewheel::policy::{Backoff, Delays, Jitter, JitterSeed};
    /// use tidewheel::time::Span;
    ///
    /// let delays = Delays {
    ///     backoff: Backoff::exponential(),
    ///     jitter: Jitter::Full,
    ///     base: Span::from_millis(500),
    ///     max: Span::from_secs(30),
    /// };
    /// let seed = JitterSeed::new("run-1", "fetch");
    /// assert_eq!(delays.after(1, seed), Span::from_millis(871)); // today, tomorrow, everywhere
    /// ```
    #[must_use]
    pub fn after(&self, attempt: u32, seed: JitterSeed) -> Span {
        let raw = self.raw(attempt);
        if raw == 0 {
            return Span::ZERO;
        }
        Span::from_millis(match self.jitter {
            Jitter::None => raw,
            Jitter::Full => 1 + scale(seed.hash(attempt), raw),
            Jitter::Equal => {
                let half = raw.div_ceil(2);
                // Invariant: raw - half + 1 cannot overflow, because half is at least one.
                half + scale(seed.hash(attempt), raw - half + 1)
            }
        })
    }

    /// Returns the delay before jitter, in milliseconds and capped.
    fn raw(&self, attempt: u32) -> u64 {
        let (base, max) = (self.base.as_millis(), self.max.as_millis());
        match self.backoff {
            Backoff::None => 0,
            Backoff::Fixed => base.min(max),
            Backoff::Linear => base.saturating_mul(u64::from(attempt) + 1).min(max),
            Backoff::Exponential(coefficient) => grow(base, max, u64::from(coefficient.as_milli()), attempt),
        }
    }
}

/// Multiplies by a coefficient in thousandths once per attempt, rounding down at each step and stopping at
/// the cap. The number of steps is bounded whatever the attempt: a step that changes nothing ends it.
fn grow(base: u64, max: u64, coefficient_milli: u64, attempt: u32) -> u64 {
    let mut raw = base;
    for _ in 0..attempt {
        if raw >= max {
            break;
        }
        let next = match raw.checked_mul(coefficient_milli) {
            Some(product) => product / 1_000,
            None => {
                let product = u128::from(raw) * u128::from(coefficient_milli) / 1_000;
                u64::try_from(product).unwrap_or(u64::MAX)
            }
        };
        if next == raw {
            break;
        }
        raw = next;
    }
    raw.min(max)
}

/// Maps a hash evenly onto `0..below`.
fn scale(hash: u64, below: u64) -> u64 {
    let product = u128::from(hash) * u128::from(below);
    u64::try_from(product >> 64).expect("invariant: the product of two u64 has at most 128 bits")
}

/// Who is waiting: the identity that jitter is a function of, folded into one number.
///
/// Equal identities give equal delays in every process; different items of a map, being different
/// runnables, do not come back in step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JitterSeed(u64);

impl JitterSeed {
    /// The salt of every stored schedule; a new one would be a new schedule.
    pub const SALT: &'static str = "v1";

    /// Returns the seed of a node (a runnable id for steps, a job id for jobs) in a run.
    #[must_use]
    pub fn new(run_id: &str, node: &str) -> Self {
        Self::salted(Self::SALT, run_id, node)
    }

    /// Returns the seed under another salt.
    #[must_use]
    pub fn salted(salt: &str, run_id: &str, node: &str) -> Self {
        const FNV_OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
        let mut state = FNV_OFFSET_BASIS;
        for part in [salt, run_id, node] {
            // The length goes first, so that ("a", "bc") and ("ab", "c") differ.
            let length = u32::try_from(part.len()).unwrap_or(u32::MAX);
            state = fnv_1a(state, &length.to_le_bytes());
            state = fnv_1a(state, part.as_bytes());
        }
        Self(state)
    }

    /// Returns the seed with that folded number, as a stored decision has it.
    #[must_use]
    pub const fn from_folded(folded: u64) -> Self {
        Self(folded)
    }

    /// Returns the folded number.
    #[must_use]
    pub const fn folded(self) -> u64 {
        self.0
    }

    /// Returns the evenly spread hash of one attempt.
    #[must_use]
    pub fn hash(self, attempt: u32) -> u64 {
        split_mix_64(fnv_1a(self.0, &attempt.to_le_bytes()))
    }
}

fn fnv_1a(mut state: u64, bytes: &[u8]) -> u64 {
    for byte in bytes {
        state = (state ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    state
}

fn split_mix_64(state: u64) -> u64 {
    let mut mixed = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exponential(base: u64, max: u64, milli: u32) -> Delays {
        Delays {
            backoff: Backoff::Exponential(Coefficient::from_milli(milli).unwrap()),
            jitter: Jitter::None,
            base: Span::from_millis(base),
            max: Span::from_millis(max),
        }
    }

    #[test]
    fn growth_ends_in_bounded_steps_at_any_attempt() {
        let seed = JitterSeed::new("r", "n");
        assert_eq!(exponential(1, 30_000, 1_001).after(u32::MAX, seed), Span::from_millis(1));
        assert_eq!(exponential(1_000, u64::MAX, 1_001).after(u32::MAX, seed), Span::from_millis(u64::MAX));
        assert_eq!(exponential(u64::MAX - 1, u64::MAX, u32::MAX).after(9, seed), Span::from_millis(u64::MAX));
    }

    #[test]
    fn a_base_above_the_cap_is_capped() {
        assert_eq!(
            exponential(60_000, 30_000, 2_000).after(0, JitterSeed::new("r", "n")),
            Span::from_secs(30)
        );
    }

    #[test]
    fn coefficients_have_three_decimals_and_never_shrink_a_delay() {
        assert_eq!(Coefficient::from_number(1.5), Coefficient::from_milli(1_500));
        assert_eq!(Coefficient::from_number(2.0).unwrap().to_string(), "2");
        assert_eq!(Coefficient::from_number(1.25).unwrap().to_string(), "1.25");
        for bad in [0.999, 0.0, -1.0, 1.0005, f64::NAN, f64::INFINITY, 1e12] {
            assert_eq!(Coefficient::from_number(bad), None, "{bad}");
        }
    }
}
