//! Problems of a text that somebody wrote, drawn with the line, the column and a caret under the place.

use std::collections::BTreeMap;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use tidewheel_core::{Location, Problem, Problems};

use crate::error::{Code, CommandError};
use crate::output::{self, harmless, harmless_in_place};
use crate::terminal;

/// How many problems are drawn for people; whoever has more begins with these.
const MOST_DRAWN: usize = 50;

/// What is wrong with a file and with those that it names.
#[derive(Debug)]
pub(crate) struct Wrong {
    /// The file, as messages name it.
    pub(crate) file: String,
    pub(crate) problems: Problems,
    /// The texts that were read, by the names of their files.
    pub(crate) sources: BTreeMap<String, String>,
}

impl Wrong {
    /// Draws all of it, and returns the error that sums it up.
    pub(crate) fn told(&self, code: Code) -> CommandError {
        draw_all(&self.problems, &self.file, &self.sources);
        let count = counted(self.problems.all().len());
        CommandError::new(code, format!("`{}` has {count}.", self.file))
    }
}

/// Draws the problems of some files for people. What names no file is of the one that is given.
fn draw_all(problems: &Problems, file: &str, sources: &BTreeMap<String, String>) {
    let width = terminal::width(std::io::stderr());
    for problem in problems.all().iter().take(MOST_DRAWN) {
        let file = problem.file.as_deref().unwrap_or(file);
        let source = sources.get(file).map_or("", String::as_str);
        output::drawn_problem(&draw(problem, file, source, width));
    }
    if problems.all().len() > MOST_DRAWN {
        output::hint(&format!("Only the first {MOST_DRAWN} are shown."));
    }
}

/// Says how many problems there are. Beyond some hundreds they are not told one by one, but by their number at the end.
pub(crate) fn counted(count: usize) -> String {
    const MOST_TOLD: usize = 200;
    match count {
        1 => "1 problem".to_owned(),
        _ if count > MOST_TOLD => format!("more than {MOST_TOLD} problems"),
        _ => format!("{count} problems"),
    }
}

/// Draws one problem of a file. The colours are left to whoever prints it.
pub(crate) fn draw(problem: &Problem, file: &str, source: &str, width: usize) -> String {
    let colon = if problem.path.is_empty() { "" } else { ": " };
    let title = harmless(&format!("{}{colon}{}", problem.path, problem.message)).into_owned();
    let file = harmless(file).into_owned();
    let mut group = Group::with_title(Level::ERROR.primary_title(title));
    group = match &problem.location {
        None => group.element(Origin::path(file)),
        Some(location) => {
            let (line, place) = first_line(source, location);
            let snippet = Snippet::source(harmless_in_place(line)).path(file).line_start(location.line);
            group.element(snippet.annotation(AnnotationKind::Primary.span(place)))
        }
    };
    if let Some(help) = &problem.help {
        group = group.element(Level::HELP.message(harmless(help).into_owned()));
    }
    Renderer::styled().term_width(width).render(&[group])
}

/// Returns the first line of a place, and the place in it.
fn first_line<'s>(source: &'s str, location: &Location) -> (&'s str, Range<usize>) {
    let start = location.span.start.min(source.len());
    let line_start = source[..start].rfind('\n').map_or(0, |newline| newline + 1);
    let line_end = source[start..].find('\n').map_or(source.len(), |newline| start + newline);
    let line_end = if source[..line_end].ends_with('\r') { (line_end - 1).max(start) } else { line_end };
    let end = location.span.end.clamp(start, line_end);
    (&source[line_start..line_end], start - line_start..end - line_start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::{self, Foreign, Shown};

    #[test]
    fn foreign_text_breaks_no_problem_and_its_caret() {
        let mut foreign = Foreign::new("problems");
        for _ in 0..foreign::count() {
            let (source, text, canvas) = (foreign.text(), foreign.text(), foreign.canvas());
            let mut places = [foreign.below(source.len() + 1), foreign.below(source.len() + 1)];
            places.sort_unstable();
            let [start, end] = places.map(|place| source.floor_char_boundary(place));
            let line = source[..start].matches('\n').count() + 1;
            let problem = Problem {
                file: None,
                path: text.clone(),
                message: text.clone(),
                location: (foreign.below(4) > 0).then_some(Location { line, column: 1, span: start..end }),
                help: Some(text.clone()),
            };
            let drawn = draw(&problem, &text, &source, canvas.width);
            Shown { text: &drawn, ..Shown::default() }.check(&(source, text));
        }
    }

    #[test]
    fn only_the_first_line_of_a_place_is_shown() {
        let shown = |source, span| first_line(source, &Location { line: 1, column: 1, span });
        assert_eq!(shown("a\r\nbcd\r\ne", 4..9), ("bcd", 1..3));
        assert_eq!(shown("a\nbcd", 1..1), ("a", 1..1));
        assert_eq!(shown("", 0..1), ("", 0..0));
        assert_eq!(shown("ab", 7..9), ("ab", 2..2));
    }
}
