//! `tidewheel jobs list`: the jobs, newest first.

use clap::Args;
use serde::Serialize;
use serde_json::{Map, Value};
use tidewheel_core::job::{Brief, Record};
use tidewheel_core::view::jobs::{Field, Known, List, ListAsk, TABLE_FIELDS};
use tidewheel_store::jobs::JobStore as _;

use super::VERSION;
use crate::error::Ending;
use crate::exit::Exit;
use crate::jobs::{
    DirArguments, Form, ListFormat, Manner, MannerArguments, Opened, Shown, cell, columns, listed,
};
use crate::output;
use crate::terminal;
use crate::view::block::block;
use crate::view::table::Table;

/// List the jobs, newest first
///
/// Jobs that succeeded or were not needed are left out unless --all is given.
/// `[display.lists.jobs]` in config.toml chooses the fields and the format.
///
/// Example:
///
///   $ tidewheel jobs list --format table
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    #[command(flatten)]
    dir: DirArguments,
    /// All of them
    #[arg(long)]
    all: bool,
    /// Leave out jobs that failed
    #[arg(long)]
    dismiss_failures: bool,
    /// How the list is printed; what is configured, else block
    #[arg(long, value_enum)]
    format: Option<ListFormat>,
    #[command(flatten)]
    manner: MannerArguments,
}

/// Lists the jobs.
pub(super) fn run(arguments: &Arguments) -> Result<Exit, Ending> {
    let opened = Opened::open(&arguments.dir)?;
    let survey = opened.survey()?;
    let all = survey.glances();
    let Shown { fields, format, is_chosen } = opened.settings.list();
    let ask =
        ListAsk { all: arguments.all, show_succeeded: false, dismiss_failures: arguments.dismiss_failures };
    let (jobs, left_out) = listed(&survey, &all, ask);
    let list = List::of(&jobs.briefs, left_out, ask);
    let format = arguments.format.unwrap_or(format);
    if format == ListFormat::Json {
        arguments.manner.check_for_json()?;
    }
    // A table that has to fit has room for what people look for, and that is known without the records.
    let is_narrow = format == ListFormat::Table && !is_chosen && terminal::table_canvas().is_some();
    let fields = if is_narrow { TABLE_FIELDS.to_vec() } else { fields };
    let columns_of = if is_chosen { Columns::Chosen } else { Columns::Usual };
    let shown = Listed::read(&opened, &list.jobs, &fields);
    let known = shown.known();
    match format {
        ListFormat::Json => output::json(&ListForm {
            version: VERSION,
            header: HeaderForm { outcome: &list.outcome, hidden: list.hidden.as_deref() },
            jobs: known.iter().map(|job| texts(*job, &fields, columns_of)).collect(),
        })?,
        ListFormat::Block | ListFormat::Table => {
            let mut header = vec![("Outcome", list.outcome)];
            header.extend(list.hidden.map(|hidden| ("Hidden", hidden)));
            let mut text = block(&header, "");
            if !known.is_empty() {
                text.push('\n');
            }
            let form = if format == ListFormat::Table { Form::Table } else { Form::Lines };
            let manner = arguments.manner.of(form, &survey, &all, opened.now);
            match form {
                Form::Table => text.push_str(&lines(&known, &fields, columns_of, &manner)),
                Form::Lines => {
                    let blocks: Vec<String> =
                        known.iter().map(|job| one(*job, &fields, columns_of, &manner)).collect();
                    text.push_str(&blocks.join("\n"));
                }
            }
            output::text(&text)?;
        }
    }
    Ok(Exit::Succeeded)
}

/// The jobs of a list: their records where a field needs them, else what the index has.
enum Listed<'a> {
    Records(Vec<Record>),
    Briefs(&'a [&'a Brief]),
}

impl<'a> Listed<'a> {
    fn read(opened: &Opened, jobs: &'a [&'a Brief], fields: &[Field]) -> Self {
        if fields.iter().all(|field| field.is_brief()) {
            return Self::Briefs(jobs);
        }
        let mut records: Vec<Record> = Vec::with_capacity(jobs.len());
        for job in jobs {
            match opened.store().record(&job.id) {
                Ok(record) => records.extend(record),
                Err(error) => output::warning(&format!("unable to load background job {}: {error}", job.id)),
            }
        }
        Self::Records(records)
    }

    fn known(&self) -> Vec<Known<'_>> {
        match self {
            Self::Records(records) => records.iter().map(Known::Record).collect(),
            Self::Briefs(briefs) => briefs.iter().map(|brief| Known::Brief(brief)).collect(),
        }
    }
}

/// Returns the fields of a job for programs.
fn texts(job: Known<'_>, fields: &[Field], columns_of: Columns) -> Map<String, Value> {
    let nothing = || (columns_of == Columns::Chosen).then_some(Value::Null);
    let text =
        |field: &Field| Some((field.name().to_owned(), field.of(job).map(Value::String).or_else(nothing)?));
    fields.iter().filter_map(text).collect()
}

/// Writes a job as a block. What is not there is left out, unless the configuration names it.
fn one(job: Known<'_>, fields: &[Field], columns_of: Columns, manner: &Manner<'_>) -> String {
    let nothing = || (columns_of == Columns::Chosen).then(|| NOTHING.to_owned());
    let row = |field: &Field| Some((field.label(), manner.field(*field, job).or_else(nothing)?));
    block(&fields.iter().filter_map(row).collect::<Vec<_>>(), "  ")
}

/// What a block has in the place of a value that is not there.
pub(super) const NOTHING: &str = "-";

/// Whose columns they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Columns {
    /// Those that a configuration names.
    Chosen,
    /// Those that there are without one.
    Usual,
}

/// Writes a line for each job. A column that is empty for all of them is left out, unless the configuration names it:
/// what reads the table finds it there.
fn lines(jobs: &[Known<'_>], fields: &[Field], columns_of: Columns, manner: &Manner<'_>) -> String {
    if jobs.is_empty() {
        return String::new();
    }
    let is_said = |field: &Field| {
        columns_of == Columns::Chosen || jobs.iter().any(|job| manner.field(*field, *job).is_some())
    };
    let fields: Vec<Field> = fields.iter().copied().filter(is_said).collect();
    let mut table = Table::new(columns(&fields));
    for job in jobs {
        table.row(fields.iter().map(|field| cell(*field, *job, manner)).collect());
    }
    table.drawn(terminal::table_canvas())
}

#[derive(Serialize)]
struct ListForm<'a> {
    version: u32,
    header: HeaderForm<'a>,
    jobs: Vec<Map<String, Value>>,
}

#[derive(Serialize)]
struct HeaderForm<'a> {
    outcome: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    hidden: Option<&'a str>,
}
