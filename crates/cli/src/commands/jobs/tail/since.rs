//! Where an attempt of a job began in its logs, from what happened to the job.

use tidewheel_core::job::{JobEventKind, JobId};

use crate::error::{Code, CommandError};
use crate::jobs::{Opened, unfit};
use crate::output;

/// Where an attempt of a job began in its logs.
#[derive(Debug)]
pub(in crate::commands::jobs) struct Since {
    pub(super) attempt: u32,
    /// Where each attempt up to this one, and those after it, began since the logs were emptied: stdout and stderr.
    recorded: Vec<[u64; 2]>,
    /// Which of them it is; none if the logs were emptied since.
    place: Option<usize>,
}

impl Since {
    /// Finds an attempt in what happened to a job.
    pub(super) fn of(opened: &Opened, job: &JobId, attempt: u32) -> Result<Self, CommandError> {
        let events = opened.store().history(job).map_err(|error| unfit(&error))?.events;
        let mut since = Self { attempt, recorded: Vec::new(), place: None };
        let (mut is_known, mut last) = (false, 0);
        for event in &events {
            match &event.event {
                JobEventKind::Dispatched { stdout_offset, stderr_offset, .. } => {
                    if event.attempt == attempt {
                        is_known = true;
                        since.place = Some(since.recorded.len());
                    }
                    last = event.attempt.max(last);
                    since.recorded.push([*stdout_offset, *stderr_offset]);
                }
                // The logs are emptied then.
                JobEventKind::Rewound { .. } => {
                    since.recorded.clear();
                    since.place = None;
                }
                JobEventKind::AttemptFailed { .. }
                | JobEventKind::Withdrawn { .. }
                | JobEventKind::Completed { .. }
                | JobEventKind::Decided { .. } => {}
            }
        }
        if !is_known {
            let made = match last {
                0 => "it has not started yet".to_owned(),
                last => format!("its last one is attempt {last}"),
            };
            let message = format!("job {job} has no attempt {attempt}: {made}");
            return Err(CommandError::new(Code::NothingThere, message).hint(format!(
                "{} tells of each attempt.",
                Opened::command(&format!("jobs explain {job}"))
            )));
        }
        if since.place.is_none() {
            output::hint(&format!(
                "What attempt {attempt} wrote is gone: the logs were emptied when the job was rewound after it."
            ));
        }
        Ok(since)
    }

    /// Returns where the attempts began in a log, and which of them it is.
    pub(super) fn offsets(&self, stream: &str) -> Offsets {
        let index = usize::from(stream == "stderr");
        Offsets { recorded: self.recorded.iter().map(|both| both[index]).collect(), place: self.place }
    }
}

/// Where attempts began in one log, and which of them is meant.
pub(in crate::commands::jobs) struct Offsets {
    pub(super) recorded: Vec<u64>,
    pub(super) place: Option<usize>,
}
