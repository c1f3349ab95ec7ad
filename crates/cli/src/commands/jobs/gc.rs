//! `tidewheel jobs gc`: removes jobs that have been over for a while.

use clap::Args;

use crate::commands::policy::Format;
use crate::error::Ending;
use crate::exit::Exit;
use crate::jobs::{Collect, DirArguments, collect};

/// Remove jobs that have been over for a while
///
/// With them go their logs. A run goes as a whole, with its manifest, markers
/// and payloads, or not at all. What an active job still needs stays, and so
/// do files that Tidewheel did not make. It works on a full disk.
///
/// Example:
///
///   $ tidewheel jobs gc --days 30 --dry-run
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    #[command(flatten)]
    dir: DirArguments,
    /// Only jobs that have been over for more than so many days; what is configured, else 7
    #[arg(long, value_name = "N")]
    days: Option<u32>,
    /// Only show what would be removed
    #[arg(long)]
    dry_run: bool,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Removes what is old.
pub(super) fn run(arguments: &Arguments) -> Result<Exit, Ending> {
    let wanted = Collect { days: arguments.days, dry_run: arguments.dry_run, format: arguments.format };
    collect(&arguments.dir, wanted)
}
