//! `tidewheel jobs fail`: ends an attempt of a job whose work failed elsewhere.

use clap::Args;
use tidewheel_runner::job::ExternalFailure;

use super::decided::{ExternalArguments, exit_code};
use crate::error::Ending;
use crate::exit::Exit;

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
    let Arguments { external, reason, exit_code: code, non_retryable } = arguments;
    let reason = reason.as_deref().map(str::trim).filter(|reason| !reason.is_empty());
    let failure = ExternalFailure {
        reason: reason.map(str::to_owned),
        exit_code: *code,
        non_retryable: *non_retryable,
    };
    external.decided.decide(
        "Attempt failed",
        |scheduler, job| scheduler.fail(job, &external.token, &failure),
        exit_code,
    )
}
