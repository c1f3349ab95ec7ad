//! Each kind of call to the store fails once, before it is done or after: what runs come to is the same.

use std::fmt::Display;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tidewheel_core::time::Span;
use tidewheel_runner::{Executor, Runner, RunnerOptions};
use tidewheel_store::{Memory, RealClock, Sqlite, Status, Store, Unavailable};
use tidewheel_testkit::{Call, FaultyStore, Outage, When};
use tokio::task::JoinSet;

use crate::proof::{Lives, Productions, Seen, check, undisturbed};
use crate::work::{WORKFLOWS, effects, inputs_of, workflow_of, write_down};

const CALLS: [Call; 12] = [
    Call::Append,
    Call::Read,
    Call::Find,
    Call::Definition,
    Call::Join,
    Call::Renew,
    Call::Leave,
    Call::Claim,
    Call::Release,
    Call::Send,
    Call::Commands,
    Call::CommandsOf,
];

const WHY: [Unavailable; 4] = [Unavailable::Full, Unavailable::Busy, Unavailable::ReadOnly, Unavailable::Io];

static EFFECTS: LazyLock<(tempfile::TempDir, PathBuf)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("effects");
    write_down(&path, 0, |_| {});
    (folder, path)
});

#[tokio::test(flavor = "multi_thread")]
async fn whatever_call_fails_runs_in_memory_come_to_the_same() {
    local(|| (None, Arc::new(Memory::new(Arc::new(RealClock::new())))), 1..=6).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_call_fails_runs_in_sqlite_come_to_the_same() {
    let store = || {
        let folder = tempfile::tempdir().unwrap();
        let store = Sqlite::open(folder.path().join("runs.db"), Arc::new(RealClock::new())).unwrap();
        (Some(folder), Arc::new(store) as Arc<dyn Store>)
    };
    local(store, 1..=3).await;
}

async fn local(
    store: impl Fn() -> (Option<tempfile::TempDir>, Arc<dyn Store>),
    times: std::ops::RangeInclusive<u64>,
) {
    tokio::task::LocalSet::new().run_until(every_call(store, times)).await;
}

async fn every_call(
    store: impl Fn() -> (Option<tempfile::TempDir>, Arc<dyn Store>),
    times: std::ops::RangeInclusive<u64>,
) {
    LazyLock::force(&EFFECTS);
    let expected = Arc::new(undisturbed(WORKFLOWS.len()).await);
    let mut cases = JoinSet::new();
    let mut met = 0;
    for (number, call) in CALLS.into_iter().enumerate() {
        for nth in times.clone() {
            for when in [When::Before, When::After] {
                let turn = number + usize::try_from(nth).unwrap() + usize::from(when == When::After);
                // An answer is lost with the connection.
                let why = if when == When::After { Unavailable::Io } else { WHY[turn % WHY.len()] };
                let (folder, inner) = store();
                let expected = Arc::clone(&expected);
                let fault = (call, nth, Outage { why, when });
                cases.spawn_local(async move {
                    let has_failed = one_case(inner, fault, &expected).await;
                    drop(folder);
                    has_failed
                });
                if cases.len() >= 8 {
                    met += usize::from(cases.join_next().await.unwrap().unwrap());
                }
            }
        }
    }
    while let Some(case) = cases.join_next().await {
        met += usize::from(case.unwrap());
    }
    assert!(met > 3 * CALLS.len(), "most calls are made often enough to fail: {met} did");
}

/// Lets all kinds of runs come to their end, with a fault on the way. Tells whether it was met.
async fn one_case(inner: Arc<dyn Store>, fault: (Call, u64, Outage), expected: &[Productions]) -> bool {
    let (call, nth, outage) = fault;
    let name = format!("{call:?}-{nth}-{:?}-{:?}", outage.when, Arc::as_ptr(&inner).cast::<()>());
    let store = Arc::new(FaultyStore::new(Arc::clone(&inner)));
    store.fail_nth(call, nth, outage);
    let case = run_all(&store, &name);
    tokio::time::timeout(Duration::from_secs(60), case).await.unwrap_or_else(|_| panic!("{name} hangs"));

    let done = effects(&EFFECTS.1);
    let mut lives = Lives::default();
    lives.begin();
    for (number, expected) in expected.iter().enumerate() {
        let id = format!("{name}-{number}");
        let effects: Vec<_> = done.iter().filter(|effect| effect.run == id).cloned().collect();
        check(&*inner, &id, number, expected, &effects, &lives, &mut Seen::default()).await;
    }
    store.calls(call) >= nth
}

async fn run_all(store: &Arc<FaultyStore>, name: &str) {
    let options = || {
        let lease = Span::from_millis(900);
        RunnerOptions::new().executor(Executor::Tasks).max_active_runs(4).lease(lease)
    };
    let open =
        async |options: RunnerOptions| Runner::with_store(Arc::clone(store) as Arc<dyn Store>, options).await;
    let runner = again(async || open(options()).await).await;
    let other = again(async || open(options().only_own_runs()).await).await;
    let mut runs = Vec::new();
    for number in 0..WORKFLOWS.len() {
        let (id, workflow) = (format!("{name}-{number}"), workflow_of(number));
        other.register(workflow).unwrap();
        let run = again(async || runner.start(id.as_str(), workflow).await).await;
        let inputs = inputs_of(number);
        for (key, input) in inputs.iter().enumerate() {
            // Somebody elsewhere gives the last one.
            if key > 0 && key + 1 == inputs.len() {
                let run = again(async || other.get(id.as_str()).await).await;
                again(async || run.input_keyed(key.to_string(), *input).await).await;
            } else {
                again(async || run.input_keyed(key.to_string(), *input).await).await;
            }
        }
        runs.push((run, inputs.len()));
    }
    for (run, inputs) in runs {
        loop {
            let status = again(async || run.wait().await).await;
            let state = again(async || run.state().await).await;
            // What was given elsewhere may still be on its way.
            if status == Status::Completed && state.inputs_len() as usize == inputs && !state.is_runnable() {
                break;
            }
            assert!(matches!(status, Status::Completed | Status::Running | Status::Waiting), "{status}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    assert_eq!(runner.trouble(), None, "{name}");
    runner.shutdown().await;
    other.shutdown().await;
}

/// Does something until it goes well.
async fn again<T, E: Display>(mut ask: impl AsyncFnMut() -> Result<T, E>) -> T {
    for _ in 0..100 {
        match ask().await {
            Ok(answer) => return answer,
            Err(error) => assert!(!error.to_string().is_empty()),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("it never goes well")
}
