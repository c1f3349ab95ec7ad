//! `tidewheel jobs reject`: ends a job that waits for a person.

use clap::Args;
use serde_json::json;

use super::VERSION;
use super::approve::state;
use crate::commands::policy::Format;
use crate::error::Ending;
use crate::exit::Exit;
use crate::jobs::{DirArguments, Opened, concluded, happened, refused};
use crate::output;
use crate::view::block::{block, named};

/// End a job that waits for approval, because it must not run
///
/// What depends on it is blocked at once.
///
/// Example:
///
///   $ tidewheel jobs reject run_5c/deploy --reason 'not on a Friday'
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// The job: its id, any beginning or end of it, or RUN/NODE
    job: String,
    #[command(flatten)]
    dir: DirArguments,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Rejects the job.
pub(super) fn run(arguments: &Arguments) -> Result<Exit, Ending> {
    let opened = Opened::open(&arguments.dir)?;
    let job = opened.find(&arguments.job)?;
    let reason = arguments.reason.as_deref().map(str::trim).filter(|reason| !reason.is_empty());
    let (record, ticked) = opened.scheduler()?.reject(&job, reason).map_err(|error| refused(&error))?;
    happened(&ticked, &job)?;
    let outcome = "Job approval rejected";
    let approval = record.schedule.approval.as_ref();
    let reason = approval.and_then(|approval| approval.reason.as_deref()).unwrap_or("approval rejected");
    match arguments.format {
        Format::Json => output::json(&json!({
            "version": VERSION,
            "outcome": outcome,
            "job": record.id,
            "status": record.status,
            "approval_state": state(&record),
            "reason": reason,
            "started": ticked.started,
            "updated": ticked.updated,
        }))?,
        Format::Text => {
            let rows = [
                ("Outcome", outcome.to_owned()),
                ("Job", record.id.to_string()),
                ("Status", record.status.to_string()),
                ("Approval state", state(&record).to_owned()),
                ("Reason", reason.to_owned()),
                ("Updated", named(&ticked.updated)),
            ];
            output::text(&block(&rows, ""))?;
        }
    }
    concluded(&ticked)
}
