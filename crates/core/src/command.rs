//! Commands by status: what each command does to a run or a job as it stands. One table for the library, the command
//! line and every page; it performs nothing.

use std::fmt;

use crate::job::JobStatus;
use crate::policy::word_enum;

/// How a run is, for people and filters. When it is due is another matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// It has work to do.
    Running,
    /// All that is left waits for a time, for a limit or for a person.
    Waiting,
    /// Nothing is left to do, and nothing failed.
    Completed,
    /// Nothing is left to do, and something failed.
    Failed,
    /// A person or a policy paused it.
    Paused,
    /// A person stopped it; it can be resumed.
    Stopped,
    /// It was put aside after going wrong again and again, with its reason; it can be resumed.
    Parked,
    /// A person cancelled it.
    Cancelled,
}

impl Status {
    /// Every status.
    pub const ALL: [Self; 8] = [
        Self::Running,
        Self::Waiting,
        Self::Completed,
        Self::Failed,
        Self::Paused,
        Self::Stopped,
        Self::Parked,
        Self::Cancelled,
    ];

    /// Returns the word that is stored and shown.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Paused => "paused",
            Self::Stopped => "stopped",
            Self::Parked => "parked",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns the status with that word.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

word_enum! {
    /// What a person or a program may ask of a run.
    pub enum RunCommand {
        /// Take an input.
        Input = "input",
        /// Give one component a value.
        Signal = "signal",
        /// End everything that is not over.
        Cancel = "cancel",
        /// Start no new work.
        Pause = "pause",
        /// Go on.
        Resume = "resume",
        /// Try failed work again.
        Retry = "retry",
        /// Let go of the run.
        Stop = "stop",
        /// Store progress that is not stored yet.
        Checkpoint = "checkpoint",
        /// Take the result of work that is done elsewhere.
        Complete = "complete",
        /// Take the failure of work that is done elsewhere.
        Fail = "fail",
        /// Take a sign of life of work that is done elsewhere.
        Heartbeat = "heartbeat",
    }
}

/// What a command does as things stand.
///
/// ```
/// # use tidewheel_core as tidewheel;
/// # use tidewheel_core::command::{Effect, RunCommand, Status};
///
/// assert_eq!(RunCommand::Cancel.effect_on_run(Status::Running), Effect::Acts);
/// assert_eq!(RunCommand::Cancel.effect_on_run(Status::Cancelled), Effect::AlreadySo);
/// assert_eq!(RunCommand::Pause.effect_on_run(Status::Completed), Effect::Refused("nothing is left to do"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It takes effect. What it is about may still refuse it: a retry needs work that failed, and the result of work
    /// that is done elsewhere needs work that waits for it.
    Acts,
    /// What it asks for is so already: it succeeds, and says so.
    AlreadySo,
    /// It would have no effect, for this reason.
    Refused(&'static str),
}

const OVER: Effect = Effect::Refused("nothing is left to do");
const NO_WORK: Effect = Effect::Refused("no work waits for it");
const CANCELLED: Effect = Effect::Refused("it was cancelled, and goes on no more");
const HALTED: Effect = Effect::Refused("it does not go on until it is resumed");
const STORED: Effect = Effect::Refused("everything of it is stored");
const NOT_FOR_JOBS: Effect = Effect::Refused("jobs do not have this command");

impl RunCommand {
    /// Returns what the command does to a run of a program.
    #[must_use]
    pub const fn effect_on_run(self, status: Status) -> Effect {
        use Effect::{Acts, AlreadySo};
        use Status::{Cancelled, Completed, Failed, Parked, Paused, Running, Stopped, Waiting};
        match (self, status) {
            (Self::Cancel, Cancelled) => AlreadySo,
            (
                Self::Input
                | Self::Signal
                | Self::Pause
                | Self::Resume
                | Self::Retry
                | Self::Stop
                | Self::Checkpoint,
                Cancelled,
            ) => CANCELLED,
            (Self::Complete | Self::Fail | Self::Heartbeat, Completed | Failed | Cancelled) => NO_WORK,
            (
                Self::Complete | Self::Fail | Self::Heartbeat,
                Running | Waiting | Paused | Stopped | Parked,
            ) => Acts,
            (Self::Input | Self::Signal, Running | Waiting | Completed | Failed | Paused) => Acts,
            (Self::Input | Self::Signal, Stopped | Parked) => HALTED,
            (Self::Retry, Running | Waiting | Completed | Failed | Paused | Stopped | Parked) => Acts,
            (
                Self::Cancel | Self::Pause | Self::Resume | Self::Stop | Self::Checkpoint,
                Completed | Failed,
            ) => OVER,
            (Self::Cancel, Running | Waiting | Paused | Stopped | Parked) => Acts,
            (Self::Pause, Running | Waiting) => Acts,
            (Self::Pause, Paused) => AlreadySo,
            (Self::Pause, Stopped | Parked) => HALTED,
            (Self::Resume, Running | Waiting) => AlreadySo,
            (Self::Resume, Paused | Stopped | Parked) => Acts,
            (Self::Stop, Running | Waiting | Paused) => Acts,
            (Self::Stop, Stopped) => AlreadySo,
            (Self::Stop, Parked) => HALTED,
            (Self::Checkpoint, Running | Waiting | Paused) => Acts,
            (Self::Checkpoint, Stopped | Parked) => STORED,
        }
    }

