//! `tidewheel runs timeline`: where the time of a run went, as bars, as a picture or as data.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::{Args, ValueEnum};
use serde::Serialize;
use tidewheel_core::job::{JobEvent, JobId, JobStatus, Manifest};
use tidewheel_core::view::jobs::{Timeline, TimelineAttempt, TimelineRow};
use tidewheel_core::view::{Spent, Story, Stretch, absolute, between, long, moment};
use tidewheel_store::RunRecord;

use super::side::{EitherArguments, Side};
use super::{VERSION, of_jobs, show};
use crate::error::{CommandError, Ending};
use crate::exit::Exit;
use crate::jobs::{self, DirArguments};
use crate::output::{self, harmless};
use crate::store::{self, Purpose, StoreArguments};
use crate::terminal;
use crate::view::bars::{self, Bar, End, Period};
use crate::view::columns::cut;
use crate::view::svg::{self, Sheet};
use crate::view::timeline::{Canvas, FAINT, HEADING, wrapped};

/// Show where the time of a run went
///
/// One bar for each job, in the order in which they started: how long it waited
/// once it could start, its attempts, and the time between them. The chain of
/// jobs that took longest is marked: the run gets shorter only if one of those
/// does. A picture as SVG needs nothing else, and reads well on any ground.
///
/// Example:
///
///   $ tidewheel runs timeline run_5c
///   $ tidewheel runs timeline run_5c --format svg > run.svg
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// The run, or the beginning of its id
    run: String,
    #[command(flatten)]
    place: EitherArguments,
    /// How the timeline is printed
    #[arg(long, value_enum, default_value_t)]
    format: TimelineFormat,
    /// With --format text: how many columns it takes, from 40 to 200; as many as the terminal has, otherwise
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(40..=200))]
    width: Option<u16>,
}

/// How the timeline is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum TimelineFormat {
    /// For people: bars of characters
    #[default]
    Text,
    /// For pages: a picture
    Svg,
    /// For programs: one object with a `version`
    Json,
}

/// Shows the timeline.
pub(super) fn run(arguments: &Arguments) -> Result<Exit, Ending> {
    if arguments.width.is_some() && arguments.format != TimelineFormat::Text {
        return Err(CommandError::idle("--width", "only text has columns").into());
    }
    match arguments.place.side() {
        Side::Repository(dir) => of_repository(&dir, arguments),
        Side::Program(store) => of_program(&store, arguments),
    }
}

impl Arguments {
    fn canvas(&self) -> Canvas {
        let canvas = terminal::canvas();
        Canvas { width: self.width.map_or(canvas.width, usize::from), ..canvas }
    }
}

fn of_repository(dir: &DirArguments, arguments: &Arguments) -> Result<Exit, Ending> {
    let opened = jobs::Opened::open(dir)?;
    let (id, all) = opened.run(&arguments.run)?;
    let mut events: BTreeMap<JobId, Vec<JobEvent>> = BTreeMap::new();
    for job in all.briefs.values().filter(|job| job.run.as_ref() == Some(&id)) {
        let wrong = match opened.store().history(&job.id) {
            Ok(history) => {
                let wrong = history.wrong_of(job);
                events.insert(job.id.clone(), history.events);
                wrong
            }
            Err(error) => Some(error.to_string()),
        };
        if let Some(wrong) = wrong {
            output::warning(&format!("unable to load the events of job {}: {wrong}", job.id));
        }
    }
    let manifest = of_jobs::manifest(&opened, &id);
    let mut timeline = Timeline::of(&id, &all.briefs, &events, opened.now);
    if let Some(manifest) = &manifest {
        timeline.run = timeline.run.among(manifest);
    }
    let workflow = manifest.as_ref().map(of_jobs::template);
    let bars: Vec<Bar<'_>> = timeline.rows.iter().map(bar).collect();
    let period = Period { from: timeline.from, to: timeline.to };
    match arguments.format {
        TimelineFormat::Json => output::json(&JobsForm::of(&timeline, manifest.as_ref()))?,
        TimelineFormat::Svg => {
            let title = workflow.unwrap_or_else(|| id.to_string());
            let status = format!("{}: {}", of_jobs::status_of(&timeline.run), timeline.run.counts.said());
            output::text(&picture(&title, &[id.to_string(), status], &bars, period))?;
        }
        TimelineFormat::Text => {
            let took = long(between(timeline.from, timeline.to));
            let is_over = timeline.run.status.is_over();
            let mut head: Vec<(&str, String)> = Vec::new();
            head.extend(workflow.map(|workflow| ("workflow", workflow)));
            let status = format!("{}: {}", of_jobs::status_of(&timeline.run), timeline.run.counts.said());
            head.push(("status", status));
            head.push(("created", moment(timeline.from, opened.now)));
            head.push((if is_over { "took" } else { "so far" }, took));
            let whole = Whole {
                head: (id.as_str(), head),
                bars: &bars,
                period,
                path: path(&timeline),
                spent: &timeline.spent,
            };
            output::text(&whole.drawn(arguments.canvas()))?;
        }
    }
    Ok(Exit::Succeeded)
}

