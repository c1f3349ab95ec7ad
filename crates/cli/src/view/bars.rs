//! Pieces of work as bars over one time axis, as wide as the terminal: what each of them spent its time with.

use std::borrow::Cow;
use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use tidewheel_core::time::Timestamp;
use tidewheel_core::view::{Doing, Spent, Stretch, between, long};

use super::columns::{columns_of, cut, padded};
use super::timeline::{Canvas, FAILED, GAP, HEADING, SUCCEEDED, Scale, WAITING, axis};
use crate::output::harmless;

/// The time that is drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Period {
    pub(crate) from: Timestamp,
    pub(crate) to: Timestamp,
}

/// One bar, with what is said before and behind it.
#[derive(Clone, Debug)]
pub(crate) struct Bar<'a> {
    /// What it is called, in whatever words.
    pub(crate) name: String,
    pub(crate) stretches: &'a [Stretch],
    /// How it ended; `None` while it goes on.
    pub(crate) end: Option<End>,
    /// Whether a mark stands before its name.
    pub(crate) is_marked: bool,
    /// What is said behind it, in our words.
    pub(crate) note: String,
}

/// How something ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Well,
    Badly,
    Neither,
}

/// Longer names leave no room for the bars.
const WIDEST_NAME: usize = 28;

/// What stands before names that are marked.
const MARKED: &str = "* ";

