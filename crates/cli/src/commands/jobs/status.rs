//! `tidewheel jobs status`: how a job is, in one line.

use clap::Args;
use serde_json::json;
use tidewheel_core::view::jobs::status_line;

use super::VERSION;
use crate::commands::policy::Format;
use crate::error::Ending;
use crate::exit::Exit;
use crate::jobs::{DirArguments, Opened};
use crate::output::{self, harmless};

/// Say in one line how a job is, and where its logs are
///
/// Example:
///
///   $ tidewheel jobs status run_5c/build
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

/// Says how the job is.
pub(super) fn run(arguments: &Arguments) -> Result<Exit, Ending> {
    let opened = Opened::open(&arguments.dir)?;
    let record = opened.record(&arguments.job)?;
    match arguments.format {
        Format::Text => output::text(&format!("{}\n", harmless(&status_line(&record))))?,
        Format::Json => output::json(&json!({
            "version": VERSION,
            "job": record.id,
            "status": record.status,
            "exit_code": record.exit_code,
            "stdout": record.stdout_path,
            "stderr": record.stderr_path,
        }))?,
    }
    Ok(Exit::Succeeded)
}
