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

/// One of these kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bucket {
    /// To be looked at, or due later.
    Queued,
    /// Waiting for something.
    Waiting,
    /// Running.
    Running,
    /// Can never run.
    Blocked,
    /// Over otherwise.
    Terminal,
}

impl Bucket {
    /// Every kind, in the order in which they are counted.
    pub const ALL: [Self; 5] = [Self::Queued, Self::Waiting, Self::Running, Self::Blocked, Self::Terminal];

    /// Returns the kind of a status.
    #[must_use]
    pub const fn of(status: JobStatus) -> Self {
        match status {
            JobStatus::Queued => Self::Queued,
            JobStatus::WaitingOnDeps | JobStatus::WaitingOnApproval | JobStatus::WaitingOnLocks => {
                Self::Waiting
            }
            JobStatus::Running => Self::Running,
            JobStatus::BlockedByDependency | JobStatus::BlockedByApproval => Self::Blocked,
            JobStatus::Succeeded | JobStatus::Failed | JobStatus::Cancelled | JobStatus::Skipped => {
                Self::Terminal
            }
        }
    }

    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Blocked => "blocked",
            Self::Terminal => "terminal",
        }
    }
}

impl Buckets {
    /// Counts.
    pub fn of(statuses: impl Iterator<Item = JobStatus>) -> Self {
        let mut buckets = Self::default();
        for status in statuses {
            let bucket = match Bucket::of(status) {
                Bucket::Queued => &mut buckets.queued,
                Bucket::Waiting => &mut buckets.waiting,
                Bucket::Running => &mut buckets.running,
                Bucket::Blocked => &mut buckets.blocked,
                Bucket::Terminal => &mut buckets.terminal,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_job_is_counted_once_in_the_kind_that_has_its_name() {
        let Buckets { queued, waiting, running, blocked, terminal } =
            Buckets::of(JobStatus::ALL.iter().copied());
        assert_eq!([queued, waiting, running, blocked, terminal], [1, 3, 1, 2, 4]);
        for status in JobStatus::ALL {
            let bucket = Bucket::of(*status);
            let is_named = status.name().starts_with(bucket.name());
            assert_eq!(is_named, bucket != Bucket::Terminal, "{status} is {}", bucket.name());
        }
    }

    #[test]
    fn k_110_the_last_line_with_anything_on_it_counts() {
        assert_eq!(latest_line("one\n  two \r\n\n \t\n"), Some("two"));
        assert_eq!(latest_line(" \n\n"), None);
    }
}
