//! One log of a job, read from some place on while it grows, is turned over or emptied. It writes to no file.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use tidewheel_runner::job::{LogFile, LogParts};

use super::since::Offsets;
use super::{How, Stream};
use crate::error::Ending;
use crate::output;
use crate::view::logs::plain;

/// A log that is being read.
pub(in crate::commands::jobs) struct Log {
    pub(super) path: PathBuf,
    prefix: String,
    /// The parts that come before the file, the first one last.
    before: Vec<File>,
    /// The file that is read, while there is one.
    file: Option<File>,
    /// Where in the file reading stops: at the end that it had in the beginning. Without it, nowhere.
    until: Option<u64>,
    /// What was read of a line that has not ended yet.
    held: Vec<u8>,
}

/// A line that does not end is printed in parts of this length.
const LONGEST: usize = 1024 * 1024;

impl Log {
    pub(in crate::commands::jobs) fn new(dir: &Path, name: &str, how: How) -> Self {
        let prefix = if how.stream == Stream::Both { format!("[{name}] ") } else { String::new() };
        let path = dir.join(format!("{name}.log"));
        Self { path, prefix, before: Vec::new(), file: None, until: None, held: Vec::new() }
    }

    /// Opens the log, with what was moved aside before it, at the place where printing begins: at an attempt, or at the
    /// last lines. Returns how many bytes of the attempt are gone.
    pub(in crate::commands::jobs) fn start(
        &mut self,
        since: Option<Offsets>,
        lines: Option<usize>,
    ) -> io::Result<u64> {
        let LogParts { aside, now, extent } = LogFile::parts(&self.path)?;
        let place = since.and_then(|since| {
            let place = since.place?;
            extent.places(&since.recorded).get(place).copied()
        });
        let begin = place.unwrap_or(0);
        // Each part with the place in it before which nothing is printed.
        let aside = aside.map(|file| (file, begin.saturating_sub(extent.dropped)));
        let now = now.map(|file| (file, begin.saturating_sub(extent.base())));
        let mut parts: Vec<(File, u64)> = aside.into_iter().chain(now).collect();
        let mut wanted = lines;
        for (part, floor) in parts.iter_mut().rev() {
            let length = part.metadata()?.len();
            match &mut wanted {
                None => {
                    part.seek(SeekFrom::Start((*floor).min(length)))?;
                }
                // Those behind it have all the lines that are wanted.
                Some(0) => {
                    part.seek(SeekFrom::Start(length))?;
                }
                Some(lines) => seek_lines(part, (*floor).min(length), lines)?,
            }
        }
        self.file = parts.pop().map(|(file, _)| file);
        self.before = parts.into_iter().rev().map(|(part, _)| part).collect();
        // Some write faster than anybody reads.
        self.until = Some(self.file.as_ref().map_or(Ok(0), |file| file.metadata().map(|file| file.len()))?);
        Ok(place.map_or(0, |place| extent.dropped.saturating_sub(place)))
    }

    /// Goes on behind the end that the log had in the beginning.
    pub(in crate::commands::jobs) fn go_on(&mut self) {
        self.until = None;
    }

    /// Prints what has come since, line by line, and tells whether anything has.
    pub(super) fn print(&mut self, how: How) -> Result<bool, Ending> {
        let has_more = self.read().map_err(|error| unreadable(&self.path, &error))?;
        let lines = self.ended();
        if !lines.is_empty() {
            self.send(&lines, how)?;
        }
        Ok(has_more)
    }

    /// Returns the lines that have come since, fit to be shown.
    #[cfg(feature = "tui")]
    pub(in crate::commands::jobs) fn lines(&mut self) -> io::Result<Vec<String>> {
        while self.read()? && !self.before.is_empty() {}
        let lines = self.ended();
        if lines.is_empty() {
            return Ok(Vec::new());
        }
        let body = lines.strip_suffix(b"\n").unwrap_or(&lines);
        Ok(body.split(|byte| *byte == b'\n').map(|line| plain(&String::from_utf8_lossy(line))).collect())
    }

    /// Returns what was read of a line that has not ended yet, fit to be shown.
    #[cfg(feature = "tui")]
    pub(in crate::commands::jobs) fn rest(&self) -> Option<String> {
        let is_there = !self.held.is_empty();
        is_there.then(|| plain(&String::from_utf8_lossy(&self.held)))
    }

