//! A number with its unit, as a person reads it: three digits that count, and no more; measures nothing.

use serde::Deserialize;

/// What a figure counts.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Time, in nanoseconds.
    #[serde(rename = "ns")]
    Nanos,
    /// How many in a second.
    #[serde(rename = "per_second")]
    PerSecond,
    /// Memory.
    #[serde(rename = "bytes")]
    Bytes,
    /// How many.
    #[serde(rename = "count")]
    Count,
}

/// Returns a value as it is shown: `1.23 µs`, `45,600 /s`.
pub(crate) fn shown(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Nanos => {
            let (scale, name) = match rounded(value.abs()) {
                below if below < 1e3 => (1.0, "ns"),
                below if below < 1e6 => (1e3, "µs"),
                below if below < 1e9 => (1e6, "ms"),
                _ => (1e9, "s"),
            };
            format!("{} {name}", digits(value / scale))
        }
        Unit::PerSecond => format!("{} /s", digits(value)),
        Unit::Bytes => format!("{} B", digits(value)),
        Unit::Count => digits(value),
    }
}

/// Returns a round value without the digits that it does not need.
pub(crate) fn round(value: f64, unit: Unit) -> String {
    let text = shown(value, unit);
    let (number, unit) = text.split_once(' ').unwrap_or((&text, ""));
    let number =
        if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
    format!("{number} {unit}").trim_end().to_owned()
}

/// Returns how often a value holds another one, as it is shown: `1.25 ×`.
pub(crate) fn times(value: f64, of: f64) -> Option<String> {
    let ratio = value / of;
    (ratio.is_finite() && ratio >= 0.0).then(|| format!("{} ×", digits(ratio)))
}

/// Returns a whole number with its thousands apart.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut apart = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            apart.push(',');
        }
        apart.push(digit);
    }
    apart
}

/// Returns a number with three digits that count; whole ones are shown whole.
fn digits(value: f64) -> String {
    let value = rounded(value);
    let size = value.abs();
    if size == 0.0 {
        "0".to_owned()
    } else if size >= 100.0 {
        let sign = if value < 0.0 { "-" } else { "" };
        // Too large a number is no measurement of ours, and is shown as it is.
        let whole = format!("{size:.0}").parse().map_or_else(|_| format!("{size:e}"), thousands);
        format!("{sign}{whole}")
    } else if size >= 10.0 {
        format!("{value:.1}")
    } else if size >= 0.01 {
        format!("{value:.2}")
    } else {
        format!("{value:.4}")
    }
}

/// Rounds to three digits that count, so that 999.7 ns is shown as a microsecond.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let scale = 10_f64.powf(2.0 - value.abs().log10().floor());
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_in_the_unit_that_fits() {
        let shown: Vec<String> = [0.0, 0.5, 12.34, 999.4, 999.7, 1_234.0, 45_600_000.0, 2.5e9, 61e9]
            .map(|value| shown(value, Unit::Nanos))
            .to_vec();
        let expected =
            ["0 ns", "0.50 ns", "12.3 ns", "999 ns", "1.00 µs", "1.23 µs", "45.6 ms", "2.50 s", "61.0 s"];
        assert_eq!(shown, expected);
    }

    #[test]
    fn large_numbers_have_their_thousands_apart() {
        assert_eq!(shown(123_456.0, Unit::PerSecond), "123,000 /s");
        assert_eq!(shown(-1_234.0, Unit::Count), "-1,230");
        assert_eq!(shown(199.6, Unit::Bytes), "200 B");
        assert_eq!([5e6, 2.5e3, 100.0].map(|value| round(value, Unit::Nanos)), ["5 ms", "2.5 µs", "100 ns"]);
        assert_eq!(round(10.0, Unit::Count), "10");
        assert_eq!(shown(0.001_23, Unit::Count), "0.0012");
        assert_eq!([0, 999, 1_000, 1_000_000].map(thousands), ["0", "999", "1,000", "1,000,000"]);
    }

    #[test]
    fn nothing_is_told_of_a_ratio_to_zero() {
        assert_eq!(times(3.0, 2.0).as_deref(), Some("1.50 ×"));
        assert_eq!(times(3.0, 0.0), None);
        assert_eq!(times(0.0, 0.0), None);
    }
}
