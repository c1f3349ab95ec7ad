//! What holds for each source file: it says what it is, is not too long, and holds no unfinished work.

use crate::tokens::{Token, attribute_length, begins_with, bracketed_length, tokens};
use crate::tree::{assert_tidy, source_files};

/// The most lines that a file may have, its tests not counted; half of that is usual, and a type is never split to satisfy a number.
const LINES_AT_MOST: usize = 600;

/// Macros that mark unfinished work.
const UNFINISHED: [&str; 3] = ["dbg", "todo", "unimplemented"];

/// Returns a complaint if the file does not begin by saying what it is.
fn missing_first_line(path: &str, text: &str) -> Vec<String> {
    let first = text.lines().next().unwrap_or_default();
    match first.strip_prefix("//!") {
        Some(words) if !words.trim().is_empty() => Vec::new(),
        _ => vec![format!(
            "{path}:1: must begin with a `//!` line that says what the file is and what it must not do"
        )],
    }
}

/// Returns a complaint if the file is too long without the tests at its end.
fn too_many_lines(path: &str, text: &str) -> Vec<String> {
    let lines = match line_of_trailing_tests(&tokens(text)) {
        Some(line) => line - 1,
        None => text.lines().count(),
    };
    if lines <= LINES_AT_MOST {
        return Vec::new();
    }
    vec![format!("{path}: has {lines} lines without its tests, {LINES_AT_MOST} are the limit: split it")]
}

/// Returns a complaint for each attribute that allows a lint and each macro that marks unfinished work.
fn forbidden_marks(path: &str, text: &str) -> Vec<String> {
    let tokens = tokens(text);
    let mut complaints = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        let rest = &tokens[index..];
        if UNFINISHED.contains(&token.text) && begins_with(&rest[1..], &["!"]) {
            complaints.push(format!("{path}:{}: `{}!` marks unfinished work", token.line, token.text));
        }
        let attribute = &rest[..attribute_length(rest).unwrap_or(0)];
        if attribute.windows(2).any(|pair| begins_with(pair, &["allow", "("])) {
            complaints.push(format!(
                "{path}:{}: use `#[expect(lint, reason = \"…\")]`, which tells when to go, not `allow`",
                token.line
            ));
        }
    }
    complaints
}

/// Returns the line on which `#[cfg(test)] mod tests { … }` begins, if the file ends with it.
fn line_of_trailing_tests(tokens: &[Token<'_>]) -> Option<usize> {
    (0..tokens.len()).find_map(|index| {
        let mut rest = &tokens[index..];
        if !begins_with(rest, &["#", "[", "cfg", "(", "test", ")", "]"]) {
            return None;
        }
        while let Some(length) = attribute_length(rest) {
            rest = &rest[length..];
        }
        let body = rest.get(2..).filter(|_| begins_with(rest, &["mod", "tests", "{"]))?;
        (bracketed_length(body)? == body.len()).then(|| tokens[index].line)
    })
}

fn complaints_of(rule: fn(&str, &str) -> Vec<String>) -> Vec<String> {
    source_files().iter().flat_map(|file| rule(&file.path, &file.text)).collect()
}

#[test]
fn each_file_says_what_it_is() {
    assert_tidy(&complaints_of(missing_first_line));
}

#[test]
fn no_file_is_too_long() {
    assert_tidy(&complaints_of(too_many_lines));
}

#[test]
fn nothing_is_allowed_or_unfinished() {
    assert_tidy(&complaints_of(forbidden_marks));
}

#[test]
fn a_file_without_a_first_line_is_found() {
    for text in ["", "use a;\n//! Late.\n", "// Not a doc.\n", "//!\n", "\n//! Late.\n"] {
        assert_eq!(missing_first_line("a.rs", text).len(), 1, "{text:?}");
    }
    assert_eq!(missing_first_line("a.rs", "//! Says it.\n"), [""; 0]);
}

#[test]
fn a_long_file_is_found_and_its_tests_are_not_counted() {
    let code = "fn f() {}\n".repeat(LINES_AT_MOST);
    let tests = "#[cfg(test)]\n#[expect(clippy::a, reason = \"b\")]\nmod tests {\n    fn f() {}\n}\n";
    assert_eq!(too_many_lines("a.rs", &code), [""; 0]);
    assert_eq!(too_many_lines("a.rs", &format!("{code}{tests}")), [""; 0]);
    assert_eq!(
        too_many_lines("a.rs", &format!("{code}fn g() {{}}\n{tests}")),
        ["a.rs: has 601 lines without its tests, 600 are the limit: split it"]
    );
}

#[test]
fn only_tests_at_the_end_are_not_counted() {
    let code = "fn f() {}\n".repeat(LINES_AT_MOST);
    let tests = "#[cfg(test)]\nmod tests {\n    fn f() {}\n}\n";
    assert_eq!(too_many_lines("a.rs", &format!("{tests}{code}")).len(), 1);
    let other = "#[cfg(test)]\nmod helpers {\n}\n";
    assert_eq!(too_many_lines("a.rs", &format!("{code}{other}")).len(), 1);
}

#[test]
fn each_forbidden_mark_is_found() {
    for text in [
        "#[allow(dead_code)]\nfn f() {}",
        "#![allow(missing_docs)]",
        "#[cfg_attr(test, allow(unused))]\nfn f() {}",
        "fn f() { todo!() }",
        "fn f() { unimplemented!(\"later\") }",
        "fn f() { dbg![1]; }",
    ] {
        assert_eq!(forbidden_marks("a.rs", text).len(), 1, "{text}");
    }
}

#[test]
fn words_in_comments_and_other_uses_are_free() {
    let text = "// todo!() and #[allow(a)]\n#[expect(a, reason = \"allow(b)\")]\n\
                fn allow(todo: u8) { gate.allow(todo) }";
    assert_eq!(forbidden_marks("a.rs", text), [""; 0]);
}
