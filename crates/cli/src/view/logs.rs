//! What processes wrote, made fit to be shown: without sequences that steer a terminal.

use crate::output::harmless;

/// Returns a line of a log as a terminal would have shown it in the end, without anything that steers one.
pub(crate) fn plain(line: &str) -> String {
    let stripped = anstream::adapter::strip_str(line).to_string();
    // A progress bar writes over itself; what stood there last counts.
    let line = stripped.trim_end_matches('\r');
    let line = line.rsplit('\r').next().unwrap_or_default();
    // Tabs are harmless and what tables are made of.
    line.split('\t').map(harmless).collect::<Vec<_>>().join("\t")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::{self, Foreign, Shown};

    #[test]
    fn foreign_text_breaks_no_line_of_a_log() {
        let mut foreign = Foreign::new("logs");
        for _ in 0..foreign::count() {
            let bytes = foreign.bytes();
            for line in bytes.split(|byte| *byte == b'\n') {
                let text = plain(&String::from_utf8_lossy(line));
                Shown { text: &text, lines: Some(1), has_tabs: true, ..Shown::default() }.check(&line);
            }
        }
    }

    #[test]
    fn nothing_is_left_that_steers_a_terminal() {
        assert_eq!(plain("\u{1b}[31mred\u{1b}[0m\tplain \u{1b}]0;title\u{7}ü"), "red\tplain ü");
        assert_eq!(plain("10%\r50%\r100%\r"), "100%");
        assert_eq!(plain("a\u{9b}2Jb\u{202e}c"), r"a\u{9b}2Jb\u{202e}c");
        assert_eq!(plain(""), "");
    }
}
