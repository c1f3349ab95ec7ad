//! What a workflow costs per item at growing sizes, in time and in memory, beside what it may cost. The cost
//! per item must not grow with the size.
//!
//! Words on the command line choose among the cases: `cargo xtask bench chain`.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark prints what it measured with a real clock, and fails if it cannot be set up"
)]

use std::time::{Duration, Instant};

use tidewheel_core::Outcome;
use tidewheel_core::event::Event;
use tidewheel_core::policy::{Failure, Policy, name};
use tidewheel_core::run::Run;
use tidewheel_core::workflow::{
    Workflow, WorkflowBuilder, accumulator, compensation, map, reduce, rule, step,
};
use tidewheel_testkit::figure::{self, Unit};
use tidewheel_testkit::{CountingAllocator, bytes_held_by};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const SIZES: [usize; 3] = [1_000, 10_000, 100_000];
const LARGEST: usize = 1_000_000;

/// A fact may take this many bytes beside its value.
const BYTES_GOAL: f64 = 200.0;
/// A number as a value: it lies by itself, with two counts of those who hold it.
const VALUE_BYTES: usize = 24;
/// A stored value: its counts and a pointer to its text with the length, then the text itself.
const STORED_BYTES: usize = 32;

/// A kind of work at growing sizes.
struct Case {
    name: &'static str,
    /// What one item may take.
    goal_us: f64,
    has_largest: bool,
    /// Sets up a size and returns what is measured.
    set_up: fn(usize) -> Round,
}

/// What is measured, as often as wanted.
struct Round {
    items: usize,
    /// What the values of all facts take, which is not ours.
    values: usize,
    run: Box<dyn FnMut() -> Run>,
    /// Made before the clock runs.
    prepare: Option<Box<dyn FnMut()>>,
}

struct Row {
    n: usize,
    total: Duration,
    each_ns: f64,
    bytes: f64,
}

const CASES: [Case; 9] = [
    Case { name: "chain", goal_us: 0.5, has_largest: true, set_up: chain },
    Case { name: "fan-out and join", goal_us: 1.0, has_largest: false, set_up: fan },
    Case { name: "map and reduce", goal_us: 1.0, has_largest: true, set_up: map_reduce },
    Case { name: "rules, one fact", goal_us: 0.5, has_largest: false, set_up: rules },
    Case { name: "accumulator", goal_us: 0.5, has_largest: false, set_up: accumulated },
    Case { name: "replay, per event", goal_us: 0.5, has_largest: false, set_up: replay },
    Case { name: "replay of JSON, per event", goal_us: 2.0, has_largest: false, set_up: replay_json },
    Case { name: "undo, one input", goal_us: 3.0, has_largest: false, set_up: undo_items },
    Case { name: "undo, many inputs", goal_us: 5.0, has_largest: false, set_up: undo_inputs },
];

fn main() {
    let filters: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let is_wanted = |case: &&Case| filters.is_empty() || filters.iter().any(|word| case.name.contains(word));
    let measured: Vec<(&Case, Vec<Row>)> =
        CASES.iter().filter(is_wanted).map(|case| (case, measured(case))).collect();
    if measured.is_empty() {
        return;
    }
    for n in SIZES {
        by_hand(n);
    }
    println!(
        "{:<26} {:>9} {:>11} {:>9} {:>8} {:>11} {:>7}",
        "case", "size", "total", "per item", "goal", "bytes/fact", "goal"
    );
    for (case, rows) in &measured {
        for row in rows {
            println!(
                "{:<26} {:>9} {:>8.2} ms {:>6.0} ns {:>5.0} ns {:>11.0} {:>7.0}{}",
                case.name,
                row.n,
                row.total.as_secs_f64() * 1e3,
                row.each_ns,
                case.goal_us * 1e3,
                row.bytes,
                BYTES_GOAL,
                missed(case, row),
            );
        }
    }
    println!();
    for (case, rows) in &measured {
        if let [small, _, large, ..] = &rows[..] {
            let factor = large.each_ns / small.each_ns;
            println!("{:<26} an item at {} costs {factor:.2} of one at {}", case.name, large.n, small.n);
        }
    }
}

fn missed(case: &Case, row: &Row) -> &'static str {
    match (row.each_ns > case.goal_us * 1e3, row.bytes > BYTES_GOAL) {
        (false, false) => "",
        (true, false) => "  time is missed",
        (false, true) => "  bytes are missed",
        (true, true) => "  both are missed",
    }
}