fn of_program(place: &StoreArguments, arguments: &Arguments) -> Result<Exit, Ending> {
    let opened = store::Opened::open(place, Purpose::Look)?;
    let record = opened.run(&arguments.run)?;
    let story = opened.ask(opened.control.story(&record.id))?;
    let period = show::period(&record, &story, opened.now);
    let spent = Spent::of(&story, period.from, period.to);
    let bars = show::rows(&story, usize::MAX);
    let workflow = format!("{}, version {}", record.workflow, record.workflow_version);
    match arguments.format {
        TimelineFormat::Json => output::json(&ProgramForm::of(&record, &story, &spent, period))?,
        TimelineFormat::Svg => {
            let under = [record.id.to_string(), record.status.to_string()];
            output::text(&picture(&workflow, &under, &bars, period))?;
        }
        TimelineFormat::Text => {
            let took = long(between(period.from, period.to));
            let head = vec![
                ("workflow", workflow),
                ("status", record.status.to_string()),
                ("created", moment(record.created_at, opened.now)),
                ("took", took),
            ];
            let head = (record.id.as_str(), head);
            let whole = Whole { head, bars: &bars, period, path: None, spent: &spent };
            output::text(&whole.drawn(arguments.canvas()))?;
        }
    }
    Ok(Exit::Succeeded)
}

/// A timeline for people.
struct Whole<'a> {
    head: (&'a str, Vec<(&'static str, String)>),
    bars: &'a [Bar<'a>],
    period: Period,
    path: Option<String>,
    spent: &'a Spent,
}

impl Whole<'_> {
    fn drawn(&self, canvas: Canvas) -> String {
        let (id, head) = &self.head;
        let mut text = format!("{HEADING}{}{HEADING:#}\n", cut(&harmless(id), canvas.width, canvas));
        for (name, value) in head {
            let room = canvas.width.saturating_sub(13);
            let _ = writeln!(text, "  {FAINT}{name:9}{FAINT:#}  {}", cut(&harmless(value), room, canvas));
        }
        if self.bars.is_empty() {
            text.push_str("\nNothing has happened yet.\n");
            return text;
        }
        let _ = write!(text, "\n{}", bars::draw(self.bars, self.period, canvas));
        let mut legend = bars::legend(&bars::seen(self.bars), canvas);
        if self.path.is_some() {
            legend.push_str("   * critical path");
        }
        if !legend.is_empty() {
            let _ = writeln!(text, "\n{}", wrapped_legend(&legend, canvas));
        }
        if let Some(path) = &self.path {
            let _ = writeln!(
                text,
                "\n{HEADING}Critical path{HEADING:#}\n{}",
                wrapped(&harmless(path), canvas.width, "  ")
            );
        }
        text.push_str(&bars::time_spent(self.spent, canvas));
        text
    }
}

/// Breaks a legend between its marks.
fn wrapped_legend(legend: &str, canvas: Canvas) -> String {
    let columns =
        |text: &str| crate::view::columns::columns_of(&anstream::adapter::strip_str(text).to_string());
    let mut lines = vec![String::from(" ")];
    for part in legend.split("   ") {
        let line = lines.last_mut().expect("invariant: there is a line from the start");
        if columns(line) + 3 + columns(part) > canvas.width && line != " " {
            lines.push(format!("  {part}"));
        } else {
            line.push_str(if line == " " { " " } else { "   " });
            line.push_str(part);
        }
    }
    lines.join("\n")
}

