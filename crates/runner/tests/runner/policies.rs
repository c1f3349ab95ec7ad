//! Policies of the workflow and of the run are there after a restart, and failures stay what they were.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tidewheel_core::event::Absence;
use tidewheel_core::fact::Value;
use tidewheel_core::policy::{
    self, Backoff, ExecutionMode, Failure, NodeInfo, Overlay, Policy, Recovery, Rules,
};
use tidewheel_core::time::Span;
use tidewheel_core::workflow::{Workflow, rule, step};
use tidewheel_runner::{ResultError, Runner, RunnerOptions, StartError, StartOptions};
use tidewheel_store::{Memory, RealClock, Status, Store};

use crate::world::{Disk, Gate, Watched, count, crash, log};

/// A step that waits for a word in its first attempt and fails as often as it should.
fn flaky(gate: &Gate, fails: u32, policy: Option<Policy>) -> (Workflow, Arc<AtomicU32>) {
    let calls = Arc::new(AtomicU32::new(0));
    let (counted, gate) = (Arc::clone(&calls), gate.clone());
    let work = move |x: i64| {
        let (calls, gate) = (Arc::clone(&counted), gate.clone());
        async move {
            let call = calls.fetch_add(1, Ordering::Relaxed);
            if call == 0 {
                gate.pass().await;
            }
            if call < fails { Err(Failure::new("busy")) } else { Ok(x + 1) }
        }
    };
    let builder = Workflow::new("flaky").add(step("inc", work)).add(step("after", |x: i64| x).after("inc"));
    let builder = match policy {
        Some(policy) => builder.policy(policy::name("inc"), policy),
        None => builder,
    };
    (builder.build().expect("a sound workflow"), calls)
}

fn thrice() -> Policy {
    Policy::new().max_retries(3).backoff(Backoff::None)
}

#[tokio::test]
async fn f12_policies_of_the_workflow_and_of_the_run_hold_after_a_restart() {
    for is_runtime in [false, true] {
        let (disk, gate) = (Disk::new(), Gate::new());
        // The first call is lost with its process; the next two fail.
        let (workflow, calls) = flaky(&gate, 3, (!is_runtime).then(thrice));
        let rules = Rules::new([(policy::name("inc"), thrice())]).unwrap();
        let options = StartOptions::new().policies(rules, Overlay::Merge);
        let options = if is_runtime { options } else { StartOptions::new() };
        let (runner, store) = disk.open().await;
        runner.run_with("first", &workflow, 1_i64, &options).await.unwrap();
        gate.began().await;
        crash(runner, &store).await;
        let (runner, store) = disk.open().await;
        // Without the rules: they were stored with the run.
        let run = runner.start("first", &workflow).await.unwrap();
        assert_eq!(run.result::<i64>("inc").await.unwrap(), 2);
        assert_eq!(calls.load(Ordering::Relaxed), 4);
        assert_eq!(count(&log(&*store, "first").await, "attempt_failed"), 2);
        runner.shutdown().await;
    }
}

#[tokio::test]
async fn f12_rules_that_hold_a_function_are_asked_for_again_by_name() {
    let (disk, gate) = (Disk::new(), Gate::new());
    let (workflow, _) = flaky(&gate, 100, None);
    let rules = |value: i64| {
        let fallback = Policy::new().fallback(move |_, _, _| Recovery::value(value));
        let rules = [(policy::name("other"), Policy::new()), (policy::name("inc"), fallback)];
        StartOptions::new().policies(Rules::new(rules).expect("sound rules"), Overlay::Merge)
    };
    let (runner, store) = disk.open().await;
    runner.run_with("first", &workflow, 1_i64, &rules(41)).await.unwrap();
    gate.began().await;
    crash(runner, &store).await;

    let (runner, store) = disk.open_with(RunnerOptions::new().only_own_runs()).await;
    let error = runner.start("first", &workflow).await.unwrap_err();
    assert!(matches!(&error, StartError::Functions { rule: 1, .. }), "{error:?}");
    assert!(error.to_string().contains("rule 1 of run `first`") && error.to_string().contains("fallback"));
    let run = runner.start_with("first", &workflow, &rules(42)).await.unwrap();
    assert_eq!(run.result::<i64>("after").await.unwrap(), 42);
    runner.shutdown().await;
    store.close().await;
}

