//! What somebody who watches sees: pure data, and what follows from it. It reads nothing and draws nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidewheel_core::job::{Brief, JobId, JobStatus};
use tidewheel_core::time::Timestamp;
use tidewheel_core::view::jobs::{Bucket, Buckets, Row, Schedule, ScheduleAsk, watched};
use tidewheel_store::jobs::Jobs;

use super::ask::Ask;
use super::pages::{Logs, Page};
use crate::jobs::Manner;
use crate::output::harmless;
use crate::view::timeline::Canvas;

/// Everything that is on the screen, or could be.
#[derive(Clone, Debug)]
pub(super) struct State {
    /// How it was asked for.
    pub(super) wants: Wants,
    /// How much room there is.
    pub(super) room: Room,
    /// What was read last.
    pub(super) seen: Seen,
    /// The job that somebody went to; before that, the first row.
    pub(super) cursor: Option<JobId>,
    /// The first row that is shown, among those that pass the filters.
    pub(super) first: usize,
    /// Only jobs with this text are shown.
    pub(super) text: String,
    /// Only jobs of this kind are shown.
    pub(super) bucket: Option<Bucket>,
    /// The last line of the job that is watched.
    pub(super) latest: Option<(JobId, String)>,
    /// What is on the screen.
    pub(super) mode: Mode,
    /// What came of the last thing that was asked for.
    pub(super) message: Option<Message>,
    /// Why the jobs could not be looked at the last time.
    pub(super) trouble: Option<String>,
    /// What is being done, and whether somebody wants to leave after it.
    pub(super) doing: Option<Doing>,
}

/// How the watch was asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wants {
    /// How many rows are shown at most.
    pub(super) top: usize,
    /// How often it is looked at.
    pub(super) interval_ms: u64,
    /// Whether there are colours.
    pub(super) has_colour: bool,
    /// Whether there are characters beyond ASCII.
    pub(super) has_unicode: bool,
}

/// How much room there is, in cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    pub(super) width: usize,
    pub(super) height: usize,
}

/// What was read of the jobs.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) at: Timestamp,
    /// All jobs.
    pub(super) jobs: Arc<BTreeMap<JobId, Brief>>,
    /// The rows of the schedule.
    pub(super) rows: Arc<Vec<Line>>,
    /// The job that was asked for.
    pub(super) focus: Option<JobId>,
    /// How many records cannot be read.
    pub(super) unreadable: usize,
}

/// A row, fit to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) order: usize,
    pub(super) id: JobId,
    /// The id as it is written.
    pub(super) called: String,
    pub(super) slug: String,
    pub(super) name: String,
    pub(super) status: JobStatus,
    pub(super) wait: String,
    created_at: Timestamp,
}

/// What is on the screen.
#[derive(Clone, Debug)]
pub(super) enum Mode {
    /// The rows.
    Rows,
    /// The rows, and a text is being written that they have to have.
    Filter,
    /// The rows, and a question.
    Ask(Ask),
    /// The logs of a job.
    Logs(Logs),
    /// Text to be read: why a job does not run, or the keys.
    Page(Page),
}

/// Something to be told in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) text: String,
    pub(super) is_error: bool,
}

/// Something that is being done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Doing {
    pub(super) what: String,
    /// Whether somebody wants to leave when it is done.
    pub(super) leaves: bool,
}

impl Seen {
    /// Chooses the rows.
    pub(super) fn of(jobs: Jobs, ask: &ScheduleAsk<'_>, manner: &Manner<'_>, at: Timestamp) -> Self {
        let rows = Schedule::of(&jobs.briefs, ask).rows().filter_map(|row| Line::of(&row, manner)).collect();
        let focus = ask.focus.cloned();
        let unreadable = jobs.unreadable.len();
        Self { at, jobs: Arc::new(jobs.briefs), rows: Arc::new(rows), focus, unreadable }
    }
}

impl Line {
    fn of(row: &Row<'_>, manner: &Manner<'_>) -> Option<Self> {
        let text = |text: &str| harmless(text).into_owned();
        Some(Self {
            order: row.order,
            id: JobId::new(row.job_id).ok()?,
            called: text(&manner.text(row.job_id)),
            slug: text(row.slug.unwrap_or_default()),
            name: text(row.name),
            status: row.status,
            wait: text(&manner.text(row.wait.unwrap_or_default())),
            created_at: row.created_at,
        })
    }

