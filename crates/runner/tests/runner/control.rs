//! What a process asks of runs that it does not drive, and what it can tell of them, through the store alone.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::to_raw_value;
use tidewheel_core::fact::RunId;
use tidewheel_core::policy::Failure;
use tidewheel_core::work::Context;
use tidewheel_core::workflow::{Workflow, accumulator, map, reduce, step};
use tidewheel_runner::{AskError, Control, Runner, RunnerOptions};
use tidewheel_store::{Memory, RealClock, Status, Store};
use tidewheel_testkit::{Call, FaultyStore};

use crate::world::{Gate, gated, numbers};

async fn world() -> (Runner, Control, Arc<dyn Store>) {
    let store: Arc<dyn Store> = Arc::new(Memory::new(Arc::new(RealClock::new())));
    let runner = Runner::with_store(Arc::clone(&store), RunnerOptions::new()).await.expect("a runner");
    (runner, Control::new(Arc::clone(&store)), store)
}

#[tokio::test]
async fn whoever_drives_a_run_obeys() {
    let gate = Gate::new();
    let (runner, control, _) = world().await;
    let run = runner.run("first", &gated(&gate), 1_i64).await.unwrap();
    gate.began().await;
    let sent = control.pause(run.id()).await.unwrap();
    control.until_handled(&sent).await.unwrap();
    assert_eq!(run.status().await.unwrap(), Status::Paused);
    let sent = control.resume(run.id()).await.unwrap();
    control.until_handled(&sent).await.unwrap();
    assert_eq!(run.status().await.unwrap(), Status::Running);
    let sent = control.stop(run.id()).await.unwrap();
    control.until_handled(&sent).await.unwrap();
    assert_eq!(run.status().await.unwrap(), Status::Stopped);
    let sent = control.resume(run.id()).await.unwrap();
    control.until_handled(&sent).await.unwrap();
    gate.began().await;
    let sent = control.cancel(run.id()).await.unwrap();
    control.until_handled(&sent).await.unwrap();
    assert_eq!(run.status().await.unwrap(), Status::Cancelled);
    runner.shutdown().await;
}

#[tokio::test]
async fn what_would_change_nothing_is_refused_and_not_written() {
    let (runner, control, store) = world().await;
    let run = runner.run("first", &numbers(), 1_i64).await.unwrap();
    run.wait().await.unwrap();
    let id = run.id();
    for refused in [
        control.cancel(id).await,
        control.pause(id).await,
        control.resume(id).await,
        control.stop(id).await,
        control.retry(id, None).await,
    ] {
        assert!(matches!(refused, Err(AskError::Idle { status: Status::Completed, .. })), "{refused:?}");
    }
    let value = to_raw_value(&1).unwrap();
    let refused = control.signal(id, "fly", value.clone()).await;
    assert!(matches!(&refused, Err(AskError::NoComponent { known, .. }) if known.len() == 3), "{refused:?}");
    let work = control.story(id).await.unwrap().works[0].id.unwrap();
    for refused in [
        control.cancel_work(id, work).await,
        control.retry(id, Some(work)).await,
        control.complete(&format!("first:{work}:0"), &value).await,
        control.fail(&format!("first:{work}:0"), &Failure::new("no")).await,
        control.heartbeat(&format!("first:{work}:0")).await,
    ] {
        assert!(matches!(refused, Err(AskError::Work { state: "completed", .. })), "{refused:?}");
    }
    let other = RunId::new("other");
    assert!(matches!(control.cancel(&other).await, Err(AskError::NotFound { .. })));
    assert!(matches!(control.story(&other).await, Err(AskError::NotFound { .. })));
    assert!(matches!(control.complete("first", &value).await, Err(AskError::Token(_))));
    assert!(store.commands_of(id).await.unwrap().is_empty());
    runner.shutdown().await;
}

/// It was never put away: nothing was refused for the run any more, and nobody could delete it.
#[tokio::test(start_paused = true)]
async fn a_signal_that_no_component_can_take_is_put_away() {
    let (runner, control, store) = world().await;
    let workflow = Workflow::new("two")
        .add(step("first", |x: i64| x + 1))
        .add(step("second", |x: i64| x + 1).after("first"))
        .build()
        .unwrap();
    let run = runner.run("one", &workflow, 1_i64).await.unwrap();
    run.wait().await.unwrap();
    let sent = control.signal(run.id(), "second", to_raw_value(&1).unwrap()).await.unwrap();
    let handled = tokio::time::timeout(Duration::from_secs(60), control.until_handled(&sent)).await;
    handled.expect("somebody sees to it").unwrap();
    assert!(store.commands_of(run.id()).await.unwrap().is_empty());
    assert_eq!(run.results::<i64>("second").await.unwrap(), [3]);
    runner.shutdown().await;
}

/// A thousand pieces took half a minute: the log was read anew for each of them.
#[tokio::test]
async fn many_pieces_are_asked_for_with_one_look_at_the_log() {
    let (runner, _, store) = world().await;
    let workflow =
        Workflow::new("many").add(map("bad", |_: i64| Err::<i64, _>(Failure::new("no")))).build().unwrap();
    let run = runner.run("one", &workflow, (0..20).collect::<Vec<i64>>()).await.unwrap();
    assert_eq!(run.wait().await.unwrap(), Status::Failed);
    runner.shutdown().await;
    let counted = Arc::new(FaultyStore::new(store));
    let control = Control::new(Arc::<FaultyStore>::clone(&counted));
    let story = control.story(run.id()).await.unwrap();
    let works: Vec<_> =
        story.works.iter().filter(|work| work.node == "bad").filter_map(|work| work.id).collect();
    let before = counted.calls(Call::Read);
    let answers = control.retry_works(run.id(), &works).await.unwrap();
    assert_eq!((answers.len(), answers.iter().all(Result::is_ok)), (20, true));
    assert_eq!(counted.calls(Call::Read) - before, 1);
    let refused = control.cancel_works(run.id(), &works).await.unwrap();
    assert!(refused.iter().all(|one| matches!(one, Err(AskError::Work { .. }))), "{refused:?}");
}

