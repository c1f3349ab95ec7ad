//! The list of jobs: which of them are shown, newest first, and what is said about the others.

use std::collections::BTreeMap;

use crate::job::{Brief, JobId, JobStatus};

/// What is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListAsk {
    /// Whether all jobs are shown, whatever else is said.
    pub all: bool,
    /// Whether jobs that succeeded are shown.
    pub show_succeeded: bool,
    /// Whether jobs that failed are left out.
    pub dismiss_failures: bool,
}

impl ListAsk {
    /// Tells whether jobs that stand there are not shown.
    #[must_use]
    pub const fn hides(self, status: JobStatus) -> bool {
        let hides = match status {
            JobStatus::Succeeded | JobStatus::Skipped => !self.show_succeeded,
            JobStatus::Failed => self.dismiss_failures,
            JobStatus::Queued
            | JobStatus::WaitingOnDeps
            | JobStatus::WaitingOnApproval
            | JobStatus::WaitingOnLocks
            | JobStatus::Running
            | JobStatus::Cancelled
            | JobStatus::BlockedByDependency
            | JobStatus::BlockedByApproval => false,
        };
        hides && !self.all
    }
}

/// The list of jobs.
#[derive(Debug)]
pub struct List<'a> {
    /// The jobs that are shown, newest first.
    pub jobs: Vec<&'a Brief>,
    /// How many there are, in words.
    pub outcome: String,
    /// How many are not shown, in words.
    pub hidden: Option<String>,
}

impl<'a> List<'a> {
    /// Shows jobs, and says how many others there are: where those stand that were left out already.
    #[must_use]
    pub fn of(
        briefs: &'a BTreeMap<JobId, Brief>,
        left_out: impl IntoIterator<Item = JobStatus>,
        ask: ListAsk,
    ) -> Self {
        let mut jobs: Vec<&Brief> = briefs.values().collect();
        jobs.retain(|job| !ask.hides(job.status));
        let hidden = briefs.values().map(|job| job.status).filter(|status| ask.hides(*status));
        let (mut failed, mut succeeded, mut skipped) = (0_usize, 0_usize, 0_usize);
        for status in left_out.into_iter().chain(hidden) {
            let count = match status {
                JobStatus::Failed => &mut failed,
                JobStatus::Skipped => &mut skipped,
                JobStatus::Queued
                | JobStatus::WaitingOnDeps
                | JobStatus::WaitingOnApproval
                | JobStatus::WaitingOnLocks
                | JobStatus::Running
                | JobStatus::Succeeded
                | JobStatus::Cancelled
                | JobStatus::BlockedByDependency
                | JobStatus::BlockedByApproval => &mut succeeded,
            };
            *count += 1;
        }
        // The jobs come in the order of their ids, and newest first turns both around.
        jobs.sort_by_key(|job| job.created_at);
        jobs.reverse();
        let outcome = match jobs.len() {
            0 if failed > 0 => "No visible background jobs".to_owned(),
            0 if succeeded + skipped > 0 => "No active background jobs".to_owned(),
            0 => "No background jobs found".to_owned(),
            1 => "1 background job".to_owned(),
            count => format!("{} background jobs", counted_number(count)),
        };
        let parts: Vec<String> = [(failed, "failed"), (succeeded, "succeeded"), (skipped, "skipped")]
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{} {what}", counted_number(count)))
            .collect();
        let hidden = (!parts.is_empty()).then(|| format!("{} (use --all to include)", parts.join(", ")));
        Self { jobs, outcome, hidden }
    }
}

/// Writes a number as people read it: `1,000`.
#[must_use]
pub fn counted_number(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
