//! Durable runs: latency of one at a time, throughput of many, resume, runs that only wait in the store; beside what
//! the disk and SQLite alone give.
//! Run with `cargo xtask bench durable` or `cargo bench -p tidewheel-runner --bench durable`.

#![expect(clippy::print_stdout, reason = "a benchmark shows its figures")]

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tidewheel_core::time::Span;
use tidewheel_core::workflow::{Workflow, step};
use tidewheel_runner::{Runner, RunnerOptions};
use tidewheel_store::{Clock, RealClock, Sqlite};
use tidewheel_testkit::figure::{self, Unit};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let wanted = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let folder =
        tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder on the disk of the build");
    if wanted("durable machine") {
        machine(folder.path());
    }
    if wanted("durable one at a time") {
        runtime.block_on(one_at_a_time(folder.path()));
    }
    for clients in [50, 1_000] {
        if wanted("durable concurrent") {
            runtime.block_on(concurrent(folder.path(), clients));
        }
    }
    if wanted("durable in memory") {
        runtime.block_on(in_memory());
        runtime.block_on(bare_tasks());
        runtime.block_on(parallel_steps());
    }
    if wanted("durable resume") {
        for steps in figure::quick_or(&[200, 1_000][..], &[200, 2_000, 10_000]) {
            runtime.block_on(resume(folder.path(), *steps));
        }
    }
    if wanted("durable queued") {
        for runs in figure::quick_or(&[1_000, 10_000][..], &[10_000, 100_000, 1_000_000]) {
            runtime.block_on(queued(folder.path(), *runs));
        }
    }
}

/// What the disk and SQLite give without us.
fn machine(folder: &Path) {
    let mut file = File::create(folder.join("plain")).expect("a file");
    let syncs = repeated(|| {
        file.write_all(&[7; 512]).expect("room on the disk");
        file.sync_data().expect("a disk that syncs");
    });
    figure::took("machine/fdatasync", 1, &syncs);
    let each = syncs.iter().sum::<Duration>().as_secs_f64() / syncs.len() as f64;
    println!("machine: {:.0} writes with fdatasync per second, {:.0} µs each", 1.0 / each, each * 1e6);
    let commits = bare_commits(folder);
    figure::took("machine/bare commit", 1, &commits);
    let took = commits.iter().sum::<Duration>().as_secs_f64();
    figure::measured("machine/bare commits per second", Unit::PerSecond, &[commits.len() as f64 / took]);
    println!(
        "machine: a bare commit of SQLite (WAL, FULL) takes {:.0} µs",
        median(commits).as_secs_f64() * 1e6
    );
}

/// Returns the middle one: a busy disk has long tails.
fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn bare_commits(folder: &Path) -> Vec<Duration> {
    let database = rusqlite::Connection::open(folder.join("bare.db")).expect("a database");
    database
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
             CREATE TABLE IF NOT EXISTS events (id INTEGER PRIMARY KEY, body TEXT)",
        )
        .expect("a table");
    let mut insert = database.prepare("INSERT INTO events (body) VALUES (?1)").expect("a statement");
    let body = "x".repeat(600);
    repeated(|| {
        insert.execute([&body]).expect("room on the disk");
    })
}

/// Returns how long each of many took.
fn repeated(mut deed: impl FnMut()) -> Vec<Duration> {
    let mut times = Vec::new();
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(700) {
        let before = Instant::now();
        deed();
        times.push(before.elapsed());
    }
    times
}

fn three_steps() -> Workflow {
    Workflow::new("three")
        .add(step("a", |x: i64| x + 1))
        .add(step("b", |x: i64| x + 1).after("a"))
        .add(step("c", |x: i64| x + 1).after("b"))
        .build()
        .expect("a sound workflow")
}

