//! Runs come to the same end as in memory, and what they came to is stored.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tidewheel_core::policy::{self, Backoff, Failure, Policy};
use tidewheel_core::workflow::{Workflow, step};
use tidewheel_runner::{Runner, RunnerOptions};
use tidewheel_store::Status;

fn numbers() -> Workflow {
    Workflow::new("numbers")
        .add(step("inc", |x: i64| x + 1))
        .add(step("double", |x: i64| x * 2).after("inc"))
        .add(step("sum", |inc: i64, double: i64| inc + double).after(["inc", "double"]))
        .build()
        .expect("a sound workflow")
}

#[tokio::test]
async fn a_run_in_memory_comes_to_its_result() {
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let run = runner.run("first", &numbers(), 1_i64).await.unwrap();
    assert_eq!(run.result::<i64>("sum").await.unwrap(), 6);
    assert_eq!(run.wait().await.unwrap(), Status::Completed);
    runner.shutdown().await;
}

#[tokio::test]
async fn a_run_is_there_when_the_store_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let runner = Runner::open(&path).await.unwrap();
    let run = runner.start("first", &numbers()).await.unwrap();
    run.input_keyed("one", 1_i64).await.unwrap();
    run.input_keyed("one", 1_i64).await.unwrap();
    assert_eq!(run.result::<i64>("sum").await.unwrap(), 6);
    runner.shutdown().await;

    let runner = Runner::open(&path).await.unwrap();
    let run = runner.start("first", &numbers()).await.unwrap();
    run.input_keyed("one", 1_i64).await.unwrap();
    assert_eq!(run.results::<i64>("sum").await.unwrap(), [6]);
    run.input(2_i64).await.unwrap();
    assert_eq!(run.result::<i64>("sum").await.unwrap(), 9);
    runner.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_flaky_step_is_tried_again() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let flaky = move |x: i64| {
        let calls = Arc::clone(&counted);
        async move {
            if calls.fetch_add(1, Ordering::Relaxed) < 2 { Err(Failure::new("busy")) } else { Ok(x + 1) }
        }
    };
    let workflow = Workflow::new("flaky")
        .add(step("inc", flaky))
        .policy(policy::default(), Policy::new().max_retries(3).backoff(Backoff::exponential()))
        .build()
        .unwrap();
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let began = tokio::time::Instant::now();
    let run = runner.run("first", &workflow, 1_i64).await.unwrap();
    assert_eq!(run.result::<i64>("inc").await.unwrap(), 2);
    assert_eq!(calls.load(Ordering::Relaxed), 3);
    assert_eq!(began.elapsed().as_millis(), 1_500);
    runner.shutdown().await;
}
