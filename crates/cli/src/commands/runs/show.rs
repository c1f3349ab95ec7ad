//! `tidewheel runs show`: one run with its inputs and its work, and where its time went.

use std::fmt::Write as _;

use clap::Args;
use serde::Serialize;
use serde_json::Value;
use tidewheel_core::event::Hold;
use tidewheel_core::fact::NodeId;
use tidewheel_core::time::Timestamp;
use tidewheel_core::view::{
    AttemptLine, Doing, Spent, Story, Stretch, WorkLine, WorkState, between, long, moment, relative,
};
use tidewheel_store::{Command, RunRecord, Status, Store as _};

use super::VERSION;
use super::list::{RunForm, why};
use super::of_jobs;
use super::side::{EitherArguments, Side};
use crate::commands::policy::Format;
use crate::error::{CommandError, Ending};
use crate::exit::Exit;
use crate::jobs::{Ids, MannerArguments};
use crate::output::{self, harmless};
use crate::store::{Opened, Purpose};
use crate::terminal;
use crate::view::bars::{self, Bar, End, Period};
use crate::view::columns::{Grid, cut};
use crate::view::timeline::{Canvas, FAINT, HEADING, wrapped};

/// Show one run: its inputs, its work, and where its time went
///
/// The timeline has one bar for each piece of work. Inputs, items and attempts
/// are counted from zero, as in the log and in what the work is told.
///
/// Example:
///
///   $ tidewheel runs show run_5c
///   $ tidewheel runs show order-7 --store orders.db
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// The run, or the beginning of its id
    run: String,
    #[command(flatten)]
    place: EitherArguments,
    /// Show all pieces of work, however many they are
    #[arg(long)]
    all: bool,
    /// How the ids of jobs are written; without it short in tables on a terminal, full everywhere else and always in JSON
    #[arg(long, value_enum, value_name = "HOW", conflicts_with = "store")]
    ids: Option<Ids>,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// As many pieces of work, and as many inputs, are shown to people.
const MOST_SHOWN: usize = 40;

/// Shows the run.
pub(super) fn run(arguments: &Arguments) -> Result<Exit, Ending> {
    if arguments.format == Format::Json {
        MannerArguments::with_ids(arguments.ids).check_for_json()?;
        if arguments.all {
            let why = "with `--format json` everything is shown";
            return Err(CommandError::idle("--all", why).into());
        }
    }
    let store = match arguments.place.side() {
        Side::Program(store) => store,
        Side::Repository(dir) => {
            if arguments.all {
                return Err(CommandError::idle("--all", "all jobs of a run are shown").into());
            }
            return of_jobs::show(
                &dir,
                &arguments.run,
                MannerArguments::with_ids(arguments.ids),
                arguments.format,
            );
        }
    };
    let opened = Opened::open(&store, Purpose::Look)?;
    let record = opened.run(&arguments.run)?;
    let story = opened.ask(opened.control.story(&record.id))?;
    let asked = opened.wait(opened.store().commands_of(&record.id))?;
    let period = period(&record, &story, opened.now);
    let spent = Spent::of(&story, period.from, period.to);
    match arguments.format {
        Format::Json => output::json(&ShowForm::of(&record, &story, &spent, &asked))?,
        Format::Text => {
            let canvas = terminal::canvas();
            let most = if arguments.all { usize::MAX } else { MOST_SHOWN };
            let mut text = header(&record, &asked, opened.now, canvas);
            text.push_str(&inputs(&story, opened.now, most, canvas));
            text.push_str(&work(&story, most, canvas));
            text.push_str(&timeline(&story, period, most, canvas));
            text.push_str(&bars::time_spent(&spent, canvas));
            output::text(&text)?;
        }
    }
    Ok(Exit::Succeeded)
}

/// Returns the time from the creation of the run to its end, or to now while it goes on.
pub(super) fn period(record: &RunRecord, story: &Story, now: Timestamp) -> Period {
    let is_over = match record.status {
        Status::Completed | Status::Failed | Status::Cancelled => true,
        Status::Running | Status::Waiting | Status::Paused | Status::Stopped | Status::Parked => false,
    };
    let from = record.created_at;
    // Runs that are over may be written again, as by an input that changes nothing.
    let ended = story.works.iter().filter_map(|work| work.ended_at).max().unwrap_or(record.updated_at);
    Period { from, to: if is_over { ended.max(from) } else { now.max(from) } }
}

