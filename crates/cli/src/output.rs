//! The only place that prints: data to the standard output, all else to the standard error.
//!
//! What others wrote (names, file contents, arguments) is made harmless before it comes near a terminal.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::OnceLock;

use anstyle::{AnsiColor, Style};
use serde::Serialize;
use tidewheel_core::job::Secrets;
use tidewheel_core::view::steers;

use crate::error::{CommandError, Ending, Kind};

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default().bold();

/// What nobody is to read, wherever it comes from.
static SECRETS: OnceLock<Secrets> = OnceLock::new();

/// Hides values in all that is printed from now on. The first who says so counts.
pub(crate) fn hide(secrets: Secrets) {
    SECRETS.get_or_init(|| secrets);
}

fn shown(text: &str) -> Cow<'_, str> {
    SECRETS.get().map_or(Cow::Borrowed(text), |secrets| secrets.hide(text))
}

/// Prints text for people, with styles that go away where nobody could see them.
pub(crate) fn text(text: &str) -> Result<(), Ending> {
    let text = shown(text);
    let mut stream = anstream::AutoStream::auto(io::stdout().lock());
    stream
        .write_all(text.as_bytes())
        .and_then(|()| stream.flush())
        .map_err(|error| CommandError::of_output(&error))
}

/// Prints bytes as they are: whoever calls this has made them harmless, or was asked not to.
pub(crate) fn bytes(bytes: &[u8]) -> Result<(), Ending> {
    let hidden = SECRETS.get().and_then(Secrets::in_stream).map(|hiding| hiding.whole(bytes));
    let bytes = hidden.as_deref().unwrap_or(bytes);
    let mut stream = io::stdout().lock();
    stream.write_all(bytes).and_then(|()| stream.flush()).map_err(|error| CommandError::of_output(&error))
}

/// Prints one JSON value over several lines.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Ending> {
    let hidden = SECRETS.get().filter(|secrets| !secrets.is_empty()).and_then(|secrets| {
        let mut value = serde_json::to_value(value).ok()?;
        secrets.hide_in_value(&mut value);
        Some(serde_json::to_string_pretty(&value))
    });
    let text = hidden.unwrap_or_else(|| serde_json::to_string_pretty(value));
    let mut text = text.expect("invariant: what we print has no key that is not a string");
    text.push('\n');
    let mut stream = io::stdout().lock();
    stream
        .write_all(&harmless_json(text.as_bytes()))
        .and_then(|()| stream.flush())
        .map_err(|error| CommandError::of_output(&error))
}

/// Prints what is wrong with a file, already drawn.
pub(crate) fn drawn_problem(text: &str) {
    to_stderr(&format!("{text}\n\n"));
}

/// Prints an error with its code and its hints.
pub(crate) fn error(error: &CommandError) {
    to_stderr(&drawn_error(error));
}

fn drawn_error(error: &CommandError) -> String {
    let word = match error.kind {
        Kind::User | Kind::World => "error",
        Kind::Config => "config error",
        Kind::Internal => "internal error",
    };
    let mut text = format!("{ERROR}{word}[{}]{ERROR:#}: {}\n", error.code, harmless(&error.message));
    for hint in &error.hints {
        let _ = writeln!(text, "{HINT}hint{HINT:#}: {}", harmless(hint));
    }
    text
}

/// Prints a warning.
pub(crate) fn warning(message: &str) {
    to_stderr(&format!("{WARNING}warning{WARNING:#}: {}\n", harmless(message)));
}

/// Prints a text of ours for somebody who has not said what to do.
pub(crate) fn welcome(text: &str) {
    to_stderr(&format!("{text}\n"));
}

/// Prints a line for those who read along, beside the data.
pub(crate) fn aside(line: &str) {
    to_stderr(&format!("{}\n", harmless(line)));
}

/// Prints a hint.
pub(crate) fn hint(message: &str) {
    to_stderr(&format!("{HINT}hint{HINT:#}: {}\n", harmless(message)));
}

/// Prints help, the version or what is wrong with the command line, each where it belongs.
pub(crate) fn usage(error: &clap::Error) -> Result<(), Ending> {
    error.print().map_err(|error| CommandError::of_output(&error))
}

/// Nobody could be told if the standard error is gone, so its own errors are dropped.
fn to_stderr(text: &str) {
    let text = shown(text);
    let mut stream = anstream::AutoStream::auto(io::stderr().lock());
    stream.write_all(text.as_bytes()).and_then(|()| stream.flush()).ok();
}

/// Lines of JSON on their way out, held until enough of them are there or somebody waits for them.
pub(crate) struct Lines<W> {
    stream: W,
    held: Vec<u8>,
}

impl Lines<io::StdoutLock<'static>> {
    /// Returns lines for the standard output.
    pub(crate) fn to_stdout() -> Self {
        Self::to(io::stdout().lock())
    }
}

impl<W: Write> Lines<W> {
    /// Fewer calls of the system are not noticeably faster.
    const ENOUGH: usize = 64 * 1024;

    fn to(stream: W) -> Self {
        Self { stream, held: Vec::with_capacity(Self::ENOUGH + 4096) }
    }

