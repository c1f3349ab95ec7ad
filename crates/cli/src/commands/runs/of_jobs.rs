//! `tidewheel runs list|show|cancel|retry` for the runs of a repository, whose work is jobs.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::json;
use tidewheel_core::command::{Effect, RunCommand};
use tidewheel_core::job::{Brief, Cleanup, JobId, JobStatus, Manifest, RunId, budget_told};
use tidewheel_core::view::jobs::{RunCounts, RunLine, RunStatus};
use tidewheel_core::view::{between, long, moment};
use tidewheel_runner::job::{Cancelled, Ticked};
use tidewheel_store::jobs::{Glance, JobStore as _, Jobs};

use super::VERSION;
use crate::commands::jobs::retry::warn_of_old_text;
use crate::commands::policy::Format;
use crate::error::{Code, CommandError, Ending};
use crate::exit::Exit;
use crate::jobs::{
    DirArguments, Form, MannerArguments, Opened, by_run, concluded, refused, run_style, run_with_needs,
    style, unfit,
};
use crate::output::{self, harmless};
use crate::terminal;
use crate::view::block::{block, named};
use crate::view::table::{Cell, Column, Kind, Table};

/// Which runs are listed, and how.
pub(super) struct Listed<'a> {
    pub(super) dir: &'a DirArguments,
    pub(super) statuses: Vec<RunStatus>,
    pub(super) template: Option<&'a str>,
    pub(super) prefix: Option<&'a str>,
    pub(super) most: usize,
    pub(super) manner: MannerArguments,
    pub(super) format: Format,
}

impl Listed<'_> {
    /// Tells whether a run may be one of those, as far as a glance tells.
    fn may_show(&self, id: &str, jobs: &[&Glance<'_>]) -> bool {
        // Most runs of a long history succeeded, and people look for the others.
        let has_succeeded = || !jobs.iter().any(|job| job.is_noteworthy());
        let is_of_those = |status| matches!(status, &RunStatus::Succeeded | &RunStatus::Incomplete);
        let may_be = self.statuses.is_empty() || self.statuses.iter().any(is_of_those) || !has_succeeded();
        may_be && self.prefix.is_none_or(|prefix| id.starts_with(prefix))
    }

    /// Tells whether a run is one of those.
    fn shows(&self, run: &Shown) -> bool {
        let template = run.manifest.as_ref().map(|manifest| manifest.workflow_template_id.as_str());
        let is_so = self.statuses.is_empty() || self.statuses.contains(&run.line().status);
        is_so && (self.template.is_none() || self.template == template)
    }
}

/// A run that is shown.
struct Shown {
    id: RunId,
    jobs: Jobs,
    manifest: Option<Manifest>,
}

impl Shown {
    fn line(&self) -> RunLine<'_> {
        line(&self.id, &self.jobs, self.manifest.as_ref())
    }
}

/// Says how a run is; one that succeeded without something that failed says so.
pub(super) fn status_of(run: &RunLine<'_>) -> String {
    let skipped = run.counts.said_of_skipped_failures().filter(|_| run.status == RunStatus::Succeeded);
    match skipped {
        Some(skipped) => format!("{}, {skipped}", run.status),
        None => run.status.to_string(),
    }
}

/// Says what a job waits for, or what a job that is over was stopped by where its status alone does not say it.
fn why(opened: &Opened, job: &Brief) -> String {
    if let Some(why) = job.skipped_because() {
        return why;
    }
    if let Some(wait) = job.wait() {
        return wait.to_owned();
    }
    match (job.status, job.exit_code) {
        (JobStatus::BlockedByDependency, Some(_)) => {
            let summary = opened.store().outcome(&job.id).ok().flatten().and_then(|ended| ended.summary);
            summary.map(|summary| budget_told(&summary).unwrap_or(summary)).unwrap_or_default()
        }
        _ => String::new(),
    }
}

/// Sums up a run, with the jobs that it was enqueued with and that are gone.
fn line<'a>(id: &'a RunId, jobs: &'a Jobs, manifest: Option<&'a Manifest>) -> RunLine<'a> {
    let line = RunLine::of(id, jobs.briefs.values().filter(|job| job.run.as_ref() == Some(id)).collect());
    match manifest {
        Some(manifest) => line.among(manifest),
        None => line,
    }
}