/// Names the chain of jobs that took longest, and how long it took.
fn path(timeline: &Timeline<'_>) -> Option<String> {
    if timeline.critical.is_empty() {
        return None;
    }
    let names: Vec<String> = timeline.critical.iter().map(|place| name(&timeline.rows[*place])).collect();
    let (took, all) = (long(timeline.critical_ns), long(between(timeline.from, timeline.to)));
    Some(format!("{} ({took} of {all})", names.join(" > ")))
}

fn name(row: &TimelineRow<'_>) -> String {
    let node = row.job.node.as_ref().map_or_else(|| row.job.id.as_str(), |node| node.as_str());
    node.to_owned()
}

fn bar<'a>(row: &'a TimelineRow<'_>) -> Bar<'a> {
    let took = if row.stretches.is_empty() { String::new() } else { long(row.took_ns) };
    let said = match row.job.status {
        JobStatus::Succeeded => "",
        JobStatus::Queued => "queued",
        JobStatus::WaitingOnDeps | JobStatus::WaitingOnApproval | JobStatus::WaitingOnLocks => "waiting",
        JobStatus::Running => "running",
        JobStatus::Failed => "failed",
        JobStatus::Cancelled => "cancelled",
        JobStatus::BlockedByDependency | JobStatus::BlockedByApproval => "blocked",
        JobStatus::Skipped => "skipped",
    };
    let end = match row.job.status {
        JobStatus::Succeeded => Some(End::Well),
        JobStatus::Failed | JobStatus::Cancelled => Some(End::Badly),
        JobStatus::BlockedByDependency | JobStatus::BlockedByApproval if !row.stretches.is_empty() => {
            Some(End::Badly)
        }
        JobStatus::BlockedByDependency | JobStatus::BlockedByApproval | JobStatus::Skipped => {
            Some(End::Neither)
        }
        JobStatus::Queued
        | JobStatus::WaitingOnDeps
        | JobStatus::WaitingOnApproval
        | JobStatus::WaitingOnLocks
        | JobStatus::Running => None,
    };
    let note =
        [took.as_str(), said].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    Bar { name: name(row), stretches: &row.stretches, end, is_marked: row.is_critical, note }
}

fn picture(title: &str, under: &[String], bars: &[Bar<'_>], period: Period) -> String {
    let under: Vec<&str> = under.iter().map(String::as_str).collect();
    let took = format!("{} from {}", long(between(period.from, period.to)), absolute(period.from));
    let under = [under.as_slice(), &[took.as_str()]].concat().join(" · ");
    svg::draw(&Sheet { title, under: &under, bars, period })
}

/// A timeline of jobs for programs.
#[derive(Serialize)]
struct JobsForm<'a> {
    version: u32,
    run_id: &'a str,
    template: Option<String>,
    status: &'static str,
    from: String,
    to: String,
    is_over: bool,
    critical_path: PathForm<'a>,
    jobs: Vec<JobForm<'a>>,
    time: &'a Spent,
}

#[derive(Serialize)]
struct PathForm<'a> {
    jobs: Vec<&'a str>,
    took_ns: u64,
}

#[derive(Serialize)]
struct JobForm<'a> {
    job_id: &'a str,
    node: Option<&'a str>,
    name: &'a str,
    status: JobStatus,
    is_critical: bool,
    created_at: String,
    took_ns: u64,
    attempts: Vec<AttemptForm>,
    stretches: Vec<StretchForm>,
}

#[derive(Serialize)]
struct AttemptForm {
    attempt: u32,
    from: String,
    to: Option<String>,
    outcome: Option<&'static str>,
    exit_code: Option<i32>,
}

/// What time was spent with.
#[derive(Serialize)]
struct StretchForm {
    doing: &'static str,
    from: String,
    to: Option<String>,
}

impl StretchForm {
    fn all(stretches: &[Stretch]) -> Vec<Self> {
        let form = |stretch: &Stretch| Self {
            doing: stretch.doing.name(),
            from: stretch.from.to_string(),
            to: stretch.to.map(|at| at.to_string()),
        };
        stretches.iter().map(form).collect()
    }
}

