//! Instants and spans as values. Nothing here reads a clock: `now` is always an argument.

use std::fmt;
use std::time::Duration;

use jiff::SpanRelativeTo;
use serde::{Deserialize, Serialize};

const NANOS_PER_MILLI: u64 = 1_000_000;

/// An instant: nanoseconds since the Unix epoch, or since whatever a virtual clock calls zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(u64);

impl Timestamp {
    /// Returns the instant that many nanoseconds after the epoch.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Returns the instant that many milliseconds after the epoch; the last instant when that is beyond it.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(NANOS_PER_MILLI))
    }

    /// Returns the nanoseconds since the epoch.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the instant a span later, or the last instant there is.
    #[must_use]
    pub const fn saturating_add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0.saturating_mul(NANOS_PER_MILLI)))
    }

    /// Tells whether at least `span` lies between `earlier` and this instant.
    ///
    /// The elapsed time is compared, never `earlier + span`, so nothing overflows; a span too long to be
    /// counted in nanoseconds is never reached.
    #[must_use]
    pub const fn has_reached(self, earlier: Self, span: Span) -> bool {
        match span.0.checked_mul(NANOS_PER_MILLI) {
            Some(nanos) => self.0.saturating_sub(earlier.0) >= nanos,
            None => false,
        }
    }

    /// Reads an RFC 3339 instant such as `2026-03-01T12:00:00Z`.
    ///
    /// # Errors
    /// The text is no instant with an offset, or one before 1970 or after 2554.
    pub fn parse(text: &str) -> Result<Self, TimestampError> {
        let fail = |reason| TimestampError { text: text.to_owned(), reason };
        let instant: jiff::Timestamp =
            text.trim().parse().map_err(|_| fail("is no instant: write one such as 2026-03-01T12:00:00Z"))?;
        u64::try_from(instant.as_nanosecond()).map(Self).map_err(|_| fail("is before 1970 or after 2554"))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_nanosecond(i128::from(self.0)) {
            Ok(instant) => instant.fmt(f),
            Err(_) => write!(f, "{}ns", self.0),
        }
    }
}

/// Why a text is no instant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` {reason}")]
pub struct TimestampError {
    /// What was given.
    pub text: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

/// A length of time in whole milliseconds, the resolution of every policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The longest span that can be counted in nanoseconds: about 584 years.
    pub const LONGEST: Self = Self(u64::MAX / NANOS_PER_MILLI);

    /// Returns a span of that many milliseconds.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Returns a span of that many seconds, or the largest number of milliseconds.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000))
    }

    /// Returns the whole milliseconds.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Tells whether the span is empty.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Reads a span as people write it: `500ms`, `30s`, `2h 30m`, `1d`, `PT30S`.
    ///
    /// ```
    /// # use tidewheel_core as tidewheel;
    /// use tidewheel::time::Span;
    /// assert_eq!(Span::parse("1m 30s")?, Span::from_secs(90));
    /// # Ok::<(), tidewheel::time::SpanError>(())
    /// ```
    ///
    /// # Errors
    /// The text has no unit, is negative, has months or years (their length varies) or is finer than a
    /// millisecond.
    pub fn parse(text: &str) -> Result<Self, SpanError> {
        let fail = |reason| SpanError { text: text.to_owned(), reason };
        let trimmed = text.trim();
        if !trimmed.is_empty() && trimmed.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
            return Err(fail("it has no unit: write 30s or 500ms"));
        }
        let span: jiff::Span = trimmed.parse().map_err(|_| {
            // What reads well with small numbers has numbers that are too large.
            let small: String = trimmed.split(|c: char| c.is_ascii_digit()).collect::<Vec<_>>().join("0");
            let is_too_long = small.parse::<jiff::Span>().is_ok();
            fail(if is_too_long { TOO_LONG } else { "write it like 500ms, 30s, 10m or 2h 30m" })
        })?;
        let duration = span
            .to_duration(SpanRelativeTo::days_are_24_hours())
            .map_err(|_| fail("months and years have no fixed length: write days or hours"))?;
        if duration.is_negative() {
            return Err(fail("it is negative"));
        }
        let nanos = duration.as_nanos();
        if nanos % i128::from(NANOS_PER_MILLI) != 0 {
            return Err(fail("it is finer than a millisecond"));
        }
        match u64::try_from(nanos / i128::from(NANOS_PER_MILLI)) {
            Ok(millis) if Self(millis) <= Self::LONGEST => Ok(Self(millis)),
            _ => Err(fail(TOO_LONG)),
        }
    }
}

/// Writes the span the way it may be read again: `2h 30m`, `1s 500ms`, `0s`.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 5] =
            [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s"), (1, "ms")];
        if self.0 == 0 {
            return f.write_str("0s");
        }
        let mut rest = self.0;
        let mut gap = "";
        for (size, unit) in UNITS {
            let count = rest / size;
            if count > 0 {
                write!(f, "{gap}{count}{unit}")?;
                gap = " ";
            }
            rest %= size;
        }
        Ok(())
    }
}