/// Lists the runs.
pub(super) fn list(wanted: &Listed<'_>) -> Result<Exit, Ending> {
    let opened = Opened::open(wanted.dir)?;
    // The records of a run are there before its manifest is: whoever asks in this order takes no new run for a broken one.
    let mut vanished = opened.store().runs().map_err(|error| unfit(&error))?;
    let survey = opened.survey()?;
    let all = survey.glances();
    let mut shown: Vec<Shown> = Vec::new();
    let mut has_more = false;
    let runs = by_run(&all);
    for (id, _) in &runs {
        vanished.remove(*id);
    }
    for (id, glances) in runs {
        if !wanted.may_show(id, &glances) {
            continue;
        }
        if shown.len() == wanted.most && wanted.template.is_none() && wanted.statuses.is_empty() {
            has_more = true;
            break;
        }
        let Ok(id) = RunId::new(id) else { continue };
        let jobs = survey.read(glances.into_iter().copied().collect());
        let run = Shown { manifest: manifest(&opened, &id), id, jobs };
        if !wanted.shows(&run) {
            continue;
        }
        if shown.len() == wanted.most {
            has_more = true;
            break;
        }
        shown.push(run);
    }
    let gone = vanished.into_iter().filter(|id| wanted.may_show(id.as_str(), &[]));
    let gone = gone.map(|id| Shown { manifest: manifest(&opened, &id), id, jobs: Jobs::default() });
    let gone: Vec<Shown> = gone.filter(|run| run.manifest.is_some() && wanted.shows(run)).collect();
    if !gone.is_empty() {
        shown.extend(gone);
        shown.sort_by_key(|run| std::cmp::Reverse(run.line().created_at));
        has_more |= shown.len() > wanted.most;
        shown.truncate(wanted.most);
    }
    match wanted.format {
        Format::Json => {
            let lines: Vec<RunLine<'_>> = shown.iter().map(Shown::line).collect();
            let manifests = shown.iter().map(|run| run.manifest.as_ref());
            let runs: Vec<RunForm<'_>> =
                lines.iter().zip(manifests).map(|(line, manifest)| RunForm::of(line, manifest)).collect();
            output::json(&json!({ "version": VERSION, "runs": runs, "more": has_more }))?;
        }
        Format::Text if shown.is_empty() => output::text("There are no such runs.\n")?,
        Format::Text => {
            let manner = wanted.manner.of(Form::Table, &survey, &all, opened.now);
            let mut table = Table::new(vec![
                Column::new("RUN", Kind::Name, 0),
                Column::new("STATUS", Kind::Word, 1),
                Column::new("JOBS", Kind::Text, 2),
                Column::new("CREATED", Kind::Word, 3),
                Column::new("WORKFLOW", Kind::Text, 4),
            ]);
            for (run, line) in shown.iter().map(|run| (run, run.line())) {
                table.row(vec![
                    (&*manner.run(&run.id)).into(),
                    Cell::styled(&status_of(&line), run_style(line.status)),
                    line.counts.said().into(),
                    manner.instant(line.created_at).into(),
                    run.manifest.as_ref().map(template).unwrap_or_default().into(),
                ]);
            }
            output::text(&table.drawn(terminal::table_canvas()))?;
            if has_more {
                output::hint("There are more: --all lists all of them, and --limit as many as you like.");
            }
        }
    }
    Ok(Exit::Succeeded)
}

