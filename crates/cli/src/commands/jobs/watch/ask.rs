//! What can be asked of a job, and the question before it is done: which job, and what will happen. It does nothing.

use std::collections::BTreeMap;

use tidewheel_core::job::{ApprovalState, Brief, JobId, JobStatus, RewindError, rewind};

use super::state::Line;

/// What can be asked of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Approve,
    Reject,
    Retry,
    Cancel,
}

/// A question that waits for an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ask {
    pub(super) verb: Verb,
    pub(super) job: JobId,
    /// The question.
    pub(super) text: String,
}

impl Verb {
    /// Returns the verb of a key.
    pub(super) const fn of(key: char) -> Option<Self> {
        match key {
            'a' => Some(Self::Approve),
            'x' => Some(Self::Reject),
            'r' => Some(Self::Retry),
            'c' => Some(Self::Cancel),
            _ => None,
        }
    }

    /// Says why it cannot be asked of a job; who asks for what can be is asked whether it is meant.
    pub(super) fn refused(self, line: &Line, jobs: &BTreeMap<JobId, Brief>) -> Option<String> {
        let (name, job) = (&line.name, jobs.get(&line.id)?);
        match self {
            Self::Approve | Self::Reject => {
                let approval = job.schedule.approval.as_ref().filter(|approval| approval.required);
                let is_open = approval.is_some_and(|approval| approval.state == ApprovalState::Pending);
                let is_waiting = job.status.is_active() && job.status != JobStatus::Running;
                let is_asked = job.status == JobStatus::WaitingOnApproval || (is_open && is_waiting);
                (!is_asked).then(|| format!("{name} does not wait for approval"))
            }
            Self::Retry => match rewind(jobs, &line.id) {
                Err(error @ RewindError::Running(_)) => Some(error.to_string()),
                Ok(_) | Err(RewindError::Unknown(_) | RewindError::Merging) => None,
            },
            Self::Cancel => (!job.is_open()).then(|| format!("{name} is over")),
        }
    }

    /// Says what is being done.
    pub(super) const fn doing(self) -> &'static str {
        match self {
            Self::Approve => "approving",
            Self::Reject => "rejecting",
            Self::Retry => "retrying",
            Self::Cancel => "cancelling",
        }
    }
}

impl Ask {
    /// Asks whether it is meant.
    pub(super) fn of(verb: Verb, line: &Line, jobs: &BTreeMap<JobId, Brief>) -> Self {
        let name = &line.name;
        let (what, then) = match verb {
            Verb::Approve => ("approve", "it starts when its other gates are open".to_owned()),
            Verb::Reject => {
                ("reject", "it ends as blocked_by_approval, and what needs it is blocked".to_owned())
            }
            Verb::Retry => ("retry", retried(&line.id, jobs)),
            Verb::Cancel if line.status == JobStatus::Running => {
                ("cancel", "all its processes are ended".to_owned())
            }
            Verb::Cancel => ("cancel", "it will not start".to_owned()),
        };
        let id = if *name == line.id.as_str() { String::new() } else { format!(" ({})", line.id) };
        Self { verb, job: line.id.clone(), text: format!("{what} {name}{id}: {then}") }
    }
}

/// Says what a retry takes along.
fn retried(job: &JobId, jobs: &BTreeMap<JobId, Brief>) -> String {
    match rewind(jobs, job) {
        Ok(rewind) => match rewind.set.len().saturating_sub(1) {
            0 => "it runs again".to_owned(),
            1 => "it and 1 job after it run again".to_owned(),
            more => format!("it and {more} jobs after it run again"),
        },
        // The refusal is told when it is asked for.
        Err(_) => "it runs again, with all that comes after it".to_owned(),
    }
}