fn header(record: &RunRecord, asked: &[Command], now: Timestamp, canvas: Canvas) -> String {
    let mut lines = vec![
        ("workflow", format!("{}, version {}", record.workflow, record.workflow_version)),
        ("status", record.status.to_string()),
    ];
    lines.extend(why(record, now).map(|why| ("why", why)));
    let driven = if record.owner.is_some() { "a process" } else { "nobody now" };
    lines.push(("driven by", driven.to_owned()));
    lines.extend(asked.iter().map(|command| {
        ("asked", format!("{} {}, not handled yet", command.kind, relative(command.at, now)))
    }));
    lines.push(("created", moment(record.created_at, now)));
    lines.push(("updated", moment(record.updated_at, now)));
    lines.push(("events", record.version.to_string()));
    let mut text = format!("{HEADING}{}{HEADING:#}\n", harmless(record.id.as_str()));
    for (name, value) in lines {
        let room = canvas.width.saturating_sub(13);
        let _ = writeln!(text, "  {FAINT}{name:9}{FAINT:#}  {}", cut(&harmless(&value), room, canvas));
    }
    text
}

fn inputs(story: &Story, now: Timestamp, most: usize, canvas: Canvas) -> String {
    let mut text = format!("\n{HEADING}Inputs{HEADING:#}\n");
    if story.inputs.is_empty() {
        text.push_str("  none yet\n");
    }
    for (index, input) in story.inputs.iter().enumerate().take(most) {
        let mut line = format!("  {index}");
        if let Some(at) = input.at {
            let _ = write!(line, "  {}", relative(at, now));
        }
        if let Some(key) = &input.key {
            let _ = write!(line, "  key {key}");
        }
        if let Some(to) = &input.to {
            let _ = write!(line, "  for {to}");
        }
        let _ = write!(line, "  {}", input.value);
        let _ = writeln!(text, "{}", cut(&harmless(&line), canvas.width, canvas));
    }
    text.push_str(&more(story.inputs.len(), most));
    text
}

/// Returns the pieces of work that people know, with their names; at most so many, and then those that did not
/// simply complete, and those that took longest.
pub(super) fn pieces(story: &Story, most: usize) -> Vec<(String, &WorkLine)> {
    let is_shown = |work: &&WorkLine| !is_unnamed(&work.node) || !matches!(work.state, WorkState::Completed);
    let mut works: Vec<(usize, &WorkLine)> = story.works.iter().filter(is_shown).enumerate().collect();
    if works.len() > most {
        let took = |work: &WorkLine| {
            let last = work.stretches.last().map(|last| last.to.unwrap_or(Timestamp::from_nanos(u64::MAX)));
            work.stretches.first().zip(last).map_or(0, |(first, last)| between(first.from, last))
        };
        let is_plain = |work: &WorkLine| matches!(work.state, WorkState::Completed);
        works.sort_by_key(|(_, work)| (is_plain(work), std::cmp::Reverse(took(work))));
        works.truncate(most);
        works.sort_by_key(|(index, _)| *index);
    }
    works.into_iter().map(|(_, work)| (name(work, story), work)).collect()
}

/// Tells whether a component is one that the engine made: people gave theirs names.
pub(super) fn is_unnamed(node: &str) -> bool {
    NodeId::parse(node).is_some()
}

/// Returns how a piece of work is called among those of its run.
fn name(work: &WorkLine, story: &Story) -> String {
    let mut name = if is_unnamed(&work.node) { "(unnamed)".to_owned() } else { work.node.clone() };
    if work.is_look {
        name.push('?');
    }
    if let Some(of) = &work.undoes {
        let _ = write!(name, " undoes {of}");
    }
    if story.inputs.len() > 1 || !work.items.is_empty() {
        let items: String = work.items.iter().map(|item| format!(".{item}")).collect();
        let _ = write!(name, " {}{items}", work.input);
    }
    harmless(&name).into_owned()
}