/// Shows one run.
pub(super) fn show(
    dir: &DirArguments,
    text: &str,
    manner: MannerArguments,
    format: Format,
) -> Result<Exit, Ending> {
    let opened = Opened::open(dir)?;
    let survey = opened.survey()?;
    let all = survey.glances();
    let (id, jobs) = match run_with_needs(&survey, &all, text) {
        Ok(found) => found,
        // Of a run whose records are all gone, the manifest may be left.
        Err(error) => (opened.kept_run(text).ok_or(error)?, Jobs::default()),
    };
    let manifest = manifest(&opened, &id);
    let run = line(&id, &jobs, manifest.as_ref());
    match format {
        Format::Json => {
            let jobs: Vec<_> = run
                .jobs
                .iter()
                .map(|job| {
                    json!({
                        "job": job.id,
                        "node": job.node,
                        "name": job.name,
                        "status": job.status,
                        "attempt": job.attempt,
                        "exit_code": job.exit_code,
                        "wait": job.wait(),
                        "skipped_failure": job.is_skipped_failure(),
                        "started_at": job.started_at.map(|at| at.to_string()),
                        "finished_at": job.finished_at.map(|at| at.to_string()),
                    })
                })
                .collect();
            let gone = run.missing.iter().map(|(node, job)| json!({ "job": job, "node": node }));
            output::json(&json!({
                "version": VERSION,
                "run": RunForm::of(&run, manifest.as_ref()),
                "jobs": jobs,
                "missing": gone.collect::<Vec<_>>(),
            }))?;
        }
        Format::Text => {
            let mut rows = vec![("Run", id.to_string()), ("Status", status_of(&run))];
            if let Some(manifest) = &manifest {
                rows.push(("Workflow", template(manifest)));
                let params = manifest.params.iter();
                let params: Vec<String> = params.map(|(name, value)| format!("{name}={value}")).collect();
                if !params.is_empty() {
                    rows.push(("Parameters", params.join(", ")));
                }
            }
            rows.push(("Jobs", run.counts.said()));
            rows.push(("Created", moment(run.created_at, opened.now)));
            let (end, word) = run.finished_at.map_or((opened.now, "Age"), |end| (end, "Took"));
            rows.push((word, long(between(run.created_at, end))));
            let manner = manner.of(Form::Table, &survey, &all, opened.now);
            let mut table = Table::new(vec![
                Column::new("NODE", Kind::Name, 0),
                Column::new("STATUS", Kind::Word, 1),
                Column::new("ATTEMPTS", Kind::Word, 4),
                Column::new("TIME", Kind::Word, 3),
                Column::new("WAIT", Kind::Text, 2),
            ]);
            for job in &run.jobs {
                let end = job.finished_at.unwrap_or(opened.now);
                let time = job.started_at.map(|start| long(between(start, end)));
                table.row(vec![
                    job.node.as_ref().map(ToString::to_string).unwrap_or_default().into(),
                    Cell::styled(job.status.name(), style(job.status)),
                    job.attempt.to_string().into(),
                    time.unwrap_or_default().into(),
                    (&*manner.text(&why(&opened, job))).into(),
                ]);
            }
            for (node, job) in &run.missing {
                let is_damaged = survey.unreadable.contains_key(job.as_str());
                let why = if is_damaged { "its record cannot be read" } else { "its record is gone" };
                table.row(vec![
                    node.to_string().into(),
                    Cell::styled("missing", run_style(RunStatus::Incomplete)),
                    Cell::from(""),
                    Cell::from(""),
                    why.into(),
                ]);
            }
            let table = table.drawn(terminal::table_canvas());
            output::text(&format!("{}\n{table}", block(&rows, "")))?;
            if !run.missing.is_empty() {
                output::hint(
                    "What came of jobs that are missing is not known: their records were deleted or damaged, or \
                     gc removed them. `tidewheel doctor` looks at all of them.",
                );
            }
        }
    }
    Ok(Exit::Succeeded)
}

/// Cancels everything of a run that is not over.
pub(super) fn cancel(
    dir: &DirArguments,
    text: &str,
    cleanup: Option<bool>,
    format: Format,
) -> Result<Exit, Ending> {
    let opened = Opened::open(dir)?;
    let (run, jobs) = opened.run(text)?;
    let own = jobs.briefs.values().filter(|job| job.run.as_ref() == Some(&run));
    let is_open = own.clone().any(Brief::is_open);
    match RunCommand::Cancel.effect_on_jobs(own.map(|job| job.status)) {
        Effect::AlreadySo if !is_open => {
            let cleaned = match cleanup {
                Some(true) => {
                    opened.scheduler()?.clean_cancelled_run(&run).map_err(|error| refused(&error))?
                }
                Some(false) | None => Vec::new(),
            };
            return already_cancelled(&run, &cleaned, format);
        }
        Effect::Refused(_) if !is_open => {
            return Err(CommandError::new(Code::JobRefused, format!("run {run} is not active")).into());
        }
        Effect::Acts | Effect::AlreadySo | Effect::Refused(_) => {}
    }
    let done = opened.scheduler()?.cancel_run(&run, cleanup).map_err(|error| refused(&error))?;
    let mut ticked = Ticked::default();
    let mut cancelled: Vec<JobId> = Vec::new();
    for done in done {
        if let Cleanup::Degraded(why) = &done.cleanup {
            output::warning(&format!("cleanup failed for job {}: {why}", done.record.id));
        }
        cancelled.push(done.record.id);
        ticked.errors.extend(done.ticked.errors);
        ticked.warnings.extend(done.ticked.warnings);
    }
    match format {
        Format::Json => output::json(
            &json!({ "version": VERSION, "outcome": "Run cancelled", "run_id": run, "cancelled": cancelled }),
        )?,
        Format::Text => {
            let rows = [
                ("Outcome", "Run cancelled".to_owned()),
                ("Run", run.to_string()),
                ("Cancelled", named(&cancelled)),
            ];
            output::text(&block(&rows, ""))?;
        }
    }
    concluded(&ticked)
}

