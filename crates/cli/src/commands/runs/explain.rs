//! `tidewheel runs explain`: in sentences, why a run or a component waits, was retried or failed, and what comes
//! next.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::Args;
use serde::Serialize;
use tidewheel_core::event::Hold;
use tidewheel_core::view::{Story, UndoState, WorkLine, WorkState, explain, explain_holds, moment, relative};
use tidewheel_store::{Command, RunRecord, Status, Store as _};

use super::VERSION;
use super::list::RunForm;
use super::show::{AskedForm, WorkForm, is_unnamed, place};
use super::side::{EitherArguments, Side};
use crate::commands::jobs::explain::{one_job, whole_run};
use crate::commands::policy::Format;
use crate::error::Ending;
use crate::exit::Exit;
use crate::output::{self, harmless};
use crate::store::{Opened, Purpose, StoreArguments, no_component};
use crate::terminal;
use crate::view::timeline::{Canvas, HEADING, wrapped};

/// Explain in sentences why a run waits, was retried or failed, and what is next
///
/// Without a COMPONENT, the run as a whole and each piece of work that did not
/// simply come to its end; with one, all of its pieces. Each failed attempt has
/// the decision about it and its reason code. Of a run of jobs, what holds them
/// up is followed through to the root; a COMPONENT is one of its nodes.
///
/// Example:
///
///   $ tidewheel runs explain run_5c
///   $ tidewheel runs explain order-7 charge --store orders.db
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// The run, or the beginning of its id
    run: String,
    /// Only this component
    component: Option<String>,
    #[command(flatten)]
    of: EitherArguments,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// As many pieces of work are explained to people.
const MOST_EXPLAINED: usize = 20;

/// No text is easy to read that is wider.
const WIDEST_TEXT: usize = 100;

/// What is said.
struct Explained<'a> {
    run: Vec<String>,
    works: Vec<(&'a WorkLine, Vec<String>)>,
    rest: Vec<String>,
}

/// Explains.
pub(super) fn run(arguments: &Arguments) -> Result<Exit, Ending> {
    match arguments.of.side() {
        Side::Program(store) => of_program(arguments, &store),
        Side::Repository(dir) => match &arguments.component {
            Some(node) => one_job(&dir, &format!("{}/{node}", arguments.run), arguments.format),
            None => whole_run(&dir, &arguments.run, arguments.format),
        },
    }
}

fn of_program(arguments: &Arguments, store: &StoreArguments) -> Result<Exit, Ending> {
    let opened = Opened::open(store, Purpose::Look)?;
    let record = opened.run(&arguments.run)?;
    let story = opened.ask(opened.control.story(&record.id))?;
    let asked = opened.wait(opened.store().commands_of(&record.id))?;
    let component = arguments.component.as_deref();
    if let Some(component) = component
        && !story.works.iter().any(|work| work.node == component)
    {
        let known = opened.ask(opened.control.components(&record.id))?;
        if !known.iter().any(|name| name == component) {
            return Err(no_component(&record.id, component, &known).into());
        }
    }
    let now = opened.now;
    let is_told = |work: &&WorkLine| match component {
        Some(component) => work.node == component,
        None => is_worth_a_word(work),
    };
    let explained = Explained {
        run: of_run(&opened, &record, &story, &asked),
        works: story.works.iter().filter(is_told).map(|work| (work, explain(work, now))).collect(),
        rest: absences(&story, component),
    };
    match arguments.format {
        Format::Json => output::json(&ExplainForm::of(&record, &explained, &asked))?,
        Format::Text => output::text(&told(&explained, terminal::canvas()))?,
    }
    Ok(Exit::Succeeded)
}

/// Tells whether there is more to say of a piece of work than that it completed.
fn is_worth_a_word(work: &WorkLine) -> bool {
    let is_plain = work.state == WorkState::Completed && work.attempts.len() <= 1;
    !is_plain
}

/// Explains the run as a whole.
fn of_run(opened: &Opened, record: &RunRecord, story: &Story, asked: &[Command]) -> Vec<String> {
    let now = opened.now;
    let RunRecord { id, workflow, status, .. } = record;
    let is = match status {
        Status::Completed | Status::Failed => "",
        Status::Cancelled => "was ",
        Status::Running | Status::Waiting | Status::Paused | Status::Stopped | Status::Parked => "is ",
    };
    let mut sentences =
        vec![format!("Run {id} of workflow {workflow} {is}{status}: {}.", meaning(record, story))];
    if let Some(reason) = &record.reason {
        sentences.push(format!("The reason: {}.", reason.trim_end_matches('.')));
    }
    sentences.extend(counted(story));
    // The others are explained one by one.
    sentences.extend(explain_holds(story.works.iter().filter(|work| !is_worth_a_word(work))));
    for (index, input) in story.inputs.iter().enumerate() {
        match input.undo {
            UndoState::None => {}
            UndoState::Begun { at } => {
                let since = at.map(|at| format!(" since {}", moment(at, now))).unwrap_or_default();
                sentences.push(format!("What input {index} caused is being undone{since}."));
            }
            UndoState::Ended => sentences.push(format!("What input {index} caused was undone.")),
        }
    }
    for command in asked {
        let taker = if record.owner.is_some() { "the process that drives it" } else { "its next driver" };
        sentences.push(format!(
            "Somebody asked it to {} {}, and {taker} has not done so yet.",
            command.kind.replace('_', " "),
            relative(command.at, now)
        ));
    }
    sentences.extend(next(opened, record, story, !asked.is_empty()));
    sentences
}

