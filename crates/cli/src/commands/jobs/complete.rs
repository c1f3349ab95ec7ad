//! `tidewheel jobs complete`: ends a job whose work was done elsewhere.

use clap::Args;
use serde_json::Value;

use super::decided::{ExternalArguments, exit_code};
use crate::error::Ending;
use crate::exit::Exit;

/// Complete a job whose work is done elsewhere
///
/// A job under a policy with execution_mode = "external" runs no process: it
/// waits until a worker outside gives the token of its attempt. --value becomes
/// the payload of what the job produces.
///
/// Example:
///
///   $ tidewheel jobs complete run_5c/deploy --token 1-9f2e --value '{"url": "https://example.org"}'
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    #[command(flatten)]
    external: ExternalArguments,
    /// What the work resulted in, as JSON
    #[arg(long, value_name = "JSON", value_parser = json_of)]
    value: Option<Value>,
}

fn json_of(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("it is no JSON: {error}"))
}

/// Completes the job.
pub(super) fn run(arguments: &Arguments) -> Result<Exit, Ending> {
    let Arguments { external, value } = arguments;
    external.decided.decide(
        "Job completed",
        |scheduler, job| scheduler.complete(job, &external.token, value.as_ref()),
        exit_code,
    )
}
