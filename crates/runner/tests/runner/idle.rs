//! A runner with nothing to do does nothing, however many runs wait.

use std::sync::Arc;
use std::time::Duration;

use tidewheel_core::policy::{self, Policy};
use tidewheel_core::workflow::{Workflow, step};
use tidewheel_runner::{Runner, RunnerOptions};
use tidewheel_store::{Clock, Memory, RealClock, Store};
use tidewheel_testkit::{Call, FaultyStore};

#[tokio::test(start_paused = true)]
async fn a_runner_with_ten_thousand_waiting_runs_asks_nothing_of_the_store() {
    let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
    let store = Arc::new(FaultyStore::new(Arc::new(Memory::new(Arc::clone(&clock)))));
    let options = RunnerOptions::new().clock(clock);
    let runner = Runner::with_store(Arc::clone(&store) as Arc<dyn Store>, options).await.unwrap();
    let workflow = Workflow::new("later")
        .add(step("s", |x: i64| async move { x }))
        .policy(policy::default(), Policy::new().delay("1h"))
        .build()
        .unwrap();
    let mut last = None;
    for run in 0..10_000 {
        let run = runner.start(format!("run-{run}"), &workflow).await.unwrap();
        run.input(1_i64).await.unwrap();
        last = Some(run);
    }
    // They are given back, and nobody has anything left to say.
    tokio::time::sleep(Duration::from_secs(60)).await;
    let before: Vec<u64> = Call::ALL.iter().map(|call| store.calls(*call)).collect();
    let polls = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    tokio::time::sleep(Duration::from_secs(1_800)).await;
    for (call, before) in Call::ALL.iter().zip(before) {
        let count = store.calls(*call) - before;
        // It stays an owner, three times in a lease of thirty seconds, and that is all.
        let expected = if *call == Call::Renew { 180 } else { 0 };
        assert!(count <= expected, "{call:?}: {count} calls in half an hour of waiting");
    }
    assert!(polls < 20, "{polls} tasks for waiting runs");
    // They are due at their time all the same.
    tokio::time::sleep(Duration::from_secs(1_800)).await;
    assert_eq!(last.unwrap().result::<i64>("s").await.unwrap(), 1);
}
