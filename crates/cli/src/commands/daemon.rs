//! `tidewheel daemon`: looks at the jobs whenever a time has come, for as long as it runs.

use std::collections::BTreeSet;

use clap::Args;
use tidewheel_runner::job::Serve;

use super::tick;
use crate::error::Ending;
use crate::exit::Exit;
use crate::jobs::{DirArguments, Opened, refused};
use crate::output;

/// Look at the jobs whenever a time has come
///
/// Retries, delays and limits need a process that wakes up. Without a daemon,
/// each command that leaves such a time behind starts a small process that
/// does it and ends when nothing is due; a daemon stays until it is ended.
///
/// Example:
///
///   $ tidewheel daemon
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    #[command(flatten)]
    dir: DirArguments,
    /// End as soon as nothing is due
    #[arg(long)]
    until_idle: bool,
}

/// Serves.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Ending> {
    let opened = Opened::open(&arguments.dir)?;
    if arguments.until_idle && !opened.has_jobs() {
        let data = opened.place.data.display();
        output::hint(&format!(
            "There are no jobs in `{data}`, so nothing is due: `tidewheel run FLOW` enqueues some."
        ));
        return Ok(Exit::Succeeded);
    }
    let serve = if arguments.until_idle { Serve::UntilIdle } else { Serve::Always };
    let mut told: BTreeSet<String> = BTreeSet::new();
    let tell = |ticked: &tidewheel_runner::job::Ticked| {
        for id in &ticked.started {
            output::aside(&format!("started {id}"));
        }
        for error in ticked.warnings.iter().chain(&ticked.errors) {
            output::warning(error);
        }
        // Each pass finds these again, and one word is enough.
        let unread = ticked.unreadable.iter().map(|(id, why)| tick::unreadable(id, why)).collect();
        let before = std::mem::replace(&mut told, unread);
        told.difference(&before).for_each(|said| output::warning(said));
    };
    opened.scheduler()?.serve(serve, tell).map_err(|error| refused(&error))?;
    Ok(Exit::Succeeded)
}
