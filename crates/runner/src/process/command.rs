//! A step that runs a program: its input as JSON to stdin, its result from stdout.

use std::collections::BTreeMap;
use std::error::Error;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use serde_json::Value as Json;
use tidewheel_core::fact::RunnableId;
use tidewheel_core::policy::Failure;
use tidewheel_core::time::Span;
use tidewheel_core::work::Context;
use tidewheel_core::workflow::{Component, IntoParents, step};
use tokio::runtime::Handle;
use tokio::sync::{Mutex as Turn, OwnedMutexGuard, oneshot};
use tracing::warn;

use super::capture::{Capture, Captured};
use super::failure::{ended, not_started, shown, unknown};
use super::program::Program;
use super::run::{Options, Outcome, Stopped, start};
use super::spawn::{End, Spawn};
use super::system::System;

/// A step that runs a program, which is given first, with its arguments. No shell reads them.
///
/// The input of the step is written to its stdin, as one line of JSON; with several parents it is their list. What
/// it writes to stdout is the result: JSON, or else the text itself, without the end of its last line. Nothing at
/// all is `null`. An exit code other than zero is a failure with that code, and with the last lines of stderr as
/// its message.
///
/// ```
/// # mod tidewheel { pub use tidewheel_core::*; pub use tidewheel_runner::*; pub use tidewheel_runner::Options as ReactOptions; }
/// use tidewheel::policy::{Policy, name};
/// use tidewheel::workflow::{Workflow, step};
/// use tidewheel::{ReactOptions, command, react_until_satisfied};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let workflow = Workflow::new("words")
///     .add(command("sort", ["sort", "-u"]).env("LC_ALL", "C").text())
///     .add(step("lines", |sorted: String| sorted.lines().count()).after("sort"))
///     .policy(name("sort"), Policy::new().timeout("10s"))
///     .build()?;
/// let mut run = workflow.run("first");
/// react_until_satisfied(&mut run, "tide".to_owned(), ReactOptions::new()).await?;
/// assert_eq!(run.result::<String>("sort")?.as_deref(), Some("\"tide\""));
/// assert_eq!(run.result::<usize>("lines")?, Some(1));
/// # Ok(())
/// # }
/// ```
///
/// Beside what this process has in its environment, and what [`Command::env`] gives it, the program finds there:
///
/// | variable | value |
/// |---|---|
/// | `TIDEWHEEL_RUN` | the id of the run |
/// | `TIDEWHEEL_NODE` | the name of the step |
/// | `TIDEWHEEL_ATTEMPT` | the attempt, counted from zero |
/// | `TIDEWHEEL_IDEMPOTENCY_KEY` | what its policy says, or the id of this piece of work: the same over attempts and restarts |
///
/// The program leads a process group of its own. When its time is over, or the work is given up, all of the group
/// is asked to end with `SIGTERM`, and killed with `SIGKILL` after the [grace](Command::grace); the next attempt
/// begins when nothing of it is left. What a program leaves running in its group when it ends is ended in the same
/// way. What leaves the group, as a daemon does, is let go.
pub fn command<A: Into<OsString>>(name: impl Into<String>, argv: impl IntoIterator<Item = A>) -> Command {
    Command {
        name: name.into(),
        job: Job {
            program: Program::new(argv),
            grace: GRACE,
            output_limit: OUTPUT_LIMIT,
            is_text: false,
            spawn: Arc::new(System),
        },
    }
}

/// A program that wants to end in order mostly does so within seconds; one that does not should not keep the next
/// attempt waiting for long.
const GRACE: Span = Span::from_secs(5);
/// A result is a value in memory and an event in the store, and no file.
const OUTPUT_LIMIT: usize = 1024 * 1024;
/// What is kept of stderr, for the message of a failure.
const STDERR_TAIL: usize = 8 * 1024;

