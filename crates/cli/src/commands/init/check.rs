//! `tidewheel init --check`: whether all is there and in order. Changes nothing and starts nothing.

use serde_json::{Value, json};
use tidewheel_core::Problem;

use super::{VERSION, files};
use crate::commands::policy::Format;
use crate::error::{Code, Ending};
use crate::exit::Exit;
use crate::jobs::{Flow, Place, Settings};
use crate::output;
use crate::view::block::{block, named};
use crate::view::problems::Wrong;

/// Looks whether all is in order.
pub(super) fn run(place: &Place, wanted: files::Wanted, format: Format) -> Result<Exit, Ending> {
    let mut missing = files::missing(place, wanted)?;
    let mut wrong: Vec<(Code, Wrong)> = Vec::new();
    let settings = Settings::look(place)?.unwrap_or_else(|found| {
        wrong.push((Code::ConfigInvalid, found));
        Settings::default()
    });
    let templates = Flow::check_all(place, &settings)?;
    if templates.is_empty() {
        missing.push(files::HELLO.to_owned());
    }
    let count = templates.len();
    wrong.extend(templates.into_iter().filter_map(Result::err).map(|found| (Code::FlowInvalid, found)));
    let is_ready = missing.is_empty() && wrong.is_empty();
    let files: Vec<&str> = wrong.iter().map(|(_, found)| found.file.as_str()).collect();
    match format {
        Format::Json => output::json(&json!({
            "version": VERSION,
            "outcome": if is_ready { "ready" } else { "not_ready" },
            "root": place.root.display().to_string(),
            "templates": count,
            "missing": missing,
            "problems": wrong.iter().flat_map(|(_, found)| forms(found)).collect::<Vec<_>>(),
        }))?,
        Format::Text => {
            for (code, found) in &wrong {
                output::error(&found.told(*code));
            }
            let outcome = if is_ready { "Everything is in order" } else { "Not everything is in order" };
            let mut rows = vec![
                ("Outcome", outcome.to_owned()),
                ("Root", place.root.display().to_string()),
                ("Templates", count.to_string()),
            ];
            rows.extend((!missing.is_empty()).then(|| ("Missing", named(&missing))));
            rows.extend((!files.is_empty()).then(|| ("Wrong", named(&files))));
            output::text(&block(&rows, ""))?;
            if !missing.is_empty() {
                let command = match wanted {
                    files::Wanted::First => "tidewheel init",
                    files::Wanted::Stages => "tidewheel init --stages",
                };
                output::hint(&format!("`{command}` makes what is missing, and keeps what is there."));
            }
        }
    }
    Ok(if is_ready { Exit::Succeeded } else { Exit::Failed })
}

fn forms(found: &Wrong) -> impl Iterator<Item = Value> {
    found.problems.all().iter().map(|problem: &Problem| {
        json!({
            "file": problem.file.as_deref().unwrap_or(&found.file),
            "path": problem.path,
            "message": problem.message,
            "help": problem.help,
            "line": problem.location.as_ref().map(|location| location.line),
            "column": problem.location.as_ref().map(|location| location.column),
        })
    })
}
