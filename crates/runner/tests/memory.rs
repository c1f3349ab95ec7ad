//! What a runner keeps of runs that only wait and were given back to the store: next to nothing.

use std::sync::Arc;

use tidewheel_core::policy::{Policy, default};
use tidewheel_core::workflow::{Workflow, step};
use tidewheel_runner::{Executor, Runner, RunnerOptions};
use tidewheel_store::{Memory, RealClock, Store};
use tidewheel_testkit::{CountingAllocator, bytes_held_by};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Returns how many bytes are free again when a runner is dropped to which so many runs were given that wait. The store stays.
fn kept_by_runner(runs: usize) -> i64 {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().expect("sound");
    let store = Arc::new(Memory::new(Arc::new(RealClock::new())));
    let runner = runtime.block_on(async {
        let options = RunnerOptions::new().executor(Executor::Inline).clock(Arc::new(RealClock::new()));
        let runner = Runner::with_store(Arc::clone(&store) as Arc<dyn Store>, options).await.expect("sound");
        let workflow = Workflow::new("later")
            .add(step("inc", |x: i64| x + 1))
            .policy(default(), Policy::new().delay("24h"))
            .build()
            .expect("sound");
        for number in 0..runs {
            runner.run(format!("run-{number}"), &workflow, 1_i64).await.expect("sound");
        }
        // Runs that rest are given back when the lease is renewed.
        tokio::time::sleep(std::time::Duration::from_secs(60)).await;
        let metrics = runner.metrics();
        assert!(metrics.contains("tidewheel_runs_held 0"), "{metrics}");
        runner
    });
    let (held, ()) = bytes_held_by(|| {
        drop(runner);
        drop(runtime);
    });
    -held
}

#[test]
fn a_run_that_waits_and_was_given_back_keeps_less_than_sixty_four_bytes() {
    let (few, many) = (kept_by_runner(500), kept_by_runner(2_500));
    let each = (many - few) / 2_000;
    assert!(each < 64, "{each} bytes for each of them");
}
