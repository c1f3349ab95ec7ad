//! Which definition a run has: the same, a changed one, an older version, or none that is known here.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tidewheel_core::policy::{self, Failure, NodeInfo, Overlay, Policy, Recovery, Rules};
use tidewheel_core::time::Span;
use tidewheel_core::work::{Context, RunContext};
use tidewheel_core::workflow::{Workflow, step};
use tidewheel_runner::{Checkpoints, Runner, RunnerOptions, StartError, StartOptions};
use tidewheel_store::{Filter, Memory, RealClock, Status, Store};

use crate::world::{Disk, Gate, Watched, crash, gated, numbers};

#[tokio::test(start_paused = true)]
async fn start_attaches_and_start_new_refuses() {
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let run = runner.start_new("first", &numbers()).await.unwrap();
    run.input(1_i64).await.unwrap();
    let same = runner.start("first", &numbers()).await.unwrap();
    assert_eq!(same.result::<i64>("sum").await.unwrap(), 6);
    let error = runner.start_new("first", &numbers()).await.unwrap_err();
    assert!(matches!(&error, StartError::Exists { run } if run.as_str() == "first"), "{error:?}");
    // With an input, a run that exists gets none.
    let same = runner.run("first", &numbers(), 7_i64).await.unwrap();
    assert_eq!(same.results::<i64>("sum").await.unwrap(), [6]);
    let error = runner.start_new("first", &numbers()).await.unwrap_err();
    assert_eq!(error.to_string(), "run `first` exists");
}

#[tokio::test(start_paused = true)]
async fn only_one_of_many_who_start_a_run_at_once_creates_it() {
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let tasks: Vec<_> = (0..100)
        .map(|_| {
            let runner = runner.clone();
            tokio::spawn(async move { runner.start_new("first", &numbers()).await.is_ok() })
        })
        .collect();
    let mut created = 0;
    for task in tasks {
        created += u32::from(task.await.unwrap());
    }
    assert_eq!(created, 1);
}

