//! The terminal that changing lines are drawn on. It leaves the cursor behind the last of them instead of at the edge
//! of the screen: the `^C` of somebody who has enough would begin a line there that nobody knows of.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::sync::{Mutex, MutexGuard, PoisonError};

use indicatif::TermLike;
use rustix::termios::tcgetwinsize;

/// The standard output, which is a terminal.
#[derive(Debug, Default)]
pub(crate) struct Tty(Mutex<Held>);

/// What was not sent yet.
#[derive(Debug, Default)]
struct Held {
    text: String,
    /// Whether the line that the cursor stands in is full for whoever draws: what comes next begins another one.
    is_full: bool,
}

impl Tty {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves the cursor somewhere else, where no line is full.
    fn steer(&self, sequence: &str) {
        let mut held = self.held();
        held.text.push_str(sequence);
        held.is_full = false;
    }

    fn go(&self, n: usize, letter: char) {
        if n > 0 {
            self.steer(&format!("\u{1b}[{n}{letter}"));
        }
    }
}

impl TermLike for Tty {
    fn width(&self) -> u16 {
        const USUAL: u16 = 80;
        let width = tcgetwinsize(io::stdout()).map_or(0, |size| size.ws_col);
        if width == 0 { USUAL } else { width }
    }

    fn height(&self) -> u16 {
        u16::try_from(crate::terminal::height()).unwrap_or(u16::MAX)
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        self.go(n, 'A');
        Ok(())
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        self.go(n, 'B');
        Ok(())
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        self.go(n, 'C');
        Ok(())
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        self.go(n, 'D');
        Ok(())
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.write_str(text)?;
        self.steer("\r\n");
        Ok(())
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        let mut held = self.held();
        // Blanks up to the edge are meant to go to the next line.
        if text.chars().all(|c| c == ' ') {
            held.text.push_str(if text.is_empty() { "" } else { "\u{1b}[K" });
            held.is_full = true;
        } else {
            let before = if std::mem::take(&mut held.is_full) { "\r\n" } else { "" };
            let _ = write!(held.text, "{before}{text}");
        }
        Ok(())
    }

    fn clear_line(&self) -> io::Result<()> {
        self.steer("\r\u{1b}[2K");
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        let text = std::mem::take(&mut self.held().text);
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }
}
