//! Plain rows for people: a label and a value, or cells in columns. Lines are never broken, so that they can be read
//! by line.

use std::fmt::Write as _;

use super::columns::{columns_of, padded};
use crate::output::harmless;

/// Writes `Label: value` lines, each behind an indent.
pub(crate) fn block<L: AsRef<str>>(rows: &[(L, String)], indent: &str) -> String {
    let mut text = String::new();
    for (label, value) in rows {
        let _ = writeln!(text, "{indent}{}: {}", label.as_ref(), harmless(value));
    }
    text
}

/// Writes cells under headings, each column as wide as its widest cell.
pub(crate) fn table(headings: &[&str], rows: &[Vec<String>]) -> String {
    let headings = headings.iter().map(|heading| (*heading).to_owned()).collect();
    let shown = |row: &Vec<String>| row.iter().map(|cell| harmless(cell).into_owned()).collect();
    let rows: Vec<Vec<String>> = std::iter::once(headings).chain(rows.iter().map(shown)).collect();
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| columns_of(cell)).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| padded(cell, *width)).collect();
        let _ = writeln!(text, "{}", cells.join("  ").trim_end());
    }
    text
}

/// Joins names; `none` where there are none.
pub(crate) fn named<T: ToString>(names: &[T]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
