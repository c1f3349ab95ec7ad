//! `tidewheel runs cancel|pause|resume|retry|signal|complete|fail`: what people ask of runs. It becomes a row in the
//! store, which the process that drives the run notices at once.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde::Serialize;
use serde_json::value::RawValue;
use tidewheel_core::fact::{RunId, RunnableId};
use tidewheel_core::policy::{ErrorCode, Failure};
use tidewheel_core::time::Span;
use tidewheel_core::view::{Story, WorkLine};
use tidewheel_runner::Sent;
use tidewheel_store::RunRecord;

use super::VERSION;
use super::of_jobs;
use super::side::{EitherArguments, Side, of_programs, of_repositories};
use crate::commands::policy::Format;
use crate::error::{Code, CommandError, Ending};
use crate::exit::Exit;
use crate::jobs::DirArguments;
use crate::output::{self, harmless};
use crate::store::{Opened, Purpose, StoreArguments, no_component};
use crate::terminal;
use crate::view::timeline::wrapped;

/// Cancel a run: end all of its work that is not over
///
/// Async work is dropped at its next await point, other work is told. With a
/// component, only its pieces of work that are not over end, and the run goes
/// on without them.
///
/// Example:
///
///   $ tidewheel runs cancel run_5c --cleanup-worktree
///   $ tidewheel runs cancel order-7 --store orders.db
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct CancelArguments {
    /// The run, or the beginning of its id
    run: String,
    /// Only the work of this component, or the one piece of work with this id
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    component: Option<String>,
    /// Remove the worktrees that jobs of the run made
    #[arg(long, conflicts_with = "no_cleanup_worktree")]
    cleanup_worktree: bool,
    /// Keep the worktrees that jobs of the run made, whatever is configured
    #[arg(long)]
    no_cleanup_worktree: bool,
    #[command(flatten)]
    how: EitherHow,
}

/// Pause a run: what is under way comes to its end, nothing new starts
///
/// Inputs are still taken and kept. `tidewheel runs resume` lets it go on.
///
/// Example:
///
///   $ tidewheel runs pause order-7 --store orders.db
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct PauseArguments {
    /// The run, or the beginning of its id
    run: String,
    #[command(flatten)]
    how: HowArguments,
}

/// Let a run go on that was paused, stopped or put aside
///
/// Example:
///
///   $ tidewheel runs resume order-7 --store orders.db
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ResumeArguments {
    /// The run, or the beginning of its id
    run: String,
    #[command(flatten)]
    how: HowArguments,
}

/// Try failed work of a run again
///
/// It gets all the attempts that its policy allows. With a component, only its
/// pieces of work that failed.
///
/// Example:
///
///   $ tidewheel runs retry run_5c
///   $ tidewheel runs retry order-7 charge --store orders.db
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct RetryArguments {
    /// The run, or the beginning of its id
    run: String,
    /// Only the failed work of this component, or the one piece of work with this id
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    component: Option<String>,
    #[command(flatten)]
    how: EitherHow,
}

/// Give one component of a run a value, and the others nothing
///
/// Example:
///
///   $ tidewheel runs signal order-7 approve '{"by": "ada"}' --store orders.db
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct SignalArguments {
    /// The run, or the beginning of its id
    run: String,
    /// The component, one that takes the input of the workflow
    component: String,
    /// The value, as JSON
    #[arg(value_parser = json)]
    value: Box<RawValue>,
    #[command(flatten)]
    how: HowArguments,
}

/// Give the result of work that is done elsewhere
///
/// The work got its TOKEN when it was handed out; `tidewheel runs explain`
/// shows it, too.
///
/// Example:
///
///   $ tidewheel runs complete "$TOKEN" '{"paid": true}' --store orders.db
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct CompleteArguments {
    /// Which attempt at which work: RUN:WORK:ATTEMPT
    token: String,
    /// The result, as JSON
    #[arg(value_parser = json, default_value = "null")]
    value: Box<RawValue>,
    #[command(flatten)]
    how: HowArguments,
}

/// Say that work failed that is done elsewhere
///
/// Its policy decides what follows, as for all work.
///
/// Example:
///
///   $ tidewheel runs fail "$TOKEN" 'the bank is closed' --code closed --store orders.db
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct FailArguments {
    /// Which attempt at which work: RUN:WORK:ATTEMPT
    token: String,
    /// Why it failed
    message: String,
    /// A number or a word that policies look at
    #[arg(long)]
    code: Option<String>,
    #[command(flatten)]
    how: HowArguments,
}