/// Says what a status means.
fn meaning(record: &RunRecord, story: &Story) -> &'static str {
    match (record.status, record.owner) {
        (Status::Running, Some(_)) => "a process drives it",
        (Status::Running, None) => "it has work to do, and nobody drives it now",
        (Status::Waiting, _) if story.inputs.is_empty() => "it had no input yet",
        (Status::Waiting, _) => "all that is left waits for a time or for somebody",
        (Status::Completed, _) if story.works.iter().any(|work| work.state == WorkState::Skipped) => {
            "nothing is left to do, and what failed was skipped"
        }
        (Status::Completed, _) => "nothing is left to do, and nothing failed",
        (Status::Failed, _) => "nothing is left to do, and something failed",
        (Status::Paused, _) if story.works.iter().any(waits_for_a_person) => {
            "work failed, and a person is to say how it goes on"
        }
        (Status::Paused, _) => "somebody paused it, so no new work starts",
        (Status::Stopped, _) => "somebody stopped it, and nobody drives it",
        (Status::Parked, _) => "it was put aside after going wrong again and again",
        (Status::Cancelled, _) => "somebody cancelled it, and it takes no input any more",
    }
}

fn counted(story: &Story) -> Option<String> {
    let mut counts: BTreeMap<(u8, &str, &str), usize> = BTreeMap::new();
    for work in story.works.iter().filter(|work| !is_unnamed(&work.node)) {
        let words = match work.state {
            WorkState::Completed => (0, "completed", "completed"),
            WorkState::Recovered => (1, "got a result from a fallback", "got a result from a fallback"),
            WorkState::Failed => (2, "failed", "failed"),
            WorkState::Skipped => (3, "failed and was skipped", "failed and were skipped"),
            WorkState::Running => (4, "is under way", "are under way"),
            WorkState::Waiting { .. } => (5, "waits for a retry", "wait for a retry"),
            WorkState::Held { .. } => (6, "is held", "are held"),
            WorkState::Pending => (7, "has not begun", "have not begun"),
            WorkState::Replaced => {
                (8, "was tried again as another piece", "were tried again as other pieces")
            }
        };
        *counts.entry(words).or_default() += 1;
    }
    let said: Vec<String> = counts
        .iter()
        .map(|((_, one, many), count)| format!("{count} {}", if *count == 1 { one } else { many }))
        .collect();
    (!said.is_empty()).then(|| format!("Of its pieces of work, {}.", said.join(", ")))
}

/// Says what happens next, and when.
fn next(opened: &Opened, record: &RunRecord, story: &Story, is_asked: bool) -> Option<String> {
    let now = opened.now;
    let RunRecord { id, workflow, workflow_version, .. } = record;
    let resume = || format!("Next: {} lets it go on.", opened.command(&format!("resume {id}")));
    let retry = || format!("{} tries what failed again", opened.command(&format!("retry {id}")));
    let somebody =
        format!("Next: the next process that knows workflow {workflow} version {workflow_version}");
    if is_asked {
        return record.owner.is_none().then(|| format!("{somebody} takes it up and does that."));
    }
    match (record.status, record.wake_at, record.owner) {
        (Status::Running | Status::Waiting, Some(at), None) if at <= now => {
            Some(format!("{somebody} takes it up; it was due {}.", moment(at, now)))
        }
        (Status::Waiting, Some(at), _) if waits_outside(story) && at > now => {
            Some(format!("Next: somebody outside ends its work, or its time is over {}.", moment(at, now)))
        }
        (Status::Waiting, Some(at), _) if at > now => Some(format!("Next: it goes on {}.", moment(at, now))),
        (Status::Waiting, ..) if story.works.iter().any(|work| !work.state.is_over()) => {
            Some("Next: it goes on when what holds its work lets go.".to_owned())
        }
        (Status::Waiting, ..) => Some("Next: an input or a signal makes it go on.".to_owned()),
        (Status::Failed, ..) if story.works.iter().all(|work| story.no_retry(work).is_some()) => {
            Some("Next: nothing; what was undone is not tried again.".to_owned())
        }
        (Status::Failed, ..) => Some(format!("Next: nothing by itself; {}.", retry())),
        (Status::Paused | Status::Stopped | Status::Parked, ..) => Some(resume()),
        (Status::Running | Status::Completed | Status::Cancelled, ..) => None,
    }
}

