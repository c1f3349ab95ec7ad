//! What `tidewheel run` says: for people in rows, for programs in one object.

use serde_json::{Value, json};
use tidewheel_core::job::RunState;
use tidewheel_core::job::template::Expanded;
use tidewheel_core::view::jobs::said_of_skipped_failures;

use super::Arguments;
use super::enqueue::Enqueued;
use crate::commands::policy::Format;
use crate::error::Ending;
use crate::exit::Exit;
use crate::jobs::{Followed, Left};
use crate::output;
use crate::view::block::{block, named};

/// The version of what `--format json` prints.
const VERSION: u32 = 1;

/// Says that a template is in order.
pub(super) fn checked(arguments: &Arguments, expanded: &Expanded) -> Result<Exit, Ending> {
    let nodes = expanded.node_ids().count();
    match arguments.format {
        Format::Json => output::json(&json!({
            "version": VERSION,
            "outcome": "workflow_validation_passed",
            "workflow_template_selector": arguments.flow,
            "workflow_template_id": expanded.id(),
            "workflow_template_version": expanded.version(),
            "node_count": nodes,
        }))?,
        Format::Text => {
            let rows = [
                ("Outcome", "Workflow validation passed".to_owned()),
                ("Selector", arguments.flow.clone()),
                ("Template", template(expanded)),
                ("Nodes", nodes.to_string()),
            ];
            output::text(&block(&rows, ""))?;
        }
    }
    Ok(Exit::Succeeded)
}

/// Says what was enqueued, and how to look at it.
pub(super) fn enqueued(arguments: &Arguments, expanded: &Expanded, runs: &[Enqueued]) -> Result<(), Ending> {
    let root = runs.first().and_then(|run| run.roots.first());
    let root = root.map(ToString::to_string).unwrap_or_default();
    let schedule = format!("tidewheel jobs schedule --job {root}");
    let (show, tail) =
        (format!("tidewheel jobs show {root}"), format!("tidewheel jobs tail {root} --follow"));
    let next = json!({ "schedule": schedule, "show": show, "tail": tail });
    match (arguments.format, runs) {
        (Format::Json, [run]) => output::json(&json!({
            "version": VERSION,
            "outcome": "workflow_run_enqueued",
            "run_id": run.id,
            "workflow_template_selector": arguments.flow,
            "workflow_template_id": expanded.id(),
            "workflow_template_version": expanded.version(),
            "root_job_ids": run.roots,
            "job_ids": run.jobs,
            "started": run.ticked.started,
            "next": next,
        })),
        (Format::Json, runs) => {
            let form = |run: &Enqueued| {
                json!({
                    "index": run.index,
                    "run_id": run.id,
                    "workflow_template_id": expanded.id(),
                    "workflow_template_version": expanded.version(),
                    "root_job_ids": run.roots,
                    "job_ids": run.jobs,
                })
            };
            output::json(&json!({
                "version": VERSION,
                "outcome": "workflow_runs_enqueued",
                "repeat": runs.len(),
                "workflow_template_selector": arguments.flow,
                "runs": runs.iter().map(form).collect::<Vec<_>>(),
                "next": next,
            }))
        }
        (Format::Text, runs) => {
            let mut rows: Vec<(&str, String)> = match runs {
                [run] => vec![("Outcome", "Workflow run enqueued".to_owned()), ("Run", run.id.to_string())],
                runs => vec![
                    ("Outcome", "Workflow runs enqueued".to_owned()),
                    ("Repeat", runs.len().to_string()),
                    ("Runs", named(&runs.iter().map(|run| &run.id).collect::<Vec<_>>())),
                ],
            };
            let roots: Vec<_> = runs.iter().flat_map(|run| &run.roots).collect();
            rows.extend([
                ("Template", template(expanded)),
                ("Selector", arguments.flow.clone()),
                ("Root jobs", named(&roots)),
                ("Next", schedule),
                ("Next", show),
                ("Next", tail),
            ]);
            output::text(&block(&rows, ""))
        }
    }
}

