//! `tidewheel runs list`: the runs of a store, newest first.

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde::Serialize;
use tidewheel_core::time::Timestamp;
use tidewheel_core::view::jobs::RunStatus;
use tidewheel_core::view::{absolute, between, long, relative};
use tidewheel_store::{Filter, RunRecord, Status};

use super::VERSION;
use super::of_jobs;
use super::side::{EitherArguments, Side, of_programs, of_repositories};
use crate::commands::policy::Format;
use crate::error::Ending;
use crate::exit::Exit;
use crate::jobs::{Form, Ids, MannerArguments, Times};
use crate::output::{self, harmless};
use crate::store::{Opened, Purpose};
use crate::terminal;
use crate::view::table::{Column, Kind, Table};

/// List the runs, newest first
///
/// Each run has its workflow, how it is and why, and when it was created; of a
/// run in a store, also when it was written last and how many events its log
/// has.
///
/// Example:
///
///   $ tidewheel runs list --status failed,blocked
///   $ tidewheel runs list --store orders.db --status failed --prefix order-
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    #[command(flatten)]
    place: EitherArguments,
    /// Only runs that are so; several with commas between
    #[arg(long, value_delimiter = ',', value_parser = PossibleValuesParser::new(words()))]
    status: Vec<String>,
    /// Only runs of this workflow
    #[arg(long, value_name = "NAME")]
    workflow: Option<String>,
    /// Only runs whose id begins so
    #[arg(long, value_name = "ID")]
    prefix: Option<String>,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 50, conflicts_with = "all")]
    limit: u32,
    /// All of them
    #[arg(long)]
    all: bool,
    /// How ids are written; without it short on a terminal, full everywhere else and always in JSON
    #[arg(long, value_enum, value_name = "HOW", conflicts_with = "store")]
    ids: Option<Ids>,
    /// How instants are written; without it relative on a terminal, absolute everywhere else and always in JSON
    #[arg(long, value_enum, value_name = "HOW")]
    times: Option<Times>,
    /// The same as --times absolute
    #[arg(long, conflicts_with = "times")]
    utc: bool,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Returns the words for how runs can be, on both sides.
fn words() -> Vec<&'static str> {
    let mut words: Vec<&'static str> = Status::ALL.iter().map(|status| status.name()).collect();
    words.extend(
        RunStatus::ALL.iter().map(|status| status.name()).filter(|word| Status::from_name(word).is_none()),
    );
    words
}

impl Arguments {
    /// Returns how ids and instants are written.
    fn manner(&self) -> MannerArguments {
        MannerArguments { ids: self.ids, times: self.times.or_else(|| self.utc.then_some(Times::Absolute)) }
    }
}

/// Lists the runs.
pub(super) fn run(arguments: &Arguments) -> Result<Exit, Ending> {
    let most = if arguments.all { usize::MAX } else { arguments.limit as usize };
    if arguments.format == Format::Json {
        arguments.manner().check_for_json()?;
    }
    let store = match arguments.place.side() {
        Side::Program(store) => store,
        Side::Repository(dir) => {
            let status = |word: &String| {
                let words: Vec<&str> = RunStatus::ALL.iter().map(|status| status.name()).collect();
                RunStatus::from_name(word).ok_or_else(|| {
                    of_programs(
                        &format!("`--status {word}`"),
                        &format!("Here runs are {}.", words.join(", ")),
                    )
                })
            };
            return of_jobs::list(&of_jobs::Listed {
                dir: &dir,
                statuses: arguments.status.iter().map(status).collect::<Result<_, _>>()?,
                template: arguments.workflow.as_deref(),
                prefix: arguments.prefix.as_deref(),
                most,
                manner: arguments.manner(),
                format: arguments.format,
            });
        }
    };
    let status = |word: &String| {
        let words: Vec<&str> = Status::ALL.iter().map(|status| status.name()).collect();
        Status::from_name(word).ok_or_else(|| {
            of_repositories(
                &format!("`--status {word}`"),
                &format!("In a store runs are {}.", words.join(", ")),
            )
        })
    };
    let statuses = arguments.status.iter().map(status).collect::<Result<_, _>>()?;
    let opened = Opened::open(&store, Purpose::Look)?;
    let (rows, has_more) = rows(&opened, arguments, statuses)?;
    match arguments.format {
        Format::Json => output::json(&ListForm::of(&rows, has_more))?,
        Format::Text => {
            output::text(&table(&rows, &opened, arguments))?;
            if has_more {
                output::hint("There are more: --all lists all of them, and --limit as many as you like.");
            }
        }
    }
    Ok(Exit::Succeeded)
}

