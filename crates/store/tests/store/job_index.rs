//! The index of jobs against a random history, made with turns, without them and by hand, with the index deleted or
//! damaged at any point: it says what the records say. Each history prints its seed.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use tidewheel_core::job::{After, AfterPolicy, JobId, JobStatus, Metadata, Needed, Record};
use tidewheel_store::jobs::{Batch, Files, JobStore as _, Jobs, Removal};
use tidewheel_testkit::Dice;
use tidewheel_testkit::job_suite::{custom, expected, job, job_id, manifest, run_id};

#[test]
fn the_index_says_what_the_records_say() {
    let histories = std::env::var("TIDEWHEEL_TEST_HISTORIES").map_or(12, |text| text.parse().unwrap());
    for seed in 0..histories {
        println!("seed {seed}");
        history(seed);
    }
}

/// Most processes live for one job, and each leaves lines behind that the next one has to read.
#[test]
fn the_index_does_not_grow_with_the_number_of_processes_that_wrote_it() {
    let folder = quick_folder();
    let data = folder.path().join("data");
    for _ in 0..600 {
        let store = Files::open(&data).unwrap();
        let mut turn = store.turn().unwrap();
        assert!(turn.active().unwrap().unreadable.is_empty());
        assert_eq!(turn.commit(Batch { records: vec![job("a")], ..Batch::default() }).unwrap().len(), 0);
    }
    let size = fs::metadata(data.join("jobs/index.live")).unwrap().len();
    assert!(size < 80 << 10, "{size} bytes about one job");
}

/// A look at a part of a long history may stop in the middle of a character.
#[test]
fn a_long_history_of_names_in_any_script_is_looked_at_to_its_end() {
    let folder = quick_folder();
    let data = folder.path().join("data");
    let store = Files::open(&data).unwrap();
    let records = (0..900).map(|number: usize| {
        let mut record = job(&format!("job-{number:03}"));
        record.status = JobStatus::Succeeded;
        record
            .metadata
            .set(Metadata::NODE_NAME, format!("{}{}", "x".repeat(number % 7), "прогон ".repeat(9)));
        record
    });
    store.turn().unwrap().commit(Batch { records: records.collect(), ..Batch::default() }).unwrap();
    let edited = data.join("jobs/job-880/job.json");
    by_hand(&edited, "not-json");
    let sees =
        |_| Files::open(&data).unwrap().turn().unwrap().active().unwrap().unreadable.contains_key("job-880");
    assert!((0..20).any(sees), "each turn looks further");
}

struct Place {
    folder: tempfile::TempDir,
    stores: Vec<Files>,
    dice: Dice,
}

fn history(seed: u64) {
    let folder = quick_folder();
    let stores = (0..2).map(|_| Files::open(&folder.path().join("data")).unwrap()).collect();
    let mut place = Place { folder, stores, dice: Dice::new(seed) };
    for step in 0..60 {
        let what = place.step();
        place.check(&format!("seed {seed}, step {step}: {what}"));
    }
}

impl Place {
    fn data(&self) -> std::path::PathBuf {
        self.folder.path().join("data")
    }

    fn job_file(&self, id: &str) -> std::path::PathBuf {
        self.data().join("jobs").join(id).join("job.json")
    }

    fn store(&mut self) -> &Files {
        let at = self.dice.below(2);
        if self.dice.chance(30) {
            self.stores[at] = Files::open(&self.data()).unwrap();
        }
        &self.stores[at]
    }

    fn ids(&self) -> Vec<String> {
        let jobs = self.stores[0].turn().unwrap().all().unwrap();
        jobs.briefs.keys().map(ToString::to_string).chain(jobs.unreadable.into_keys()).collect()
    }

    fn any_id(&mut self) -> Option<String> {
        let ids = self.ids();
        (!ids.is_empty()).then(|| ids[self.dice.below(ids.len())].clone())
    }

    fn record(&mut self, id: &str) -> Record {
        let mut record = job(id);
        record.status = JobStatus::ALL[self.dice.below(JobStatus::ALL.len())];
        if self.dice.chance(40) {
            record.status = JobStatus::Succeeded;
        }
        if self.dice.chance(30)
            && let Some(other) = self.any_id()
        {
            record.schedule.after = vec![After { job_id: job_id(&other), policy: AfterPolicy::Success }];
        }
        let artifact = |dice: &mut Dice| custom("t", ["a", "b", "c"][dice.below(3)]);
        if self.dice.chance(30) {
            record.schedule.artifacts = vec![artifact(&mut self.dice)];
        }
        if self.dice.chance(20) {
            record.schedule.dependencies = vec![Needed { artifact: artifact(&mut self.dice) }];
        }
        if self.dice.chance(50) {
            record.metadata.set(Metadata::RUN_ID, format!("r{}", self.dice.below(6)));
        }
        record
    }

