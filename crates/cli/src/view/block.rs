//! Plain rows for people: a label and a value. Lines are never broken, so that they can be read by line.

use std::fmt::Write as _;

use crate::output::harmless;

/// Writes `Label: value` lines, each behind an indent.
pub(crate) fn block<L: AsRef<str>>(rows: &[(L, String)], indent: &str) -> String {
    let mut text = String::new();
    for (label, value) in rows {
        let _ = writeln!(text, "{indent}{}: {}", label.as_ref(), harmless(value));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::{self, Foreign, Shown};

    #[test]
    fn foreign_text_breaks_no_block() {
        let mut foreign = Foreign::new("blocks");
        for _ in 0..foreign::count() / 4 {
            let texts: Vec<String> = (0..4).map(|_| foreign.text()).collect();
            let rows: Vec<(&str, String)> = texts.iter().map(|text| ("Label", text.clone())).collect();
            Shown { text: &block(&rows, "  "), lines: Some(4), ..Shown::default() }.check(&texts);
        }
    }
}