/// The runner takes runs up that are due; one that lacks its functions is put aside, with its reason, until
/// somebody gives them.
#[tokio::test]
async fn f12_a_run_that_lacks_its_functions_waits_until_they_are_given() {
    let (disk, gate) = (Disk::new(), Gate::new());
    let (workflow, _) = flaky(&gate, 100, None);
    let rules = [(policy::name("inc"), Policy::new().fallback(|_, _, _| Recovery::value(42)))];
    let options = StartOptions::new().policies(Rules::new(rules).unwrap(), Overlay::Merge);
    let (runner, store) = disk.open().await;
    runner.run_with("first", &workflow, 1_i64, &options).await.unwrap();
    gate.began().await;
    crash(runner, &store).await;

    let (runner, store) = disk.open().await;
    runner.register(&workflow).unwrap();
    let record = loop {
        let record = store.find(&"first".into()).await.unwrap().unwrap();
        if record.status == Status::Parked {
            break record;
        }
        tokio::task::yield_now().await;
    };
    assert!(record.reason.unwrap().contains("rule 0"));
    let run = runner.start_with("first", &workflow, &options).await.unwrap();
    assert_eq!(run.result::<i64>("after").await.unwrap(), 42);
    runner.shutdown().await;
}

#[tokio::test]
async fn h14_what_failed_stays_failed_after_a_restart() {
    let disk = Disk::new();
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let workflow = Workflow::new("fails")
        .add(step("fails", move |_: i64| {
            counted.fetch_add(1, Ordering::Relaxed);
            Err::<i64, _>(Failure::new("no way").code("E7"))
        }))
        .add(step("after", |x: i64| x).after("fails"))
        .add(step("last", |x: i64| x).after("after"))
        .add(step("fine", |x: i64| x))
        .build()
        .unwrap();
    let (runner, store) = disk.open().await;
    let run = runner.run("first", &workflow, 1_i64).await.unwrap();
    assert_eq!(run.wait().await.unwrap(), Status::Failed);
    drop(run);
    crash(runner, &store).await;
    let (runner, _store) = disk.open().await;
    let run = runner.start("first", &workflow).await.unwrap();
    assert_eq!(run.wait().await.unwrap(), Status::Failed);
    assert_eq!(run.result::<i64>("fine").await.unwrap(), 1);
    let state = run.state().await.unwrap();
    assert_eq!(state.failures()[0].failure.to_string(), "[E7] no way");
    assert_eq!(state.absence("after", 0), Some(Absence::UpstreamFailed));
    assert_eq!(state.absence("last", 0), Some(Absence::UpstreamFailed));
    run.resume().await.unwrap_err();
    run.input(2_i64).await.unwrap();
    assert_eq!(run.result::<i64>("fine").await.unwrap(), 2);
    run.wait().await.unwrap();
    assert_eq!(calls.load(Ordering::Relaxed), 2, "once for each input");
    runner.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn f10_rules_of_the_run_come_before_those_of_the_workflow_or_in_their_place() {
    let gate = Gate::new();
    gate.open(100);
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let (workflow, calls) = flaky(&gate, 2, Some(Policy::new().max_retries(0)));
    let rules = Rules::new([(policy::name("inc"), thrice())]).unwrap();
    let options = StartOptions::new().policies(rules, Overlay::Merge);
    let run = runner.run_with("merged", &workflow, 1_i64, &options).await.unwrap();
    assert_eq!(run.result::<i64>("inc").await.unwrap(), 2);
    assert_eq!(calls.load(Ordering::Relaxed), 3);

    let slow = Workflow::new("slow")
        .add(step("inc", |x: i64| async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            x + 1
        }))
        .policy(policy::default(), Policy::new().timeout("1ms"))
        .build()
        .unwrap();
    let rules = Rules::new([(policy::default(), Policy::new().timeout("infinity"))]).unwrap();
    let options = StartOptions::new().policies(rules, Overlay::Replace);
    let run = runner.run_with("replaced", &slow, 5_i64, &options).await.unwrap();
    assert_eq!(run.result::<i64>("inc").await.unwrap(), 6);
    let run = runner.run("bounded", &slow, 5_i64).await.unwrap();
    assert!(matches!(run.result::<i64>("inc").await, Err(ResultError::Failed { .. })));
}

#[tokio::test(start_paused = true)]
async fn f11_a_policy_holds_for_the_reaction_of_a_rule() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let react = move |x: i64| match counted.fetch_add(1, Ordering::Relaxed) {
        0 | 1 => Err(Failure::new("busy")),
        _ => Ok(x * 10),
    };
    let workflow = Workflow::new("rules")
        .add(rule("big").when(|x: &i64| *x > 5).then(react))
        .policy(policy::name("big"), Policy::new().max_retries(3))
        .build()
        .unwrap();
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let run = runner.run("first", &workflow, 10_i64).await.unwrap();
    assert_eq!(run.result::<i64>("big").await.unwrap(), 100);
}

