//! A run that is stopped is resumed where it was.

use tidewheel_core::fact::RunId;
use tidewheel_core::workflow::{Workflow, step};
use tidewheel_runner::{CommandError, InputError, ResultError, Runner, RunnerOptions, StartError};
use tidewheel_store::{Status, Store as _};

use crate::world::{Gate, Watched, count, gated, log};

#[tokio::test(start_paused = true)]
async fn i7_stop_and_resume_keep_the_productions() {
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let gate = Gate::new();
    let held = {
        let gate = gate.clone();
        move |x: i64| {
            let gate = gate.clone();
            async move {
                gate.pass().await;
                x
            }
        }
    };
    let workflow = Workflow::new("sum")
        .add(step("inc", |x: i64| x + 1))
        .add(step("double", |x: i64| x * 2).after("inc"))
        .add(step("sum", |inc: i64, double: i64| inc + double).after(["inc", "double"]))
        .add(step("held", held))
        .build()
        .unwrap();
    let run = runner.run("first", &workflow, 1_i64).await.unwrap();
    assert_eq!(run.result::<i64>("sum").await.unwrap(), 6);
    gate.began().await;
    let before: Vec<i64> = run.results("sum").await.unwrap();
    run.stop().await.unwrap();
    assert_eq!(run.status().await.unwrap(), Status::Stopped);
    assert_eq!(run.result::<i64>("sum").await.unwrap(), 6, "what is stored can be read");
    let run = runner.resume("first").await.unwrap();
    assert_eq!(run.results::<i64>("sum").await.unwrap(), before);
    run.input(2_i64).await.unwrap();
    assert_eq!(run.result::<i64>("sum").await.unwrap(), 9);
}

#[tokio::test(start_paused = true)]
async fn i7_resume_and_stop_of_an_unknown_run_are_not_found() {
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let error = runner.resume("nobody").await.unwrap_err();
    assert!(
        matches!(&error, CommandError::Start(StartError::NotFound { run }) | CommandError::NotFound { run }
            if run.as_str() == "nobody"),
        "{error:?}"
    );
    let error = runner.stop("nobody").await.unwrap_err();
    assert!(matches!(&error, CommandError::NotFound { run } if run.as_str() == "nobody"), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn i7_work_under_way_is_given_up_and_offered_again_and_never_counts_as_lost() {
    let gate = Gate::new();
    let store = Watched::new();
    let runner = store.runner(RunnerOptions::new()).await;
    let run = runner.run("first", &gated(&gate), 1_i64).await.unwrap();
    for stops in 0..5 {
        gate.began().await;
        run.stop().await.unwrap();
        assert_eq!(run.status().await.unwrap(), Status::Stopped);
        let record = store.find(&RunId::new("first")).await.unwrap().unwrap();
        assert_eq!((record.owner, record.wake_at), (None, None));
        let error = run.input(2_i64).await.unwrap_err();
        assert!(matches!(error, InputError::Over { status: Status::Stopped, .. }), "{error:?}");
        let error = run.result::<i64>("inc").await.unwrap_err();
        assert!(matches!(error, ResultError::Over { status: Status::Stopped, .. }), "{error:?}");
        assert_eq!(count(&log(&store, "first").await, "runnable_released"), stops + 1);
        run.resume().await.unwrap();
    }
    gate.began().await;
    gate.open(1);
    assert_eq!(run.result::<i64>("inc").await.unwrap(), 2);
    assert_eq!(gate.count(), 6);
    let attempts: Vec<u64> = log(&store, "first")
        .await
        .iter()
        .filter(|(name, _)| name == "runnable_dispatched")
        .filter_map(|(_, event)| event["attempt"].as_u64())
        .collect();
    assert_eq!(attempts, [0; 6], "the same attempt every time");
}

/// The dispatch was on its way to the store when the run was stopped: it must not look like a lost one.
#[tokio::test(start_paused = true)]
async fn i7_a_stop_while_a_dispatch_is_being_stored_gives_it_back() {
    let gate = Gate::new();
    let store = Watched::new();
    let runner = store.runner(RunnerOptions::new()).await;
    let run = runner.start("first", &gated(&gate)).await.unwrap();
    for _ in 0..5 {
        store.hold(true);
        let (input, stop) = tokio::join!(run.input_keyed("one", 1_i64), async {
            tokio::task::yield_now().await;
            let stop = tokio::spawn({
                let run = run.clone();
                async move { run.stop().await }
            });
            tokio::task::yield_now().await;
            store.hold(false);
            stop.await.unwrap()
        });
        input.unwrap();
        stop.unwrap();
        run.resume().await.unwrap();
    }
    gate.open(1);
    assert_eq!(run.result::<i64>("inc").await.unwrap(), 2);
    assert_eq!(run.wait().await.unwrap(), Status::Completed);
    let events = log(&store, "first").await;
    assert_eq!(count(&events, "runnable_dispatched"), count(&events, "runnable_released") + 1);
}

#[tokio::test(start_paused = true)]
async fn stopping_twice_at_once_is_one_stop() {
    let gate = Gate::new();
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let run = runner.run("first", &gated(&gate), 1_i64).await.unwrap();
    gate.began().await;
    let (one, other) = tokio::join!(run.stop(), run.stop());
    one.unwrap();
    other.unwrap();
    run.stop().await.unwrap();
    assert_eq!(run.status().await.unwrap(), Status::Stopped);
}

/// An input that a stopped run refuses loads it; it must go back to the store, where it can be resumed.
#[tokio::test(start_paused = true)]
async fn a_stopped_run_that_somebody_looked_at_can_be_resumed_and_cancelled() {
    let gate = Gate::new();
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let run = runner.run("first", &gated(&gate), 1_i64).await.unwrap();
    gate.began().await;
    run.stop().await.unwrap();
    run.input(5_i64).await.unwrap_err();
    run.resume().await.unwrap();
    gate.began().await;
    run.stop().await.unwrap();
    run.cancel().await.unwrap();
    assert_eq!(run.status().await.unwrap(), Status::Cancelled);
    assert_eq!(run.wait().await.unwrap(), Status::Cancelled);
    assert_eq!(run.state().await.unwrap().failures().len(), 1);
}
