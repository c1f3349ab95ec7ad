//! `tidewheel jobs tail`: what a job has written, and what it writes while one looks.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use tidewheel_core::job::{Brief, JobId};
use tidewheel_runner::job::LogFile;
use tidewheel_runner::job::wait::Watch;

use crate::error::Ending;
use crate::exit::Exit;
use crate::jobs::{DirArguments, Opened};
use crate::output;
use crate::view::logs::plain;

/// Print what a job has written
///
/// Each line begins with the stream that it came from, unless only one stream
/// is asked for. Sequences that steer a terminal are left out unless --raw is
/// given. With --follow the command stays until the job is over.
///
/// Example:
///
///   $ tidewheel jobs tail run_5c/build --follow
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// The job: its id, any beginning or end of it, or RUN/NODE
    job: String,
    #[command(flatten)]
    dir: DirArguments,
    /// Which stream
    #[arg(long, value_enum, default_value_t)]
    stream: Stream,
    /// Stay until the job is over
    #[arg(long, short)]
    follow: bool,
    /// Begin with the last lines of each stream, so many
    #[arg(long, short = 'n', value_name = "N")]
    lines: Option<usize>,
    /// Print the bytes as they are
    #[arg(long)]
    raw: bool,
}

/// A stream of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Stream {
    /// What it prints
    Stdout,
    /// What it complains about
    Stderr,
    /// Both, each line with the name of its stream
    #[default]
    Both,
}

/// How long to wait for a change until the logs are looked at all the same.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Prints the logs.
pub(super) fn run(arguments: &Arguments) -> Result<Exit, Ending> {
    let opened = Opened::open(&arguments.dir)?;
    let job = opened.find(&arguments.job)?;
    let how = How {
        stream: arguments.stream,
        lines: arguments.lines,
        is_raw: arguments.raw,
        follows: arguments.follow,
    };
    print(&opened, &job, how)
}

/// What is printed of the logs, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct How {
    pub(super) stream: Stream,
    pub(super) lines: Option<usize>,
    pub(super) is_raw: bool,
    pub(super) follows: bool,
}

/// Prints the logs of a job.
pub(super) fn print(opened: &Opened, job: &JobId, how: How) -> Result<Exit, Ending> {
    let dir = opened.place.data.join("jobs").join(job.as_str());
    let names: &[&str] = match how.stream {
        Stream::Stdout => &["stdout"],
        Stream::Stderr => &["stderr"],
        Stream::Both => &["stdout", "stderr"],
    };
    let mut logs: Vec<Log> = names.iter().map(|name| Log::new(&dir, name, how)).collect();
    for log in &mut logs {
        log.start(how.lines).map_err(|error| unreadable(&log.path, &error))?;
        while log.print(how)? {}
        if !how.follows {
            log.print_rest(how)?;
        }
    }
    if how.follows {
        follow(opened, job, &mut logs, how)?;
    }
    for log in &mut logs {
        log.print_rest(how)?;
    }
    Ok(Exit::Succeeded)
}

