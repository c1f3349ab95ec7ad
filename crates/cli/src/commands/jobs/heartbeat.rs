//! `tidewheel jobs heartbeat`: says that the worker of a job outside is alive.

use clap::Args;

use super::external::{ExternalArguments, told};
use crate::error::Ending;
use crate::exit::Exit;
use crate::jobs::{Opened, refused};

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
    let opened = Opened::open(&external.dir)?;
    let job = opened.find(&external.job)?;
    let heard = opened.scheduler()?.heartbeat(&job, &external.token);
    let (record, ticked) = heard.map_err(|error| refused(&error))?;
    told(external, "Heartbeat noted", &record, &ticked)
}
