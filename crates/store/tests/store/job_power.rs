//! The power fails while a process writes jobs: in each of many states that the disk may be left in, what was answered is
//! there, a run is there as a whole or not at all, and every record can be read. The calls are those of a real process,
//! recorded by `strace`; what is checked is what a person finds afterwards.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tidewheel_core::job::{JobStatus, Metadata, Record};
use tidewheel_store::jobs::{Batch, Files, JobStore as _, Removal};
use tidewheel_testkit::job_suite::{job, job_id, manifest, run_id};
use tidewheel_testkit::power_loss::{DiskModel, DiskOp, parse_trace, strace};
use tidewheel_testkit::{Dice, figure};

use crate::job_index::quick_folder;

const DATA: &str = "TIDEWHEEL_TEST_POWER";
const SEED: &str = "TIDEWHEEL_TEST_POWER_SEED";
/// What the process does so many times before its power fails somewhere.
const STEPS: usize = 24;
const MARK: &str = "answered: ";

/// Writes jobs, and says what was answered.
#[test]
#[ignore = "the other test of this file starts it in another process"]
fn another_process() {
    let Some(data) = std::env::var_os(DATA) else { return };
    let mut dice = Dice::new(std::env::var(SEED).unwrap().parse().unwrap());
    let store = Files::open(Path::new(&data)).unwrap();
    let mut runs: BTreeMap<usize, usize> = BTreeMap::new();
    for number in 0..STEPS {
        let mut turn = store.turn().unwrap();
        let existing: Vec<usize> = runs.keys().copied().collect();
        match dice.below(10) {
            0..4 => {
                let size = [1, 2, 3, 5][dice.below(4)];
                let records = (0..size).map(|job| member(number, job, size)).collect();
                let batch = Batch { records, manifest: Some(manifest(&name(number))), ..Batch::default() };
                assert!(turn.commit(batch).unwrap().is_empty());
                runs.insert(number, size);
                say(&format!("enqueued {number} {size}"));
            }
            4..9 if !existing.is_empty() => {
                let run = existing[dice.below(existing.len())];
                let some = 1 + dice.below(runs[&run]);
                let status = [JobStatus::Succeeded, JobStatus::Failed, JobStatus::Queued][dice.below(3)];
                let changed = |job: usize| {
                    let mut record = store.record(&job_id(&job_name(run, job))).unwrap().unwrap();
                    record.status = status;
                    record.metadata.set("step", number);
                    record
                };
                say(&format!("changes {run} {some} {number}"));
                let records = (0..some).map(changed).collect();
                assert!(turn.commit(Batch { records, ..Batch::default() }).unwrap().is_empty());
                say(&format!("changed {run} {some} {number}"));
            }
            _ if !existing.is_empty() => {
                let run = existing[dice.below(existing.len())];
                let jobs = (0..runs[&run]).map(|job| job_id(&job_name(run, job))).collect();
                say(&format!("removes {run}"));
                let removal = Removal { run: Some(run_id(&name(run))), jobs, unmarked: Vec::new() };
                assert!(turn.remove(&[removal]).unwrap()[0].refusal.is_none());
                runs.remove(&run);
                say(&format!("removed {run}"));
            }
            _ => {}
        }
    }
}

fn say(what: &str) {
    use std::io::Write as _;
    let mut out = std::io::stdout().lock();
    write!(out, "\n{MARK}{what}\n").unwrap();
    out.flush().unwrap();
}

fn name(run: usize) -> String {
    format!("r{run}")
}

fn job_name(run: usize, job: usize) -> String {
    format!("wf-r{run}-n{job}")
}

fn member(run: usize, job_number: usize, size: usize) -> Record {
    let mut record = job(&job_name(run, job_number));
    record.metadata.set(Metadata::RUN_ID, name(run));
    record.metadata.set("size", size);
    record.metadata.set("step", 0);
    record.metadata.set("filler", "x".repeat(600));
    record
}

