//! Starts the worker of the demo, kills it while a step runs, starts it again, and gathers which steps ran when and why
//! they waited. Others tell it.

use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use rustix::fs::statvfs;
use rustix::io::Errno;
use serde::Serialize;
use serde_json::Value;
use tidewheel_core::event::Hold;
use tidewheel_core::fact::RunId;
use tidewheel_core::run::Run;
use tidewheel_core::view;
use tidewheel_store::{Store as _, Unavailable};

use super::live::Live;
use super::worker::{BOOKS, RUN, STEPS, Word, workflow};
use crate::error::{Code, CommandError, Kind, cause};
use crate::store::{Opened, Purpose, StoreArguments};

/// The step in which the first worker is killed.
pub(crate) const KILLED_IN: &str = "screen_fraud";

/// The file in which the order is kept.
pub(crate) const DATABASE: &str = "orders.db";

/// What happened.
#[derive(Debug, Serialize)]
pub(crate) struct Story {
    /// The step in which the first worker was killed.
    pub(crate) killed_in: &'static str,
    /// Each step, as it was in both workers.
    pub(crate) steps: Vec<StepStory>,
    /// What came of the order in the end.
    pub(crate) result: Value,
    /// How many events the run has.
    pub(crate) events: usize,
    /// Whether a run that is made from the events alone has the same result.
    pub(crate) replay_is_equal: bool,
}

/// One step in both workers.
#[derive(Debug, Serialize)]
pub(crate) struct StepStory {
    pub(crate) step: &'static str,
    /// Its calls in the first worker.
    pub(crate) first: Vec<Call>,
    /// How many of its results were stored when the first worker was killed.
    pub(crate) stored: usize,
    /// Its calls in the second worker.
    pub(crate) second: Vec<Call>,
    /// How many of its pieces waited for a rate limit.
    pub(crate) waited_for_rate: usize,
    /// How many of its pieces waited for a circuit breaker.
    pub(crate) waited_for_breaker: usize,
}

/// A call of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Call {
    /// The piece of work: the same over attempts and restarts.
    pub(crate) work: String,
    /// Which attempt.
    pub(crate) attempt: u32,
}

/// A worker that says nothing for so long is stuck; it needs some milliseconds for each word, and a second where a
/// limit holds it.
const PATIENCE: Duration = Duration::from_secs(20);

/// Lets it happen, in a directory.
pub(crate) fn tell(place: &Path, live: &Live) -> Result<Story, CommandError> {
    let database = place.join(DATABASE);
    let mut first = Worker::start(&database, Some(KILLED_IN))?;
    // What is under way beside the step comes to its end first, so that the story is the same every time.
    let others = STEPS.iter().filter(|step| **step != KILLED_IN && **step != "decide");
    let others: Vec<(&str, usize)> = others.map(|step| (*step, pieces(step))).collect();
    first.listen(|heard| {
        live.say(&format!("first worker: {}", last_of(heard)));
        let is_running = calls_of(heard, KILLED_IN).len() == 3;
        is_running && others.iter().all(|(step, pieces)| stored_of(heard, step) == *pieces)
    })?;
    live.say(&format!("kill -9 {}", first.child.id()));
    let before = first.kill()?;

    let mut second = Worker::start(&database, None)?;
    second.listen(|heard| {
        live.say(&format!("second worker: {}", last_of(heard)));
        result_of(heard).is_some()
    })?;
    let after = second.end()?;

    live.say("reading the events");
    let stored = Stored::of(database)?;
    let result = result_of(&after).cloned().unwrap_or_default();
    let steps = STEPS.map(|step| StepStory {
        step,
        first: calls_of(&before, step),
        stored: stored_of(&before, step),
        second: calls_of(&after, step),
        waited_for_rate: stored.waited_for(step, Hold::RateLimit),
        waited_for_breaker: stored.waited_for(step, Hold::CircuitBreaker),
    });
    let replay_is_equal = stored.replayed().is_some_and(|replayed| replayed == result);
    Ok(Story {
        killed_in: KILLED_IN,
        steps: steps.into(),
        result,
        events: stored.lines.len(),
        replay_is_equal,
    })
}

