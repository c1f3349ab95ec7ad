//! What commands share that decide something about one job: which job it is, and what they print. They decide nothing
//! here.

use clap::Args;
use serde_json::{Value, json};
use tidewheel_core::job::{JobId, Record};
use tidewheel_runner::job::{Scheduler, SchedulerError, Ticked};

use super::VERSION;
use crate::commands::policy::Format;
use crate::error::Ending;
use crate::exit::Exit;
use crate::jobs::{DirArguments, Opened, concluded, happened, refused};
use crate::output;
use crate::view::block::{block, named};

/// The job that is decided about
#[derive(Debug, Args)]
pub(super) struct DecidedArguments {
    /// The job: its id, any beginning or end of it, or RUN/NODE
    job: String,
    #[command(flatten)]
    dir: DirArguments,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// A field that only some of these commands print.
pub(super) struct Field {
    /// Its name for programs.
    pub(super) key: &'static str,
    /// Its name for people; fields without one are for programs only.
    pub(super) label: Option<&'static str>,
    pub(super) value: Value,
}

impl DecidedArguments {
    /// Decides about the job, and prints what became of it.
    pub(super) fn decide(
        &self,
        outcome: &str,
        decide: impl FnOnce(&Scheduler, &JobId) -> Result<(Record, Ticked), SchedulerError>,
        fields: impl FnOnce(&Record) -> Vec<Field>,
    ) -> Result<Exit, Ending> {
        let opened = Opened::open(&self.dir)?;
        let job = opened.find(&self.job)?;
        let decided = decide(opened.scheduler()?, &job);
        let (record, ticked) = decided.map_err(|error| refused(&error))?;
        happened(&ticked, &job)?;
        let fields = fields(&record);
        match self.format {
            Format::Json => {
                let mut form = json!({
                    "version": VERSION,
                    "outcome": outcome,
                    "job": record.id,
                    "status": record.status,
                    "started": ticked.started,
                    "updated": ticked.updated,
                });
                for Field { key, value, .. } in fields {
                    form[key] = value;
                }
                output::json(&form)?;
            }
            Format::Text => {
                let mut rows = vec![
                    ("Outcome", outcome.to_owned()),
                    ("Job", record.id.to_string()),
                    ("Status", record.status.to_string()),
                ];
                rows.extend(fields.into_iter().filter_map(|Field { label, value, .. }| {
                    Some((label?, value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
                }));
                rows.push(("Started", named(&ticked.started)));
                rows.push(("Updated", named(&ticked.updated)));
                output::text(&block(&rows, ""))?;
            }
        }
        concluded(&ticked)
    }
}

/// Returns what was said about a job that asks for approval.
pub(super) fn approval_state(record: &Record) -> Field {
    let state = record.schedule.approval.as_ref().map_or("none", |approval| approval.state.name());
    Field { key: "approval_state", label: Some("Approval state"), value: state.into() }
}

/// The job that an external worker has in hand
#[derive(Debug, Args)]
pub(super) struct ExternalArguments {
    #[command(flatten)]
    pub(super) decided: DecidedArguments,
    /// The token of the attempt, as `jobs explain` names it
    #[arg(long, value_name = "TOKEN")]
    pub(super) token: String,
}

/// Returns what the attempt of a job that is done elsewhere ended with.
pub(super) fn exit_code(record: &Record) -> Vec<Field> {
    vec![Field { key: "exit_code", label: None, value: record.exit_code.into() }]
}