/// Draws the bars.
pub(crate) fn draw(rows: &[Bar<'_>], period: Period, canvas: Canvas) -> String {
    let has_marks = rows.iter().any(|row| row.is_marked);
    let before = if has_marks { 2 } else { 0 };
    let names: Vec<Cow<'_, str>> = rows.iter().map(|row| harmless(&row.name)).collect();
    let widest = names.iter().map(|name| columns_of(name)).max().unwrap_or(0);
    let name_width = widest.min(WIDEST_NAME).min(canvas.width / 3);
    let note_width = rows.iter().map(|row| columns_of(&row.note)).max().unwrap_or(0);
    let behind = if note_width > 0 { note_width + GAP } else { 0 };
    let indent = before + name_width + GAP;
    let end_ms = (between(period.from, period.to) / 1_000_000).max(1);
    // Behind the last column stands the mark of the end.
    let room = canvas.width.saturating_sub(indent + 1 + behind);
    let scale = Scale::widest(end_ms, |scale| scale.column(end_ms) < room);
    let scale = scale.unwrap_or_else(|| Scale::shortest(end_ms));
    let bar_width = scale.column(end_ms) + 2;
    let mut text = axis(scale, end_ms, indent, canvas);
    for (row, name) in rows.iter().zip(&names) {
        let mark = match (has_marks, row.is_marked) {
            (false, _) => "",
            (true, true) => MARKED,
            (true, false) => "  ",
        };
        let name = padded(&cut(name, name_width, canvas), name_width + GAP);
        let (bar, columns) = bar(row, period, scale, canvas);
        let blank = if row.note.is_empty() { 0 } else { (bar_width + GAP).saturating_sub(columns) };
        let line = format!("{mark}{name}{bar}{:blank$}{}", "", row.note);
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// Explains the marks that occur.
pub(crate) fn legend(used: &[Doing], canvas: Canvas) -> String {
    let marks: Vec<String> = Doing::ALL
        .into_iter()
        .filter(|doing| used.contains(doing))
        .map(|doing| {
            let (mark, style) = mark_of(doing, canvas);
            format!("{style}{mark}{style:#} {}", words(doing))
        })
        .collect();
    marks.join("   ")
}

/// Returns what can be seen in bars.
pub(crate) fn seen(rows: &[Bar<'_>]) -> Vec<Doing> {
    let is_seen = |stretch: &&Stretch| is_work(stretch.doing) || stretch.to != Some(stretch.from);
    rows.iter().flat_map(|row| row.stretches).filter(is_seen).map(|stretch| stretch.doing).collect()
}

/// Says what the time was spent with.
pub(crate) fn time_spent(spent: &Spent, canvas: Canvas) -> String {
    if spent.total_ns == 0 {
        return String::new();
    }
    let percent =
        |nanos: u64| (u128::from(nanos) * 100 + u128::from(spent.total_ns) / 2) / u128::from(spent.total_ns);
    let mut text = format!("\n{HEADING}Where the time went{HEADING:#}\n");
    for row in &spent.rows {
        let (name, time) = (words(row.doing), long(row.wall_ns));
        let line = format!("  {name:21}  {time:>8}  {:>3}%", percent(row.wall_ns));
        let sum = long(row.sum_ns);
        let over_all = [format!("  ({sum} over all pieces)"), format!("  ({sum} in sum)")];
        let fits = |said: &&String| columns_of(&line) + columns_of(said) <= canvas.width;
        let over_all = over_all.iter().filter(|_| row.sum_ns != row.wall_ns).find(fits);
        let _ = writeln!(text, "{line}{}", over_all.map_or("", String::as_str));
    }
    if spent.idle_ns > 0 {
        let time = long(spent.idle_ns);
        let _ = writeln!(text, "  {:21}  {time:>8}  {:>3}%", "nothing to do", percent(spent.idle_ns));
    }
    let _ = writeln!(text, "  {:21}  {:>8}", "in all", long(spent.total_ns));
    text
}

/// Says what a piece of work does in a word or two.
pub(crate) const fn words(doing: Doing) -> &'static str {
    match doing {
        Doing::Attempt => "attempt",
        Doing::Failed => "failed attempt",
        Doing::Lost => "lost with its process",
        Doing::Queue => "queue",
        Doing::Locks => "locks",
        Doing::Capacity => "capacity",
        Doing::Backoff => "backoff",
        Doing::Approval => "approval",
        Doing::World => "repository",
        Doing::Waiting => "waiting",
    }
}

const LOST: Style = AnsiColor::Yellow.on_default();
const ASKED: Style = AnsiColor::Magenta.on_default();

const fn mark_of(doing: Doing, canvas: Canvas) -> (char, Style) {
    let unicode = canvas.has_unicode;
    match doing {
        Doing::Attempt => (if unicode { '█' } else { '#' }, Style::new()),
        Doing::Failed => (if unicode { '▓' } else { 'x' }, FAILED),
        Doing::Lost => (if unicode { '▒' } else { '?' }, LOST),
        Doing::Queue => (if unicode { '░' } else { 'q' }, WAITING),
        Doing::Locks => (if unicode { '≡' } else { 'l' }, LOST),
        Doing::Capacity => (if unicode { ':' } else { 'c' }, LOST),
        Doing::Backoff => (if unicode { '╌' } else { '.' }, WAITING),
        Doing::Approval => (if unicode { '?' } else { 'a' }, ASKED),
        Doing::World => ('~', WAITING),
        Doing::Waiting => (if unicode { '┈' } else { 'w' }, WAITING),
    }
}

/// Tells whether somebody works meanwhile.
pub(super) const fn is_work(doing: Doing) -> bool {
    match doing {
        Doing::Attempt | Doing::Failed => true,
        Doing::Lost
        | Doing::Queue
        | Doing::Locks
        | Doing::Capacity
        | Doing::Backoff
        | Doing::Approval
        | Doing::World
        | Doing::Waiting => false,
    }
}

/// Each column shows what gets on best in it, so that a short attempt is seen. Also returns how many columns it takes.
fn bar(row: &Bar<'_>, period: Period, scale: Scale, canvas: Canvas) -> (String, usize) {
    let column = |at: Timestamp| scale.column(between(period.from, at.min(period.to)) / 1_000_000);
    let mut cells: Vec<Option<Doing>> = Vec::new();
    for stretch in row.stretches {
        let (from, to) = (column(stretch.from), column(stretch.to.unwrap_or(period.to)));
        // What takes no time is seen if somebody worked.
        let to = if is_work(stretch.doing) { to.max(from + 1) } else { to };
        if cells.len() < to {
            cells.resize(to, None);
        }
        for cell in cells.get_mut(from..to).unwrap_or_default() {
            *cell = Some(cell.map_or(stretch.doing, |there| there.min(stretch.doing)));
        }
    }
    let mut text = String::new();
    for run in cells.chunk_by(|one, other| one == other) {
        let (mark, style) = run[0].map_or((' ', Style::new()), |doing| mark_of(doing, canvas));
        let drawn: String = std::iter::repeat_n(mark, run.len()).collect();
        let _ = write!(text, "{style}{drawn}{style:#}");
    }
    let end = row.end.and_then(|end| end_mark(end, canvas));
    if let Some((mark, style)) = end {
        let _ = write!(text, "{style}{mark}{style:#}");
    }
    (text, cells.len() + usize::from(end.is_some()))
}

const fn end_mark(end: End, canvas: Canvas) -> Option<(char, Style)> {
    let unicode = canvas.has_unicode;
    match end {
        End::Well => Some((if unicode { '✓' } else { '+' }, SUCCEEDED)),
        End::Badly => Some((if unicode { '✗' } else { 'x' }, FAILED)),
        End::Neither => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch(doing: Doing, from: u64, to: Option<u64>) -> Stretch {
        let at = Timestamp::from_millis;
        Stretch { doing, hold: None, from: at(from), to: to.map(at) }
    }

    const PERIOD: Period = Period { from: Timestamp::from_millis(0), to: Timestamp::from_millis(10_000) };

    fn drawn(bars: &[Bar<'_>], canvas: Canvas) -> String {
        anstream::adapter::strip_str(&draw(bars, PERIOD, canvas)).to_string()
    }

    fn bar<'a>(name: &str, stretches: &'a [Stretch], end: Option<End>) -> Bar<'a> {
        Bar { name: name.to_owned(), stretches, end, is_marked: false, note: "2.5s".to_owned() }
    }

    #[test]
    fn bars_have_attempts_gaps_ends_and_notes_in_their_columns() {
        let retried = [
            stretch(Doing::Queue, 0, Some(1_000)),
            stretch(Doing::Failed, 1_000, Some(2_000)),
            stretch(Doing::Backoff, 2_000, Some(4_000)),
            stretch(Doing::Attempt, 4_000, Some(5_000)),
        ];
        let waits = [stretch(Doing::Locks, 5_000, None)];
        let runs = [stretch(Doing::Attempt, 5_000, None)];
        let bars = [
            Bar { is_marked: true, ..bar("fetch", &retried, Some(End::Well)) },
            bar("build", &waits, None),
            bar("订单", &runs, None),
            bar("never", &[], Some(End::Neither)),
        ];
        let canvas = Canvas { width: 60, has_unicode: false };
        assert_eq!(
            drawn(&bars, canvas),
            "         0s      2s      4s      6s      8s
         +-------+-------+-------+-------+-------+
* fetch  qqqqxxxx........####+                       2.5s
  build                      llllllllllllllllllll    2.5s
  订单                       ####################    2.5s
  never                                              2.5s
"
        );
    }

    #[test]
    fn no_bar_is_wider_than_the_canvas() {
        let long = [stretch(Doing::Attempt, 0, Some(10_000))];
        let short = [stretch(Doing::Failed, 10_000, Some(10_000))];
        let name = "订单处理".repeat(12);
        let bars = [
            Bar {
                is_marked: true,
                note: "12m 30s cancelled".to_owned(),
                ..bar(&name, &long, Some(End::Badly))
            },
            bar("x", &short, Some(End::Badly)),
        ];
        for width in 40..=200 {
            for has_unicode in [true, false] {
                let text = drawn(&bars, Canvas { width, has_unicode });
                assert!(text.lines().all(|line| columns_of(line) <= width), "{width}:\n{text}");
            }
        }
    }
}