    fn step(&mut self) -> String {
        let fresh = format!("job-{}", self.dice.below(1_000));
        let mut what = self.dice.below(16);
        // Of a longer history, with the lines that are crossed out, not every edit is seen at once; there is another
        // test for that.
        let lines =
            fs::read_to_string(self.data().join("jobs/index.done")).map_or(0, |text| text.lines().count());
        if self.ids().len().max(lines) > 200 && (9..12).contains(&what) {
            what = 8;
        }
        match what {
            0..3 => {
                let count = [1, 3, 70][self.dice.below(3)];
                let records: Vec<_> = (0..count).map(|n| self.record(&format!("{fresh}-{n}"))).collect();
                self.store().turn().unwrap().commit(Batch { records, ..Batch::default() }).unwrap();
                format!("put {count}")
            }
            3..5 => {
                let run = format!("r{}", self.dice.below(6));
                let mut records: Vec<_> = (0..4).map(|n| self.record(&format!("{fresh}-{n}"))).collect();
                records.iter_mut().for_each(|record| record.metadata.set(Metadata::RUN_ID, run.as_str()));
                let batch = Batch { records, manifest: Some(manifest(&run)), ..Batch::default() };
                self.store().turn().unwrap().commit(batch).unwrap();
                format!("enqueue {run}")
            }
            5..8 => {
                let Some(id) = self.any_id() else { return "nothing".to_owned() };
                let record = self.record(&id);
                let records = vec![record];
                self.store().turn().unwrap().commit(Batch { records, ..Batch::default() }).unwrap();
                format!("change {id}")
            }
            8 => {
                let Some(id) = self.any_id() else { return "nothing".to_owned() };
                let count = [1, 40][self.dice.below(2)];
                let removed: Vec<_> =
                    self.ids().iter().take(count).chain([&id]).map(|id| job_id(id)).collect();
                let run = self.dice.chance(30).then(|| run_id("r1"));
                let removal = Removal { run, jobs: removed, unmarked: Vec::new() };
                let removed = self.store().turn().unwrap().remove(&[removal]).unwrap();
                assert!(removed[0].refusal.is_none(), "{removed:?}");
                format!("remove {count} and {id}")
            }
            9 => {
                let Some(id) = self.any_id() else { return "nothing".to_owned() };
                let record = self.record(&id);
                drop(self.store().write_process(&record));
                format!("write process {id}")
            }
            10 => {
                let text = self.record(&fresh).to_json();
                by_hand(&self.job_file(&fresh), &text);
                format!("make {fresh} by hand")
            }
            11 => {
                let Some(id) = self.any_id() else { return "nothing".to_owned() };
                let texts =
                    ["not-json".to_owned(), String::new(), self.record(&id).to_json(), job("else").to_json()];
                by_hand(&self.job_file(&id), &texts[self.dice.below(4)]);
                format!("edit {id} by hand")
            }
            12 => {
                let Some(id) = self.any_id() else { return "nothing".to_owned() };
                let file = self.job_file(&id);
                if self.dice.chance(50) {
                    fs::remove_dir_all(file.parent().unwrap()).unwrap();
                } else {
                    fs::remove_file(file).unwrap();
                }
                format!("delete {id} by hand")
            }
            13 => {
                let file = self.data().join(format!("jobs/runs/r{}.json", self.dice.below(6)));
                if self.dice.chance(50) {
                    drop(fs::remove_file(&file));
                } else {
                    fs::write(&file, "{}").unwrap();
                }
                format!("manifest {}", file.display())
            }
            14 => {
                let name = ["index.live", "index.done"][self.dice.below(2)];
                drop(fs::remove_file(self.data().join("jobs").join(name)));
                format!("delete {name}")
            }
            _ => {
                // A writer that died wrote only a part, or nothing, of its last lines.
                let touched = self.any_id().map_or_else(String::new, |id| format!("T {id}\n"));
                let path = self.data().join("jobs/index.live");
                let Ok(text) = fs::read_to_string(&path) else { return "nothing".to_owned() };
                let torn = ["D", "+12 3", "?", "C1 2"][self.dice.below(4)];
                fs::write(&path, format!("{text}{touched}{torn}")).unwrap();
                format!("tear after {touched:?}")
            }
        }
    }

    fn check(&mut self, what: &str) {
        let data = self.data();
        if self.dice.chance(20) {
            // More happens before anybody looks.
            return;
        }
        let right = expected(&data);
        let reader = Files::open_existing(&data).unwrap();
        assert_same(&reader.jobs().unwrap(), &right.visible, &format!("read, {what}"));
        let looks_ahead = self.dice.chance(50);
        let store = self.store();
        if looks_ahead {
            store.look_ahead();
        }
        let mut turn = store.turn().unwrap();
        assert_same(&turn.active().unwrap(), &right.active, &format!("active, {what}"));
        assert_same(&turn.all().unwrap(), &right.all, &format!("all, {what}"));
        drop(turn);
        assert_same(&store.jobs().unwrap(), &right.visible, &format!("seen, {what}"));
    }
}

/// Returns a folder in memory where there is one: nothing here is about the disk, and syncs take most of the time.
pub(crate) fn quick_folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Says only what differs; the whole would fill a screen.
pub(crate) fn assert_same(left: &Jobs, right: &Jobs, what: &str) {
    assert_eq!(left.unreadable, right.unreadable, "{what}");
    let ids: BTreeSet<&JobId> = left.briefs.keys().chain(right.briefs.keys()).collect();
    for id in ids {
        assert_eq!(left.briefs.get(id), right.briefs.get(id), "{id}, {what}");
    }
}

fn by_hand(file: &Path, text: &str) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}
