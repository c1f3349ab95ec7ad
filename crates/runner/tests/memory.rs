//! What a runner keeps of runs that only wait and were given back to the store: next to nothing; and what a command over
//! a run of a repository costs for each of its jobs.

use std::sync::Arc;

use tidewheel_core::policy::{Policy, default};
use tidewheel_core::work::RunContext;
use tidewheel_core::workflow::{Workflow, step};
use tidewheel_runner::job::{Options, Scheduler};
use tidewheel_runner::{Executor, Runner, RunnerOptions, StartOptions};
use tidewheel_store::jobs::{Batch, Files, JobStore as _};
use tidewheel_store::{Memory, RealClock, Store};
use tidewheel_testkit::job_suite::{manifest, member, run_id};
use tidewheel_testkit::{CountingAllocator, allocations_in, bytes_held_by};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Returns how many bytes are free again when a runner is dropped to which so many runs were given that wait. The store stays.
fn kept_by_runner(runs: usize) -> i64 {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().expect("sound");
    let store = Arc::new(Memory::new(Arc::new(RealClock::new())));
    let runner = runtime.block_on(async {
        let options = RunnerOptions::new().executor(Executor::Inline).clock(Arc::new(RealClock::new()));
        let runner = Runner::with_store(Arc::clone(&store) as Arc<dyn Store>, options).await.expect("sound");
        let workflow = Workflow::new("later")
            .add(step("inc", |x: i64| x + 1))
            .policy(default(), Policy::new().delay("24h"))
            .build()
            .expect("sound");
        for number in 0..runs {
            runner.run(format!("run-{number}"), &workflow, 1_i64).await.expect("sound");
        }
        // Runs that rest are given back when the lease is renewed.
        tokio::time::sleep(std::time::Duration::from_secs(60)).await;
        let metrics = runner.metrics();
        assert!(metrics.contains("tidewheel_runs_held 0"), "{metrics}");
        runner
    });
    let (held, ()) = bytes_held_by(|| {
        drop(runner);
        drop(runtime);
    });
    -held
}

#[test]
fn a_run_that_waits_and_was_given_back_keeps_less_than_sixty_four_bytes() {
    let (few, many) = (kept_by_runner(500), kept_by_runner(2_500));
    let each = (many - few) / 2_000;
    assert!(each < 64, "{each} bytes for each of them");
}

/// Returns a scheduler of a directory with a run of so many jobs that nothing starts.
fn waiting_jobs(folder: &std::path::Path, count: usize) -> Scheduler {
    let data = folder.join(".tidewheel");
    let store = Files::open(&data).expect("a store");
    let records = (0..count).map(|number| member("run_1", &format!("n{number:05}"))).collect();
    let batch = Batch { records, manifest: Some(manifest("run_1")), ..Batch::default() };
    assert!(store.turn().expect("a turn").commit(batch).expect("a commit").is_empty());
    Scheduler::open(Options {
        root: folder.to_owned(),
        data,
        binary: "/bin/false".into(),
        actor: "ada".to_owned(),
        capacity: 0,
        probe_interval: Options::PROBE_INTERVAL,
        log_limit: Options::LOG_LIMIT,
        agents: std::collections::BTreeMap::new(),
        secrets: tidewheel_core::job::Secrets::default(),
        cleans_cancelled: false,
        tell_of_wait: None,
        now: None,
    })
    .expect("a scheduler")
}

/// Cancelling a run once did a pass for each of its jobs: 2,000 took 53 s, and others started meanwhile.
#[test]
fn commands_over_a_run_cost_as_much_for_each_job_however_many_there_are() {
    let costs = |count: usize| {
        let folder = tempfile::tempdir().expect("a folder");
        let scheduler = waiting_jobs(folder.path(), count);
        let run = run_id("run_1");
        let (cancel, cancelled) = allocations_in(|| scheduler.cancel_run(&run, None).expect("a cancel"));
        assert_eq!(cancelled.len(), count);
        let (retry, (reset, _)) = allocations_in(|| scheduler.retry_run(&run).expect("a retry"));
        assert_eq!(reset.len(), count);
        assert_eq!(scheduler.cancel_run(&run, None).expect("a cancel").len(), count);
        let removes = tidewheel_runner::job::Removes::Old;
        let (gc, report) = allocations_in(|| scheduler.gc(0, removes).expect("a gc"));
        assert_eq!((report.jobs.len(), report.errors), (count, Vec::new()));
        [("cancel", cancel), ("retry", retry), ("gc", gc)]
    };
    for ((name, few), (_, many)) in costs(50).into_iter().zip(costs(400)) {
        // Eight times as many jobs, and room for what grows with their logarithm.
        assert!(many < few * 10, "{name}: {few} allocations for 50 jobs, {many} for 400");
    }
}

/// A secret of a mebibyte, so that nothing else that is kept is as large.
const SECRET: usize = 1 << 20;

#[test]
fn the_context_that_a_run_was_started_with_is_dropped_when_the_run_is_over_and_given_back() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().expect("sound");
    let workflow = Workflow::new("quick").add(step("inc", |x: i64| x + 1)).build().expect("sound");
    let runner = runtime.block_on(async {
        let options = RunnerOptions::new().executor(Executor::Inline);
        Runner::in_memory(options).await.expect("sound")
    });
    let (held, ()) = bytes_held_by(|| {
        runtime.block_on(async {
            for number in 0..4 {
                let context = RunContext::new().global("key", "x".repeat(SECRET));
                let options = StartOptions::new().context(context);
                let id = format!("run-{number}");
                let run = runner.run_with(id, &workflow, 1_i64, &options).await.expect("sound");
                run.wait().await.expect("sound");
            }
            // Runs that rest are given back when the lease is renewed.
            tokio::time::sleep(std::time::Duration::from_secs(60)).await;
        });
    });
    assert!(held < SECRET as i64, "{held} bytes are kept of the contexts of runs that are over");
}

#[test]
fn a_run_that_can_still_go_on_here_keeps_its_context() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().expect("sound");
    let later = Workflow::new("later")
        .add(step("inc", |x: i64| x + 1))
        .policy(default(), Policy::new().delay("24h"))
        .build()
        .expect("sound");
    let runner = runtime.block_on(async {
        let options = RunnerOptions::new().executor(Executor::Inline);
        Runner::in_memory(options).await.expect("sound")
    });
    let (held, ()) = bytes_held_by(|| {
        runtime.block_on(async {
            let options = StartOptions::new().context(RunContext::new().global("key", "x".repeat(SECRET)));
            runner.run_with("waits", &later, 1_i64, &options).await.expect("sound");
            tokio::time::sleep(std::time::Duration::from_secs(60)).await;
        });
    });
    // What the other test looks for would be seen.
    assert!(held >= SECRET as i64, "{held}");
}
