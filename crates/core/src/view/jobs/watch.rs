//! What somebody who watches the schedule sees beside it: counts, and the job whose output is shown.

use super::schedule::Row;
use crate::job::JobStatus;

/// How many jobs are how, in the five kinds that a glance takes in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Buckets {
    /// To be looked at, or due later.
    pub queued: usize,
    /// Waiting for something.
    pub waiting: usize,
    /// Running.
    pub running: usize,
    /// Can never run.
    pub blocked: usize,
    /// Over otherwise.
    pub terminal: usize,
}

impl Buckets {
    /// Counts.
    pub fn of(statuses: impl Iterator<Item = JobStatus>) -> Self {
        let mut buckets = Self::default();
        for status in statuses {
            let bucket = match status {
                JobStatus::Queued => &mut buckets.queued,
                JobStatus::WaitingOnDeps | JobStatus::WaitingOnApproval | JobStatus::WaitingOnLocks => {
                    &mut buckets.waiting
                }
                JobStatus::Running => &mut buckets.running,
                JobStatus::BlockedByDependency | JobStatus::BlockedByApproval => &mut buckets.blocked,
                JobStatus::Succeeded | JobStatus::Failed | JobStatus::Cancelled | JobStatus::Skipped => {
                    &mut buckets.terminal
                }
            };
            *bucket += 1;
        }
        buckets
    }
}

/// Chooses the job whose output is shown: the focused one if it is running, else the first that is among the first rows.
#[must_use]
pub fn watched<'a>(rows: &[Row<'a>], focus: Option<&str>, top: usize) -> Option<&'a str> {
    let is_running = |row: &&Row<'a>| row.status == JobStatus::Running;
    let focused = rows.iter().filter(is_running).find(|row| Some(row.job_id) == focus);
    focused.or_else(|| rows.iter().take(top).find(is_running)).map(|row| row.job_id)
}

/// Returns the last line of an end of a log that has anything on it.
#[must_use]
pub fn latest_line(tail: &str) -> Option<&str> {
    tail.lines().rev().map(str::trim).find(|line| !line.is_empty())
}
