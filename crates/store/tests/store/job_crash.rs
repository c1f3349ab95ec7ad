//! A process that writes jobs is killed at any moment, again and again: every record is whole, no run is there in
//! part, and the index says what the records say. Locks go with their holders.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tidewheel_core::job::{JobStatus, Metadata, Record};
use tidewheel_store::jobs::{Batch, Files, JobStore as _, Removal};
use tidewheel_testkit::Dice;
use tidewheel_testkit::job_suite::{expected, job, job_id, manifest};

use crate::job_index::{assert_same, quick_folder};

const DATA: &str = "TIDEWHEEL_TEST_JOBS";
const PART: &str = "TIDEWHEEL_TEST_JOBS_PART";

/// Another process; it dies with this value.
struct Other(Child);

impl Other {
    /// Starts it, and waits until it is at work.
    fn start(part: &str, data: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "job_crash::another_process", "--ignored", "--nocapture", "--test-threads=1"])
            .env(DATA, data)
            .env(PART, part)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.map_while(Result::ok).any(|line| line.ends_with("at work")), "it did not start");
        Self(child)
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
#[ignore = "a part for the other tests of this file"]
fn another_process() {
    let Some(data) = std::env::var_os(DATA) else { return };
    let store = Files::open(Path::new(&data)).unwrap();
    let say = || println!("\nat work");
    match std::env::var(PART).unwrap().as_str() {
        "turn" => {
            let _turn = store.turn().unwrap();
            say();
            std::io::stdin().lines().for_each(drop);
        }
        "run lock" => {
            let _lock = store.take_run_lock(&job_id("a")).unwrap().unwrap();
            say();
            std::io::stdin().lines().for_each(drop);
        }
        seed => {
            let mut dice = Dice::new(seed.parse().unwrap());
            say();
            loop {
                write(&store, &mut dice);
            }
        }
    }
}

/// Makes a run, lets one go on, or removes one.
fn write(store: &Files, dice: &mut Dice) {
    let mut turn = store.turn().unwrap();
    let all = turn.all().unwrap();
    let run = format!("r{}", dice.below(12));
    let ids: Vec<_> =
        all.briefs.values().filter(|brief| brief.run.as_ref().is_some_and(|r| r.as_str() == run)).collect();
    let batch = if ids.is_empty() {
        let size = [2, 5, 80][dice.below(3)];
        let records = (0..size).map(|n| member(&run, n, size)).collect();
        Batch { records, manifest: Some(manifest(&run)), ..Batch::default() }
    } else if dice.chance(15) && ids.iter().all(|brief| brief.status != JobStatus::Running) {
        // What runs is not removed; and a job that runs is there for everybody, whatever became of its manifest.
        let jobs = ids.iter().map(|brief| brief.id.clone()).collect();
        let run = Some(tidewheel_testkit::job_suite::run_id(&run));
        let removed = turn.remove(&[Removal { run, jobs, unmarked: Vec::new() }]).unwrap();
        assert!(removed[0].refusal.is_none(), "{removed:?}");
        return;
    } else {
        let status = [JobStatus::Running, JobStatus::Succeeded, JobStatus::Queued][dice.below(3)];
        let some = 1 + dice.below(ids.len());
        let changed = |id| {
            let mut record = store.record(id).unwrap()?;
            record.status = status;
            Some(record)
        };
        let records: Vec<Record> = ids.iter().take(some).filter_map(|brief| changed(&brief.id)).collect();
        Batch { records, ..Batch::default() }
    };
    assert!(turn.commit(batch).unwrap().is_empty());
    turn.set_due(tidewheel_store::jobs::Due { at: None, watches: dice.chance(50), runs: true }).unwrap();
}

/// Each member knows how many there are, so that a part of a run is known as one.
fn member(run: &str, n: usize, size: usize) -> Record {
    let mut record = job(&format!("wf-{run}-n{n}"));
    record.metadata.set(Metadata::RUN_ID, run);
    record.metadata.set("size", size);
    record.metadata.set("filler", "x".repeat(3_000));
    record
}

