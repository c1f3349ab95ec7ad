//! Work that is the same as other work: it is done once, and everybody takes the result.

use std::sync::Arc;
use std::time::Duration;

use tidewheel_core::fact::RunnableId;
use tidewheel_core::policy::{self, Failure, Policy};
use tidewheel_core::work::Context;
use tidewheel_core::workflow::{Component, step};
use tidewheel_runner::{Control, ResultError, RunHandle, Runner, RunnerOptions};
use tidewheel_store::{Memory, PutShared, RealClock, Status, Store, Unavailable};
use tidewheel_testkit::{Call, FaultyStore, Outage, When};
use tokio::sync::Semaphore;

use crate::world::{
    Calls, Disk, Process, Tokens, code, crash, external, governed, in_memory, soon, start, until,
};

fn same() -> Policy {
    Policy::new().idempotency_key(|_, _| "same".to_owned())
}

/// A step that counts, waits for a word, and gives a hundred times its number and its input.
fn counting(name: &str, calls: &Calls, may_end: &Arc<Semaphore>) -> Component {
    let (calls, may_end) = (calls.clone(), Arc::clone(may_end));
    step(name, move |x: i64| {
        let (call, may_end) = (calls.next(), Arc::clone(&may_end));
        async move {
            may_end.acquire().await.unwrap().forget();
            100 * i64::from(call) + x
        }
    })
}

fn open_gate() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(1_000))
}

