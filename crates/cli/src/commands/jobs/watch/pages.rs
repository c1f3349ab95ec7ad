//! What covers the rows for a while: the logs of a job, and text to be read. Both can be scrolled.

use std::collections::VecDeque;

use tidewheel_core::job::JobId;
use tidewheel_core::view::jobs::explain::Part;

use super::columns::wrapped;
use crate::view::page::{self, Looks, PageLine};
use crate::view::timeline::Canvas;

/// Text to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) title: String,
    /// The job that it is about.
    pub(super) job: Option<JobId>,
    text: Text,
    /// The first line that is shown.
    first: usize,
}

/// What stands on a page.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Text {
    /// Lines, fit to be shown.
    Lines(Vec<String>),
    /// An explanation.
    Parts(Vec<Part>),
}

/// The logs of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Logs {
    pub(super) job: JobId,
    pub(super) name: String,
    /// The lines, in the order in which they were read.
    lines: VecDeque<LogLine>,
    /// What stands behind them, and has not ended yet.
    rest: Vec<LogLine>,
    /// Which streams are shown.
    pub(super) streams: Streams,
    /// The first line that is shown, while nobody follows.
    first: usize,
    /// How many columns are left out at the beginning.
    pub(super) left: usize,
    /// Whether the end stays in sight.
    pub(super) follows: bool,
}

/// A line of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LogLine {
    pub(super) stream: Stream,
    /// The line, fit to be shown.
    pub(super) text: String,
}

/// Where a line came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    Stdout,
    Stderr,
}

/// Which streams are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Streams {
    Both,
    Only(Stream),
}

/// What was read of logs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Logged {
    /// The lines that have come since.
    pub(super) lines: Vec<LogLine>,
    /// What stands behind them, and has not ended yet.
    pub(super) rest: Vec<LogLine>,
}

/// Where to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
}

impl Move {
    /// Returns where it leads from a place, at most to the last.
    pub(super) fn from(self, place: usize, page: usize, last: usize) -> usize {
        let page = page.max(1);
        let to = match self {
            Self::Up => place.saturating_sub(1),
            Self::Down => place.saturating_add(1),
            Self::PageUp => place.saturating_sub(page),
            Self::PageDown => place.saturating_add(page),
            Self::Home => 0,
            Self::End => last,
        };
        to.min(last)
    }
}

impl Stream {
    /// Returns its name, as it stands before lines.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

impl Streams {
    /// Returns what comes next when somebody goes round.
    pub(super) const fn next(self) -> Self {
        match self {
            Self::Both => Self::Only(Stream::Stdout),
            Self::Only(Stream::Stdout) => Self::Only(Stream::Stderr),
            Self::Only(Stream::Stderr) => Self::Both,
        }
    }

    /// Returns what is said of it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Both => "stdout and stderr",
            Self::Only(stream) => stream.name(),
        }
    }
}

impl Page {
    /// Returns a page from its beginning.
    pub(super) fn new(title: impl Into<String>, lines: Vec<String>) -> Self {
        Self { title: title.into(), job: None, text: Text::Lines(lines), first: 0 }
    }

    /// Returns an explanation from its beginning.
    pub(super) fn of_parts(title: impl Into<String>, parts: Vec<Part>) -> Self {
        Self { title: title.into(), job: None, text: Text::Parts(parts), first: 0 }
    }

    /// Says which job it is about.
    pub(super) fn about(self, job: JobId) -> Self {
        Self { job: Some(job), ..self }
    }

    /// Scrolls, where there is room for so many lines.
    pub(super) fn go(&mut self, to: Move, canvas: Canvas, height: usize) {
        let last = self.lines(canvas).len().saturating_sub(height);
        self.first = to.from(self.first.min(last), height, last);
    }

    /// Returns the lines that are in sight.
    pub(super) fn in_sight(&self, canvas: Canvas, height: usize) -> Vec<PageLine> {
        let lines = self.lines(canvas);
        let first = self.first.min(lines.len().saturating_sub(height));
        lines.into_iter().skip(first).take(height).collect()
    }

    fn lines(&self, canvas: Canvas) -> Vec<PageLine> {
        let lines = match &self.text {
            Text::Lines(lines) => {
                let line = |text: &String| PageLine { looks: Looks::Plain, text: text.clone() };
                lines.iter().map(line).collect()
            }
            Text::Parts(parts) => page::lines(parts, canvas),
        };
        let broken = |line: PageLine| {
            let texts = wrapped(&line.text, canvas.width);
            texts.into_iter().map(move |text| PageLine { looks: line.looks, text })
        };
        lines.into_iter().flat_map(broken).collect()
    }
}

impl Logs {
    /// So many lines are kept; the oldest go first.
    pub(super) const MOST: usize = 5_000;

    /// How far a key goes sideways.
    const SIDE: usize = 8;

    /// Returns the logs of a job of which nothing was read yet.
    pub(super) const fn new(job: JobId, name: String) -> Self {
        let lines = VecDeque::new();
        Self { job, name, lines, rest: Vec::new(), streams: Streams::Both, first: 0, left: 0, follows: true }
    }

