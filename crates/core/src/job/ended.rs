//! How an attempt ended, before anybody judged it.

use super::event::{JobEvent, JobEventKind, LoggedFailure};
use super::metadata::Metadata;
use super::outcome::{JobOutcome, NodeOutcome};
use super::record::Record;
use super::status::JobStatus;
use crate::decide::Decision;
use crate::policy::{ErrorCode, word_enum};
use crate::time::Timestamp;

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    /// How its node ended.
    pub outcome: NodeOutcome,
    /// The code, if there was one.
    pub exit_code: Option<i32>,
    /// What its policy knows the failure by: the exit code, `timeout` or `lost`.
    pub code: ErrorCode,
    /// What happened, in a sentence.
    pub summary: Option<String>,
    /// The last of what it complained about.
    pub complaint: Option<String>,
    /// Whether another attempt would end alike.
    pub non_retryable: bool,
    /// Why it is known that nobody supervises it any more.
    pub liveness: Option<Liveness>,
    /// What was decided about it, if that is in the log: recovery repeats it and decides nothing anew.
    pub decided: Option<Decision>,
    /// When.
    pub at: Timestamp,
}

word_enum! {
    /// Why it is known that nobody supervises a job any more.
    pub enum Liveness {
        /// Nobody holds its run lock.
        NotRunning = "stale_not_running",
        /// Nobody ever wrote down its process.
        MissingPid = "stale_missing_pid",
    }
}

impl Ended {
    /// An attempt ended with an exit code.
    #[must_use]
    pub fn exited(exit_code: i32, at: Timestamp) -> Self {
        let outcome = if exit_code == 0 { NodeOutcome::Succeeded } else { NodeOutcome::Failed };
        let code = ErrorCode::Number(i64::from(exit_code));
        Self {
            outcome,
            exit_code: Some(exit_code),
            code,
            summary: None,
            complaint: None,
            non_retryable: false,
            liveness: None,
            decided: None,
            at,
        }
    }

    /// An attempt took too long.
    #[must_use]
    pub fn timed_out(at: Timestamp) -> Self {
        Self { code: "timeout".into(), ..Self::exited(TIMED_OUT, at) }
    }

    /// A person ended it.
    #[must_use]
    pub fn cancelled(at: Timestamp) -> Self {
        Self { outcome: NodeOutcome::Cancelled, ..Self::exited(CANCELLED, at) }
    }

    /// Somebody has to do something first.
    #[must_use]
    pub fn blocked(summary: impl Into<String>, at: Timestamp) -> Self {
        let summary = Some(summary.into());
        Self { outcome: NodeOutcome::Blocked, summary, ..Self::exited(BLOCKED, at) }
    }

    /// Whoever supervised it is gone.
    #[must_use]
    pub fn lost(why: Liveness, at: Timestamp) -> Self {
        let summary = Some(match why {
            Liveness::NotRunning => GONE.to_owned(),
            Liveness::MissingPid => GONE_BEFORE.to_owned(),
        });
        Self { code: "lost".into(), summary, liveness: Some(why), ..Self::exited(1, at) }
    }

    /// Returns the end of an attempt that its events tell of; `None` if they tell of none.
    ///
    /// A failure counts before the end of the job: what follows it (another attempt, a fallback, a dead letter) is
    /// repeated from its decision, and the end of the job alone does not say all of that.
    #[must_use]
    pub fn of_log(events: &[JobEvent]) -> Option<Self> {
        let failed = events.iter().rev().find_map(Self::of_failure);
        failed.or_else(|| events.iter().rev().find_map(Self::of_completion))
    }

