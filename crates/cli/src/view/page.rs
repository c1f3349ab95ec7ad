//! An explanation drawn for people: headings, sentences broken at the width of the terminal, commands and output as they
//! are.

use std::fmt::Write as _;

use tidewheel_core::view::jobs::explain::{Line, Part};

use super::columns::{columns_of, cut, padded};
use super::timeline::{Canvas, FAINT, HEADING, wrapped};
use crate::output::harmless;

/// No text is easy to read that is wider.
const WIDEST_TEXT: usize = 100;

/// Draws the parts of a page.
pub(crate) fn page(parts: &[Part], canvas: Canvas) -> String {
    let width = canvas.width.min(WIDEST_TEXT);
    let mut text = String::new();
    for part in parts {
        let mut indent = "";
        if let Some(heading) = part.heading {
            let _ = writeln!(text, "\n{HEADING}{heading}{HEADING:#}");
            indent = "  ";
        }
        let widths = widths(&part.lines);
        for line in &part.lines {
            let drawn = match line {
                Line::Sentence(sentence) => wrapped(&harmless(sentence), width, indent),
                Line::Detail(detail) => wrapped(&harmless(detail), width, &format!("{indent}  ")),
                Line::Command(command) => format!("{indent}  {}", harmless(command)),
                Line::Output { stream, text } => {
                    let line = format!("{indent}  [{stream}] {text}");
                    format!("{FAINT}{}{FAINT:#}", cut(&line, canvas.width, canvas))
                }
                Line::Row(cells) => row(cells, widths, canvas),
            };
            let _ = writeln!(text, "{drawn}");
        }
    }
    text
}

/// Returns how wide the first two columns of the rows are.
fn widths(lines: &[Line]) -> [usize; 2] {
    let mut widths = [0; 2];
    for line in lines {
        if let Line::Row(cells) = line {
            for (width, cell) in widths.iter_mut().zip(cells) {
                *width = columns_of(cell).max(*width);
            }
        }
    }
    widths
}

/// Draws a row; what does not fit into its last column goes on below.
fn row(cells: &[String; 3], widths: [usize; 2], canvas: Canvas) -> String {
    let first = format!("  {}  {}  ", padded(&cells[0], widths[0]), padded(&cells[1], widths[1]));
    let blank = " ".repeat(columns_of(&first));
    let detail = wrapped(&harmless(&cells[2]), canvas.width.max(columns_of(&blank) + 20), &blank);
    let detail = detail.strip_prefix(&blank).unwrap_or(&detail);
    format!("{first}{detail}").trim_end().to_owned()
}
