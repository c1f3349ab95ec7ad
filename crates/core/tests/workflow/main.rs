//! Workflows as people drive them: the scenarios, by their names.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod compose;
mod context;
mod core_loop;
mod driven;
mod halts;
mod joins;
mod maps;
mod panics;
mod pictures;
mod policies;
mod ports;
mod reopen;
mod replay;
mod rules;
mod states;
mod undo;
mod waits;

use serde_json::Value;
use tidewheel_core::run::Run;
use tidewheel_core::workflow::Workflow;

/// Runs one input to the end.
fn ran<T: tidewheel_core::fact::Payload>(workflow: &Workflow, input: T) -> Run {
    let mut run = workflow.run("test");
    run.react_until_satisfied(input).unwrap();
    run
}

/// The values that were produced, in order.
fn produced(run: &Run) -> Vec<Value> {
    run.productions().into_iter().map(|fact| fact.value.to_json().unwrap()).collect()
}

/// The values that were produced, sorted, for scenarios that speak of sets.
fn produced_set(run: &Run) -> Vec<i64> {
    let mut values: Vec<i64> =
        run.productions().iter().filter_map(|fact| fact.value.get::<i64>().ok()).collect();
    values.sort_unstable();
    values
}

fn inc(x: i64) -> i64 {
    x + 1
}

fn double(x: i64) -> i64 {
    x * 2
}
