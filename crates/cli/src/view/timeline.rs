//! Rehearsals drawn as bars over one time axis, as wide as the terminal. Equal rows are equal bytes.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use tidewheel_core::decide::ReasonCode;
use tidewheel_core::time::Span;
use tidewheel_core::view::Rehearsal;
use unicode_width::UnicodeWidthStr;

/// One bar.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) rehearsal: Rehearsal,
}

/// What there is to draw on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Canvas {
    /// In columns.
    pub(crate) width: usize,
    /// Whether it shows more than ASCII.
    pub(crate) has_unicode: bool,
}

/// Draws the rows under an axis, each with its result: behind the bar where there is room, else below it.
pub(crate) fn draw(rows: &[Row], canvas: Canvas) -> String {
    let marks = Marks::for_canvas(canvas);
    let labels: Vec<String> = rows.iter().map(|row| result(&row.rehearsal)).collect();
    let name_width = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0) + GAP;
    let end_ms = rows.iter().map(|row| row.rehearsal.total_ms).max().unwrap_or(0).max(1);
    let bars = |scale| rows.iter().map(move |row| Bar::of(&row.rehearsal, scale).columns());
    let room = canvas.width.saturating_sub(name_width);
    let beside = Scale::widest(end_ms, |scale| {
        scale.column(end_ms) >= NARROWEST_BAR
            && bars(scale).zip(&labels).all(|(columns, label)| columns + 1 + label.len() <= room)
    });
    let below = || {
        Scale::widest(end_ms, |scale| {
            scale.column(end_ms) < room && bars(scale).all(|columns| columns <= room)
        })
    };
    let scale = beside.or_else(below).unwrap_or_else(|| Scale::shortest(end_ms));

    let mut text = axis(scale, end_ms, name_width, canvas);
    for (row, label) in rows.iter().zip(&labels) {
        let bar = Bar::of(&row.rehearsal, scale).drawn(&marks);
        let _ = write!(text, "{:name_width$}{bar}", row.name);
        if beside.is_some() {
            let _ = writeln!(text, " {label}");
        } else {
            let _ = writeln!(text, "\n{}", wrapped(label, canvas.width, "  "));
        }
    }
    text
}

/// Explains the marks, in one line where there is room.
pub(crate) fn legend(canvas: Canvas) -> String {
    let Marks { attempt, failed, succeeded, waiting, .. } = Marks::for_canvas(canvas);
    let gap = if canvas.width < 60 { "\n" } else { "   " };
    format!(
        "{attempt} attempt   {FAILED}{failed}{FAILED:#} failed   \
         {SUCCEEDED}{succeeded}{SUCCEEDED:#} succeeded{gap}{WAITING}{waiting}{WAITING:#} waiting for a retry"
    )
}