    /// Adds one line, which `write` writes without its end.
    pub(crate) fn line(&mut self, write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> Result<(), Ending> {
        let start = self.held.len();
        write(&mut self.held).map_err(|error| CommandError::of_output(&error))?;
        if let Cow::Owned(line) = harmless_json(&self.held[start..]) {
            self.held.truncate(start);
            self.held.extend(line);
        }
        self.held.push(b'\n');
        if self.held.len() >= Self::ENOUGH { self.flush() } else { Ok(()) }
    }

    /// Sends what is held. Only whole lines are ever sent.
    pub(crate) fn flush(&mut self) -> Result<(), Ending> {
        if self.held.is_empty() {
            return Ok(());
        }
        let sent = self.stream.write_all(&self.held).and_then(|()| self.stream.flush());
        self.held.clear();
        sent.map_err(|error| CommandError::of_output(&error))
    }
}

/// Returns a text in which everything that could steer a terminal is written out: `\u{1b}` for an escape.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if steers(c) {
            safe.extend(c.escape_default());
        } else {
            safe.push(c);
        }
    }
    Cow::Owned(safe)
}

/// Returns a text of equal length in bytes in which the characters that could steer a terminal, and that the
/// drawing of snippets does not replace itself, are gone. Places in the text stay right.
pub(crate) fn harmless_in_place(text: &str) -> Cow<'_, str> {
    let is_left = |c: char| steers(c) && c.len_utf8() > 1;
    if !text.contains(is_left) {
        return Cow::Borrowed(text);
    }
    let replace = |c: char| match c.len_utf8() {
        2 if is_left(c) => '·',
        3 if is_left(c) => '\u{fffd}',
        4 if is_left(c) => '\u{1f784}',
        _ => c,
    };
    Cow::Owned(text.chars().map(replace).collect())
}

/// Escapes what JSON lets stand and a terminal or an eye does not, which stands only inside strings: the value stays.
fn harmless_json(json: &[u8]) -> Cow<'_, [u8]> {
    const DELETE: u8 = 0x7f;
    // JSON escapes the other control characters itself, and the lines of ours end as they should.
    let is_left = |c: char| steers(c) && c >= char::from(DELETE);
    let is_ascii = json.iter().all(|byte| *byte < DELETE);
    let Some(text) = std::str::from_utf8(json).ok().filter(|text| !is_ascii && text.contains(is_left)) else {
        return Cow::Borrowed(json);
    };
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_left(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(safe, "\\u{unit:04x}");
            }
        } else {
            safe.push(c);
        }
    }
    Cow::Owned(safe.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::{self, Foreign, Shown};

    #[test]
    fn what_could_steer_a_terminal_is_written_out() {
        assert_eq!(harmless("plain, ünïcode ✓"), "plain, ünïcode ✓");
        assert_eq!(harmless("a\u{1b}[31mb\u{9b}2J\u{7f}\n\u{202e}"), r"a\u{1b}[31mb\u{9b}2J\u{7f}\n\u{202e}");
    }

    #[test]
    fn places_in_a_harmless_text_stay_right() {
        let text = "é\u{9b}x\u{202e}y\u{e0041}\u{1b}";
        let safe = harmless_in_place(text);
        assert_eq!(safe, "é·x\u{fffd}y\u{1f784}\u{1b}");
        assert_eq!(safe.len(), text.len());
    }

    #[test]
    fn json_keeps_its_value_and_loses_its_controls() {
        let text = "é\u{9b}\u{7f}\u{1b}\u{202e}\u{e0041}";
        let json = serde_json::to_vec(text).unwrap();
        let safe = harmless_json(&json);
        assert_eq!(std::str::from_utf8(&safe).unwrap(), r#""é\u009b\u007f\u001b\u202e\udb40\udc41""#);
        assert_eq!(serde_json::from_slice::<String>(&safe).unwrap(), text);
    }

    #[test]
    fn foreign_text_breaks_no_error_and_no_json() {
        let mut foreign = Foreign::new("errors");
        for _ in 0..foreign::count() {
            let text = foreign.text();
            let error = CommandError::new(crate::error::Code::JobRefused, text.clone()).hint(text.clone());
            Shown { text: &drawn_error(&error), lines: Some(2), ..Shown::default() }.check(&text);
            let value = serde_json::json!({ "name": text, &text: [&text] });
            let json = serde_json::to_string_pretty(&value).unwrap();
            let shown = String::from_utf8(harmless_json(json.as_bytes()).into_owned()).unwrap();
            Shown { text: &shown, ..Shown::default() }.check(&text);
            assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
        }
    }

    #[test]
    fn only_whole_lines_are_sent() {
        let mut lines = Lines::to(Vec::new());
        while lines.stream.is_empty() {
            lines.line(|line| line.write_all(b"0123456789")).unwrap();
        }
        assert!(lines.stream.len() >= Lines::<Vec<u8>>::ENOUGH);
        assert!(lines.stream.ends_with(b"\n"));
        assert!(lines.held.is_empty());
    }
}
