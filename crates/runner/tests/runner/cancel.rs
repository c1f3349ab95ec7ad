//! A run or a piece of work is cancelled, and what is under way learns of it.

use std::sync::Arc;

use tidewheel_core::event::Absence;
use tidewheel_core::fact::RunnableId;
use tidewheel_core::work::Context;
use tidewheel_core::workflow::{Workflow, step};
use tidewheel_runner::{
    CommandError, CommandOutcome, InputError, ResultError, RunHandle, Runner, RunnerOptions,
};
use tidewheel_store::Status;
use tokio::sync::Notify;

use crate::world::{Gate, gated};

struct Dropped(Arc<Notify>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[tokio::test(start_paused = true)]
async fn async_work_of_a_cancelled_run_is_dropped() {
    let (gate, dropped) = (Gate::new(), Arc::new(Notify::new()));
    let workflow = {
        let (gate, dropped) = (gate.clone(), Arc::clone(&dropped));
        let work = move |x: i64| {
            let (gate, guard) = (gate.clone(), Dropped(Arc::clone(&dropped)));
            async move {
                gate.pass().await;
                drop(guard);
                x
            }
        };
        Workflow::new("held")
            .add(step("hold", work))
            .add(step("after", |x: i64| x).after("hold"))
            .build()
            .unwrap()
    };
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let run = runner.run("first", &workflow, 1_i64).await.unwrap();
    gate.began().await;
    run.cancel().await.unwrap();
    dropped.notified().await;
    assert_eq!(run.status().await.unwrap(), Status::Cancelled);
    assert_eq!(run.wait().await.unwrap(), Status::Cancelled);
    let error = run.input(2_i64).await.unwrap_err();
    assert_eq!(error.to_string(), "run `first` is cancelled and takes no input");
    assert!(matches!(error, InputError::Over { status: Status::Cancelled, .. }));
    let error = run.result::<i64>("hold").await.unwrap_err();
    assert!(matches!(error, ResultError::Over { status: Status::Cancelled, .. }), "{error}");
    let state = run.state().await.unwrap();
    assert_eq!(state.failures()[0].failure.to_string(), "[cancelled] somebody cancelled the run");
    assert_eq!(state.absence("after", 0), Some(Absence::UpstreamFailed));
    // Again, started again, and resumed: it stays as it is.
    assert_eq!(run.cancel().await.unwrap(), CommandOutcome::AlreadySo);
    let error = run.resume().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "run `first` is cancelled, and resume has no effect: it was cancelled, and goes on no more"
    );
    runner.start("first", &workflow).await.unwrap();
    assert_eq!(run.wait().await.unwrap(), Status::Cancelled);
    assert_eq!(gate.count(), 1);
}

#[tokio::test]
async fn blocking_work_of_a_cancelled_run_is_told() {
    let (began, told) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let workflow = {
        let (began, told) = (Arc::clone(&began), Arc::clone(&told));
        let work = move |context: Context, x: i64| {
            began.notify_one();
            while !context.cancellation().is_cancelled() {
                std::thread::yield_now();
            }
            told.notify_one();
            x
        };
        Workflow::new("busy").add(step("work", work)).build().unwrap()
    };
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let run = runner.run("first", &workflow, 1_i64).await.unwrap();
    began.notified().await;
    run.cancel().await.unwrap();
    told.notified().await;
    assert_eq!(run.wait().await.unwrap(), Status::Cancelled);
    assert_eq!(run.results::<i64>("work").await.unwrap(), Vec::<i64>::new(), "its result is not taken");
}

#[tokio::test(start_paused = true)]
async fn one_piece_of_work_is_cancelled_and_the_others_go_on() {
    let gate = Gate::new();
    let wait = |gate: &Gate| {
        let gate = gate.clone();
        move |x: i64| {
            let gate = gate.clone();
            async move {
                gate.pass().await;
                x
            }
        }
    };
    let workflow = Workflow::new("two")
        .add(step("one", wait(&gate)))
        .add(step("other", wait(&gate)))
        .add(step("after", |x: i64| x).after("one"))
        .build()
        .unwrap();
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let run = runner.run("first", &workflow, 1_i64).await.unwrap();
    gate.began().await;
    gate.began().await;
    let work = pending(&run).await[0];
    run.cancel_work(work).await.unwrap();
    let error = run.cancel_work(work).await.unwrap_err();
    assert!(matches!(error, CommandError::NoWork { .. }), "{error}");
    gate.open(2);
    assert_eq!(run.wait().await.unwrap(), Status::Failed);
    assert_eq!(run.result::<i64>("other").await.unwrap(), 1);
    let error = run.result::<i64>("one").await.unwrap_err();
    assert_eq!(error.to_string(), "`one` failed: [cancelled] somebody cancelled it");
    assert_eq!(run.state().await.unwrap().absence("after", 0), Some(Absence::UpstreamFailed));
}

async fn pending(run: &RunHandle) -> Vec<RunnableId> {
    run.state().await.expect("a run").pending_runnables()
}

/// The dispatch was on its way to the store when the work was cancelled: it must not start afterwards.
#[tokio::test(start_paused = true)]
async fn work_that_is_cancelled_while_its_dispatch_is_stored_does_not_start() {
    let (gate, store) = (Gate::new(), crate::world::Watched::new());
    let runner = store.runner(RunnerOptions::new()).await;
    let run = runner.start("first", &gated(&gate)).await.unwrap();
    store.hold(true);
    let input = tokio::spawn({
        let run = run.clone();
        async move { run.input(1_i64).await }
    });
    while pending(&run).await.is_empty() {
        tokio::task::yield_now().await;
    }
    let work = pending(&run).await[0];
    let cancel = tokio::spawn({
        let run = run.clone();
        async move { run.cancel_work(work).await }
    });
    tokio::task::yield_now().await;
    store.hold(false);
    input.await.unwrap().unwrap();
    cancel.await.unwrap().unwrap();
    assert_eq!(run.wait().await.unwrap(), Status::Failed);
    assert_eq!(gate.count(), 0);
}
