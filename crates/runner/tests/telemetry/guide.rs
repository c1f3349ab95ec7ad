//! The tables of the guide say what the table in the code says.

use tidewheel_runner::telemetry::{SIGNALS, Signal};

fn row(signal: &Signal) -> String {
    let Signal { name, kind, level, fields, when } = signal;
    let fields: Vec<String> = fields.iter().map(|field| format!("`{field}`")).collect();
    let fields = if fields.is_empty() { String::new() } else { format!("{} ", fields.join(", ")) };
    match level {
        Some(level) => format!("| `{name}` | {} | {level} | {fields}| {when} |", kind.name()),
        None => format!("| `{name}` | {} | {fields}| {when} |", kind.name()),
    }
}

#[test]
fn every_signal_has_its_row_in_the_guide_and_every_row_its_signal() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/telemetry.md");
    let guide = std::fs::read_to_string(path).unwrap();
    let rows: Vec<&str> = guide.lines().filter(|line| line.starts_with("| `tidewheel")).collect();
    let expected: Vec<String> = SIGNALS.iter().map(row).collect();
    assert_eq!(rows, expected, "the guide should have:\n{}", expected.join("\n"));
}
