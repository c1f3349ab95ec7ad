//! `tidewheel jobs cancel`: ends a job with all its processes.

use clap::Args;
use serde_json::json;
use tidewheel_core::job::Cleanup;

use super::VERSION;
use crate::commands::policy::Format;
use crate::error::Ending;
use crate::exit::Exit;
use crate::jobs::{DirArguments, Opened, concluded, happened, refused};
use crate::output::{self, harmless};

/// End a job, with all its processes
///
/// Its processes are asked to end, and killed if they do not. When the command
/// is done nothing of the job runs any more, and what depends on it is settled.
///
/// Example:
///
///   $ tidewheel jobs cancel run_5c/build
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// The job: its id, any beginning or end of it, or RUN/NODE
    job: String,
    #[command(flatten)]
    dir: DirArguments,
    /// Remove the worktree that the job owns
    #[arg(long, conflicts_with = "no_cleanup_worktree")]
    cleanup_worktree: bool,
    /// Keep the worktree that the job owns, whatever is configured
    #[arg(long)]
    no_cleanup_worktree: bool,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Cancels the job.
pub(super) fn run(arguments: &Arguments) -> Result<Exit, Ending> {
    let opened = Opened::open(&arguments.dir)?;
    let job = opened.find(&arguments.job)?;
    let cleanup = match (arguments.cleanup_worktree, arguments.no_cleanup_worktree) {
        (true, _) => Some(true),
        (false, true) => Some(false),
        (false, false) => None,
    };
    let cancelled = opened.scheduler()?.cancel(&job, cleanup).map_err(|error| refused(&error))?;
    happened(&cancelled.ticked, &job)?;
    let record = &cancelled.record;
    if let Cleanup::Degraded(why) = &cancelled.cleanup {
        output::warning(&format!("cleanup failed for job {}: {why}", record.id));
    }
    match arguments.format {
        Format::Json => output::json(&json!({
            "version": VERSION,
            "outcome": "Job cancelled",
            "job": record.id,
            "status": record.status,
            "exit_code": record.exit_code,
            "stdout": record.stdout_path,
            "stderr": record.stderr_path,
            "cleanup": cancelled.cleanup.name(),
            "started": cancelled.ticked.started,
            "updated": cancelled.ticked.updated,
        }))?,
        Format::Text => {
            let line = format!(
                "Job {} marked cancelled (stdout: {}, stderr: {}, cleanup={})",
                record.id,
                record.stdout_path,
                record.stderr_path,
                cancelled.cleanup.name()
            );
            output::text(&format!("{}\n", harmless(&line)))?;
        }
    }
    concluded(&cancelled.ticked)
}
