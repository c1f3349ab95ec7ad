//! Work in `sync` mode whose policy wants it stored when it is over, whatever is stored otherwise.

use std::sync::Arc;

use tidewheel_core::policy::{self, ExecutionMode, Policy};
use tidewheel_core::workflow::{Component, step};
use tidewheel_runner::{Checkpoints, Runner, RunnerOptions, StartOptions};
use tidewheel_store::{Memory, RealClock, Status, Store};
use tokio::sync::Semaphore;

use crate::world::{count, governed, log, soon};

/// Returns how many facts of a chain of ten are stored while the seventh is under way.
async fn stored(checkpoints: Checkpoints, checkpoint_after: bool) -> usize {
    let store: Arc<dyn Store> = Arc::new(Memory::new(Arc::new(RealClock::new())));
    let runner = Runner::with_store(Arc::clone(&store), RunnerOptions::new()).await.unwrap();
    let (begins, may_end) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let one = |number: usize| -> Component {
        let (begins, may_end) = (Arc::clone(&begins), Arc::clone(&may_end));
        let work = step(format!("s{number}"), move |x: i64| {
            let (begins, may_end) = (Arc::clone(&begins), Arc::clone(&may_end));
            async move {
                if number == 6 {
                    begins.add_permits(1);
                    may_end.acquire().await.unwrap().forget();
                }
                x + 1
            }
        });
        if number == 0 { work } else { work.after(format!("s{}", number - 1)) }
    };
    let sync = || Policy::new().execution_mode(ExecutionMode::Sync);
    let fourth = if checkpoint_after { sync().checkpoint_after(true) } else { sync() };
    let rules = [(policy::name("s3"), fourth), (policy::default(), sync())];
    let workflow = governed("chain", (0..10).map(one), rules);
    let options = StartOptions::new().checkpoints(checkpoints);
    let run = runner.run_with("r", &workflow, 0_i64, &options).await.unwrap();
    soon(begins.acquire()).await.unwrap().forget();
    // What is on its way to the store gets there while the work waits.
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let facts = count(&log(&*store, "r").await, "fact_produced");
    may_end.add_permits(1);
    assert_eq!(soon(run.wait()).await.unwrap(), Status::Completed);
    assert_eq!(run.result::<i64>("s9").await.unwrap(), 10);
    facts
}

#[tokio::test(start_paused = true)]
async fn what_is_over_is_stored_at_once_where_its_policy_says_so() {
    for checkpoints in [Checkpoints::Manual, Checkpoints::OnComplete] {
        assert_eq!(stored(checkpoints, false).await, 1, "{checkpoints:?}: the input alone");
        // The commit carries all that there is: the input and the first four, and maybe more.
        let facts = stored(checkpoints, true).await;
        assert!((5..=7).contains(&facts), "{checkpoints:?}: {facts}");
    }
}