    fn row(&self) -> Row<'_> {
        Row {
            order: self.order,
            job_id: self.id.as_str(),
            slug: Some(&self.slug),
            name: &self.name,
            status: self.status,
            wait: Some(&self.wait),
            created_at: self.created_at,
        }
    }

    fn has(&self, text: &str) -> bool {
        let fields = [self.id.as_str(), &self.called, &self.slug, &self.name, self.status.name(), &self.wait];
        fields.into_iter().any(|field| field.to_lowercase().contains(text))
    }
}

impl State {
    /// Returns the state of somebody who has pressed nothing yet.
    pub(super) const fn new(wants: Wants, room: Room, seen: Seen) -> Self {
        Self {
            wants,
            room,
            seen,
            cursor: None,
            first: 0,
            text: String::new(),
            bucket: None,
            latest: None,
            mode: Mode::Rows,
            message: None,
            trouble: None,
            doing: None,
        }
    }

    /// Returns the rows that pass the filters.
    pub(super) fn rows(&self) -> Vec<&Line> {
        let text = self.text.to_lowercase();
        let fits = |line: &&Line| {
            self.bucket.is_none_or(|bucket| bucket == Bucket::of(line.status))
                && (text.is_empty() || line.has(&text))
        };
        self.seen.rows.iter().filter(fits).collect()
    }

    /// Counts the rows, whatever the filters.
    pub(super) fn buckets(&self) -> Buckets {
        Buckets::of(self.seen.rows.iter().map(|line| line.status))
    }

    /// Returns the place of the cursor among the rows that pass the filters.
    pub(super) fn place(&self, rows: &[&Line]) -> usize {
        let found = self.cursor.as_ref().and_then(|id| rows.iter().position(|line| line.id == *id));
        found.unwrap_or_else(|| self.first.min(rows.len().saturating_sub(1)))
    }

    /// Returns the job under the cursor.
    pub(super) fn chosen(&self) -> Option<&Line> {
        let rows = self.rows();
        rows.get(self.place(&rows)).copied()
    }

    /// Returns the job whose output is shown: the one that somebody went to if it is running, else the focused one,
    /// else the first running one in sight.
    pub(super) fn watched(&self) -> Option<JobId> {
        let rows = self.rows();
        if self.cursor.is_some()
            && let Some(line) = rows.get(self.place(&rows))
            && line.status == JobStatus::Running
        {
            return Some(line.id.clone());
        }
        let all: Vec<Row<'_>> = self.seen.rows.iter().map(Line::row).collect();
        let focus = self.seen.focus.as_ref().map(JobId::as_str);
        let in_sight: Vec<Row<'_>> = rows.iter().skip(self.first).map(|line| line.row()).collect();
        let id = watched(&all, focus, 0).or_else(|| watched(&in_sight, None, self.wants.top));
        id.and_then(|id| JobId::new(id).ok())
    }

    /// Returns what there is to draw on.
    pub(super) const fn canvas(&self) -> Canvas {
        Canvas { width: self.room.width, has_unicode: self.wants.has_unicode }
    }

    /// Returns what fits on the screen.
    pub(super) const fn parts(&self) -> Parts {
        Parts::of(self.room, self.wants.top)
    }
}

/// What fits on the screen beside the rows. What matters least goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parts {
    /// How many rows there are.
    pub(super) rows: usize,
    /// Whether there are empty lines between the parts.
    pub(super) has_gaps: bool,
    /// Whether the parts have titles.
    pub(super) has_titles: bool,
}

impl Parts {
    /// The header, the counts, the headings, the running job, its line, and the last line.
    const BARE: usize = 6;
    const TITLES: usize = 2;
    const GAPS: usize = 3;
    /// Fewer rows than that are not worth a title.
    const ENOUGH: usize = 4;

    const fn of(room: Room, top: usize) -> Self {
        let least = if top < Self::ENOUGH { top } else { Self::ENOUGH };
        let has_titles = room.height >= Self::BARE + Self::TITLES + least;
        let has_gaps = room.height >= Self::BARE + Self::TITLES + Self::GAPS + least;
        let mut taken = Self::BARE;
        if has_titles {
            taken += Self::TITLES;
        }
        if has_gaps {
            taken += Self::GAPS;
        }
        let left = room.height.saturating_sub(taken);
        Self { rows: if left < top { left } else { top }, has_gaps, has_titles }
    }
}
