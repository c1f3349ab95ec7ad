//! What the processes of these tests work on: workflows of every kind, and a file in which each execution of a step
//! leaves a line.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, OnceLock};

use tidewheel_core::fact::RunnableId;
use tidewheel_core::policy::{self, Backoff, Failure, Jitter, Policy};
use tidewheel_core::work::Context;
use tidewheel_core::workflow::{Workflow, accumulator, map, reduce, step};

/// Every workflow; run number `n` is one of number `n % 6`.
pub(crate) static WORKFLOWS: LazyLock<[Workflow; 6]> =
    LazyLock::new(|| [chain(), join(), items(), total(), flaky(), late()]);

pub(crate) fn workflow_of(run: usize) -> &'static Workflow {
    &WORKFLOWS[run % WORKFLOWS.len()]
}

/// Returns the inputs of a run; each is given under its place as the key.
pub(crate) fn inputs_of(run: usize) -> Vec<i64> {
    let first = i64::try_from(run).unwrap();
    match run % WORKFLOWS.len() {
        0 => vec![first, first + 100],
        3 => (first..first + 4).collect(),
        _ => vec![first],
    }
}

fn chain() -> Workflow {
    Workflow::new("chain")
        .add(step("a", |context: Context, x: i64| does(&context, x + 1)))
        .add(step("b", |context: Context, x: i64| does(&context, x * 2)).after("a"))
        .add(step("c", |context: Context, x: i64| does(&context, x - 3)).after("b"))
        .add(step("d", async |context: Context, x: i64| does(&context, x * x)).after("c"))
        .build()
        .unwrap()
}

fn join() -> Workflow {
    Workflow::new("join")
        .add(step("left", |context: Context, x: i64| does(&context, x + 1)))
        .add(step("right", async |context: Context, x: i64| does(&context, x * 2)))
        .add(
            step("both", |context: Context, left: i64, right: i64| does(&context, left * right))
                .after(["left", "right"]),
        )
        .build()
        .unwrap()
}

fn items() -> Workflow {
    Workflow::new("items")
        .add(step("list", |context: Context, x: i64| does(&context, (x..x + 4).collect::<Vec<i64>>())))
        .add(map("square", |context: Context, x: i64| does(&context, x * x)).after("list"))
        .add(reduce("sum", 0_i64, |sum: i64, x: i64| sum + x).after("square"))
        .add(step("end", |context: Context, x: i64| does(&context, x + 1)).after("sum"))
        .build()
        .unwrap()
}

fn total() -> Workflow {
    Workflow::new("total")
        .add(step("in", |context: Context, x: i64| does(&context, x * 10)))
        .add(accumulator("total", 0_i64, |total: i64, x: i64| total * 3 + x).after("in"))
        .build()
        .unwrap()
}

/// Fails twice, and then gives its result.
fn flaky() -> Workflow {
    let fails = |context: Context, x: i64| {
        let attempt = context.attempt();
        does(&context, ());
        if attempt < 2 { Err(Failure::new("not yet")) } else { Ok(x + 5) }
    };
    Workflow::new("flaky")
        .add(step("fails", fails))
        .add(step("then", |context: Context, x: i64| does(&context, x * 7)).after("fails"))
        .policy(policy::name("fails"), tries(3, 10))
        .build()
        .unwrap()
}

/// Waits for a while, longer than most processes of these tests live.
fn late() -> Workflow {
    let fails = |context: Context, x: i64| {
        let attempt = context.attempt();
        does(&context, ());
        if attempt < 1 { Err(Failure::new("later")) } else { Ok(x - 1) }
    };
    Workflow::new("late")
        .add(step("waits", fails))
        .add(step("then", |context: Context, x: i64| does(&context, x * 2)).after("waits"))
        .policy(policy::name("waits"), tries(2, 120))
        .build()
        .unwrap()
}

fn tries(retries: u32, delay_ms: u64) -> Policy {
    let policy = Policy::new().max_retries(retries).backoff(Backoff::Fixed).jitter(Jitter::None);
    policy.base_delay(tidewheel_core::time::Span::from_millis(delay_ms))
}

/// What this process does in the middle of an execution, with how many there were before: most do nothing.
pub(crate) type InTheMiddle = fn(u64);

/// The file, and as which process this one writes to it.
static EFFECTS: OnceLock<(File, u32, InTheMiddle)> = OnceLock::new();

/// Lets this process write down what it does.
pub(crate) fn write_down(path: &Path, process: u32, in_the_middle: InTheMiddle) {
    let file = File::options().append(true).create(true).open(path).unwrap();
    assert!(EFFECTS.set((file, process, in_the_middle)).is_ok(), "only once");
}

/// Does what the world sees of a step, and returns the value. A test in whose process nothing is written down does
/// nothing here.
fn does<T>(context: &Context, value: T) -> T {
    static EXECUTIONS: AtomicU64 = AtomicU64::new(0);
    if let Some((file, process, in_the_middle)) = EFFECTS.get() {
        let (run, work, attempt) = (context.run_id(), context.runnable_id(), context.attempt());
        // One write: it is there as a whole or not at all.
        let line = format!("{process}\t{run}\t{work}\t{attempt}\n");
        (&*file).write_all(line.as_bytes()).unwrap();
        in_the_middle(EXECUTIONS.fetch_add(1, Ordering::Relaxed));
    }
    value
}

/// An execution of a step.
#[derive(Clone, Debug)]
pub(crate) struct Effect {
    pub(crate) process: u32,
    pub(crate) run: String,
    pub(crate) work: RunnableId,
    pub(crate) attempt: u32,
}

/// Returns what was done, in order.
pub(crate) fn effects(path: &Path) -> Vec<Effect> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let parsed = text.lines().map(|line| {
        let [process, run, work, attempt] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("no effect: {line}")
        };
        Effect {
            process: process.parse().unwrap(),
            run: run.to_owned(),
            work: serde_json::from_value(serde_json::Value::String(work.to_owned())).unwrap(),
            attempt: attempt.parse().unwrap(),
        }
    });
    parsed.collect()
}