/// Records the calls of one process.
fn recorded(seed: u64) -> Option<DiskModel> {
    let folder = quick_folder();
    let root = folder.path().canonicalize().unwrap();
    let (world, data) = (root.join("world"), root.join("world/data"));
    std::fs::create_dir(&world).unwrap();
    let record = root.join("calls");
    let mut command = strace(&record, &std::env::current_exe().unwrap())?;
    command.args(["--exact", "job_power::another_process", "--ignored", "--nocapture", "--test-threads=1"]);
    let output = command.env(DATA, &data).env(SEED, seed.to_string()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(parse_trace(&std::fs::read_to_string(record).unwrap(), world.to_str().unwrap(), &[]))
}

/// What a process had been answered when its power failed.
#[derive(Debug, Default)]
struct Answered {
    /// The runs with their sizes.
    runs: BTreeMap<usize, usize>,
    /// The last step that changed a job, and one that may have.
    steps: BTreeMap<(usize, usize), (usize, Option<usize>)>,
    /// The runs whose removal had begun.
    removed: Vec<usize>,
}

impl Answered {
    fn of(ops: &[DiskOp]) -> Self {
        let mut answered = Self::default();
        for op in ops {
            let DiskOp::Said(said) = op else { continue };
            for line in said.lines().filter_map(|line| line.strip_prefix(MARK)) {
                let words: Vec<&str> = line.split(' ').collect();
                let number = |word: usize| words[word].parse::<usize>().unwrap();
                match words[0] {
                    "enqueued" => drop(answered.runs.insert(number(1), number(2))),
                    "changes" => {
                        for job in 0..number(2) {
                            answered.steps.entry((number(1), job)).or_default().1 = Some(number(3));
                        }
                    }
                    "changed" => {
                        for job in 0..number(2) {
                            answered.steps.insert((number(1), job), (number(3), None));
                        }
                    }
                    "removes" => answered.removed.push(number(1)),
                    "removed" => {}
                    other => panic!("{other}"),
                }
            }
        }
        answered
    }
}

/// Looks at what is left, as a person would.
fn check(data: &Path, answered: &Answered) -> Result<(), String> {
    let store = Files::open(data).map_err(|error| format!("it cannot be opened: {error}"))?;
    let jobs = store.jobs().map_err(|error| format!("it cannot be listed: {error}"))?;
    if !jobs.unreadable.is_empty() {
        return Err(format!("some records cannot be read: {:?}", jobs.unreadable));
    }
    let checkup = store.checkup().map_err(|error| format!("the doctor cannot look: {error}"))?;
    if !checkup.unreadable.is_empty() {
        return Err(format!("the doctor finds files that cannot be read: {:?}", checkup.unreadable.keys()));
    }
    if let Some((run, Some(_))) = checkup.manifests.iter().find(|(_, trouble)| trouble.is_some()) {
        return Err(format!("the manifest of run {run} cannot be read"));
    }
    for run in 0..STEPS {
        if answered.removed.contains(&run) {
            continue;
        }
        let there = |job: usize| jobs.briefs.contains_key(&job_id(&job_name(run, job)));
        let count = (0..5).filter(|job| there(*job)).count();
        match answered.runs.get(&run) {
            Some(size) if count != *size => {
                return Err(format!("run {run} was answered with {size} jobs, and {count} are there"));
            }
            Some(_) => {}
            None if count > 0 => {
                let id = (0..5).find(|job| there(*job)).map(|job| job_id(&job_name(run, job))).unwrap();
                let record = store.record(&id).unwrap().unwrap();
                let size = record.metadata.number("size").unwrap() as usize;
                if count != size {
                    return Err(format!(
                        "{count} of {size} jobs of run {run} are there, which was not answered"
                    ));
                }
            }
            None => {}
        }
        for job in 0..answered.runs.get(&run).copied().unwrap_or(0) {
            let record = store.record(&job_id(&job_name(run, job))).map_err(|error| error.to_string())?;
            let record = record.ok_or_else(|| format!("job {job} of run {run} has no record"))?;
            let found = record.metadata.number("step").unwrap() as usize;
            let (last, perhaps) = answered.steps.get(&(run, job)).copied().unwrap_or_default();
            if found != last && Some(found) != perhaps {
                return Err(format!(
                    "job {job} of run {run} is of step {found}, and step {last} was answered"
                ));
            }
        }
    }
    // And it goes on to work.
    let mut turn = store.turn().map_err(|error| format!("there is no turn: {error}"))?;
    let records = vec![member(1_000, 0, 1)];
    let failed = turn.commit(Batch { records, manifest: Some(manifest(&name(1_000))), ..Batch::default() });
    match failed {
        Ok(failed) if failed.is_empty() => Ok(()),
        Ok(failed) => Err(format!("a new run is not taken: {}", failed[0].1)),
        Err(error) => Err(format!("a new run is not taken: {error}")),
    }
}

#[test]
fn a_power_failure_at_any_moment_loses_nothing_that_was_answered() {
    let states: usize =
        std::env::var("TIDEWHEEL_TEST_POWER_STATES").map_or(500, |text| text.parse().unwrap());
    let seeds = (states / 500).max(1);
    let mut checked = 0;
    let place = quick_folder();
    for seed in 0..seeds as u64 {
        let Some(disk) = recorded(seed) else {
            println!("strace is not there: no power failures were tried");
            figure::skipped("power failures over jobs", "strace is missing or may not trace");
            return;
        };
        let ops = disk.ops();
        assert!(ops.len() > 100, "{} calls were recorded", ops.len());
        for state in 0..states / seeds {
            let mut dice = Dice::new(seed << 32 | state as u64);
            let count = dice.below(ops.len() + 1);
            let world: PathBuf = place.path().join("world");
            disk.write_state(count, &mut dice, &world).unwrap();
            let answered = Answered::of(&ops[..count]);
            if let Err(what) = check(&world.join("data"), &answered) {
                panic!(
                    "seed {seed}, state {state}, power failed after call {count} ({:?}): {what}",
                    ops.get(count)
                );
            }
            std::fs::remove_dir_all(&world).unwrap();
            checked += 1;
        }
    }
    println!("power failures checked: {checked}");
    figure::counted("power failures over jobs", checked);
}
