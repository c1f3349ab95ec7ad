//! `tidewheel decide`: the decision engine over lines of JSON, in constant memory. It decides nothing itself.

use std::io::{self, BufRead, BufReader, Read};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Serialize;
use serde::de::IgnoredAny;
use tidewheel_core::decide::{Answer, Engine, decide_json, delay_json};

use crate::error::{Code, CommandError, Ending};
use crate::exit::Exit;
use crate::input::{self, Input};
use crate::output::{self, Lines};

/// Answer questions about retries: a line of JSON in, a line of JSON out
///
/// Reads one question per line from FILE, or from the standard input without
/// one, and prints one answer per line, in the same order and at once.
/// A refusal is an answer: it names the field that is wrong. A line that is
/// not JSON is answered with an error that names the line, and the exit code
/// is 2 at the end. Blank lines are passed over.
///
/// Example:
///
///   $ echo '{"policy": {"backoff": "linear"}, "attempt_index": 2}' |
///       tidewheel decide delay
///   {"kind":"ok","delay_ms":1500,"hash_hex":"36eaa5e8ca69882a"}
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// What is asked
    #[arg(value_enum)]
    question: Question,
    /// Where the questions are; `-` is the standard input
    file: Option<PathBuf>,
}

/// What can be asked.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Question {
    /// What does the policy say about this failure?
    Evaluate,
    /// What is to be done, given the evaluation?
    Compute,
    /// Both in one turn, over one flat object
    Turn,
    /// What does the bare kernel decide: {"policy": …, "context": …}
    Kernel,
    /// How long is the delay: {"policy": …, "seed": …, "attempt_index": …}
    Delay,
    /// Nothing: print what the engine is, its id, role, placement and allowed callers
    Engine,
}

impl Question {
    /// Returns what answers a line; `None` where nothing is read.
    fn answerer(self) -> Option<for<'a> fn(&Engine, &'a str) -> Answer<'a>> {
        match self {
            Self::Evaluate => Some(Engine::evaluate_json),
            Self::Compute => Some(Engine::compute_json),
            Self::Turn => Some(Engine::turn_json),
            Self::Kernel => Some(|_, line| decide_json(line)),
            Self::Delay => Some(|_, line| delay_json(line)),
            Self::Engine => None,
        }
    }
}

/// The longest line that is looked at; what is longer is no question of anybody.
const LONGEST_LINE: usize = 1024 * 1024;

/// As much as a pipe holds.
const READ_AT_ONCE: usize = 64 * 1024;

/// Answers every line of the input.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Ending> {
    let file = arguments.file.as_deref();
    let Some(answerer) = arguments.question.answerer() else {
        if file.is_some() {
            let message = "`decide engine` reads no questions: leave FILE out.";
            return Err(CommandError::new(Code::OtherSide, message).into());
        }
        let mut lines = Lines::to_stdout();
        lines.line(|to| serde_json::to_writer(to, &Engine::HEADER).map_err(io::Error::from))?;
        lines.flush()?;
        return Ok(Exit::Succeeded);
    };
    let Input { name, reader } = Input::open(file)?;
    if input::is_typed(file) {
        output::hint("Type one question per line; Ctrl-D ends them.");
    }
    let mut questions = Questions::of(reader);
    let mut answers = Lines::to_stdout();
    let engine = Engine::default();
    let (mut lines, mut unreadable) = (0_u64, 0_u64);
    loop {
        if questions.would_wait() {
            answers.flush()?;
        }
        let question = match questions.next() {
            Ok(Some(question)) => question,
            Ok(None) => break,
            Err(error) => {
                answers.flush()?;
                return Err(input::cannot_read(&name, &error).into());
            }
        };
        let line = match question.text() {
            Ok("") => continue,
            Ok(line) => line,
            Err(message) => {
                lines += 1;
                unreadable += 1;
                answers.line(|to| complain(to, question.number, &message))?;
                continue;
            }
        };
        lines += 1;
        let answer = answerer(&engine, line);
        match not_json(&answer, line) {
            None => answers.line(|to| answer.write_json(to))?,
            Some(message) => {
                unreadable += 1;
                answers.line(|to| complain(to, question.number, &message))?;
            }
        }
    }
    answers.flush()?;
    if unreadable == 0 {
        return Ok(Exit::Succeeded);
    }
    let message = format!(
        "{unreadable} of {lines} lines could not be read as JSON; the answers of kind `error` say which."
    );
    Err(CommandError::new(Code::LinesUnreadable, message).into())
}

