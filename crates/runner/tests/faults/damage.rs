//! The log of one run is not what was written: that run says so, and all others go on.

use std::path::Path;
use std::time::Duration;

use tidewheel_core::time::Span;
use tidewheel_core::workflow::{Workflow, step};
use tidewheel_runner::{Runner, RunnerOptions};
use tidewheel_store::Status;

fn waits() -> Workflow {
    let wait = async |x: i64| -> i64 {
        if x > 0 {
            std::future::pending::<()>().await;
        }
        x
    };
    Workflow::new("waits").add(step("wait", wait)).build().unwrap()
}

async fn open(path: &Path) -> Runner {
    Runner::open_with(path, RunnerOptions::new().shutdown_grace(Span::from_millis(0))).await.unwrap()
}

fn damage(path: &Path, run: &str) {
    let connection = rusqlite::Connection::open(path).unwrap();
    let change = "UPDATE events SET body = replace(body, 'input_accepted', 'input_accepter')
        WHERE run = (SELECT key FROM runs WHERE id = ?1)";
    assert!(connection.execute(change, [run]).unwrap() > 0);
}

#[tokio::test]
async fn a_damaged_log_is_the_error_of_its_run_and_of_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let runner = open(&path).await;
    for id in ["a", "b", "c", "d"] {
        runner.run(id, &waits(), 1_i64).await.unwrap();
    }
    runner.shutdown().await;
    damage(&path, "b");
    damage(&path, "d");

    let runner = open(&path).await;
    // Whoever starts it is told.
    let told = tidewheel_words(&runner.start("b", &waits()).await.unwrap_err());
    assert!(told.contains("run `b` is damaged"), "{told}");
    // Whoever takes it because it is due puts it aside, and says why.
    let run = runner.get("d").await.unwrap();
    match tokio::time::timeout(Duration::from_secs(20), run.wait()).await.unwrap() {
        Ok(status) => assert_eq!(status, Status::Parked),
        // Whoever waits may have been there first.
        Err(error) => assert!(tidewheel_words(&error).contains("run `d` is damaged"), "{error}"),
    }
    let told = run.result::<i64>("wait").await.unwrap_err().to_string();
    assert!(told.contains("run `d` is damaged"), "{told}");
    for id in ["a", "c"] {
        let run = runner.start(id, &waits()).await.unwrap();
        assert_eq!(run.state().await.unwrap().inputs_len(), 1);
    }
    let new = runner.run("new", &waits(), 0_i64).await.unwrap();
    assert_eq!(new.result::<i64>("wait").await.unwrap(), 0);
    runner.shutdown().await;
}

/// Returns everything that an error says, with its causes.
fn tidewheel_words(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words = format!("{words}: {error}");
        cause = error.source();
    }
    words
}

#[tokio::test]
async fn a_database_that_is_deleted_while_it_is_open_is_trouble() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let runner = open(&path).await;
    runner.run("a", &waits(), 1_i64).await.unwrap();
    std::fs::remove_file(&path).unwrap();
    let refused = runner.run("b", &waits(), 1_i64).await;
    let told = tidewheel_words(&refused.err().unwrap());
    assert!(told.contains("was renamed or deleted"), "{told}");
    let trouble = runner.trouble().unwrap();
    assert!(trouble.contains("was renamed or deleted"), "{trouble}");
    runner.shutdown().await;
    assert!(!path.exists(), "nothing was made in its place");
}

/// Nothing would ever happen to it, and nobody else drives it.
#[tokio::test]
async fn a_run_that_seems_to_be_driven_by_a_process_that_is_not_there_is_trouble() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let options = RunnerOptions::new().lease(Span::from_millis(300)).shutdown_grace(Span::from_millis(0));
    let runner = Runner::open_with(&path, options).await.unwrap();
    for id in ["a", "b"] {
        runner.run(id, &waits(), 1_i64).await.unwrap();
    }
    let connection = rusqlite::Connection::open(&path).unwrap();
    let change = "UPDATE runs SET wake_at = NULL, owner = 77 WHERE id = 'a'";
    assert_eq!(connection.execute(change, []).unwrap(), 1);
    let trouble = tokio::time::timeout(Duration::from_secs(60), async {
        loop {
            if let Some(trouble) = runner.trouble() {
                return trouble;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert_eq!(trouble.await.unwrap(), "the store is damaged: the record of run `a` is not what was written");
    runner.shutdown().await;
}
