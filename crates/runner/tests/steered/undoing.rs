//! What was done is undone when something after it fails, however often the process ends on the way.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidewheel_core::policy::{self, Backoff, Failure, Jitter, OnFailure, Policy};
use tidewheel_core::work::Context;
use tidewheel_core::workflow::{Workflow, compensation, step};
use tidewheel_runner::CommandError;
use tidewheel_store::{Memory, RealClock, Status, Store};

use crate::world::{Calls, Disk, Process, crash, governed, in_memory, log, soon, start};

/// What was done and undone, in order.
type Deeds = Arc<Mutex<Vec<String>>>;

fn deed(deeds: &Deeds, name: &str, x: i64) {
    deeds.lock().unwrap().push(format!("{name} {x}"));
}

/// Books, charges and ships; shipping fails. The refund fails the first so many times.
fn order(deeds: &Deeds, refunds: &Calls, times: u32) -> Workflow {
    let all: Vec<Deeds> = (0..6).map(|_| Arc::clone(deeds)).collect();
    let [book, charge, ship, unbook, refund, release] = <[Deeds; 6]>::try_from(all).unwrap();
    let refunds = refunds.clone();
    let refund_policy =
        Policy::new().max_retries(2).backoff(Backoff::Fixed).base_delay("10s").jitter(Jitter::None);
    governed(
        "order",
        [
            step("book", move |x: i64| {
                deed(&book, "book", x);
                x + 1
            }),
            step("charge", move |context: Context, x: i64| {
                deed(&charge, "charge", x);
                context.register_compensation("release", x * 10);
                context.register_compensation("refund", x * 100);
                x + 1
            })
            .after("book"),
            step("ship", move |x: i64| {
                deed(&ship, "ship", x);
                Err::<i64, _>(Failure::new("no ship"))
            })
            .after("charge"),
            compensation("unbook", move |x: i64| deed(&unbook, "unbook", x)),
            compensation("refund", move |x: i64| {
                let call = refunds.next();
                deed(&refund, "refund", x);
                if call < times { Err(Failure::new("bank closed")) } else { Ok(()) }
            }),
            compensation("release", move |x: i64| deed(&release, "release", x)),
        ],
        [
            (policy::name("book"), Policy::new().compensation_node("unbook")),
            (policy::name("ship"), Policy::new().on_failure(OnFailure::Compensate)),
            (policy::name("refund"), refund_policy),
        ],
    )
}

const ALL: [&str; 6] = ["book 1", "charge 2", "ship 3", "refund 200", "release 20", "unbook 2"];

#[tokio::test(start_paused = true)]
async fn what_was_done_is_undone_the_last_first() {
    let (deeds, runner) = (Deeds::default(), in_memory().await);
    let run = start(&runner, "r", &order(&deeds, &Calls::default(), 0), 1).await;
    assert_eq!(soon(run.wait()).await.unwrap(), Status::Failed);
    assert_eq!(*deeds.lock().unwrap(), ALL);
    let state = run.state().await.unwrap();
    let failed: Vec<_> = state.failures().iter().map(|failed| failed.component).collect();
    assert_eq!(failed, [Some("ship")]);
    // What was undone is not tried again.
    let refused = run.retry().await;
    assert!(matches!(refused, Err(CommandError::NothingFailed { .. })), "{refused:?}");
    // Another input is another matter.
    run.input(5_i64).await.unwrap();
    assert_eq!(soon(run.wait()).await.unwrap(), Status::Failed);
    assert_eq!(deeds.lock().unwrap().len(), 12);
}

#[tokio::test(start_paused = true)]
async fn what_was_undone_is_not_tried_again_and_that_is_said() {
    let (work, runner) = (Arc::new(Mutex::new(None)), in_memory().await);
    let seen = Arc::clone(&work);
    let ship = step("ship", move |context: Context, _: i64| {
        *seen.lock().unwrap() = Some(context.runnable_id());
        Err::<i64, _>(Failure::new("no ship"))
    });
    let rule = Policy::new().on_failure(OnFailure::Compensate);
    let workflow = governed("w", [ship], [(policy::name("ship"), rule)]);
    let run = start(&runner, "r", &workflow, 1).await;
    assert_eq!(soon(run.wait()).await.unwrap(), Status::Failed);
    let work = work.lock().unwrap().unwrap();
    let refused = run.retry_work(work).await.unwrap_err();
    assert!(matches!(refused, CommandError::Retry { .. }));
    assert_eq!(refused.to_string(), "work of run `r` is not tried again");
    let why = std::error::Error::source(&refused).unwrap().to_string();
    assert_eq!(why, "what its input caused was undone");
}

