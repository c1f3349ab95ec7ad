//! `tidewheel runs dead-letters`: work that was put aside after it failed, and another chance for it.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::Value;
use tidewheel_core::fact::RunnableId;
use tidewheel_core::view::moment;
use tidewheel_runner::Sent;
use tidewheel_store::{DeadLetter, Store as _};

use super::VERSION;
use super::follow::{Patience, wait};
use crate::commands::policy::Format;
use crate::error::{Code, CommandError, Ending};
use crate::exit::Exit;
use crate::output::{self, harmless};
use crate::store::{Opened, Purpose, StoreArguments};
use crate::terminal;
use crate::view::columns::cut;
use crate::view::timeline::{FAINT, HEADING, wrapped};

/// List work that was put aside after it failed, and try it again
///
/// Work whose policy says `on_failure = "dead_letter"` is put aside when it
/// failed for good: with its input, its failure and its history.
///
/// Example:
///
///   $ tidewheel runs dead-letters --store orders.db
///   $ tidewheel runs dead-letters retry 3 --store orders.db
#[derive(Debug, Args)]
#[command(verbatim_doc_comment, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Only those of this run, or of the one whose id begins so
    run: Option<String>,
    /// The SQLite file that the runs are kept in
    #[arg(long, value_name = "FILE", required = true)]
    store: Option<PathBuf>,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Debug, Subcommand)]
enum Command {
    Retry(RetryArguments),
}