/// How something is asked of a run on either side.
#[derive(Debug, Args)]
pub(super) struct EitherHow {
    #[command(flatten)]
    place: EitherArguments,
    #[command(flatten)]
    patience: Patience,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl EitherHow {
    /// Returns how it is asked in a store, or where the repository is.
    fn side(&self) -> Result<HowArguments, DirArguments> {
        match self.place.side() {
            Side::Program(store) => {
                Ok(HowArguments { store, patience: self.patience.clone(), format: self.format })
            }
            Side::Repository(dir) => Err(dir),
        }
    }
}

/// How something is asked.
#[derive(Debug, Args)]
pub(super) struct HowArguments {
    #[command(flatten)]
    store: StoreArguments,
    #[command(flatten)]
    patience: Patience,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// How long to wait until somebody has done what was asked.
#[derive(Clone, Debug, Args)]
pub(super) struct Patience {
    /// Wait so long until it is done
    #[arg(long, value_name = "SPAN", default_value = "2s", value_parser = Span::parse)]
    pub(super) wait: Span,
    /// Do not wait until it is done
    #[arg(long, conflicts_with = "wait")]
    no_wait: bool,
}

impl Patience {
    /// Refuses haste where it would change nothing.
    fn is_usual(&self) -> Result<(), CommandError> {
        let instead = "Here the command ends when it is done.";
        if self.no_wait { Err(of_programs("`--no-wait`", instead)) } else { Ok(()) }
    }

