//! `tidewheel runs events`: the log of a run, event by event.

use std::fmt::Write as _;

use clap::Args;
use serde::Serialize;
use serde_json::Value;
use tidewheel_core::time::Timestamp;
use tidewheel_core::view::{between, long};
use tidewheel_store::{RunRecord, Store as _, Stored};

use super::VERSION;
use crate::commands::policy::Format;
use crate::error::{Code, CommandError, Ending};
use crate::exit::Exit;
use crate::output::{self, harmless};
use crate::store::{Opened, Purpose, StoreArguments};
use crate::terminal;
use crate::view::columns::cut;
use crate::view::lines::{EventLine, Reader};
use crate::view::timeline::FAINT;

/// List the events of a run: everything that happened, in order
///
/// Each line has the number of the event, when it was stored, counted from the
/// creation of the run, what happened, and to which component. `#3` behind a
/// component is its piece of work: the same number, the same piece.
///
/// Example:
///
///   $ tidewheel runs events order-7 --store orders.db --from 20
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// The run, or the beginning of its id
    run: String,
    #[command(flatten)]
    store: StoreArguments,
    /// Begin with the event of this number
    #[arg(long, value_name = "N", default_value_t = 0)]
    from: u64,
    /// Show instants in UTC instead of the time since the run was created
    #[arg(long)]
    utc: bool,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// One event with its number and the time when it was stored.
struct Numbered {
    number: u64,
    at: Timestamp,
    line: EventLine,
}

/// Lists the events.
pub(super) fn run(arguments: &Arguments) -> Result<Exit, Ending> {
    let opened = Opened::open(&arguments.store, Purpose::Look)?;
    let record = opened.run(&arguments.run)?;
    // All of them are read: the later ones speak of work by its number only.
    let stored = opened.wait(opened.store().read(&record.id, 0))?;
    let mut events = numbered(&record, &stored)?;
    events.retain(|event| event.number >= arguments.from);
    match arguments.format {
        Format::Json => output::json(&EventsForm::of(&record, events))?,
        Format::Text => output::text(&listed(&record, &events, arguments.utc))?,
    }
    Ok(Exit::Succeeded)
}

fn numbered(record: &RunRecord, stored: &[Stored]) -> Result<Vec<Numbered>, CommandError> {
    let mut reader = Reader::default();
    let mut events = Vec::new();
    for batch in stored {
        let lines =
            batch.events.events().map_err(|error| unreadable(record, batch.first, &error.to_string()))?;
        for (number, text) in (batch.first..).zip(lines) {
            let line = reader.read(text).ok_or_else(|| unreadable(record, number, "it is no event"))?;
            events.push(Numbered { number, at: batch.at, line });
        }
    }
    Ok(events)
}

fn unreadable(record: &RunRecord, number: u64, why: &str) -> CommandError {
    let message = format!("Event {number} of run `{}` cannot be read: {why}.", record.id);
    CommandError::new(Code::RunDamaged, message).hint("All other runs of the store are as they were.")
}

fn listed(record: &RunRecord, events: &[Numbered], utc: bool) -> String {
    let canvas = terminal::canvas();
    let when = |at: Timestamp| match utc {
        true => at.to_string(),
        false => format!("+{}", long(between(record.created_at, at))),
    };
    let times: Vec<String> = events.iter().map(|event| when(event.at)).collect();
    let time_width = times.iter().map(String::len).max().unwrap_or(0);
    let kind_width = events.iter().map(|event| event.line.kind.len()).max().unwrap_or(0);
    let number_width = events.last().map_or(1, |event| event.number.to_string().len());
    let mut text = String::new();
    for (event, time) in events.iter().zip(times) {
        let front = format!("{:>number_width$}  {time:>time_width$}", event.number);
        let kind = harmless(&event.line.kind);
        let rest = format!("{kind:kind_width$}  {}", harmless(&event.line.said));
        let room = canvas.width.saturating_sub(front.len() + 2);
        let _ = writeln!(text, "{FAINT}{front}{FAINT:#}  {}", cut(rest.trim_end(), room, canvas));
    }
    text
}

#[derive(Serialize)]
struct EventsForm<'a> {
    version: u32,
    run: &'a str,
    events: Vec<EventForm>,
}

#[derive(Serialize)]
struct EventForm {
    number: u64,
    stored_at: String,
    event: Value,
}

impl<'a> EventsForm<'a> {
    fn of(record: &'a RunRecord, events: Vec<Numbered>) -> Self {
        let form = |event: Numbered| EventForm {
            number: event.number,
            stored_at: event.at.to_string(),
            event: event.line.event,
        };
        Self { version: VERSION, run: record.id.as_str(), events: events.into_iter().map(form).collect() }
    }
}
