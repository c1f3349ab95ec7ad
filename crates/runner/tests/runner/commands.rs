//! What is asked of a run through the store, because another runner drives it.

use std::sync::Arc;

use tidewheel_runner::{CommandError, InputError, Runner, RunnerOptions};
use tidewheel_store::{Memory, RealClock, Sqlite, Status, Store};

use crate::world::{Disk, Gate, Watched, gated, numbers};

/// Two runners on one file; the first drives the run.
async fn two(disk: &Disk) -> (Runner, Runner, Arc<Sqlite>) {
    let ((one, store), (other, _)) = (disk.open().await, disk.open().await);
    (one, other, store)
}

#[tokio::test]
async fn an_input_and_its_result_go_through_another_runner() {
    let disk = Disk::new();
    let (one, other, _store) = two(&disk).await;
    let run = one.start("first", &numbers()).await.unwrap();
    run.input(1_i64).await.unwrap();
    assert_eq!(run.result::<i64>("sum").await.unwrap(), 6);
    let same = other.start("first", &numbers()).await.unwrap();
    assert_eq!(same.result::<i64>("sum").await.unwrap(), 6);
    for input in 2..10_i64 {
        same.input(input).await.unwrap();
        assert_eq!(same.result::<i64>("sum").await.unwrap(), (input + 1) * 3, "that of the last input");
    }
    same.input_keyed("ten", 10_i64).await.unwrap();
    same.input_keyed("ten", 10_i64).await.unwrap();
    run.input_keyed("ten", 10_i64).await.unwrap();
    assert_eq!(same.result::<i64>("sum").await.unwrap(), 33);
    same.wait().await.unwrap();
    assert_eq!(same.results::<i64>("sum").await.unwrap().len(), 10);
    one.shutdown().await;
    other.shutdown().await;
}

#[tokio::test]
async fn pause_resume_and_cancel_from_another_runner() {
    let (disk, gate) = (Disk::new(), Gate::new());
    let workflow = gated(&gate);
    let (one, other, _store) = two(&disk).await;
    let run = one.run("first", &workflow, 1_i64).await.unwrap();
    gate.began().await;
    let same = other.start("first", &workflow).await.unwrap();
    same.pause().await.unwrap();
    until(|| async { run.status().await.unwrap() == Status::Paused }).await;
    same.input(2_i64).await.unwrap();
    gate.open(1);
    until(|| async { run.results::<i64>("inc").await.unwrap() == [2] }).await;
    assert_eq!(gate.count(), 1);
    same.resume().await.unwrap();
    gate.began().await;
    same.cancel().await.unwrap();
    assert_eq!(same.wait().await.unwrap(), Status::Cancelled);
    assert_eq!(run.wait().await.unwrap(), Status::Cancelled);
    one.shutdown().await;
    other.shutdown().await;
}

#[tokio::test]
async fn one_piece_of_work_is_cancelled_and_a_run_is_stopped_from_another_runner() {
    let (disk, gate) = (Disk::new(), Gate::new());
    let workflow = gated(&gate);
    let (one, other, _store) = two(&disk).await;
    let run = one.run("first", &workflow, 1_i64).await.unwrap();
    gate.began().await;
    let same = other.start("first", &workflow).await.unwrap();
    let work = run.state().await.unwrap().pending_runnables()[0];
    same.cancel_work(work).await.unwrap();
    assert_eq!(same.wait().await.unwrap(), Status::Failed);
    same.input(2_i64).await.unwrap();
    gate.began().await;
    same.stop().await.unwrap();
    until(|| async { run.status().await.unwrap() == Status::Stopped }).await;
    // Now nobody drives it, and the other one may.
    same.resume().await.unwrap();
    gate.began().await;
    gate.open(1);
    assert_eq!(same.result::<i64>("inc").await.unwrap(), 3);
    one.shutdown().await;
    other.shutdown().await;
}

/// Waits until something is so. Nobody tells this process what happens in another runner.
async fn until<F: Future<Output = bool>>(is_so: impl Fn() -> F) {
    while !is_so().await {
        tokio::task::yield_now().await;
    }
}

