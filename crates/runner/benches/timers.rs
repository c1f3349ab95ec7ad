//! What waiting costs: 100,000 timers while they wait, how late they fire, and a runner with 10,000 runs that wait.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark that cannot be set up has failed")]

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tidewheel_core::policy::{self, Failure, Policy};
use tidewheel_core::work::Context;
use tidewheel_core::workflow::{Workflow, map, step};
use tidewheel_runner::{Options, Runner, RunnerOptions, react_until_satisfied};
use tidewheel_testkit::figure::{self, Unit};

const TIMERS: u32 = 100_000;
/// Nothing is due before this, so that only waiting is measured.
const QUIET: u64 = 4_000;
/// They are spread over this, one every 50 microseconds.
const SPREAD: u64 = 5_000;
const RUNS: usize = 10_000;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let wanted = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    if wanted("waiting timers") {
        runtime.block_on(waiting_timers());
    }
    if wanted("waiting runs") && figure::is_quick() {
        for name in ["processor", "wake-ups"] {
            figure::skipped(&format!("waiting runs/{name}"), "takes too long for short measurements");
        }
    } else if wanted("waiting runs") {
        runtime.block_on(waiting_runs());
    }
}

/// Each of many items fails once and asks to be tried again at a time of its own.
async fn waiting_timers() {
    let late = Arc::new(Mutex::new(Vec::with_capacity(TIMERS as usize)));
    let began = Arc::new(Mutex::new(vec![None::<Instant>; TIMERS as usize]));
    let (told, firsts) = (Arc::clone(&late), Arc::clone(&began));
    let work = move |context: Context, item: u64| {
        let wait = Duration::from_millis(QUIET + item * SPREAD / u64::from(TIMERS));
        let now = Instant::now();
        let first = {
            let mut firsts = firsts.lock().unwrap();
            *firsts[usize::try_from(item).unwrap()].get_or_insert(now)
        };
        if context.attempt() > 0 {
            told.lock().unwrap().push(now.saturating_duration_since(first + wait));
        }
        let is_first = context.attempt() == 0;
        async move { if is_first { Err(Failure::new("later").retry_after(wait)) } else { Ok(item) } }
    };
    let workflow = Workflow::new("timers")
        .add(step("list", |count: u64| async move { (0..count).collect::<Vec<u64>>() }))
        .add(map("item", work).after("list"))
        .policy(policy::name("item"), Policy::new().max_retries(1))
        .build()
        .unwrap();
    let begin = Instant::now();
    let watch = tokio::spawn(async move {
        // All have failed once by then, and none is due.
        tokio::time::sleep(Duration::from_millis(QUIET - 1_500)).await;
        let (before, switches) = (cpu(), switches());
        tokio::time::sleep(Duration::from_secs(1)).await;
        (cpu().saturating_sub(before), self::switches() - switches)
    });
    let mut run = workflow.run("r");
    react_until_satisfied(&mut run, u64::from(TIMERS), Options::new()).await.unwrap();
    let (used, woken) = watch.await.unwrap();
    let mut late = late.lock().unwrap().clone();
    late.sort_unstable();
    let at = |share: usize| late[(late.len() - 1) * share / 100];
    figure::took("timers/processor", 1, &[used]);
    figure::measured("timers/wake-ups", Unit::Count, &[woken as f64]);
    figure::took("timers/late, median", 1, &late);
    figure::took("timers/late, p99", 1, &[at(99)]);
    figure::took("timers/late, most", 1, &[at(100)]);
    let too_late = late.iter().filter(|late| **late > Duration::from_millis(5)).count();
    println!("{TIMERS} timers: {used:?} of CPU and {woken} wake-ups in a second of waiting");
    println!(
        "late by: median {:?}, 99 % {:?}, most {:?}, {too_late} by more than 5 ms; all over in {:?}",
        at(50),
        at(99),
        at(100),
        begin.elapsed()
    );
}

/// Runs that wait for an hour.
async fn waiting_runs() {
    let folder = tempfile::tempdir().unwrap();
    let options = RunnerOptions::new();
    let runner = Runner::open_with(folder.path().join("runs.db"), options).await.unwrap();
    let workflow = Workflow::new("later")
        .add(step("s", |x: u64| async move { x }))
        .policy(policy::default(), Policy::new().delay("1h"))
        .build()
        .unwrap();
    let mut starts = tokio::task::JoinSet::new();
    for run in 0..RUNS {
        let (runner, workflow) = (runner.clone(), workflow.clone());
        starts.spawn(async move {
            let run = runner.start(format!("run-{run}"), &workflow).await.unwrap();
            run.input(1_u64).await.unwrap();
        });
    }
    while let Some(started) = starts.join_next().await {
        started.unwrap();
    }
    // Until all of them were given back, a third of a lease later.
    tokio::time::sleep(Duration::from_secs(12)).await;
    let (before, switches) = (cpu(), switches());
    tokio::time::sleep(Duration::from_secs(20)).await;
    let (used, woken) = (cpu().saturating_sub(before), self::switches() - switches);
    figure::took("waiting runs/processor", 1, &[used]);
    figure::measured("waiting runs/wake-ups", Unit::Count, &[woken as f64]);
    println!(
        "{RUNS} waiting runs on SQLite: {used:?} of CPU and {woken} wake-ups in 20 seconds (two renewals)"
    );
}

/// Returns the processor time of this process.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let after = stat.rsplit(')').next().unwrap();
    let fields: Vec<&str> = after.split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

/// Returns how often threads of this process gave the processor away by themselves: each time, something woke them.
fn switches() -> u64 {
    let mut sum = 0;
    for thread in std::fs::read_dir("/proc/self/task").unwrap() {
        let status = std::fs::read_to_string(thread.unwrap().path().join("status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        sum += line.and_then(|count| count.trim().parse::<u64>().ok()).unwrap_or(0);
    }
    sum
}
