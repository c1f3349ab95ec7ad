//! Where work runs: on threads, in tasks, or where the runner is; each for some components, and each survives what
//! the work does.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidewheel_core::fact::RunId;
use tidewheel_core::policy::{self, Backoff, Failure, NodeInfo, Policy};
use tidewheel_core::workflow::{Workflow, step};
use tidewheel_runner::{Executor, Hooks, Runner, RunnerOptions, StartError};
use tidewheel_store::Status;

const ALL: [Executor; 3] = [Executor::Threads, Executor::Tasks, Executor::Inline];

#[tokio::test]
async fn i3_with_a_limit_of_one_work_runs_one_at_a_time() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let enter = {
        let (now, most) = (Arc::clone(&now), Arc::clone(&most));
        move || most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst)
    };
    let mut builder = Workflow::new("wide");
    for number in 0..10 {
        let (enter, now) = (enter.clone(), Arc::clone(&now));
        let (enter_async, now_async) = (enter.clone(), Arc::clone(&now));
        builder = builder
            .add(step(format!("sync{number}"), move |x: i64| {
                enter();
                std::thread::yield_now();
                now.fetch_sub(1, Ordering::SeqCst);
                x
            }))
            .add(step(format!("async{number}"), move |x: i64| {
                let (enter, now) = (enter_async.clone(), Arc::clone(&now_async));
                async move {
                    enter();
                    tokio::task::yield_now().await;
                    now.fetch_sub(1, Ordering::SeqCst);
                    x
                }
            }));
    }
    let workflow = builder.build().unwrap();
    let runner = Runner::in_memory(RunnerOptions::new().max_concurrency(1)).await.unwrap();
    let run = runner.run("first", &workflow, 1_i64).await.unwrap();
    assert_eq!(run.wait().await.unwrap(), Status::Completed);
    assert_eq!(most.load(Ordering::SeqCst), 1);
    assert_eq!(run.state().await.unwrap().productions().len(), 20);
}

#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<String>>>);

impl Hooks for Told {
    fn completed(&self, _: &RunId, node: &NodeInfo<'_>) {
        self.0.lock().expect("no panic").push(format!("completed {}", node.name.unwrap_or("?")));
    }

    fn failed(&self, _: &RunId, node: &NodeInfo<'_>, failure: &Failure) {
        self.0.lock().expect("no panic").push(format!("failed {}: {failure}", node.name.unwrap_or("?")));
    }

    fn idle(&self, _: &RunId, status: Status) {
        self.0.lock().expect("no panic").push(format!("idle {status}"));
    }
}

#[tokio::test]
async fn i10_a_panic_is_the_failure_of_that_work_and_nothing_else_in_every_executor() {
    for executor in ALL {
        let told = Told::default();
        let workflow = Workflow::new("panics")
            .add(step("fine", |x: i64| x + 1))
            .add(step("panics", |_: i64| -> i64 { std::panic::resume_unwind(Box::new("ouch")) }))
            .add(step("later", |_: i64| async { std::panic::resume_unwind(Box::new("later")) as i64 }))
            .add(step("after", |x: i64| x).after("panics"))
            .add(step("last", |x: i64| x).after("fine"))
            .build()
            .unwrap();
        let options = RunnerOptions::new().executor(executor).max_concurrency(1).hooks(told.clone());
        let runner = Runner::in_memory(options).await.unwrap();
        let run = runner.run("first", &workflow, 1_i64).await.unwrap();
        assert_eq!(run.wait().await.unwrap(), Status::Failed);
        assert_eq!(run.result::<i64>("last").await.unwrap(), 2);
        let error = run.result::<i64>("panics").await.unwrap_err().to_string();
        assert_eq!(error, "`panics` failed: [panic] ouch", "{executor:?}");
        let error = run.result::<i64>("later").await.unwrap_err().to_string();
        assert_eq!(error, "`later` failed: [panic] later", "{executor:?}");
        // The executor is still there.
        run.input(2_i64).await.unwrap();
        assert_eq!(run.result::<i64>("last").await.unwrap(), 3);
        run.wait().await.unwrap();
        runner.shutdown().await;
        let mut told = told.0.lock().unwrap().clone();
        assert_eq!(told.last().unwrap(), "idle failed");
        told.sort();
        let once = [
            "completed fine",
            "completed last",
            "failed later: [panic] later",
            "failed panics: [panic] ouch",
        ];
        let mut expected: Vec<&str> =
            once.into_iter().chain(["idle failed"]).flat_map(|line| [line; 2]).collect();
        expected.sort_unstable();
        assert_eq!(told, expected, "{executor:?}");
    }
}

