//! Tables of Markdown, and texts that stay texts in them; knows nothing of figures.

use std::fmt::Write as _;

/// Returns a table.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut text = String::new();
    let mut line = |cells: &mut dyn Iterator<Item = &str>| {
        text.push('|');
        for cell in cells {
            let _ = write!(text, " {cell} |");
        }
        text.push('\n');
    };
    line(&mut head.iter().copied());
    line(&mut head.iter().map(|_| "---"));
    for row in rows {
        line(&mut row.iter().map(String::as_str));
    }
    text.push('\n');
    text
}

/// Returns foreign text so that it is one line, and neither ends a cell nor means anything else.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' => {
                plain.push('\\');
                plain.push(character);
            }
            '&' => plain.push_str("&amp;"),
            steering if steering.is_control() => plain.push(' '),
            other => plain.push(other),
        }
    }
    plain
}

/// Returns a text as code in a cell.
pub(crate) fn code(text: &str) -> String {
    let text: String = text
        .chars()
        .map(|character| match character {
            '`' => '\'',
            steering if steering.is_control() => ' ',
            other => other,
        })
        .collect();
    format!("`{}`", text.replace('|', "\\|"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_a_line_for_each_row() {
        let rows = [vec!["chain".to_owned(), "1 ns".to_owned()]];
        assert_eq!(table(&["a", "b"], &rows), "| a | b |\n| --- | --- |\n| chain | 1 ns |\n\n");
    }

    #[test]
    fn foreign_text_stays_in_its_cell() {
        assert_eq!(plain("a|b <b> `c`\nd & e\u{1b}[1m"), r"a\|b \<b\> \`c\` d &amp; e \[1m");
        assert_eq!(code("a|b `c`\nd"), r"`a\|b 'c' d`");
    }
}
