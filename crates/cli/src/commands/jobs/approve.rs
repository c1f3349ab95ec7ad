//! `tidewheel jobs approve`: lets a job go on that waits for a person.

use clap::Args;

use super::decided::{DecidedArguments, approval_state};
use crate::error::Ending;
use crate::exit::Exit;

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
    #[command(flatten)]
    decided: DecidedArguments,
}

/// Approves the job.
pub(super) fn run(arguments: &Arguments) -> Result<Exit, Ending> {
    arguments.decided.decide(
        "Job approval granted",
        |scheduler, job| scheduler.approve(job),
        |record| vec![approval_state(record)],
    )
}