#[tokio::test]
async fn what_has_no_effect_behind_a_command_that_waits_is_refused_by_name() {
    let value = || to_raw_value(&2).unwrap();
    let (runner, control, store) = world().await;
    for id in ["cancelled", "stopped"] {
        runner.start(id, &numbers()).await.unwrap();
    }
    runner.shutdown().await;
    let (cancelled, stopped) = (RunId::new("cancelled"), RunId::new("stopped"));
    control.cancel(&cancelled).await.unwrap();
    let why = |refused: Result<tidewheel_runner::Sent, AskError>| refused.unwrap_err().to_string();
    let expected = "run `cancelled` is waiting: a command that was sent before cancels it";
    assert_eq!(why(control.signal(&cancelled, "inc", value()).await), expected);
    assert_eq!(why(control.resume(&cancelled).await), expected);
    assert_eq!(why(control.retry(&cancelled, None).await), expected);
    assert!(control.cancel(&cancelled).await.unwrap().id.is_some(), "it waits until the run is cancelled");

    control.stop(&stopped).await.unwrap();
    let expected = "run `stopped` is waiting: a command that was sent before stops it";
    assert_eq!(why(control.signal(&stopped, "inc", value()).await), expected);
    control.resume(&stopped).await.unwrap();
    control.signal(&stopped, "inc", value()).await.unwrap();
    let kinds = async |id: &RunId| {
        let waiting = store.commands_of(id).await.unwrap();
        waiting.into_iter().map(|command| command.kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&cancelled).await, ["cancel", "cancel"]);
    assert_eq!(kinds(&stopped).await, ["stop", "resume", "signal"]);
}

/// A run that is paused in a moment can be resumed in the next, whoever is quicker.
#[tokio::test]
async fn what_acts_behind_a_command_that_waits_is_not_refused() {
    let (runner, control, store) = world().await;
    let run = runner.start("first", &numbers()).await.unwrap();
    runner.shutdown().await;
    control.pause(run.id()).await.unwrap();
    control.resume(run.id()).await.unwrap();
    control.pause(run.id()).await.unwrap();
    let asked = store.commands_of(run.id()).await.unwrap();
    assert_eq!(asked.iter().map(|one| one.kind.as_str()).collect::<Vec<_>>(), ["pause", "resume", "pause"]);
}

#[tokio::test]
async fn the_story_knows_the_ids_that_the_work_was_given() {
    let id = |context: Context, _: i64| context.runnable_id().to_string();
    let workflow = Workflow::new("ids")
        .add(map("items", |context: Context, _: i64| context.runnable_id().to_string()))
        .add(
            reduce("all", Vec::new(), |mut all: Vec<String>, one: String| {
                all.push(one);
                all
            })
            .after("items"),
        )
        .add(accumulator("sum", 0_i64, |sum: i64, list: Vec<i64>| sum + list.iter().sum::<i64>()))
        .add(step("after_sum", id).after("sum"))
        .build()
        .unwrap();
    let (runner, control, _) = world().await;
    let run = runner.start("first", &workflow).await.unwrap();
    for input in [vec![1_i64, 1, 1], vec![2, 2]] {
        run.input(input).await.unwrap();
    }
    run.wait().await.unwrap();
    let mut given: BTreeSet<String> = run.results("after_sum").await.unwrap().into_iter().collect();
    given.extend(run.results::<String>("items").await.unwrap());
    let story = control.story(run.id()).await.unwrap();
    let works = story.works.iter().filter(|work| ["items", "after_sum"].contains(&work.node.as_str()));
    let told: BTreeSet<String> = works.map(|work| work.id.unwrap().to_string()).collect();
    assert_eq!((told.len(), &told), (7, &given));
    assert_eq!(control.components(run.id()).await.unwrap(), ["after_sum", "all", "items", "sum"]);
    runner.shutdown().await;
}

#[tokio::test]
async fn what_its_owner_cannot_do_is_in_the_log_with_the_reason() {
    let (runner, control, _) = world().await;
    let run = runner.run("first", &numbers(), 1_i64).await.unwrap();
    run.wait().await.unwrap();
    let value = to_raw_value(&1).unwrap();
    let sent = control.signal(run.id(), "sum", value.clone()).await.unwrap();
    control.until_handled(&sent).await.unwrap();
    assert_eq!(
        control.refusal(&sent).await.unwrap().as_deref(),
        Some("`sum` comes after other components, and a signal goes to one that takes the input")
    );
    let sent = control.signal(run.id(), "inc", value).await.unwrap();
    control.until_handled(&sent).await.unwrap();
    assert_eq!(control.refusal(&sent).await.unwrap(), None);
    // The run is what it was, also for whoever reads its log.
    run.wait().await.unwrap();
    assert_eq!(run.results::<i64>("inc").await.unwrap(), [2, 2]);
    runner.shutdown().await;
}
