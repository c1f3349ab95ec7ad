//! `tidewheel jobs retry`: rewinds a job and everything after it, and lets them run again.

use clap::Args;
use serde_json::json;
use tidewheel_core::job::{After, HIDDEN, JobId, JobStatus, RunId};
use tidewheel_store::jobs::JobStore as _;

use super::VERSION;
use crate::commands::policy::Format;
use crate::error::Ending;
use crate::exit::Exit;
use crate::jobs::{DirArguments, Flow, Given, Opened, concluded, refused};
use crate::output;
use crate::view::block::{block, named};

/// Run a job again, with everything after it
///
/// The job and all that depend on it are rewound and queued; what came before
/// stays as it is. Nothing of them may be running.
///
/// Example:
///
///   $ tidewheel jobs retry run_5c/build
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// The job: its id, any beginning or end of it, or RUN/NODE
    job: String,
    #[command(flatten)]
    dir: DirArguments,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Rewinds the job.
pub(super) fn run(arguments: &Arguments) -> Result<Exit, Ending> {
    let opened = Opened::open(&arguments.dir)?;
    let job = opened.find(&arguments.job)?;
    let retried = opened.scheduler()?.retry(&job).map_err(|error| refused(&error))?;
    warn_if_stuck(&opened, &retried.root);
    if let Some(run) = opened.read(&retried.root).ok().and_then(|record| record.run()) {
        warn_of_old_text(&opened, &run);
    }
    let outcome = "Jobs retried";
    match arguments.format {
        Format::Json => output::json(&json!({
            "version": VERSION,
            "outcome": outcome,
            "requested_job": job,
            "retry_root": retried.root,
            "last_successful_point": retried.last_successful_point,
            "retry_set": retried.retry_set,
            "reset": retried.retry_set,
            "restarted": retried.ticked.started,
            "updated": retried.ticked.updated,
        }))?,
        Format::Text => {
            let mut rows = vec![
                ("Outcome", outcome.to_owned()),
                ("Requested", job.to_string()),
                ("Retry root", retried.root.to_string()),
                ("Last successful point", named(&retried.last_successful_point)),
                ("Retry set", named(&retried.retry_set)),
                ("Reset", named(&retried.retry_set)),
                ("Restarted", named(&retried.ticked.started)),
            ];
            if !retried.ticked.updated.is_empty() {
                rows.push(("Updated", named(&retried.ticked.updated)));
            }
            output::text(&block(&rows, ""))?;
        }
    }
    concluded(&retried.ticked)
}

/// Says that a job that was to run again cannot, since the record of one that it is after is damaged or gone: a retry of
/// that one cannot help it either.
fn warn_if_stuck(opened: &Opened, job: &JobId) {
    let Ok(Some(record)) = opened.store().record(job) else { return };
    let is_lacking = |after: &After| !matches!(opened.store().record(&after.job_id), Ok(Some(_)));
    if record.status == JobStatus::BlockedByDependency && record.schedule.after.iter().any(is_lacking) {
        let why = record.schedule.wait_reason.map(|wait| format!(": {}", wait.detail)).unwrap_or_default();
        output::warning(&format!("job {job} was reset and is blocked{why}"));
    }
}

/// Says that a retry runs the text that a run was enqueued with, where the template says something else by now.
pub(crate) fn warn_of_old_text(opened: &Opened, run: &RunId) {
    let Ok(Some(manifest)) = opened.store().manifest(run) else { return };
    let set: Vec<String> = manifest.params.iter().map(|(name, value)| format!("{name}={value}")).collect();
    if set.iter().any(|set| set.contains(HIDDEN)) {
        // What a secret stands for is not kept, so that the two texts cannot be compared.
        return;
    }
    let name = &manifest.workflow_template_selector;
    let found = Flow::try_find(&opened.place, &opened.settings, name);
    let found_file = found.as_ref().map(|flow| flow.source().file);
    let source = manifest.workflow_template_source.as_ref();
    // From here its name may mean another file, or none.
    let flow = match source {
        Some(source) => Flow::try_read(&opened.place, &source.file),
        None => found,
    };
    let given = Given { inputs: &[], set: &set, named: &[] };
    let hash = flow
        .as_ref()
        .and_then(|flow| flow.try_expand(&given, &opened.settings))
        .map(|now| now.snapshot_hash());
    if hash.as_ref() == Some(&manifest.policy_snapshot_hash) {
        return;
    }
    if source.is_some() && flow.as_ref().map(Flow::source).as_ref() == source {
        output::warning(&format!(
            "template `{name}` has not changed since run {run} was enqueued, but `.tidewheel/config.toml` or the \
             release of Tidewheel has; a retry runs what the template meant then"
        ));
        return;
    }
    let is_there =
        source.map_or_else(|| flow.is_some(), |source| opened.place.root.join(&source.file).exists());
    let what = if is_there { "has changed" } else { "is gone" };
    output::warning(&format!(
        "template `{name}` {what} since run {run} was enqueued; a retry runs the text of then"
    ));
    if is_there {
        // Where the name means another file, its path from the root means this one.
        let other = source.map(|source| &source.file).filter(|file| found_file.as_ref() != Some(file));
        let name = other.map_or_else(|| name.clone(), |file| format!("file:{file}"));
        output::hint(&format!("`tidewheel run {name}` runs the new text, as a run of its own."));
    }
}
