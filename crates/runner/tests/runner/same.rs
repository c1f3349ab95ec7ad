//! Workflows of every kind come to the same productions in the same order as in process.

use std::time::Duration;

use serde_json::Value;
use tidewheel_core::event::Absence;
use tidewheel_core::fact::FactId;
use tidewheel_core::run::Run;
use tidewheel_core::workflow::{Workflow, accumulator, map, reduce, rule, state_machine, step};
use tidewheel_runner::{Executor, Runner, RunnerOptions};
use tidewheel_store::Status;

use crate::world::{Disk, numbers};

/// Everything that must not depend on who ran what when, and where it was stored in between.
#[derive(Debug, PartialEq)]
pub(crate) struct Outcome {
    facts: Vec<(FactId, Option<String>, Value, u32, u32)>,
    failures: Vec<(Option<String>, String, u32)>,
    absences: Vec<(String, u32, Option<Absence>)>,
    is_runnable: bool,
}

pub(crate) fn outcome(run: &Run, workflow: &Workflow) -> Outcome {
    let facts = run.reactions().into_iter().map(|fact| {
        let producer = fact.producer.map(str::to_owned);
        (fact.id, producer, fact.value.to_json().expect("JSON"), fact.depth, fact.input)
    });
    let mut failures: Vec<_> = run
        .failures()
        .into_iter()
        .map(|failed| (failed.component.map(str::to_owned), failed.failure.message.clone(), failed.input))
        .collect();
    failures.sort();
    let absences = workflow.components().flat_map(|name| {
        (0..run.inputs_len()).map(|input| (name.to_owned(), input, run.absence(name, input)))
    });
    Outcome { facts: facts.collect(), failures, absences: absences.collect(), is_runnable: run.is_runnable() }
}

/// Runs a workflow in process, all inputs in flight at once.
pub(crate) fn serial(id: &str, workflow: &Workflow, inputs: &[i64]) -> Outcome {
    let mut run = workflow.run(id);
    for input in inputs {
        run.plan(*input);
    }
    run.run_until_satisfied().expect("no policy acts");
    outcome(&run, workflow)
}

/// Runs it through a runner, all inputs in flight at once.
pub(crate) async fn driven(runner: &Runner, id: &str, workflow: &Workflow, inputs: &[i64]) -> Outcome {
    let run = runner.start(id, workflow).await.expect("a run");
    for input in inputs {
        run.input(*input).await.expect("an input");
    }
    run.wait().await.expect("an end");
    outcome(&run.state().await.expect("a run"), workflow)
}

/// Lets others go first so many times, in a runtime or without one.
async fn wait(mut turns: i64) {
    std::future::poll_fn(|task| {
        turns -= 1;
        task.waker().wake_by_ref();
        if turns > 0 { std::task::Poll::Pending } else { std::task::Poll::Ready(()) }
    })
    .await;
}

fn kinds() -> Vec<Workflow> {
    let build = |builder: tidewheel_core::workflow::WorkflowBuilder| builder.build().expect("sound");
    vec![
        build(Workflow::new("chain").pipeline([
            step("a", |x: i64| x + 1),
            step("b", |x: i64| async move { x * 2 }),
            step("c", |x: i64| x - 3),
        ])),
        build(
            Workflow::new("branch")
                .add(step("a", |x: i64| x + 1))
                .add(step("b", |x: i64| x + 2).after("a"))
                .add(step("c", |x: i64| x + 4).after("a")),
        ),
        numbers(),
        build(
            Workflow::new("rules")
                .add(rule("double").when(|x: &i64| *x > 0).then(|x: i64| x * 2))
                .add(rule("triple").when(|x: &i64| *x < 0).then(|x: i64| x * 3))
                .add(rule("half").when(|x: &i64| x % 2 == 0).then(|x: i64| x / 2)),
        ),
        build(
            Workflow::new("map_reduce")
                .add(step("list", |x: i64| (0..x.rem_euclid(6)).collect::<Vec<_>>()))
                .add(
                    map("item", |x: i64| async move {
                        wait(10 - x).await;
                        if x == 4 { Err("no fours".to_owned()) } else { Ok(x * 2) }
                    })
                    .after("list"),
                )
                .add(reduce("sum", 0_i64, |sum: i64, x: i64| sum * 31 + x).after("item")),
        ),
        build(Workflow::new("accumulator").add(accumulator("sum", 0, |sum: i64, x: i64| sum * 31 + x))),
        build(
            Workflow::new("machine").add(
                state_machine(
                    "lock",
                    "locked".to_owned(),
                    |state: String, x: i64| {
                        if x == 7 { "open".to_owned() } else { state }
                    },
                )
                .reactor(
                    "greet",
                    |state: &String| state == "open",
                    |_: String| "welcome".to_owned(),
                ),
            ),
        ),
    ]
}

const INPUTS: [i64; 6] = [2, -3, 7, 5, 7, 4];

#[tokio::test(start_paused = true)]
async fn i2_every_kind_in_memory_and_with_every_executor() {
    for executor in [Executor::Threads, Executor::Tasks, Executor::Inline] {
        let runner = Runner::in_memory(RunnerOptions::new().executor(executor)).await.unwrap();
        for workflow in kinds() {
            let name = workflow.name().to_owned();
            let found = driven(&runner, &name, &workflow, &INPUTS).await;
            assert_eq!(found, serial(&name, &workflow, &INPUTS), "{name}, {executor:?}");
        }
        runner.shutdown().await;
    }
}

#[tokio::test]
async fn i2_every_kind_on_disk_and_after_it_was_opened_again() {
    let disk = Disk::new();
    let (runner, store) = disk.open().await;
    for workflow in kinds() {
        let name = workflow.name().to_owned();
        assert_eq!(driven(&runner, &name, &workflow, &INPUTS).await, serial(&name, &workflow, &INPUTS));
    }
    runner.shutdown().await;
    store.close().await;
    let (runner, _store) = disk.open().await;
    for workflow in kinds() {
        let name = workflow.name().to_owned();
        let run = runner.start(name.as_str(), &workflow).await.unwrap();
        let state = run.state().await.unwrap();
        assert_eq!(outcome(&state, &workflow), serial(&name, &workflow, &INPUTS), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn i5_one_input_after_the_other() {
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let run = runner.start("first", &numbers()).await.unwrap();
    for input in 0..5_i64 {
        run.input(input).await.unwrap();
        assert_eq!(run.result::<i64>("sum").await.unwrap(), (input + 1) * 3);
    }
    assert_eq!(run.results::<i64>("inc").await.unwrap(), [1, 2, 3, 4, 5]);
    assert_eq!(run.wait().await.unwrap(), Status::Completed);
}

#[tokio::test(start_paused = true)]
async fn i5_inputs_in_flight_through_an_accumulator_count_in_their_order() {
    let later = |x: u64| async move {
        // Later inputs are ready earlier.
        tokio::time::sleep(Duration::from_millis(1_000 - x)).await;
        x
    };
    let workflow = Workflow::new("list")
        .add(step("later", later))
        .add(
            accumulator("all", Vec::new(), |mut all: Vec<u64>, x: u64| {
                all.push(x);
                all
            })
            .after("later"),
        )
        .build()
        .unwrap();
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let run = runner.start("first", &workflow).await.unwrap();
    for input in 0..200_u64 {
        run.input(input).await.unwrap();
    }
    assert_eq!(run.result::<Vec<u64>>("all").await.unwrap(), (0..200).collect::<Vec<_>>());
}
