//! What a turn and a list of jobs cost by the length of the history, for a process that just started and for one
//! that goes on, and what one write costs: at best, and in time of processors. `-- 100000` takes other lengths.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark that cannot be set up has failed")]

use std::path::Path;
use std::time::{Duration, Instant};

use tidewheel_core::job::{After, AfterPolicy, Artifact, JobId, JobStatus, Metadata, Needed, Record};
use tidewheel_core::time::Timestamp;
use tidewheel_store::jobs::{Batch, Files, JobStore as _, Turn};
use tidewheel_testkit::job_suite::manifest;

/// As many jobs a run has.
const RUN: usize = 10;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let is_ours = |word: &String| word == "100000" || "store jobs".contains(word.as_str());
    if !words.is_empty() && !words.iter().any(is_ours) {
        return;
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut sizes: Vec<usize> = words.iter().filter_map(|word| word.parse().ok()).collect();
    if sizes.is_empty() {
        sizes = vec![100, 1_000, 10_000];
    }
    println!("{:>8} {:>7}  {:<32} {:>20} {:>20}", "finished", "active", "", "fresh", "going on");
    for over in sizes {
        let data = folder.path().join(over.to_string());
        fill(&data, over);
        measure(&data, over, 0);
        if over >= 10_000 {
            activate(&data, 1_000);
            measure(&data, over, 1_000);
        }
    }
    writes(&folder.path().join("writes"));
}

/// Makes runs that are over.
fn fill(data: &Path, count: usize) {
    let store = Files::open(data).unwrap();
    let mut turn = store.turn().unwrap();
    for run in 0..count / RUN {
        enqueue(&mut *turn, &format!("run_{run:032x}"), RUN, JobStatus::Succeeded);
    }
    let again = Instant::now();
    drop(turn);
    for name in ["index.live", "index.done"] {
        std::fs::remove_file(data.join("jobs").join(name)).unwrap();
    }
    let store = Files::open(data).unwrap();
    assert!(store.turn().unwrap().active().unwrap().briefs.is_empty());
    println!(
        "{count:>8} {:>7}  {:<32} {:>20}",
        0,
        "index built anew",
        format!("{:.3} ms", again.elapsed().as_secs_f64() * 1e3)
    );
}

fn activate(data: &Path, count: usize) {
    let store = Files::open(data).unwrap();
    let mut turn = store.turn().unwrap();
    enqueue(&mut *turn, "run_active", count, JobStatus::WaitingOnDeps);
}

fn enqueue(turn: &mut dyn Turn, run: &str, count: usize, status: JobStatus) {
    let ids: Vec<JobId> = (0..count).map(|n| JobId::new(&format!("wf-{run}-node_{n}")).unwrap()).collect();
    let records = (0..count).map(|n| {
        let mut record = Record::new(ids[n].clone(), Timestamp::from_millis(1_700_000_000_000));
        record.status = status;
        record.child_args = vec!["__workflow-node".to_owned(), "--job-id".to_owned(), ids[n].to_string()];
        record.metadata.set(Metadata::RUN_ID, run);
        record.metadata.set(Metadata::NODE_ID, format!("node_{n}"));
        record.metadata.set(Metadata::NODE_ATTEMPT, 1);
        record.started_at = Some(Timestamp::from_millis(1_700_000_000_123));
        let made = |n: usize| Artifact::Custom { type_id: "package".to_owned(), key: format!("k{n}") };
        record.schedule.artifacts = vec![made(n)];
        if n > 0 {
            record.schedule.after = vec![After { job_id: ids[n - 1].clone(), policy: AfterPolicy::Success }];
            record.schedule.dependencies = vec![Needed { artifact: made(n - 1) }];
        }
        record
    });
    let batch = Batch { records: records.collect(), manifest: Some(manifest(run)), ..Batch::default() };
    assert!(turn.commit(batch).unwrap().is_empty());
}

fn measure(data: &Path, over: usize, active: usize) {
    let line = |name: &str, fresh: Cost, again: Cost| {
        println!("{over:>8} {active:>7}  {name:<32} {:>20} {:>20}", show(fresh), show(again));
    };
    let open = || Files::open_existing(data).unwrap();
    let store = open();
    let one = |store: &Files| {
        let jobs = store.turn().unwrap().active().unwrap();
        assert_eq!(jobs.briefs.len(), active);
    };
    line("active()", cost(|| one(&open())), cost(|| one(&store)));
    let list = |store: &Files| assert_eq!(store.jobs().unwrap().briefs.len(), over + active);
    line("jobs()", cost(|| list(&open())), cost(|| list(&store)));
}

/// What the writes of a chain cost.
fn writes(data: &Path) {
    let store = Files::open(data).unwrap();
    let mut turn = store.turn().unwrap();
    for size in [1, 2, 10, 100, 1_000] {
        let mut run = 0;
        let time = cost(|| {
            run += 1;
            enqueue(&mut *turn, &format!("run_{size}_{run}"), size, JobStatus::Succeeded);
        });
        println!("{:<50} {:>20}", format!("enqueue a run of {size}"), show(time));
        let records: Vec<Record> = (0..size)
            .map(|n| {
                store.record(&JobId::new(&format!("wf-run_{size}_1-node_{n}")).unwrap()).unwrap().unwrap()
            })
            .collect();
        let time = cost(|| {
            let batch = Batch { records: records.clone(), ..Batch::default() };
            assert!(turn.commit(batch).unwrap().is_empty());
        });
        println!("{:<50} {:>20}", format!("write {size} records"), show(time));
    }
    let record = store.record(&JobId::new("wf-run_1_1-node_0").unwrap()).unwrap().unwrap();
    println!("{:<50} {:>20}", "write a process", show(cost(|| store.write_process(&record).unwrap())));
}

/// How long something took at best, and how much time of processors it took on average, which others do not disturb.
#[derive(Clone, Copy)]
struct Cost {
    best: Duration,
    cpu: Duration,
}

fn cost(mut work: impl FnMut()) -> Cost {
    const ENOUGH: Duration = Duration::from_millis(400);
    let (start, cpu_before) = (Instant::now(), cpu());
    let mut best = Duration::MAX;
    let mut count = 0;
    while count < 5 || start.elapsed() < ENOUGH {
        let one = Instant::now();
        work();
        best = best.min(one.elapsed());
        count += 1;
    }
    Cost { best, cpu: (cpu() - cpu_before) / count }
}

/// Returns the time of processors that this process has used, in steps of 10 ms.
fn cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = text.rsplit_once(')').unwrap();
    let ticks: u64 =
        fields.split_ascii_whitespace().skip(11).take(2).map(|field| field.parse::<u64>().unwrap()).sum();
    Duration::from_millis(10 * ticks)
}

fn show(Cost { best, cpu }: Cost) -> String {
    format!("{:.3} / {:.3} ms", best.as_secs_f64() * 1e3, cpu.as_secs_f64() * 1e3)
}
