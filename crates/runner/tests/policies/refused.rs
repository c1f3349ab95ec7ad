//! A field that is accepted acts; one that cannot is refused by its name, and nothing has happened then.

use std::sync::Arc;

use tidewheel_core::policy::{self, CircuitBreaker, ExecutionMode, OnFailure, Overlay, Policy, Rules};
use tidewheel_core::time::Timestamp;
use tidewheel_core::workflow::{Workflow, map, step};
use tidewheel_core::{Problems, workflow::condition};
use tidewheel_runner::{
    DriveOptions, Options, Runner, RunnerOptions, StartError, SyncWork, drive, execute_with_policies,
    react_until_satisfied, run_until_satisfied,
};

use crate::world::{Calls, built, flaky, flaky_sync, governed, resolved};

/// Where a policy is to act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// On a piece of work by itself.
    Piece,
    /// In a run in memory.
    Memory,
    /// In a run with a store.
    Store,
}

/// Every field that does not act everywhere, in a policy that is otherwise in order, and where it begins to act;
/// `None` for nowhere yet.
fn not_everywhere() -> Vec<(&'static str, Policy, Option<Place>)> {
    let new = Policy::new;
    let (memory, store) = (Some(Place::Memory), Some(Place::Store));
    vec![
        ("on_failure", new().on_failure(OnFailure::DeadLetter), store),
        ("on_failure", new().on_failure(OnFailure::Pause), store),
        ("execution_mode", new().execution_mode(ExecutionMode::Durable), store),
        ("execution_mode", new().execution_mode(ExecutionMode::External), store),
        ("idempotency_key", new().idempotency_key(|_, _| "k".to_owned()), store),
        ("checkpoint_after", new().checkpoint_after(true), store),
        ("retry_budget", new().max_retries(1).retry_budget("b", 3, "1s"), memory),
        ("circuit_breaker", new().circuit_breaker(CircuitBreaker::new("b")), memory),
        ("concurrency_limit", new().concurrency_limit(2), memory),
        ("rate_limit", new().rate_limit(1, "1s"), memory),
        ("delay", new().delay("1s"), memory),
        ("scheduled_at", new().scheduled_at(Timestamp::from_millis(5)), memory),
    ]
}

fn names(problems: &Problems, field: &str) -> bool {
    problems.all().iter().any(|problem| problem.path.rsplit('.').next() == Some(field))
}

/// Fields that act everywhere. Together with those above they are all there are.
const ACT: [&str; 18] = [
    "telemetry_prefix",
    "log_level",
    "metadata",
    "max_retries",
    "backoff",
    "jitter",
    "base_delay",
    "max_delay",
    "timeout",
    "total_timeout",
    "deadline",
    "fallback",
    "compensation",
    "retryable_errors",
    "non_retryable_errors",
    "priority",
    "queue_timeout",
    "heartbeat",
];

#[test]
fn every_field_acts_or_is_refused() {
    for field in Policy::FIELDS {
        let is_refused = not_everywhere().iter().any(|(_, policy, _)| policy.says(field));
        assert!(is_refused || ACT.contains(field), "nobody looked at {field}");
    }
}