/// Returns what is wrong with a line that the engine could not take apart, if it is not JSON at all.
///
/// The engine refuses such a line as the field `request`; so only those have to be looked at again.
fn not_json(answer: &Answer<'_>, line: &str) -> Option<String> {
    let Answer::Refused(refusal) = answer else { return None };
    if refusal.detail.field != "request" {
        return None;
    }
    let error = serde_json::from_str::<IgnoredAny>(line).err()?;
    // The reader counts bytes and adds a place of its own; people count characters.
    let end = if error.is_eof() { line.len() } else { error.column().saturating_sub(1) };
    let before = line.as_bytes().get(..end).unwrap_or_default();
    let column = String::from_utf8_lossy(before).chars().count() + 1;
    let text = error.to_string();
    let what = text.split(" at line ").next().unwrap_or_default();
    Some(format!("is not JSON: {what} at column {column}"))
}

/// Writes the answer to a line that is no question.
fn complain(to: &mut Vec<u8>, line: u64, message: &str) -> io::Result<()> {
    #[derive(Serialize)]
    struct Complaint<'a> {
        kind: &'static str,
        line: u64,
        message: &'a str,
    }
    serde_json::to_writer(to, &Complaint { kind: "error", line, message }).map_err(io::Error::from)
}

/// The lines of an input, one after the other in the same memory.
struct Questions<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    number: u64,
}

/// One line.
struct Line<'a> {
    /// Counted from one, blank lines too.
    number: u64,
    bytes: &'a [u8],
}

impl<R: Read> Questions<R> {
    fn of(reader: R) -> Self {
        Self { reader: BufReader::with_capacity(READ_AT_ONCE, reader), line: Vec::new(), number: 0 }
    }

    /// Tells whether the next line is not here yet, so that whoever asks may be waiting for our answers.
    fn would_wait(&self) -> bool {
        !self.reader.buffer().contains(&b'\n')
    }

    fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        // Enough to see that a line is too long, whatever stands around it: a mark before, its end after.
        const ENOUGH: u64 = LONGEST_LINE as u64 + 8;
        self.line.clear();
        let read = Read::take(&mut self.reader, ENOUGH).read_until(b'\n', &mut self.line)?;
        if read == 0 {
            return Ok(None);
        }
        let is_whole = self.line.ends_with(b"\n");
        if !is_whole && self.line.len() as u64 == ENOUGH {
            self.reader.skip_until(b'\n')?;
        }
        self.number += 1;
        let mut bytes = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        if self.number == 1 {
            bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
        }
        Ok(Some(Line { number: self.number, bytes }))
    }
}

impl<'a> Line<'a> {
    /// Returns the text without blanks around it, or what is wrong with it.
    fn text(&self) -> Result<&'a str, String> {
        if self.bytes.len() > LONGEST_LINE {
            return Err(format!("is longer than {LONGEST_LINE} bytes"));
        }
        match std::str::from_utf8(self.bytes) {
            Ok(text) if text.trim().is_empty() => Ok(""),
            Ok(text) => Ok(text),
            Err(error) => {
                let good = String::from_utf8_lossy(&self.bytes[..error.valid_up_to()]);
                Err(format!("is not UTF-8 at column {}", good.chars().count() + 1))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(input: &[u8]) -> Vec<(u64, Result<String, String>)> {
        let mut questions = Questions::of(input);
        let mut lines = Vec::new();
        while let Some(line) = questions.next().unwrap() {
            lines.push((line.number, line.text().map(str::to_owned)));
        }
        lines
    }

    #[test]
    fn lines_are_counted_and_their_ends_are_not_part_of_them() {
        let lines = all("\u{feff}a\r\n \u{feff}\n\t\n\nb".as_bytes());
        let texts: Vec<_> = lines.iter().map(|(number, text)| (*number, text.as_deref().unwrap())).collect();
        assert_eq!(texts, [(1, "a"), (2, " \u{feff}"), (3, ""), (4, ""), (5, "b")]);
    }

    #[test]
    fn the_longest_line_is_read_and_a_longer_one_is_passed_over() {
        let fits = "x".repeat(LONGEST_LINE);
        for (input, is_read) in [
            (format!("{fits}\nend"), true),
            (format!("{fits}\r\nend"), true),
            (format!("\u{feff}{fits}\r\nend"), true),
            (format!("{fits}x\nend"), false),
            (format!("{fits}{}\nend", "x".repeat(7)), false),
            (format!("{fits}{}\nend", "x".repeat(8)), false),
            (format!("{fits}{fits}\nend"), false),
        ] {
            let lines = all(input.as_bytes());
            assert_eq!(lines.len(), 2);
            assert_eq!(lines[0].1.is_ok(), is_read);
            assert_eq!(lines[1], (2, Ok("end".to_owned())));
        }
    }
}
