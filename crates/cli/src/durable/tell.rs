//! Starts the worker of the demo, kills it while a step runs, starts it again, and tells which steps ran when.

use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::worker::{STEPS, Word};
use crate::error::{Code, CommandError, cause};

/// The step in which the first worker is killed.
pub(crate) const KILLED_IN: &str = "screen_fraud";

/// What happened.
#[derive(Debug, Serialize)]
pub(crate) struct Story {
    /// The step in which the first worker was killed.
    pub(crate) killed_in: &'static str,
    /// Each step, as it was in both workers.
    pub(crate) steps: Vec<StepStory>,
    /// What came of the order in the end.
    pub(crate) result: Value,
}

/// One step in both workers.
#[derive(Debug, Serialize)]
pub(crate) struct StepStory {
    pub(crate) step: &'static str,
    /// Its call in the first worker.
    pub(crate) first: Option<Call>,
    /// Whether its result was stored when the first worker was killed.
    pub(crate) was_stored: bool,
    /// Its call in the second worker.
    pub(crate) second: Option<Call>,
}

/// A call of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Call {
    /// The piece of work: the same over attempts and restarts.
    pub(crate) work: String,
    /// Which attempt.
    pub(crate) attempt: u32,
}

/// A worker that says nothing for so long is stuck; it needs some milliseconds for each word.
const PATIENCE: Duration = Duration::from_secs(20);

/// Lets it happen, in a directory that is gone afterwards.
pub(crate) fn tell() -> Result<Story, CommandError> {
    let folder = tempfile::Builder::new().prefix("tidewheel-demo-").tempdir();
    let folder = folder.map_err(|error| {
        failed(&format!("no directory could be made in `{}`: {}", temporary(), cause(&error)))
    })?;
    let database = folder.path().join("orders.db");

    let mut first = Worker::start(&database, Some(KILLED_IN))?;
    // What is under way beside the step comes to its end first, so that the story is the same every time.
    first.listen(|heard| {
        let others = STEPS.iter().filter(|step| **step != KILLED_IN && **step != "decide");
        call_of(heard, KILLED_IN).is_some() && others.into_iter().all(|step| is_stored(heard, step))
    })?;
    let before = first.kill()?;

    let mut second = Worker::start(&database, None)?;
    second.listen(|heard| result_of(heard).is_some())?;
    let after = second.end()?;

    let steps = STEPS.map(|step| StepStory {
        step,
        first: call_of(&before, step),
        was_stored: is_stored(&before, step),
        second: call_of(&after, step),
    });
    let result = result_of(&after).cloned().unwrap_or_default();
    Ok(Story { killed_in: KILLED_IN, steps: steps.into(), result })
}

impl Story {
    /// Returns whether the step that was under way ran again with the same id, as the same attempt, and no step
    /// whose result was stored ran again.
    pub(crate) fn is_right(&self) -> bool {
        self.steps.iter().all(|step| match (&step.first, &step.second) {
            (Some(_), None) => step.was_stored,
            (Some(first), Some(second)) => !step.was_stored && first == second,
            (None, Some(_)) => !step.was_stored,
            (None, None) => false,
        })
    }

    /// Returns the call that was lost with the first worker.
    pub(crate) fn lost(&self) -> Option<&Call> {
        self.steps.iter().find(|step| step.step == self.killed_in)?.first.as_ref()
    }
}

fn call_of(heard: &[Word], name: &str) -> Option<Call> {
    heard.iter().find_map(|word| match word {
        Word::Called { step, work, attempt } if step == name => {
            Some(Call { work: work.clone(), attempt: *attempt })
        }
        Word::Called { .. } | Word::Stored { .. } | Word::Result(_) => None,
    })
}

fn is_stored(heard: &[Word], name: &str) -> bool {
    heard.contains(&Word::Stored { step: name.to_owned() })
}

fn result_of(heard: &[Word]) -> Option<&Value> {
    heard.iter().find_map(|word| match word {
        Word::Result(value) => Some(value),
        Word::Called { .. } | Word::Stored { .. } => None,
    })
}

/// A worker and what it said so far. It does not outlive this.
struct Worker {
    child: Child,
    words: Receiver<String>,
    heard: Vec<Word>,
}

impl Worker {
    fn start(database: &Path, hang_in: Option<&str>) -> Result<Self, CommandError> {
        let cannot = |error: io::Error| failed(&format!("it could not be started: {}", cause(&error)));
        let mut command = Command::new(std::env::current_exe().map_err(cannot)?);
        command.arg("__demo-worker").arg(database);
        if let Some(step) = hang_in {
            command.args(["--hang-in", step]);
        }
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = pipes.spawn().map_err(cannot)?;
        let stdout = child.stdout.take().expect("invariant: its output is a pipe");
        Ok(Self { child, words: lines(stdout), heard: Vec::new() })
    }

    /// Listens until enough was said.
    fn listen(&mut self, is_enough: impl Fn(&[Word]) -> bool) -> Result<(), CommandError> {
        while !is_enough(&self.heard) {
            match self.words.recv_timeout(PATIENCE) {
                Ok(line) => self.hear(&line)?,
                Err(RecvTimeoutError::Timeout) => return Err(failed("it is stuck")),
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
        self.child.kill().map_err(|error| failed(&format!("it cannot be killed: {}", cause(&error))))?;
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

    /// Returns the error of a worker that ended too early, with what it said about it.
    fn last_words(&mut self) -> CommandError {
        let mut said = String::new();
        if let Some(stderr) = &mut self.child.stderr {
            drop(stderr.read_to_string(&mut said));
        }
        match said.trim() {
            "" => failed("it ended without a word"),
            said => failed(said),
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
    std::thread::spawn(move || {
        let whole = BufReader::new(stdout).lines().map_while(Result::ok);
        // A line that was torn by the kill would be no word, and none is longer than what a pipe takes at once.
        whole.for_each(|text| drop(line.send(text)));
    });
    lines
}

/// Returns where temporary directories are made.
pub(super) fn temporary() -> String {
    std::env::temp_dir().display().to_string()
}

/// Returns the error of a part of the demo that did not come about.
pub(super) fn failed(what: &str) -> CommandError {
    let message = format!("The worker of the demo could not do its part: {what}.");
    let hint = "`tidewheel demo --no-crash` leaves that part out.";
    CommandError::new(Code::DemoWorkerFailed, message).hint(hint)
}