/// Says that a run was cancelled before, which is no error; what was not cleaned up then may be now.
fn already_cancelled(run: &RunId, cleaned: &[Cancelled], format: Format) -> Result<Exit, Ending> {
    for cancelled in cleaned {
        if let Cleanup::Degraded(why) = &cancelled.cleanup {
            output::warning(&format!("cleanup failed for job {}: {why}", cancelled.record.id));
        }
    }
    let is_done = |cancelled: &&Cancelled| cancelled.cleanup == Cleanup::Done;
    let cleaned: Vec<JobId> =
        cleaned.iter().filter(is_done).map(|cancelled| cancelled.record.id.clone()).collect();
    match format {
        Format::Json => output::json(&json!({
            "version": VERSION,
            "outcome": "Run already cancelled",
            "run_id": run,
            "cancelled": Vec::<JobId>::new(),
            "cleaned": cleaned,
        }))?,
        Format::Text => {
            let mut rows = vec![("Outcome", "Run already cancelled".to_owned()), ("Run", run.to_string())];
            if !cleaned.is_empty() {
                rows.push(("Cleaned up", named(&cleaned)));
            }
            output::text(&block(&rows, ""))?;
        }
    }
    Ok(Exit::Succeeded)
}

/// Runs everything of a run again that did not succeed, and what comes after it.
pub(super) fn retry(dir: &DirArguments, text: &str, format: Format) -> Result<Exit, Ending> {
    let opened = Opened::open(dir)?;
    let (run, _) = opened.run(text)?;
    let (reset, ticked) = opened.scheduler()?.retry_run(&run).map_err(|error| refused(&error))?;
    if reset.is_empty() {
        let message = format!("run {run} has no job that failed, was cancelled or is blocked");
        return Err(CommandError::new(Code::JobRefused, message).into());
    }
    warn_of_old_text(&opened, &run);
    match format {
        Format::Json => output::json(&json!({
            "version": VERSION,
            "outcome": "Run retried",
            "run_id": run,
            "reset": reset,
            "restarted": ticked.started,
            "updated": ticked.updated,
        }))?,
        Format::Text => {
            let rows = [
                ("Outcome", "Run retried".to_owned()),
                ("Run", run.to_string()),
                ("Reset", named(&reset)),
                ("Restarted", named(&ticked.started)),
            ];
            output::text(&block(&rows, ""))?;
        }
    }
    concluded(&ticked)
}

/// Returns what is kept of a run; what cannot be read is told, and shown without.
pub(super) fn manifest(opened: &Opened, run: &RunId) -> Option<Manifest> {
    opened.store().manifest(run).unwrap_or_else(|error| {
        output::warning(&format!("unable to load the manifest of run {run}: {error}"));
        None
    })
}

pub(super) fn template(manifest: &Manifest) -> String {
    let mut name = harmless(&manifest.workflow_template_id).into_owned();
    let _ = write!(name, "@{}", manifest.workflow_template_version);
    name
}

/// A run for programs.
#[derive(Serialize)]
struct RunForm<'a> {
    id: &'a str,
    workflow_template_selector: Option<&'a str>,
    workflow_template_id: Option<&'a str>,
    workflow_template_version: Option<&'a str>,
    status: RunStatus,
    jobs: RunCounts,
    created_at: String,
    finished_at: Option<String>,
}

impl<'a> RunForm<'a> {
    fn of(run: &'a RunLine<'_>, manifest: Option<&'a Manifest>) -> Self {
        Self {
            id: run.id.as_str(),
            workflow_template_selector: manifest.map(|kept| kept.workflow_template_selector.as_str()),
            workflow_template_id: manifest.map(|kept| kept.workflow_template_id.as_str()),
            workflow_template_version: manifest.map(|kept| kept.workflow_template_version.as_str()),
            status: run.status,
            jobs: run.counts,
            created_at: run.created_at.to_string(),
            finished_at: run.finished_at.map(|at| at.to_string()),
        }
    }
}
