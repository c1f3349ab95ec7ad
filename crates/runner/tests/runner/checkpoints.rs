//! When the progress of work in `sync` mode is stored.

use tidewheel_core::policy::{self, ExecutionMode, Policy};
use tidewheel_core::workflow::{Workflow, step};
use tidewheel_runner::{Checkpoints, RunnerOptions, StartOptions};
use tidewheel_store::Status;

use crate::world::{Gate, Watched, count, log};

/// A chain of ten steps in `sync` mode; the sixth waits for a word.
fn chain(gate: &Gate) -> Workflow {
    let mut components = Vec::new();
    for number in 0..10 {
        let gate = gate.clone();
        components.push(step(format!("s{number}"), move |x: i64| {
            let gate = gate.clone();
            async move {
                if number == 5 {
                    gate.pass().await;
                }
                x + 1
            }
        }));
    }
    Workflow::new("chain")
        .pipeline(components)
        .policy(policy::default(), Policy::new().execution_mode(ExecutionMode::Sync))
        .build()
        .expect("a sound workflow")
}

/// Returns how many facts are stored in the middle, and how many writes there were in all.
async fn writes(checkpoints: Checkpoints) -> (usize, usize) {
    let (store, gate) = (Watched::new(), Gate::new());
    let runner = store.runner(RunnerOptions::new()).await;
    let options = StartOptions::new().checkpoints(checkpoints);
    let run = runner.start_with("first", &chain(&gate), &options).await.expect("a run");
    store.forget();
    run.input(0_i64).await.expect("an input");
    gate.began().await;
    let middle = count(&log(&store, "first").await, "fact_produced");
    if checkpoints == Checkpoints::Manual {
        run.checkpoint().await.expect("a checkpoint");
        assert_eq!(count(&log(&store, "first").await, "fact_produced"), 6);
    }
    gate.open(1);
    assert_eq!(run.wait().await.expect("an end"), Status::Completed);
    // Whatever the strategy, all is stored when nothing is left to do.
    assert_eq!(count(&log(&store, "first").await, "fact_produced"), 11);
    let all = store.appends().len();
    // And it is all there for the next one.
    runner.shutdown().await;
    let runner = store.runner(RunnerOptions::new()).await;
    let run = runner.start("first", &chain(&gate)).await.expect("a run");
    assert_eq!(run.result::<i64>("s9").await.expect("a result"), 10);
    (middle, all)
}

#[tokio::test(start_paused = true)]
async fn i6_every_cycle() {
    let (middle, all) = writes(Checkpoints::EveryCycle).await;
    assert!(middle >= 5, "{middle}");
    assert!(all >= 6, "{all}");
}

#[tokio::test(start_paused = true)]
async fn i6_every_few_cycles() {
    let (middle, all) = writes(Checkpoints::EveryN(3)).await;
    assert!((2..=5).contains(&middle), "{middle}");
    assert!((3..=7).contains(&all), "{all}");
}

#[tokio::test(start_paused = true)]
async fn i6_on_complete() {
    assert_eq!(writes(Checkpoints::OnComplete).await, (1, 2), "the input, and the end");
}

#[tokio::test(start_paused = true)]
async fn i6_when_somebody_asks() {
    assert_eq!(writes(Checkpoints::Manual).await, (1, 3), "the input, the checkpoint, and the end");
}
