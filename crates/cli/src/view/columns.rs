//! Texts and tables that fit the terminal. What is counted is columns: some characters take two, some none.

use std::fmt::Write as _;

use anstyle::Style;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::timeline::{Canvas, HEADING};

/// Cuts a text that is wider than that many columns.
pub(crate) fn cut(text: &str, width: usize, canvas: Canvas) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let dots = if canvas.has_unicode { "…" } else { "..." };
    let mut room = width.saturating_sub(dots.width());
    let mut short = String::new();
    for c in text.chars() {
        let columns = c.width().unwrap_or(0);
        if columns > room {
            break;
        }
        room -= columns;
        short.push(c);
    }
    short.push_str(dots);
    short
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

    /// Aligns a column to the right, as numbers are.
    pub(crate) fn numbers(mut self, column: usize) -> Self {
        if let Some(column) = self.0.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
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

    #[test]
    fn a_text_is_cut_by_columns_and_not_by_characters() {
        let canvas = Canvas { width: 80, has_unicode: true };
        assert_eq!(cut("plain", 5, canvas), "plain");
        assert_eq!(cut("plainer", 5, canvas), "plai…");
        assert_eq!(cut("订单处理", 8, canvas), "订单处理");
        assert_eq!(cut("订单处理", 6, canvas), "订单…");
        assert_eq!(cut("plainer", 5, Canvas { has_unicode: false, ..canvas }), "pl...");
        assert_eq!(padded("订单", 5), "订单 ");
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