/// Returns the work of a component that is not over.
async fn work_of(run: &RunHandle, component: &str) -> RunnableId {
    let state = run.state().await.unwrap();
    let waiting = state.waits().into_iter().filter_map(|wait| state.waiting_runnable(&wait.ticket));
    let mut works = state.pending_runnables().into_iter().chain(waiting.map(|runnable| runnable.id()));
    let is_it = |work: &RunnableId| {
        let ticket = state.ticket_of(*work).unwrap();
        state.node_of(ticket.number()).unwrap().name == Some(component)
    };
    works.find(is_it).unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_second_waits_for_the_first_and_takes_its_result() {
    let (calls, may_end, runner) = (Calls::default(), Arc::new(Semaphore::new(0)), in_memory().await);
    let workflow = governed("w", [counting("s", &calls, &may_end)], [(policy::default(), same())]);
    let one = start(&runner, "one", &workflow, 1).await;
    until_begun(&calls).await;
    let two = start(&runner, "two", &workflow, 2).await;
    until(&two, Status::Waiting).await;
    may_end.add_permits(1);
    assert_eq!(soon(one.result::<i64>("s")).await.unwrap(), 1);
    let began = tokio::time::Instant::now();
    assert_eq!(soon(two.result::<i64>("s")).await.unwrap(), 1);
    assert!(
        began.elapsed() < Duration::from_millis(100),
        "it is told, and does not look: {:?}",
        began.elapsed()
    );
    // A third one, much later.
    let three = start(&runner, "three", &workflow, 3).await;
    assert_eq!(soon(three.result::<i64>("s")).await.unwrap(), 1);
    assert_eq!(calls.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_template_is_filled_from_the_input_and_a_missing_field_is_a_clear_failure() {
    let (calls, runner) = (Calls::default(), in_memory().await);
    let counted = calls.clone();
    let charge = step("charge", move |order: serde_json::Value| {
        counted.next();
        order["id"].as_i64().unwrap_or_default()
    });
    let policy = Policy::new().idempotency_key_template("order ${customer.name}/${id}").max_retries(3);
    let workflow = governed("w", [charge], [(policy::name("charge"), policy)]);
    let order = |id: i64, name: &str| serde_json::json!({"id": id, "customer": {"name": name}});
    let inputs = [order(1, "ann"), order(1, "ann"), order(2, "ann"), order(1, "bob")];
    for (number, input) in inputs.into_iter().enumerate() {
        let run = runner.run(format!("{number}").as_str(), &workflow, input).await.unwrap();
        assert_eq!(soon(run.wait()).await.unwrap(), Status::Completed);
    }
    assert_eq!(calls.count(), 3, "two of four are the same");
    let run = runner.run("bad", &workflow, serde_json::json!({"id": 1})).await.unwrap();
    match soon(run.result::<i64>("charge")).await.unwrap_err() {
        ResultError::Failed { failure, .. } => {
            assert_eq!(
                failure.message,
                "its input has no `customer.name`, of which its idempotency_key is made"
            );
            assert_eq!(code(&failure), "idempotency_key");
        }
        other => panic!("{other}"),
    }
    assert_eq!(calls.count(), 3, "and it is not tried again");
}

/// Whoever looks at a key asks the store how the run is that has it. The store still said that it was over, and the
/// work was done twice.
#[tokio::test(start_paused = true)]
async fn a_run_that_was_over_has_a_key_only_when_the_store_knows_that_it_goes_on() {
    let (calls, gate) = (Calls::default(), open_gate());
    let memory: Arc<dyn Store> = Arc::new(Memory::new(Arc::new(RealClock::new())));
    let faulty = Arc::new(FaultyStore::new(Arc::clone(&memory)));
    let slow = Runner::with_store(Arc::<FaultyStore>::clone(&faulty), RunnerOptions::new()).await.unwrap();
    let quick = Runner::with_store(memory, RunnerOptions::new()).await.unwrap();
    let by_input = Policy::new().idempotency_key(|_, input| input.to_text().unwrap().get().to_owned());
    let workflow = governed("w", [counting("s", &calls, &gate)], [(policy::default(), by_input)]);
    let one = start(&slow, "one", &workflow, 1).await;
    assert_eq!(soon(one.wait()).await.unwrap(), Status::Completed);
    for nth in 1..=5 {
        faulty.fail_nth(Call::Append, nth, Outage { why: Unavailable::Full, when: When::Before });
    }
    let again = tokio::spawn({
        let one = one.clone();
        async move { one.input(5_i64).await }
    });
    tokio::time::sleep(Duration::from_millis(10)).await;
    let two = start(&quick, "two", &workflow, 5).await;
    let result = soon(two.result::<i64>("s")).await.unwrap();
    soon(again).await.unwrap().unwrap();
    assert_eq!(soon(one.result::<i64>("s")).await.unwrap(), result);
    assert_eq!(calls.count(), 2, "each input once");
}

/// Its run goes on with something else, so nobody could ever have taken the key.
#[tokio::test(start_paused = true)]
async fn work_that_is_cancelled_while_it_claims_its_key_leaves_it_to_others() {
    let (calls, gate, tokens) = (Calls::default(), open_gate(), Tokens::new());
    let memory: Arc<dyn Store> = Arc::new(Memory::new(Arc::new(RealClock::new())));
    let faulty = Arc::new(FaultyStore::new(memory));
    let runner = Runner::with_store(Arc::<FaultyStore>::clone(&faulty), RunnerOptions::new()).await.unwrap();
    let components = [counting("s", &calls, &gate), tokens.step("ask")];
    let rules = [(policy::name("s"), same()), (policy::name("ask"), external())];
    let workflow = governed("w", components, rules);
    for nth in 1..=2 {
        faulty.fail_nth(Call::PutShared, nth, Outage { why: Unavailable::Full, when: When::Before });
    }
    let one = start(&runner, "one", &workflow, 1).await;
    tokens.next().await;
    one.cancel_work(work_of(&one, "s").await).await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let two = start(&runner, "two", &workflow, 2).await;
    assert_eq!(soon(two.result::<i64>("s")).await.unwrap(), 2);
    assert_eq!(one.status().await.unwrap(), Status::Waiting);
}

#[tokio::test(start_paused = true)]
async fn other_nodes_and_other_keys_do_not_share() {
    let (calls, runner) = (Calls::default(), in_memory().await);
    let gate = open_gate();
    let components = [counting("a", &calls, &gate), counting("b", &calls, &gate)];
    let workflow = governed("w", components, [(policy::default(), same())]);
    let run = start(&runner, "r", &workflow, 1).await;
    assert_eq!(soon(run.wait()).await.unwrap(), Status::Completed);
    assert_eq!(calls.count(), 2);
    let by_input = Policy::new().idempotency_key(|_, input| input.to_text().unwrap().get().to_owned());
    let workflow = governed("by_input", [counting("s", &calls, &gate)], [(policy::default(), by_input)]);
    for (number, input) in [5, 6, 5].into_iter().enumerate() {
        let run = start(&runner, &format!("{number}"), &workflow, input).await;
        assert_eq!(soon(run.wait()).await.unwrap(), Status::Completed);
    }
    assert_eq!(calls.count(), 4);
}

#[tokio::test(start_paused = true)]
async fn the_second_does_it_if_the_first_fails_is_cancelled_or_falls_back() {
    for how in ["fails", "cancelled", "work cancelled", "falls back"] {
        let (calls, may_end, runner) = (Calls::default(), Arc::new(Semaphore::new(0)), in_memory().await);
        let (counted, gate) = (calls.clone(), Arc::clone(&may_end));
        let work = step("s", move |x: i64| {
            let (call, gate) = (counted.next(), Arc::clone(&gate));
            async move {
                if call > 0 {
                    return Ok(x);
                }
                gate.acquire().await.unwrap().forget();
                Err(Failure::new("down"))
            }
        });
        // The run of the first has more to do, and lives on.
        let forever = step("forever", async |x: i64| {
            if x == 1 {
                std::future::pending::<()>().await;
            }
            x
        });
        let policy = if how == "falls back" { same().fallback_value(9) } else { same() };
        let workflow = governed("w", [work, forever], [(policy::name("s"), policy)]);
        let one = start(&runner, "one", &workflow, 1).await;
        until_begun(&calls).await;
        let two = start(&runner, "two", &workflow, 2).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(calls.count(), 1, "{how}");
        match how {
            "cancelled" => drop(one.cancel().await.unwrap()),
            "work cancelled" => {
                one.cancel_work(work_of(&one, "s").await).await.unwrap();
            }
            _ => may_end.add_permits(1),
        }
        assert_eq!(soon(two.result::<i64>("s")).await.unwrap(), 2, "{how}");
        assert_eq!(calls.count(), 2, "{how}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_runners_on_one_file_do_it_once() {
    let (disk, calls, may_end) = (Disk::new(), Calls::default(), Arc::new(Semaphore::new(0)));
    let workflow = governed("w", [counting("s", &calls, &may_end)], [(policy::default(), same())]);
    let (one, _) = disk.open_with(RunnerOptions::new().only_own_runs()).await;
    let (two, _) = disk.open_with(RunnerOptions::new().only_own_runs()).await;
    let first = start(&one, "first", &workflow, 1).await;
    let second = start(&two, "second", &workflow, 2).await;
    until_begun(&calls).await;
    may_end.add_permits(9);
    let (first, second) =
        (soon(first.result::<i64>("s")).await.unwrap(), soon(second.result::<i64>("s")).await.unwrap());
    assert_eq!((first, calls.count()), (second, 1));
    one.shutdown().await;
    two.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_result_is_there_after_a_restart() {
    let (disk, calls) = (Disk::new(), Calls::default());
    let workflow = governed("w", [counting("s", &calls, &open_gate())], [(policy::default(), same())]);
    let (runner, store) = disk.open().await;
    let run = start(&runner, "first", &workflow, 1).await;
    assert_eq!(soon(run.result::<i64>("s")).await.unwrap(), 1);
    crash(runner, &store).await;
    let (runner, _) = disk.open().await;
    let run = start(&runner, "second", &workflow, 2).await;
    assert_eq!(soon(run.result::<i64>("s")).await.unwrap(), 1);
    assert_eq!(calls.count(), 1);
    runner.shutdown().await;
}

/// Lets a process end at a write while two runs want the same, and returns how often it was done, and the results.
async fn ended_at(writes: i64, does_last: bool, times: u32) -> Option<(u32, i64, i64)> {
    let store = Arc::new(Memory::new(Arc::new(RealClock::new())));
    let (calls, process) = (Calls::default(), Process::dying(&store, writes, does_last));
    let counted = calls.clone();
    let work = step("s", move |x: i64| {
        let call = counted.next();
        async move { if call < times { Err(Failure::new("down")) } else { Ok(100 * i64::from(call) + x) } }
    });
    // Runs that have more to do live on.
    let forever = step("forever", async |x: i64| {
        tokio::time::sleep(Duration::from_secs(3_600)).await;
        x
    });
    let workflow = governed("w", [work, forever], [(policy::name("s"), same())]);
    let over = async |runner: &Runner| {
        let one = start(runner, "one", &workflow, 1).await;
        let two = start(runner, "two", &workflow, 2).await;
        soon(async {
            loop {
                let (one, two) = (one.results::<i64>("s").await, two.results::<i64>("s").await);
                if let (Ok([one]), Ok([two])) = (one.as_deref(), two.as_deref()) {
                    return (*one, *two);
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
                for run in ["one", "two"] {
                    let run = runner.get(run).await.unwrap();
                    if times > 0 && !run.state().await.unwrap().failures().is_empty() {
                        drop(run.retry().await);
                    }
                }
            }
        })
        .await
    };
    let runner = process.runner().await;
    let is_gone = process.ends_before(over(&runner)).await;
    drop(runner);
    if !is_gone {
        return None;
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    let runner = Process::new(&store).runner().await;
    let (one, two) = over(&runner).await;
    Some((calls.count(), one, two))
}

#[tokio::test(start_paused = true)]
async fn a_process_that_ends_at_any_write_leaves_no_key_that_nobody_frees() {
    let mut interrupted = 0;
    for (writes, does_last) in (1..30).flat_map(|writes| [(writes, false), (writes, true)]) {
        let what = format!("{writes} writes, {does_last}");
        if let Some((calls, one, two)) = ended_at(writes, does_last, 0).await {
            interrupted += 1;
            assert_eq!(one, two, "{what}");
            // At least once, and only what was lost with the process is done again.
            assert!(calls <= 2, "{what}: {calls}");
        }
        if let Some((calls, one, two)) = ended_at(writes, does_last, 1).await {
            assert_eq!(one, two, "{what}");
            assert!(calls <= 4, "{what}: {calls}");
        }
    }
    assert!(interrupted > 10, "{interrupted}");
}

#[tokio::test(start_paused = true)]
async fn what_was_done_is_not_done_again_if_only_its_run_does_not_know_it() {
    // The result is in its row, and the process is gone before it is in the log.
    let mut found = 0;
    for writes in 1..12 {
        let store = Arc::new(Memory::new(Arc::new(RealClock::new())));
        let (calls, process) = (Calls::default(), Process::dying(&store, writes, true));
        let workflow = governed("w", [counting("s", &calls, &open_gate())], [(policy::default(), same())]);
        let runner = process.runner().await;
        let story = async {
            let run = start(&runner, "one", &workflow, 1).await;
            soon(run.wait()).await.unwrap();
        };
        let is_gone = process.ends_before(story).await;
        drop(runner);
        let rows = store.all_shared("key", None).await.unwrap().rows;
        let is_done = rows.iter().any(|(_, row)| row.body.contains("result"));
        let log = store.read(&"one".into(), 0).await.unwrap();
        let is_known = log.iter().any(|stored| format!("{:?}", stored.events.events()).contains("completed"));
        if is_gone && is_done && !is_known {
            found += 1;
            tokio::time::sleep(Duration::from_secs(5)).await;
            let runner = Process::new(&store).runner().await;
            let run = runner.start("one", &workflow).await.unwrap();
            assert_eq!(soon(run.result::<i64>("s")).await.unwrap(), 1);
            assert_eq!(calls.count(), 1);
        }
    }
    assert_eq!(found, 1);
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_long_for_another_process_looks_less_often() {
    let store: Arc<dyn Store> = Arc::new(Memory::new(Arc::new(RealClock::new())));
    let open = || Runner::with_store(Arc::clone(&store), RunnerOptions::new().only_own_runs());
    let (one, two) = (open().await.unwrap(), open().await.unwrap());
    let (calls, may_end) = (Calls::default(), Arc::new(Semaphore::new(0)));
    let workflow = governed("w", [counting("s", &calls, &may_end)], [(policy::default(), same())]);
    start(&one, "first", &workflow, 1).await;
    until_begun(&calls).await;
    let second = start(&two, "second", &workflow, 2).await;
    let third = start(&two, "third", &workflow, 3).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    let looks = crate::world::count(&crate::world::log(&*store, "second").await, "runnable_held");
    assert!((5..40).contains(&looks), "{looks} looks");
    may_end.add_permits(1);
    let began = tokio::time::Instant::now();
    assert_eq!(soon(second.result::<i64>("s")).await.unwrap(), 1);
    assert_eq!(soon(third.result::<i64>("s")).await.unwrap(), 1);
    assert!(began.elapsed() <= Duration::from_secs(31), "{:?}", began.elapsed());
}

async fn until_begun(calls: &Calls) {
    soon(async {
        while calls.count() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_work_is_given_the_key_of_its_policy_or_its_own_id() {
    let runner = in_memory().await;
    let tell = |context: Context, _: i64| async move { context.idempotency_key() };
    let rules = [(policy::name("keyed"), same())];
    let workflow = governed("w", [step("keyed", tell), step("plain", tell)], rules);
    let run = start(&runner, "one", &workflow, 1).await;
    assert_eq!(soon(run.result::<String>("keyed")).await.unwrap(), "same");
    assert!(soon(run.result::<String>("plain")).await.unwrap().starts_with("work_"));
}

#[tokio::test(start_paused = true)]
async fn a_result_is_kept_as_long_as_its_run() {
    let clock: Arc<dyn tidewheel_store::Clock> = Arc::new(RealClock::new());
    let store: Arc<dyn Store> = Arc::new(Memory::new(Arc::clone(&clock)));
    let runner =
        Runner::with_store(Arc::clone(&store), RunnerOptions::new().clock(Arc::clone(&clock))).await.unwrap();
    let (calls, may_end) = (Calls::default(), open_gate());
    let workflow = governed("w", [counting("s", &calls, &may_end)], [(policy::default(), same())]);
    let run = start(&runner, "one", &workflow, 1).await;
    soon(run.wait()).await.unwrap();
    let control = Control::new(Arc::clone(&store));
    assert_eq!(control.forget_keys().await.unwrap(), 0, "its run is there");
    runner.shutdown().await;
    assert!(store.delete(run.id()).await.unwrap().unwrap());
    assert_eq!(control.forget_keys().await.unwrap(), 1);
    let runner = Runner::with_store(Arc::clone(&store), RunnerOptions::new().clock(clock)).await.unwrap();
    let again = start(&runner, "two", &workflow, 2).await;
    assert_eq!(soon(again.result::<i64>("s")).await.unwrap(), 102);
}

/// `orders/charge` with the key 100 answered for `subscriptions/charge` with the key 100.
#[tokio::test(start_paused = true)]
async fn a_key_counts_for_one_node_of_one_workflow_unless_a_scope_is_named() {
    for (policy, expected) in [
        (Policy::new().idempotency_key_template("100"), 2),
        (same(), 2),
        (Policy::new().shared_idempotency_key_template("payments", "100"), 1),
        (Policy::new().shared_idempotency_key("payments", |_, _| "100".to_owned()), 1),
    ] {
        let (calls, gate, runner) = (Calls::default(), open_gate(), in_memory().await);
        for workflow in ["orders", "subscriptions"] {
            let charge = counting("charge", &calls, &gate);
            let workflow = governed(workflow, [charge], [(policy::name("charge"), policy.clone())]);
            let run = start(&runner, workflow.name(), &workflow, 1).await;
            assert_eq!(soon(run.wait()).await.unwrap(), Status::Completed);
        }
        assert_eq!(calls.count(), expected, "{policy:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_scope_is_shared_by_nodes_of_other_names() {
    let (calls, gate, runner) = (Calls::default(), open_gate(), in_memory().await);
    for (workflow, node) in [("orders", "charge"), ("subscriptions", "renew")] {
        let policy = Policy::new().shared_idempotency_key_template("payments", "100");
        let workflow = governed(workflow, [counting(node, &calls, &gate)], [(policy::default(), policy)]);
        let run = start(&runner, workflow.name(), &workflow, 1).await;
        assert_eq!(soon(run.result::<i64>(node)).await.unwrap(), 1);
    }
    assert_eq!(calls.count(), 1);
}

/// The rows of releases before scopes had the hash of the node and the key alone.
#[tokio::test(start_paused = true)]
async fn a_key_that_a_release_before_scopes_stored_answers_for_its_own_workflow_only() {
    let memory: Arc<dyn Store> = Arc::new(Memory::new(Arc::new(RealClock::new())));
    let runner = Runner::with_store(Arc::clone(&memory), RunnerOptions::new()).await.unwrap();
    let (calls, gate) = (Calls::default(), open_gate());
    let workflow =
        |name: &str| governed(name, [counting("charge", &calls, &gate)], [(policy::name("charge"), same())]);
    let first = start(&runner, "first", &workflow("orders"), 1).await;
    assert_eq!(soon(first.wait()).await.unwrap(), Status::Completed);
    // As such a release wrote it.
    let mut run = workflow("orders").run("first");
    run.plan(1_i64);
    let old = run.prepare().swap_remove(0).unscoped_id("same").to_string();
    let mut rows = memory.all_shared("key", None).await.unwrap().rows;
    let (name, row) = rows.swap_remove(0);
    let put = |name: String, expected: u64, body: Option<String>| PutShared {
        kind: "key".to_owned(),
        name,
        expected,
        body,
    };
    assert!(
        memory.put_shared(vec![put(old, 0, Some(row.body)), put(name, row.version, None)]).await.unwrap()
    );
    for (id, workflow, expected) in [("second", workflow("orders"), 1), ("third", workflow("other"), 2)] {
        let run = start(&runner, id, &workflow, 1).await;
        assert_eq!(soon(run.wait()).await.unwrap(), Status::Completed);
        assert_eq!(calls.count(), expected, "{id}");
    }
}
