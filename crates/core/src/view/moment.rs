//! Instants and lengths of time in words for people: how long ago, in how long, and the instant itself in UTC.

use crate::time::{Span, Timestamp};

const MILLI: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLI;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Says how long a number of nanoseconds is, with as much as people read: `450ms`, `1.2s`, `3m 20s`, `2d 4h`.
///
/// ```
/// use tidewheel_core::view::long;
/// assert_eq!([long(450_000_000), long(61_200_000_000)], ["450ms", "1m 1s"]);
/// ```
#[must_use]
pub fn long(nanos: u64) -> String {
    let two = |large: u64, small: u64| {
        let rest = nanos % large / small * small;
        Span::from_millis((nanos / large * large + rest) / MILLI).to_string()
    };
    match nanos {
        0 => "0s".to_owned(),
        1..MILLI => "<1ms".to_owned(),
        MILLI..SECOND => format!("{}ms", nanos / MILLI),
        SECOND..MINUTE => {
            let tenths = nanos / (SECOND / 10);
            if tenths.is_multiple_of(10) {
                format!("{}s", tenths / 10)
            } else {
                format!("{}.{}s", tenths / 10, tenths % 10)
            }
        }
        MINUTE..HOUR => two(MINUTE, SECOND),
        HOUR..DAY => two(HOUR, MINUTE),
        _ => two(DAY, HOUR),
    }
}

/// Returns how many nanoseconds lie between two instants; none if they are in the other order.
#[must_use]
pub const fn between(from: Timestamp, to: Timestamp) -> u64 {
    to.as_nanos().saturating_sub(from.as_nanos())
}

/// Says where an instant lies, seen from now: `3m 20s ago`, `in 5s`, `now`.
#[must_use]
pub fn relative(at: Timestamp, now: Timestamp) -> String {
    match (between(at, now), between(now, at)) {
        (0, 0) => "now".to_owned(),
        (0, ahead) => format!("in {}", long(ahead)),
        (past, _) => format!("{} ago", long(past)),
    }
}

/// Writes an instant in UTC to the second; what happened in between is for programs.
#[must_use]
pub fn absolute(at: Timestamp) -> String {
    Timestamp::from_nanos(at.as_nanos() / SECOND * SECOND).to_string()
}

/// Says where an instant lies in both ways: `3m ago (2026-03-01T12:00:00Z)`.
#[must_use]
pub fn moment(at: Timestamp, now: Timestamp) -> String {
    format!("{} ({})", relative(at, now), absolute(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_as_much_as_people_read() {
        let lengths = [
            (0, "0s"),
            (1, "<1ms"),
            (MILLI, "1ms"),
            (999 * MILLI + 999, "999ms"),
            (SECOND, "1s"),
            (1_260 * MILLI, "1.2s"),
            (MINUTE - 1, "59.9s"),
            (MINUTE, "1m"),
            (3 * MINUTE + 20 * SECOND + 5 * MILLI, "3m 20s"),
            (HOUR + 59 * SECOND, "1h"),
            (DAY - 1, "23h 59m"),
            (40 * DAY + 5 * HOUR + MINUTE, "40d 5h"),
        ];
        for (nanos, said) in lengths {
            assert_eq!(long(nanos), said);
        }
    }

    #[test]
    fn an_instant_is_told_from_both_sides() {
        let (earlier, later) = (Timestamp::from_millis(1_500), Timestamp::from_millis(4_000));
        assert_eq!(relative(earlier, later), "2.5s ago");
        assert_eq!(relative(later, earlier), "in 2.5s");
        assert_eq!(relative(later, later), "now");
        assert_eq!(moment(earlier, later), "2.5s ago (1970-01-01T00:00:01Z)");
    }
}
