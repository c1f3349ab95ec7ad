//! Serial and parallel come to the same facts, with the same ids and in the same order, whatever ends first.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::time::Duration;

use serde_json::Value;
use tidewheel_core::event::Absence;
use tidewheel_core::fact::FactId;
use tidewheel_core::run::Run;
use tidewheel_core::workflow::{Component, Workflow, accumulator, map, reduce, rule, step};
use tidewheel_runner::{Options, SyncWork, run_until_satisfied};
use tidewheel_testkit::{Case, Dice, lowered};
use tokio::runtime::{Builder, Runtime};

/// Everything that must not depend on the order of the work.
#[derive(Debug, PartialEq)]
struct Outcome {
    facts: Vec<(FactId, Option<String>, Value, u32, u32)>,
    failures: Vec<(Option<String>, String, u32)>,
    absences: Vec<(String, u32, Option<Absence>)>,
    facts_len: usize,
    is_runnable: bool,
}

fn outcome(run: &Run, workflow: &Workflow, inputs: u32) -> Outcome {
    let facts = run.reactions().into_iter().map(|fact| {
        let producer = fact.producer.map(str::to_owned);
        (fact.id, producer, fact.value.to_json().unwrap(), fact.depth, fact.input)
    });
    let mut failures: Vec<_> = run
        .failures()
        .into_iter()
        .map(|failed| (failed.component.map(str::to_owned), failed.failure.message.clone(), failed.input))
        .collect();
    failures.sort();
    let absences = workflow
        .components()
        .flat_map(|name| (0..inputs).map(|input| (name.to_owned(), input, run.absence(name, input))));
    Outcome {
        facts: facts.collect(),
        failures,
        absences: absences.collect(),
        facts_len: run.facts_len(),
        is_runnable: run.is_runnable(),
    }
}

/// Several inputs are in flight at once.
fn planned(workflow: &Workflow, inputs: &[i64]) -> Run {
    let mut run = workflow.run("random");
    for input in inputs {
        run.plan(*input);
    }
    run
}

fn options() -> impl Iterator<Item = Options> {
    let places = [SyncWork::Threads, SyncWork::Inline].map(|place| Options::new().sync_work(place));
    places.into_iter().flat_map(|options| {
        let limited = |limit| options.clone().max_concurrency(limit);
        [options.clone(), limited(1), limited(2), limited(7)]
    })
}

/// Panics with the seed if any way to run in parallel differs from the serial one.
fn assert_same(runtime: &Runtime, seed: u64, serial: &Workflow, parallel: &Workflow, inputs: &[i64]) {
    let count = u32::try_from(inputs.len()).unwrap();
    let mut run = planned(serial, inputs);
    run.run_until_satisfied().unwrap();
    let expected = outcome(&run, serial, count);
    assert!(!expected.is_runnable);
    for options in options() {
        let mut run = planned(parallel, inputs);
        runtime.block_on(run_until_satisfied(&mut run, options.clone())).unwrap();
        assert_eq!(outcome(&run, parallel, count), expected, "seed {seed}, {options:?}");
    }
}

#[test]
fn random_workflows_of_every_kind() {
    let runtime = Builder::new_multi_thread().worker_threads(2).build().unwrap();
    for seed in 0..1_000 {
        let case = Case::random(seed);
        let workflow = lowered(&case.spec);
        assert_same(&runtime, seed, &workflow, &workflow, &case.inputs);
    }
}

#[test]
fn random_graphs_whose_work_takes_any_time() {
    // The clock jumps to the next timer, so that each seed has its own order and takes no time.
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    for seed in 0..300 {
        let (serial, parallel) = (graph(seed, Wait::Never), graph(seed, Wait::ForTimers));
        assert_same(&runtime, seed, &serial, &parallel, &inputs(seed));
    }
}

#[test]
fn random_graphs_on_several_threads() {
    let runtime = Builder::new_multi_thread().worker_threads(4).build().unwrap();
    for seed in 1_000..1_300 {
        let (serial, parallel) = (graph(seed, Wait::Never), graph(seed, Wait::ForOthers));
        assert_same(&runtime, seed, &serial, &parallel, &inputs(seed));
    }
}

/// What async steps wait for.
#[derive(Clone, Copy)]
enum Wait {
    Never,
    ForTimers,
    ForOthers,
}

impl Wait {
    /// Waits for as long as a step and its argument say.
    async fn of(self, salt: u64, x: i64) {
        let turns = Dice::new(salt ^ x.unsigned_abs()).roll() % 20;
        match self {
            Self::Never => {}
            Self::ForTimers => tokio::time::sleep(Duration::from_millis(turns)).await,
            Self::ForOthers => {
                for _ in 0..turns {
                    tokio::task::yield_now().await;
                }
            }
        }
    }
}

fn inputs(seed: u64) -> Vec<i64> {
    let mut dice = Dice::new(!seed);
    (0..1 + dice.below(4)).map(|_| dice.between(-50, 50)).collect()
}

/// Makes a graph of numbers: each component gives one, from those of up to three others.
fn graph(seed: u64, wait: Wait) -> Workflow {
    let mut dice = Dice::new(seed);
    let mut builder = Workflow::new("random");
    let mut names: Vec<String> = Vec::new();
    for place in 0..3 + dice.below(22) {
        let name = format!("n{place}");
        let mut parents: Vec<String> = Vec::new();
        for _ in 0..dice.below(4).min(names.len()) {
            let parent = &names[dice.below(names.len())];
            if !parents.contains(parent) {
                parents.push(parent.clone());
            }
        }
        for component in components(&name, parents, &mut dice, wait) {
            builder = builder.add(component);
        }
        names.push(name);
    }
    builder.build().unwrap()
}

/// Returns what gives a number under a name: one component, or a list, a map over it and its sum.
fn components(name: &str, parents: Vec<String>, dice: &mut Dice, wait: Wait) -> Vec<Component> {
    let (salt, several) = (dice.roll(), parents.len() > 1);
    let fails = dice.chance(10);
    let calc = move |x: i64| match (x.rem_euclid(7), fails) {
        (3, true) => Err(format!("no {x}")),
        (5, true) => std::panic::resume_unwind(Box::new("a panic")),
        _ => Ok((x * 31 + 7) % 1_009),
    };
    let later = move |x: i64| async move {
        wait.of(salt, x).await;
        calc(x)
    };
    let sum = |list: Vec<i64>| list.iter().sum::<i64>();
    let component = match dice.below(6) {
        0 if !several => accumulator(name, 0, |state: i64, x: i64| (state * 31 + x) % 1_009),
        1 if !several => rule(name).when(|x: &i64| x % 3 != 0).then(later),
        2 if !several => {
            let (list, item) = (format!("{name}.list"), format!("{name}.item"));
            return vec![
                step(list.as_str(), |x: i64| (0..x.rem_euclid(6)).map(|item| x + item).collect::<Vec<_>>())
                    .after(parents),
                map(item.as_str(), later).after(list),
                reduce(name, 0_i64, |sum: i64, x: i64| (sum * 31 + x) % 1_009).after(item),
            ];
        }
        3 if !several => step(name, calc),
        _ if several => step(name, move |list: Vec<i64>| later(sum(list))),
        _ => step(name, later),
    };
    vec![component.after(parents)]
}