/// Says where in the run something stands.
pub(super) fn place(input: u32, items: &[u32]) -> String {
    match items {
        [] => format!("input {input}"),
        items => {
            let items: Vec<String> = items.iter().map(ToString::to_string).collect();
            format!("input {input}, item {}", items.join("."))
        }
    }
}

fn work(story: &Story, most: usize, canvas: Canvas) -> String {
    let pieces = pieces(story, most);
    if pieces.is_empty() {
        return String::new();
    }
    let inner = Canvas { width: canvas.width.saturating_sub(2), ..canvas };
    let mut grid = Grid::new(&["WORK", "STATE", "ATTEMPTS", "TOOK", "LAST FAILURE"], inner).whole(&[1, 2, 3]);
    for (name, work) in &pieces {
        let last = work.attempts.iter().rev().find_map(|attempt| attempt.failure.as_ref());
        let failure = work.failure.as_ref().or(last).map(ToString::to_string).unwrap_or_default();
        let attempts = match (work.attempts.len(), work.state) {
            (0, WorkState::Completed) => "1".to_owned(),
            (count, _) => count.to_string(),
        };
        grid.row([
            name.clone(),
            match work.state {
                WorkState::Held { why, .. } => format!("held: {}", why.name().replace('_', " ")),
                state => state.name().to_owned(),
            },
            attempts,
            worked(work).map(long).unwrap_or_default(),
            cut(&harmless(&failure), 120, canvas),
        ]);
    }
    let mut text = format!("\n{}", grid.drawn("  "));
    text.push_str(&more(story.works.iter().filter(|work| !is_unnamed(&work.node)).count(), most));
    text
}

/// Returns how long somebody worked on it, all attempts together.
fn worked(work: &WorkLine) -> Option<u64> {
    let attempts =
        work.stretches.iter().filter(|stretch| matches!(stretch.doing, Doing::Attempt | Doing::Failed));
    let ended: Vec<u64> = attempts.filter_map(|one| Some(between(one.from, one.to?))).collect();
    (!ended.is_empty()).then(|| ended.iter().sum())
}

fn timeline(story: &Story, period: Period, most: usize, canvas: Canvas) -> String {
    let rows = rows(story, most);
    if rows.is_empty() {
        return String::new();
    }
    let inner = Canvas { width: canvas.width.saturating_sub(2), ..canvas };
    let mut text = format!("\n{HEADING}Timeline{HEADING:#}\n");
    for line in bars::draw(&rows, period, inner).lines() {
        let _ = writeln!(text, "  {line}");
    }
    let _ = writeln!(text, "  {}", bars::legend(&bars::seen(&rows), canvas));
    text
}

/// Returns the bars of the pieces of work that took time, at most so many.
pub(super) fn rows(story: &Story, most: usize) -> Vec<Bar<'_>> {
    let pieces = pieces(story, most).into_iter().filter(|(_, work)| !work.stretches.is_empty());
    let end = |state| match state {
        WorkState::Completed | WorkState::Recovered => Some(End::Well),
        WorkState::Failed | WorkState::Skipped | WorkState::Replaced => Some(End::Badly),
        WorkState::Pending | WorkState::Running | WorkState::Waiting { .. } | WorkState::Held { .. } => None,
    };
    let bars = pieces.map(|(name, work)| Bar {
        name,
        stretches: &work.stretches,
        end: end(work.state),
        is_marked: false,
        note: String::new(),
    });
    bars.collect()
}

fn more(count: usize, most: usize) -> String {
    if count <= most {
        return String::new();
    }
    let words = format!("There are {count}; --all shows all of them.");
    format!("{}\n", wrapped(&words, 80, "  "))
}

#[derive(Serialize)]
struct ShowForm<'a> {
    version: u32,
    run: RunForm<'a>,
    skipped_failures: usize,
    asked: Vec<AskedForm<'a>>,
    inputs: Vec<InputForm<'a>>,
    work: Vec<WorkForm<'a>>,
    time: &'a Spent,
}

/// Something that was asked of a run and is not handled yet.
#[derive(Serialize)]
pub(super) struct AskedForm<'a> {
    kind: &'a str,
    at: String,
}