async fn open(path: &Path, options: RunnerOptions) -> (Runner, Arc<Sqlite>) {
    let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
    let store = Arc::new(Sqlite::open(path, Arc::clone(&clock)).expect("a database"));
    let shared: Arc<dyn tidewheel_store::Store> = Arc::<Sqlite>::clone(&store);
    (Runner::with_store(shared, options.clock(clock)).await.expect("a runner"), store)
}

async fn one_at_a_time(folder: &Path) {
    let runs = figure::quick_or(100, 1_000);
    let (runner, store) = open(&folder.join("one.db"), RunnerOptions::new()).await;
    let workflow = three_steps();
    for warm in 0..50 {
        let run = runner.run(format!("warm-{warm}").as_str(), &workflow, 1_i64).await.expect("a run");
        assert_eq!(run.result::<i64>("c").await.expect("a result"), 4);
    }
    let before = store.commits();
    let mut times = Vec::with_capacity(runs);
    for index in 0..runs {
        let began = Instant::now();
        let run = runner.run(format!("run-{index}").as_str(), &workflow, 1_i64).await.expect("a run");
        assert_eq!(run.result::<i64>("c").await.expect("a result"), 4);
        times.push(began.elapsed());
    }
    let commits = (store.commits() - before) as f64 / runs as f64;
    figure::took("durable/one at a time", 1, &times);
    figure::measured("durable/one at a time, commits", Unit::Count, &[commits]);
    times.sort();
    // Beside the runs and not before them: a disk is not always equally quick.
    let bare = bare_commits(folder);
    let four: Vec<Duration> = bare.iter().map(|commit| *commit * 4).collect();
    figure::took("durable/4 bare commits", 1, &four);
    let commit = median(bare);
    let (p50, p99) = (times[runs / 2], times[runs * 99 / 100]);
    figure::took("durable/one at a time, p99", 1, &[p99]);
    println!(
        "one at a time: p50 {:.0} µs, p99 {:.0} µs, {commits:.2} commits each; 4 bare commits {:.0} µs, {:+.0} %",
        p50.as_secs_f64() * 1e6,
        p99.as_secs_f64() * 1e6,
        commit.as_secs_f64() * 4e6,
        (p50.as_secs_f64() / (commit.as_secs_f64() * 4.0) - 1.0) * 100.0,
    );
    runner.shutdown().await;
}

async fn concurrent(folder: &Path, clients: usize) {
    let runs = if clients < 100 { figure::quick_or(1_000, 10_000) } else { figure::quick_or(2_000, 40_000) };
    let (runner, store) = open(&folder.join(format!("many-{clients}.db")), RunnerOptions::new()).await;
    let workflow = three_steps();
    let (before, began) = (store.commits(), Instant::now());
    let mut tasks = tokio::task::JoinSet::new();
    for client in 0..clients {
        let (runner, workflow) = (runner.clone(), workflow.clone());
        tasks.spawn(async move {
            let mut times = Vec::new();
            for index in 0..runs / clients {
                let id = format!("run-{client}-{index}");
                let began = Instant::now();
                let run = runner.run(id.as_str(), &workflow, 1_i64).await.expect("a run");
                assert_eq!(run.result::<i64>("c").await.expect("a result"), 4);
                times.push(began.elapsed());
            }
            times
        });
    }
    let mut times = Vec::new();
    while let Some(done) = tasks.join_next().await {
        times.extend(done.expect("a client that ends"));
    }
    let took = began.elapsed().as_secs_f64();
    times.sort();
    let commits = store.commits() - before;
    let steps = times.len() as f64 * 3.0 / took;
    figure::measured(&format!("durable/steps per second/{clients}"), Unit::PerSecond, &[steps]);
    figure::took(&format!("durable/time of a run/{clients}"), 1, &times);
    let per_run = commits as f64 / times.len() as f64;
    figure::measured(&format!("durable/commits of a run/{clients}"), Unit::Count, &[per_run]);
    println!(
        "{clients} clients: {:.0} durable steps per second, {:.0} runs per second, p50 {:.1} ms; {:.2} commits per run",
        steps,
        times.len() as f64 / took,
        times[times.len() / 2].as_secs_f64() * 1e3,
        per_run,
    );
    runner.shutdown().await;
}

