//! What a caller learns whose run another process has taken: an error that can be matched, and not only read.

use std::sync::Arc;

use tidewheel_core::fact::RunId;
use tidewheel_core::time::Span;
use tidewheel_runner::{CommandError, InputError, Runner, RunnerOptions, StartError};
use tidewheel_store::{Claim, Memory, RealClock, Store, Wanted};

use crate::world::{Gate, gated};

/// Takes the runs of all owners away, as another process does with those of one that did not renew.
async fn take_over(store: &Memory, runs: &[&str]) {
    for owner in store.owners().await.expect("the store answers") {
        store.leave(owner).await.expect("the store answers");
    }
    let owner = store.join(Span::from_secs(60)).await.expect("the store answers").owner;
    for run in runs {
        let wanted = Wanted::Run(RunId::new(run));
        assert_eq!(store.claim(Claim { owner, wanted }).await.expect("the store answers").runs.len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn the_errors_after_a_lost_lease_can_be_matched() {
    let (clock, gate) = (Arc::new(RealClock::new()), Gate::new());
    let store = Arc::new(Memory::new(clock.clone()));
    let options = RunnerOptions::new().clock(clock);
    let runner = Runner::with_store(Arc::clone(&store) as Arc<dyn Store>, options).await.unwrap();
    let workflow = gated(&gate);
    let mut runs = Vec::new();
    for id in ["given", "asked"] {
        runs.push(runner.run(id, &workflow, 1_i64).await.unwrap());
        gate.began().await;
    }
    take_over(&store, &["given", "asked"]).await;

    let given = runs[0].input(2_i64).await;
    assert!(matches!(&given, Err(InputError::LeaseLost { run, .. }) if run.as_str() == "given"), "{given:?}");
    let asked = runs[1].pause().await;
    assert!(
        matches!(&asked, Err(CommandError::LeaseLost { run, .. }) if run.as_str() == "asked"),
        "{asked:?}"
    );
    let started = runner.run("new", &workflow, 1_i64).await;
    assert!(
        matches!(&started, Err(StartError::LeaseLost { run, .. }) if run.as_str() == "new"),
        "{:?}",
        started.err()
    );
    runner.shutdown().await;
}
