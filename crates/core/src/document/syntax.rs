//! What is wrong with a text that is no TOML, told so that somebody who knows another language can mend it. Nothing here
//! reads a text.

use std::ops::Range;

use super::tree::{Problem, locate};

/// More lines than anybody mends at once.
const MOST_LINES: usize = 20;
/// More errors than are looked at.
const MOST_ERRORS: usize = 1_000;

/// Returns what to tell of the errors of a text: the first of each line, and none that only follows from another.
pub(super) fn problems(source: &str, errors: impl Iterator<Item = (String, Range<usize>)>) -> Vec<Problem> {
    let mut errors: Vec<(String, Range<usize>)> = errors.take(MOST_ERRORS).collect();
    errors.sort_by_key(|(_, span)| span.start);
    let mut problems: Vec<Problem> = Vec::new();
    let mut last = None;
    let (mut has_lost_table, mut has_foreign) = (false, false);
    for (message, span) in errors {
        let start = source.floor_char_boundary(span.start);
        let is_same_line = last.is_some_and(|last: usize| !source[last..start].contains('\n'));
        // What stands below a head that cannot be read seems to stand above it, for a second time.
        if is_same_line || has_lost_table && message.starts_with("duplicate key") {
            continue;
        }
        let help = help(source, &message, start);
        let is_foreign = help.as_deref().is_some_and(|help| help.contains(FOREIGN));
        // Whoever writes another language is told so once.
        if is_foreign && has_foreign {
            continue;
        }
        has_foreign |= is_foreign;
        last = Some(start);
        has_lost_table |= message.contains("table");
        let swallows = swallows(&message);
        problems.push(locate(source, Problem::new("", message).help_from(help), span));
        if swallows || problems.len() == MOST_LINES {
            break;
        }
    }
    problems
}

/// Tells whether everything that follows is taken for a part of what was not closed.
fn swallows(message: &str) -> bool {
    let is_list = message.contains("array") && !message.contains("array table");
    let is_table = message.contains("inline table") || message.contains("between key-value pairs");
    is_list || is_table || message.contains("multi-line")
}

/// What is said of a text in another language.
const FOREIGN: &str = "is read as TOML";

/// Says what to do about an error that people make who write other languages.
fn help(source: &str, message: &str, start: usize) -> Option<String> {
    let line_start = source[..start].rfind('\n').map_or(0, |newline| newline + 1);
    let line = source[line_start..].lines().next().unwrap_or_default().trim();
    let word = line.split([':', '=', ' ']).next().unwrap_or_default();
    let is_word =
        !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    let text = match () {
        () if source.trim_start().starts_with('{') => "this looks like JSON, and is read as TOML",
        () if line.starts_with("//") => "a comment begins with `#`",
        () if is_word && line[word.len()..].starts_with(':') => {
            return Some(format!("this looks like YAML, and is read as TOML: write {word} = …"));
        }
        () if line.starts_with("- ") => "this looks like YAML, and is read as TOML: a list is [ …, … ]",
        () if source[start..].starts_with(',') && message.contains("expected newline") => {
            "leave the comma out: each field has a line of its own"
        }
        () if message.contains("unicode") || message.contains("escape") => {
            "write a backslash twice, or put the text between single quotes"
        }
        () if message.contains("must be quoted") => "put the text between double quotes",
        () if message.contains("comma between array elements") => {
            "perhaps the list before it is not closed with `]`"
        }
        () if message.contains("between key-value pairs") => {
            "perhaps the table before it is not closed with `}`"
        }
        () if message.contains("duplicate key") => "each field can be there once: take one of them away",
        () => return None,
    };
    Some(text.to_owned())
}

#[cfg(test)]
mod tests {
    use crate::document::{Format, read};

    fn told(source: &str) -> Vec<String> {
        let found = read(source, Format::Toml).expect_err("it is no TOML");
        found.all().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_line_that_is_wrong_is_told_once() {
        assert_eq!(
            told("a = b\nc = 1\nd = 'x\ne = 2\n"),
            [
                "line 1, column 5: string values must be quoted, expected literal string (put the text between double quotes)",
                "line 3, column 7: invalid literal string, expected `'`",
            ]
        );
    }

    #[test]
    fn what_follows_from_something_unclosed_is_not_told() {
        let found = told("a = [1, 2\nb = 3\n[c]\nd = 'x'\n");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("line 2, ") && found[0].contains("`]`"), "{found:?}");
        let found = told("id = 'a'\n[[nodes]\nid = 'b'\n");
        assert_eq!(found.len(), 1, "{found:?}");
    }

    #[test]
    fn whoever_writes_another_language_is_told_so() {
        for (source, help) in [
            ("{\"id\": \"t\"}", "JSON"),
            ("id: t\n", "write id = …"),
            ("// a comment\n", "`#`"),
            ("id = 't',\n", "comma"),
            ("id = \"C:\\Users\"\n", "backslash"),
            ("id = 't'\nid = 'u'\n", "once"),
        ] {
            let found = told(source);
            assert!(found[0].contains(help), "{source}: {found:?}");
        }
        let found = told("id: t\nversion: v1\n");
        assert_eq!(found.len(), 1, "{found:?}");
    }
}