/// A step that runs a program, made by [`command`].
///
/// What is said about the program comes first, then what is said about every [`Component`]:
///
/// ```
/// # mod tidewheel { pub use tidewheel_core::*; pub use tidewheel_runner::*; }
/// use tidewheel::time::Span;
/// use tidewheel::workflow::{Workflow, step};
/// use tidewheel::command;
///
/// let workflow = Workflow::new("release")
///     .add(step("commit", |commit: String| commit))
///     .add(
///         command("build", ["make", "-j2", "release"])
///             .env("PROFILE", "release")
///             .current_dir("sources")
///             .grace(Span::from_secs(30))
///             .after("commit")
///             .tag("slow"),
///     )
///     .build()?;
/// # Ok::<(), tidewheel::workflow::BuildErrors>(())
/// ```
#[derive(Clone)]
pub struct Command {
    name: String,
    job: Job,
}

#[derive(Clone)]
struct Job {
    program: Program,
    grace: Span,
    output_limit: usize,
    is_text: bool,
    spawn: Arc<dyn Spawn>,
}

impl Command {
    /// Gives the program a variable of the environment. Those that begin with `TIDEWHEEL_` and are listed at
    /// [`command`] are ours.
    #[must_use]
    pub fn env(mut self, key: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.job.program = self.job.program.env(key, value);
        self
    }

    /// Keeps the environment of this process from the program, its `PATH` too.
    #[must_use]
    pub fn env_clear(mut self) -> Self {
        self.job.program = self.job.program.env_clear();
        self
    }

    /// Says in which directory the program runs; without it, in that of this process.
    #[must_use]
    pub fn current_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.job.program = self.job.program.current_dir(directory);
        self
    }

    /// Says how long the program may take to end when it is asked to, before it is killed; five seconds without
    /// it. With no time at all it is killed at once.
    #[must_use]
    pub const fn grace(mut self, grace: Span) -> Self {
        self.job.grace = grace;
        self
    }

    /// Says how many bytes the program may write to stdout; 1 MiB without it. One that writes more is ended and
    /// has failed with the code `output_limit`: a part of a result is none.
    #[must_use]
    pub const fn output_limit(mut self, bytes: usize) -> Self {
        self.job.output_limit = bytes;
        self
    }

    /// Takes stdout as text, whatever it looks like. Without it, an output such as `1e10` or `true` is JSON, also
    /// when it is meant as a name.
    #[must_use]
    pub const fn text(mut self) -> Self {
        self.job.is_text = true;
        self
    }

    /// Lets somebody else start the program, as a test does that wants it to fail.
    #[must_use]
    pub fn spawned_by(mut self, spawn: Arc<dyn Spawn>) -> Self {
        self.job.spawn = spawn;
        self
    }

    /// What it comes after; see [`Component::after`].
    #[must_use]
    pub fn after(self, parents: impl IntoParents) -> Component {
        Component::from(self).after(parents)
    }

    /// Puts a tag on it, for policies to match; see [`Component::tag`].
    #[must_use]
    pub fn tag(self, tag: impl Into<String>) -> Component {
        Component::from(self).tag(tag)
    }

    /// Says that the program or its arguments are not what they were, so that stored runs notice; see
    /// [`Component::version`].
    #[must_use]
    pub fn version(self, version: u32) -> Component {
        Component::from(self).version(version)
    }
}

impl From<Command> for Component {
    fn from(command: Command) -> Self {
        let (job, turns) = (command.job, Arc::new(Turns::default()));
        step(command.name, move |context: Context, input: Json| {
            let (job, turns) = (job.clone(), Arc::clone(&turns));
            async move { attempt(job, &turns, context, input).await }
        })
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("name", &self.name)
            .field("program", &self.job.program)
            .field("grace", &self.job.grace)
            .field("output_limit", &self.job.output_limit)
            .field("is_text", &self.job.is_text)
            .finish_non_exhaustive()
    }
}