/// Returns whether a piece of work failed and waits until a person says how it goes on.
fn waits_for_a_person(work: &WorkLine) -> bool {
    matches!(work.state, WorkState::Held { why: Hold::Pause, .. })
}

/// Tells whether all that is left waits for somebody outside.
fn waits_outside(story: &Story) -> bool {
    let is_outside = |work: &WorkLine| matches!(work.state, WorkState::Held { why: Hold::External, .. });
    story.works.iter().filter(|work| !work.state.is_over()).all(is_outside)
}

/// Says in words why nothing came from a component.
pub(super) fn absence(why: &str) -> &'static str {
    match why {
        "unsatisfied" => "its condition was not true",
        "failed" => "it failed",
        "skipped" => "it failed and was skipped",
        "upstream_failed" => "something before it failed",
        "upstream_skipped" => "something before it was skipped",
        _ => "it gives nothing",
    }
}

/// Says what did not come, where that is not told by the work itself.
fn absences(story: &Story, component: Option<&str>) -> Vec<String> {
    let mut groups: BTreeMap<(&str, &str), Vec<u32>> = BTreeMap::new();
    for line in &story.absences {
        let is_told = match component {
            Some(component) => line.node == component,
            None => !is_unnamed(&line.node) && matches!(line.why, "upstream_failed" | "upstream_skipped"),
        };
        if is_told {
            groups.entry((&line.node, line.why)).or_default().push(line.input);
        }
    }
    let mut sentences: Vec<String> = groups
        .iter()
        .map(|((node, why), inputs)| {
            let times = if inputs.len() == 1 { String::new() } else { format!(", {} times", inputs.len()) };
            format!("Nothing came from {node}{times}: {}.", absence(why))
        })
        .collect();
    if let Some(component) = component
        && sentences.is_empty()
        && !story.works.iter().any(|work| work.node == component)
    {
        sentences.push(format!("{component} was not reached yet: what comes before it gave nothing so far."));
    }
    sentences
}

fn told(explained: &Explained<'_>, canvas: Canvas) -> String {
    let width = canvas.width.min(WIDEST_TEXT);
    let mut text = String::new();
    for sentence in &explained.run {
        let _ = writeln!(text, "{}", wrapped(&harmless(sentence), width, ""));
    }
    for (work, sentences) in explained.works.iter().take(MOST_EXPLAINED) {
        let look = if work.is_look { ", its condition" } else { "" };
        let name = if is_unnamed(&work.node) { "(unnamed)" } else { &work.node };
        let undoes = work.undoes.as_ref().map(|of| format!(", undoing {of}")).unwrap_or_default();
        let heading = format!("{name}{look}{undoes} ({})", place(work.input, &work.items));
        let _ = writeln!(text, "\n{HEADING}{}{HEADING:#}", harmless(&heading));
        for sentence in sentences {
            let _ = writeln!(text, "{}", wrapped(&harmless(sentence), width, "  "));
        }
    }
    let more = explained.works.len().saturating_sub(MOST_EXPLAINED);
    if more > 0 {
        let words = format!("There are {more} more; --format json explains all of them.");
        let _ = writeln!(text, "\n{}", wrapped(&words, width, ""));
    }
    if !explained.rest.is_empty() {
        text.push('\n');
    }
    for sentence in &explained.rest {
        let _ = writeln!(text, "{}", wrapped(&harmless(sentence), width, ""));
    }
    text
}

#[derive(Serialize)]
struct ExplainForm<'a> {
    version: u32,
    run: RunForm<'a>,
    asked: Vec<AskedForm<'a>>,
    sentences: Vec<&'a str>,
    work: Vec<ExplainedForm<'a>>,
}

#[derive(Serialize)]
struct ExplainedForm<'a> {
    work: WorkForm<'a>,
    sentences: &'a [String],
}

impl<'a> ExplainForm<'a> {
    fn of(record: &'a RunRecord, explained: &'a Explained<'a>, asked: &'a [Command]) -> Self {
        let works = explained.works.iter();
        Self {
            version: VERSION,
            run: RunForm::of(record),
            asked: AskedForm::all(asked),
            sentences: explained.run.iter().chain(&explained.rest).map(String::as_str).collect(),
            work: works
                .map(|(work, sentences)| ExplainedForm { work: WorkForm::of(work), sentences })
                .collect(),
        }
    }
}
