//! Functions of the user that panic, and tasks of the runner in which something panics: a panic is reported, and hurts no
//! more than its own run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize, Serializer};
use tidewheel_core::fact::RunId;
use tidewheel_core::policy::{self, ErrorMatcher, Failure, NodeInfo, OnFailure, Overlay, Policy, Rules};
use tidewheel_core::time::Span;
use tidewheel_core::workflow::{Workflow, compensation, step};
use tidewheel_runner::{
    Control, Executor, Hooks, InputError, Runner, RunnerOptions, StartError, StartOptions,
};
use tidewheel_store::{Filter, Memory, RealClock, Status, Store, Unavailable};
use tidewheel_testkit::{Call, FaultyStore, Outage, When};

use crate::world::{Gate, Watched, gated, numbers};

const PANIC: Outage = Outage { why: Unavailable::Io, when: When::Panic };

fn memory() -> Arc<Memory> {
    Arc::new(Memory::new(Arc::new(RealClock::new())))
}

async fn open(store: &Arc<impl Store + 'static>, options: RunnerOptions) -> Runner {
    let options = options.clock(Arc::new(RealClock::new()));
    Runner::with_store(Arc::clone(store) as Arc<dyn Store>, options).await.expect("sound")
}

#[tokio::test(start_paused = true)]
async fn a_predicate_that_panics_when_a_due_run_is_loaded_fails_that_run_and_the_runner_hears_on() {
    let (store, gate, is_sore) = (memory(), Gate::new(), Arc::new(AtomicBool::new(false)));
    let workflow = gated(&gate);
    let sore = Arc::clone(&is_sore);
    let rules = Rules::new([(
        policy::predicate(move |_: &NodeInfo<'_>| {
            assert!(!sore.load(Ordering::SeqCst), "no answer");
            false
        }),
        Policy::new().max_retries(1),
    )])
    .unwrap();
    let given = StartOptions::new().policies(rules, Overlay::Merge);

    let before = open(&store, RunnerOptions::new().shutdown_grace(Span::from_millis(0))).await;
    before.run_with("bad", &workflow, 1_i64, &given).await.unwrap();
    gate.began().await;
    before.shutdown().await;

    is_sore.store(true, Ordering::SeqCst);
    let runner = open(&store, RunnerOptions::new()).await;
    runner.register_with(&workflow, &given).unwrap();
    let bad = runner.get("bad").await.unwrap();
    let error = bad.result::<i64>("inc").await.unwrap_err().to_string();
    assert!(error.contains("policy_panicked") && error.contains("match.predicate"), "{error}");

    // The runner starts runs and hears other processes as before.
    runner.run("next", &workflow, 1_i64).await.unwrap();
    gate.began().await;
    Control::new(Arc::clone(&store) as Arc<dyn Store>).cancel(&RunId::new("next")).await.unwrap();
    assert_eq!(runner.get("next").await.unwrap().wait().await.unwrap(), Status::Cancelled);
    assert_eq!(runner.trouble(), None, "no task of the runner was hurt");
    runner.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn rules_and_executors_whose_predicate_panics_are_refused_by_name_when_a_run_starts() {
    let sore = || policy::predicate(|_: &NodeInfo<'_>| panic!("no answer"));
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let rules = Rules::new([(sore(), Policy::new().max_retries(1))]).unwrap();
    let given = StartOptions::new().policies(rules, Overlay::Merge);
    let refused = runner.run_with("first", &numbers(), 1_i64, &given).await.unwrap_err();
    let StartError::Policies(problems) = refused else { panic!("{refused}") };
    assert!(problems.to_string().contains("policies[0].match.predicate: panicked for `inc`"), "{problems}");

    let options = RunnerOptions::new().executor_for(sore(), Executor::Inline);
    let refused = Runner::in_memory(options).await.unwrap().register(&numbers()).unwrap_err();
    let StartError::Policies(problems) = refused else { panic!("{refused}") };
    assert!(problems.to_string().contains("executor_for[0].match.predicate"), "{problems}");
}

/// A value that panics when it is written.
#[derive(Clone, Deserialize)]
struct Unwritable;

impl Serialize for Unwritable {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        panic!("cannot be written")
    }
}