fn measured(case: &Case) -> Vec<Row> {
    let has_largest = case.has_largest && !figure::is_quick();
    let sizes = SIZES.into_iter().chain(has_largest.then_some(LARGEST));
    sizes.map(|n| row(case, n)).collect()
}

/// Returns the median of several rounds. The first pays for pages and caches and does not count.
fn row(case: &Case, n: usize) -> Row {
    let mut round = (case.set_up)(n);
    let rounds = rounds(n);
    let mut times = Vec::with_capacity(rounds);
    let mut bytes = 0.0;
    for turn in 0..=rounds {
        if let Some(prepare) = &mut round.prepare {
            prepare();
        }
        let start = Instant::now();
        let (held, run) = bytes_held_by(&mut round.run);
        let elapsed = start.elapsed();
        assert!(!run.is_runnable());
        // Rules that do not fire make no facts, but each was woken.
        let facts = run.facts_len().max(n);
        bytes = (held - i64::try_from(round.values).unwrap()) as f64 / facts as f64;
        if turn > 0 {
            times.push(elapsed);
        }
    }
    let id = format!("growth/{}/{n}", case.name);
    figure::took(&id, round.items, &times);
    figure::goal(&id, case.goal_us * 1e3);
    let id = format!("growth bytes/{}/{n}", case.name);
    figure::measured(&id, Unit::Bytes, &[bytes]);
    figure::goal(&id, BYTES_GOAL);
    times.sort_unstable();
    let total = times[rounds / 2];
    Row { n, total, each_ns: total.as_nanos() as f64 / round.items as f64, bytes }
}

fn rounds(n: usize) -> usize {
    figure::quick_or((20_000 / n).clamp(3, 5), (200_000 / n).clamp(5, 101))
}

/// For comparison in the same run: as many boxed functions that are called one after the other, with each value kept.
fn by_hand(n: usize) {
    type Call = Box<dyn Fn(u64) -> u64>;
    let calls: Vec<Call> =
        (0..n as u64).map(|more| -> Call { Box::new(move |x: u64| x.wrapping_add(more)) }).collect();
    let rounds = rounds(n);
    let mut times = Vec::with_capacity(rounds);
    for turn in 0..=rounds {
        let start = Instant::now();
        let mut values: Vec<std::sync::Arc<u64>> = Vec::new();
        for call in &calls {
            let last = values.last().map_or(0, |value| **value);
            values.push(std::sync::Arc::new(call(last)));
        }
        let elapsed = start.elapsed();
        assert_eq!(std::hint::black_box(values).len(), n);
        if turn > 0 {
            times.push(elapsed);
        }
    }
    figure::took(&format!("growth/loop by hand/{n}"), n, &times);
    times.sort_unstable();
    let each = times[rounds / 2].as_secs_f64() * 1e9 / n as f64;
    println!("{:<26} {n:>9} {each:>18.1} ns", "loop by hand");
}

fn steps(n: usize) -> Workflow {
    let mut builder = Workflow::new("chain").add(step("s0", |x: u64| x + 1));
    for index in 1..n {
        builder = builder.add(step(format!("s{index}"), |x: u64| x + 1).after(format!("s{}", index - 1)));
    }
    builder.build().unwrap()
}

fn reacted(workflow: &Workflow, input: u64) -> Run {
    let mut run = workflow.run("r");
    run.react_until_satisfied(input).unwrap();
    run
}

fn chain(n: usize) -> Round {
    let workflow = steps(n);
    let run = Box::new(move || reacted(&workflow, 0));
    Round { items: n, values: (n + 1) * VALUE_BYTES, run, prepare: None }
}

fn fan(n: usize) -> Round {
    let mut builder = Workflow::new("fan");
    for index in 0..n {
        builder = builder.add(step(format!("s{index}"), |x: u64| x + 1));
    }
    let names: Vec<String> = (0..n).map(|index| format!("s{index}")).collect();
    let workflow = builder.add(step("join", |all: Vec<u64>| all.len()).after(names)).build().unwrap();
    // The list of the join holds what was produced once more, as pointers.
    let values = (n + 3) * VALUE_BYTES + n * size_of::<tidewheel_core::fact::Value>();
    Round { items: n, values, run: Box::new(move || reacted(&workflow, 0)), prepare: None }
}

