//! `tidewheel jobs explain`: in sentences, why a job is not running, why it failed or was retried, and what is next.

use clap::Args;

use crate::commands::policy::Format;
use crate::error::Ending;
use crate::exit::Exit;
use crate::jobs::{DirArguments, Opened, explained_job, explained_run};
use crate::output;
use crate::terminal;
use crate::view::page::page;

/// Explain in sentences why a job waits, failed or was retried, and what is next
///
/// What it waits on is followed through to the root: the person, the job, the
/// lock, the time or the branch that holds it up, with the command that changes
/// it. Each attempt has its decision, its reason code and its last lines.
/// `run:ID` explains a run as a whole. Nothing is changed, and nothing starts.
///
/// Example:
///
///   $ tidewheel jobs explain run_5c/deploy
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// The job: its id, any beginning or end of it, RUN/NODE, or run:ID
    job: String,
    #[command(flatten)]
    dir: DirArguments,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Explains.
pub(super) fn run(arguments: &Arguments) -> Result<Exit, Ending> {
    let text = arguments.job.as_str();
    if text.starts_with("run:") && !text.contains('/') {
        return whole_run(&arguments.dir, text, arguments.format);
    }
    one_job(&arguments.dir, text.strip_prefix("run:").unwrap_or(text), arguments.format)
}

/// Explains a job.
pub(in crate::commands) fn one_job(dir: &DirArguments, text: &str, format: Format) -> Result<Exit, Ending> {
    let opened = Opened::open(dir)?;
    let (id, jobs) = opened.around_job(text)?;
    let explained = explained_job(&opened, jobs, &id)?;
    for unread in &explained.unread {
        output::warning(unread);
    }
    match format {
        Format::Json => output::json(&explained.why)?,
        Format::Text => output::text(&page(explained.why.page(), terminal::canvas()))?,
    }
    Ok(Exit::Succeeded)
}

/// Explains a run as a whole.
pub(in crate::commands) fn whole_run(dir: &DirArguments, text: &str, format: Format) -> Result<Exit, Ending> {
    let opened = Opened::open(dir)?;
    let (run, jobs) = opened.around_run(text)?;
    let explained = explained_run(&opened, &jobs, &run);
    match format {
        Format::Json => output::json(&explained)?,
        Format::Text => output::text(&page(explained.page(), terminal::canvas()))?,
    }
    Ok(Exit::Succeeded)
}
