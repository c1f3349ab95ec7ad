//! A value counts only if it reads back equal: what JSON would change is the failure of the work that gave it, live as
//! after a restart, in every store.

use std::collections::BTreeMap;

use tidewheel_core::policy::{self, ExecutionMode, Failure, OnFailure, Policy, Recovery};
use tidewheel_core::work::Context;
use tidewheel_core::workflow::{Workflow, accumulator, compensation, map, reduce, step};
use tidewheel_runner::{CommandError, InputError, Runner, RunnerOptions, StartError};
use tidewheel_store::Status;

use crate::world::{Disk, crash};

type Deep = serde_json::Value;

fn nested(levels: usize) -> Deep {
    (0..levels).fold(Deep::Null, |inner, _| Deep::Array(vec![inner]))
}

/// A step for each way in which JSON would change a value, and those who take what they give.
fn changed() -> Workflow {
    Workflow::new("changed")
        .add(step("nan", |_: i64| f64::NAN))
        .add(step("infinity", |_: i64| Ok::<_, String>(vec![f32::INFINITY])))
        .add(step("nested_none", |_: i64| Some(None::<u8>)))
        .add(step("some_unit", |_: i64| Some(())))
        .add(step("deep", |_: i64| nested(200)))
        .add(step("pairs", |_: i64| BTreeMap::from([((1, 2), 3)])))
        .add(step("inline", |_: i64| f64::NAN))
        .add(step("list", |_: i64| vec![1_i64]))
        .add(map("item", |_: i64| f64::NAN).after("list"))
        .add(reduce("ratio", 0.0, |_: f64, _: i64| f64::NAN).after("list"))
        .add(accumulator("state", 1.0, |state: f64, _: i64| state / 0.0))
        .add(step("fallback", |_: i64| Err::<f64, _>(Failure::new("no"))))
        .add(step("after", |x: Option<f64>| x.is_none()).after("nan"))
        .policy(policy::name("inline"), Policy::new().execution_mode(ExecutionMode::Sync))
        .policy(policy::name("fallback"), Policy::new().fallback(|_, _, _| Recovery::value(f64::NAN)))
        .build()
        .expect("a sound workflow")
}

const CHANGED: [&str; 11] = [
    "nan",
    "infinity",
    "nested_none",
    "some_unit",
    "deep",
    "pairs",
    "inline",
    "item",
    "ratio",
    "state",
    "fallback",
];

async fn failures(runner: &Runner) -> Vec<(String, String)> {
    let run = runner.start("first", &changed()).await.expect("a run");
    assert_eq!(run.wait().await.expect("a run"), Status::Failed);
    let state = run.state().await.expect("a run");
    let mut found: Vec<(String, String)> = state
        .failures()
        .iter()
        .map(|failed| (failed.component.unwrap_or_default().to_owned(), failed.failure.to_string()))
        .collect();
    found.sort();
    assert!(
        state.results::<bool>("after").expect("a run").is_empty(),
        "nothing goes on with a value that is none"
    );
    found
}

fn check(found: &[(String, String)]) {
    for name in CHANGED {
        let (_, failure) =
            found.iter().find(|(node, _)| node == name).unwrap_or_else(|| panic!("{name}: {found:?}"));
        assert!(failure.contains("unserialisable"), "{name}: {failure}");
    }
    assert_eq!(found.len(), CHANGED.len(), "{found:?}");
}

#[tokio::test(start_paused = true)]
async fn a_value_that_json_would_change_fails_its_step_in_the_memory_store() {
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    runner.run("first", &changed(), 1_i64).await.unwrap().wait().await.unwrap();
    check(&failures(&runner).await);
}

#[tokio::test]
async fn a_value_that_json_would_change_fails_its_step_live_as_after_a_restart() {
    let disk = Disk::new();
    let (runner, store) = disk.open().await;
    runner.run("first", &changed(), 1_i64).await.unwrap().wait().await.unwrap();
    let live = failures(&runner).await;
    check(&live);
    crash(runner, &store).await;
    let (runner, _store) = disk.open().await;
    assert_eq!(failures(&runner).await, live);
}