#[derive(Serialize)]
struct InputForm<'a> {
    value: &'a Value,
    at: Option<String>,
    key: Option<&'a str>,
    to: Option<&'a str>,
}

/// A piece of work for programs.
#[derive(Serialize)]
pub(super) struct WorkForm<'a> {
    id: Option<String>,
    component: &'a str,
    is_look: bool,
    undoes: Option<&'a str>,
    input: u32,
    items: &'a [u32],
    state: &'static str,
    held: Option<HeldForm<'a>>,
    due_at: Option<String>,
    woken_at: Option<String>,
    ended_at: Option<String>,
    attempts: Vec<AttemptForm>,
    failure: Option<String>,
    stretches: Vec<StretchForm>,
}

/// What holds a piece of work.
#[derive(Serialize)]
struct HeldForm<'a> {
    why: Hold,
    on: Option<&'a str>,
}

#[derive(Serialize)]
struct AttemptForm {
    number: u32,
    round: u32,
    dispatched_at: Vec<String>,
    failure: Option<String>,
    action: Option<&'static str>,
    reason_code: Option<String>,
    decided_at: Option<String>,
    due_at: Option<String>,
}

#[derive(Serialize)]
struct StretchForm {
    doing: &'static str,
    hold: Option<Hold>,
    from: String,
    to: Option<String>,
}

impl<'a> AskedForm<'a> {
    pub(super) fn all(asked: &'a [Command]) -> Vec<Self> {
        asked.iter().map(|command| Self { kind: &command.kind, at: command.at.to_string() }).collect()
    }
}

impl<'a> WorkForm<'a> {
    pub(super) fn of(work: &'a WorkLine) -> Self {
        let instant = |at: Option<Timestamp>| at.map(|at| at.to_string());
        let stretch = |stretch: &Stretch| StretchForm {
            doing: stretch.doing.name(),
            hold: stretch.hold,
            from: stretch.from.to_string(),
            to: instant(stretch.to),
        };
        Self {
            id: work.id.map(|id| id.to_string()),
            component: &work.node,
            is_look: work.is_look,
            undoes: work.undoes.as_deref(),
            input: work.input,
            items: &work.items,
            state: work.state.name(),
            held: match work.state {
                WorkState::Held { why, .. } => Some(HeldForm { why, on: work.held_on.as_deref() }),
                _ => None,
            },
            due_at: match work.state {
                WorkState::Waiting { until } | WorkState::Held { until: Some(until), .. } => {
                    Some(until.to_string())
                }
                _ => None,
            },
            woken_at: instant(work.woken_at),
            ended_at: instant(work.ended_at),
            attempts: work.attempts.iter().map(AttemptForm::of).collect(),
            failure: work.failure.as_ref().map(ToString::to_string),
            stretches: work.stretches.iter().map(stretch).collect(),
        }
    }
}

impl AttemptForm {
    fn of(attempt: &AttemptLine) -> Self {
        Self {
            number: attempt.number,
            round: attempt.round,
            dispatched_at: attempt.dispatched_at.iter().map(ToString::to_string).collect(),
            failure: attempt.failure.as_ref().map(ToString::to_string),
            action: attempt.decision.map(|decision| decision.action.name()),
            reason_code: attempt.decision.map(|decision| decision.reason.to_string()),
            decided_at: attempt.decided_at.map(|at| at.to_string()),
            due_at: attempt.decision.and_then(|decision| decision.action.due()).map(|at| at.to_string()),
        }
    }
}

impl<'a> ShowForm<'a> {
    fn of(record: &'a RunRecord, story: &'a Story, spent: &'a Spent, asked: &'a [Command]) -> Self {
        let inputs = story.inputs.iter().map(|input| InputForm {
            value: &input.value,
            at: input.at.map(|at| at.to_string()),
            key: input.key.as_deref(),
            to: input.to.as_deref(),
        });
        Self {
            version: VERSION,
            run: RunForm::of(record),
            skipped_failures: story.skipped_failures(),
            asked: AskedForm::all(asked),
            inputs: inputs.collect(),
            work: story.works.iter().map(WorkForm::of).collect(),
            time: spent,
        }
    }
}
