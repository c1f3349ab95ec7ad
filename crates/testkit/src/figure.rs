//! What a benchmark measured and what a crash suite counted, as a line of JSON for each figure, so that `cargo xtask bench
//! report` and `cargo xtask crash` need not read prose; does nothing unless it is asked to, and prints nothing.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

/// Names the file that figures are added to.
pub const FILE_VARIABLE: &str = "TIDEWHEEL_BENCH_FILE";

/// Asks for short measurements, which show that a benchmark works and little more.
pub const QUICK_VARIABLE: &str = "TIDEWHEEL_BENCH_QUICK";

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Time, in nanoseconds.
    Nanos,
    /// How many in a second.
    PerSecond,
    /// Memory.
    Bytes,
    /// How many.
    Count,
}

/// Returns whether short measurements were asked for.
#[must_use]
pub fn is_quick() -> bool {
    std::env::var_os(QUICK_VARIABLE).is_some_and(|value| !value.is_empty())
}

/// Returns `short` if short measurements were asked for, and `full` if not.
pub fn quick_or<T>(short: T, full: T) -> T {
    if is_quick() { short } else { full }
}

/// Tells a figure by its samples: the middle one, and how far the others are from it.
pub fn measured(id: &str, unit: Unit, samples: &[f64]) {
    if let Some(line) = line(id, unit, samples) {
        add(&line);
    }
}

/// Tells a figure by how long it took each time, for each of so many items.
pub fn took(id: &str, items: usize, times: &[Duration]) {
    let each: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1e9 / items.max(1) as f64).collect();
    measured(id, Unit::Nanos, &each);
}

/// Tells how many of something there were.
pub fn counted(id: &str, count: usize) {
    measured(id, Unit::Count, &[count as f64]);
}

/// Tells what a figure may be at most.
pub fn goal(id: &str, at_most: f64) {
    add(&json!({ "id": id, "goal": at_most }));
}

/// Tells why a figure was not measured.
pub fn skipped(id: &str, why: &str) {
    add(&json!({ "id": id, "skipped": why }));
}

fn line(id: &str, unit: Unit, samples: &[f64]) -> Option<Value> {
    let middle = median(samples.to_vec())?;
    let spread = median(samples.iter().map(|sample| (sample - middle).abs()).collect());
    // One sample tells nothing about others.
    let spread = spread.filter(|_| samples.len() > 1);
    let unit = match unit {
        Unit::Nanos => "ns",
        Unit::PerSecond => "per_second",
        Unit::Bytes => "bytes",
        Unit::Count => "count",
    };
    Some(json!({ "id": id, "unit": unit, "median": middle, "spread": spread, "samples": samples.len() }))
}

fn median(mut samples: Vec<f64>) -> Option<f64> {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied()
}

/// Adds a line with one write, so that lines of two processes do not mix.
fn add(line: &Value) {
    let Some(path) = std::env::var_os(FILE_VARIABLE) else { return };
    let file = OpenOptions::new().append(true).create(true).open(&path);
    let written = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
    assert!(written.is_ok(), "figures cannot be added to {}: {written:?}", path.display());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_its_middle_sample_and_how_far_the_others_are() {
        let told = line("chain", Unit::Nanos, &[5.0, 1.0, 100.0, 4.0, 3.0]).unwrap();
        assert_eq!(told, json!({"id": "chain", "unit": "ns", "median": 4.0, "spread": 1.0, "samples": 5}));
    }

    #[test]
    fn one_sample_has_no_spread_and_none_is_no_figure() {
        let told = line("rate", Unit::PerSecond, &[7.5]).unwrap();
        assert_eq!(told["spread"], Value::Null);
        assert_eq!(told["unit"], "per_second");
        assert!(line("rate", Unit::PerSecond, &[]).is_none());
    }
}
