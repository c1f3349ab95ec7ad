//! `tidewheel jobs list`: the jobs, newest first.

use clap::Args;
use serde::Serialize;
use serde_json::{Map, Value};
use tidewheel_core::job::Record;
use tidewheel_core::view::jobs::{Field, List, ListAsk};
use tidewheel_store::jobs::JobStore as _;

use super::VERSION;
use crate::error::Ending;
use crate::exit::Exit;
use crate::jobs::{DirArguments, ListFormat, Opened, Shown};
use crate::output;
use crate::view::block::{block, table};

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
}

/// Lists the jobs.
pub(super) fn run(arguments: &Arguments) -> Result<Exit, Ending> {
    let opened = Opened::open(&arguments.dir)?;
    let jobs = opened.jobs()?;
    let Shown { fields, format } = opened.settings.list();
    let ask =
        ListAsk { all: arguments.all, show_succeeded: false, dismiss_failures: arguments.dismiss_failures };
    let list = List::of(&jobs.briefs, ask);
    let mut records: Vec<Record> = Vec::with_capacity(list.jobs.len());
    for job in &list.jobs {
        match opened.store().record(&job.id) {
            Ok(record) => records.extend(record),
            Err(error) => output::warning(&format!("unable to load background job {}: {error}", job.id)),
        }
    }
    match arguments.format.unwrap_or(format) {
        ListFormat::Json => output::json(&ListForm {
            version: VERSION,
            header: HeaderForm { outcome: &list.outcome, hidden: list.hidden.as_deref() },
            jobs: records.iter().map(|record| texts(record, &fields)).collect(),
        })?,
        format => {
            let mut header = vec![("Outcome", list.outcome)];
            header.extend(list.hidden.map(|hidden| ("Hidden", hidden)));
            let mut text = block(&header, "");
            if !records.is_empty() {
                text.push('\n');
            }
            match format {
                ListFormat::Table => text.push_str(&lines(&records, &fields)),
                ListFormat::Block | ListFormat::Json => {
                    let blocks: Vec<String> = records.iter().map(|record| one(record, &fields)).collect();
                    text.push_str(&blocks.join("\n"));
                }
            }
            output::text(&text)?;
        }
    }
    Ok(Exit::Succeeded)
}

/// Returns the fields of a job for programs.
fn texts(record: &Record, fields: &[Field]) -> Map<String, Value> {
    let text = |field: &Field| Some((field.name().to_owned(), Value::String(field.of(record)?)));
    fields.iter().filter_map(text).collect()
}

/// Writes a job as a block. What is not there is left out.
fn one(record: &Record, fields: &[Field]) -> String {
    let row = |field: &Field| Some((field.label(), said(*field, record)?));
    block(&fields.iter().filter_map(row).collect::<Vec<_>>(), "  ")
}

/// Writes a line for each job. A column that nobody has anything in is left out.
fn lines(records: &[Record], fields: &[Field]) -> String {
    if records.is_empty() {
        return String::new();
    }
    let is_said = |field: &&Field| records.iter().any(|record| said(**field, record).is_some());
    let fields: Vec<&Field> = fields.iter().filter(is_said).collect();
    let headings: Vec<String> = fields.iter().map(|field| field.label()).collect();
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let row = |record: &Record| {
        fields.iter().map(|field| said(**field, record).unwrap_or_default()).collect::<Vec<_>>()
    };
    table(&headings, &records.iter().map(row).collect::<Vec<_>>())
}

/// Returns what there is to say of a field to people, who need not read what is not there.
fn said(field: Field, record: &Record) -> Option<String> {
    field.of(record).filter(|value| !value.is_empty() && value != "none")
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