#[test]
fn a_run_in_memory_serialises_nothing() {
    let mut run = changed().with_policies([]).unwrap().run("first");
    run.react_until_satisfied(1_i64).unwrap();
    assert!(run.result::<f64>("nan").unwrap().unwrap().is_nan());
    assert_eq!(run.result::<Vec<f32>>("infinity").unwrap(), Some(vec![f32::INFINITY]));
    assert_eq!(run.result::<Option<Option<u8>>>("nested_none").unwrap(), Some(Some(None)));
    assert_eq!(run.result::<BTreeMap<(i32, i32), i32>>("pairs").unwrap().unwrap()[&(1, 2)], 3);
    assert!(run.result::<f64>("state").unwrap().unwrap().is_infinite());
}

#[tokio::test(start_paused = true)]
async fn an_input_a_signal_and_an_end_from_outside_that_json_would_change_are_refused() {
    let workflow = Workflow::new("asked").add(step("take", |x: Option<f64>| x.is_some())).build().unwrap();
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let error = runner.run("first", &workflow, Some(f64::NAN)).await.unwrap_err();
    assert!(matches!(error, StartError::Input(_)), "{error:?}");
    let run = runner.start("first", &workflow).await.unwrap();
    for _ in 0..2 {
        let error = run.input(Some(f64::INFINITY)).await.unwrap_err();
        assert!(matches!(error, InputError::Unserialisable(_)), "{error:?}");
        let error = run.signal("take", Some(None::<f64>)).await.unwrap_err();
        assert!(matches!(error, InputError::Unserialisable(_)), "{error:?}");
    }
    assert_eq!(run.state().await.unwrap().inputs_len(), 0);

    let external = Policy::new().execution_mode(ExecutionMode::External);
    let (give, mut token) = tokio::sync::mpsc::unbounded_channel();
    let work = move |context: Context, x: i64| {
        give.send(context.token()).unwrap();
        x
    };
    let workflow = Workflow::new("outside")
        .add(step("ask", work))
        .policy(policy::name("ask"), external)
        .build()
        .unwrap();
    let run = runner.run("outside", &workflow, 1_i64).await.unwrap();
    let token = token.recv().await.unwrap();
    let error = runner.complete(&token, f64::NAN).await.unwrap_err();
    assert!(matches!(error, CommandError::Unserialisable(_)), "{error:?}");
    runner.complete(&token, 2_i64).await.unwrap();
    assert_eq!(run.result::<i64>("ask").await.unwrap(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_state_that_cannot_be_stored_is_refused_before_anything_is() {
    let workflow = Workflow::new("bank")
        .add(accumulator("balance", f64::NAN, |balance: f64, more: f64| balance + more))
        .build()
        .unwrap();
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let error = runner.start("first", &workflow).await.unwrap_err();
    let StartError::Policies(problems) = error else { panic!("{error:?}") };
    assert!(problems.to_string().contains("balance.initial"), "{problems}");
}

/// The fallback failed, too, and `on_failure` says what that means.
#[tokio::test(start_paused = true)]
async fn a_fallback_whose_value_cannot_be_stored_leaves_it_to_on_failure() {
    let policy = Policy::new().on_failure(OnFailure::Skip).fallback(|_, _, _| Recovery::value(f64::NAN));
    let workflow = Workflow::new("skips")
        .add(step("fails", |_: i64| Err::<f64, _>(Failure::new("no"))))
        .policy(policy::default(), policy)
        .build()
        .unwrap();
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let run = runner.run("first", &workflow, 1_i64).await.unwrap();
    assert_eq!(run.wait().await.unwrap(), Status::Completed);
    let problem = Policy::new().fallback_value(f64::NAN).resolved().unwrap_err();
    assert!(problem.to_string().contains("is not finite"), "{problem}");
}

#[tokio::test(start_paused = true)]
async fn what_would_undo_work_is_checked_like_its_result() {
    let workflow = Workflow::new("trip")
        .add(step("book", |context: Context, x: i64| {
            context.register_compensation("cancel", f64::NAN);
            x
        }))
        .add(compensation("cancel", |_: f64| ()))
        .build()
        .unwrap();
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let run = runner.run("first", &workflow, 1_i64).await.unwrap();
    assert_eq!(run.wait().await.unwrap(), Status::Failed);
    let error = run.result::<i64>("book").await.unwrap_err().to_string();
    assert!(error.contains("unserialisable"), "{error}");
}
