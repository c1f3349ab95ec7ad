//! What is asked of jobs from the watch: what the commands of the same names do, told in one line.

use tidewheel_core::job::{Cleanup, JobId};
use tidewheel_runner::job::Ticked;

use super::ask::Verb;
use super::state::Message;
use crate::error::CommandError;
use crate::jobs::{Opened, refused};
use crate::output::harmless;

/// Does it, and says what came of it.
pub(super) fn act(opened: &Opened, verb: Verb, job: &JobId) -> Message {
    let (text, is_error) = match done(opened, verb, job) {
        Ok((text, ticked)) => match ticked.errors.last() {
            None => (text, false),
            Some(error) => (format!("{text}, but {error}"), true),
        },
        Err(error) => (format!("error[{}]: {}", error.code, error.message), true),
    };
    Message { text: harmless(&text).into_owned(), is_error }
}

fn done(opened: &Opened, verb: Verb, job: &JobId) -> Result<(String, Ticked), CommandError> {
    let scheduler = opened.scheduler()?;
    match verb {
        Verb::Approve => {
            let (record, ticked) = scheduler.approve(job).map_err(|error| refused(&error))?;
            Ok((format!("Job approval granted: {}", record.id), ticked))
        }
        Verb::Reject => {
            let (record, ticked) = scheduler.reject(job, None).map_err(|error| refused(&error))?;
            Ok((format!("Job approval rejected: {}", record.id), ticked))
        }
        Verb::Retry => {
            let retried = scheduler.retry(job).map_err(|error| refused(&error))?;
            let (reset, started) = (retried.retry_set.len(), retried.ticked.started.len());
            Ok((format!("Jobs retried: {reset} reset, {started} restarted"), retried.ticked))
        }
        Verb::Cancel => {
            let cancelled = scheduler.cancel(job, None).map_err(|error| refused(&error))?;
            let cleanup = match &cancelled.cleanup {
                Cleanup::Degraded(why) => format!(" (cleanup failed: {why})"),
                Cleanup::Done | Cleanup::Skipped => String::new(),
            };
            Ok((format!("Job {} marked cancelled{cleanup}", cancelled.record.id), cancelled.ticked))
        }
    }
}
