//! `tidewheel jobs reject`: ends a job that waits for a person.

use clap::Args;

use super::decided::{DecidedArguments, Field, approval_state};
use crate::error::Ending;
use crate::exit::Exit;

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
    #[command(flatten)]
    decided: DecidedArguments,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// Rejects the job.
pub(super) fn run(arguments: &Arguments) -> Result<Exit, Ending> {
    let reason = arguments.reason.as_deref().map(str::trim).filter(|reason| !reason.is_empty());
    arguments.decided.decide(
        "Job approval rejected",
        |scheduler, job| scheduler.reject(job, reason),
        |record| {
            let approval = record.schedule.approval.as_ref();
            let given = approval.and_then(|approval| approval.reason.as_deref());
            let value = given.unwrap_or("approval rejected").into();
            vec![approval_state(record), Field { key: "reason", label: Some("Reason"), value }]
        },
    )
}
