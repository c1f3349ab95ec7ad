//! `tidewheel jobs show`: everything that is known of one job.

use clap::Args;
use serde_json::Value;
use tidewheel_core::job::{JobStatus, Record, lost_told, signal_told};
use tidewheel_core::view::jobs::{Field, Known, show_json};
use tidewheel_store::jobs::{JobStore as _, Survey};

use super::VERSION;
use super::list::NOTHING;
use crate::error::Ending;
use crate::exit::Exit;
use crate::jobs::{DirArguments, Form, Ids, ListFormat, MannerArguments, Opened, Shown, cell, unfit};
use crate::output;
use crate::terminal;
use crate::view::block::block;
use crate::view::table::{Cell, Column, Kind, Table};

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
    #[command(flatten)]
    manner: MannerArguments,
}

/// Shows the job.
pub(super) fn run(arguments: &Arguments) -> Result<Exit, Ending> {
    let opened = Opened::open(&arguments.dir)?;
    let record = opened.record(&arguments.job)?;
    let Shown { fields, format, is_chosen } = opened.settings.show();
    let format = arguments.format.unwrap_or(format);
    if format == ListFormat::Json {
        arguments.manner.check_for_json()?;
    }
    let form = match format {
        ListFormat::Table => Form::Table,
        ListFormat::Block | ListFormat::Json => Form::Lines,
    };
    // Short names need all others.
    let survey = match arguments.manner.ids(form) {
        Ids::Short => opened.store().survey().map_err(|error| unfit(&error))?,
        Ids::Full => Survey::default(),
    };
    let manner = arguments.manner.of(form, &survey, &survey.glances(), opened.now);
    let known = Known::Record(&record);
    let beside = beside(&opened, &record);
    let said = |field: Field| {
        let said = manner.field(field, known)?;
        match &beside {
            Some(beside) if field == Field::ExitCode => Some(format!("{said}, {beside}")),
            Some(_) | None => Some(said),
        }
    };
    match format {
        ListFormat::Json => {
            let mut form = show_json(&record, &fields);
            for field in fields.iter().filter(|_| is_chosen) {
                form.entry(field.name()).or_insert(Value::Null);
            }
            form.insert("version".to_owned(), Value::from(VERSION));
            output::json(&form)?;
        }
        ListFormat::Table => {
            let columns = [Column::new("Field", Kind::Word, 0), Column::new("Value", Kind::Text, 1)];
            let mut table = Table::new(columns.into());
            for field in fields {
                let cell = match said(field) {
                    Some(text) if field == Field::ExitCode => text.into(),
                    Some(_) => cell(field, known, &manner),
                    // What the configuration names is there, also where there is nothing to say.
                    None if is_chosen => Cell::default(),
                    None => continue,
                };
                table.row(vec![field.label().into(), cell]);
            }
            output::text(&table.drawn(terminal::table_canvas()))?;
        }
        ListFormat::Block => {
            let nothing = || is_chosen.then(|| NOTHING.to_owned());
            let row = |field: &Field| Some((field.label(), said(*field).or_else(nothing)?));
            output::text(&block(&fields.iter().filter_map(row).collect::<Vec<_>>(), ""))?;
        }
    }
    Ok(Exit::Succeeded)
}

/// Says what the exit code of a job that failed stands for: a signal, or that nothing exited at all.
fn beside(opened: &Opened, record: &Record) -> Option<String> {
    let code = record.exit_code.filter(|_| record.status == JobStatus::Failed)?;
    let summary = opened.store().outcome(&record.id).ok().flatten().and_then(|outcome| outcome.summary);
    lost_told(summary.as_deref()).or_else(|| signal_told(code, summary.as_deref()))
}
