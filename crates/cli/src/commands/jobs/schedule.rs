//! `tidewheel jobs schedule`: which jobs go when, and who waits for whom.

use clap::{Args, ValueEnum};
use tidewheel_core::job::JobId;
use tidewheel_core::view::jobs::{Schedule, ScheduleAsk};
use tidewheel_store::jobs::{Glance, Jobs, Survey};

use super::watch;
use crate::error::{Code, CommandError, Ending};
use crate::exit::Exit;
use crate::jobs::{DirArguments, Form, Ids, Manner, MannerArguments, Opened, neighbours, noteworthy, style};
use crate::output::{self, harmless};
use crate::terminal;
use crate::view::table::{Cell, Column, Kind, Table};

/// Show which jobs go when, and who waits for whom
///
/// Jobs that are over are left out unless --all is given, or unless they hold
/// others up. With --job, only that job and those around it are shown. With
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
    #[arg(long, value_name = "N", default_value_t = 10, requires = "watch")]
    top: usize,
    /// How often it is looked at while watching
    #[arg(long, value_name = "MS", default_value_t = 500, requires = "watch")]
    interval_ms: u64,
    /// With --job, --format dag or json: how many edges away from a shown job things are followed; 3 if not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=1000))]
    max_depth: Option<u64>,
    /// Nothing but plain text
    #[arg(long)]
    no_ansi: bool,
    /// How ids are written; without it short on a terminal, full everywhere else and always in JSON
    #[arg(long, value_enum, value_name = "HOW")]
    ids: Option<Ids>,
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
    let survey = opened.survey()?;
    let all = survey.glances();
    let (jobs, focus) = arguments.choose(&survey, &all)?;
    let schedule = Schedule::of(&jobs.briefs, &arguments.ask(focus.as_ref()));
    let manner = MannerArguments::with_ids(arguments.ids).of(Form::Table, &survey, &all, opened.now);
    let is_present = |artifact: &_| opened.is_present(artifact);
    match arguments.format {
        ScheduleFormat::Json => output::json(&schedule.form(&is_present))?,
        ScheduleFormat::Summary | ScheduleFormat::Dag if schedule.is_empty() => output::text(NOTHING)?,
        ScheduleFormat::Summary => {
            let text = summary(&schedule, &manner);
            let text = match arguments.has_ansi() {
                true => text,
                false => anstream::adapter::strip_str(&text).to_string(),
            };
            output::text(&text)?;
        }
        ScheduleFormat::Dag => output::text(&tree(&schedule.dag(&is_present), &manner))?,
    }
    Ok(Exit::Succeeded)
}

impl Arguments {
    /// Returns the jobs that may be shown with what they wait for, and the one that is looked at. Around one that is
    /// not there is nobody.
    pub(super) fn choose(
        &self,
        survey: &Survey,
        all: &[Glance<'_>],
    ) -> Result<(Jobs, Option<JobId>), CommandError> {
        match &self.job {
            None if self.all => Ok((survey.read(all.to_vec()), None)),
            None => Ok((noteworthy(survey, all), None)),
            Some(text) => match neighbours(survey, all, text) {
                Ok((job, jobs)) => Ok((jobs, Some(job))),
                Err(error) if error.code == Code::JobMissing => Ok((Jobs::default(), None)),
                Err(error) => Err(error),
            },
        }
    }

    pub(super) fn ask<'a>(&self, focus: Option<&'a JobId>) -> ScheduleAsk<'a> {
        let max_depth =
            self.max_depth.map_or(ScheduleAsk::DEPTH, |depth| usize::try_from(depth).unwrap_or(usize::MAX));
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

    /// Returns how ids are written while watching, which people do.
    #[cfg(feature = "tui")]
    pub(super) fn watched_ids(&self) -> Ids {
        self.ids.unwrap_or(Ids::Short)
    }

    pub(super) const fn has_ansi(&self) -> bool {
        !self.no_ansi
    }
}

/// Refuses what cannot be watched, and what would change nothing.
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
    if arguments.max_depth.is_some() && arguments.job.is_none() && arguments.format == ScheduleFormat::Summary
    {
        let why = "a summary follows nothing without `--job`";
        return Err(CommandError::idle("--max-depth", why));
    }
    if arguments.no_ansi && arguments.format != ScheduleFormat::Summary {
        return Err(CommandError::idle("--no-ansi", "only a summary has colours"));
    }
    if arguments.format == ScheduleFormat::Json {
        MannerArguments::with_ids(arguments.ids).check_for_json()?;
    }
    Ok(())
}

/// Draws lines as they are.
fn tree(lines: &[String], manner: &Manner<'_>) -> String {
    lines.iter().map(|line| format!("{}\n", harmless(&manner.text(line)))).collect()
}

/// Draws the rows.
fn summary(schedule: &Schedule<'_>, manner: &Manner<'_>) -> String {
    let mut table = Table::new(vec![
        Column::new("#", Kind::Word, 4),
        Column::new("Slug", Kind::Text, 5),
        Column::new("Name", Kind::Text, 3),
        Column::new("Status", Kind::Word, 1),
        Column::new("Wait", Kind::Text, 2),
        Column::new("Job", Kind::Name, 0),
    ]);
    for row in schedule.rows() {
        table.row(vec![
            row.order.to_string().into(),
            row.slug.unwrap_or_default().into(),
            row.name.into(),
            Cell::styled(row.status.name(), style(row.status)),
            (&*manner.text(row.wait.unwrap_or_default())).into(),
            (&*manner.text(row.job_id)).into(),
        ]);
    }
    format!("Schedule (Summary)\n{}", table.drawn(terminal::table_canvas()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::{self, Foreign, Shown};
    use serde_json::json;
    use tidewheel_core::job::Brief;
    use tidewheel_core::time::Timestamp;

    #[test]
    fn foreign_text_breaks_no_schedule() {
        let mut foreign = Foreign::new("schedules");
        let ask = ScheduleAsk { all: true, focus: None, max_depth: ScheduleAsk::DEPTH };
        for _ in 0..foreign::count() / 6 {
            let texts: [String; 6] = std::array::from_fn(|_| foreign.text());
            let [name, slug, detail, lock, branch, key] = &texts;
            let form = json!({ "id": "a", "status": "waiting_on_deps", "created_at": "2026-02-01T12:00:00Z",
                "name": name, "slug": slug, "is_runnable": true, "schedule": {
                    "wait_reason": { "kind": "dependencies", "detail": detail },
                    "locks": [{ "key": lock, "mode": "exclusive" }],
                    "pinned_head": { "branch": branch, "oid": branch },
                    "dependencies": [{ "artifact": { "custom": { "type_id": key, "key": key } } }],
                } });
            let job: Brief = serde_json::from_value(form).expect("it is a job");
            let jobs = Jobs { briefs: [(job.id.clone(), job)].into(), ..Jobs::default() };
            let schedule = Schedule::of(&jobs.briefs, &ask);
            let survey = Survey::of(jobs.clone());
            let manner = MannerArguments::with_ids(Some(Ids::Short)).of(
                Form::Table,
                &survey,
                &survey.glances(),
                Timestamp::from_millis(0),
            );
            Shown { text: &summary(&schedule, &manner), lines: Some(3), ..Shown::default() }.check(&texts);
            let lines = schedule.dag(&|_| false);
            Shown { text: &tree(&lines, &manner), lines: Some(lines.len()), ..Shown::default() }
                .check(&texts);
        }
    }
}
