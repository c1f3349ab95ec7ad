//! What the parallel loop costs per piece of work: trivial steps, so that only the engine is measured, beside
//! the serial loop of core and beside the same graph as bare tasks with channels.
//!
//! Words on the command line choose among the cases: `cargo xtask bench layers`.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark that cannot be set up has failed")]

use std::time::{Duration, Instant};

use tidewheel_core::policy::{self, CircuitBreaker, Overlay, Policy, Priority, Rules};
use tidewheel_core::workflow::{Workflow, step};
use tidewheel_runner::{Options, SyncWork, react_until_satisfied};
use tidewheel_testkit::figure;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

const ROUNDS: usize = 15;
const SIDE: usize = 100;

/// A graph of additions: for each node, the nodes that it comes after.
struct Shape {
    name: &'static str,
    /// What it is at any size.
    kind: &'static str,
    parents: Vec<Vec<usize>>,
}

fn main() {
    let runtime = Builder::new_multi_thread().build().unwrap();
    let layered = |node: usize| match node.checked_sub(SIDE) {
        None => vec![],
        Some(above) => vec![above, above - above % SIDE + (above + 1) % SIDE],
    };
    let shapes = [
        Shape { name: "1,000 in parallel", kind: "wide", parents: vec![vec![]; 1_000] },
        Shape {
            name: "chain of 1,000",
            kind: "chain",
            parents: (0..1_000_usize).map(|node| node.checked_sub(1).into_iter().collect()).collect(),
        },
        Shape {
            name: "chain of 10,000",
            kind: "chain",
            parents: (0..10_000_usize).map(|node| node.checked_sub(1).into_iter().collect()).collect(),
        },
        Shape {
            name: "chain of 100,000",
            kind: "chain",
            parents: (0..100_000_usize).map(|node| node.checked_sub(1).into_iter().collect()).collect(),
        },
        Shape { name: "layers, 100 x 100", kind: "layers", parents: (0..SIDE * SIDE).map(layered).collect() },
    ];
    let filters: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let is_wanted =
        |shape: &&Shape| filters.is_empty() || filters.iter().any(|word| shape.name.contains(word));
    let is_short = |shape: &&Shape| !figure::is_quick() || shape.parents.len() <= 10_000;
    for shape in shapes.iter().filter(is_wanted).filter(is_short) {
        let sync = workflow(shape, false);
        let asynchronous = workflow(shape, true);
        let inline = Options::new().sync_work(SyncWork::Inline);
        // What work is let in by, beside the same work that is only driven: nobody ever waits.
        let urgent = Policy::new().priority(Priority::High);
        let limited = urgent.clone().concurrency_limit(1_000_000).circuit_breaker(CircuitBreaker::new("api"));
        let under = |policy: Policy| {
            let rules = Rules::new([(policy::default(), policy)]).unwrap();
            inline.clone().policies(rules, Overlay::Merge)
        };
        let (urgent, limited) = (under(urgent), under(limited));
        report(shape, "serial loop of core", || serial(&sync));
        report(shape, "parallel, inline", || parallel(&runtime, &sync, inline.clone()));
        report(shape, "inline, priority", || parallel(&runtime, &sync, urgent.clone()));
        report(shape, "inline, priority and limits", || parallel(&runtime, &sync, limited.clone()));
        report(shape, "parallel, threads", || parallel(&runtime, &sync, Options::new()));
        report(shape, "parallel, threads, at most 2", || {
            parallel(&runtime, &sync, Options::new().max_concurrency(2))
        });
        report(shape, "parallel, async steps, inline", || parallel(&runtime, &asynchronous, inline.clone()));
        report(shape, "parallel, async steps", || parallel(&runtime, &asynchronous, Options::new()));
        report(shape, "bare tasks and channels", || runtime.block_on(bare(shape, false)));
        report(shape, "bare tasks that yield once", || runtime.block_on(bare(shape, true)));
    }
}

/// Prints the median and the best of several rounds, per node.
fn report(shape: &Shape, case: &str, mut round: impl FnMut() -> Duration) {
    let rounds = match shape.parents.len() {
        _ if figure::is_quick() => 3,
        100_000.. => 5,
        _ => ROUNDS,
    };
    let mut times: Vec<Duration> = (0..rounds).map(|_| round()).collect();
    let nodes = shape.parents.len();
    figure::took(&format!("parallel/{}/{case}/{nodes}", shape.kind), nodes, &times);
    times.sort_unstable();
    let per_node = |time: Duration| time.as_nanos() / shape.parents.len() as u128;
    let (best, median) = (per_node(times[0]), per_node(times[rounds / 2]));
    println!("{:<18} {case:<30} {median:>7} ns/node, best {best:>7}", shape.name);
}

fn workflow(shape: &Shape, is_async: bool) -> Workflow {
    let mut builder = Workflow::new(shape.name);
    for (node, parents) in shape.parents.iter().enumerate() {
        let name = format!("n{node}");
        let component = match (parents.len(), is_async) {
            (2, false) => step(name, |a: u64, b: u64| a.wrapping_add(b)),
            (2, true) => step(name, |a: u64, b: u64| async move {
                tokio::task::yield_now().await;
                a.wrapping_add(b)
            }),
            (_, false) => step(name, |a: u64| a + 1),
            (_, true) => step(name, |a: u64| async move {
                tokio::task::yield_now().await;
                a + 1
            }),
        };
        let names: Vec<String> = parents.iter().map(|parent| format!("n{parent}")).collect();
        builder = builder.add(component.after(names));
    }
    builder.build().unwrap()
}

fn serial(workflow: &Workflow) -> Duration {
    let start = Instant::now();
    let mut run = workflow.run("r");
    run.react_until_satisfied(1_u64).unwrap();
    start.elapsed()
}

fn parallel(runtime: &Runtime, workflow: &Workflow, options: Options) -> Duration {
    let start = Instant::now();
    let mut run = workflow.run("r");
    runtime.block_on(react_until_satisfied(&mut run, 1_u64, options)).unwrap();
    let elapsed = start.elapsed();
    assert!(!run.is_runnable());
    elapsed
}

/// Each node is a task that waits for its parents' values and sends its own to each child; like the async
/// steps, it may yield once.
async fn bare(shape: &Shape, yields: bool) -> Duration {
    let start = Instant::now();
    let mut children: Vec<Vec<oneshot::Sender<u64>>> = shape.parents.iter().map(|_| Vec::new()).collect();
    let mut inputs: Vec<Vec<oneshot::Receiver<u64>>> = Vec::with_capacity(shape.parents.len());
    for parents in &shape.parents {
        let mut receivers = Vec::with_capacity(parents.len());
        for parent in parents {
            let (sender, receiver) = oneshot::channel();
            children[*parent].push(sender);
            receivers.push(receiver);
        }
        inputs.push(receivers);
    }
    let mut tasks = Vec::with_capacity(shape.parents.len());
    for (receivers, senders) in inputs.into_iter().zip(children) {
        tasks.push(tokio::spawn(async move {
            let mut sum = u64::from(receivers.len() < 2);
            for receiver in receivers {
                sum = sum.wrapping_add(receiver.await.unwrap());
            }
            if yields {
                tokio::task::yield_now().await;
            }
            for sender in senders {
                sender.send(sum).unwrap();
            }
            sum
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    start.elapsed()
}
