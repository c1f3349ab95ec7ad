//! `tidewheel jobs approve`: lets a job go on that waits for a person.

use clap::Args;
use serde_json::json;
use tidewheel_core::job::Record;

use super::VERSION;
use crate::commands::policy::Format;
use crate::error::Ending;
use crate::exit::Exit;
use crate::jobs::{DirArguments, Opened, concluded, happened, refused};
use crate::output;
use crate::view::block::{block, named};

/// Let a job go on that waits for approval
///
/// Who approves is the first of TIDEWHEEL_APPROVAL_ACTOR, GIT_AUTHOR_NAME,
/// GIT_COMMITTER_NAME, USER and USERNAME in the environment.
///
/// Example:
///
///   $ tidewheel jobs approve run_5c/deploy
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// The job: its id, any beginning or end of it, or RUN/NODE
    job: String,
    #[command(flatten)]
    dir: DirArguments,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Approves the job.
pub(super) fn run(arguments: &Arguments) -> Result<Exit, Ending> {
    let opened = Opened::open(&arguments.dir)?;
    let job = opened.find(&arguments.job)?;
    let (record, ticked) = opened.scheduler()?.approve(&job).map_err(|error| refused(&error))?;
    happened(&ticked, &job)?;
    let outcome = "Job approval granted";
    match arguments.format {
        Format::Json => output::json(&json!({
            "version": VERSION,
            "outcome": outcome,
            "job": record.id,
            "status": record.status,
            "approval_state": state(&record),
            "started": ticked.started,
            "updated": ticked.updated,
        }))?,
        Format::Text => {
            let rows = [
                ("Outcome", outcome.to_owned()),
                ("Job", record.id.to_string()),
                ("Status", record.status.to_string()),
                ("Approval state", state(&record).to_owned()),
                ("Started", named(&ticked.started)),
                ("Updated", named(&ticked.updated)),
            ];
            output::text(&block(&rows, ""))?;
        }
    }
    concluded(&ticked)
}

/// Returns what was said about a job.
pub(super) fn state(record: &Record) -> &'static str {
    record.schedule.approval.as_ref().map_or("none", |approval| approval.state.name())
}
