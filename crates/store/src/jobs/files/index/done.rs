//! The lines of the jobs that are over and that nobody needs: added at the end, and crossed out where they stand.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use rustix::fs::{FileType, OFlags};

use super::line::{DEAD, JOB, Line};
use crate::jobs::files::beneath::Root;
use crate::jobs::files::layout::JOBS;
use crate::jobs::files::signature::{Found, Signature};

/// The open file.
#[derive(Debug)]
pub(super) struct Done {
    file: File,
    /// How many bytes of it count.
    pub(super) length: u64,
}

/// The name of the file.
pub(super) const NAME: &str = "index.done";

/// As many jobs that are over are looked at in each turn.
pub(super) const WINDOW: usize = 256;

/// Returns the first line of the file.
pub(super) fn header(generation: u64) -> String {
    format!("tidewheel-done 1 {generation:020}\n")
}

/// How long the first line is.
pub(super) const HEADER: u64 = 38;

impl Done {
    /// Takes a file that was just written, all of which counts.
    pub(super) const fn new(file: File, length: u64) -> Self {
        Self { file, length }
    }

    /// Opens the file; `None` if it is not the one that belongs to this generation, or is too short.
    pub(super) fn open(root: &Root, generation: u64, length: u64, flags: OFlags) -> io::Result<Option<Self>> {
        let flags = flags | OFlags::NONBLOCK | OFlags::NOFOLLOW;
        let file = match root.open_at(&format!("{JOBS}/{NAME}"), flags) {
            Ok(fd) => File::from(fd),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let found = Found::of(&file)?;
        let mut head = [0; 38];
        let fits = found.kind == FileType::RegularFile
            && found.signature.1 >= length.max(HEADER)
            && file.read_exact_at(&mut head, 0).is_ok()
            && head == header(generation).as_bytes();
        Ok(fits.then_some(Self { file, length: length.max(HEADER) }))
    }

    /// Tells whether a file is this one.
    pub(super) fn is(&self, other: Signature) -> bool {
        Found::of(&self.file).is_ok_and(|found| found.signature.2 == other.2) && other.1 >= self.length
    }

    /// Reads all lines that count.
    pub(super) fn text(&self) -> io::Result<String> {
        self.part(HEADER, self.length)
    }

    /// Reads the next lines from a place on, and where the ones after them begin; at the end it begins again.
    pub(super) fn window(&self, from: u64) -> io::Result<(String, u64, u64)> {
        // Lines have about 300 bytes.
        const CHUNK: u64 = 128 << 10;
        if self.length <= HEADER + CHUNK {
            // A history that fits into one window is looked at as a whole, wherever somebody stopped in a longer one.
            let text = self.part(HEADER, self.length)?;
            if text.matches('\n').count() <= WINDOW {
                return Ok((text, HEADER, self.length));
            }
        }
        let from = if (HEADER..self.length).contains(&from) { from } else { HEADER };
        let end = self.length.min(from + CHUNK);
        let mut bytes = self.bytes(from, end)?;
        if end < self.length {
            // Nobody knows where in a line, and in a character, we stopped.
            bytes.truncate(bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1));
        }
        // What is no text is no line either: it is seen when all lines are.
        let mut text = String::from_utf8(bytes).unwrap_or_default();
        if let Some((at, _)) = text.match_indices('\n').nth(WINDOW - 1) {
            text.truncate(at + 1);
        }
        // A line that is longer than all we read is passed over; it is seen when all lines are.
        let next = if text.is_empty() { HEADER } else { from + text.len() as u64 };
        Ok((text, from, next))
    }

    /// Reads what is between two places.
    pub(super) fn part(&self, from: u64, to: u64) -> io::Result<String> {
        String::from_utf8(self.bytes(from, to)?).map_err(|_| io::ErrorKind::InvalidData.into())
    }

    fn bytes(&self, from: u64, to: u64) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(to.saturating_sub(from)).unwrap_or(0)];
        self.file.read_exact_at(&mut bytes, from)?;
        Ok(bytes)
    }

    /// Adds lines.
    pub(super) fn append(&mut self, text: &str) -> io::Result<()> {
        self.file.write_all_at(text.as_bytes(), self.length)?;
        self.length += text.len() as u64;
        Ok(())
    }

    /// Crosses out a line.
    pub(super) fn kill(&self, at: u64) -> io::Result<()> {
        self.file.write_all_at(&[DEAD], at)
    }
}

/// Returns the lines of a text that count, with their places in the file; the text begins at `from`.
pub(super) fn lines(text: &str, from: u64) -> impl Iterator<Item = (u64, Line<'_>)> {
    let mut at = from;
    text.split_terminator('\n').filter_map(move |line| {
        let start = at;
        at += line.len() as u64 + 1;
        Some((start, Line::parse(line).filter(|line| line.mark == JOB)?))
    })
}
