//! Fields of jobs as columns and cells of tables: which of them matter most, and what has a colour.

use anstyle::{AnsiColor, Style};
use tidewheel_core::job::JobStatus;
use tidewheel_core::view::jobs::{Field, Known, RunStatus};

use super::manner::Manner;
use crate::view::table::{Cell, Column, Kind};

/// Returns the columns of fields. The first ones matter more than the last, but for the name of a job, where it stands
/// and what it waits for, which matter most.
pub(crate) fn columns(fields: &[Field]) -> Vec<Column> {
    let column = |(place, field): (usize, &Field)| {
        let rank = [Field::Job, Field::Status, Field::Wait].iter().position(|first| first == field);
        let kind = if *field == Field::Job {
            Kind::Name
        } else if is_word(*field) {
            Kind::Word
        } else {
            Kind::Text
        };
        Column::new(field.label(), kind, rank.unwrap_or(place + 3))
    };
    fields.iter().enumerate().map(column).collect()
}

/// Returns what stands under a field.
pub(crate) fn cell(field: Field, job: Known<'_>, manner: &Manner<'_>) -> Cell {
    let text = manner.field(field, job).unwrap_or_default();
    if field == Field::Status { Cell::styled(&text, style(job.status())) } else { text.into() }
}

/// Returns the style of a status: one of the colours that every terminal has, and its owner chose to be legible.
pub(crate) const fn style(status: JobStatus) -> Style {
    match status {
        JobStatus::Queued | JobStatus::Skipped => Style::new(),
        JobStatus::WaitingOnDeps | JobStatus::WaitingOnApproval | JobStatus::WaitingOnLocks => {
            AnsiColor::Yellow.on_default()
        }
        JobStatus::Running => AnsiColor::Cyan.on_default(),
        JobStatus::Succeeded => AnsiColor::Green.on_default(),
        JobStatus::Failed | JobStatus::BlockedByDependency | JobStatus::BlockedByApproval => {
            AnsiColor::Red.on_default()
        }
        JobStatus::Cancelled => AnsiColor::Magenta.on_default(),
    }
}

/// Returns the style of how a run is.
pub(crate) const fn run_style(status: RunStatus) -> Style {
    match status {
        RunStatus::Running => style(JobStatus::Running),
        RunStatus::Waiting => style(JobStatus::WaitingOnDeps),
        RunStatus::Succeeded => style(JobStatus::Succeeded),
        RunStatus::Failed => style(JobStatus::Failed),
        RunStatus::Blocked | RunStatus::Incomplete => style(JobStatus::BlockedByDependency),
    }
}

/// Tells whether a part of a value says nothing.
const fn is_word(field: Field) -> bool {
    matches!(
        field,
        Field::Status
            | Field::Created
            | Field::Started
            | Field::Finished
            | Field::Failed
            | Field::Pid
            | Field::ExitCode
            | Field::NotBefore
            | Field::WorkflowNodeAttempt
            | Field::ApprovalRequired
            | Field::ApprovalState
            | Field::ApprovalRequestedAt
            | Field::ApprovalDecidedAt
    )
}
