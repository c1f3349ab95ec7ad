//! `tidewheel jobs complete`: ends a job whose work was done elsewhere.

use clap::Args;
use serde_json::Value;

use super::external::{ExternalArguments, told};
use crate::error::Ending;
use crate::exit::Exit;
use crate::jobs::{Opened, refused};

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
    let external = &arguments.external;
    let opened = Opened::open(&external.dir)?;
    let job = opened.find(&external.job)?;
    let completed = opened.scheduler()?.complete(&job, &external.token, arguments.value.as_ref());
    let (record, ticked) = completed.map_err(|error| refused(&error))?;
    told(external, "Job completed", &record, &ticked)
}