impl Story {
    /// Returns whether everything came as it was meant: the step that was under way ran again with the same id, as the
    /// same attempt, no step whose result was stored ran again, what failed was tried again, and what was to wait did.
    pub(crate) fn is_right(&self) -> bool {
        let is_kept = self.steps.iter().all(|step| {
            let lost = step.first.len() > step.stored && step.step == self.killed_in;
            match (step.first.last(), step.second.as_slice()) {
                (Some(_), []) => step.stored == pieces(step.step),
                (Some(first), [second]) => lost && first == second,
                (None, [_]) => step.stored == 0,
                (Some(_) | None, _) => false,
            }
        });
        let of = |name: &str| self.steps.iter().find(|step| step.step == name);
        let is_limited = of("print_label").is_some_and(|step| step.waited_for_rate == BOOKS.len() / 2);
        let is_broken = of("book_carrier").is_some_and(|step| step.waited_for_breaker == 1);
        is_kept && is_limited && is_broken && self.replay_is_equal
    }

    /// Returns the call that was lost with the first worker.
    pub(crate) fn lost(&self) -> Option<&Call> {
        self.steps.iter().find(|step| step.step == self.killed_in)?.first.last()
    }
}

/// Returns how many pieces of work a step is.
pub(crate) fn pieces(step: &str) -> usize {
    if step == "print_label" { BOOKS.len() } else { 1 }
}

fn calls_of(heard: &[Word], name: &str) -> Vec<Call> {
    let calls = heard.iter().filter_map(|word| match word {
        Word::Called { step, work, attempt } if step == name => {
            Some(Call { work: work.clone(), attempt: *attempt })
        }
        Word::Called { .. } | Word::Stored { .. } | Word::Result(_) => None,
    });
    calls.collect()
}

fn stored_of(heard: &[Word], name: &str) -> usize {
    heard.iter().filter(|word| matches!(word, Word::Stored { step } if step == name)).count()
}

fn result_of(heard: &[Word]) -> Option<&Value> {
    heard.iter().find_map(|word| match word {
        Word::Result(value) => Some(value),
        Word::Called { .. } | Word::Stored { .. } => None,
    })
}

/// Says what happened last, for whoever waits.
fn last_of(heard: &[Word]) -> String {
    match heard.last() {
        None => "begins".to_owned(),
        Some(Word::Called { step, attempt: 0, .. }) => format!("{step} runs"),
        Some(Word::Called { step, attempt, .. }) => format!("{step} runs again, retry {attempt}"),
        Some(Word::Stored { step }) => format!("the result of {step} is stored"),
        Some(Word::Result(_)) => "the order is done".to_owned(),
    }
}

/// What the database has of the order.
struct Stored {
    lines: Vec<String>,
    story: view::Story,
}

impl Stored {
    fn of(database: std::path::PathBuf) -> Result<Self, CommandError> {
        let run = RunId::new(RUN);
        let opened = Opened::open(&StoreArguments { store: database }, Purpose::Look)?;
        let story = opened.ask(opened.control.story(&run))?;
        let mut lines = Vec::new();
        for batch in opened.wait(opened.store().read(&run, 0))? {
            let read = batch.events.events().map_err(|error| failed(&error.to_string()))?;
            lines.extend(read.into_iter().map(str::to_owned));
        }
        Ok(Self { lines, story })
    }

    /// Returns how many pieces of a step waited for something.
    fn waited_for(&self, step: &str, hold: Hold) -> usize {
        let works = self.story.works.iter().filter(|work| work.node == step);
        works.filter(|work| work.stretches.iter().any(|stretch| stretch.hold == Some(hold))).count()
    }

    /// Returns the result of a run that is made from the events alone.
    fn replayed(&self) -> Option<Value> {
        let run = Run::replay_json(&workflow(None).ok()?, RUN, self.lines.iter().map(String::as_str)).ok()?;
        run.result("decide").ok()?
    }
}

/// A worker and what it said so far. It does not outlive this.
struct Worker {
    child: Child,
    words: Receiver<String>,
    heard: Vec<Word>,
    /// Where its database is.
    place: PathBuf,
}

impl Worker {
    fn start(database: &Path, hang_in: Option<&str>) -> Result<Self, CommandError> {
        let cannot = |error: io::Error| failed_by("it could not be started", &error);
        let mut command = Command::new(std::env::current_exe().map_err(cannot)?);
        command.arg("__demo-worker").arg(database);
        if let Some(step) = hang_in {
            command.args(["--hang-in", step]);
        }
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = pipes.spawn().map_err(cannot)?;
        let stdout = child.stdout.take().expect("invariant: its output is a pipe");
        let place = database.parent().unwrap_or_else(|| Path::new(".")).to_owned();
        Ok(Self { child, words: lines(stdout), heard: Vec::new(), place })
    }