    fn of_failure(event: &JobEvent) -> Option<Self> {
        let JobEventKind::AttemptFailed { exit_code, message, decision, error } = &event.event else {
            return None;
        };
        let base = match exit_code {
            Some(TIMED_OUT) => Self::timed_out(event.at),
            code => Self::exited(code.unwrap_or(1), event.at),
        };
        let base =
            Self { outcome: NodeOutcome::Failed, exit_code: *exit_code, decided: Some(*decision), ..base };
        // Releases before the error was written left only the message and the decision.
        let Some(LoggedFailure { code, non_retryable, liveness, complaint }) = error.clone() else {
            return Some(Self { summary: Some(message.clone()), ..base });
        };
        let end = complaint.as_ref().map(|complaint| format!(": {complaint}"));
        let summary = end.as_deref().and_then(|end| message.strip_suffix(end)).unwrap_or(message);
        Some(Self { code, summary: Some(summary.to_owned()), complaint, non_retryable, liveness, ..base })
    }

    fn of_completion(event: &JobEvent) -> Option<Self> {
        let JobEventKind::Completed { outcome, exit_code, summary } = &event.event else { return None };
        let base = Self::exited(exit_code.unwrap_or(1), event.at);
        Some(Self { outcome: *outcome, exit_code: *exit_code, summary: summary.clone(), ..base })
    }

    /// Returns the end that a supervisor wrote down before it could take the turn.
    #[must_use]
    pub fn of_outcome(outcome: &JobOutcome) -> Self {
        let code = i64::from(outcome.exit_code.unwrap_or(1)).into();
        Self {
            outcome: outcome.outcome,
            exit_code: outcome.exit_code,
            code: outcome.code.clone().unwrap_or(code),
            summary: outcome.summary.clone(),
            complaint: outcome.complaint.clone(),
            non_retryable: outcome.non_retryable,
            liveness: None,
            decided: None,
            at: outcome.finished_at,
        }
    }

    /// Returns the end as it is written down before the turn to put it on record has come.
    #[must_use]
    pub fn to_outcome(&self, record: &Record) -> JobOutcome {
        let status = match self.outcome {
            NodeOutcome::Succeeded => JobStatus::Succeeded,
            NodeOutcome::Failed => JobStatus::Failed,
            NodeOutcome::Blocked => JobStatus::BlockedByDependency,
            NodeOutcome::Cancelled => JobStatus::Cancelled,
            NodeOutcome::Skipped => JobStatus::Skipped,
        };
        JobOutcome {
            version: JobOutcome::VERSION,
            job_id: record.id.clone(),
            attempt: record.metadata.number(Metadata::NODE_ATTEMPT).unwrap_or(0),
            status,
            outcome: self.outcome,
            exit_code: self.exit_code,
            code: Some(self.code.clone()),
            non_retryable: self.non_retryable,
            complaint: self.complaint.clone(),
            started_at: record.started_at,
            finished_at: self.at,
            summary: self.summary.clone(),
            artifacts: Vec::new(),
        }
    }
}

/// Says that an attempt was lost, where the summary of its end says so: its exit code is nobody's then.
#[must_use]
pub fn lost_told(summary: Option<&str>) -> Option<String> {
    let why = summary.filter(|summary| [GONE, GONE_BEFORE].contains(summary))?;
    Some(format!("lost: {why}"))
}

/// What is said of an attempt whose supervisor is gone,
const GONE: &str = "its supervisor is gone";
/// and of one whose supervisor had not even begun it.
const GONE_BEFORE: &str = "its supervisor was gone before it wrote down its process";
/// The exit code of an attempt that took too long.
const TIMED_OUT: i32 = 124;
/// The exit code of a job that a person ended.
pub(super) const CANCELLED: i32 = 143;
/// The exit code of a job that is blocked.
pub(super) const BLOCKED: i32 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_lost_is_told_as_lost() {
        let at = Timestamp::from_millis(1);
        for why in Liveness::ALL {
            let summary = Ended::lost(*why, at).summary;
            assert_eq!(lost_told(summary.as_deref()), Some(format!("lost: {}", summary.unwrap())));
        }
        for other in [None, Some(""), Some("command.run failed (exit 1): its supervisor is gone")] {
            assert_eq!(lost_told(other), None, "{other:?}");
        }
    }
}