/// An input that is stored apart from its command would come again after a crash in between.
#[tokio::test(start_paused = true)]
async fn an_input_and_the_command_that_it_came_by_are_stored_together() {
    let store = Watched::new();
    let (one, other) =
        (store.runner(RunnerOptions::new()).await, store.runner(RunnerOptions::new().only_own_runs()).await);
    let run = one.start("first", &numbers()).await.unwrap();
    let same = other.start("first", &numbers()).await.unwrap();
    store.forget();
    same.input(1_i64).await.unwrap();
    assert_eq!(same.result::<i64>("sum").await.unwrap(), 6);
    let handled: Vec<_> = store.appends().into_iter().filter(|append| !append.handled.is_empty()).collect();
    assert_eq!(handled.len(), 1);
    assert!(handled[0].events.body().contains("input_accepted"));
    assert_eq!(run.state().await.unwrap().inputs_len(), 1);
}

/// Until a command is stored as handled, the store shows it whenever somebody looks.
#[tokio::test(start_paused = true)]
async fn a_command_that_is_seen_twice_is_obeyed_once() {
    let store = Watched::new();
    let (one, other) =
        (store.runner(RunnerOptions::new()).await, store.runner(RunnerOptions::new().only_own_runs()).await);
    let run = one.start("first", &numbers()).await.unwrap();
    let same = other.start("first", &numbers()).await.unwrap();
    store.hold(true);
    let mut inputs = Vec::new();
    for input in 0..20_i64 {
        let same = same.clone();
        inputs.push(tokio::spawn(async move { same.input(input).await }));
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    store.hold(false);
    for input in inputs {
        input.await.unwrap().unwrap();
    }
    assert_eq!(same.wait().await.unwrap(), Status::Completed);
    assert_eq!(run.results::<i64>("inc").await.unwrap(), (1..=20).collect::<Vec<_>>());
}

/// A stop and an input at once: what is not taken is not acknowledged.
#[tokio::test(start_paused = true)]
async fn an_input_that_comes_while_the_run_is_stopped_is_refused_and_can_be_given_again() {
    let (store, gate) = (Watched::new(), Gate::new());
    let (one, other) =
        (store.runner(RunnerOptions::new()).await, store.runner(RunnerOptions::new().only_own_runs()).await);
    let run = one.start("first", &gated(&gate)).await.unwrap();
    let same = other.start("first", &gated(&gate)).await.unwrap();
    store.hold(true);
    let stop = tokio::spawn({
        let run = run.clone();
        async move { run.stop().await }
    });
    tokio::task::yield_now().await;
    let late = tokio::spawn({
        let same = same.clone();
        async move { same.input(1_i64).await }
    });
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    store.hold(false);
    stop.await.unwrap().unwrap();
    let refused = late.await.unwrap();
    assert!(
        matches!(&refused, Err(InputError::NotApplied { why, .. }) if why.contains("stopped")),
        "{refused:?}"
    );
    gate.open(1);
    run.resume().await.unwrap();
    same.input(1_i64).await.unwrap();
    assert_eq!(run.result::<i64>("inc").await.unwrap(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_command_that_nobody_understands_is_put_away() {
    let store = Arc::new(Memory::new(Arc::new(RealClock::new())));
    let options = RunnerOptions::new().clock(Arc::new(RealClock::new()));
    let runner = Runner::with_store(Arc::clone(&store) as Arc<dyn Store>, options).await.unwrap();
    let run = runner.run("first", &numbers(), 1_i64).await.unwrap();
    let command = tidewheel_store::NewCommand {
        run: run.id().clone(),
        kind: "dance".to_owned(),
        body: r#"{"dance":{}}"#.to_owned(),
    };
    store.send(command).await.unwrap().unwrap();
    until(|| async { store.commands_of(run.id()).await.unwrap().is_empty() }).await;
    assert_eq!(run.result::<i64>("sum").await.unwrap(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_gone_cannot_be_asked() {
    let store = Arc::new(Memory::new(Arc::new(RealClock::new())));
    let options = RunnerOptions::new().clock(Arc::new(RealClock::new()));
    let runner = Runner::with_store(Arc::clone(&store) as Arc<dyn Store>, options).await.unwrap();
    let run = runner.start("first", &numbers()).await.unwrap();
    run.stop().await.unwrap();
    store.delete(run.id()).await.unwrap().unwrap();
    assert!(matches!(run.cancel().await, Err(CommandError::NotFound { .. })));
    assert!(matches!(run.pause().await, Err(CommandError::NotFound { .. })));
    assert!(matches!(run.resume().await, Err(CommandError::NotFound { .. })));
    assert!(run.input(1_i64).await.is_err());
    assert!(run.result::<i64>("sum").await.is_err());
}
