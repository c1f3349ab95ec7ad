//! An explanation drawn for people: headings, sentences broken at the width of the terminal, commands and output as they
//! are.

use std::fmt::Write as _;

use anstyle::Style;
use tidewheel_core::view::jobs::explain::{Line, Part};

use super::columns::{columns_of, cut, padded};
use super::timeline::{Canvas, FAINT, HEADING, wrapped};
use crate::output::harmless;

/// No text is easy to read that is wider.
const WIDEST_TEXT: usize = 100;

/// A line as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageLine {
    pub(crate) looks: Looks,
    pub(crate) text: String,
}

/// How a line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Looks {
    Plain,
    Heading,
    Faint,
}

/// Draws the parts of a page, with styles.
pub(crate) fn page(parts: &[Part], canvas: Canvas) -> String {
    let mut text = String::new();
    for line in lines(parts, canvas) {
        let style = match line.looks {
            Looks::Plain => Style::new(),
            Looks::Heading => HEADING,
            Looks::Faint => FAINT,
        };
        let _ = writeln!(text, "{style}{}{style:#}", line.text);
    }
    text
}

/// Returns the lines of a page. None is wider than the canvas, unless it is a command or one word.
pub(crate) fn lines(parts: &[Part], canvas: Canvas) -> Vec<PageLine> {
    let width = canvas.width.min(WIDEST_TEXT);
    let mut drawn = Vec::new();
    let mut add = |looks: Looks, text: &str| {
        drawn.extend(text.split('\n').map(|line| PageLine { looks, text: line.to_owned() }));
    };
    for part in parts {
        let mut indent = "";
        if let Some(heading) = part.heading {
            add(Looks::Plain, "");
            add(Looks::Heading, heading);
            indent = "  ";
        }
        let widths = widths(&part.lines);
        for line in &part.lines {
            match line {
                Line::Sentence(sentence) => add(Looks::Plain, &wrapped(&harmless(sentence), width, indent)),
                Line::Detail(detail) => {
                    add(Looks::Plain, &wrapped(&harmless(detail), width, &format!("{indent}  ")));
                }
                Line::Command(command) => add(Looks::Plain, &format!("{indent}  {}", harmless(command))),
                Line::Output { stream, text } => {
                    // A tab takes as many columns as it likes.
                    let line = format!("{indent}  [{stream}] {}", harmless(&text.replace('\t', " ")));
                    add(Looks::Faint, &cut(&line, canvas.width, canvas));
                }
                Line::Row(cells) => add(Looks::Plain, &row(cells, widths, canvas)),
            }
        }
    }
    drawn
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
    let detail = wrapped(&harmless(&cells[2]), canvas.width, &blank);
    let detail = detail.strip_prefix(&blank).unwrap_or(&detail);
    format!("{first}{detail}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::{self, Foreign, Shown};

    #[test]
    fn foreign_text_breaks_no_explanation() {
        let mut foreign = Foreign::new("explanations");
        for _ in 0..foreign::count() {
            let (text, canvas) = (foreign.text(), foreign.canvas());
            let output = Line::Output { stream: "stdout", text: text.clone() };
            let row = Line::Row(["dependencies".to_owned(), "not reached".to_owned(), text.clone()]);
            let lines =
                vec![Line::Sentence(text.clone()), Line::Detail(format!("it says: {text}")), output, row];
            let parts = [Part { heading: Some("Why it failed"), lines }];
            // What stands before a word that is too wide is blank where the word goes on below.
            let shown = page(&parts, canvas).replace("dependencies  not reached", &" ".repeat(25));
            Shown { text: &shown, width: Some(canvas.width), ..Shown::default() }.check(&text);
            // A command is not broken, not even in two.
            let parts = [Part { heading: None, lines: vec![Line::Command(text.clone())] }];
            Shown { text: &page(&parts, canvas), lines: Some(1), ..Shown::default() }.check(&text);
        }
    }
}