/// Runs the program once, in a task of its own: whoever drops this does not wait for its end, and it has to be
/// brought to one nevertheless.
async fn attempt(job: Job, turns: &Turns, context: Context, input: Json) -> Result<Json, Failure> {
    let Ok(runtime) = Handle::try_current() else { return Err(no_runtime()) };
    let turn = turns.take(context.runnable_id()).await;
    let (mut answer, answered) = oneshot::channel();
    drop(runtime.spawn(async move {
        if !answer.is_closed() {
            let result = job.run(&context, &input, answer.closed()).await;
            // Nobody wants the result of work that was given up.
            drop(answer.send(result));
        }
        drop(turn);
    }));
    answered.await.unwrap_or_else(|_| Err(lost()))
}

impl Job {
    async fn run(
        self,
        context: &Context,
        input: &Json,
        stop: impl Future<Output = ()>,
    ) -> Result<Json, Failure> {
        let program = self
            .program
            .env("TIDEWHEEL_RUN", context.run_id().to_string())
            .env("TIDEWHEEL_NODE", context.node().unwrap_or_default())
            .env("TIDEWHEEL_ATTEMPT", context.attempt().to_string())
            .env("TIDEWHEEL_IDEMPOTENCY_KEY", context.idempotency_key());
        let started = start(self.spawn.as_ref(), &program).map_err(|error| not_started(&error))?;
        let options = Options {
            stdin: format!("{input}\n").into_bytes(),
            stdout: Capture::whole(self.output_limit),
            stderr: Capture::tail(STDERR_TAIL),
            grace: self.grace,
        };
        let outcome = started.run(options, stop).await.map_err(|error| {
            let (run, node) = (context.run_id(), context.node());
            // Often nobody listens to the failure any more, and somebody may have to look after the processes.
            warn!(%run, node, error = &error as &dyn Error, "the end of a command is not known");
            unknown(&error)
        })?;
        let Outcome { end, stopped, stdout, stderr, .. } = outcome;
        let name = shown(program.name().unwrap_or_default());
        match end {
            _ if stopped == Some(Stopped::Full) => Err(too_much(&name, self.output_limit)),
            End::Exited(0) if stdout.is_truncated => Err(too_much(&name, self.output_limit)),
            End::Exited(0) => result_of(&name, stdout, self.is_text),
            End::Exited(code) => {
                Err(ended(&name, i64::from(code), &format!("exited with code {code}"), &stderr))
            }
            End::Signalled(number) => {
                let how = format!("was killed by signal {number}");
                Err(ended(&name, format!("signal:{number}"), &how, &stderr))
            }
        }
    }
}

fn result_of(name: &str, stdout: Captured, is_text: bool) -> Result<Json, Failure> {
    let Ok(mut text) = String::from_utf8(stdout.bytes) else {
        let message = format!("the output of {name} is no text in UTF-8: let it write JSON, or base64");
        return Err(Failure::new(message).code("output_encoding").non_retryable());
    };
    if text.is_empty() && !is_text {
        return Ok(Json::Null);
    }
    if !is_text && let Ok(json) = serde_json::from_str(&text) {
        return Ok(json);
    }
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Ok(Json::String(text))
}

fn too_much(name: &str, limit: usize) -> Failure {
    let message = format!(
        "{name} wrote more than {limit} bytes to stdout: let it write less, or give it more room with output_limit"
    );
    Failure::new(message).code("output_limit").non_retryable()
}

fn no_runtime() -> Failure {
    Failure::new("a command needs a tokio runtime: run the workflow inside one")
        .code("no_runtime")
        .non_retryable()
}

/// The runtime shut down, and the program was killed.
fn lost() -> Failure {
    Failure::new("its task was cancelled").code("lost").non_retryable()
}

/// One turn for each piece of work: an attempt that was given up may still be ending when the next one comes, and
/// two of them must not work on the same thing.
#[derive(Default)]
struct Turns(Mutex<BTreeMap<RunnableId, Weak<Turn<()>>>>);

impl Turns {
    async fn take(&self, work: RunnableId) -> OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            turns.retain(|_, turn| turn.strong_count() > 0);
            turns.get(&work).and_then(Weak::upgrade).unwrap_or_else(|| {
                let turn = Arc::default();
                turns.insert(work, Arc::downgrade(&turn));
                turn
            })
        };
        turn.lock_owned().await
    }
}
