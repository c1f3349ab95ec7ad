//! `tidewheel jobs heartbeat`: says that the worker of a job outside is alive.

use clap::Args;

use super::decided::{ExternalArguments, exit_code};
use crate::error::Ending;
use crate::exit::Exit;

/// Report that the external worker of a job is alive
///
/// A policy with `heartbeat` ends an attempt whose worker is silent for longer.
///
/// Example:
///
///   $ tidewheel jobs heartbeat run_5c/deploy --token 1-9f2e
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    #[command(flatten)]
    external: ExternalArguments,
}

/// Notes the heartbeat.
pub(super) fn run(arguments: &Arguments) -> Result<Exit, Ending> {
    let external = &arguments.external;
    external.decided.decide(
        "Heartbeat noted",
        |scheduler, job| scheduler.heartbeat(job, &external.token),
        exit_code,
    )
}
