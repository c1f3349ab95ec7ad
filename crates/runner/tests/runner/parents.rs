//! Steps that start other runs and wait for them: they lend their slots meanwhile, so that nothing deadlocks.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidewheel_core::policy::Failure;
use tidewheel_core::workflow::{Workflow, step};
use tidewheel_runner::{Runner, RunnerOptions};
use tidewheel_store::Status;
use tokio::sync::Semaphore;

/// Returns a workflow whose step starts a run for what is below it and waits for that; `0` is below nothing.
fn nested(runner: &Runner, name: &str, below: Option<Workflow>) -> Workflow {
    let runner = runner.clone();
    let name = name.to_owned();
    let child = name.clone();
    let work = move |id: u64| {
        let (runner, below, child) = (runner.clone(), below.clone(), child.clone());
        async move {
            let Some(below) = below else { return Ok(id) };
            let run = runner.run(format!("{child}-{id}-below").as_str(), &below, id).await;
            let run = run.map_err(|error| Failure::new(error.to_string()))?;
            // Several at once, and both ways to wait.
            let (value, status) = tokio::join!(run.result::<u64>("step"), run.wait());
            assert_eq!(status.map_err(|error| Failure::new(error.to_string()))?, Status::Completed);
            Ok::<u64, Failure>(value.map_err(|error| Failure::new(error.to_string()))? + 1)
        }
    };
    Workflow::new(&name).add(step("step", work)).build().expect("sound")
}

async fn all_finish(options: RunnerOptions, parents: u64) {
    let runner = Runner::in_memory(options).await.expect("sound");
    let grandchild = nested(&runner, "grandchild", None);
    let child = nested(&runner, "child", Some(grandchild));
    let parent = nested(&runner, "parent", Some(child));
    let mut runs = Vec::new();
    for id in 0..parents {
        runs.push(runner.run(format!("parent-{id}").as_str(), &parent, id).await.expect("sound"));
    }
    for (id, run) in (0..).zip(&runs) {
        assert_eq!(run.result::<u64>("step").await.expect("sound"), id + 2);
    }
}

/// 256 parents that waited for children they had started filled all slots, and nothing went on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_parents_than_slots_wait_for_their_children_and_all_finish() {
    all_finish(RunnerOptions::new().max_concurrency(256), 300).await;
}

#[tokio::test]
async fn parents_finish_with_a_single_slot() {
    all_finish(RunnerOptions::new().max_concurrency(1), 20).await;
}

#[tokio::test]
async fn parents_finish_where_only_one_run_may_be_active() {
    all_finish(RunnerOptions::new().max_concurrency(1).max_active_runs(1), 5).await;
}

/// A step that says that it begins and waits for a word.
fn held(name: &str, gate: &Arc<Semaphore>, order: &Arc<Mutex<Vec<String>>>) -> Workflow {
    let (gate, order, who) = (Arc::clone(gate), Arc::clone(order), name.to_owned());
    let work = move |x: u64| {
        order.lock().expect("sound").push(who.clone());
        let gate = Arc::clone(&gate);
        async move {
            gate.acquire().await.expect("sound").forget();
            x
        }
    };
    Workflow::new(name).add(step("held", work)).build().expect("sound")
}

/// New work would keep those from going on that lent their slot.
#[tokio::test(start_paused = true)]
async fn a_step_gets_its_slot_back_before_new_work_begins() {
    let runner = Runner::in_memory(RunnerOptions::new().max_concurrency(1)).await.unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let (gate, others) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let child = held("child", &gate, &order);
    let waits = {
        let (runner, order) = (runner.clone(), Arc::clone(&order));
        move |x: u64| {
            let (runner, child, order) = (runner.clone(), child.clone(), Arc::clone(&order));
            async move {
                let run = runner.run("child", &child, x).await.unwrap();
                let value = run.result::<u64>("held").await.unwrap();
                order.lock().unwrap().push("parent".to_owned());
                value
            }
        }
    };
    let parent = Workflow::new("parent").add(step("waits", waits)).build().unwrap();
    let parent = runner.run("parent", &parent, 7_u64).await.unwrap();
    // The clock of the test moves on when nothing else can happen.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let other = held("other", &others, &order);
    for number in 0..5_u64 {
        runner.run(format!("other-{number}").as_str(), &other, number).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(*order.lock().unwrap(), ["child"], "it has the only slot");
    gate.add_permits(1);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(*order.lock().unwrap(), ["child", "other"], "the slot was free before its result was stored");
    others.add_permits(1);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(*order.lock().unwrap(), ["child", "other", "parent", "other"]);
    assert_eq!(parent.result::<u64>("waits").await.unwrap(), 7);
    others.add_permits(4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocking_step_that_would_wait_gets_an_error_that_says_so() {
    let runner = Runner::in_memory(RunnerOptions::new().max_concurrency(1)).await.unwrap();
    let child = nested(&runner, "child", None);
    let waits = {
        let (runner, here) = (runner.clone(), tokio::runtime::Handle::current());
        move |x: u64| {
            let run = here.block_on(runner.run("child", &child, x)).unwrap();
            here.block_on(run.result::<u64>("step")).map_err(|error| Failure::new(error.to_string()))
        }
    };
    let parent = Workflow::new("parent").add(step("waits", waits)).build().unwrap();
    let run = runner.run("parent", &parent, 7_u64).await.unwrap();
    let error = run.result::<u64>("waits").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "`waits` failed: a blocking step cannot wait for run `child`, which may need its slot: make the step async"
    );
    assert_eq!(runner.get("child").await.unwrap().wait().await.unwrap(), Status::Completed);
}