    /// Listens until enough was said.
    fn listen(&mut self, is_enough: impl Fn(&[Word]) -> bool) -> Result<(), CommandError> {
        while !is_enough(&self.heard) {
            match self.words.recv_timeout(PATIENCE) {
                Ok(line) => self.hear(&line)?,
                Err(RecvTimeoutError::Timeout) => return Err(self.stuck()),
                Err(RecvTimeoutError::Disconnected) => return Err(self.last_words()),
            }
        }
        Ok(())
    }

    fn hear(&mut self, line: &str) -> Result<(), CommandError> {
        let word = serde_json::from_str(line).map_err(|_| failed(&format!("it said `{line}`")))?;
        self.heard.push(word);
        Ok(())
    }

    /// Kills the worker, as `kill -9` does, and returns everything that it had said.
    fn kill(mut self) -> Result<Vec<Word>, CommandError> {
        self.child.kill().map_err(|error| failed_by("it cannot be killed", &error))?;
        self.rest()
    }

    /// Waits for the end of the worker and returns everything that it had said.
    fn end(mut self) -> Result<Vec<Word>, CommandError> {
        self.rest()
    }

    fn rest(&mut self) -> Result<Vec<Word>, CommandError> {
        loop {
            match self.words.recv_timeout(PATIENCE) {
                Ok(line) => self.hear(&line)?,
                Err(RecvTimeoutError::Timeout) => return Err(failed("it does not end")),
                Err(RecvTimeoutError::Disconnected) => return Ok(std::mem::take(&mut self.heard)),
            }
        }
    }

    /// Returns the error of a worker that says nothing. One that finds no room for its database waits for it.
    fn stuck(&self) -> CommandError {
        const LITTLE: u64 = 1 << 20;
        let free = statvfs(&self.place).map_or(u64::MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize));
        if free < LITTLE {
            return failed_by("it waits for room for its database", &Errno::NOSPC.into());
        }
        failed("it is stuck")
    }

    /// Returns the error of a worker that ended too early, with what it said about it.
    fn last_words(&mut self) -> CommandError {
        let mut said = String::new();
        if let Some(stderr) = &mut self.child.stderr {
            drop(stderr.read_to_string(&mut said));
        }
        match said.trim() {
            "" => failed("it ended without a word"),
            said => refused(said),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // One that has ended cannot be killed, and that is fine.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Returns the lines of an output as they come; the end of the output is the end of them.
fn lines(stdout: ChildStdout) -> Receiver<String> {
    let (line, lines) = mpsc::channel();
    // Without a thread there are no lines, as of a worker that ended at once.
    drop(std::thread::Builder::new().spawn(move || {
        let whole = BufReader::new(stdout).lines().map_while(Result::ok);
        // A line that was torn by the kill would be no word, and none is longer than what a pipe takes at once.
        whole.for_each(|text| drop(line.send(text)));
    }));
    lines
}

/// Returns the error of a part of the demo that did not come about.
pub(super) fn failed(what: &str) -> CommandError {
    let message = format!("The worker of the demo could not do its part: {what}.");
    CommandError::new(Code::DemoWorkerFailed, message).hint(WITHOUT)
}

/// Returns the error of a part of the demo that the system did not let come about.
pub(super) fn failed_by(what: &str, error: &io::Error) -> CommandError {
    let message = format!("The worker of the demo could not do its part: {what}: {}.", cause(error));
    CommandError::new(Code::DemoWorkerFailed, message).after(error).hint(WITHOUT)
}

/// Returns the error of a worker that said itself what was in its way, such as a database that cannot be used.
fn refused(said: &str) -> CommandError {
    let message = format!("The worker of the demo could not do its part: {said}.");
    let error = CommandError::of_words(Code::DemoWorkerFailed, &message);
    let error = CommandError { kind: Kind::World, ..error };
    let is_full = error.hints.is_empty() && said.contains(&Unavailable::Full.to_string());
    let full = io::Error::from(io::ErrorKind::StorageFull);
    let error = if is_full { error.after(&full) } else { error };
    error.hint(WITHOUT)
}

const WITHOUT: &str = "`tidewheel demo --no-crash` leaves that part out.";