impl Serialize for Span {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// Why a text is no span.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no span of time: {reason}")]
pub struct SpanError {
    /// What was given.
    pub text: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

/// What a policy's builder takes as a span: `"30s"`, a [`Duration`] or a [`Span`].
pub trait IntoSpan {
    /// Returns the span.
    ///
    /// # Errors
    /// What was given is no span of whole milliseconds.
    fn into_span(self) -> Result<Span, SpanError>;
}

/// What a policy's builder takes as a bound that may be absent on purpose: a span, or `"infinity"`.
pub trait IntoLimit {
    /// Returns the span; `None` for no bound.
    ///
    /// # Errors
    /// What was given is neither.
    fn into_limit(self) -> Result<Option<Span>, SpanError>;
}

impl IntoLimit for &str {
    fn into_limit(self) -> Result<Option<Span>, SpanError> {
        if self.trim() == "infinity" { Ok(None) } else { self.into_span().map(Some) }
    }
}

impl IntoLimit for String {
    fn into_limit(self) -> Result<Option<Span>, SpanError> {
        self.as_str().into_limit()
    }
}

impl IntoLimit for Span {
    fn into_limit(self) -> Result<Option<Span>, SpanError> {
        self.into_span().map(Some)
    }
}

impl IntoLimit for Duration {
    fn into_limit(self) -> Result<Option<Span>, SpanError> {
        self.into_span().map(Some)
    }
}

const TOO_LONG: &str = "it is longer than 584 years";

impl IntoSpan for Span {
    fn into_span(self) -> Result<Span, SpanError> {
        if self > Self::LONGEST {
            return Err(SpanError { text: format!("{}ms", self.0), reason: TOO_LONG });
        }
        Ok(self)
    }
}

impl IntoSpan for &str {
    fn into_span(self) -> Result<Span, SpanError> {
        Span::parse(self)
    }
}

impl IntoSpan for String {
    fn into_span(self) -> Result<Span, SpanError> {
        Span::parse(&self)
    }
}

impl IntoSpan for Duration {
    fn into_span(self) -> Result<Span, SpanError> {
        let fail = |reason| SpanError { text: format!("{self:?}"), reason };
        if !self.as_nanos().is_multiple_of(u128::from(NANOS_PER_MILLI)) {
            return Err(fail("it is finer than a millisecond"));
        }
        let millis = u64::try_from(self.as_millis()).map_err(|_| fail(TOO_LONG))?;
        Span(millis).into_span()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_as_people_write_them() {
        for (text, millis) in [
            ("500ms", 500),
            ("30s", 30_000),
            ("10m", 600_000),
            ("2h 30m", 9_000_000),
            ("1.5s", 1_500),
            ("1d", 86_400_000),
            ("PT30S", 30_000),
            (" 1s ", 1_000),
            ("0s", 0),
        ] {
            assert_eq!(Span::parse(text), Ok(Span::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn spans_that_mean_nothing_are_refused_with_the_reason() {
        for (text, part) in [
            ("30", "no unit"),
            ("1.5", "no unit"),
            ("-3s", "negative"),
            ("3s ago", "negative"),
            ("1us", "finer"),
            ("1.5ms", "finer"),
            ("1mo", "months"),
            ("999999999h", "584 years"),
            ("7304485d", "584 years"),
            ("soon", "write it like"),
            ("", "write it like"),
        ] {
            let message = Span::parse(text).unwrap_err().to_string();
            assert!(message.contains(part), "{text}: {message}");
        }
        assert!(Duration::from_nanos(1).into_span().is_err());
        assert!(Span::from_millis(u64::MAX).into_span().is_err() && Duration::MAX.into_span().is_err());
    }

    #[test]
    fn a_span_prints_what_it_reads() {
        for millis in [0, 1, 999, 1_000, 1_500, 61_001, 3_600_000, 90_061_001, u64::MAX / NANOS_PER_MILLI] {
            let span = Span::from_millis(millis);
            assert_eq!(Span::parse(&span.to_string()), Ok(span), "{span}");
        }
    }

    #[test]
    fn elapsed_time_is_compared_without_overflow() {
        let late = Timestamp::from_nanos(u64::MAX);
        let a_second_earlier = Timestamp::from_nanos(u64::MAX - 1_000_000_000);
        assert!(late.has_reached(a_second_earlier, Span::from_secs(1)));
        assert!(!late.has_reached(a_second_earlier, Span::from_millis(1_001)));
        assert!(!late.has_reached(Timestamp::from_nanos(0), Span::from_millis(u64::MAX)));
        assert_eq!(late.saturating_add(Span::from_secs(1)), late);
    }

    #[test]
    fn instants_are_read_and_shown_in_rfc_3339() {
        let instant = Timestamp::parse("2026-03-01T12:00:00Z").unwrap();
        assert_eq!(instant.to_string(), "2026-03-01T12:00:00Z");
        assert_eq!(Timestamp::parse("2026-03-01T13:00:00+01:00").unwrap(), instant);
        for bad in ["2026-03-01", "2026-03-01T12:00:00", "1969-12-31T23:59:59Z", "9999-01-01T00:00:00Z", "x"]
        {
            assert!(Timestamp::parse(bad).is_err(), "{bad}");
        }
    }
}