/// Says what came of the runs.
pub(super) fn followed(
    arguments: &Arguments,
    expanded: &Expanded,
    runs: &[Enqueued],
    followed: &[(&Enqueued, Followed)],
) -> Result<Exit, Ending> {
    let Some((last, end)) = followed.last() else { return Ok(Exit::Succeeded) };
    let (state, exit) = (end.result().state(), end.exit());
    let is_left = end.ending != Left::Over;
    match (arguments.format, runs) {
        (Format::Json, [_]) => {
            let mut form = lists(end);
            let more = json!({
                "version": VERSION,
                "outcome": if is_left { "workflow_run_left" } else { "workflow_run_terminal" },
                "run_id": last.id,
                "workflow_template_selector": arguments.flow,
                "workflow_template_id": expanded.id(),
                "workflow_template_version": expanded.version(),
                "root_job_ids": last.roots,
            });
            if let (Value::Object(form), Value::Object(more)) = (&mut form, more) {
                form.extend(more);
            }
            output::json(&form)?;
        }
        (Format::Json, runs) => {
            let form = |(run, end): &(&Enqueued, Followed)| {
                let mut form = lists(end);
                if let Value::Object(form) = &mut form {
                    form.insert("index".to_owned(), run.index.into());
                    form.insert("run_id".to_owned(), run.id.as_str().into());
                }
                form
            };
            output::json(&json!({
                "version": VERSION,
                "outcome": if is_left { "workflow_runs_left" } else { "workflow_runs_terminal" },
                "repeat": runs.len(),
                "terminal_state": state,
                "exit_code": exit as u8,
                "workflow_template_selector": arguments.flow,
                "runs": followed.iter().map(form).collect::<Vec<_>>(),
            }))?;
        }
        (Format::Text, _) if is_left => {}
        (Format::Text, runs) => {
            let what = if runs.len() == 1 { "run" } else { "runs" };
            let result = end.result();
            let skipped: usize = followed.iter().map(|(_, end)| end.result().skipped_failures.len()).sum();
            let outcome = match said_of_skipped_failures(skipped).filter(|_| state == RunState::Succeeded) {
                Some(skipped) => format!("Workflow {what} {}, with {skipped}", word(state)),
                None => format!("Workflow {what} {}", word(state)),
            };
            let mut rows = vec![
                ("Outcome", outcome),
                ("Run", last.id.to_string()),
                ("Template", template(expanded)),
                ("Selector", arguments.flow.clone()),
                ("Exit", (exit as u8).to_string()),
            ];
            let lists = [
                ("Succeeded", &result.succeeded),
                ("Blocked", &result.blocked),
                ("Failed", &result.failed),
                ("Cancelled", &result.cancelled),
                ("Skipped", &result.skipped),
                ("Missing", &result.missing),
            ];
            rows.extend(
                lists
                    .into_iter()
                    .filter(|(_, jobs)| !jobs.is_empty())
                    .map(|(what, jobs)| (what, named(jobs))),
            );
            output::text(&block(&rows, ""))?;
        }
    }
    Ok(exit)
}

/// Returns how the jobs of a run ended.
fn lists(end: &Followed) -> Value {
    let result = end.result();
    json!({
        "terminal_state": result.state(),
        "exit_code": end.exit() as u8,
        "succeeded": result.succeeded,
        "failed": result.failed,
        "blocked": result.blocked,
        "cancelled": result.cancelled,
        "skipped": result.skipped,
        "skipped_failures": result.skipped_failures,
        "missing": result.missing,
    })
}

const fn word(state: RunState) -> &'static str {
    match state {
        RunState::Active => "goes on",
        RunState::Succeeded => "succeeded",
        RunState::Failed => "failed",
        RunState::Blocked => "blocked",
    }
}

fn template(expanded: &Expanded) -> String {
    format!("{}@{}", expanded.id(), expanded.version())
}
