//! What the processes of the limited kills work on: one workflow under every policy that lets work wait, and a file in
//! which its functions write down, for good, when they begin and end.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, OnceLock};
use std::time::Duration;

use tidewheel_core::fact::RunnableId;
use tidewheel_core::policy::{self, CircuitBreaker, ExecutionMode, Failure, OnFailure, Policy};
use tidewheel_core::time::{Span, Timestamp};
use tidewheel_core::work::{Context, Token};
use tidewheel_core::workflow::{Workflow, compensation, step};
use tidewheel_runner::{CommandError, Runner, RunnerOptions, StartError};
use tidewheel_store::Status;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::other::{Folder, run_id, say};
use crate::proof::now;

/// As many runs are started together.
pub(crate) const RUNS: usize = 12;
pub(crate) const DELAY: Span = Span::from_millis(30);
/// So many may begin in a window.
pub(crate) const RATE: (u32, Span) = (5, Span::from_millis(200));
/// So many may be under way at once.
pub(crate) const SLOTS: u32 = 2;

/// Tells whether what a run did is undone in the end.
pub(crate) fn is_undone(number: usize) -> bool {
    number.is_multiple_of(3)
}

/// Returns what somebody outside gives.
pub(crate) fn given(number: usize) -> i64 {
    1_000 + i64::try_from(number).unwrap()
}

pub(crate) static WORKFLOW: LazyLock<Workflow> = LazyLock::new(|| {
    let breaker = CircuitBreaker {
        failure_threshold: 3,
        reset_timeout: Span::from_millis(40),
        ..CircuitBreaker::new("api")
    };
    Workflow::new("limited")
        .add(step("late", |context: Context, x: i64| begins(&context, x)))
        .add(step("rated", |context: Context, x: i64| begins(&context, x + 1)).after("late"))
        .add(
            step("slotted", async |context: Context, x: i64| {
                begins(&context, ());
                tokio::time::sleep(Duration::from_millis(10)).await;
                written(&context, "end", x + 1)
            })
            .after("rated"),
        )
        .add(
            step("flaky", |context: Context, x: i64| {
                begins(&context, ());
                context.register_compensation("refund", x);
                if context.attempt() == 0 && is_first(&context) {
                    Err(Failure::new("not yet"))
                } else {
                    Ok(x + 1)
                }
            })
            .after("slotted"),
        )
        .add(
            step("ask", async |context: Context, x: i64| {
                begins(&context, ());
                hand_over(&context);
                x
            })
            .after("flaky"),
        )
        .add(
            step("ship", |context: Context, x: i64| {
                begins(&context, ());
                let number = usize::try_from(x - given(0)).unwrap();
                if is_undone(number) { Err(Failure::new("no ship")) } else { Ok(x + 1) }
            })
            .after("ask"),
        )
        .add(compensation("unbook", |context: Context, _: i64| begins(&context, ())))
        .add(compensation("refund", |context: Context, _: i64| begins(&context, ())))
        .policy(policy::name("late"), Policy::new().delay(DELAY))
        .policy(policy::name("rated"), Policy::new().rate_limit(RATE.0, RATE.1))
        .policy(policy::name("slotted"), Policy::new().concurrency_limit(SLOTS).compensation_node("unbook"))
        .policy(policy::name("flaky"), Policy::new().max_retries(1_000).circuit_breaker(breaker))
        .policy(policy::name("ask"), Policy::new().execution_mode(ExecutionMode::External))
        .policy(policy::name("ship"), Policy::new().on_failure(OnFailure::Compensate))
        .build()
        .unwrap()
});

/// What a function wrote down.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) process: u32,
    pub(crate) run: String,
    pub(crate) node: String,
    pub(crate) is_end: bool,
    pub(crate) work: RunnableId,
    pub(crate) attempt: u32,
    pub(crate) at: Timestamp,
}

struct Here {
    lines: File,
    tokens: File,
    outside: UnboundedSender<Token>,
    process: u32,
}

static HERE: OnceLock<Here> = OnceLock::new();

fn lines_of(folder: &Folder) -> PathBuf {
    folder.0.join("lines")
}

fn tokens_of(folder: &Folder) -> PathBuf {
    folder.0.join("tokens")
}

fn append_to(path: &Path) -> File {
    File::options().append(true).create(true).open(path).unwrap()
}

/// Writes a line, all of it or nothing, and so that it survives.
fn write_line(mut file: &File, line: &str) {
    file.write_all(line.as_bytes()).unwrap();
    file.sync_data().unwrap();
}

