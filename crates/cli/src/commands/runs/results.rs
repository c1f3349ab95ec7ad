//! `tidewheel runs results`: what the components of a run gave.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::Args;
use serde::Serialize;
use serde_json::Value;
use tidewheel_core::view::{FactLine, Story};
use tidewheel_store::RunRecord;

use super::VERSION;
use super::show::{is_unnamed, place};
use crate::commands::policy::Format;
use crate::error::{Code, CommandError, Ending};
use crate::exit::Exit;
use crate::output::{self, harmless};
use crate::store::{Opened, Purpose, StoreArguments, no_component};
use crate::terminal;
use crate::view::columns::{columns_of, cut, padded};

/// Show what the components of a run gave
///
/// With a COMPONENT only its values are printed, each as one line of JSON and
/// as a whole; without, each value has its component and its input, and what is
/// wider than the terminal is cut.
///
/// Example:
///
///   $ tidewheel runs results order-7 decide --store orders.db
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// The run, or the beginning of its id
    run: String,
    /// Only the values of this component
    component: Option<String>,
    #[command(flatten)]
    store: StoreArguments,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Shows the values.
pub(super) fn run(arguments: &Arguments) -> Result<Exit, Ending> {
    let opened = Opened::open(&arguments.store, Purpose::Look)?;
    let record = opened.run(&arguments.run)?;
    let story = opened.ask(opened.control.story(&record.id))?;
    let facts: Vec<&FactLine> = match &arguments.component {
        None => story.facts.iter().filter(|fact| !is_unnamed(&fact.node)).collect(),
        Some(component) => {
            let known = opened.ask(opened.control.components(&record.id))?;
            let facts: Vec<&FactLine> = story.facts.iter().filter(|fact| fact.node == *component).collect();
            if facts.is_empty() && !known.contains(component) {
                return Err(no_component(&record.id, component, &known).into());
            }
            if facts.is_empty() {
                return Err(no_result(&opened, &record, component, &story).into());
            }
            facts
        }
    };
    match (arguments.format, &arguments.component) {
        (Format::Json, _) => output::json(&ResultsForm::of(&record, &facts))?,
        (Format::Text, Some(_)) => {
            let lines: String =
                facts.iter().map(|fact| format!("{}\n", harmless(&fact.value.to_string()))).collect();
            output::text(&lines)?;
        }
        (Format::Text, None) => output::text(&listed(&record, &facts))?,
    }
    Ok(Exit::Succeeded)
}

/// Says why a component gave nothing.
fn no_result(opened: &Opened, record: &RunRecord, component: &str, story: &Story) -> CommandError {
    let failed = story.works.iter().rev().find(|work| work.node == component && work.failure.is_some());
    let absent = story.absences.iter().rev().find(|absence| absence.node == component);
    let why = match (failed.and_then(|work| work.failure.as_ref()), absent) {
        (Some(failure), _) => format!("it failed: {failure}"),
        (None, Some(absence)) => super::explain::absence(absence.why).to_owned(),
        (None, None) => "it gave nothing yet".to_owned(),
    };
    let message =
        format!("`{component}` of run `{}` has no result: {}.", record.id, why.trim_end_matches('.'));
    let hint = format!("{} says more.", opened.command(&format!("explain {} {component}", record.id)));
    CommandError::new(Code::NothingThere, message).hint(hint)
}

fn listed(record: &RunRecord, facts: &[&FactLine]) -> String {
    if facts.is_empty() {
        return format!("{} has no results yet.\n", harmless(record.id.as_str()));
    }
    let canvas = terminal::canvas();
    let rows: Vec<(String, String)> = facts
        .iter()
        .map(|fact| (harmless(&fact.node).into_owned(), place(fact.input, &fact.items)))
        .collect();
    let name_width = rows.iter().map(|(name, _)| columns_of(name)).max().unwrap_or(0);
    let place_width = rows.iter().map(|(_, place)| place.len()).max().unwrap_or(0);
    let mut text = String::new();
    for ((name, place), fact) in rows.iter().zip(facts) {
        let value = fact.value.to_string();
        let line = format!("{}  {place:place_width$}  {}", padded(name, name_width), harmless(&value));
        let _ = writeln!(text, "{}", cut(&line, canvas.width, canvas));
    }
    text
}

#[derive(Serialize)]
struct ResultsForm<'a> {
    version: u32,
    run: &'a str,
    results: BTreeMap<&'a str, Vec<ResultForm<'a>>>,
}

#[derive(Serialize)]
struct ResultForm<'a> {
    input: u32,
    items: &'a [u32],
    at: Option<String>,
    value: &'a Value,
}

impl<'a> ResultsForm<'a> {
    fn of(record: &'a RunRecord, facts: &[&'a FactLine]) -> Self {
        let mut results: BTreeMap<&str, Vec<ResultForm<'_>>> = BTreeMap::new();
        for fact in facts {
            results.entry(&fact.node).or_default().push(ResultForm {
                input: fact.input,
                items: &fact.items,
                at: fact.at.map(|at| at.to_string()),
                value: &fact.value,
            });
        }
        Self { version: VERSION, run: record.id.as_str(), results }
    }
}