    /// Returns what the command does to a job of a repository.
    #[must_use]
    pub const fn effect_on_job(self, status: JobStatus) -> Effect {
        match self {
            Self::Cancel => match status {
                JobStatus::Cancelled => Effect::AlreadySo,
                JobStatus::Succeeded
                | JobStatus::Failed
                | JobStatus::BlockedByDependency
                | JobStatus::BlockedByApproval
                | JobStatus::Skipped => Effect::Refused("it is over"),
                JobStatus::Queued
                | JobStatus::WaitingOnDeps
                | JobStatus::WaitingOnApproval
                | JobStatus::WaitingOnLocks
                | JobStatus::Running => Effect::Acts,
            },
            Self::Retry => match status {
                JobStatus::Running => Effect::Refused("it is running"),
                JobStatus::Queued
                | JobStatus::WaitingOnDeps
                | JobStatus::WaitingOnApproval
                | JobStatus::WaitingOnLocks
                | JobStatus::Succeeded
                | JobStatus::Failed
                | JobStatus::Cancelled
                | JobStatus::BlockedByDependency
                | JobStatus::BlockedByApproval
                | JobStatus::Skipped => Effect::Acts,
            },
            Self::Complete | Self::Fail | Self::Heartbeat => {
                if status.is_active() {
                    Effect::Acts
                } else {
                    NO_WORK
                }
            }
            Self::Input | Self::Signal | Self::Pause | Self::Resume | Self::Stop | Self::Checkpoint => {
                NOT_FOR_JOBS
            }
        }
    }

    /// Returns what the command does to a run of a repository, which is what it does to its jobs: it acts where it acts
    /// on one of them, and is so already where that is true of one and it acts on none.
    #[must_use]
    pub fn effect_on_jobs(self, statuses: impl IntoIterator<Item = JobStatus>) -> Effect {
        let mut effect = Effect::Refused("it has no jobs");
        for status in statuses {
            match self.effect_on_job(status) {
                Effect::Acts => return Effect::Acts,
                Effect::AlreadySo => effect = Effect::AlreadySo,
                refused @ Effect::Refused(_) if effect != Effect::AlreadySo => effect = refused,
                Effect::Refused(_) => {}
            }
        }
        effect
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_acts_on_a_run_that_was_cancelled() {
        for command in RunCommand::ALL {
            let effect = command.effect_on_run(Status::Cancelled);
            match command {
                RunCommand::Cancel => assert_eq!(effect, Effect::AlreadySo),
                _ => assert!(matches!(effect, Effect::Refused(_)), "{command}"),
            }
        }
    }

    #[test]
    fn a_run_with_nothing_left_to_do_takes_what_gives_it_work_and_nothing_else() {
        for status in [Status::Completed, Status::Failed] {
            for command in RunCommand::ALL {
                let gives_work =
                    matches!(command, RunCommand::Input | RunCommand::Signal | RunCommand::Retry);
                let acts = command.effect_on_run(status) == Effect::Acts;
                assert_eq!(acts, gives_work, "{command} of a run that is {status}");
            }
        }
    }

    #[test]
    fn every_command_acts_in_some_status_of_a_run() {
        for command in RunCommand::ALL {
            assert!(
                Status::ALL.iter().any(|status| command.effect_on_run(*status) == Effect::Acts),
                "{command}"
            );
        }
    }

    #[test]
    fn a_run_of_a_repository_is_cancelled_once_one_of_its_jobs_is_and_none_can_be() {
        let cancel = |statuses: &[JobStatus]| RunCommand::Cancel.effect_on_jobs(statuses.iter().copied());
        assert_eq!(cancel(&[JobStatus::Cancelled, JobStatus::Queued]), Effect::Acts);
        assert_eq!(cancel(&[JobStatus::Succeeded, JobStatus::Cancelled]), Effect::AlreadySo);
        assert_eq!(cancel(&[JobStatus::Cancelled, JobStatus::Skipped]), Effect::AlreadySo);
        assert_eq!(cancel(&[JobStatus::Succeeded]), Effect::Refused("it is over"));
        assert_eq!(cancel(&[]), Effect::Refused("it has no jobs"));
    }
}
