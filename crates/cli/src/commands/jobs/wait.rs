//! `tidewheel jobs wait`: stays until jobs are over.

use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};
use tidewheel_core::job::JobId;
use tidewheel_core::time::Span;

use super::VERSION;
use crate::commands::policy::Format;
use crate::error::{Code, CommandError, Ending};
use crate::exit::Exit;
use crate::jobs::{DirArguments, Follow, Left, Opened, Tells, noteworthy};
use crate::output;

/// Wait until jobs are over
///
/// Without a JOB, all jobs that are not over are waited for; `run:ID` means all
/// jobs of a run. The exit code is 0 if all of them succeeded, 1 if one failed
/// or was cancelled, else 10 if one is blocked.
///
/// Example:
///
///   $ tidewheel jobs wait run_5c/build --timeout 10m
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// The jobs: ids, any beginning or end of one, RUN/NODE, or run:ID
    jobs: Vec<String>,
    #[command(flatten)]
    dir: DirArguments,
    /// Give up after so long: 30s, 10m
    #[arg(long, value_name = "SPAN", value_parser = Span::parse)]
    timeout: Option<Span>,
    /// Say nothing but the result
    #[arg(long, short)]
    quiet: bool,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Waits.
pub(super) fn run(arguments: &Arguments) -> Result<Exit, Ending> {
    let opened = Opened::open(&arguments.dir)?;
    // What nobody has looked at for a while may be over already.
    let trouble = opened.pass()?;
    let jobs = chosen(&opened, &arguments.jobs)?;
    if jobs.is_empty() && !arguments.quiet {
        output::hint("there is nothing to wait for: no job is queued, waiting or running");
    }
    let words = if arguments.jobs.is_empty() {
        "jobs wait".to_owned()
    } else {
        format!("jobs wait {}", arguments.jobs.join(" "))
    };
    let follow = Follow {
        opened: &opened,
        jobs,
        tells: match (arguments.quiet, arguments.format) {
            (true, _) => Tells::Nobody,
            (false, Format::Text) => Tells::Output,
            (false, Format::Json) => Tells::Aside,
        },
        trouble,
        until: arguments
            .timeout
            .and_then(|timeout| Instant::now().checked_add(Duration::from_millis(timeout.as_millis()))),
        comes_back: format!("{} comes back to them", Opened::command(&words)),
    };
    let followed = follow.run()?;
    if matches!(followed.ending, Left::Over) {
        // The pass that ended a job may still be writing what follows from it; whoever looks next should see that.
        opened.pass()?;
    }
    if arguments.format == Format::Json {
        let jobs: Vec<Value> = followed
            .jobs()
            .map(|job| json!({ "job": job.id, "status": job.status, "exit_code": job.exit_code }))
            .collect();
        output::json(&json!({
            "version": VERSION,
            "outcome": followed.result().state(),
            "exit_code": followed.exit() as u8,
            "jobs": jobs,
            "skipped_failures": followed.result().skipped_failures,
            "missing": followed.result().missing,
        }))?;
    }
    match followed.ending {
        Left::Over => Ok(followed.exit()),
        Left::Interrupted => Ok(Exit::Failed),
        Left::TimedOut => {
            let left = followed.result().active.len();
            let what = if left == 1 { "1 job is".to_owned() } else { format!("{left} jobs are") };
            Err(CommandError::new(Code::JobsUnfinished, format!("The time is over, and {what} not."))
                .hint(format!("{} says what they wait for.", Opened::command("jobs schedule")))
                .into())
        }
    }
}

/// Returns the jobs that are waited for.
fn chosen(opened: &Opened, texts: &[String]) -> Result<Vec<JobId>, CommandError> {
    let mut jobs: Vec<JobId> = Vec::new();
    if texts.is_empty() {
        let survey = opened.survey()?;
        let jobs_now = noteworthy(&survey, &survey.glances());
        let active = jobs_now.briefs.into_values().filter(|job| job.status.is_active());
        jobs.extend(active.map(|job| job.id));
    }
    for text in texts {
        if text.starts_with("run:") {
            let (run, all) = opened.run(text)?;
            jobs.extend(
                all.briefs.into_values().filter(|job| job.run.as_ref() == Some(&run)).map(|job| job.id),
            );
        } else {
            jobs.push(opened.find(text)?);
        }
    }
    jobs.sort();
    jobs.dedup();
    Ok(jobs)
}
