//! `tidewheel jobs schedule`: which jobs go when, and who waits for whom.

use clap::{Args, ValueEnum};
use tidewheel_core::job::JobId;
use tidewheel_core::view::jobs::{FindError, Schedule, ScheduleAsk, find};
use tidewheel_store::jobs::Jobs;

use super::watch;
use crate::error::{Code, CommandError, Ending};
use crate::exit::Exit;
use crate::jobs::{DirArguments, Opened};
use crate::output::{self, harmless};
use crate::view::block::table;

/// Show which jobs go when, and who waits for whom
///
/// Jobs that are over are left out unless --all is given, or unless they hold
/// somebody up. With --job, only that job and those around it are shown. With
/// --watch the whole terminal shows them as they change; `?` lists the keys.
///
/// Example:
///
///   $ tidewheel jobs schedule --format dag --job build
///   $ tidewheel jobs schedule --watch
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    #[command(flatten)]
    dir: DirArguments,
    /// Also jobs that are over
    #[arg(long)]
    all: bool,
    /// Only this job and those around it
    #[arg(long, value_name = "JOB")]
    job: Option<String>,
    /// How the schedule is printed
    #[arg(long, value_enum, default_value_t)]
    format: ScheduleFormat,
    /// Stay, and show it as it changes, with keys to look closer and to steer
    #[arg(long)]
    watch: bool,
    /// How many rows are shown while watching
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// How often it is looked at while watching
    #[arg(long, value_name = "MS", default_value_t = 500)]
    interval_ms: u64,
    /// How many edges away from a shown job things are followed
    #[arg(long, value_name = "N", default_value_t = ScheduleAsk::DEPTH as u64, value_parser = clap::value_parser!(u64).range(0..=1000))]
    max_depth: u64,
    /// Nothing but plain text
    #[arg(long)]
    no_ansi: bool,
}

/// How the schedule is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScheduleFormat {
    /// For people: a row for each job
    #[default]
    Summary,
    /// For people: each job and what it needs
    Dag,
    /// For programs: one object with a `version`
    Json,
}

/// What is said where there is nothing to show.
const NOTHING: &str = "Outcome: No scheduled jobs\n";

/// Shows the schedule.
pub(super) fn run(arguments: &Arguments) -> Result<Exit, Ending> {
    check(arguments)?;
    let opened = Opened::open(&arguments.dir)?;
    if arguments.watch {
        return watch::run(&opened, arguments);
    }
    let mut jobs = opened.jobs()?;
    let focus = arguments.focus(&mut jobs)?;
    let schedule = Schedule::of(&jobs.briefs, &arguments.ask(focus.as_ref()));
    let is_present = |artifact: &_| opened.is_present(artifact);
    match arguments.format {
        ScheduleFormat::Json => output::json(&schedule.form(&is_present))?,
        ScheduleFormat::Summary | ScheduleFormat::Dag if schedule.is_empty() => output::text(NOTHING)?,
        ScheduleFormat::Summary => output::text(&summary(&schedule))?,
        ScheduleFormat::Dag => {
            let mut text = String::new();
            for line in schedule.dag(&is_present) {
                text.push_str(&harmless(&line));
                text.push('\n');
            }
            output::text(&text)?;
        }
    }
    Ok(Exit::Succeeded)
}

impl Arguments {
    /// Returns the job that is looked at. Around one that is not there is nobody.
    pub(super) fn focus(&self, jobs: &mut Jobs) -> Result<Option<JobId>, CommandError> {
        let Some(text) = &self.job else { return Ok(None) };
        match find(&jobs.briefs, text) {
            Ok(job) => Ok(Some(job.id.clone())),
            Err(FindError::NoJob { .. } | FindError::NoRun { .. }) => {
                jobs.briefs.clear();
                Ok(None)
            }
            Err(error @ FindError::Ambiguous { .. }) => {
                Err(CommandError::new(Code::JobAmbiguous, error.to_string()))
            }
        }
    }

    pub(super) fn ask<'a>(&self, focus: Option<&'a JobId>) -> ScheduleAsk<'a> {
        let max_depth = usize::try_from(self.max_depth).unwrap_or(usize::MAX);
        ScheduleAsk { all: self.all, focus, max_depth }
    }

    #[cfg(feature = "tui")]
    pub(super) const fn top(&self) -> usize {
        self.top
    }

    #[cfg(feature = "tui")]
    pub(super) const fn interval_ms(&self) -> u64 {
        self.interval_ms
    }

    pub(super) const fn has_ansi(&self) -> bool {
        !self.no_ansi
    }
}

/// Refuses what cannot be watched.
fn check(arguments: &Arguments) -> Result<(), CommandError> {
    let fail = |message: &str| Err(CommandError::new(Code::NotWatched, message));
    if arguments.top == 0 {
        return fail("`--top` must be at least 1.");
    }
    if arguments.interval_ms < 100 {
        return fail("`--interval-ms` must be at least 100.");
    }
    if arguments.watch && arguments.format != ScheduleFormat::Summary {
        return fail("`--watch` only supports summary format; rerun without `--format dag|json`.");
    }
    Ok(())
}

/// Draws the rows.
fn summary(schedule: &Schedule<'_>) -> String {
    let rows: Vec<Vec<String>> = schedule
        .rows()
        .map(|row| {
            vec![
                row.order.to_string(),
                row.slug.unwrap_or_default().to_owned(),
                row.name.to_owned(),
                row.status.to_string(),
                row.wait.unwrap_or_default().to_owned(),
                row.job_id.to_owned(),
            ]
        })
        .collect();
    format!("Schedule (Summary)\n{}", table(&["#", "Slug", "Name", "Status", "Wait", "Job"], &rows))
}