#[tokio::test(start_paused = true)]
async fn g14_a_field_that_cannot_act_is_refused_wherever_it_comes_from() {
    for (field, policy, acts_from) in not_everywhere() {
        let is_refused = |place: Place| acts_from.is_none_or(|first| place < first);
        let calls = Calls::default();
        let component = || flaky("flaky", &calls, 0);
        let rules = Rules::new([(policy::default(), policy.clone())]).unwrap();

        // By hand.
        let mut run = built([component()]).run("r");
        run.plan(1_i64);
        let problems =
            drive(run.prepare().remove(0), resolved(&policy), DriveOptions::new()).await.unwrap_err();
        assert!(is_refused(Place::Piece) && names(&problems, field), "{field}: {problems}");
        let mut run = built([component()]).run("r");
        run.plan(1_i64);
        assert!(names(&execute_with_policies(run.prepare(), &rules).await.unwrap_err(), field));

        // Of the workflow, also where its rule matches nothing.
        for matcher in [policy::default(), policy::predicate(|_| false)] {
            let mut run = governed([component()], matcher, policy.clone()).run("r");
            let Err(problems) = react_until_satisfied(&mut run, 1_i64, Options::new()).await else {
                assert!(!is_refused(Place::Memory), "{field}");
                continue;
            };
            assert!(is_refused(Place::Memory) && names(&problems, field), "{field}: {problems}");
            assert_eq!((run.facts_len(), run.is_runnable()), (0, false), "the input was not taken");
            run.plan(1_i64);
            assert!(run_until_satisfied(&mut run, Options::new()).await.is_err());
            assert!(run.is_runnable(), "what was planned is still there");
        }

        // Of the call.
        for overlay in [Overlay::Merge, Overlay::Replace] {
            let mut run = built([component()]).run("r");
            let options = Options::new().policies(rules.clone(), overlay);
            let Err(problems) = react_until_satisfied(&mut run, 1_i64, options).await else {
                assert!(!is_refused(Place::Memory), "{field}");
                continue;
            };
            assert!(is_refused(Place::Memory) && names(&problems, field), "{field}: {problems}");
            assert_eq!((run.facts_len(), run.rules().as_slice().len()), (0, 0), "the run is as it was");
        }

        // Of a run with a store.
        let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
        let workflow = governed([component()], policy::predicate(|_| false), policy.clone());
        match runner.start("r", &workflow).await {
            Ok(_) => assert!(!is_refused(Place::Store), "{field}"),
            Err(StartError::Policies(problems)) => {
                assert!(is_refused(Place::Store) && names(&problems, field), "{field}: {problems}");
            }
            Err(other) => panic!("{field}: {other}"),
        }
        assert_eq!(calls.count() > 0, !is_refused(Place::Memory), "{field}: only what acts ran");
    }
}

#[tokio::test]
async fn rules_that_are_replaced_are_not_asked() {
    let calls = Calls::default();
    let policy = Policy::new().checkpoint_after(true);
    let workflow = governed([flaky("flaky", &calls, 0)], policy::default(), policy);
    let mut run = workflow.run("r");
    assert!(react_until_satisfied(&mut run, 1_i64, Options::new()).await.is_err());
    let options = Options::new().policies(Rules::default(), Overlay::Replace);
    react_until_satisfied(&mut run, 1_i64, options).await.unwrap();
    assert_eq!(calls.count(), 1);
}

#[tokio::test]
async fn every_field_and_every_rule_is_named_at_once() {
    let workflow = built([step("a", |x: i64| x)]);
    let rules = Rules::new([
        (policy::name("a"), Policy::new().on_failure(OnFailure::Pause).checkpoint_after(true)),
        (policy::default(), Policy::new().execution_mode(ExecutionMode::External)),
    ])
    .unwrap();
    let options = Options::new().policies(rules, Overlay::Merge);
    let problems = react_until_satisfied(&mut workflow.run("r"), 1_i64, options).await.unwrap_err();
    let mut paths: Vec<_> = problems.all().iter().map(|problem| problem.path.as_str()).collect();
    paths.sort_unstable();
    assert_eq!(
        paths,
        ["policies[0].checkpoint_after", "policies[0].on_failure", "policies[1].execution_mode"]
    );
}

