//! `tidewheel jobs fail`: ends an attempt of a job whose work failed elsewhere.

use clap::Args;
use tidewheel_runner::job::ExternalFailure;

use super::external::{ExternalArguments, told};
use crate::error::Ending;
use crate::exit::Exit;
use crate::jobs::{Opened, refused};

/// Fail an attempt of a job whose work is done elsewhere
///
/// The policy of the job decides what follows: another attempt, which gets a
/// token of its own, its fallback, or the end of the job.
///
/// Example:
///
///   $ tidewheel jobs fail run_5c/deploy --token 1-9f2e --reason 'no quota' --exit-code 75
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    #[command(flatten)]
    external: ExternalArguments,
    /// What happened
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// The exit code that `retryable_errors` of the policy matches
    #[arg(long, value_name = "CODE", value_parser = clap::value_parser!(i32).range(1..=255))]
    exit_code: Option<i32>,
    /// Say that another attempt would end alike
    #[arg(long)]
    non_retryable: bool,
}

/// Fails the attempt.
pub(super) fn run(arguments: &Arguments) -> Result<Exit, Ending> {
    let external = &arguments.external;
    let opened = Opened::open(&external.dir)?;
    let job = opened.find(&external.job)?;
    let reason = arguments.reason.as_deref().map(str::trim).filter(|reason| !reason.is_empty());
    let failure = ExternalFailure {
        reason: reason.map(str::to_owned),
        exit_code: arguments.exit_code,
        non_retryable: arguments.non_retryable,
    };
    let failed = opened.scheduler()?.fail(&job, &external.token, &failure);
    let (record, ticked) = failed.map_err(|error| refused(&error))?;
    told(external, "Attempt failed", &record, &ticked)
}
