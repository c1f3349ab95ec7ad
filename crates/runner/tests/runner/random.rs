//! Random workflows of every kind come to the same as in process, in memory and on disk.

use tidewheel_runner::{Executor, Runner, RunnerOptions};
use tidewheel_testkit::{Case, lowered};

use crate::same::{driven, outcome, serial};
use crate::world::Disk;

#[tokio::test]
async fn i2_random_workflows_in_memory() {
    for (executor, limit) in [(Executor::Threads, 3), (Executor::Tasks, 256), (Executor::Inline, 1)] {
        for seed in 0..200 {
            let case = Case::random(seed);
            let (id, workflow) = (format!("random-{seed}"), lowered(&case.spec));
            // All have one name, and only one definition can have it in one runner.
            let options = RunnerOptions::new().executor(executor).max_concurrency(limit);
            let runner = Runner::in_memory(options).await.unwrap();
            let found = driven(&runner, &id, &workflow, &case.inputs).await;
            assert_eq!(found, serial(&id, &workflow, &case.inputs), "case {seed}, {executor:?}");
        }
    }
}

#[tokio::test]
async fn i2_random_workflows_on_disk_and_read_again() {
    for seed in 1_000..1_030 {
        let case = Case::random(seed);
        let (id, workflow, disk) = (format!("random-{seed}"), lowered(&case.spec), Disk::new());
        let (runner, store) = disk.open().await;
        let expected = serial(&id, &workflow, &case.inputs);
        assert_eq!(driven(&runner, &id, &workflow, &case.inputs).await, expected, "case {seed}");
        runner.shutdown().await;
        store.close().await;
        let (runner, _store) = disk.open().await;
        let run = runner.start(id.as_str(), &workflow).await.unwrap();
        assert_eq!(outcome(&run.state().await.unwrap(), &workflow), expected, "case {seed}, read again");
    }
}
