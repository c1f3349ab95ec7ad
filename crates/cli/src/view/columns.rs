//! Texts and tables that fit the terminal. What is counted is columns: some characters take two, some none.

use std::fmt::Write as _;

use anstyle::Style;
use comfy_table::{ColumnConstraint, ContentArrangement, Table};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::timeline::{Canvas, HEADING};

/// Cuts a text that is wider than that many columns on any terminal: some draw signs that are joined as one, others do
/// not.
pub(crate) fn cut(text: &str, width: usize, canvas: Canvas) -> String {
    if is_within(text, width) {
        return text.to_owned();
    }
    // Where there is no room for all of the dots, there are fewer.
    let dots: String = if canvas.has_unicode { "…" } else { "..." }.chars().take(width).collect();
    let mut short = beginning(text, width.saturating_sub(dots.width()));
    short.push_str(&dots);
    short
}

/// Cuts the middle out of a text that is wider than that many columns: its beginning says what it is, its end which.
pub(crate) fn cut_inside(text: &str, width: usize, canvas: Canvas) -> String {
    if is_within(text, width) {
        return text.to_owned();
    }
    let mut head = cut(text, width / 3 + 1, canvas);
    let room = width.saturating_sub(head.width());
    let mut taken = 0;
    let fits = |c: &char| {
        taken += columns_of_char(*c);
        taken <= room
    };
    let tail: Vec<char> = text.chars().rev().take_while(fits).collect();
    // Marks that belong to a character which is cut are cut with it.
    head.extend(tail.into_iter().rev().skip_while(|c| c.width().unwrap_or(0) == 0));
    if head.width() > width { cut(text, width, canvas) } else { head }
}

/// Returns as much of the beginning of a text as fits into that many columns.
fn beginning(text: &str, room: usize) -> String {
    let mut taken = 0;
    let fits = |c: &char| {
        taken += columns_of_char(*c);
        taken <= room
    };
    text.chars().take_while(fits).collect()
}

/// Tells whether a text is no wider than that on any terminal, whether it draws signs that are joined as one or not.
fn is_within(text: &str, width: usize) -> bool {
    text.width().max(text.chars().map(columns_of_char).sum()) <= width
}

/// Fills a text with blanks up to that many columns.
pub(crate) fn padded(text: &str, width: usize) -> String {
    let blank = width.saturating_sub(text.width());
    format!("{text}{:blank$}", "")
}

/// Returns how many columns a text takes.
pub(crate) fn columns_of(text: &str) -> usize {
    text.width()
}

/// Returns how many columns a character adds at most to those before it.
pub(crate) fn columns_of_char(c: char) -> usize {
    const AS_A_PICTURE: char = '\u{fe0f}';
    // A sign that is narrow by itself is wide as a picture.
    if c == AS_A_PICTURE { 1 } else { c.width().unwrap_or(0) }
}

/// A table without lines. What does not fit is broken into several lines.
pub(crate) struct Grid(Table);

impl Grid {
    /// Returns a table with headings.
    pub(crate) fn new(headings: &[&str], canvas: Canvas) -> Self {
        let mut table = Table::new();
        table.load_style(comfy_table::presets::NOTHING);
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(u16::try_from(canvas.width).unwrap_or(u16::MAX));
        table.set_header(headings);
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        Self(table)
    }

    /// Keeps the words of a column whole, whatever happens to the others.
    pub(crate) fn whole(mut self, columns: &[usize]) -> Self {
        for column in columns {
            if let Some(column) = self.0.column_mut(*column) {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
        self
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.0.add_row(cells.into_iter().collect::<Vec<_>>());
    }

    /// Returns the table with each line behind an indent.
    pub(crate) fn drawn(&self, indent: &str) -> String {
        let mut text = String::new();
        for (index, line) in self.0.lines().enumerate() {
            let (style, line) = (if index == 0 { HEADING } else { Style::new() }, line.trim_end().to_owned());
            let _ = writeln!(text, "{indent}{style}{line}{style:#}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::{self, Foreign, Shown};
    use crate::output::harmless;

    #[test]
    fn foreign_text_is_cut_and_laid_out_in_any_width() {
        let mut foreign = Foreign::new("columns");
        for _ in 0..foreign::count() {
            let (text, canvas) = (foreign.text(), foreign.canvas());
            let safe = harmless(&text);
            for width in [0, 1, 2, 4, 9, canvas.width] {
                let short = cut(&safe, width, canvas);
                assert!(columns_of(&short) <= width, "{short:?} of {text:?} is wider than {width}");
                assert_eq!(columns_of(&padded(&short, width)), width, "{short:?} of {text:?}");
            }
            let mut grid = Grid::new(&["RUN", "WHY", "WORKFLOW"], canvas);
            grid.row([safe.to_string(), safe.to_string(), "order".to_owned()]);
            Shown { text: &grid.drawn(""), width: Some(canvas.width), ..Shown::default() }.check(&text);
        }
    }

    #[test]
    fn a_text_is_cut_by_columns_and_not_by_characters() {
        let canvas = Canvas { width: 80, has_unicode: true };
        assert_eq!(cut("plain", 5, canvas), "plain");
        assert_eq!(cut("plainer", 5, canvas), "plai…");
        assert_eq!(cut("订单处理", 8, canvas), "订单处理");
        assert_eq!(cut("订单处理", 6, canvas), "订单…");
        assert_eq!(cut("plainer", 5, Canvas { has_unicode: false, ..canvas }), "pl...");
        assert_eq!(padded("订单", 5), "订单 ");
        // Signs that a mark makes twice as wide.
        assert_eq!(columns_of(&cut(&"☎\u{fe0f}".repeat(9), 5, canvas)), 5);
    }

    #[test]
    fn an_id_keeps_its_end() {
        let canvas = Canvas { width: 80, has_unicode: true };
        assert_eq!(cut_inside("wf-run_5c5c5c5c-build", 12, canvas), "wf-r…c-build");
        assert_eq!(cut_inside("wf-run_5c", 12, canvas), "wf-run_5c");
        assert_eq!(cut_inside("订单订单订单e\u{301}nd", 7, canvas), "订…e\u{301}nd");
    }

    #[test]
    fn no_line_of_a_table_is_wider_than_the_canvas() {
        for width in 40..=200 {
            let mut grid = Grid::new(&["RUN", "WHY"], Canvas { width, has_unicode: true });
            grid.row(["订单".repeat(40), "a reason with words ".repeat(9)]);
            let text = anstream::adapter::strip_str(&grid.drawn("")).to_string();
            assert!(text.lines().all(|line| columns_of(line) <= width), "{width}:\n{text}");
        }
    }
}
