//! What a turn and a list of jobs cost by the length of the history, for a process that just started and for one
//! that goes on, and what one write costs: at best, and in time of processors. `-- 100000` takes other lengths.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark that cannot be set up has failed")]

use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use tidewheel_core::job::{After, AfterPolicy, Artifact, JobId, JobStatus, Metadata, Needed, Record};
use tidewheel_core::time::Timestamp;
use tidewheel_store::jobs::{Batch, Files, JobStore as _, Turn};
use tidewheel_testkit::figure;
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
        sizes = figure::quick_or(vec![100, 1_000], vec![100, 1_000, 10_000]);
    }
    println!("{:>8} {:>7}  {:<32} {:>20} {:>20}", "finished", "active", "", "fresh", "going on");
    for over in sizes {
        let data = folder.path().join(over.to_string());
        fill(&data, over);
        measure(&data, over, 0);
        let cost = cost(|| parsed_by_hand(&data, over));
        figure::took(&format!("store jobs/list by hand/{over}"), 1, &cost.times);
        println!("{over:>8} {:>7}  {:<32} {:>20}", 0, "files parsed by hand", show(&cost));
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
    let elapsed = again.elapsed();
    figure::took(&format!("store jobs/index built anew/{count}"), 1, &[elapsed]);
    println!(
        "{count:>8} {:>7}  {:<32} {:>20}",
        0,
        "index built anew",
        format!("{:.3} ms", elapsed.as_secs_f64() * 1e3)
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
    let line = |name: &str, id: &str, fresh: &Cost, again: &Cost| {
        println!("{over:>8} {active:>7}  {name:<32} {:>20} {:>20}", show(fresh), show(again));
        let beside = if active == 0 { String::new() } else { format!(" beside {active} active") };
        figure::took(&format!("store jobs{beside}/{id}, fresh/{over}"), 1, &fresh.times);
        figure::took(&format!("store jobs{beside}/{id}, goes on/{over}"), 1, &again.times);
    };
    let open = || Files::open_existing(data).unwrap();
    let store = open();
    let one = |store: &Files| {
        let jobs = store.turn().unwrap().active().unwrap();
        assert_eq!(jobs.briefs.len(), active);
    };
    line("active()", "turn", &cost(|| one(&open())), &cost(|| one(&store)));
    let list = |store: &Files| assert_eq!(store.jobs().unwrap().briefs.len(), over + active);
    line("jobs()", "list", &cost(|| list(&open())), &cost(|| list(&store)));
}

/// For comparison in the same run: reads and parses the record of each job, one file after the other.
fn parsed_by_hand(data: &Path, count: usize) {
    let mut found = 0;
    for entry in std::fs::read_dir(data.join("jobs")).unwrap() {
        let Ok(text) = std::fs::read(entry.unwrap().path().join("job.json")) else { continue };
        let record: serde_json::Value = serde_json::from_slice(&text).unwrap();
        found += usize::from(record.is_object());
    }
    assert_eq!(found, count);
}

/// For comparison in the same run: writes so many files as a record is written, each to a temporary name, flushed,
/// renamed, and the folder flushed.
fn written_by_hand(folder: &Path, count: usize, text: &[u8]) {
    for index in 0..count {
        let folder = folder.join(index.to_string());
        std::fs::create_dir_all(&folder).unwrap();
        let mut file = std::fs::File::create(folder.join("new")).unwrap();
        file.write_all(text).unwrap();
        file.sync_all().unwrap();
        std::fs::rename(folder.join("new"), folder.join("job.json")).unwrap();
        std::fs::File::open(&folder).unwrap().sync_all().unwrap();
    }
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
        figure::took(&format!("store jobs/enqueue/{size}"), 1, &time.times);
        println!("{:<50} {:>20}", format!("enqueue a run of {size}"), show(&time));
        let records: Vec<Record> = (0..size)
            .map(|n| {
                store.record(&JobId::new(&format!("wf-run_{size}_1-node_{n}")).unwrap()).unwrap().unwrap()
            })
            .collect();
        let time = cost(|| {
            let batch = Batch { records: records.clone(), ..Batch::default() };
            assert!(turn.commit(batch).unwrap().is_empty());
        });
        figure::took(&format!("store jobs/write/{size}"), 1, &time.times);
        println!("{:<50} {:>20}", format!("write {size} records"), show(&time));
        let text = std::fs::read(data.join(format!("jobs/wf-run_{size}_1-node_0/job.json"))).unwrap();
        let by_hand = data.join(format!("by hand {size}"));
        let time = cost(|| written_by_hand(&by_hand, size, &text));
        figure::took(&format!("store jobs/write by hand/{size}"), 1, &time.times);
        println!("{:<50} {:>20}", format!("write {size} files by hand"), show(&time));
    }
    let record = store.record(&JobId::new("wf-run_1_1-node_0").unwrap()).unwrap().unwrap();
    println!("{:<50} {:>20}", "write a process", show(&cost(|| store.write_process(&record).unwrap())));
}

/// How long something took at best, and how much time of processors it took on average, which others do not disturb.
struct Cost {
    times: Vec<Duration>,
    cpu: Duration,
}

fn cost(mut work: impl FnMut()) -> Cost {
    let enough = Duration::from_millis(figure::quick_or(50, 400));
    let (start, cpu_before) = (Instant::now(), cpu());
    let mut times = Vec::new();
    while times.len() < figure::quick_or(2, 5) || start.elapsed() < enough {
        let one = Instant::now();
        work();
        times.push(one.elapsed());
    }
    let count = u32::try_from(times.len()).unwrap();
    Cost { times, cpu: (cpu() - cpu_before) / count }
}

/// Returns the time of processors that this process has used, in steps of 10 ms.
fn cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = text.rsplit_once(')').unwrap();
    let ticks: u64 =
        fields.split_ascii_whitespace().skip(11).take(2).map(|field| field.parse::<u64>().unwrap()).sum();
    Duration::from_millis(10 * ticks)
}

fn show(Cost { times, cpu }: &Cost) -> String {
    let best = times.iter().min().unwrap();
    format!("{:.3} / {:.3} ms", best.as_secs_f64() * 1e3, cpu.as_secs_f64() * 1e3)
}