/// Returns the runs that fit, page by page, and whether there are more.
fn rows(
    opened: &Opened,
    arguments: &Arguments,
    statuses: Vec<Status>,
) -> Result<(Vec<RunRecord>, bool), Ending> {
    let mut filter = Filter {
        statuses,
        workflow: arguments.workflow.clone(),
        id_prefix: arguments.prefix.clone(),
        limit: None,
        after: None,
    };
    let most = if arguments.all { usize::MAX } else { arguments.limit as usize };
    let mut rows = Vec::new();
    loop {
        let left = most.saturating_sub(rows.len());
        filter.limit = Some(u32::try_from(left).unwrap_or(u32::MAX));
        let page = opened.list(filter.clone())?;
        rows.extend(page.rows);
        filter.after = page.next;
        if filter.after.is_none() || rows.len() >= most {
            return Ok((rows, filter.after.is_some()));
        }
    }
}

fn table(rows: &[RunRecord], opened: &Opened, arguments: &Arguments) -> String {
    if rows.is_empty() {
        let is_filtered =
            !arguments.status.is_empty() || arguments.workflow.is_some() || arguments.prefix.is_some();
        let name = harmless(&opened.name);
        return match is_filtered {
            true => format!("No run of {name} fits.\n"),
            false => format!("There are no runs in {name}.\n"),
        };
    }
    let now = opened.now;
    let times = arguments.manner().times(Form::Table);
    let created = match times {
        Times::Relative => "AGE",
        Times::Absolute => "CREATED",
    };
    let mut table = Table::new(vec![
        Column::new("RUN", Kind::Name, 0),
        Column::new("STATUS", Kind::Word, 1),
        Column::new("WHY", Kind::Text, 2),
        Column::new("UPDATED", Kind::Word, 3),
        Column::new(created, Kind::Word, 5),
        Column::new("EVENTS", Kind::Number, 6),
        Column::new("WORKFLOW", Kind::Text, 4),
    ]);
    for row in rows {
        let (created, updated) = match times {
            Times::Relative => (long(between(row.created_at, now)), relative(row.updated_at, now)),
            Times::Absolute => (absolute(row.created_at), absolute(row.updated_at)),
        };
        table.row(vec![
            row.id.as_str().into(),
            row.status.name().into(),
            why(row, now).unwrap_or_default().into(),
            updated.into(),
            created.into(),
            row.version.to_string().into(),
            row.workflow.as_str().into(),
        ]);
    }
    table.drawn(terminal::table_canvas())
}

/// Says in a few words why a run is as it is, or what it waits for.
pub(super) fn why(run: &RunRecord, now: Timestamp) -> Option<String> {
    if let Some(reason) = &run.reason {
        return Some(reason.clone());
    }
    match (run.status, run.wake_at, run.owner) {
        (Status::Running, _, None) => Some("nobody drives it".to_owned()),
        (Status::Waiting, None, _) if run.version == 0 => Some("no input yet".to_owned()),
        (Status::Waiting, None, _) => Some("waits for somebody".to_owned()),
        (Status::Waiting, Some(at), None) if at <= now => {
            Some(format!("due {}, nobody drives it", relative(at, now)))
        }
        (Status::Waiting, Some(at), _) => Some(format!("due {}", relative(at, now))),
        (
            Status::Running
            | Status::Completed
            | Status::Failed
            | Status::Paused
            | Status::Stopped
            | Status::Parked
            | Status::Cancelled,
            ..,
        ) => None,
    }
}

#[derive(Serialize)]
struct ListForm<'a> {
    version: u32,
    runs: Vec<RunForm<'a>>,
    more: bool,
}

/// A run for programs.
#[derive(Serialize)]
pub(super) struct RunForm<'a> {
    id: &'a str,
    workflow: &'a str,
    workflow_version: u32,
    status: &'static str,
    reason: Option<&'a str>,
    events: u64,
    driven: bool,
    wake_at: Option<String>,
    created_at: String,
    updated_at: String,
}

impl<'a> RunForm<'a> {
    pub(super) fn of(run: &'a RunRecord) -> Self {
        Self {
            id: run.id.as_str(),
            workflow: &run.workflow,
            workflow_version: run.workflow_version,
            status: run.status.name(),
            reason: run.reason.as_deref(),
            events: run.version,
            driven: run.owner.is_some(),
            wake_at: run.wake_at.map(|at| at.to_string()),
            created_at: run.created_at.to_string(),
            updated_at: run.updated_at.to_string(),
        }
    }
}

impl<'a> ListForm<'a> {
    fn of(rows: &'a [RunRecord], more: bool) -> Self {
        Self { version: VERSION, runs: rows.iter().map(RunForm::of).collect(), more }
    }
}