/// Prints what comes until the job is over.
fn follow(opened: &Opened, job: &JobId, logs: &mut [Log], how: How) -> Result<(), Ending> {
    let watch = Watch::directory(&opened.place.data.join("jobs").join(job.as_str()));
    loop {
        // What is written before the job is over is there once it is over.
        let is_over = !Brief::from(&opened.read(job)?).is_open();
        let mut has_more = false;
        for log in &mut *logs {
            has_more |= log.print(how)?;
        }
        match (is_over, has_more) {
            (_, true) => {}
            (true, false) => return Ok(()),
            (false, false) => {
                watch.wait(Some(Instant::now() + LOOK_AGAIN));
            }
        }
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Ending {
    crate::input::cannot_read(&path.display().to_string(), error).into()
}

/// A log that is being read.
pub(super) struct Log {
    path: PathBuf,
    prefix: String,
    /// The file that is read, while there is one.
    file: Option<File>,
    /// What was read of a line that has not ended yet.
    held: Vec<u8>,
}

/// A line that does not end is printed in parts of this length.
const LONGEST: usize = 1024 * 1024;

impl Log {
    pub(super) fn new(dir: &Path, name: &str, how: How) -> Self {
        let prefix = if how.stream == Stream::Both { format!("[{name}] ") } else { String::new() };
        Self { path: dir.join(format!("{name}.log")), prefix, file: None, held: Vec::new() }
    }

    /// Opens the log, with what was moved aside before it, at the place where printing begins.
    pub(super) fn start(&mut self, lines: Option<usize>) -> io::Result<()> {
        let older = self.older();
        let mut parts: Vec<File> = Vec::new();
        for path in [&older, &self.path] {
            match LogFile::read(path) {
                Ok(file) => parts.push(file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        let mut wanted = lines;
        let mut first = 0;
        if let Some(lines) = &mut wanted {
            for (index, part) in parts.iter_mut().enumerate().rev() {
                first = index;
                if seek_lines(part, lines)? {
                    break;
                }
            }
        }
        let last = parts.pop();
        for mut part in parts.into_iter().skip(first) {
            part.read_to_end(&mut self.held)?;
        }
        self.file = last;
        Ok(())
    }

    fn older(&self) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(".1");
        name.into()
    }

    /// Prints what has come since, line by line, and tells whether anything has.
    fn print(&mut self, how: How) -> Result<bool, Ending> {
        let has_more = self.read().map_err(|error| unreadable(&self.path, &error))?;
        let lines = self.ended();
        if !lines.is_empty() {
            self.send(&lines, how)?;
        }
        Ok(has_more)
    }

    /// Returns the lines that have come since, fit to be shown.
    #[cfg(feature = "tui")]
    pub(super) fn lines(&mut self) -> io::Result<Vec<String>> {
        self.read()?;
        let lines = self.ended();
        if lines.is_empty() {
            return Ok(Vec::new());
        }
        let body = lines.strip_suffix(b"\n").unwrap_or(&lines);
        Ok(body.split(|byte| *byte == b'\n').map(|line| plain(&String::from_utf8_lossy(line))).collect())
    }

    /// Returns what was read of a line that has not ended yet, fit to be shown.
    #[cfg(feature = "tui")]
    pub(super) fn rest(&self) -> Option<String> {
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
    fn print_rest(&mut self, how: How) -> Result<(), Ending> {
        let rest = std::mem::take(&mut self.held);
        if rest.is_empty() { Ok(()) } else { self.send(&rest, how) }
    }

    fn send(&self, lines: &[u8], how: How) -> Result<(), Ending> {
        if how.is_raw && self.prefix.is_empty() {
            return output::bytes(lines);
        }
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
        output::bytes(&text)
    }

    /// Reads what has come since: the rest of a file that was moved aside, and the one that has taken its place.
    /// Tells whether there was anything.
    fn read(&mut self) -> io::Result<bool> {
        loop {
            if let Some(file) = &mut self.file {
                let here = file.stream_position()?;
                if file.metadata()?.len() < here {
                    // It was emptied, as a retry does.
                    file.seek(SeekFrom::Start(0))?;
                }
                // A bound, so that a flood is printed while it comes.
                let read = file.take(LONGEST as u64).read_to_end(&mut self.held)?;
                if read > 0 {
                    return Ok(true);
                }
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

fn is_same(one: &File, other: &File) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    let (one, other) = (one.metadata()?, other.metadata()?);
    Ok((one.dev(), one.ino()) == (other.dev(), other.ino()))
}

/// Goes to the beginning of the last lines of a file, and counts them down. Tells whether all of them are in it.
fn seek_lines(file: &mut File, lines: &mut usize) -> io::Result<bool> {
    const BLOCK: u64 = 64 * 1024;
    let length = file.metadata()?.len();
    let mut end = length;
    let mut bytes = Vec::new();
    if *lines == 0 {
        file.seek(SeekFrom::Start(length))?;
        return Ok(true);
    }
    while end > 0 {
        let start = end.saturating_sub(BLOCK);
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
                    return Ok(true);
                }
            }
        }
        end = start;
    }
    if length > 0 {
        *lines -= 1;
    }
    file.seek(SeekFrom::Start(0))?;
    Ok(*lines == 0)
}
