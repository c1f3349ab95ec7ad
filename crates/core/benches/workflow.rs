//! How long a workflow takes per item, at growing sizes: the time per item must not grow.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark prints what it measured with a real clock, and fails if it cannot be set up"
)]

use std::time::Instant;

use tidewheel_core::event::Event;
use tidewheel_core::run::Run;
use tidewheel_core::workflow::{Workflow, WorkflowBuilder, accumulator, map, reduce, rule, step};

fn chain(n: usize) -> Workflow {
    let mut builder = Workflow::new("chain").add(step("s0", |x: u64| x + 1));
    for index in 1..n {
        builder = builder.add(step(format!("s{index}"), |x: u64| x + 1).after(format!("s{}", index - 1)));
    }
    builder.build().unwrap()
}

fn fan(n: usize) -> Workflow {
    let mut builder = Workflow::new("fan");
    for index in 0..n {
        builder = builder.add(step(format!("s{index}"), |x: u64| x + 1));
    }
    let names: Vec<String> = (0..n).map(|index| format!("s{index}")).collect();
    builder.add(step("join", |all: Vec<u64>| all.len()).after(names)).build().unwrap()
}

fn rules(n: usize) -> Workflow {
    let build = |builder: WorkflowBuilder, index: usize| {
        builder.add(rule(format!("r{index}")).when(move |x: &usize| *x == index).then(|x: usize| x))
    };
    (0..n).fold(Workflow::new("rules"), build).build().unwrap()
}

fn map_reduce() -> Workflow {
    Workflow::new("map")
        .add(map("double", |x: u64| x * 2))
        .add(reduce("sum", 0_u64, |sum: u64, x: u64| sum + x).after("double"))
        .build()
        .unwrap()
}

fn report(case: &str, n: usize, items: usize, work: impl FnOnce() -> usize) {
    let start = Instant::now();
    let produced = work();
    let elapsed = start.elapsed();
    let each = elapsed.as_nanos() as f64 / items as f64;
    println!(
        "{case:<24} {n:>9} {:>12.3} ms {each:>10.0} ns/item {produced:>9} facts",
        elapsed.as_secs_f64() * 1e3
    );
}

fn main() {
    // The first run of a process pays for pages and caches; nobody wants to read that.
    chain(10_000).run("warm").react_until_satisfied(0_u64);
    let sizes = [1_000, 10_000, 100_000];
    for n in sizes.into_iter().chain([1_000_000]) {
        let workflow = chain(n);
        report("chain", n, n, || {
            let mut run = workflow.run("r");
            run.react_until_satisfied(0_u64);
            run.facts_len()
        });
    }
    for n in sizes {
        let workflow = fan(n);
        report("fan-out + join", n, n, || {
            let mut run = workflow.run("r");
            run.react_until_satisfied(0_u64);
            run.facts_len()
        });
    }
    let workflow = map_reduce();
    for n in sizes.into_iter().chain([1_000_000]) {
        let items: Vec<u64> = (0..n as u64).collect();
        report("map + reduce", n, n, || {
            let mut run = workflow.run("r");
            run.react_until_satisfied(items);
            run.facts_len()
        });
    }
    for n in sizes {
        let workflow = rules(n);
        report("rules, one fact", n, n, || {
            let mut run = workflow.run("r");
            run.react_until_satisfied(7_usize);
            run.facts_len()
        });
    }
    for n in sizes {
        let workflow = chain(n);
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
        let lines: Vec<String> = log.iter().map(|event| event.to_json(&workflow).unwrap()).collect();
        report("replay, per event", n, log.len(), || Run::replay(&workflow, "r", &log).unwrap().facts_len());
        report("replay of JSON", n, lines.len(), || {
            Run::replay_json(&workflow, "r", lines.iter().map(String::as_str)).unwrap().facts_len()
        });
    }
    let workflow =
        Workflow::new("acc").add(accumulator("sum", 0_u64, |sum: u64, x: u64| sum + x)).build().unwrap();
    for n in sizes {
        report("accumulator", n, n, || {
            let mut run = workflow.run("r");
            for x in 0..n as u64 {
                run.react_until_satisfied(x);
            }
            run.facts_len()
        });
    }
}