/// Try work again that was put aside
///
/// Its run is asked to retry it, and when that is taken, the letter is gone. If
/// the work fails for good again, there is a new one.
///
/// Example:
///
///   $ tidewheel runs dead-letters retry 3 --store orders.db
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
struct RetryArguments {
    /// The number of the letter; may be given several times
    #[arg(required_unless_present = "all")]
    id: Vec<i64>,
    /// All of them
    #[arg(long, conflicts_with = "id")]
    all: bool,
    #[command(flatten)]
    store: StoreArguments,
    #[command(flatten)]
    patience: Patience,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Lists the letters, or tries them again.
pub(super) fn run(arguments: &Arguments) -> Result<Exit, Ending> {
    match &arguments.command {
        Some(Command::Retry(arguments)) => retry(arguments),
        None => list(arguments),
    }
}

fn list(arguments: &Arguments) -> Result<Exit, Ending> {
    let store = arguments.store.clone().expect("invariant: it is required where no command follows");
    let opened = Opened::open(&StoreArguments { store }, Purpose::Look)?;
    let letters = all(&opened, arguments.run.as_deref())?;
    match arguments.format {
        Format::Json => output::json(&LettersForm::of(&letters))?,
        Format::Text if letters.is_empty() => output::text("There are no dead letters.\n")?,
        Format::Text => output::text(&listed(&letters, &opened))?,
    }
    Ok(Exit::Succeeded)
}

/// Returns all letters, of one run or of all.
fn all(opened: &Opened, run: Option<&str>) -> Result<Vec<DeadLetter>, CommandError> {
    let run = run.map(|run| opened.run(run)).transpose()?;
    let id = run.as_ref().map(|run| &run.id);
    let mut letters = Vec::new();
    let mut after = None;
    loop {
        let page = opened.wait(opened.store().dead_letters(id, after))?;
        letters.extend(page.rows);
        after = page.next;
        if after.is_none() {
            return Ok(letters);
        }
    }
}

fn listed(letters: &[DeadLetter], opened: &Opened) -> String {
    let canvas = terminal::canvas();
    let mut text = String::new();
    for (index, letter) in letters.iter().enumerate() {
        let gap = if index == 0 { "" } else { "\n" };
        let heading = format!("{}  {} of {}", letter.id.0, letter.node, letter.run);
        let heading = harmless(&heading);
        // In a pipe the names are whole.
        let heading = match terminal::table_canvas() {
            Some(canvas) => cut(&heading, canvas.width, canvas),
            None => heading.into_owned(),
        };
        let _ = writeln!(text, "{gap}{HEADING}{heading}{HEADING:#}");
        let mut lines = vec![("put aside", moment(letter.at, opened.now))];
        let body: Value = serde_json::from_str(&letter.body).unwrap_or_default();
        match body.as_object() {
            Some(fields) => {
                // The version of the form and the place in the run are for programs.
                let shown_fields =
                    fields.iter().filter(|(name, _)| !["v", "number"].contains(&name.as_str()));
                lines.extend(shown_fields.map(|(name, value)| (name.as_str(), shown(value))));
            }
            None => lines.push(("body", letter.body.clone())),
        }
        for (name, value) in lines {
            let name = harmless(name);
            let line = cut(&harmless(&value), canvas.width.saturating_sub(13), canvas);
            let _ = writeln!(text, "  {FAINT}{name:9}{FAINT:#}  {line}");
        }
    }
    text
}

/// Writes a part of a letter: a failure as failures are told, everything else as JSON.
fn shown(value: &Value) -> String {
    let message = value.get("message").and_then(Value::as_str);
    match (message, value.get("code").filter(|code| !code.is_null())) {
        (Some(message), Some(Value::String(code))) => format!("[{code}] {message}"),
        (Some(message), Some(code)) => format!("[{code}] {message}"),
        (Some(message), None) => message.to_owned(),
        (None, _) => value.as_str().map_or_else(|| value.to_string(), str::to_owned),
    }
}

fn retry(arguments: &RetryArguments) -> Result<Exit, Ending> {
    let opened = Opened::open(&arguments.store, Purpose::Ask)?;
    let mut letters = all(&opened, None)?;
    if let Some(missing) = arguments.id.iter().find(|id| !letters.iter().any(|letter| letter.id.0 == **id)) {
        let message = format!("There is no dead letter {missing} in `{}`.", opened.name);
        let hint = format!("{} lists them.", opened.command("dead-letters"));
        return Err(CommandError::new(Code::NothingThere, message).hint(hint).into());
    }
    if !arguments.all {
        letters.retain(|letter| arguments.id.contains(&letter.id.0));
    }
    // All are asked before anybody waits, and one that cannot be asked for keeps no other from it.
    letters.sort_by(|one, other| (&one.run, one.id).cmp(&(&other.run, other.id)));
    let mut sent = Vec::with_capacity(letters.len());
    for of_run in letters.chunk_by(|one, other| one.run == other.run) {
        sent.extend(send(&opened, of_run)?);
    }
    if sent.iter().all(Result::is_err)
        && let Some(Err(error)) = sent.pop()
    {
        return Err(error.into());
    }
    let until = Instant::now() + Duration::from_millis(arguments.patience.span().as_millis());
    let mut done = Vec::new();
    for (sent, letter) in sent.into_iter().zip(&letters) {
        let (is_handled, refused) = match sent {
            Ok(sent) => {
                let patience = arguments.patience.left(until);
                let followed = wait(&opened, &patience, &[sent])?;
                (followed.is_some_and(|followed| followed.is_handled), None)
            }
            Err(error) => (false, Some(error.message)),
        };
        let (id, run, component) = (letter.id.0, letter.run.as_str(), letter.node.as_str());
        done.push(RetriedForm { id, run, component, handled: is_handled, refused });
    }
    match arguments.format {
        Format::Json => output::json(&RetriedLettersForm { version: VERSION, letters: done })?,
        Format::Text => output::text(&retried(&done))?,
    }
    Ok(Exit::Succeeded)
}

/// Asks the run of some letters to try their work again.
fn send(opened: &Opened, letters: &[DeadLetter]) -> Result<Vec<Result<Sent, CommandError>>, CommandError> {
    let Some(first) = letters.first() else { return Ok(Vec::new()) };
    // A letter without an id of ours is none that we could have put there.
    let works: Vec<_> = letters.iter().map(|letter| RunnableId::parse(&letter.work)).collect();
    let known: Vec<RunnableId> = works.iter().copied().flatten().collect();
    let mut answers = opened.ask(opened.control.retry_works(&first.run, &known))?.into_iter();
    let answer = |(letter, work): (&DeadLetter, Option<RunnableId>)| match work.and_then(|_| answers.next()) {
        Some(answer) => answer.map_err(|error| opened.refused(&error)),
        None => {
            let message = format!("Dead letter {} is of no work that is known.", letter.id.0);
            Err(CommandError::new(Code::NothingThere, message))
        }
    };
    Ok(letters.iter().zip(works).map(answer).collect())
}

fn retried(done: &[RetriedForm<'_>]) -> String {
    if done.is_empty() {
        return "There are no dead letters.\n".to_owned();
    }
    let mut text = String::new();
    for RetriedForm { id, run, component, handled, refused } in done {
        let line = match (refused, handled) {
            (Some(why), _) => format!("Letter {id} stays. {why}"),
            (None, true) => format!(
                "{run} was asked to try {component} again, which is letter {id}. The process that drives it has taken that, and \
                 the letter is gone."
            ),
            (None, false) => format!(
                "{run} was asked to try {component} again, which is letter {id}. No process has done so yet, so the letter \
                 is still there."
            ),
        };
        let _ = writeln!(text, "{}", wrapped(&harmless(&line), terminal::canvas().width, ""));
    }
    text
}

#[derive(Serialize)]
struct LettersForm<'a> {
    version: u32,
    letters: Vec<LetterForm<'a>>,
}

#[derive(Serialize)]
struct LetterForm<'a> {
    id: i64,
    run: &'a str,
    component: &'a str,
    work: &'a str,
    at: String,
    body: Value,
}

#[derive(Serialize)]
struct RetriedLettersForm<'a> {
    version: u32,
    letters: Vec<RetriedForm<'a>>,
}

#[derive(Serialize)]
struct RetriedForm<'a> {
    id: i64,
    run: &'a str,
    component: &'a str,
    handled: bool,
    /// Why it was not asked for.
    refused: Option<String>,
}

impl<'a> LettersForm<'a> {
    fn of(letters: &'a [DeadLetter]) -> Self {
        let form = |letter: &'a DeadLetter| LetterForm {
            id: letter.id.0,
            run: letter.run.as_str(),
            component: &letter.node,
            work: &letter.work,
            at: letter.at.to_string(),
            body: serde_json::from_str(&letter.body).unwrap_or_else(|_| Value::from(letter.body.clone())),
        };
        Self { version: VERSION, letters: letters.iter().map(form).collect() }
    }
}
