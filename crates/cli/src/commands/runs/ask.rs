//! `tidewheel runs cancel|pause|resume|stop|retry|signal|complete|fail`: what people ask of runs. It becomes a row in the
//! store, which the process that drives the run notices at once.

use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde_json::value::RawValue;
use tidewheel_core::fact::RunnableId;
use tidewheel_core::policy::{ErrorCode, Failure};
use tidewheel_core::view::{Story, WorkLine};
use tidewheel_runner::Sent;
use tidewheel_store::RunRecord;

use super::follow::{Patience, Wish, follow};
use super::of_jobs;
use super::side::{EitherArguments, Side, of_programs, of_repositories};
use crate::commands::policy::Format;
use crate::error::{Code, CommandError, Ending};
use crate::exit::Exit;
use crate::jobs::DirArguments;
use crate::store::{Opened, Purpose, StoreArguments, no_component};

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

/// Stop a run: the process that drives it lets go of it
///
/// Work that is under way is given back and begins again after `tidewheel runs
/// resume`. Until then the run takes no inputs; a pause still takes them.
///
/// Example:
///
///   $ tidewheel runs stop order-7 --store orders.db
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct StopArguments {
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
            Side::Program(StoreArguments { store }) => {
                Ok(HowArguments { store: Some(store), patience: self.patience.clone(), format: self.format })
            }
            Side::Repository(dir) => Err(dir),
        }
    }
}

/// How something is asked.
#[derive(Debug, Args)]
pub(super) struct HowArguments {
    /// The SQLite file that the runs are kept in
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
    #[command(flatten)]
    patience: Patience,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
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
    if let Some(cleans) = cleanup {
        let flag = if cleans { "`--cleanup-worktree`" } else { "`--no-cleanup-worktree`" };
        return Err(of_repositories(flag, "Leave out the flag: a program has no worktrees.").into());
    }
    let opened = how.open(Wish::Cancel)?;
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
    how.follow(&opened, Wish::Cancel, &sent)
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
    let opened = arguments.how.open(Wish::Pause)?;
    let record = opened.run(&arguments.run)?;
    let sent = opened.ask(opened.control.pause(&record.id))?;
    arguments.how.follow(&opened, Wish::Pause, &[sent])
}

/// Stops a run.
pub(super) fn stop(arguments: &StopArguments) -> Result<Exit, Ending> {
    let opened = arguments.how.open(Wish::Stop)?;
    let record = opened.run(&arguments.run)?;
    let sent = opened.ask(opened.control.stop(&record.id))?;
    arguments.how.follow(&opened, Wish::Stop, &[sent])
}

/// Lets a run go on.
pub(super) fn resume(arguments: &ResumeArguments) -> Result<Exit, Ending> {
    let opened = arguments.how.open(Wish::Resume)?;
    let record = opened.run(&arguments.run)?;
    let sent = opened.ask(opened.control.resume(&record.id))?;
    arguments.how.follow(&opened, Wish::Resume, &[sent])
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
    let opened = how.open(Wish::Retry)?;
    let record = opened.run(run)?;
    let sent = match component {
        None => vec![opened.ask(opened.control.retry(&record.id, None))?],
        Some(component) => {
            let works = works(&opened, &record, component, Story::no_retry)?;
            opened
                .ask(async { opened.control.retry_works(&record.id, &works).await?.into_iter().collect() })?
        }
    };
    how.follow(&opened, Wish::Retry, &sent)
}

/// Gives a component a value.
pub(super) fn signal(arguments: &SignalArguments) -> Result<Exit, Ending> {
    let SignalArguments { run, component, value, how } = arguments;
    let opened = how.open(Wish::Signal)?;
    let record = opened.run(run)?;
    let sent = opened.ask(opened.control.signal(&record.id, component, value.clone()))?;
    how.follow(&opened, Wish::Signal, &[sent])
}

/// Gives the result of work that is done elsewhere.
pub(super) fn complete(arguments: &CompleteArguments) -> Result<Exit, Ending> {
    let opened = arguments.how.open(Wish::Complete)?;
    let sent = opened.ask(opened.control.complete(&arguments.token, &arguments.value))?;
    arguments.how.follow(&opened, Wish::Complete, &[sent])
}

/// Says that work failed that is done elsewhere.
pub(super) fn fail(arguments: &FailArguments) -> Result<Exit, Ending> {
    let FailArguments { token, message, code, how } = arguments;
    let opened = how.open(Wish::Fail)?;
    let mut failure = Failure::new(message);
    failure.code = code.as_ref().map(|code| match code.parse() {
        Ok(number) => ErrorCode::Number(number),
        Err(_) => ErrorCode::from(code.clone()),
    });
    let sent = opened.ask(opened.control.fail(token, &failure))?;
    how.follow(&opened, Wish::Fail, &[sent])
}

impl HowArguments {
    /// Opens the store. Without one the runs of a repository are meant, which have jobs instead.
    fn open(&self, wish: Wish) -> Result<Opened, CommandError> {
        let Some(store) = &self.store else {
            let instead = match wish {
                Wish::Complete | Wish::Fail | Wish::Cancel | Wish::Retry => {
                    format!("For a job there is `tidewheel jobs {}`.", wish.name())
                }
                Wish::Pause | Wish::Resume | Wish::Stop | Wish::Signal => {
                    "Jobs do not have this command; `tidewheel runs cancel RUN` ends those of a run."
                        .to_owned()
                }
            };
            return Err(of_programs(&format!("`runs {}`", wish.name()), &instead));
        };
        Opened::open(&StoreArguments { store: store.clone() }, Purpose::Ask)
    }

    fn follow(&self, opened: &Opened, wish: Wish, sent: &[Sent]) -> Result<Exit, Ending> {
        follow(opened, wish, sent, (&self.patience, self.format))
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
