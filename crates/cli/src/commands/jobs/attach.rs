//! `tidewheel jobs attach`: both streams of a job, until it is over.

use clap::Args;

use super::tail::{How, Stream, Tail};
use crate::error::Ending;
use crate::exit::Exit;
use crate::jobs::{DirArguments, Opened};

/// Print both streams of a job, and stay until it is over
///
/// The same as `tidewheel jobs tail JOB --follow`. Leaving it with Ctrl-C does
/// not end the job.
///
/// Example:
///
///   $ tidewheel jobs attach run_5c/build
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// The job: its id, any beginning or end of it, or RUN/NODE
    job: String,
    #[command(flatten)]
    dir: DirArguments,
    /// Print the bytes as they are
    #[arg(long)]
    raw: bool,
}

/// Prints the streams.
pub(super) fn run(arguments: &Arguments) -> Result<Exit, Ending> {
    let opened = Opened::open(&arguments.dir)?;
    let job = opened.find(&arguments.job)?;
    let how = How { stream: Stream::Both, lines: None, is_raw: arguments.raw, follows: true };
    Tail { opened: &opened, job, how, since: None }.print()
}
