//! How wide the columns of the rows are, so that they fit a terminal of any width. What is cut loses what matters least.

use super::state::{Line, Wants};
use crate::view::columns::{columns_of, columns_of_char, cut, cut_inside};
use crate::view::timeline::Canvas;

/// The headings.
pub(super) const HEADINGS: [&str; COUNT] = ["#", "Slug", "Name", "Status", "Wait", "Job"];

/// How many columns there are.
pub(super) const COUNT: usize = 6;

/// Between two columns.
pub(super) const GAP: usize = 2;

/// The column of the status, which has a colour.
pub(super) const STATUS: usize = 3;

/// The column of the ids, which are cut in the middle: their ends tell them apart.
const JOB: usize = 5;

/// How narrow each may become.
const LEAST: [usize; COUNT] = [1, 4, 6, 7, 6, 8];

/// The numbers and the status are not cut as long as anything else can be.
const GIVES: [bool; COUNT] = [false, true, true, false, true, true];

/// Returns the cells of a row.
pub(super) fn cells(line: &Line) -> [String; COUNT] {
    [
        line.order.to_string(),
        line.slug.clone(),
        line.name.clone(),
        line.status.to_string(),
        line.wait.clone(),
        line.called.clone(),
    ]
}

/// Returns how wide each column is so that all of them fit.
pub(super) fn widths(rows: &[[String; COUNT]], room: usize) -> [usize; COUNT] {
    let mut widths = HEADINGS.map(columns_of);
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(columns_of(cell));
        }
    }
    let room = room.saturating_sub(GAP * (COUNT - 1));
    for only_those in [true, false] {
        while widths.iter().sum::<usize>() > room {
            // The widest gives first, so that the narrow ones stay whole.
            let gives = |column: &usize| widths[*column] > LEAST[*column] && (GIVES[*column] || !only_those);
            let Some(widest) = (0..COUNT).filter(gives).max_by_key(|column| widths[*column]) else { break };
            widths[widest] -= 1;
        }
    }
    widths
}

/// Cuts a cell of a column to its width.
pub(super) fn fitted(column: usize, cell: &str, width: usize, wants: Wants) -> String {
    let canvas = Canvas { width, has_unicode: wants.has_unicode };
    if column == JOB { cut_inside(cell, width, canvas) } else { cut(cell, width, canvas) }
}

/// Breaks a text into lines of a width, between words where it can.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let width = width.max(2);
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut taken = 0;
    for c in text.chars() {
        let columns = columns_of_char(c);
        if taken + columns > width {
            // What stands behind the last blank goes along.
            let at = line.rfind(' ').filter(|at| !line[..*at].trim().is_empty());
            let rest = at.map(|at| line.split_off(at).trim_start().to_owned()).unwrap_or_default();
            lines.push(std::mem::replace(&mut line, rest));
            taken = columns_of(&line);
        }
        line.push(c);
        taken += columns;
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(slug: &str, name: &str, wait: &str, job: &str) -> [String; COUNT] {
        ["12", slug, name, "blocked_by_dependency", wait, job].map(str::to_owned)
    }

    #[test]
    fn columns_fit_from_sixty_to_two_hundred() {
        let long = "订单".repeat(60);
        let job = format!("wf-run_{}-build", "5c".repeat(16));
        for room in 60..=200 {
            for rows in [vec![row(&long, &long, &long, &job)], vec![row("", "build", "", &job)], Vec::new()] {
                let widths = widths(&rows, room);
                assert!(widths.iter().sum::<usize>() + GAP * (COUNT - 1) <= room, "{room}: {widths:?}");
                assert!(rows.is_empty() || widths[STATUS] == 21, "{room}: {widths:?}");
            }
        }
    }

    #[test]
    fn a_text_is_broken_between_words_and_in_long_ones() {
        assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
        assert_eq!(wrapped("  abcdefgh", 6), ["  abcd", "efgh"]);
        assert_eq!(wrapped("订单处理", 5), ["订单", "处理"]);
        assert_eq!(wrapped("", 5), [""]);
    }
}