    /// Takes the lines that have ended out of what was read.
    fn ended(&mut self) -> Vec<u8> {
        let end = match self.held.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => end + 1,
            None if self.held.len() > LONGEST => self.held.len(),
            None => 0,
        };
        self.held.drain(..end).collect()
    }

    /// Prints what is left without an end of its line.
    pub(super) fn print_rest(&mut self, how: How) -> Result<(), Ending> {
        let rest = std::mem::take(&mut self.held);
        if rest.is_empty() { Ok(()) } else { self.send(&rest, how) }
    }

    fn send(&self, lines: &[u8], how: How) -> Result<(), Ending> {
        if how.is_raw && self.prefix.is_empty() {
            return output::bytes(lines);
        }
        output::bytes(&self.shown(lines, how))
    }

    /// Returns lines as they are printed.
    fn shown(&self, lines: &[u8], how: How) -> Vec<u8> {
        let body = lines.strip_suffix(b"\n").unwrap_or(lines);
        let mut text: Vec<u8> = Vec::with_capacity(lines.len() + 64);
        for line in body.split(|byte| *byte == b'\n') {
            text.extend_from_slice(self.prefix.as_bytes());
            if how.is_raw {
                text.extend_from_slice(line);
            } else {
                text.extend_from_slice(plain(&String::from_utf8_lossy(line)).as_bytes());
            }
            text.push(b'\n');
        }
        text
    }

    /// Reads what has come since: the rest of a file that was moved aside, and the one that has taken its place.
    /// Tells whether there was anything.
    fn read(&mut self) -> io::Result<bool> {
        while let Some(part) = self.before.last_mut() {
            // A log of any length is held in pieces.
            if part.take(LONGEST as u64).read_to_end(&mut self.held)? > 0 {
                return Ok(true);
            }
            self.before.pop();
        }
        loop {
            if let Some(file) = &mut self.file {
                let here = file.stream_position()?;
                if file.metadata()?.len() < here {
                    // It was emptied, as a retry does.
                    file.seek(SeekFrom::Start(0))?;
                }
                // A bound, so that a flood is printed while it comes.
                let most =
                    self.until.map_or(LONGEST as u64, |until| until.saturating_sub(here).min(LONGEST as u64));
                let read = file.take(most).read_to_end(&mut self.held)?;
                if read > 0 {
                    return Ok(true);
                }
            }
            if self.until.is_some() {
                return Ok(false);
            }
            let now = match LogFile::read(&self.path) {
                Ok(now) => now,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
                Err(error) => return Err(error),
            };
            if let Some(file) = &self.file
                && is_same(file, &now)?
            {
                return Ok(false);
            }
            self.file = Some(now);
        }
    }
}

/// Returns the error of a log that cannot be read.
pub(super) fn unreadable(path: &Path, error: &io::Error) -> Ending {
    crate::input::cannot_read(&path.display().to_string(), error).after(error).into()
}

fn is_same(one: &File, other: &File) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    let (one, other) = (one.metadata()?, other.metadata()?);
    Ok((one.dev(), one.ino()) == (other.dev(), other.ino()))
}

/// Goes to the beginning of the last lines of a file, but not before a floor, and counts down those that are in it.
fn seek_lines(file: &mut File, floor: u64, lines: &mut usize) -> io::Result<()> {
    const BLOCK: u64 = 64 * 1024;
    let length = file.metadata()?.len();
    let mut end = length;
    let mut bytes = Vec::new();
    while end > floor {
        let start = end.saturating_sub(BLOCK).max(floor);
        file.seek(SeekFrom::Start(start))?;
        bytes.clear();
        file.take(end - start).read_to_end(&mut bytes)?;
        for (index, byte) in bytes.iter().enumerate().rev() {
            let place = start + index as u64;
            // The end of the last line does not begin another one.
            if *byte == b'\n' && place + 1 < length {
                *lines -= 1;
                if *lines == 0 {
                    file.seek(SeekFrom::Start(place + 1))?;
                    return Ok(());
                }
            }
        }
        end = start;
    }
    if length > floor {
        *lines -= 1;
    }
    file.seek(SeekFrom::Start(floor))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::{self, Foreign, Shown};

    #[test]
    fn foreign_text_breaks_no_tail() {
        let mut foreign = Foreign::new("tails");
        let how = How { stream: Stream::Both, lines: None, is_raw: false, follows: false };
        let log = Log::new(Path::new("."), "stdout", how);
        for _ in 0..foreign::count() {
            let bytes = foreign.bytes();
            let lines = bytes.strip_suffix(b"\n").unwrap_or(&bytes).split(|byte| *byte == b'\n').count();
            let text = String::from_utf8(log.shown(&bytes, how)).expect("it is text");
            assert!(text.lines().all(|line| line.starts_with("[stdout] ")), "{text:?}");
            Shown { text: &text, lines: Some(lines), has_tabs: true, ..Shown::default() }.check(&bytes);
        }
    }
}
