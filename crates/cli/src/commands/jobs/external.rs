//! What the commands of external workers share: the token, and what they print.

use clap::Args;
use serde_json::json;
use tidewheel_core::job::Record;
use tidewheel_runner::job::Ticked;

use super::VERSION;
use crate::commands::policy::Format;
use crate::error::Ending;
use crate::exit::Exit;
use crate::jobs::{DirArguments, concluded, happened};
use crate::output;
use crate::view::block::{block, named};

/// The job that a worker outside has in hand.
#[derive(Debug, Args)]
pub(super) struct ExternalArguments {
    /// The job: its id, any beginning or end of it, or RUN/NODE
    pub(super) job: String,
    /// The token of the attempt, as `jobs explain` names it
    #[arg(long, value_name = "TOKEN")]
    pub(super) token: String,
    #[command(flatten)]
    pub(super) dir: DirArguments,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: Format,
}

/// Prints what became of the job.
pub(super) fn told(
    arguments: &ExternalArguments,
    outcome: &str,
    record: &Record,
    ticked: &Ticked,
) -> Result<Exit, Ending> {
    happened(ticked, &record.id)?;
    match arguments.format {
        Format::Json => output::json(&json!({
            "version": VERSION,
            "outcome": outcome,
            "job": record.id,
            "status": record.status,
            "exit_code": record.exit_code,
            "started": ticked.started,
            "updated": ticked.updated,
        }))?,
        Format::Text => {
            let rows = [
                ("Outcome", outcome.to_owned()),
                ("Job", record.id.to_string()),
                ("Status", record.status.to_string()),
                ("Started", named(&ticked.started)),
                ("Updated", named(&ticked.updated)),
            ];
            output::text(&block(&rows, ""))?;
        }
    }
    concluded(ticked)
}
