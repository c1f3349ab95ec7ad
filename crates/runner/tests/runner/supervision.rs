//! What goes wrong in a run stays in that run: a value that cannot be written, and a crash that is not the
//! failure of work.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize, Serializer};
use tidewheel_core::workflow::{Workflow, step};
use tidewheel_runner::{Runner, RunnerOptions};
use tidewheel_store::{Filter, Status};

use crate::world::{Watched, numbers};

/// A value that cannot be written as JSON.
#[derive(Clone, Deserialize)]
struct Unwritable;

impl Serialize for Unwritable {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("it cannot be written"))
    }
}

/// A value whose writing panics.
#[derive(Clone, Deserialize)]
struct Panicking;

impl Serialize for Panicking {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        std::panic::resume_unwind(Box::new("it panics"))
    }
}

#[tokio::test(start_paused = true)]
async fn a_value_that_cannot_be_written_is_the_failure_of_its_work() {
    let workflow = Workflow::new("unwritable")
        .add(step("error", |_: i64| Unwritable))
        .add(step("panic", |_: i64| Panicking))
        .add(step("list", |_: i64| vec![Unwritable]))
        .add(step("fine", |x: i64| x))
        .build()
        .unwrap();
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let run = runner.run("first", &workflow, 1_i64).await.unwrap();
    assert_eq!(run.wait().await.unwrap(), Status::Failed);
    assert_eq!(run.result::<i64>("fine").await.unwrap(), 1);
    for name in ["error", "panic", "list"] {
        let error = run.result::<i64>(name).await.unwrap_err().to_string();
        assert!(error.starts_with(&format!("`{name}` failed: [unserialisable]")), "{error}");
    }
}

/// A value that can be written as long as nobody counts to a number.
#[derive(Clone)]
struct Fragile {
    left: Arc<AtomicU32>,
}

impl Serialize for Fragile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_err() {
            std::panic::resume_unwind(Box::new("it broke"));
        }
        serializer.serialize_u32(7)
    }
}

impl<'de> Deserialize<'de> for Fragile {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u32::deserialize(deserializer)?;
        Ok(Self { left: Arc::new(AtomicU32::new(u32::MAX)) })
    }
}

/// A step whose value breaks after it was checked, for so many calls.
fn breaks(times: u32, calls: &Arc<AtomicU32>) -> Workflow {
    let calls = Arc::clone(calls);
    let work = move |_: i64| {
        let call = calls.fetch_add(1, Ordering::SeqCst);
        Fragile { left: Arc::new(AtomicU32::new(if call < times { 1 } else { u32::MAX })) }
    };
    Workflow::new("breaks")
        .add(step("before", |x: i64| x))
        .add(step("fragile", work).after("before"))
        .build()
        .expect("a sound workflow")
}

#[tokio::test(start_paused = true)]
async fn a_run_that_crashes_is_taken_up_again_from_what_is_stored() {
    let calls = Arc::new(AtomicU32::new(0));
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let run = runner.run("first", &breaks(2, &calls), 1_i64).await.unwrap();
    let other = runner.run("other", &numbers(), 1_i64).await.unwrap();
    assert_eq!(run.result::<u32>("fragile").await.unwrap(), 7);
    assert_eq!(calls.load(Ordering::SeqCst), 3);
    assert_eq!(run.results::<i64>("before").await.unwrap(), [1]);
    assert_eq!(other.result::<i64>("sum").await.unwrap(), 6);
    assert_eq!(run.wait().await.unwrap(), Status::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_keeps_crashing_is_parked_with_its_reason_and_can_be_resumed() {
    let calls = Arc::new(AtomicU32::new(0));
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let run = runner.run("first", &breaks(5, &calls), 1_i64).await.unwrap();
    assert_eq!(run.wait().await.unwrap(), Status::Parked);
    assert_eq!(calls.load(Ordering::SeqCst), 3);
    let parked = Filter { statuses: vec![Status::Parked], ..Filter::default() };
    let listed = runner.list(parked).await.unwrap().rows;
    assert_eq!(listed[0].id.as_str(), "first");
    let reason = listed[0].reason.as_deref().unwrap();
    assert!(reason.ends_with("it panicked: it broke"), "{reason}");
    let error = run.result::<u32>("fragile").await.unwrap_err();
    assert_eq!(error.to_string(), format!("run `first` is parked: {reason}"));
    assert_eq!(run.input(2_i64).await.unwrap_err().to_string(), "run `first` is parked and takes no input");
    run.resume().await.unwrap();
    assert_eq!(run.result::<u32>("fragile").await.unwrap(), 7);
    assert_eq!(calls.load(Ordering::SeqCst), 6);
}

/// The panic is the caller's; the run must be what is stored, and nothing else.
#[tokio::test(start_paused = true)]
async fn an_input_that_breaks_while_it_is_taken_leaves_the_run_as_it_was() {
    let workflow = Workflow::new("fragile").add(step("take", |_: serde_json::Value| 1)).build().unwrap();
    let store = Watched::new();
    let runner = store.runner(RunnerOptions::new()).await;
    let run = runner.start("first", &workflow).await.unwrap();
    run.input(serde_json::json!(1)).await.unwrap();
    run.wait().await.unwrap();
    let broken = tokio::spawn({
        let run = run.clone();
        async move { run.input(Fragile { left: Arc::new(AtomicU32::new(1)) }).await }
    });
    assert!(broken.await.unwrap_err().is_panic());
    run.input(serde_json::json!(2)).await.unwrap();
    assert_eq!(run.result::<i64>("take").await.unwrap(), 1);
    run.wait().await.unwrap();
    assert_eq!(run.state().await.unwrap().inputs_len(), 2);
    runner.shutdown().await;
    let runner = store.runner(RunnerOptions::new()).await;
    let run = runner.start("first", &workflow).await.unwrap();
    assert_eq!(run.state().await.unwrap().inputs_len(), 2, "and it can be read again");
}