fn begins<T>(context: &Context, value: T) -> T {
    written(context, "begin", value)
}

fn written<T>(context: &Context, what: &str, value: T) -> T {
    if let Some(here) = HERE.get() {
        let (run, node, work) = (context.run_id(), context.node().unwrap_or_default(), context.runnable_id());
        let (process, attempt, at) = (here.process, context.attempt(), now().as_nanos());
        write_line(&here.lines, &format!("{process}\t{run}\t{node}\t{what}\t{work}\t{attempt}\t{at}\n"));
    }
    value
}

/// Tells whether this process sees a piece of work for the first time.
fn is_first(context: &Context) -> bool {
    static SEEN: Mutex<BTreeSet<RunnableId>> = Mutex::new(BTreeSet::new());
    SEEN.lock().unwrap().insert(context.runnable_id())
}

/// Gives the token to the outside, which outlives this process.
fn hand_over(context: &Context) {
    if let Some(here) = HERE.get() {
        write_line(&here.tokens, &format!("{}\n", context.token()));
        here.outside.send(context.token()).unwrap();
    }
}

/// Returns what was written down, in order.
pub(crate) fn lines(folder: &Folder) -> Vec<Line> {
    let text = std::fs::read_to_string(lines_of(folder)).unwrap_or_default();
    let parsed = text.lines().map(|line| {
        let [process, run, node, what, work, attempt, at] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("no line: {line}")
        };
        Line {
            process: process.parse().unwrap(),
            run: run.to_owned(),
            node: node.to_owned(),
            is_end: what == "end",
            work: RunnableId::parse(work).unwrap(),
            attempt: attempt.parse().unwrap(),
            at: Timestamp::from_nanos(at.parse().unwrap()),
        }
    });
    parsed.collect()
}

/// Does what a program does that is started again after a crash: the same as before.
pub(crate) async fn generations(folder: &Folder, process: u32, is_last: bool) {
    let (outside, mut tokens) = unbounded_channel();
    let (lines, given_away) = (append_to(&lines_of(folder)), append_to(&tokens_of(folder)));
    let here = Here { lines, tokens: given_away, outside, process };
    assert!(HERE.set(here).is_ok(), "only once");
    let options = RunnerOptions::new().max_concurrency(8).lease(Span::from_secs(5));
    let runner = Runner::open_with(folder.database(), options).await.unwrap();
    say("open");
    let answering = runner.clone();
    let known = std::fs::read_to_string(tokens_of(folder)).unwrap_or_default();
    tokio::spawn(async move {
        // Those that an earlier process gave away are answered, too.
        for token in known.lines().map(|token| token.parse().unwrap()) {
            tokio::spawn(answer(answering.clone(), token, process));
        }
        while let Some(token) = tokens.recv().await {
            tokio::spawn(answer(answering.clone(), token, process));
        }
    });
    loop {
        let generation = folder.generation();
        let runs = (0..RUNS).map(|number| tokio::spawn(to_its_end(runner.clone(), generation, number)));
        for run in runs.collect::<Vec<_>>() {
            run.await.unwrap();
        }
        folder.end_generation();
        if is_last {
            runner.shutdown().await;
            return;
        }
    }
}

/// Ends work from outside, after a while that is longer than some processes live.
async fn answer(runner: Runner, token: Token, process: u32) {
    let number: usize = token.run.as_str().rsplit_once('-').unwrap().1.parse().unwrap();
    let patience = (number as u64 * 37 + u64::from(process) * 13) % 60;
    tokio::time::sleep(Duration::from_millis(patience)).await;
    match runner.complete(&token, given(number)).await {
        // It was ended before, or is not under way: then it is handed over again. At the end all are over.
        Ok(()) | Err(CommandError::NotAwaited { .. } | CommandError::Start(StartError::Closed)) => {}
        Err(error) => panic!("{token}: {error:?}"),
    }
}

async fn to_its_end(runner: Runner, generation: usize, number: usize) {
    let input = i64::try_from(number).unwrap();
    let run = runner.run(run_id(generation, number).as_str(), &WORKFLOW, input).await.unwrap();
    loop {
        match run.wait().await.unwrap() {
            Status::Completed | Status::Failed => return,
            // It was lost too often; the test kills the process, so the step is not to blame.
            Status::Parked => drop(run.resume().await.unwrap()),
            // Nobody has it while somebody outside has its work.
            Status::Waiting => tokio::time::sleep(Duration::from_millis(5)).await,
            status => panic!("{} is {status}", run.id()),
        }
    }
}