fn map_reduce(n: usize) -> Round {
    let workflow = Workflow::new("map")
        .add(map("double", |x: u64| x * 2))
        .add(reduce("sum", 0_u64, |sum: u64, x: u64| sum + x).after("double"))
        .build()
        .unwrap();
    // The list comes from outside, so it is there before the clock runs.
    let list = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let next = std::rc::Rc::clone(&list);
    let run = move || {
        let mut run = workflow.run("r");
        run.react_until_satisfied(next.take()).unwrap();
        run
    };
    let prepare = move || drop(list.replace((0..n as u64).collect()));
    let values = (2 * n + 2) * VALUE_BYTES;
    Round { items: n, values, run: Box::new(run), prepare: Some(Box::new(prepare)) }
}

fn rules(n: usize) -> Round {
    let add = |builder: WorkflowBuilder, index: usize| {
        builder.add(rule(format!("r{index}")).when(move |x: &u64| *x == index as u64).then(|x: u64| x))
    };
    let workflow = (0..n).fold(Workflow::new("rules"), add).build().unwrap();
    Round { items: n, values: 2 * VALUE_BYTES, run: Box::new(move || reacted(&workflow, 7)), prepare: None }
}

fn accumulated(n: usize) -> Round {
    let workflow =
        Workflow::new("acc").add(accumulator("sum", 0_u64, |sum: u64, x: u64| sum + x)).build().unwrap();
    let run = move || {
        let mut run = workflow.run("r");
        for x in 0..n as u64 {
            run.react_until_satisfied(x).unwrap();
        }
        run
    };
    Round { items: n, values: (2 * n + 1) * VALUE_BYTES, run: Box::new(run), prepare: None }
}

fn logged(workflow: &Workflow) -> Vec<Event> {
    let mut run = workflow.run("r");
    let mut log: Vec<Event> = run.plan(0_u64).to_vec();
    while run.is_runnable() {
        let runnables = run.prepare();
        log.extend_from_slice(run.last_events());
        for runnable in runnables {
            let executed = runnable.execute();
            log.extend_from_slice(run.apply(executed));
        }
    }
    log
}

fn replay(n: usize) -> Round {
    let workflow = steps(n);
    let log = logged(&workflow);
    let items = log.len();
    // The values are those of the log and are shared with it.
    let run = Box::new(move || Run::replay(&workflow, "r", &log).unwrap());
    Round { items, values: 0, run, prepare: None }
}

fn replay_json(n: usize) -> Round {
    let workflow = steps(n);
    let lines: Vec<String> =
        logged(&workflow).iter().map(|event| event.to_json(&workflow).unwrap()).collect();
    let items = lines.len();
    let values = (0..=n).map(|value| STORED_BYTES + value.to_string().len()).sum();
    let run = move || Run::replay_json(&workflow, "r", lines.iter().map(String::as_str)).unwrap();
    Round { items, values, run: Box::new(run), prepare: None }
}

/// A list whose items are undone when what comes after them fails.
fn undo_items(n: usize) -> Round {
    let workflow = Workflow::new("undo")
        .add(step("list", |n: u64| (0..n).collect::<Vec<u64>>()))
        .add(map("item", |x: u64| x + 1).after("list"))
        .add(reduce("fails", 0_u64, |sum: u64, x: u64| sum + x).after("item"));
    let workflow = undoable(workflow, "item");
    let values = (2 * n + 2) * VALUE_BYTES;
    Round { items: n, values, run: Box::new(move || undone(&workflow, &[n as u64])), prepare: None }
}

/// Inputs that are under way at the same time, each of which is undone by itself.
fn undo_inputs(n: usize) -> Round {
    let chain = [step("item", |x: u64| x + 1), step("fails", |x: u64| x + 1)];
    let workflow = undoable(Workflow::new("undo").pipeline(chain), "item");
    let inputs: Vec<u64> = (0..n as u64).collect();
    let values = 2 * n * VALUE_BYTES;
    Round { items: n, values, run: Box::new(move || undone(&workflow, &inputs)), prepare: None }
}

fn undoable(builder: WorkflowBuilder, component: &str) -> Workflow {
    builder
        .add(compensation("undo", |x: u64| x))
        .policy(name(component), Policy::new().compensation_node("undo"))
        .build()
        .unwrap()
}

/// Runs inputs until something fails that lets them be undone, and undoes them.
fn undone(workflow: &Workflow, inputs: &[u64]) -> Run {
    let mut run = workflow.run("r");
    for input in inputs {
        run.plan(*input);
    }
    while run.is_runnable() {
        for runnable in run.prepare() {
            let fails = runnable.node().name == Some("fails");
            let executed = runnable.execute();
            run.apply(if fails {
                executed.with_outcome(Outcome::Failed(Failure::new("broken"))).and_undo()
            } else {
                executed
            });
        }
    }
    run
}