    /// Returns what is left of it until an instant.
    pub(super) fn left(&self, until: Instant) -> Self {
        let left = until.saturating_duration_since(Instant::now()).as_millis();
        Self { wait: Span::from_millis(u64::try_from(left).unwrap_or(u64::MAX)), no_wait: self.no_wait }
    }
}

/// Reads JSON, which is kept as it was written.
fn json(text: &str) -> Result<Box<RawValue>, String> {
    serde_json::from_str(text)
        .map_err(|error| format!("is no JSON: {error}; a text stands in quotes of its own"))
}

/// Cancels a run, or some of its work.
pub(super) fn cancel(arguments: &CancelArguments) -> Result<Exit, Ending> {
    let CancelArguments { run, component, cleanup_worktree, no_cleanup_worktree, how } = arguments;
    let cleanup = match (*cleanup_worktree, *no_cleanup_worktree) {
        (true, _) => Some(true),
        (false, true) => Some(false),
        (false, false) => None,
    };
    let how = &match how.side() {
        Ok(how) => how,
        Err(dir) => {
            how.patience.is_usual()?;
            no_component_here(component.as_deref(), run, "cancel")?;
            return of_jobs::cancel(&dir, run, cleanup, how.format);
        }
    };
    if cleanup.is_some() {
        return Err(of_repositories("A worktree", "Leave out the flag: a program has no worktrees.").into());
    }
    let opened = how.open()?;
    let record = opened.run(run)?;
    let sent = match component {
        None => vec![opened.ask(opened.control.cancel(&record.id))?],
        Some(component) => {
            let over = |_: &Story, work: &WorkLine| {
                work.state.is_over().then_some("nothing of it is left to cancel")
            };
            let works = works(&opened, &record, component, over)?;
            opened
                .ask(async { opened.control.cancel_works(&record.id, &works).await?.into_iter().collect() })?
        }
    };
    follow(&opened, how, Wish::Cancel, &sent)
}

/// Refuses a component of a run of a repository, whose work has commands of its own.
fn no_component_here(component: Option<&str>, run: &str, verb: &str) -> Result<(), CommandError> {
    match component {
        None => Ok(()),
        Some(component) => Err(of_programs(
            "A component",
            &format!("`tidewheel jobs {verb} {run}/{component}` asks it of a job."),
        )),
    }
}

/// Pauses a run.
pub(super) fn pause(arguments: &PauseArguments) -> Result<Exit, Ending> {
    let opened = arguments.how.open()?;
    let record = opened.run(&arguments.run)?;
    let sent = opened.ask(opened.control.pause(&record.id))?;
    follow(&opened, &arguments.how, Wish::Pause, &[sent])
}

/// Lets a run go on.
pub(super) fn resume(arguments: &ResumeArguments) -> Result<Exit, Ending> {
    let opened = arguments.how.open()?;
    let record = opened.run(&arguments.run)?;
    let sent = opened.ask(opened.control.resume(&record.id))?;
    follow(&opened, &arguments.how, Wish::Resume, &[sent])
}

/// Tries failed work again.
pub(super) fn retry(arguments: &RetryArguments) -> Result<Exit, Ending> {
    let RetryArguments { run, component, how } = arguments;
    let how = &match how.side() {
        Ok(how) => how,
        Err(dir) => {
            how.patience.is_usual()?;
            no_component_here(component.as_deref(), run, "retry")?;
            return of_jobs::retry(&dir, run, how.format);
        }
    };
    let opened = how.open()?;
    let record = opened.run(run)?;
    let sent = match component {
        None => vec![opened.ask(opened.control.retry(&record.id, None))?],
        Some(component) => {
            let works = works(&opened, &record, component, Story::no_retry)?;
            opened
                .ask(async { opened.control.retry_works(&record.id, &works).await?.into_iter().collect() })?
        }
    };
    follow(&opened, how, Wish::Retry, &sent)
}

/// Gives a component a value.
pub(super) fn signal(arguments: &SignalArguments) -> Result<Exit, Ending> {
    let SignalArguments { run, component, value, how } = arguments;
    let opened = how.open()?;
    let record = opened.run(run)?;
    let sent = opened.ask(opened.control.signal(&record.id, component, value.clone()))?;
    follow(&opened, how, Wish::Signal, &[sent])
}

/// Gives the result of work that is done elsewhere.
pub(super) fn complete(arguments: &CompleteArguments) -> Result<Exit, Ending> {
    let opened = arguments.how.open()?;
    let sent = opened.ask(opened.control.complete(&arguments.token, &arguments.value))?;
    follow(&opened, &arguments.how, Wish::Complete, &[sent])
}

/// Says that work failed that is done elsewhere.
pub(super) fn fail(arguments: &FailArguments) -> Result<Exit, Ending> {
    let FailArguments { token, message, code, how } = arguments;
    let opened = how.open()?;
    let mut failure = Failure::new(message);
    failure.code = code.as_ref().map(|code| match code.parse() {
        Ok(number) => ErrorCode::Number(number),
        Err(_) => ErrorCode::from(code.clone()),
    });
    let sent = opened.ask(opened.control.fail(token, &failure))?;
    follow(&opened, how, Wish::Fail, &[sent])
}

impl HowArguments {
    fn open(&self) -> Result<Opened, CommandError> {
        Opened::open(&self.store, Purpose::Ask)
    }
}

/// Returns the pieces of work of a component, or the one with that id, that something can be asked of.
pub(super) fn works(
    opened: &Opened,
    record: &RunRecord,
    component: &str,
    cannot: impl Fn(&Story, &WorkLine) -> Option<&'static str>,
) -> Result<Vec<RunnableId>, CommandError> {
    if let Some(id) = RunnableId::parse(component) {
        return Ok(vec![id]);
    }
    let story: Story = opened.ask(opened.control.story(&record.id))?;
    let (mut works, mut why) = (Vec::new(), "it has not begun");
    for work in story.works.iter().filter(|work| work.node == component) {
        match cannot(&story, work) {
            None => works.extend(work.id),
            Some(reason) => why = reason,
        }
    }
    if !works.is_empty() {
        return Ok(works);
    }
    let known = opened.ask(opened.control.components(&record.id))?;
    if !known.iter().any(|name| name == component) {
        return Err(no_component(&record.id, component, &known));
    }
    let message = format!("`{component}` of run `{}` cannot be asked this: {why}.", record.id);
    Err(CommandError::new(Code::NotAsked, message))
}

/// What became of something that was asked.
pub(super) struct Followed {
    /// Whether all of it is done, or was put away because it could not be.
    pub(super) is_handled: bool,
    /// The run then.
    pub(super) record: RunRecord,
    /// Why some of it was not done.
    pub(super) refusals: Vec<String>,
}

/// Waits for a while until what was asked is done.
pub(super) fn wait(
    opened: &Opened,
    patience: &Patience,
    sent: &[Sent],
) -> Result<Option<Followed>, CommandError> {
    let Some(last) = sent.last() else { return Ok(None) };
    let patience = if patience.no_wait { Span::ZERO } else { patience.wait };
    let until = Duration::from_millis(patience.as_millis());
    let is_handled = opened.wait(async {
        // Rows are handled in order, so the last one tells of all of them.
        match tokio::time::timeout(until, opened.control.until_handled(last)).await {
            Ok(handled) => handled.map(|()| true),
            Err(_) => opened.control.is_handled(last).await,
        }
    })?;
    let found = opened.find(&last.record.id)?;
    let record = found.unwrap_or_else(|| last.record.clone());
    let refusals = if is_handled { refusals(opened, sent) } else { Vec::new() };
    Ok(Some(Followed { is_handled, record, refusals }))
}

/// Returns why some of what was asked was not done, each reason once.
fn refusals(opened: &Opened, sent: &[Sent]) -> Vec<String> {
    let mut refusals = Vec::new();
    // What is gone was deleted meanwhile, and nobody is left who could say why.
    let last = sent.last().map(|last| opened.ask(opened.control.story(&last.record.id)));
    if let Some(Ok(story)) = last {
        refusals.extend(sent.iter().filter_map(|one| story.refused.get(&one.id.0).cloned()));
    }
    refusals.dedup();
    refusals
}

/// Waits until what was asked is done, and tells what came of it.
fn follow(opened: &Opened, how: &HowArguments, wish: Wish, sent: &[Sent]) -> Result<Exit, Ending> {
    let Some(followed) = wait(opened, &how.patience, sent)? else { return Ok(Exit::Succeeded) };
    match how.format {
        Format::Json => output::json(&AskedForm {
            version: VERSION,
            run: followed.record.id.as_str(),
            asked: wish.name(),
            count: sent.len(),
            handled: followed.is_handled,
            refused: &followed.refusals,
            driven: followed.record.owner.is_some(),
            status: followed.record.status.name(),
        })?,
        Format::Text => {
            let width = terminal::canvas().width;
            output::text(&format!("{}\n", wrapped(&harmless(&told(wish, sent, &followed, how)), width, "")))?;
        }
    }
    Ok(if followed.refusals.is_empty() { Exit::Succeeded } else { Exit::Failed })
}

fn told(wish: Wish, sent: &[Sent], followed: &Followed, how: &HowArguments) -> String {
    let Followed { is_handled, record, refusals } = followed;
    let RunRecord { id, workflow, workflow_version, status, .. } = record;
    let mut text = asked(wish, id, sent.len());
    if !refusals.is_empty() {
        let _ = write!(text, " It was not done: {}. The run is {status}.", refusals.join("; "));
        return text;
    }
    if *is_handled {
        let _ = write!(text, " Whoever drives it has taken that; it is {status} now.");
        return text;
    }
    let is_driven = record.owner.is_some();
    if is_driven {
        text.push_str(" The process that drives it will do so");
    } else {
        let _ = write!(
            text,
            " Nobody drives it now; the next process that knows workflow {workflow} version {workflow_version} will \
             do so"
        );
    }
    match (how.patience.no_wait, is_driven) {
        (true, _) => text.push('.'),
        (false, true) => {
            let _ = write!(text, ", and has not within {}.", how.patience.wait);
        }
        (false, false) => {
            let _ = write!(text, "; none came within {}.", how.patience.wait);
        }
    }
    text
}

/// Says what was asked.
fn asked(wish: Wish, run: &RunId, count: usize) -> String {
    match (wish, count) {
        (Wish::Signal, _) => format!("A signal was sent to {run}."),
        (Wish::Complete, _) => format!("A result was sent to {run}."),
        (Wish::Fail, _) => format!("A failure was sent to {run}."),
        (Wish::Retry | Wish::Cancel, 2..) => {
            format!("{run} was asked to {} {count} pieces of work.", wish.name())
        }
        (Wish::Retry | Wish::Cancel | Wish::Pause | Wish::Resume, _) => {
            format!("{run} was asked to {}.", wish.name())
        }
    }
}

/// What is asked.
#[derive(Clone, Copy, Debug)]
enum Wish {
    Cancel,
    Pause,
    Resume,
    Retry,
    Signal,
    Complete,
    Fail,
}

impl Wish {
    const fn name(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Retry => "retry",
            Self::Signal => "signal",
            Self::Complete => "complete",
            Self::Fail => "fail",
        }
    }
}

#[derive(Serialize)]
struct AskedForm<'a> {
    version: u32,
    run: &'a str,
    asked: &'static str,
    count: usize,
    handled: bool,
    refused: &'a [String],
    driven: bool,
    status: &'static str,
}