#[tokio::test(start_paused = true)]
async fn i9_durable_work_is_dispatched_and_completed_in_the_log_and_sync_work_is_not_dispatched() {
    let store = Watched::new();
    let runner = store.runner(RunnerOptions::new()).await;
    let workflow = |name: &str, policy: Policy| {
        Workflow::new(name)
            .add(step("inc", |x: i64| x + 1))
            .add(step("double", |x: i64| x * 2).after("inc"))
            .policy(policy::default(), policy)
            .build()
            .unwrap()
    };
    for (mode, dispatched) in [
        (None, 2),
        (Some(ExecutionMode::Durable), 2),
        (Some(ExecutionMode::Async), 2),
        (Some(ExecutionMode::Sync), 0),
    ] {
        let name = format!("{mode:?}");
        let policy = mode.map_or_else(Policy::new, |mode| Policy::new().execution_mode(mode));
        let run = runner.run(name.as_str(), &workflow(&name, policy), 1_i64).await.unwrap();
        assert_eq!(run.result::<i64>("double").await.unwrap(), 4);
        let events = log(&store, &name).await;
        assert_eq!(count(&events, "runnable_dispatched"), dispatched, "{name}");
        assert_eq!(count(&events, "fact_produced"), 3, "{name}");
        if dispatched > 0 {
            assert_eq!(count(&events, "runnable_completed"), 2, "{name}");
        }
    }
}

/// The next attempt at such work has no event of its own to wait for.
#[tokio::test(start_paused = true)]
async fn work_in_sync_mode_is_tried_again() {
    let gate = Gate::new();
    gate.open(1);
    let sync = Policy::new()
        .max_retries(3)
        .backoff(Backoff::Fixed)
        .base_delay("1s")
        .execution_mode(ExecutionMode::Sync);
    let (workflow, calls) = flaky(&gate, 2, Some(sync));
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let run = runner.run("first", &workflow, 1_i64).await.unwrap();
    assert_eq!(run.result::<i64>("inc").await.unwrap(), 2);
    assert_eq!(calls.load(Ordering::Relaxed), 3);
}

#[tokio::test(start_paused = true)]
async fn the_deadline_of_a_run_counts_from_the_input_and_holds_without_policies() {
    let workflow = Workflow::new("slow")
        .add(step("wait", |x: u64| async move {
            tokio::time::sleep(Duration::from_millis(x)).await;
            x
        }))
        .add(
            step("again", |x: u64| async move {
                tokio::time::sleep(Duration::from_millis(x)).await;
                x
            })
            .after("wait"),
        )
        .build()
        .unwrap();
    let store = Watched::new();
    let runner = store.runner(RunnerOptions::new()).await;
    let options = StartOptions::new().deadline(Span::from_millis(100));
    let run = runner.start_with("first", &workflow, &options).await.unwrap();
    run.input(40_u64).await.unwrap();
    assert_eq!(run.result::<u64>("again").await.unwrap(), 40);
    tokio::time::sleep(Duration::from_secs(10)).await;
    run.input(70_u64).await.unwrap();
    assert_eq!(run.result::<u64>("wait").await.unwrap(), 70, "each input has its own");
    let error = run.result::<u64>("again").await.unwrap_err().to_string();
    assert!(error.contains("[deadline_exceeded]"), "{error}");
    runner.shutdown().await;
    let runner = store.runner(RunnerOptions::new()).await;
    let run = runner.start("first", &workflow).await.unwrap();
    run.input(200_u64).await.unwrap();
    let error = run.result::<u64>("wait").await.unwrap_err().to_string();
    assert!(error.contains("[deadline_exceeded]"), "it is stored with the run: {error}");
}