    /// Takes what was read.
    pub(super) fn take(&mut self, Logged { lines, rest }: Logged) {
        let shown = |line: &LogLine| Self::fits(self.streams, line);
        let too_many = (self.lines.len() + lines.len()).saturating_sub(Self::MOST);
        // What is in sight stays there while older lines go.
        let gone = self.lines.iter().chain(&lines).take(too_many).filter(|line| shown(line)).count();
        self.first = self.first.saturating_sub(gone);
        self.lines.extend(lines);
        self.lines.drain(..too_many);
        self.rest = rest;
    }

    /// Returns the lines that are in sight.
    pub(super) fn in_sight(&self, height: usize) -> Vec<&LogLine> {
        let first = self.first(height);
        self.shown().skip(first).take(height).collect()
    }

    /// Returns the number of the first line in sight, and how many there are.
    pub(super) fn place(&self, height: usize) -> (usize, usize) {
        (self.first(height), self.shown().count())
    }

    /// Scrolls. Whoever goes down to the end follows it, and whoever goes up does not.
    pub(super) fn go(&mut self, to: Move, height: usize) {
        let last = self.last(height);
        self.first = to.from(self.first(height), height, last);
        self.follows = match to {
            Move::Up | Move::PageUp | Move::Home => false,
            Move::Down | Move::PageDown | Move::End => self.first == last,
        };
    }

    /// Stays at the end, or no longer.
    pub(super) fn toggle(&mut self, height: usize) {
        self.first = self.first(height);
        self.follows = !self.follows;
    }

    /// Shows other streams.
    pub(super) fn turn(&mut self) {
        self.streams = self.streams.next();
        self.follows = true;
    }

    /// Goes sideways.
    pub(super) const fn shift(&mut self, to_the_right: bool) {
        self.left = if to_the_right {
            self.left.saturating_add(Self::SIDE)
        } else {
            self.left.saturating_sub(Self::SIDE)
        };
    }

    fn shown(&self) -> impl Iterator<Item = &LogLine> {
        self.lines.iter().chain(&self.rest).filter(|line| Self::fits(self.streams, line))
    }

    fn fits(streams: Streams, line: &LogLine) -> bool {
        match streams {
            Streams::Both => true,
            Streams::Only(stream) => line.stream == stream,
        }
    }

    fn last(&self, height: usize) -> usize {
        self.shown().count().saturating_sub(height)
    }

    fn first(&self, height: usize) -> usize {
        let last = self.last(height);
        if self.follows { last } else { self.first.min(last) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logs(lines: usize) -> Logs {
        let mut logs = Logs::new(JobId::new("j").unwrap(), "j".to_owned());
        logs.take(logged((0..lines).map(line).collect()));
        logs
    }

    fn logged(lines: Vec<LogLine>) -> Logged {
        Logged { lines, rest: Vec::new() }
    }

    fn line(number: usize) -> LogLine {
        let stream = if number.is_multiple_of(2) { Stream::Stdout } else { Stream::Stderr };
        LogLine { stream, text: number.to_string() }
    }

    fn texts(logs: &Logs, height: usize) -> Vec<&str> {
        logs.in_sight(height).into_iter().map(|line| line.text.as_str()).collect()
    }

    #[test]
    fn the_end_stays_in_sight_until_somebody_scrolls_up_and_again_once_he_is_back() {
        let mut logs = logs(10);
        assert_eq!(texts(&logs, 3), ["7", "8", "9"]);
        logs.go(Move::Up, 3);
        logs.take(logged(vec![line(10)]));
        assert_eq!(texts(&logs, 3), ["6", "7", "8"]);
        logs.go(Move::End, 3);
        logs.take(logged(vec![line(11)]));
        assert_eq!(texts(&logs, 3), ["9", "10", "11"]);
        logs.go(Move::Home, 3);
        logs.go(Move::PageDown, 3);
        assert_eq!(texts(&logs, 3), ["3", "4", "5"]);
    }

    #[test]
    fn whoever_goes_up_stays_there_even_if_all_lines_are_in_sight() {
        let mut logs = logs(2);
        logs.go(Move::Up, 2);
        logs.take(logged(vec![line(2)]));
        assert_eq!(texts(&logs, 2), ["0", "1"]);
    }

    #[test]
    fn a_line_that_has_not_ended_is_shown_until_it_has() {
        let mut logs = logs(1);
        logs.take(Logged { lines: Vec::new(), rest: vec![line(1)] });
        assert_eq!(texts(&logs, 9), ["0", "1"]);
        logs.take(Logged { lines: vec![line(1)], rest: Vec::new() });
        assert_eq!(texts(&logs, 9), ["0", "1"]);
    }

    #[test]
    fn one_stream_is_shown_alone() {
        let mut logs = logs(6);
        logs.turn();
        assert_eq!(texts(&logs, 9), ["0", "2", "4"]);
        logs.turn();
        assert_eq!(texts(&logs, 9), ["1", "3", "5"]);
        logs.turn();
        assert_eq!(logs.place(2), (4, 6));
    }

    #[test]
    fn what_is_in_sight_stays_while_the_oldest_lines_go() {
        let mut logs = logs(Logs::MOST);
        logs.go(Move::PageUp, 100);
        let before: Vec<String> = texts(&logs, 3).into_iter().map(str::to_owned).collect();
        logs.take(logged((0..50).map(line).collect()));
        assert_eq!(texts(&logs, 3), before);
        assert_eq!(logs.place(3).1, Logs::MOST);
    }
}