#[test]
fn a_writer_that_is_killed_at_any_moment_leaves_whole_records_and_a_right_index() {
    let kills = std::env::var("TIDEWHEEL_TEST_KILLS").map_or(30, |text| text.parse().unwrap());
    let folder = quick_folder();
    let data = folder.path().join("data");
    let mut dice = Dice::new(7);
    let store = Files::open(&data).unwrap();
    for round in 0..kills {
        let other = Other::start(&round.to_string(), &data);
        // The moment is what is random here; nothing waits for it.
        std::thread::sleep(Duration::from_micros(dice.roll() % 40_000));
        drop(other);
        let right = expected(&data);
        assert_eq!(right.all.unreadable.len(), 0, "round {round}: {:?}", right.all.unreadable);
        assert_same(
            &Files::open_existing(&data).unwrap().jobs().unwrap(),
            &right.visible,
            &format!("read {round}"),
        );
        let fresh = Files::open(&data).unwrap();
        let store = if dice.chance(50) { &store } else { &fresh };
        let mut turn = store.turn().unwrap();
        assert_same(&turn.active().unwrap(), &right.active, &format!("active {round}"));
        assert_same(&turn.all().unwrap(), &right.all, &format!("all {round}"));
        drop(turn);
        for brief in right.visible.briefs.values() {
            let record = store.record(&brief.id).unwrap().unwrap();
            let size = record.metadata.number("size").unwrap();
            let count = right.visible.briefs.values().filter(|other| other.run == brief.run).count();
            // A run is enqueued and removed as a whole.
            assert_eq!(count, size as usize, "round {round}");
        }
    }
    tidewheel_testkit::figure::counted("kills of writers of jobs", kills);
}

#[test]
fn locks_go_with_the_processes_that_hold_them() {
    let folder = quick_folder();
    let data = folder.path().join("data");
    let store = Files::open(&data).unwrap();
    store.turn().unwrap().commit(Batch { records: vec![job("a")], ..Batch::default() }).unwrap();
    let other = Other::start("turn", &data);
    assert!(store.try_turn().unwrap().is_none());
    drop(other);
    assert!(store.try_turn().unwrap().is_some());
    let other = Other::start("run lock", &data);
    assert!(store.take_run_lock(&job_id("a")).unwrap().is_none());
    let removal = Removal { jobs: vec![job_id("a")], ..Removal::default() };
    let removed = store.turn().unwrap().remove(&[removal]).unwrap();
    let (_, error) = removed[0].refusal.as_ref().unwrap();
    assert_eq!(error.to_string(), "job a is still held by its supervisor");
    drop(other);
    assert!(store.take_run_lock(&job_id("a")).unwrap().is_some());
}

/// Several processes write at once while others read: nobody sees a job that is not, or misses one that is.
#[test]
fn readers_see_every_job_while_others_write() {
    let folder = quick_folder();
    let data = folder.path().join("data");
    let store = Files::open(&data).unwrap();
    let steady: Vec<Record> = (0..300)
        .map(|n| {
            let mut record = job(&format!("steady-{n}"));
            record.status = JobStatus::Succeeded;
            record
        })
        .collect();
    store.turn().unwrap().commit(Batch { records: steady.clone(), ..Batch::default() }).unwrap();
    let others = [Other::start("1", &data), Other::start("2", &data)];
    let reader = Files::open_existing(&data).unwrap();
    for round in 0..100 {
        let mut record = steady[round * 3].clone();
        record.status = if round % 2 == 0 { JobStatus::Queued } else { JobStatus::Failed };
        // One of the jobs that are over becomes live while we read.
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let batch = Batch { records: vec![record.clone()], ..Batch::default() };
                assert!(store.turn().unwrap().commit(batch).unwrap().is_empty());
            });
            let jobs = reader.jobs().unwrap();
            let missing: Vec<_> =
                steady.iter().filter(|record| !jobs.briefs.contains_key(&record.id)).collect();
            assert!(missing.is_empty(), "round {round}: {} missing", missing.len());
            assert_eq!(jobs.unreadable.len(), 0, "{:?}", jobs.unreadable);
        });
    }
    drop(others);
}