#[tokio::test]
async fn a_changed_definition_is_an_error_that_names_the_nodes() {
    let disk = Disk::new();
    let (runner, store) = disk.open().await;
    runner.run("first", &numbers(), 1_i64).await.unwrap().wait().await.unwrap();
    let changed = Workflow::new("numbers")
        .add(step("inc", |x: i64| x + 1))
        .add(step("triple", |x: i64| x * 3).after("inc"))
        .build()
        .unwrap();
    let error = runner.start("first", &changed).await.unwrap_err().to_string();
    assert!(error.contains("`double`") && error.contains("`triple`"), "{error}");
    runner.shutdown().await;
    store.close().await;

    let (runner, _store) = disk.open().await;
    let error = runner.start("first", &changed).await.unwrap_err();
    assert!(matches!(error, StartError::Changed { .. }), "{error:?}");
    let error = error.to_string();
    assert!(error.contains("`double`") && error.contains("`triple`"), "{error}");
    assert!(!error.contains("`inc`"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_run_of_another_workflow_is_not_attached_to() {
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let run = runner.start("first", &numbers()).await.unwrap();
    let gate = Gate::new();
    for is_stopped in [false, true] {
        if is_stopped {
            run.stop().await.unwrap();
        }
        let error = runner.start("first", &gated(&gate)).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "run `first` is one of workflow `numbers` version 1, not of `gated` version 1"
        );
    }
}

fn versions(gate: &Gate) -> (Workflow, Workflow) {
    let gate = gate.clone();
    let work = move |x: i64| {
        let gate = gate.clone();
        async move {
            gate.pass().await;
            x + 1
        }
    };
    let old = Workflow::new("numbers").version(1).add(step("inc", work)).build().expect("sound");
    let new = Workflow::new("numbers").version(2).add(step("double", |x: i64| x * 2)).build().expect("sound");
    (old, new)
}

#[tokio::test]
async fn old_runs_finish_on_the_old_version() {
    let (disk, gate) = (Disk::new(), Gate::new());
    let (old, new) = versions(&gate);
    let (runner, store) = disk.open().await;
    runner.run("old", &old, 1_i64).await.unwrap();
    gate.began().await;
    crash(runner, &store).await;

    let (runner, _store) = disk.open().await;
    runner.register(&new).unwrap();
    runner.register(&old).unwrap();
    let young = runner.run("young", &new, 4_i64).await.unwrap();
    gate.open(1);
    let run = runner.get("old").await.unwrap();
    assert_eq!(run.result::<i64>("inc").await.unwrap(), 2);
    assert_eq!(young.result::<i64>("double").await.unwrap(), 8);
    let error = runner.start("old", &new).await.unwrap_err().to_string();
    assert!(error.contains("version 1, not of `numbers` version 2") || error.contains("`inc`"), "{error}");
    runner.shutdown().await;
}

#[tokio::test]
async fn runs_of_a_workflow_that_nobody_registered_are_left_alone() {
    let (disk, gate) = (Disk::new(), Gate::new());
    let (runner, store) = disk.open().await;
    runner.run("first", &gated(&gate), 1_i64).await.unwrap();
    gate.began().await;
    crash(runner, &store).await;

    let (runner, store) = disk.open().await;
    let other = runner.run("other", &numbers(), 1_i64).await.unwrap();
    assert_eq!(other.result::<i64>("sum").await.unwrap(), 6);
    let error = runner.get("first").await.unwrap_err();
    assert_eq!(error.to_string(), "workflow `gated` version 1 of run `first` is not registered here");
    let listed =
        runner.list(Filter { workflow: Some("gated".to_owned()), ..Filter::default() }).await.unwrap();
    assert_eq!((listed.rows[0].status, listed.rows[0].owner), (Status::Running, None));
    assert_eq!(gate.count(), 1);
    let error = runner.get("nobody").await.unwrap_err();
    assert_eq!(error.to_string(), "there is no run `nobody`");
    runner.shutdown().await;
    store.close().await;

    let (runner, _store) = disk.open().await;
    runner.register(&gated(&gate)).unwrap();
    gate.open(1);
    assert_eq!(runner.get("first").await.unwrap().result::<i64>("inc").await.unwrap(), 2);
    runner.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn another_definition_under_a_registered_name_is_refused() {
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    runner.register(&numbers()).unwrap();
    runner.register(&numbers()).unwrap();
    let other = Workflow::new("numbers").add(step("inc", |x: i64| x + 1)).build().unwrap();
    let error = runner.register(&other).unwrap_err().to_string();
    assert!(error.contains("`double`") && error.contains("another version"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn runs_are_listed_with_filters_and_page_by_page() {
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let gate = Gate::new();
    for number in 0..5 {
        let run = runner.run(format!("a{number}").as_str(), &numbers(), 1_i64).await.unwrap();
        run.wait().await.unwrap();
    }
    let paused = runner.run("b0", &gated(&gate), 1_i64).await.unwrap();
    gate.began().await;
    paused.pause().await.unwrap();
    let ids = |filter: Filter| {
        let runner = runner.clone();
        async move {
            let page = runner.list(filter).await.unwrap();
            (page.rows.iter().map(|row| row.id.as_str().to_owned()).collect::<Vec<_>>(), page.next)
        }
    };
    let all = ids(Filter::default()).await.0;
    assert_eq!(all, ["b0", "a4", "a3", "a2", "a1", "a0"]);
    let of = |status| Filter { statuses: vec![status], ..Filter::default() };
    assert_eq!(ids(of(Status::Paused)).await.0, ["b0"]);
    assert_eq!(ids(of(Status::Completed)).await.0.len(), 5);
    assert_eq!(ids(of(Status::Failed)).await.0.len(), 0);
    assert_eq!(ids(Filter { workflow: Some("gated".to_owned()), ..Filter::default() }).await.0, ["b0"]);
    assert_eq!(ids(Filter { id_prefix: Some("a".to_owned()), ..Filter::default() }).await.0.len(), 5);
    let (first, next) = ids(Filter { limit: Some(4), ..Filter::default() }).await;
    let (rest, end) = ids(Filter { limit: Some(4), after: next, ..Filter::default() }).await;
    assert_eq!(([first, rest].concat(), end), (all, None));
}

/// Two runs of one workflow with different secrets: whenever a run is loaded again, it gets its own.
#[tokio::test(start_paused = true)]
async fn each_run_keeps_what_it_was_started_with_when_it_is_loaded_again() {
    let workflow = Workflow::new("secret")
        .add(step("tell", |context: Context, _: i64| context.value("key").cloned()).needs("key"))
        .build()
        .unwrap();
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    for id in ["one", "two"] {
        let options = StartOptions::new().context(RunContext::new().global("key", id));
        let run = runner.start_with(id, &workflow, &options).await.unwrap();
        run.stop().await.unwrap();
    }
    for id in ["one", "two"] {
        let run = runner.resume(id).await.unwrap();
        run.input(1_i64).await.unwrap();
        assert_eq!(run.result::<String>("tell").await.unwrap(), id);
    }
    let error = runner.start("three", &workflow).await.unwrap_err();
    assert_eq!(error.to_string(), "the run context lacks `key` of `tell`");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waited_for_room_has_what_it_was_started_with() {
    let gate = Gate::new();
    let workflow = Workflow::new("secret")
        .add(step("tell", |context: Context, _: i64| context.value("key").cloned()).needs_or("key", "none"))
        .build()
        .unwrap();
    let rules =
        Rules::new([(policy::name("tell"), Policy::new().fallback(|_, _, _| Recovery::value(0)))]).unwrap();
    let runner = Runner::in_memory(RunnerOptions::new().max_active_runs(1)).await.unwrap();
    let busy = runner.run("busy", &gated(&gate), 1_i64).await.unwrap();
    gate.began().await;
    runner.register(&workflow).unwrap();
    let options =
        StartOptions::new().context(RunContext::new().global("key", "mine")).policies(rules, Overlay::Merge);
    let run = runner.run_with("waits", &workflow, 1_i64, &options).await.unwrap();
    gate.open(1);
    busy.wait().await.unwrap();
    assert_eq!(run.result::<String>("tell").await.unwrap(), "mine");
}

#[tokio::test]
async fn a_start_with_a_changed_definition_does_not_stand_in_the_way_of_the_right_one() {
    let disk = Disk::new();
    let (runner, store) = disk.open().await;
    runner.start("first", &numbers()).await.unwrap().input(1_i64).await.unwrap();
    crash(runner, &store).await;
    let (runner, _) = disk.open().await;
    let changed = Workflow::new("numbers").add(step("other", |x: i64| x)).build().unwrap();
    let error = runner.start("first", &changed).await.unwrap_err();
    assert!(matches!(error, StartError::Changed { .. }), "{error:?}");
    let run = runner.start("first", &numbers()).await.unwrap();
    assert_eq!(run.result::<i64>("sum").await.unwrap(), 6);
}

/// A secret in a function of a policy, which says when it is dropped.
struct Secret(Arc<AtomicU32>);

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_run_was_started_with_is_dropped_when_the_run_is_over_and_given_back() {
    let dropped = Arc::new(AtomicU32::new(0));
    let options = |dropped: &Arc<AtomicU32>| {
        let secret = Secret(Arc::clone(dropped));
        let keeps = move |_: &NodeInfo<'_>| Arc::strong_count(&secret.0) == 0;
        let rules = Rules::new([(policy::predicate(keeps), Policy::new().max_retries(1))]).unwrap();
        StartOptions::new().policies(rules, Overlay::Merge)
    };
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let run = runner.run_with("first", &numbers(), 1_i64, &options(&dropped)).await.unwrap();
    assert_eq!(run.result::<i64>("sum").await.unwrap(), 6);
    run.wait().await.unwrap();
    // Runs that rest are given back when the lease is renewed.
    tokio::time::sleep(std::time::Duration::from_secs(30)).await;
    assert_eq!(dropped.load(Ordering::SeqCst), 1);

    // One that can still go on here keeps what it needs for it.
    let stopped = runner.start_with("second", &numbers(), &options(&dropped)).await.unwrap();
    stopped.stop().await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(30)).await;
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
    let again = runner.resume("second").await.unwrap();
    again.cancel().await.unwrap();
    again.wait().await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(30)).await;
    assert_eq!(dropped.load(Ordering::SeqCst), 2);
    runner.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn what_one_run_was_started_with_is_not_given_to_another() {
    let workflow = Workflow::new("secret")
        .add(step("tell", |context: Context, _: i64| context.value("key").cloned()).needs("key"))
        .build()
        .unwrap();
    let store: Arc<dyn Store> = Arc::new(Memory::new(Arc::new(RealClock::new())));
    let with = |key: &str| StartOptions::new().context(RunContext::new().global("key", key));
    let before = Runner::with_store(Arc::clone(&store), RunnerOptions::new()).await.unwrap();
    before.start_with("theirs", &workflow, &with("theirs")).await.unwrap().stop().await.unwrap();
    before.shutdown().await;

    let runner = Runner::with_store(store, RunnerOptions::new()).await.unwrap();
    runner.start_with("mine", &workflow, &with("mine")).await.unwrap();
    let error = runner.resume("theirs").await.unwrap_err();
    let why = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(why, "the run context lacks `key` of `tell`");
    runner.register_with(&workflow, &with("everybody's")).unwrap();
    let theirs = runner.resume("theirs").await.unwrap();
    theirs.input(1_i64).await.unwrap();
    assert_eq!(theirs.result::<String>("tell").await.unwrap(), "everybody's");
    runner.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn other_policies_under_a_registered_name_and_version_are_refused_by_name() {
    let plain = numbers();
    let patient = plain.append_policy(policy::name("inc"), Policy::new().max_retries(2)).unwrap();
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    runner.register(&plain).unwrap();
    runner.register(&numbers()).unwrap();
    let refused = [
        runner.register(&patient).unwrap_err(),
        runner.start("first", &patient).await.unwrap_err(),
        runner.run("first", &patient, 1_i64).await.unwrap_err(),
    ];
    for error in refused {
        assert_eq!(
            error.to_string(),
            "workflow `numbers` version 1 is registered with other policies, which differ from policies[0] on; give the \
             new one another version, or give its rules to a run in its start options"
        );
    }
    let error = runner.get("first").await.unwrap_err();
    assert!(matches!(error, StartError::NotFound { .. }), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn policies_set_on_a_built_workflow_act_in_a_runner_that_is_full_and_after_a_restart() {
    let (store, gate, tries) = (Watched::new(), Gate::new(), Arc::new(AtomicU32::new(0)));
    let counted = Arc::clone(&tries);
    let fails = move |_: i64| -> Result<i64, Failure> {
        counted.fetch_add(1, Ordering::SeqCst);
        Err(Failure::new("no"))
    };
    let plain = Workflow::new("fails").add(step("try", fails)).build().unwrap();
    let patient = plain.append_policy(policy::name("try"), Policy::new().max_retries(2)).unwrap();
    let runner = store.runner(RunnerOptions::new().max_active_runs(1)).await;
    runner.run("busy", &gated(&gate), 1_i64).await.unwrap();
    gate.began().await;
    let queued = runner.run("queued", &patient, 1_i64).await.unwrap();
    gate.open(1);
    assert_eq!(queued.wait().await.unwrap(), Status::Failed);
    assert_eq!(tries.swap(0, Ordering::SeqCst), 3);
    let later = runner.start("later", &patient).await.unwrap();
    later.pause().await.unwrap();
    later.input(1_i64).await.unwrap();
    runner.shutdown().await;

    let next = store.runner(RunnerOptions::new()).await;
    next.register(&patient).unwrap();
    let later = next.resume("later").await.unwrap();
    assert_eq!(later.wait().await.unwrap(), Status::Failed);
    assert_eq!(tries.load(Ordering::SeqCst), 3);
    next.shutdown().await;
}

/// Two callers start one run at the same moment: neither can see the run of the other when it looks at its options.
#[tokio::test(start_paused = true)]
async fn other_options_are_refused_also_where_the_run_is_created_in_that_moment() {
    let key = |key: &str| StartOptions::new().context(RunContext::new().global("key", key));
    let deadline = |secs| StartOptions::new().deadline(Span::from_secs(secs));
    let cases = [
        (false, key("mine"), key("yours"), "context"),
        (false, deadline(100), deadline(200), "deadline"),
        (true, deadline(100), deadline(200), "deadline"),
    ];
    for (is_elsewhere, one, other, option) in cases {
        let store = Watched::new();
        let runner = store.runner(RunnerOptions::new()).await;
        let second = if is_elsewhere { store.runner(RunnerOptions::new()).await } else { runner.clone() };
        store.hold(true);
        let start = |runner: &Runner, options: StartOptions| {
            let runner = runner.clone();
            tokio::spawn(async move { runner.start_with("first", &numbers(), &options).await.map(drop) })
        };
        let (first, second) = (start(&runner, one), start(&second, other));
        // Both have looked, and wait until the run is stored.
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        store.hold(false);
        let answers = [first.await.unwrap(), second.await.unwrap()];
        let refused: Vec<&StartError> = answers.iter().filter_map(|answer| answer.as_ref().err()).collect();
        let [StartError::OtherOptions { options, .. }] = refused[..] else { panic!("{answers:?}") };
        assert_eq!(options, &[option]);
        runner.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_said_of_checkpoints_is_compared_also_where_it_is_the_default() {
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let with = |checkpoints| StartOptions::new().checkpoints(checkpoints);
    runner.start_with("first", &numbers(), &with(Checkpoints::EveryN(5))).await.unwrap();
    runner.start("first", &numbers()).await.unwrap();
    let error = runner.start_with("first", &numbers(), &with(Checkpoints::default())).await.unwrap_err();
    assert!(
        matches!(&error, StartError::OtherOptions { options, .. } if options == &["checkpoints"]),
        "{error:?}"
    );
    runner.start("second", &numbers()).await.unwrap();
    runner.start_with("second", &numbers(), &with(Checkpoints::default())).await.unwrap();
}