const RUNS: usize = 1_000;
const ROUNDS: usize = 20;

async fn in_memory() {
    let runner = Runner::in_memory(RunnerOptions::new()).await.expect("a runner");
    let workflow = three_steps();
    let mut rates = Vec::new();
    for round in 0..ROUNDS {
        let began = Instant::now();
        let mut tasks = tokio::task::JoinSet::new();
        for index in 0..RUNS {
            let (runner, workflow) = (runner.clone(), workflow.clone());
            tasks.spawn(async move {
                let id = format!("run-{round}-{index}");
                let run = runner.run(id.as_str(), &workflow, 1_i64).await.expect("a run");
                run.result::<i64>("c").await.expect("a result")
            });
        }
        while let Some(done) = tasks.join_next().await {
            assert_eq!(done.expect("a client that ends"), 4);
        }
        rates.push(RUNS as f64 / began.elapsed().as_secs_f64());
    }
    figure::measured("memory/runs per second", Unit::PerSecond, &rates);
    rates.sort_by(f64::total_cmp);
    println!("in memory: {RUNS} runs of 3 steps at once: {:.0} workflows per second", rates[rates.len() / 2]);
}

/// As many tasks at once, each of which makes the same three calls and hands each result over a channel.
async fn bare_tasks() {
    let mut rates = Vec::new();
    for _ in 0..ROUNDS {
        let began = Instant::now();
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..RUNS {
            tasks.spawn(async move {
                let mut value = 1_i64;
                for _ in 0..3 {
                    let (sender, receiver) = tokio::sync::oneshot::channel();
                    tokio::spawn(async move { sender.send(std::hint::black_box(value) + 1) });
                    value = receiver.await.expect("a task that ends");
                }
                value
            });
        }
        while let Some(done) = tasks.join_next().await {
            assert_eq!(done.expect("a client that ends"), 4);
        }
        rates.push(RUNS as f64 / began.elapsed().as_secs_f64());
    }
    figure::measured("memory/bare tasks per second", Unit::PerSecond, &rates);
    rates.sort_by(f64::total_cmp);
    println!("bare tasks: {RUNS} of 3 calls at once: {:.0} per second", rates[rates.len() / 2]);
}

async fn parallel_steps() {
    let runner = Runner::in_memory(RunnerOptions::new()).await.expect("a runner");
    let mut builder = Workflow::new("wide");
    for index in 0..1_000 {
        builder = builder.add(step(format!("step-{index}"), |x: i64| x + 1));
    }
    let workflow = builder.build().expect("a sound workflow");
    let mut times = Vec::new();
    for round in 0..20 {
        let began = Instant::now();
        let run = runner.run(format!("run-{round}").as_str(), &workflow, 1_i64).await.expect("a run");
        run.wait().await.expect("an end");
        times.push(began.elapsed());
    }
    figure::took("memory/1000 parallel steps", 1, &times);
    times.sort();
    println!("in memory: one run with 1,000 parallel steps: {:.1} ms", times[10].as_secs_f64() * 1e3);
}

