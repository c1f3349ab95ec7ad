//! Pieces of work as bars over one time axis, as wide as the terminal: what each of them spent its time with.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use tidewheel_core::time::Timestamp;
use tidewheel_core::view::{Doing, WorkLine, WorkState, between};

use super::columns::{columns_of, cut, padded};
use super::timeline::{Canvas, FAILED, GAP, SUCCEEDED, Scale, WAITING, axis};

/// The time that is drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Period {
    pub(crate) from: Timestamp,
    pub(crate) to: Timestamp,
}

/// Longer names leave no room for the bars.
const WIDEST_NAME: usize = 28;

/// Draws one bar for each piece, with its name in front.
pub(crate) fn draw(rows: &[(String, &WorkLine)], period: Period, canvas: Canvas) -> String {
    let widest = rows.iter().map(|(name, _)| columns_of(name)).max().unwrap_or(0);
    let name_width = widest.min(WIDEST_NAME).min(canvas.width / 3);
    let indent = name_width + GAP;
    let end_ms = (between(period.from, period.to) / 1_000_000).max(1);
    // Behind the last column stands the mark of the end.
    let room = canvas.width.saturating_sub(indent + 1);
    let scale = Scale::widest(end_ms, |scale| scale.column(end_ms) < room);
    let scale = scale.unwrap_or_else(|| Scale::shortest(end_ms));
    let mut text = axis(scale, end_ms, indent, canvas);
    for (name, work) in rows {
        let name = padded(&cut(name, name_width, canvas), indent);
        let _ = writeln!(text, "{name}{}", bar(work, period, scale, canvas));
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

/// Says what a piece of work does in a word or two.
pub(crate) const fn words(doing: Doing) -> &'static str {
    match doing {
        Doing::Attempt => "attempt",
        Doing::Lost => "lost with its process",
        Doing::Queue => "queue",
        Doing::Backoff => "backoff",
        Doing::Waiting => "waiting",
    }
}

const LOST: Style = AnsiColor::Yellow.on_default();

const fn mark_of(doing: Doing, canvas: Canvas) -> (char, Style) {
    let unicode = canvas.has_unicode;
    match doing {
        Doing::Attempt => (if unicode { '█' } else { '#' }, Style::new()),
        Doing::Lost => (if unicode { '▒' } else { '?' }, LOST),
        Doing::Queue => (if unicode { '░' } else { 'q' }, WAITING),
        Doing::Backoff => (if unicode { '╌' } else { '.' }, WAITING),
        Doing::Waiting => (if unicode { '┈' } else { 'w' }, WAITING),
    }
}

/// Each column shows what gets on best in it, so that a short attempt is seen.
fn bar(work: &WorkLine, period: Period, scale: Scale, canvas: Canvas) -> String {
    let column = |at: Timestamp| scale.column(between(period.from, at.min(period.to)) / 1_000_000);
    let mut cells: Vec<Option<Doing>> = Vec::new();
    for stretch in &work.stretches {
        let (from, to) = (column(stretch.from), column(stretch.to.unwrap_or(period.to)));
        // What takes no time is seen if somebody worked.
        let to = if stretch.doing == Doing::Attempt { to.max(from + 1) } else { to };
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
    if let Some((mark, style)) = end_mark(work.state, canvas) {
        let _ = write!(text, "{style}{mark}{style:#}");
    }
    text
}

const fn end_mark(state: WorkState, canvas: Canvas) -> Option<(char, Style)> {
    let unicode = canvas.has_unicode;
    match state {
        WorkState::Completed | WorkState::Recovered => Some((if unicode { '✓' } else { '+' }, SUCCEEDED)),
        WorkState::Failed | WorkState::Skipped | WorkState::Replaced => {
            Some((if unicode { '✗' } else { 'x' }, FAILED))
        }
        WorkState::Pending | WorkState::Running | WorkState::Waiting { .. } | WorkState::Held { .. } => None,
    }
}
