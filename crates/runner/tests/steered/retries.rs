//! Work that failed for good, tried again because somebody says so.

use std::error::Error as _;
use std::sync::{Arc, Mutex};

use tidewheel_core::fact::RunnableId;
use tidewheel_core::policy::{self, Failure, OnFailure, Policy};
use tidewheel_core::work::Context;
use tidewheel_core::workflow::{Workflow, map, reduce, step};
use tidewheel_runner::{CommandError, RunnerOptions};
use tidewheel_store::Status;

use crate::world::{Calls, Disk, crash, governed, in_memory, soon, start, until};

/// `s` fails so often and remembers its id; `after` comes after it.
fn failing(calls: &Calls, times: u32, works: &Arc<Mutex<Vec<RunnableId>>>) -> Workflow {
    let (calls, works) = (calls.clone(), Arc::clone(works));
    let s = step("s", move |context: Context, x: i64| {
        works.lock().unwrap().push(context.runnable_id());
        if calls.next() < times { Err(Failure::new("down")) } else { Ok(x) }
    });
    governed("failing", [s, step("after", |x: i64| x + 1).after("s")], [])
}

#[tokio::test(start_paused = true)]
async fn work_that_failed_is_done_again_and_what_comes_after_it_goes_on() {
    for is_one in [true, false] {
        let (calls, works, runner) = (Calls::default(), Arc::default(), in_memory().await);
        let run = start(&runner, "r", &failing(&calls, 2, &works), 41).await;
        for _ in 0..2 {
            assert_eq!(soon(run.wait()).await.unwrap(), Status::Failed);
            if is_one {
                let work = works.lock().unwrap()[0];
                run.retry_work(work).await.unwrap();
            } else {
                assert_eq!(run.retry().await.unwrap(), Some(1));
            }
        }
        assert_eq!(soon(run.result::<i64>("after")).await.unwrap(), 42);
        assert_eq!(soon(run.wait()).await.unwrap(), Status::Completed);
        assert_eq!(works.lock().unwrap().iter().collect::<std::collections::HashSet<_>>().len(), 1);
        let refused = run.retry().await;
        assert!(matches!(refused, Err(CommandError::NothingFailed { .. })), "{refused:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_says_why_work_is_not_tried_again() {
    let (calls, works, runner) = (Calls::default(), Arc::default(), in_memory().await);
    let run = start(&runner, "r", &failing(&calls, 0, &works), 41).await;
    assert_eq!(soon(run.wait()).await.unwrap(), Status::Completed);
    let work = works.lock().unwrap()[0];
    let refused = run.retry_work(work).await.unwrap_err();
    assert!(matches!(refused, CommandError::Retry { .. }));
    let why = refused.source().unwrap().to_string();
    assert_eq!(why, "there is no such work that failed or waits for a person");

    // A list was reduced without the item that its policy let pass.
    let skipped = Arc::new(Mutex::new(None));
    let seen = Arc::clone(&skipped);
    let square = map("square", move |context: Context, x: i64| {
        if x == 1 {
            *seen.lock().unwrap() = Some(context.runnable_id());
            return Err(Failure::new("odd"));
        }
        Ok(x * x)
    });
    let workflow = governed(
        "items",
        [
            step("list", |x: i64| (0..x).collect::<Vec<i64>>()),
            square.after("list"),
            reduce("sum", 0_i64, |sum: i64, x: i64| sum + x).after("square"),
        ],
        [(policy::name("square"), Policy::new().on_failure(OnFailure::Skip))],
    );
    let run = start(&runner, "items", &workflow, 3).await;
    assert_eq!(soon(run.result::<i64>("sum")).await.unwrap(), 4);
    let work = skipped.lock().unwrap().unwrap();
    let refused = run.retry_work(work).await.unwrap_err();
    assert_eq!(refused.source().unwrap().to_string(), "`sum` went on without it");
    assert_eq!(run.results::<i64>("sum").await.unwrap(), [4]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_another_runner_has_is_asked_and_one_that_nobody_has_is_taken() {
    for is_dropped in [true, false] {
        let (disk, calls, works) = (Disk::new(), Calls::default(), Arc::default());
        let workflow = failing(&calls, 1, &works);
        let (driver, store) = disk.open().await;
        let run = start(&driver, "r", &workflow, 41).await;
        assert_eq!(soon(run.wait()).await.unwrap(), Status::Failed);
        let mut driver = Some(driver);
        if is_dropped {
            crash(driver.take().unwrap(), &store).await;
        }
        let (other, _) = disk.open_with(RunnerOptions::new().only_own_runs()).await;
        other.register(&workflow).unwrap();
        let there = other.get("r").await.unwrap();
        let reopened = there.retry().await.unwrap();
        assert_eq!(reopened, is_dropped.then_some(1), "the process that drives it knows how many");
        until(&there, Status::Completed).await;
        assert_eq!(there.results::<i64>("after").await.unwrap(), [42]);
        other.shutdown().await;
        drop(driver);
    }
}