async fn resume(folder: &Path, steps: usize) {
    let path = folder.join(format!("resume-{steps}.db"));
    let mut builder = Workflow::new("long").add(step("step-0", |x: i64| x + 1));
    for index in 1..steps {
        let before = format!("step-{}", index - 1);
        builder = builder.add(step(format!("step-{index}"), |x: i64| x + 1).after(before.as_str()));
    }
    let workflow = builder.build().expect("a sound workflow");
    let (runner, _store) = open(&path, RunnerOptions::new()).await;
    let run = runner.run("long", &workflow, 1_i64).await.expect("a run");
    run.wait().await.expect("an end");
    runner.shutdown().await;
    let mut times = Vec::new();
    let mut events = 0;
    for _ in 0..10 {
        let (runner, _store) = open(&path, RunnerOptions::new()).await;
        runner.register(&workflow).expect("a sound workflow");
        let began = Instant::now();
        let run = runner.start("long", &workflow).await.expect("the run");
        let value = run.result::<i64>(&format!("step-{}", steps - 1)).await.expect("a result");
        times.push(began.elapsed());
        assert_eq!(value, i64::try_from(steps).expect("a small number") + 1);
        events = runner.list(tidewheel_store::Filter::default()).await.expect("a list").rows[0].version;
        runner.shutdown().await;
    }
    let count = usize::try_from(events).expect("a small number");
    figure::took(&format!("durable/resume/{events}"), count, &times);
    let by_hand: Vec<Duration> = (0..10).map(|_| read_by_hand(&path)).collect();
    figure::took(&format!("durable/resume by hand/{events}"), count, &by_hand);
    times.sort();
    println!("the same rows read and parsed by hand: {:.1} ms", median(by_hand).as_secs_f64() * 1e3);
    println!("resume of a run with {events} events: {:.1} ms", times[5].as_secs_f64() * 1e3);
}

/// How many clients put runs into a store at once.
const QUEUING: usize = 1_000;

/// Puts runs with one input each into a store in which the only place is taken: what one more waiting run costs in time,
/// memory and file.
async fn queued(folder: &Path, runs: usize) {
    let path = folder.join(format!("queued-{runs}.db"));
    let (runner, _store) =
        open(&path, RunnerOptions::new().max_active_runs(1).shutdown_grace(Span::ZERO)).await;
    let endless = Workflow::new("endless").add(step("never", |_: i64| std::future::pending::<i64>()));
    let endless = endless.build().expect("a sound workflow");
    runner.run("endless", &endless, 1_i64).await.expect("a run");
    let (workflow, memory, began) = (three_steps(), resident(), Instant::now());
    let mut tasks = tokio::task::JoinSet::new();
    for client in 0..QUEUING {
        let (runner, workflow) = (runner.clone(), workflow.clone());
        tasks.spawn(async move {
            for index in (client..runs).step_by(QUEUING) {
                runner.run(format!("run-{index}").as_str(), &workflow, 1_i64).await.expect("a run");
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.expect("a client that ends");
    }
    let took = began.elapsed();
    let memory = resident().saturating_sub(memory);
    runner.shutdown().await;
    let file = std::fs::metadata(&path).expect("a database").len();
    figure::took(&format!("durable/queued/{runs}"), runs, &[took]);
    let of_each = |bytes: u64| bytes as f64 / runs as f64;
    figure::measured(&format!("durable/queued, memory/{runs}"), Unit::Bytes, &[of_each(memory)]);
    figure::measured(&format!("durable/queued, file/{runs}"), Unit::Bytes, &[of_each(file)]);
    println!(
        "{runs} runs queued in {:.1} s: {:.1} MB of memory, {:.1} MB of file, {:.0} bytes of file for each",
        took.as_secs_f64(),
        memory as f64 / 1e6,
        file as f64 / 1e6,
        of_each(file),
    );
    std::fs::remove_file(&path).expect("the database");
}

/// Returns how much memory this process has.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("the memory");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1_024
}

/// Reads all rows of events and parses them, and builds nothing.
fn read_by_hand(path: &Path) -> Duration {
    let began = Instant::now();
    let database = rusqlite::Connection::open(path).expect("a database");
    let mut select = database.prepare("SELECT body FROM events ORDER BY rowid").expect("a statement");
    let bodies = select.query_map([], |row| row.get::<_, String>(0)).expect("rows");
    let mut count = 0;
    for body in bodies {
        let value: serde_json::Value = serde_json::from_str(&body.expect("a row")).expect("JSON");
        count += value.as_array().map_or(0, Vec::len);
    }
    assert!(std::hint::black_box(count) > 0);
    began.elapsed()
}