#[tokio::test(start_paused = true)]
async fn i10_a_timeout_on_blocking_inline_work_is_refused_and_names_the_node() {
    for policy in [Policy::new().timeout("1s"), Policy::new().total_timeout("1s").max_retries(1)] {
        let (calls, asynchronous) = (Calls::default(), Calls::default());
        let workflow = governed(
            [flaky_sync("blocks", &calls, 0), flaky("awaits", &asynchronous, 0)],
            policy::default(),
            policy.clone(),
        );
        let inline = Options::new().sync_work(SyncWork::Inline);
        let mut run = workflow.run("r");
        let problems = react_until_satisfied(&mut run, 1_i64, inline.clone()).await.unwrap_err();
        assert_eq!(problems.all().len(), 1, "async work can be given up: {problems}");
        assert_eq!(problems.all()[0].path, "blocks.timeout");
        assert_eq!((calls.count(), asynchronous.count(), run.facts_len()), (0, 0, 0));
        react_until_satisfied(&mut run, 1_i64, Options::new()).await.unwrap();
        assert_eq!((calls.count(), asynchronous.count()), (1, 1), "on threads it can");

        // By hand it is the same.
        let mut run = workflow.run("r");
        run.plan(1_i64);
        for runnable in run.prepare() {
            let options = DriveOptions::new().sync_work(SyncWork::Inline);
            let is_async = runnable.is_async();
            let driven = drive(runnable, resolved(&policy), options).await;
            assert_eq!(driven.is_ok(), is_async);
            if let Err(problems) = driven {
                assert_eq!(problems.all()[0].path, "blocks.timeout");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn i10_retries_are_kept_inline() {
    let calls = Calls::default();
    let workflow = governed(
        [
            flaky_sync("blocks", &calls, 2),
            map("each", |x: i64| x).after("list"),
            step("list", |x: i64| vec![x]),
        ],
        policy::default(),
        Policy::new().max_retries(2),
    );
    let mut run = workflow.run("r");
    let options = Options::new().sync_work(SyncWork::Inline);
    react_until_satisfied(&mut run, 1_i64, options).await.unwrap();
    assert_eq!((calls.count(), run.result::<i64>("blocks").unwrap()), (3, Some(2)));
    assert_eq!(run.result::<i64>("each").unwrap(), Some(1));
}

#[tokio::test]
async fn inline_work_is_done_by_whoever_drives_the_run() {
    let here = std::thread::current().id();
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let told = Arc::clone(&seen);
    let workflow = built([
        step("where", move |x: i64| {
            told.lock().unwrap().push(std::thread::current().id());
            x
        }),
        condition("any", |_: i64| true),
    ]);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    std::thread::scope(|scope| {
        let driving = scope.spawn(|| {
            let me = std::thread::current().id();
            let mut run = workflow.run("r");
            let options = Options::new().sync_work(SyncWork::Inline);
            runtime.block_on(react_until_satisfied(&mut run, 1_i64, options)).unwrap();
            me
        });
        let me = driving.join().unwrap();
        assert_ne!(me, here);
        assert_eq!(*seen.lock().unwrap(), [me]);
    });
    runtime.shutdown_background();
}

#[tokio::test(start_paused = true)]
async fn rules_of_one_call_do_not_stay_on_the_run() {
    let workflow = Workflow::new("w").add(step("s", |x: i64| x + 1)).build().unwrap();
    let mut run = workflow.run("r");
    let rules = Rules::new([(policy::default(), Policy::new().max_retries(7))]).unwrap();
    let options = Options::new().policies(rules, Overlay::Merge);
    react_until_satisfied(&mut run, 1_i64, options).await.unwrap();
    assert!(run.rules().as_slice().is_empty());
}

#[tokio::test]
async fn a_durable_mode_in_memory_is_refused_by_name() {
    let workflow = Workflow::new("w")
        .add(step("s", |x: i64| x + 1))
        .policy(policy::default(), Policy::new().execution_mode(ExecutionMode::Durable))
        .build()
        .unwrap();
    let mut run = workflow.run("r");
    let problems = react_until_satisfied(&mut run, 1_i64, Options::new()).await.unwrap_err();
    assert!(problems.to_string().contains("execution_mode"), "{problems}");
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let run = runner.run("r", &workflow, 1_i64).await.unwrap();
    assert_eq!(run.result::<i64>("s").await.unwrap(), 2, "a runner keeps it");
}

#[tokio::test]
async fn a_compensation_is_refused_where_there_is_nothing_to_undo() {
    let workflow = Workflow::new("w")
        .add(tidewheel_core::workflow::accumulator("total", 0_i64, |total: i64, x: i64| total + x))
        .policy(policy::default(), Policy::new().compensation(|_, _| Ok(())))
        .build()
        .unwrap();
    let problems = react_until_satisfied(&mut workflow.run("r"), 1_i64, Options::new()).await.unwrap_err();
    assert_eq!(
        problems.to_string(),
        "total.compensation: `total` cannot be undone: it is of kind accumulator (name it for steps, rules, maps or reduces)"
    );
}

#[tokio::test]
async fn a_compensation_that_the_run_would_not_find_is_refused() {
    let undo = || Policy::new().compensation(|_, _| Ok(()));
    let mut run = built([step("a", |x: i64| x)]).run("r");
    run.plan(1_i64);
    let runnable = run.prepare().remove(0);
    let problems = drive(runnable.clone(), resolved(&undo()), DriveOptions::new()).await.unwrap_err();
    assert!(names(&problems, "compensation"), "{problems}");
    let rules = Rules::new([(policy::default(), undo())]).unwrap();
    let problems = execute_with_policies(vec![runnable], &rules).await.unwrap_err();
    assert!(names(&problems, "compensation"), "{problems}");
    let mut run = governed([step("a", |x: i64| x)], policy::default(), undo()).run("r");
    run.plan(1_i64);
    let runnable = run.prepare().remove(0);
    let policy = std::sync::Arc::clone(runnable.policy());
    assert!(drive(runnable, policy, DriveOptions::new()).await.is_ok());
}