#[tokio::test(start_paused = true)]
async fn a_compensation_has_retries_and_backoff_of_its_own() {
    let (deeds, refunds, runner) = (Deeds::default(), Calls::default(), in_memory().await);
    let began = tokio::time::Instant::now();
    let run = start(&runner, "r", &order(&deeds, &refunds, 2), 1).await;
    assert_eq!(soon(run.wait()).await.unwrap(), Status::Failed);
    assert_eq!(refunds.count(), 3);
    assert_eq!(began.elapsed().as_secs(), 20);
    assert_eq!(deeds.lock().unwrap()[5..], ["refund 200", "release 20", "unbook 2"]);
    assert_eq!(run.state().await.unwrap().failures().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_compensation_that_fails_for_good_is_a_failure_and_the_others_are_undone() {
    let (deeds, refunds, runner) = (Deeds::default(), Calls::default(), in_memory().await);
    let run = start(&runner, "r", &order(&deeds, &refunds, 99), 1).await;
    assert_eq!(soon(run.wait()).await.unwrap(), Status::Failed);
    let state = run.state().await.unwrap();
    let mut failed: Vec<_> = state.failures().iter().map(|failed| failed.component.unwrap()).collect();
    failed.sort_unstable();
    assert_eq!((refunds.count(), failed), (3, vec!["refund", "ship"]));
    assert_eq!(deeds.lock().unwrap()[6..], ["release 20", "unbook 2"]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_lost_or_out_of_order_at_whichever_write_the_process_ends() {
    let (mut interrupted, mut twice) = (0, 0);
    for (writes, does_last) in (1..40).flat_map(|writes| [(writes, false), (writes, true)]) {
        let what = format!("{writes} writes, {does_last}");
        let store = Arc::new(Memory::new(Arc::new(RealClock::new())));
        let deeds = Deeds::default();
        let workflow = order(&deeds, &Calls::default(), 0);
        let process = Process::dying(&store, writes, does_last);
        let runner = process.runner().await;
        let story = async {
            let run = start(&runner, "r", &workflow, 1).await;
            soon(run.wait()).await.unwrap();
        };
        let is_gone = process.ends_before(story).await;
        interrupted += u32::from(is_gone);
        drop(runner);
        // What was under way on a thread comes to its end, and nobody hears of it.
        tokio::time::sleep(Duration::from_secs(5)).await;
        let runner = Process::new(&store).runner().await;
        let run = start(&runner, "r", &workflow, 1).await;
        assert_eq!(soon(run.wait()).await.unwrap(), Status::Failed, "{what}");
        let mut done = deeds.lock().unwrap().clone();
        twice += done.len() - ALL.len();
        assert!(done.len() <= ALL.len() + 1, "{what}: only the one under way is done again: {done:?}");
        done.dedup();
        assert_eq!(done, ALL, "{what}");
        let state = run.state().await.unwrap();
        assert_eq!((state.failures().len(), state.is_runnable()), (1, false), "{what}");
    }
    assert!(interrupted > 12 && twice > 0, "{interrupted} interrupted, {twice} twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_to_undo_survives_a_restart() {
    let (disk, deeds, calls) = (Disk::new(), Deeds::default(), Calls::default());
    let (undone, counted) = (Arc::clone(&deeds), calls.clone());
    let began = Arc::new(tokio::sync::Notify::new());
    let begins = Arc::clone(&began);
    let workflow = governed(
        "w",
        [
            step("charge", |context: Context, x: i64| {
                context.register_compensation("refund", x * 100);
                x
            }),
            step("ship", move |_: i64| {
                let (call, begins) = (counted.next(), Arc::clone(&begins));
                async move {
                    if call == 0 {
                        begins.notify_one();
                        std::future::pending::<()>().await;
                    }
                    Err::<i64, _>(Failure::new("no ship"))
                }
            })
            .after("charge"),
            compensation("refund", move |x: i64| deed(&undone, "refund", x)),
        ],
        [(policy::name("ship"), Policy::new().on_failure(OnFailure::Compensate))],
    );
    let (runner, store) = disk.open().await;
    start(&runner, "r", &workflow, 1).await;
    soon(began.notified()).await;
    crash(runner, &store).await;
    let (runner, store) = disk.open().await;
    let run = runner.start("r", &workflow).await.unwrap();
    assert_eq!(soon(run.wait()).await.unwrap(), Status::Failed);
    assert_eq!(*deeds.lock().unwrap(), ["refund 100"]);
    let names: Vec<String> = log(&*store, "r").await.into_iter().map(|(name, _)| name).collect();
    assert!(names.contains(&"undo_ended".to_owned()), "{names:?}");
    assert!(store.find(run.id()).await.unwrap().unwrap().reason.is_none());
    runner.shutdown().await;
}
