//! `tidewheel jobs cancel`: ends a job with all its processes.

use clap::Args;
use serde_json::json;
use tidewheel_core::command::{Effect, RunCommand};
use tidewheel_core::job::{Brief, Cleanup, JobId, JobStatus, Record};
use tidewheel_runner::job::SchedulerError;
use tidewheel_store::jobs::JobStore as _;

use super::VERSION;
use crate::commands::policy::Format;
use crate::error::Ending;
use crate::exit::Exit;
use crate::jobs::{DirArguments, Opened, concluded, happened, refused};
use crate::output::{self, harmless};

/// End a job, with all its processes
///
/// Its processes are asked to end, and killed if they do not. When the command
/// is done nothing of the job runs any more, and what depends on it is settled.
///
/// Example:
///
///   $ tidewheel jobs cancel run_5c/build
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// The job: its id, any beginning or end of it, or RUN/NODE
    job: String,
    #[command(flatten)]
    dir: DirArguments,
    /// Remove the worktree that the job owns
    #[arg(long, conflicts_with = "no_cleanup_worktree")]
    cleanup_worktree: bool,
    /// Keep the worktree that the job owns, whatever is configured
    #[arg(long)]
    no_cleanup_worktree: bool,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Cancels the job.
pub(super) fn run(arguments: &Arguments) -> Result<Exit, Ending> {
    let opened = Opened::open(&arguments.dir)?;
    let job = opened.find(&arguments.job)?;
    let cleanup = match (arguments.cleanup_worktree, arguments.no_cleanup_worktree) {
        (true, _) => Some(true),
        (false, true) => Some(false),
        (false, false) => None,
    };
    let cancelled = match opened.scheduler()?.cancel(&job, cleanup) {
        Err(SchedulerError::Cancel(_)) if is_already_cancelled(&opened, &job) => {
            return already_cancelled(&opened, &job, cleanup == Some(true), arguments.format);
        }
        cancelled => cancelled.map_err(|error| refused(&error))?,
    };
    happened(&cancelled.ticked, &job)?;
    let record = &cancelled.record;
    if let Cleanup::Degraded(why) = &cancelled.cleanup {
        output::warning(&format!("cleanup failed for job {}: {why}", record.id));
    }
    // A loop of it may have rewound it by now.
    let rewound = opened.read(&job).ok().filter(|now| now.status.is_active());
    if rewound.is_some() {
        output::hint(&asks_first(&opened, record));
    }
    let status = rewound.as_ref().map_or(record.status, |now| now.status);
    match arguments.format {
        Format::Json => output::json(&json!({
            "version": VERSION,
            "outcome": "Job cancelled",
            "job": record.id,
            "status": status,
            "exit_code": if rewound.is_some() { None } else { record.exit_code },
            "stdout": record.stdout_path,
            "stderr": record.stderr_path,
            "cleanup": cancelled.cleanup.name(),
            "started": cancelled.ticked.started,
            "updated": cancelled.ticked.updated,
        }))?,
        Format::Text => {
            let marked = match rewound {
                Some(_) => format!("was cancelled, and its loop has rewound it: it is {status}"),
                None => "marked cancelled".to_owned(),
            };
            let line = format!(
                "Job {} {marked} (stdout: {}, stderr: {}, cleanup={})",
                record.id,
                record.stdout_path,
                record.stderr_path,
                cancelled.cleanup.name()
            );
            output::text(&format!("{}\n", harmless(&line)))?;
        }
    }
    concluded(&cancelled.ticked)
}

/// Says where the loop of a job that was cancelled waits for a person.
fn asks_first(opened: &Opened, record: &Record) -> String {
    let jobs = opened.store().jobs().map(|jobs| jobs.briefs).unwrap_or_default();
    let waits = |job: &&Brief| {
        let approval = job.schedule.approval.as_ref();
        let reason = approval.and_then(|approval| approval.reason.as_deref()).unwrap_or_default();
        job.run == record.run()
            && job.status == JobStatus::WaitingOnApproval
            && reason.contains("was cancelled")
    };
    let approve = |job: &Brief| format!("`tidewheel jobs approve {}`", job.id);
    let commands: Vec<String> = jobs.values().filter(waits).map(approve).collect();
    match commands.is_empty() {
        true => "Its `on.cancelled` loop goes back.".to_owned(),
        false => format!("Its `on.cancelled` loop goes back when a person approves: {}", commands.join(", ")),
    }
}

/// Returns whether a job was cancelled before.
fn is_already_cancelled(opened: &Opened, job: &JobId) -> bool {
    let record = opened.store().record(job);
    let effect = |status| RunCommand::Cancel.effect_on_job(status);
    record.is_ok_and(|record| record.is_some_and(|record| effect(record.status) == Effect::AlreadySo))
}

/// Says that a job was cancelled before, which is no error; what was not cleaned up then may be now.
fn already_cancelled(opened: &Opened, job: &JobId, cleans_up: bool, format: Format) -> Result<Exit, Ending> {
    let cleaned = match cleans_up {
        true => Some(opened.scheduler()?.clean_cancelled(job).map_err(|error| refused(&error))?),
        false => None,
    };
    let cleanup = cleaned.as_ref().map_or(&Cleanup::Skipped, |cleaned| &cleaned.cleanup);
    if let Cleanup::Degraded(why) = cleanup {
        output::warning(&format!("cleanup failed for job {job}: {why}"));
    }
    match format {
        Format::Json => output::json(&json!({
            "version": VERSION,
            "outcome": "Job already cancelled",
            "job": job,
            "status": "cancelled",
            "cleanup": cleanup.name(),
        }))?,
        Format::Text if cleans_up => {
            output::text(&format!("Job {job} is cancelled already (cleanup={})\n", cleanup.name()))?;
        }
        Format::Text => output::text(&format!("Job {job} is cancelled already\n"))?,
    }
    match cleaned {
        Some(cleaned) => concluded(&cleaned.ticked),
        None => Ok(Exit::Succeeded),
    }
}