#[tokio::test(start_paused = true)]
async fn g15_a_slot_is_released_while_work_waits_for_its_next_attempt() {
    let gate = Gate::new();
    gate.open(1);
    let slowly = Policy::new().max_retries(3).backoff(Backoff::Fixed).base_delay("10m").max_delay("10m");
    let (workflow, _) = flaky(&gate, 1, Some(slowly));
    let runner = Runner::in_memory(RunnerOptions::new().max_concurrency(1).max_active_runs(1)).await.unwrap();
    let waits = runner.run("waits", &workflow, 1_i64).await.unwrap();
    gate.began().await;
    let began = tokio::time::Instant::now();
    for number in 0..3 {
        let id = format!("other-{number}");
        let run = runner.run(id.as_str(), &crate::world::numbers(), 1_i64).await.unwrap();
        assert_eq!(run.result::<i64>("sum").await.unwrap(), 6);
    }
    assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
    assert_eq!(waits.result::<i64>("inc").await.unwrap(), 2);
    assert!(began.elapsed().as_secs() >= 600);
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_cannot_act_is_refused_by_name_before_anything_is_stored() {
    let store = Arc::new(Memory::new(Arc::new(RealClock::new())));
    let options = RunnerOptions::new().clock(Arc::new(RealClock::new()));
    let runner = Runner::with_store(Arc::clone(&store) as Arc<dyn Store>, options).await.unwrap();
    let workflow = Workflow::new("external").add(step("inc", |x: i64| x + 1)).build().unwrap();
    let undone = Rules::new([(policy::name("inc"), Policy::new().compensation_node("nobody"))]).unwrap();
    let options = StartOptions::new().policies(undone, Overlay::Merge);
    let error = runner.start_with("first", &workflow, &options).await.unwrap_err();
    assert!(matches!(error, StartError::Policies(_)), "{error:?}");
    assert!(store.find(&"first".into()).await.unwrap().is_none());
}

/// Neither does a slow fallback keep the run from being looked at, nor does a value of it that cannot be stored
/// take the run down.
#[tokio::test(flavor = "multi_thread")]
async fn a_fallback_is_not_asked_under_the_lock_of_its_run() {
    let (asked, may_answer) = (Arc::new(tokio::sync::Notify::new()), Arc::new(std::sync::Barrier::new(2)));
    let (told, waits) = (Arc::clone(&asked), Arc::clone(&may_answer));
    let fallback = move |_: &NodeInfo<'_>, _: &Value, _: &Failure| {
        told.notify_one();
        waits.wait();
        Recovery::value(std::collections::BTreeMap::from([((1, 2), 3)]))
    };
    let workflow = Workflow::new("slow")
        .add(step("fails", |_: i64| Err::<i64, _>(Failure::new("no"))))
        .policy(policy::default(), Policy::new().fallback(fallback))
        .build()
        .unwrap();
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let run = runner.run("first", &workflow, 1_i64).await.unwrap();
    asked.notified().await;
    assert!(run.state().await.unwrap().is_runnable(), "the run can be looked at meanwhile");
    tokio::task::spawn_blocking(move || may_answer.wait()).await.unwrap();
    assert_eq!(run.wait().await.unwrap(), Status::Failed);
    let error = run.result::<i64>("fails").await.unwrap_err().to_string();
    assert!(error.contains("unserialisable"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_completed_with_skipped_failures_says_so() {
    let workflow = Workflow::new("news")
        .add(step("write", |x: i64| x))
        .add(step("publish", |_: i64| Err::<i64, _>(Failure::new("no network"))).after("write"))
        .policy(policy::name("publish"), Policy::io())
        .build()
        .unwrap();
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let run = runner.run("first", &workflow, 1_i64).await.unwrap();
    assert_eq!(run.wait().await.unwrap(), Status::Completed);
    assert_eq!(run.state().await.unwrap().skipped_failures(), 1);
    let reason = |record: &tidewheel_store::RunRecord| record.reason.clone();
    let listed = runner.list(tidewheel_store::Filter::default()).await.unwrap().rows;
    assert_eq!(reason(&listed[0]).as_deref(), Some("1 failure was skipped"));
    run.input(2_i64).await.unwrap();
    run.wait().await.unwrap();
    let listed = runner.list(tidewheel_store::Filter::default()).await.unwrap().rows;
    assert_eq!(reason(&listed[0]).as_deref(), Some("2 failures were skipped"));
}

#[tokio::test(start_paused = true)]
async fn an_expired_deadline_logs_no_attempt_that_never_ran() {
    let slow = |x: i64| async move {
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        x
    };
    let workflow = Workflow::new("late")
        .add(step("slow", slow))
        .add(step("late", |x: i64| x).after("slow"))
        .policy(policy::name("late"), Policy::new().deadline("1s").max_retries(2))
        .build()
        .unwrap();
    for of_run in [false, true] {
        let store = Watched::new();
        let runner = store.runner(RunnerOptions::new()).await;
        let options =
            if of_run { StartOptions::new().deadline(Span::from_secs(1)) } else { StartOptions::new() };
        let run = runner.run_with("first", &workflow, 1_i64, &options).await.unwrap();
        assert_eq!(run.wait().await.unwrap(), Status::Failed);
        let events = log(&store, "first").await;
        assert_eq!(count(&events, "runnable_dispatched"), 1, "only the first step began: {events:?}");
        let failed: Vec<_> = events.iter().filter(|(name, _)| name == "runnable_failed").collect();
        let attempts: Vec<_> = failed.iter().map(|(_, body)| body["attempts"].clone()).collect();
        assert_eq!(attempts, if of_run { vec![serde_json::json!(1)] } else { vec![serde_json::json!(0)] });
        runner.shutdown().await;
    }
}