#[tokio::test]
async fn i10_components_have_their_own_executor() {
    let main = std::thread::current().id();
    let on = |name: &str| step(name, move |_: i64| std::thread::current().id() == main);
    let workflow = Workflow::new("places")
        .add(on("thread"))
        .add(on("task"))
        .add(on("inline").tag("quick"))
        .build()
        .unwrap();
    let options = RunnerOptions::new()
        .executor_for(policy::name("task"), Executor::Tasks)
        .executor_for(policy::tag("quick"), Executor::Inline);
    let runner = Runner::in_memory(options).await.unwrap();
    let run = runner.run("first", &workflow, 1_i64).await.unwrap();
    assert!(!run.result::<bool>("thread").await.unwrap());
    assert!(run.result::<bool>("task").await.unwrap());
    assert!(run.result::<bool>("inline").await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn i10_a_timeout_of_blocking_work_that_cannot_be_given_up_is_refused_at_start() {
    let workflow = Workflow::new("bounded")
        .add(step("blocks", |x: i64| x))
        .add(step("waits", |x: i64| async move { x }))
        .policy(policy::default(), Policy::new().timeout("1s"))
        .build()
        .unwrap();
    for executor in [Executor::Tasks, Executor::Inline] {
        let runner = Runner::in_memory(RunnerOptions::new().executor(executor)).await.unwrap();
        let StartError::Policies(problems) = runner.start("first", &workflow).await.unwrap_err() else {
            panic!("{executor:?}");
        };
        let text = problems.to_string();
        assert!(text.contains("blocks.timeout") && !text.contains("waits"), "{text}");
        // On threads it can be.
        let options = RunnerOptions::new().executor(executor);
        let options = options.executor_for(policy::name("blocks"), Executor::Threads);
        let runner = Runner::in_memory(options).await.unwrap();
        let run = runner.run("first", &workflow, 1_i64).await.unwrap();
        assert_eq!(run.result::<i64>("blocks").await.unwrap(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn i10_retries_are_kept_in_every_executor() {
    for executor in ALL {
        let calls = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&calls);
        let flaky = move |x: i64| match counted.fetch_add(1, Ordering::Relaxed) {
            0 | 1 => Err(Failure::new("busy")),
            _ => Ok(x + 1),
        };
        let workflow = Workflow::new("flaky")
            .add(step("inc", flaky))
            .policy(policy::default(), Policy::new().max_retries(2).backoff(Backoff::Fixed).base_delay("1s"))
            .build()
            .unwrap();
        let runner = Runner::in_memory(RunnerOptions::new().executor(executor)).await.unwrap();
        let run = runner.run("first", &workflow, 1_i64).await.unwrap();
        assert_eq!(run.result::<i64>("inc").await.unwrap(), 2, "{executor:?}");
        assert_eq!(calls.load(Ordering::Relaxed), 3);
    }
}

#[tokio::test]
async fn i10_blocking_work_that_is_not_over_in_time_is_given_up_and_counted() {
    let (go, until) = std::sync::mpsc::channel::<()>();
    let until = Mutex::new(until);
    let workflow = Workflow::new("blocks")
        .add(step("blocks", move |x: i64| {
            until.lock().expect("no panic").recv().expect("a word");
            x
        }))
        .policy(policy::default(), Policy::new().timeout("10ms"))
        .build()
        .unwrap();
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let run = runner.run("first", &workflow, 1_i64).await.unwrap();
    let error = run.result::<i64>("blocks").await.unwrap_err().to_string();
    assert_eq!(error, "`blocks` failed: [timeout] took longer than 10ms");
    assert_eq!(runner.abandoned_threads(), 1);
    go.send(()).unwrap();
    while runner.abandoned_threads() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(run.results::<i64>("blocks").await.unwrap(), Vec::<i64>::new());
}

#[tokio::test(start_paused = true)]
async fn async_work_that_is_not_over_in_time_is_given_up() {
    let workflow = Workflow::new("waits")
        .add(step("waits", |x: i64| async move {
            tokio::time::sleep(Duration::from_secs(60)).await;
            x
        }))
        .policy(policy::default(), Policy::new().timeout("10s"))
        .build()
        .unwrap();
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let began = tokio::time::Instant::now();
    let run = runner.run("first", &workflow, 1_i64).await.unwrap();
    let error = run.result::<i64>("waits").await.unwrap_err().to_string();
    assert_eq!(error, "`waits` failed: [timeout] took longer than 10s");
    assert_eq!(began.elapsed().as_secs(), 10);
}
