//! What a result is, when there is none, and that nobody sees what is not stored.

use std::time::Duration;

use tidewheel_core::event::Absence;
use tidewheel_core::policy::{self, ExecutionMode, OnFailure, Policy};
use tidewheel_core::workflow::{Workflow, rule, step};
use tidewheel_runner::{Checkpoints, InputError, ResultError, Runner, RunnerOptions, StartOptions};
use tidewheel_store::Status;

use crate::world::{Gate, Watched, gated, numbers};

fn troubled() -> Workflow {
    Workflow::new("troubled")
        .add(step("fails", |_: i64| Err::<i64, _>("no way".to_owned())))
        .add(step("after", |x: i64| x).after("fails"))
        .add(step("skipped", |_: i64| Err::<i64, _>("never mind".to_owned())))
        .add(step("after_skipped", |x: i64| x).after("skipped"))
        .add(rule("big").when(|x: &i64| *x > 100).then(|x: i64| x))
        .add(step("fine", |x: i64| format!("number {x}")))
        .policy(policy::name("skipped"), Policy::new().on_failure(OnFailure::Skip))
        .build()
        .expect("a sound workflow")
}

#[tokio::test(start_paused = true)]
async fn there_is_no_result_and_the_error_says_why() {
    for executed_here in [true, false] {
        let store = Watched::new();
        let mut runner = store.runner(RunnerOptions::new()).await;
        let mut run = runner.start("first", &troubled()).await.unwrap();
        assert!(matches!(run.result::<i64>("fine").await, Err(ResultError::NoInput { .. })));
        run.input(1_i64).await.unwrap();
        assert_eq!(run.wait().await.unwrap(), Status::Failed);
        if !executed_here {
            // From the store, that is.
            runner.shutdown().await;
            runner = store.runner(RunnerOptions::new()).await;
            run = runner.start("first", &troubled()).await.unwrap();
            tokio::time::sleep(Duration::from_secs(60)).await;
        }
        let error = run.result::<i64>("fails").await.unwrap_err();
        assert_eq!(error.to_string(), "`fails` failed: no way");
        let error = run.result::<i64>("after").await.unwrap_err();
        assert_eq!(error.to_string(), "`after` has no result: something before it failed");
        assert!(matches!(error, ResultError::Absent { reason: Some(Absence::UpstreamFailed), .. }));
        let error = run.result::<i64>("skipped").await.unwrap_err();
        assert_eq!(error.to_string(), "`skipped` was skipped after it failed: never mind");
        assert!(matches!(error, ResultError::Skipped { .. }), "{error:?}");
        let error = run.result::<i64>("after_skipped").await.unwrap_err();
        assert_eq!(error.to_string(), "`after_skipped` has no result: something before it was skipped");
        let error = run.result::<i64>("big").await.unwrap_err();
        assert!(error.to_string().starts_with("`big` has no result: its condition"), "{error}");
        let error = run.result::<i64>("nobody").await.unwrap_err();
        assert_eq!(error.to_string(), "the workflow has no component `nobody`");
        let error = run.result::<i64>("fails_").await.unwrap_err();
        assert_eq!(error.to_string(), "the workflow has no component `fails_`; near to it are `fails`");
        let error = run.results::<i64>("nobody").await.unwrap_err();
        assert!(matches!(error, ResultError::NoComponent { .. }));
        let error = run.result::<i64>("fine").await.unwrap_err();
        assert!(matches!(error, ResultError::Type(_)), "{error}");
        assert_eq!(run.result::<String>("fine").await.unwrap(), "number 1");
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_is_that_of_the_last_input_and_results_are_all() {
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let run = runner.run("first", &troubled(), 101_i64).await.unwrap();
    assert_eq!(run.result::<i64>("big").await.unwrap(), 101);
    run.input(2_i64).await.unwrap();
    assert!(matches!(run.result::<i64>("big").await, Err(ResultError::Absent { .. })));
    assert_eq!(run.results::<i64>("big").await.unwrap(), [101]);
}

#[tokio::test(start_paused = true)]
async fn a_run_without_an_input_that_was_given_back_has_no_result_either() {
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let run = runner.start("first", &numbers()).await.unwrap();
    // Long enough that it does not stay in memory.
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(matches!(run.result::<i64>("sum").await, Err(ResultError::NoInput { .. })));
    assert_eq!(run.wait().await.unwrap(), Status::Waiting);
}

#[tokio::test(start_paused = true)]
async fn nobody_sees_a_result_before_it_is_stored() {
    let store = Watched::new();
    let runner = store.runner(RunnerOptions::new()).await;
    let run = runner.run("first", &numbers(), 1_i64).await.unwrap();
    assert_eq!(run.result::<i64>("sum").await.unwrap(), 6);
    store.hold(true);
    let input = tokio::spawn({
        let run = run.clone();
        async move { run.input(2_i64).await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!input.is_finished(), "an input is acknowledged when it is stored");
    let mut result = tokio::spawn({
        let run = run.clone();
        async move { run.result::<i64>("inc").await }
    });
    let waited = tokio::time::timeout(Duration::from_secs(5), &mut result).await;
    assert!(waited.is_err(), "{waited:?}");
    store.hold(false);
    input.await.unwrap().unwrap();
    assert_eq!(result.await.unwrap().unwrap(), 3);
}

#[tokio::test(start_paused = true)]
async fn nobody_sees_results_before_they_are_stored() {
    let (store, gate) = (Watched::new(), Gate::new());
    let runner = store.runner(RunnerOptions::new()).await;
    let run = runner.run("first", &gated(&gate), 1_i64).await.unwrap();
    gate.began().await;
    store.hold(true);
    gate.open(1);
    while run.state().await.unwrap().productions().is_empty() {
        tokio::task::yield_now().await;
    }
    let mut results = tokio::spawn({
        let run = run.clone();
        async move { run.results::<i64>("inc").await }
    });
    let waited = tokio::time::timeout(Duration::from_secs(5), &mut results).await;
    assert!(waited.is_err(), "{waited:?}");
    store.hold(false);
    assert_eq!(results.await.unwrap().unwrap(), [2]);
}

#[tokio::test(start_paused = true)]
async fn an_input_is_acknowledged_when_it_is_stored() {
    let store = Watched::new();
    let runner = store.runner(RunnerOptions::new()).await;
    let run = runner.start("first", &numbers()).await.unwrap();
    store.hold(true);
    let input = tokio::spawn({
        let run = run.clone();
        async move { run.input(2_i64).await }
    });
    let result = tokio::spawn({
        let run = run.clone();
        async move {
            while run.state().await.unwrap().inputs_len() == 0 {
                tokio::task::yield_now().await;
            }
            run.result::<i64>("inc").await
        }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!input.is_finished() && !result.is_finished());
    store.hold(false);
    input.await.unwrap().unwrap();
    assert_eq!(result.await.unwrap().unwrap(), 3);
}

/// Work in `sync` mode ends before anything is stored of it.
#[tokio::test(start_paused = true)]
async fn nobody_sees_what_a_checkpoint_has_not_stored() {
    let workflow = Workflow::new("sync")
        .add(step("inc", |x: i64| x + 1))
        .add(
            step("slow", |x: i64| async move {
                tokio::time::sleep(Duration::from_secs(10)).await;
                x
            })
            .after("inc"),
        )
        .policy(policy::default(), Policy::new().execution_mode(ExecutionMode::Sync))
        .build()
        .unwrap();
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let options = StartOptions::new().checkpoints(Checkpoints::OnComplete);
    let run = runner.run_with("first", &workflow, 1_i64, &options).await.unwrap();
    let began = tokio::time::Instant::now();
    assert_eq!(run.result::<i64>("inc").await.unwrap(), 2);
    assert_eq!(began.elapsed().as_secs(), 10, "it is stored when all is over");
}

#[tokio::test(start_paused = true)]
async fn an_input_that_json_cannot_hold_is_refused_and_changes_nothing() {
    let workflow = Workflow::new("pairs")
        .add(step("len", |map: std::collections::BTreeMap<(i32, i32), i32>| map.len()))
        .build()
        .unwrap();
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let run = runner.start("first", &workflow).await.unwrap();
    let bad = std::collections::BTreeMap::from([((1, 2), 3)]);
    let error = run.input(bad.clone()).await.unwrap_err();
    assert!(matches!(error, InputError::Unserialisable(_)), "{error:?}");
    let error = runner.run("second", &workflow, bad).await.unwrap_err();
    assert_eq!(error.to_string(), "the input cannot be stored");
    run.input(std::collections::BTreeMap::<(i32, i32), i32>::new()).await.unwrap();
    assert_eq!(run.result::<usize>("len").await.unwrap(), 0);
    assert_eq!(run.state().await.unwrap().inputs_len(), 1);
}
