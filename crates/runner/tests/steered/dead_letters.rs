//! Work that failed for good and is put aside, and what people do about it.

use std::sync::Arc;
use std::time::Duration;

use tidewheel_core::policy::{self, Failure, OnFailure, Policy};
use tidewheel_core::workflow::{Workflow, map, reduce, step};
use tidewheel_runner::{CommandError, RunnerOptions};
use tidewheel_store::{DeadLetter, Memory, RealClock, Status, Store};

use crate::world::{Calls, Disk, Process, crash, governed, in_memory, soon, start, until};

fn burying(calls: &Calls, times: u32) -> Workflow {
    let after = step("after", |x: i64| x + 1).after("s");
    let rule = Policy::new().max_retries(1).on_failure(OnFailure::DeadLetter);
    governed("burying", [calls.failing("s", times), after], [(policy::name("s"), rule)])
}

async fn letters(runner: &tidewheel_runner::Runner) -> Vec<DeadLetter> {
    runner.dead_letters(None, None).await.unwrap().rows
}

fn work_of(letter: &DeadLetter) -> tidewheel_core::fact::RunnableId {
    tidewheel_core::fact::RunnableId::parse(&letter.work).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_letter_says_what_failed_and_trying_it_again_goes_on_after_it() {
    let (calls, runner) = (Calls::default(), in_memory().await);
    let run = start(&runner, "r", &burying(&calls, 2), 41).await;
    assert_eq!(soon(run.wait()).await.unwrap(), Status::Failed);
    let letters = letters(&runner).await;
    assert_eq!(letters.len(), 1);
    let letter = &letters[0];
    assert_eq!((letter.run.as_str(), letter.node.as_str()), ("r", "s"));
    let body: serde_json::Value = serde_json::from_str(&letter.body).unwrap();
    assert_eq!(body["input"], 41);
    assert_eq!(body["attempts"], 2);
    assert_eq!(body["failure"]["message"], "down 1");

    run.retry_work(work_of(letter)).await.unwrap();
    assert!(self::letters(&runner).await.is_empty());
    assert_eq!(soon(run.result::<i64>("after")).await.unwrap(), 42);
    assert_eq!(soon(run.wait()).await.unwrap(), Status::Completed);
    let refused = run.retry_work(work_of(letter)).await.unwrap_err();
    assert!(matches!(refused, CommandError::Retry { .. }), "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn what_fails_again_is_put_aside_again_once() {
    let (calls, runner) = (Calls::default(), in_memory().await);
    let run = start(&runner, "r", &burying(&calls, 4), 41).await;
    assert_eq!(soon(run.wait()).await.unwrap(), Status::Failed);
    assert_eq!(run.retry().await.unwrap(), Some(1));
    assert_eq!(soon(run.wait()).await.unwrap(), Status::Failed);
    let letters = letters(&runner).await;
    assert_eq!(letters.len(), 1);
    let body: serde_json::Value = serde_json::from_str(&letters[0].body).unwrap();
    assert_eq!(body["failure"]["message"], "down 3");
    assert_eq!(body["attempts"], 2);
    assert_eq!(run.retry().await.unwrap(), Some(1));
    assert_eq!(soon(run.result::<i64>("after")).await.unwrap(), 42);
    assert!(self::letters(&runner).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn all_of_a_run_are_tried_again_and_what_waits_for_them_goes_on() {
    let (calls, runner) = (Calls::default(), in_memory().await);
    let counted = calls.clone();
    let square = map("square", move |x: i64| {
        if counted.next() < 4 && x % 2 == 1 { Err(Failure::new(format!("odd {x}"))) } else { Ok(x * x) }
    });
    let rule = Policy::new().on_failure(OnFailure::DeadLetter);
    let workflow = governed(
        "items",
        [
            step("list", |x: i64| (0..x).collect::<Vec<i64>>()),
            square.after("list"),
            reduce("sum", 0_i64, |sum: i64, x: i64| sum + x).after("square"),
        ],
        [(policy::name("square"), rule)],
    );
    let run = start(&runner, "r", &workflow, 4).await;
    assert_eq!(soon(run.wait()).await.unwrap(), Status::Failed);
    let found = letters(&runner).await;
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(run.results::<i64>("sum").await.unwrap(), [0_i64; 0], "it waits for all of them");
    assert_eq!(run.retry().await.unwrap(), Some(2));
    assert_eq!(soon(run.result::<i64>("sum")).await.unwrap(), 14);
    assert!(letters(&runner).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_letter_of_a_failed_run_stays_when_a_cancel_is_refused() {
    let (calls, runner) = (Calls::default(), in_memory().await);
    let run = start(&runner, "r", &burying(&calls, 2), 41).await;
    assert_eq!(soon(run.wait()).await.unwrap(), Status::Failed);
    let refused = run.cancel().await.unwrap_err();
    assert_eq!(refused.to_string(), "run `r` is failed, and cancel has no effect: nothing is left to do");
    let letters = letters(&runner).await;
    assert_eq!(letters.len(), 1, "what failed has failed");
    run.retry_work(work_of(&letters[0])).await.unwrap();
    assert_eq!(soon(run.wait()).await.unwrap(), Status::Completed);
}

#[tokio::test(start_paused = true)]
async fn work_that_somebody_cancels_is_not_put_aside() {
    let runner = in_memory().await;
    let rule = Policy::new().on_failure(OnFailure::DeadLetter);
    let stuck = step("s", async |x: i64| {
        tokio::time::sleep(Duration::from_secs(3_600)).await;
        x
    });
    let workflow = governed("w", [stuck], [(policy::name("s"), rule)]);
    let run = start(&runner, "r", &workflow, 1).await;
    let work = soon(async {
        loop {
            if let Some(work) = run.state().await.unwrap().pending_runnables().first().copied() {
                return work;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    run.cancel_work(work).await.unwrap();
    assert_eq!(soon(run.wait()).await.unwrap(), Status::Failed);
    assert!(letters(&runner).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_are_seen_and_tried_again_from_another_runner_and_after_a_restart() {
    let (disk, calls) = (Disk::new(), Calls::default());
    let workflow = burying(&calls, 2);
    let (driver, store) = disk.open().await;
    let run = start(&driver, "r", &workflow, 41).await;
    assert_eq!(soon(run.wait()).await.unwrap(), Status::Failed);
    let (other, _) = disk.open_with(RunnerOptions::new().only_own_runs()).await;
    assert_eq!(letters(&other).await.len(), 1);
    crash(driver, &store).await;
    let (driver, _) = disk.open().await;
    driver.register(&workflow).unwrap();
    // A stranger can only ask; whoever knows the workflow does it.
    other.register(&workflow).unwrap();
    other.get("r").await.unwrap().retry().await.unwrap();
    let run = driver.get("r").await.unwrap();
    until(&run, Status::Completed).await;
    assert_eq!(run.results::<i64>("after").await.unwrap(), [42]);
    assert!(letters(&other).await.is_empty());
    driver.shutdown().await;
    other.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_letter_is_written_with_the_failure_at_whichever_write_the_process_ends() {
    let mut interrupted = 0;
    for (writes, does_last) in (1..20).flat_map(|writes| [(writes, false), (writes, true)]) {
        let store = Arc::new(Memory::new(Arc::new(RealClock::new())));
        let (calls, process) = (Calls::default(), Process::dying(&store, writes, does_last));
        // It fails for good once, and then again.
        let workflow = burying(&calls, 1_000);
        let runner = process.runner().await;
        let story = async {
            let run = start(&runner, "r", &workflow, 41).await;
            soon(run.wait()).await.unwrap();
            run.retry().await.unwrap();
            soon(run.wait()).await.unwrap();
        };
        interrupted += u32::from(process.ends_before(story).await);
        drop(runner);
        let what = format!("{writes} writes, {does_last}");
        check_letters(&*store, &what).await;
        let runner = Process::new(&store).runner().await;
        let run = runner.start("r", &workflow).await.unwrap();
        if store.read(run.id(), 0).await.unwrap().is_empty() {
            run.input(41_i64).await.unwrap();
        }
        assert_eq!(soon(run.wait()).await.unwrap(), Status::Failed, "{what}");
        assert_eq!(letters(&runner).await.len(), 1, "{what}");
        check_letters(&*store, &what).await;
    }
    assert!(interrupted > 10, "{interrupted} were interrupted");
}

/// There is a letter exactly when the log says that the work failed for good.
async fn check_letters(store: &dyn Store, what: &str) {
    let run = tidewheel_core::fact::RunId::new("r");
    if store.find(&run).await.unwrap().is_none() {
        return;
    }
    let mut names = crate::world::log(store, "r").await.into_iter().map(|(name, _)| name);
    let last = names.rfind(|name| ["runnable_failed", "runnable_reopened"].contains(&name.as_str()));
    let letters = store.dead_letters(Some(&run), None).await.unwrap().rows.len();
    assert_eq!(letters, usize::from(last.as_deref() == Some("runnable_failed")), "{what}");
}
