//! `tidewheel tick`: one pass of the scheduler over all jobs.

use clap::Args;
use serde_json::json;

use crate::commands::policy::Format;
use crate::error::Ending;
use crate::exit::Exit;
use crate::jobs::{DirArguments, Opened, concluded};
use crate::output;
use crate::view::block::{block, named};

/// Look at all jobs once, and start what may start
///
/// Commands that change jobs do this themselves, and so do jobs that end. It is
/// needed by hand only after something outside has changed, if no daemon runs.
///
/// Example:
///
///   $ tidewheel tick --format json
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    #[command(flatten)]
    dir: DirArguments,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The version of what `--format json` prints.
const VERSION: u32 = 1;

/// Does one pass.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Ending> {
    let opened = Opened::open(&arguments.dir)?;
    let mut ticked = opened.tick()?;
    // All others went on; these are not started, nor anything after them.
    ticked
        .errors
        .extend(std::mem::take(&mut ticked.unreadable).into_iter().map(|(id, why)| unreadable(&id, &why)));
    match arguments.format {
        Format::Json => {
            ticked.warnings.iter().for_each(|warning| output::warning(warning));
            output::json(&json!({
                "version": VERSION,
                "started": ticked.started,
                "updated": ticked.updated,
                "errors": ticked.errors,
            }))?;
            Ok(if ticked.errors.is_empty() { Exit::Succeeded } else { Exit::Failed })
        }
        Format::Text => {
            let rows = [("Started", named(&ticked.started)), ("Updated", named(&ticked.updated))];
            output::text(&block(&rows, ""))?;
            concluded(&ticked)
        }
    }
}

/// Says that a record cannot be read.
pub(super) fn unreadable(id: &str, why: &str) -> String {
    format!("job {id}: its record cannot be read: {why}; `tidewheel doctor` says what to do")
}
