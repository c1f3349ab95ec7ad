//! A disk that failed while it was written to: nothing can be trusted any more, and everybody is told so.

use std::time::Duration;

use tidewheel_core::time::Span;
use tidewheel_core::workflow::{Workflow, step};
use tidewheel_runner::{Runner, RunnerOptions};
use tidewheel_store::{Filter, sqlite};

use crate::other::{Folder, Other, Part, endless};

#[test]
fn after_the_disk_failed_everything_is_an_error_and_nothing_hangs() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = Folder(temporary.path().to_owned());
    assert!(Other::start(Part::Break, &folder, 0).ended_well());
}

async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    let timeout = tokio::time::timeout(Duration::from_secs(20), future);
    timeout.await.unwrap_or_else(|_| panic!("{what} hangs"))
}

/// What the other process does: the disk that fails is the same for all of its tests.
pub(crate) async fn meet_a_broken_disk(folder: &Folder) {
    let options = RunnerOptions::new().shutdown_grace(Span::from_millis(100));
    let runner = Runner::open_with(folder.database(), options).await.unwrap();
    let inc = Workflow::new("inc").add(step("inc", |x: i64| x + 1)).build().unwrap();
    let run = runner.run("a", &inc, 1_i64).await.unwrap();
    assert_eq!(run.result::<i64>("inc").await.unwrap(), 2);
    let idle = runner.start("idle", &inc).await.unwrap();
    let stuck = runner.run("stuck", &endless(), 1_i64).await.unwrap();

    sqlite::failpoint::fail_sync();
    let failed = soon("an input", run.input(2_i64)).await.unwrap_err();
    assert!(failed.to_string().contains("must be opened again"), "{failed}");
    let told = runner.trouble().unwrap();
    assert!(told.contains("must be opened again"), "{told}");
    for run in [&run, &idle, &stuck] {
        soon("another input", run.input(3_i64)).await.unwrap_err();
        soon("a pause", run.pause()).await.unwrap_err();
        soon("a cancel", run.cancel()).await.unwrap_err();
    }
    soon("a result", run.result::<i64>("inc")).await.unwrap_err();
    soon("the end", run.wait()).await.unwrap_err();
    soon("a start", runner.start("b", &inc)).await.unwrap_err();
    soon("a list", runner.list(Filter::default())).await.unwrap_err();
    soon("a shutdown", runner.shutdown()).await;
}
