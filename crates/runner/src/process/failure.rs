//! What a command failed of, for policies to match and for people to read.

use std::error::Error as _;
use std::ffi::OsStr;
use std::io::ErrorKind;

use tidewheel_core::policy::{ErrorCode, Failure};

use super::capture::Captured;
use super::run::{ProcessError, StartError};

/// A failure shows so many of the last lines of what a command complained about,
const LINES: usize = 10;
/// and not more than so many bytes of them: every failed attempt is stored.
const BYTES: usize = 2 * 1024;

/// The failure of a command that was started and did not succeed.
pub(super) fn ended(program: &str, code: impl Into<ErrorCode>, how: &str, stderr: &Captured) -> Failure {
    let message = said(stderr).unwrap_or_else(|| format!("{program} {how} and wrote nothing to stderr"));
    Failure::new(message).code(code)
}

/// The failure of a command that was not started.
pub(crate) fn not_started(error: &StartError) -> Failure {
    let (program, source) = (&error.program, &error.source);
    let name = shown(program.name().unwrap_or_default());
    let directory = program.directory().filter(|directory| !directory.is_dir());
    match (source.kind(), directory) {
        _ if program.name().is_none() => {
            Failure::new("there is no program to run: the first item of a command is its program")
                .code("not_found")
                .non_retryable()
        }
        (ErrorKind::NotFound | ErrorKind::NotADirectory, Some(directory)) => {
            let directory = shown(directory.as_os_str());
            let message = format!(
                "cannot run {name} in {directory}: there is no such directory; create it, or give another one with \
                 current_dir"
            );
            Failure::new(message).code("not_found").non_retryable()
        }
        (ErrorKind::NotFound, None) if name.contains('/') => {
            let message = format!(
                "cannot find the program {name}: there is no such file, or the interpreter that its first line names \
                 is missing; a path without a slash in front counts from the directory of the command"
            );
            Failure::new(message).code("not_found").non_retryable()
        }
        (ErrorKind::NotFound, None) => {
            let message = format!(
                "cannot find the program {name} in any directory of PATH: install it, or give its whole path"
            );
            Failure::new(message).code("not_found").non_retryable()
        }
        (ErrorKind::PermissionDenied, _) => {
            let message = format!(
                "may not run the program {name}: make it executable with chmod +x, and its directory accessible"
            );
            Failure::new(message).code("not_executable").non_retryable()
        }
        (kind, _) => {
            let failure = Failure::new(format!("cannot start the program {name}: {source}")).code("spawn");
            // A system that is short of something has it again later; what is wrong with the command stays.
            let stays = matches!(
                kind,
                ErrorKind::InvalidInput | ErrorKind::ArgumentListTooLong | ErrorKind::NotADirectory
            );
            if stays { failure.non_retryable() } else { failure }
        }
    }
}

/// The failure of a command of which nobody knows what came.
pub(super) fn unknown(error: &ProcessError) -> Failure {
    let cause = error.source().map(|source| format!(": {source}")).unwrap_or_default();
    Failure::new(format!("{error}{cause}")).code("process")
}

/// Returns the last lines of what a process complained about; `None` if it did not.
pub(crate) fn said(stderr: &Captured) -> Option<String> {
    let text = String::from_utf8_lossy(&stderr.bytes);
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    let by_lines = text.rmatch_indices('\n').nth(LINES - 1).map_or(0, |(at, _)| at + 1);
    let by_bytes = text.ceil_char_boundary(text.len().saturating_sub(BYTES));
    let begin = by_lines.max(by_bytes);
    let before = if begin > 0 || stderr.is_truncated { "… " } else { "" };
    Some(format!("{before}{}", harmless(&text[begin..])))
}

/// Returns a name or a path as people can read it.
pub(super) fn shown(name: &OsStr) -> String {
    harmless(&name.to_string_lossy())
}

/// Returns a text in which everything that could steer a terminal is written out, but for the ends of lines.
pub(crate) fn harmless(text: &str) -> String {
    let is_harmful = |c: char| {
        let steers_text = matches!(
            c,
            '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        );
        (c.is_control() && c != '\n' && c != '\t') || steers_text
    };
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if is_harmful(c) { safe.extend(c.escape_default()) } else { safe.push(c) }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said_of(text: &str) -> Option<String> {
        said(&Captured { bytes: text.as_bytes().to_vec(), is_truncated: false })
    }

    #[test]
    fn the_last_lines_are_shown_and_that_there_were_more() {
        assert_eq!(said_of("\n \n"), None);
        assert_eq!(said_of("one\ntwo\n").as_deref(), Some("one\ntwo"));
        let many: String = (0..100).map(|line| format!("line {line}\n")).collect();
        let shown = said_of(&many).expect("there is something");
        assert!(shown.starts_with("… line 90\n") && shown.ends_with("line 99"), "{shown}");
        let long = said_of(&"ä".repeat(10_000)).expect("there is something");
        assert!(long.starts_with("… ä") && long.len() <= BYTES + "… ".len(), "{}", long.len());
    }

    #[test]
    fn what_steers_a_terminal_is_written_out() {
        let nasty = "\u{1b}[2Jred\u{7}\r\tok\u{202e}";
        assert_eq!(said_of(nasty).as_deref(), Some("\\u{1b}[2Jred\\u{7}\\r\tok\\u{202e}"));
        let no_text = Captured { bytes: vec![0xff, b'a'], is_truncated: false };
        assert_eq!(said(&no_text).as_deref(), Some("\u{fffd}a"));
    }
}
