//! `tidewheel jobs show`: everything that is known of one job.

use clap::Args;
use serde_json::Value;
use tidewheel_core::view::jobs::show_json;

use super::VERSION;
use crate::error::Ending;
use crate::exit::Exit;
use crate::jobs::{DirArguments, ListFormat, Opened, Shown};
use crate::output;
use crate::view::block::{block, table};

/// Show one job with everything that is known of it
///
/// `[display.lists.jobs_show]` in config.toml chooses the fields and the format.
///
/// Example:
///
///   $ tidewheel jobs show run_5c/build
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// The job: its id, any beginning or end of it, or RUN/NODE
    job: String,
    #[command(flatten)]
    dir: DirArguments,
    /// How the job is printed; what is configured, else block
    #[arg(long, value_enum)]
    format: Option<ListFormat>,
}

/// Shows the job.
pub(super) fn run(arguments: &Arguments) -> Result<Exit, Ending> {
    let opened = Opened::open(&arguments.dir)?;
    let record = opened.record(&arguments.job)?;
    let Shown { fields, format } = opened.settings.show();
    let rows = || {
        let said = fields.iter().filter_map(|field| Some((field.label(), field.of(&record)?)));
        said.filter(|(_, value)| !value.is_empty() && value != "none").collect::<Vec<_>>()
    };
    match arguments.format.unwrap_or(format) {
        ListFormat::Json => {
            let mut form = show_json(&record, &fields);
            form.insert("version".to_owned(), Value::from(VERSION));
            output::json(&form)?;
        }
        ListFormat::Table => {
            let rows: Vec<Vec<String>> =
                rows().into_iter().map(|(label, value)| vec![label, value]).collect();
            output::text(&table(&["Field", "Value"], &rows))?;
        }
        ListFormat::Block => output::text(&block(&rows(), ""))?,
    }
    Ok(Exit::Succeeded)
}