impl<'a> JobsForm<'a> {
    fn of(timeline: &'a Timeline<'_>, manifest: Option<&Manifest>) -> Self {
        let attempt = |attempt: &TimelineAttempt| AttemptForm {
            attempt: attempt.number,
            from: attempt.from.to_string(),
            to: attempt.to.map(|at| at.to_string()),
            outcome: attempt.outcome.map(|outcome| outcome.name()),
            exit_code: attempt.exit_code,
        };
        let job = |row: &'a TimelineRow<'_>| JobForm {
            job_id: row.job.id.as_str(),
            node: row.job.node.as_ref().map(|node| node.as_str()),
            name: &row.job.name,
            status: row.job.status,
            is_critical: row.is_critical,
            created_at: row.job.created_at.to_string(),
            took_ns: row.took_ns,
            attempts: row.attempts.iter().map(attempt).collect(),
            stretches: StretchForm::all(&row.stretches),
        };
        let critical = timeline.critical.iter().map(|place| timeline.rows[*place].job.id.as_str());
        Self {
            version: VERSION,
            run_id: timeline.run.id.as_str(),
            template: manifest
                .map(|kept| format!("{}@{}", kept.workflow_template_id, kept.workflow_template_version)),
            status: timeline.run.status.name(),
            from: timeline.from.to_string(),
            to: timeline.to.to_string(),
            is_over: timeline.run.status.is_over(),
            critical_path: PathForm { jobs: critical.collect(), took_ns: timeline.critical_ns },
            jobs: timeline.rows.iter().map(job).collect(),
            time: &timeline.spent,
        }
    }
}

/// A timeline of a run of a program, for programs.
#[derive(Serialize)]
struct ProgramForm<'a> {
    version: u32,
    run_id: &'a str,
    workflow: &'a str,
    status: String,
    from: String,
    to: String,
    work: Vec<WorkForm<'a>>,
    time: &'a Spent,
}

#[derive(Serialize)]
struct WorkForm<'a> {
    component: &'a str,
    state: &'static str,
    stretches: Vec<StretchForm>,
}

impl<'a> ProgramForm<'a> {
    fn of(record: &'a RunRecord, story: &'a Story, spent: &'a Spent, period: Period) -> Self {
        let work = story.works.iter().map(|work| WorkForm {
            component: &work.node,
            state: work.state.name(),
            stretches: StretchForm::all(&work.stretches),
        });
        Self {
            version: VERSION,
            run_id: record.id.as_str(),
            workflow: record.workflow.as_str(),
            status: record.status.to_string(),
            from: period.from.to_string(),
            to: period.to.to_string(),
            work: work.collect(),
            time: spent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::{self, Foreign, Shown};
    use serde_json::json;
    use tidewheel_core::job::{Brief, RunId};
    use tidewheel_core::time::Timestamp;

    #[test]
    fn foreign_text_breaks_no_timeline() {
        let mut foreign = Foreign::new("timelines");
        let run = RunId::of_bits(7);
        let at = |text| Timestamp::parse(text).expect("it is an instant");
        for _ in 0..foreign::count() / 4 {
            let (texts, canvas): ([String; 4], Canvas) =
                (std::array::from_fn(|_| foreign.text()), foreign.canvas());
            let [id, workflow, name, node] = &texts;
            let form = json!({ "id": "a", "status": "failed", "created_at": "2026-02-01T12:00:00Z",
                "started_at": "2026-02-01T12:00:01Z", "finished_at": "2026-02-01T12:00:09Z", "name": name,
                "run": run, "node": "a", "is_runnable": true, "schedule": {} });
            let job: Brief = serde_json::from_value(form).expect("it is a job");
            let jobs = [(job.id.clone(), job)].into();
            let timeline = Timeline::of(&run, &jobs, &[].into(), at("2026-02-01T12:00:10Z"));
            let mut bars: Vec<Bar<'_>> = timeline.rows.iter().map(bar).collect();
            bars[0].name.clone_from(node);
            let whole = Whole {
                head: (id, vec![("workflow", workflow.clone())]),
                bars: &bars,
                period: Period { from: timeline.from, to: timeline.to },
                path: path(&timeline).map(|path| path.replacen('a', node, 1)),
                spent: &timeline.spent,
            };
            let text = whole.drawn(canvas);
            Shown { text: &text, width: Some(canvas.width), ..Shown::default() }.check(&texts);
        }
    }
}