/// A value that panics when it is dropped.
#[derive(Clone, Serialize, Deserialize)]
struct Undroppable;

impl Drop for Undroppable {
    fn drop(&mut self) {
        panic!("cannot be dropped");
    }
}

#[tokio::test(start_paused = true)]
async fn functions_of_policies_and_values_that_panic_fail_their_own_work() {
    let failing = || |_: i64| -> Result<i64, Failure> { Err(Failure::new("broken")) };
    let workflow = Workflow::new("sore")
        .add(step("keyed", |x: i64| x))
        .add(step("matched", failing()))
        .add(step("fallen", failing()))
        .add(step("dropped", |x: i64| if x > 0 { Ok(Undroppable) } else { Err(Failure::new("never")) }))
        .add(step("good", |x: i64| x + 1))
        .policy(policy::name("keyed"), Policy::new().idempotency_key(|_, _| panic!("no key")))
        .policy(
            policy::name("matched"),
            Policy::new().max_retries(3).retryable_errors([ErrorMatcher::predicate(|_| panic!("no match"))]),
        )
        .policy(policy::name("fallen"), Policy::new().fallback(|_, _, _| panic!("no fallback")))
        .build()
        .unwrap();
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let run = runner.run("first", &workflow, 1_i64).await.unwrap();
    assert_eq!(run.wait().await.unwrap(), Status::Failed);
    assert_eq!(run.result::<i64>("good").await.unwrap(), 2);
    for (name, text) in [("keyed", "no key"), ("matched", "no match"), ("fallen", "no fallback")] {
        let error = run.result::<i64>(name).await.unwrap_err().to_string();
        assert!(error.contains(text), "{name}: {error}");
    }
    let refused = runner.run("second", &workflow, Unwritable).await.unwrap_err();
    assert!(matches!(refused, StartError::Input(_)), "{refused}");
    assert_eq!(runner.trouble(), None, "no task of the runner was hurt");
    runner.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn compensations_that_panic_are_failures_of_their_run_and_what_else_is_to_be_undone_is() {
    let undone = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&undone);
    let workflow = Workflow::new("trip")
        .add(step("train", |x: i64| x + 1))
        .add(step("hotel", |x: i64| x + 1).after("train"))
        .add(step("car", |x: i64| x + 1).after("hotel"))
        .add(step("pay", |x: i64| if x < 10 { Err(Failure::new("no money")) } else { Ok(x) }).after("car"))
        .add(compensation("cancel_car", |car: i64| assert!(car < 0, "no such car")))
        .policy(policy::name("car"), Policy::new().compensation_node("cancel_car"))
        .policy(policy::name("hotel"), Policy::new().compensation(|_, _| panic!("no such hotel")))
        .policy(
            policy::name("train"),
            Policy::new().compensation(move |_, ticket| {
                seen.lock().expect("sound").push(ticket.get::<i64>().expect("sound"));
                Ok(())
            }),
        )
        .policy(policy::name("pay"), Policy::new().on_failure(OnFailure::Compensate))
        .build()
        .unwrap();
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let poor = runner.run("poor", &workflow, 1_i64).await.unwrap();
    assert_eq!(poor.wait().await.unwrap(), Status::Failed);
    assert_eq!(*undone.lock().unwrap(), [2]);
    let state = poor.state().await.unwrap();
    let said: Vec<&str> = state.failures().iter().map(|failed| failed.failure.message.as_str()).collect();
    for text in ["no money", "no such car", "no such hotel"] {
        assert!(said.iter().any(|said| said.contains(text)), "{said:?}");
    }
    let rich = runner.run("rich", &workflow, 10_i64).await.unwrap();
    assert_eq!(rich.wait().await.unwrap(), Status::Completed);
    assert_eq!(runner.trouble(), None, "no task of the runner was hurt");
    runner.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_value_of_the_caller_that_panics_is_an_error_of_the_call_and_the_run_goes_on() {
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let workflow = Workflow::new("numbers").add(step("inc", |x: i64| x + 1)).build().unwrap();
    let run = runner.run("r", &workflow, 1_i64).await.unwrap();
    for refused in [
        run.input(Unwritable).await,
        run.input_keyed("key", Unwritable).await,
        run.signal("inc", Unwritable).await,
    ] {
        assert!(matches!(&refused, Err(InputError::Unserialisable(_))), "{refused:?}");
    }
    run.input_keyed("key", 41_i64).await.unwrap();
    assert_eq!(run.wait().await.unwrap(), Status::Completed);
    assert_eq!(run.results::<i64>("inc").await.unwrap(), [2, 42], "the key was not used up");
    assert_eq!(runner.trouble(), None);
    runner.shutdown().await;
}

#[derive(Clone, Default)]
struct SoreHooks(Arc<Mutex<Vec<String>>>);

impl SoreHooks {
    fn hear(&self, what: String) {
        self.0.lock().expect("sound").push(what.clone());
        panic!("{what}");
    }
}

impl Hooks for SoreHooks {
    fn dispatched(&self, _: &RunId, node: &NodeInfo<'_>, _: u32) {
        self.hear(format!("{} dispatched", node.name.expect("sound")));
    }

    fn completed(&self, _: &RunId, node: &NodeInfo<'_>) {
        self.hear(format!("{} completed", node.name.expect("sound")));
    }

    fn idle(&self, _: &RunId, status: Status) {
        self.hear(format!("{status}"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_panics_is_counted_and_keeps_no_other_call_of_its_commit_from_coming() {
    let hooks = SoreHooks::default();
    let runner = Runner::in_memory(RunnerOptions::new().hooks(hooks.clone())).await.unwrap();
    let workflow = Workflow::new("pair")
        .add(step("one", |x: i64| async move { x }))
        .add(step("two", |x: i64| async move { x }))
        .build()
        .unwrap();
    runner.run("first", &workflow, 1_i64).await.unwrap().wait().await.unwrap();
    let metrics = runner.metrics();
    runner.shutdown().await;
    let mut heard = hooks.0.lock().unwrap().clone();
    heard.sort();
    assert_eq!(heard, ["completed", "one completed", "one dispatched", "two completed", "two dispatched"]);
    assert!(metrics.contains("tidewheel_panics_total{task=\"hook\"} 5"), "{metrics}");
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_task_that_watches_the_store_is_reported_and_due_runs_and_commands_come_through() {
    for call in [Call::Commands, Call::Claim, Call::Release] {
        let (store, gate) = (Arc::new(FaultyStore::new(memory())), Gate::new());
        let workflow = gated(&gate);
        let runner = open(&store, RunnerOptions::new()).await;
        runner.register(&workflow).unwrap();
        let before = open(&store, RunnerOptions::new().shutdown_grace(Span::from_millis(0))).await;
        before.run("due", &workflow, 1_i64).await.unwrap();
        gate.began().await;
        if call != Call::Release {
            store.fail_nth(call, 1, PANIC);
        }
        before.shutdown().await;
        gate.began().await;
        if call == Call::Release {
            store.fail_nth(call, 1, PANIC);
        }
        gate.open(1);
        assert_eq!(runner.get("due").await.unwrap().result::<i64>("inc").await.unwrap(), 2, "{call:?}");
        runner.run("next", &workflow, 1_i64).await.unwrap();
        gate.began().await;
        Control::new(Arc::clone(&store) as Arc<dyn Store>).cancel(&RunId::new("next")).await.unwrap();
        assert_eq!(runner.get("next").await.unwrap().wait().await.unwrap(), Status::Cancelled, "{call:?}");
        if call != Call::Release {
            let trouble = runner.trouble().expect("it panicked");
            assert!(trouble.starts_with("the store watcher panicked"), "{trouble}");
            assert!(runner.metrics().contains("tidewheel_panics_total{task=\"store watcher\"}"));
        }
        runner.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_task_that_keeps_the_lease_is_reported_and_the_lease_is_kept() {
    let (store, gate) = (Arc::new(FaultyStore::new(memory())), Gate::new());
    let runner = open(&store, RunnerOptions::new().lease(Span::from_secs(3))).await;
    let run = runner.run("first", &gated(&gate), 1_i64).await.unwrap();
    gate.began().await;
    store.fail_nth(Call::Renew, 1, PANIC);
    tokio::time::sleep(std::time::Duration::from_secs(30)).await;
    assert!(store.calls(Call::Renew) > 20, "it is renewed every second");
    assert!(runner.trouble().is_some_and(|trouble| trouble.contains("the lease keeper panicked once")));
    gate.open(1);
    assert_eq!(run.result::<i64>("inc").await.unwrap(), 2);
    assert_eq!(gate.count(), 1, "it was not taken away");
    runner.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_commit_crashes_the_runs_of_that_commit_and_they_are_taken_up_again() {
    let store = Arc::new(FaultyStore::new(memory()));
    let runner = open(&store, RunnerOptions::new()).await;
    let run = runner.start("first", &numbers()).await.unwrap();
    store.fail_nth(Call::Append, 1, PANIC);
    // The caller that gave the input learns that it is not stored.
    let first = run.input(1_i64).await;
    if first.is_err() {
        run.input(1_i64).await.unwrap();
    }
    assert_eq!(run.result::<i64>("double").await.unwrap(), 4);
    assert_eq!(runner.run("second", &numbers(), 2_i64).await.unwrap().result::<i64>("inc").await.unwrap(), 3);
    runner.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_limiter_keeps_no_work_waiting() {
    for call in [Call::Shared, Call::PutShared] {
        let store = Arc::new(FaultyStore::new(memory()));
        let runner = open(&store, RunnerOptions::new()).await;
        let workflow = Workflow::new("limited")
            .add(step("inc", |x: i64| x + 1))
            .policy(policy::name("inc"), Policy::new().concurrency_limit(1))
            .build()
            .unwrap();
        store.fail_nth(call, 1, PANIC);
        let run = runner.run("first", &workflow, 1_i64).await.unwrap();
        assert_eq!(run.result::<i64>("inc").await.unwrap(), 2, "{call:?}");
        runner.shutdown().await;
    }
}

/// Panics when it is dropped, wherever that is.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "the destructor of what a function captured");
    }
}

#[tokio::test(start_paused = true)]
async fn a_destructor_of_what_a_run_was_started_with_may_panic_and_hurts_nothing() {
    let with_bomb = || {
        let bomb = Bomb;
        let no = move |_: &NodeInfo<'_>| {
            std::hint::black_box(&bomb);
            false
        };
        let rules = Rules::new([(policy::predicate(no), Policy::new().max_retries(1))]).unwrap();
        StartOptions::new().policies(rules, Overlay::Merge)
    };
    for is_shut_down in [true, false] {
        let store = Watched::new();
        // The runs that rest leave when others come, in a task of the runner.
        let runner = store.runner(RunnerOptions::new().max_active_runs(1)).await;
        for number in 0..4_i64 {
            let id = format!("sore-{number}");
            let run = runner.run_with(id.as_str(), &numbers(), number, &with_bomb()).await.unwrap();
            run.wait().await.unwrap();
        }
        let run = runner.run("good", &numbers(), 1_i64).await.unwrap();
        assert_eq!(run.result::<i64>("sum").await.unwrap(), 6);
        assert_eq!(runner.trouble(), None);
        if is_shut_down {
            runner.shutdown().await;
            for row in store.list(Filter::default()).await.unwrap().rows {
                assert_eq!(row.owner, None, "{row:?}");
            }
        } else {
            drop(runner);
        }
    }
}