/// Breaks a text into lines of at most `width` columns, each behind an indent.
pub(crate) fn wrapped(text: &str, width: usize, indent: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("invariant: there is a line from the start");
        let columns = indent.len() + line.width() + 1 + word.width();
        if line.is_empty() || columns <= width {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.iter().map(|line| format!("{indent}{line}")).collect::<Vec<_>>().join("\n")
}

/// Says how long something took, as people do: `8.6s`.
pub(crate) fn seconds(millis: u64) -> String {
    let tenths = millis.saturating_add(50) / 100;
    format!("{}.{}s", tenths / 10, tenths % 10)
}

/// How headings are shown.
pub(crate) const HEADING: Style = Style::new().bold();
/// How what matters less is shown.
pub(crate) const FAINT: Style = Style::new().dimmed();

pub(super) const FAILED: Style = AnsiColor::Red.on_default().bold();
pub(super) const SUCCEEDED: Style = AnsiColor::Green.on_default().bold();
pub(super) const WAITING: Style = Style::new().dimmed();

/// Between the names and the bars.
pub(super) const GAP: usize = 2;
/// With fewer columns the result goes below, so that the bar can be longer.
const NARROWEST_BAR: usize = 30;
/// With more columns the eye does not follow.
const WIDEST_BAR: usize = 110;

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// The distances between ticks that read well where seconds are too short, in milliseconds.
const MINUTES_AND_HOURS: [u64; 10] =
    [30_000, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 6 * HOUR, 12 * HOUR];

struct Marks {
    attempt: char,
    failed: char,
    succeeded: char,
    waiting: char,
    line: char,
    first_tick: char,
    tick: char,
}

impl Marks {
    const fn for_canvas(canvas: Canvas) -> Self {
        let (attempt, failed, succeeded, waiting) =
            if canvas.has_unicode { ('█', '✗', '✓', '╌') } else { ('#', 'x', '+', '.') };
        let (line, first_tick, tick) =
            if canvas.has_unicode { ('─', '├', '┼') } else { ('-', '+', '+') };
        Self { attempt, failed, succeeded, waiting, line, first_tick, tick }
    }
}

/// How time becomes columns: as many for each tick of the axis, so that the ticks are even.
#[derive(Clone, Copy)]
pub(super) struct Scale {
    tick_ms: u64,
    columns: usize,
}

impl Scale {
    pub(super) fn column(self, millis: u64) -> usize {
        let (columns, tick) = (self.columns as u128, u128::from(self.tick_ms));
        let rounded = (u128::from(millis) * columns * 2 + tick) / (tick * 2);
        usize::try_from(rounded).unwrap_or(usize::MAX)
    }

    /// Returns the scale for a canvas on which no other fits: one column for everything.
    pub(super) const fn shortest(end_ms: u64) -> Self {
        Self { tick_ms: end_ms, columns: 1 }
    }

    /// Returns the scale with the longest bars that fit, and of those that are nearly as long the one with
    /// the most ticks.
    pub(super) fn widest(end_ms: u64, fits: impl Fn(Self) -> bool) -> Option<Self> {
        let seconds = (0..5).flat_map(|power| [1, 2, 5].map(|digit| digit * 10_u64.pow(power)));
        let seconds = seconds.take_while(|tick_ms| *tick_ms <= 20_000);
        let days = (0..6).flat_map(|power| [1, 2, 5].map(|digit| digit * DAY * 10_u64.pow(power)));
        let distances = seconds.chain(MINUTES_AND_HOURS).chain(days);
        let scales: Vec<Self> = distances
            .take_while(|tick_ms| *tick_ms <= end_ms.saturating_mul(2))
            .filter_map(|tick_ms| {
                // The label of a tick and the blanks that part it from the next.
                let last = end_ms / tick_ms;
                let labels = (1..=last.min(WIDEST_BAR as u64)).chain([1, last]);
                let fewest = labels.map(|tick| tick_label(tick * tick_ms).len()).max().unwrap_or(0) + 2;
                let scale = |columns| Self { tick_ms, columns };
                let is_short = |scale: &Self| scale.column(end_ms) <= WIDEST_BAR;
                (fewest..=2 * WIDEST_BAR).map(scale).take_while(is_short).filter(|scale| fits(*scale)).last()
            })
            .collect();
        let longest = scales.iter().map(|scale| scale.column(end_ms)).max()?;
        scales.into_iter().find(|scale| scale.column(end_ms) * 100 >= longest * 85)
    }
}

/// Returns instants for an axis that has room for so many columns, in milliseconds, with their labels.
pub(super) fn ticks(end_ms: u64, columns: usize) -> Vec<(u64, String)> {
    let scale = Scale::widest(end_ms, |scale| scale.column(end_ms) <= columns);
    let scale = scale.unwrap_or_else(|| Scale::shortest(end_ms));
    let instants = (0_u64..).map(|n| n.saturating_mul(scale.tick_ms)).take_while(|millis| *millis <= end_ms);
    instants.map(|millis| (millis, tick_label(millis))).collect()
}

/// Draws the axis: the labels, and below them the line with its ticks.
pub(super) fn axis(scale: Scale, end_ms: u64, indent: usize, canvas: Canvas) -> String {
    let marks = Marks::for_canvas(canvas);
    let mut labels = String::new();
    let mut line: Vec<char> = std::iter::repeat_n(marks.line, scale.column(end_ms) + 1).collect();
    for millis in (0_u64..).map(|n| n.saturating_mul(scale.tick_ms)).take_while(|millis| *millis <= end_ms) {
        let column = scale.column(millis);
        let label = tick_label(millis);
        // A label at the very end would stand outside.
        if column + label.len() <= line.len() {
            let blank = column.saturating_sub(labels.len());
            let _ = write!(labels, "{:blank$}{label}", "");
        }
        line[column] = if millis == 0 { marks.first_tick } else { marks.tick };
    }
    let line: String = line.into_iter().collect();
    format!("{:indent$}{labels}\n{:indent$}{WAITING}{line}{WAITING:#}\n", "", "")
}

/// Writes an instant of the axis: `0.5s`, `1.5s`, `20ms`, `2m`.
fn tick_label(millis: u64) -> String {
    if !(100..60_000).contains(&millis) {
        return Span::from_millis(millis).to_string();
    }
    let thousandths = format!("{}.{:03}", millis / 1_000, millis % 1_000);
    format!("{}s", thousandths.trim_end_matches('0').trim_end_matches('.'))
}

/// One row of columns.
struct Bar(Vec<Cell>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Cell {
    Attempt { succeeded: bool },
    Mark { succeeded: bool },
    Waiting,
}

impl Bar {
    /// Puts each attempt at its time: at least one column, and one more for the mark of its end.
    fn of(rehearsal: &Rehearsal, scale: Scale) -> Self {
        let mut cells = Vec::new();
        for attempt in &rehearsal.attempts {
            let succeeded = attempt.decision.is_none();
            let start = scale.column(attempt.start_ms).max(cells.len());
            cells.resize(start, Cell::Waiting);
            let length = scale.column(attempt.end_ms.saturating_sub(attempt.start_ms)).max(1);
            cells.extend(std::iter::repeat_n(Cell::Attempt { succeeded }, length));
            cells.push(Cell::Mark { succeeded });
        }
        Self(cells)
    }

    fn columns(&self) -> usize {
        self.0.len()
    }

    fn drawn(&self, marks: &Marks) -> String {
        let mut text = String::new();
        for run in self.0.chunk_by(|one, other| one == other) {
            let (mark, style) = match run[0] {
                Cell::Attempt { succeeded: true } => (marks.attempt, SUCCEEDED),
                Cell::Attempt { succeeded: false } => (marks.attempt, FAILED),
                Cell::Mark { succeeded: true } => (marks.succeeded, SUCCEEDED),
                Cell::Mark { succeeded: false } => (marks.failed, FAILED),
                Cell::Waiting => (marks.waiting, WAITING),
            };
            let cells: String = std::iter::repeat_n(mark, run.len()).collect();
            let _ = write!(text, "{style}{cells}{style:#}");
        }
        text
    }
}

/// Says what came of it.
fn result(rehearsal: &Rehearsal) -> String {
    let retries = rehearsal.attempts.len().saturating_sub(1);
    let took = seconds(rehearsal.total_ms);
    let last = rehearsal.attempts.last().and_then(|attempt| attempt.decision);
    match (last, retries) {
        (None, 0) => format!("succeeded in {took}"),
        (None, 1) => format!("succeeded in {took}, 1 retry"),
        (None, _) => format!("succeeded in {took}, {retries} retries"),
        (Some(_), _) if rehearsal.cut => format!("still failing after {took}"),
        (Some(decision), _) => {
            format!("failed in {took}: {} ({})", words(decision.reason, retries), decision.reason)
        }
    }
}

/// Says a reason in words.
const fn words(reason: ReasonCode, retries: usize) -> &'static str {
    match reason {
        ReasonCode::MaxRetriesReached if retries == 0 => "no retries",
        ReasonCode::MaxRetriesReached => "no retries left",
        ReasonCode::Timeout => "out of time",
        ReasonCode::DeadlineExceeded => "past the deadline",
        ReasonCode::NotRetryable => "not to be retried",
        ReasonCode::Cancelled => "cancelled",
        ReasonCode::CircuitOpen => "the circuit is open",
        ReasonCode::RetryBudgetExhausted => "the retry budget is empty",
        ReasonCode::AttemptRunning => "still running",
        ReasonCode::OkPolicyEvaluate
        | ReasonCode::OkDecisionCompute
        | ReasonCode::RetryScheduled
        | ReasonCode::InputSchemaInvalid
        | ReasonCode::UpstreamInputMissing
        | ReasonCode::BudgetExceeded
        | ReasonCode::InternalPipelineError => "given up",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidewheel_core::policy::{Backoff, JitterSeed, Policy};
    use tidewheel_core::view::{Script, rehearse};

    fn row(policy: Policy, millis: u64) -> Row {
        let script =
            Script { failures: 2, attempt_takes: Span::from_millis(millis), seed: JitterSeed::new("r", "n") };
        Row { name: "name".to_owned(), rehearsal: rehearse(&policy.resolved().unwrap(), &script) }
    }

    fn plain(rows: &[Row], width: usize) -> String {
        let text = draw(rows, Canvas { width, has_unicode: false });
        anstream::adapter::strip_str(&text).to_string()
    }

    #[test]
    fn attempts_that_follow_at_once_are_still_told_apart() {
        let text = plain(&[row(Policy::new().max_retries(2), 1)], 80);
        assert!(text.contains("#x#"), "{text}");
    }

    #[test]
    fn an_attempt_that_takes_no_time_is_seen() {
        let text = plain(&[row(Policy::new(), 0)], 80);
        assert!(text.contains("name  #x failed in 0.0s: no retries"), "{text}");
    }

    #[test]
    fn no_line_is_wider_than_the_canvas() {
        let policies = [Policy::new(), Policy::llm(), Policy::new().max_retries(2).backoff(Backoff::Linear)];
        let rows = policies.map(|policy| row(policy, 700));
        for width in 40..=200 {
            let text = plain(&rows, width);
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(width), "{width}:\n{text}");
        }
    }

    #[test]
    fn long_and_short_times_have_an_axis() {
        for (millis, label) in
            [(1, "1ms"), (40, "20ms"), (400, "0.2s"), (4_000, "2s"), (40_000, "30s"), (4_000_000, "1h")]
        {
            let text = plain(&[row(Policy::new().max_retries(2), millis)], 80);
            assert!(text.lines().next().unwrap().contains(label), "{millis}:\n{text}");
        }
    }

    #[test]
    fn seconds_are_rounded_to_tenths() {
        assert_eq!([0, 49, 50, 999, 8_600].map(seconds), ["0.0s", "0.0s", "0.1s", "1.0s", "8.6s"]);
    }
}
