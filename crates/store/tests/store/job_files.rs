//! What people and others do to the files of jobs: made, edited and deleted by hand, links, pipes, strange names.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use tidewheel_core::job::JobStatus;
use tidewheel_store::jobs::{Batch, Files, JobStore as _, JobStoreError, Removal};
use tidewheel_testkit::job_suite::{job, job_id, manifest, member, run_id};

struct Place {
    folder: tempfile::TempDir,
    store: Files,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Files::open(&folder.path().join("data")).unwrap();
        Self { folder, store }
    }

    fn jobs(&self) -> PathBuf {
        self.folder.path().join("data/jobs")
    }

    fn write(&self, id: &str, text: &str) {
        fs::create_dir_all(self.jobs().join(id)).unwrap();
        fs::write(self.jobs().join(id).join("job.json"), text).unwrap();
    }

    fn put(&self, records: Vec<tidewheel_core::job::Record>) {
        let failed = self.store.turn().unwrap().commit(Batch { records, ..Batch::default() }).unwrap();
        assert!(failed.is_empty(), "{failed:?}");
    }

    fn unreadable(&self, id: &str) -> String {
        let active = self.store.turn().unwrap().active().unwrap();
        let jobs = self.store.jobs().unwrap();
        assert_eq!(active.unreadable, jobs.unreadable);
        assert!(!jobs.briefs.contains_key(id));
        jobs.unreadable[id].clone()
    }

    fn names(&self) -> Vec<String> {
        let jobs = self.store.jobs().unwrap();
        assert_eq!(
            jobs.briefs.keys().collect::<Vec<_>>(),
            self.store.turn().unwrap().all().unwrap().briefs.keys().collect::<Vec<_>>()
        );
        jobs.briefs.keys().map(ToString::to_string).collect()
    }

    /// Every path beneath the data directory.
    fn tree(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut left = vec![self.folder.path().join("data")];
        while let Some(folder) = left.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten() {
                let entry = entry.unwrap();
                found.push(entry.path());
                if entry.file_type().unwrap().is_dir() {
                    left.push(entry.path());
                }
            }
        }
        found.sort();
        found
    }
}

#[test]
fn reading_makes_and_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("none/.tidewheel");
    let store = Files::open_existing(&data).unwrap();
    assert!(store.jobs().unwrap().briefs.is_empty());
    assert_eq!(store.record(&job_id("a")).unwrap(), None);
    assert!(store.turn().is_err());
    assert!(!folder.path().join("none").exists());

    let place = Place::new();
    place.write("a", &job("a").to_json());
    let before = place.tree();
    let reader = Files::open_existing(&place.folder.path().join("data")).unwrap();
    assert_eq!(reader.jobs().unwrap().briefs.len(), 1);
    assert!(reader.record(&job_id("a")).unwrap().is_some());
    assert_eq!(place.tree(), before);
    // A directory that comes later is found.
    fs::create_dir_all(&data).unwrap();
    Files::open(&data)
        .unwrap()
        .turn()
        .unwrap()
        .commit(Batch { records: vec![job("x")], ..Batch::default() })
        .unwrap();
    assert_eq!(store.jobs().unwrap().briefs.len(), 1);
}

#[test]
fn files_lie_where_everybody_expects_them() {
    let place = Place::new();
    let marker = tidewheel_store::jobs::Marker {
        job_id: job_id("wf-r1-a"),
        type_id: "acme.exec".to_owned(),
        key: "k1".to_owned(),
        written_at: tidewheel_core::time::Timestamp::from_millis(0),
    };
    let batch = Batch {
        records: vec![member("r1", "a")],
        manifest: Some(manifest("r1")),
        markers: vec![marker],
        ..Batch::default()
    };
    place.store.turn().unwrap().commit(batch).unwrap();
    assert!(place.jobs().join("wf-r1-a/job.json").is_file());
    assert!(place.jobs().join("runs/r1.json").is_file());
    assert!(place.jobs().join("scheduler.lock").is_file());
    let text = fs::read_to_string(place.jobs().join("artifacts/custom/61636d652e65786563/6b31/wf-r1-a.json"))
        .unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        value,
        serde_json::json!({"job_id": "wf-r1-a", "type_id": "acme.exec", "key": "k1", "written_at": "1970-01-01T00:00:00Z"})
    );
    // No file that was on its way is left.
    assert!(place.tree().iter().all(|path| !path.to_str().unwrap().ends_with(".tmp")));
    assert!(
        fs::read_to_string(place.jobs().join("scheduler.lock"))
            .unwrap()
            .starts_with(&std::process::id().to_string())
    );
}

#[test]
fn records_made_edited_and_deleted_by_hand_are_seen() {
    let place = Place::new();
    place.put(vec![job("a")]);
    place.write("b", &job("b").to_json());
    assert_eq!(place.names(), ["a", "b"]);
    // Same length, same file, a moment later.
    let text = job("b").to_json();
    place.write("b", &text.replace("\"queued\"", "\"failed\""));
    assert_eq!(place.store.turn().unwrap().active().unwrap().briefs.len(), 1);
    assert_eq!(place.store.jobs().unwrap().briefs[&job_id("b")].status, JobStatus::Failed);
    fs::remove_dir_all(place.jobs().join("a")).unwrap();
    assert_eq!(place.names(), ["b"]);
    // A directory comes first, its record later.
    fs::create_dir(place.jobs().join("c")).unwrap();
    assert_eq!(place.names(), ["b"]);
    place.write("c", &job("c").to_json());
    assert_eq!(place.names(), ["b", "c"]);
}

#[test]
fn one_unreadable_record_harms_no_other_one() {
    let place = Place::new();
    place.put(vec![job("a")]);
    place.write("bad", "not-json");
    assert_eq!(place.unreadable("bad"), "expected ident at line 1 column 2");
    place.write("bad", &job("other").to_json());
    assert_eq!(place.unreadable("bad"), "record is of job other");
    place.write("bad", r#"{"id":"bad","version":2,"status":"queued","created_at":"2026-02-01T12:00:00Z"}"#);
    assert_eq!(place.unreadable("bad"), "record has version 2, and this release knows up to 1");
    fs::write(place.jobs().join("bad/job.json"), [0xff, 0xfe]).unwrap();
    assert!(place.unreadable("bad").contains("UTF-8"), "{}", place.unreadable("bad"));
    fs::write(place.jobs().join("bad/job.json"), vec![b' '; (4 << 20) + 1]).unwrap();
    assert!(place.unreadable("bad").ends_with("it is larger than 4 MiB"));
    assert!(matches!(place.store.record(&job_id("bad")), Err(JobStoreError::Io { .. })));
    place.write("bad", &job("bad").to_json());
    assert_eq!(place.names(), ["a", "bad"]);
}

#[test]
fn a_record_of_a_later_release_is_not_overwritten() {
    let place = Place::new();
    let text = r#"{"id":"a","version":7,"status":"queued","created_at":"2026-02-01T12:00:00Z"}"#;
    place.write("a", text);
    let batch = Batch { records: vec![job("a"), job("b")], ..Batch::default() };
    let failed = place.store.turn().unwrap().commit(batch).unwrap();
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0].0, job_id("a"));
    assert_eq!(failed[0].1.to_string(), "record has version 7, and this release knows up to 1");
    assert!(place.store.write_process(&job("a")).is_err());
    assert_eq!(fs::read_to_string(place.jobs().join("a/job.json")).unwrap(), text);
    assert_eq!(fs::read_dir(place.jobs().join("a")).unwrap().count(), 1);
    assert_eq!(place.names(), ["b"]);
}

#[test]
fn a_7_a_record_that_cannot_be_written_stays_and_the_others_go_on() {
    let place = Place::new();
    // A directory in the place of the record: nobody can rename a file to there, whatever rights he has.
    fs::create_dir_all(place.jobs().join("a/job.json")).unwrap();
    let mut b = job("b");
    b.status = JobStatus::Running;
    let outcome = serde_json::json!({
        "version": 1, "job_id": "a", "attempt": 1, "status": "succeeded", "outcome": "succeeded", "exit_code": 0,
        "finished_at": "2026-02-01T12:00:00Z", "summary": null,
    });
    let outcomes = vec![serde_json::from_value(outcome).unwrap()];
    let batch = Batch { records: vec![job("a"), b], outcomes, ..Batch::default() };
    let failed = place.store.turn().unwrap().commit(batch).unwrap();
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0].0, job_id("a"));
    assert_eq!(fs::read_dir(place.jobs().join("a")).unwrap().count(), 1);
    assert_eq!(place.names(), ["b"]);
    // The same as a run: nothing at all is written.
    let batch = Batch {
        records: vec![member("r1", "x"), job("a")],
        manifest: Some(manifest("r1")),
        ..Batch::default()
    };
    assert!(place.store.turn().unwrap().commit(batch).is_err());
    assert!(!place.jobs().join("wf-r1-x").exists());
    assert_eq!(place.store.manifest(&run_id("r1")).unwrap(), None);
    assert_eq!(place.names(), ["b"]);
}

#[test]
fn links_that_lead_out_are_refused_as_errors_of_their_jobs() {
    let place = Place::new();
    let outside = place.folder.path().join("outside");
    fs::create_dir_all(&outside).unwrap();
    for name in ["dir", "file"] {
        fs::write(outside.join("job.json"), job(name).to_json()).unwrap();
        fs::write(outside.join(format!("{name}.json")), job(name).to_json()).unwrap();
    }
    fs::write(outside.join("job.json"), job("dir").to_json()).unwrap();
    fs::create_dir_all(place.jobs().join("file")).unwrap();
    symlink(&outside, place.jobs().join("dir")).unwrap();
    symlink(outside.join("file.json"), place.jobs().join("file/job.json")).unwrap();
    let before: Vec<String> =
        ["job.json", "file.json"].map(|name| fs::read_to_string(outside.join(name)).unwrap()).into();
    for (id, why) in
        [("dir", "a link leads out of the data directory"), ("file", "it is a link, and no regular file")]
    {
        assert!(place.unreadable(id).ends_with(why), "{}", place.unreadable(id));
        assert!(place.store.record(&job_id(id)).is_err());
    }
    assert!(place.store.take_run_lock(&job_id("dir")).is_err());
    assert!(
        place
            .store
            .ask_to_cancel(
                &job_id("dir"),
                tidewheel_store::jobs::CancelRequest {
                    by: "me",
                    at: tidewheel_core::time::Timestamp::from_millis(1),
                    is_of_run: false,
                },
            )
            .is_err()
    );
    let batch = Batch { records: vec![job("dir")], rewound: vec![job_id("dir")], ..Batch::default() };
    assert_eq!(place.store.turn().unwrap().commit(batch).unwrap().len(), 1);
    // The link itself can be removed; what it points to stays.
    let removal = Removal { jobs: vec![job_id("dir")], ..Removal::default() };
    assert!(place.store.turn().unwrap().remove(&[removal]).unwrap()[0].refusal.is_none());
    assert!(!place.jobs().join("dir").exists());
    let after: Vec<String> =
        ["job.json", "file.json"].map(|name| fs::read_to_string(outside.join(name)).unwrap()).into();
    assert_eq!(after, before);
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 3);
}

#[test]
fn a_link_in_the_place_of_a_lock_or_of_the_events_is_not_followed() {
    let place = Place::new();
    place.put(vec![job("a")]);
    let outside = place.folder.path().join("outside");
    fs::write(&outside, "untouched").unwrap();
    for name in ["run.lock", "events.jsonl", "stdout.log"] {
        symlink(&outside, place.jobs().join("a").join(name)).unwrap();
    }
    assert!(place.store.take_run_lock(&job_id("a")).unwrap().is_some());
    let event =
        serde_json::json!({"at": "2026-02-01T12:00:00Z", "attempt": 1, "event": {"rewound": {"by": "me"}}});
    let events = vec![(job_id("a"), serde_json::from_value(event).unwrap())];
    assert!(place.store.turn().unwrap().commit(Batch { events, ..Batch::default() }).unwrap().is_empty());
    assert_eq!(place.store.events(&job_id("a")).unwrap().len(), 1);
    assert_eq!(place.store.take_notes().len(), 2, "each is told");
    let rewound = vec![job_id("a")];
    assert_eq!(place.store.turn().unwrap().commit(Batch { rewound, ..Batch::default() }).unwrap().len(), 1);
    assert_eq!(fs::read_to_string(&outside).unwrap(), "untouched");
}

#[test]
fn a_pipe_in_the_place_of_a_file_makes_nobody_wait() {
    let place = Place::new();
    place.put(vec![job("a")]);
    fs::create_dir_all(place.jobs().join("p")).unwrap();
    for path in ["p/job.json", "a/outcome.json", "a/events.jsonl", "a/run.lock", "runs/r1.json"] {
        let path = place.jobs().join(path);
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o644.into(), 0).unwrap();
    }
    assert!(
        place.unreadable("p").ends_with("it is a pipe, and no regular file"),
        "{}",
        place.unreadable("p")
    );
    assert!(place.store.outcome(&job_id("a")).is_err());
    assert!(place.store.events(&job_id("a")).is_err());
    assert!(place.store.take_run_lock(&job_id("a")).unwrap().is_some());
    assert!(place.store.manifest(&run_id("r1")).is_err());
    assert_eq!(
        place
            .store
            .turn()
            .unwrap()
            .commit(Batch { records: vec![job("p")], ..Batch::default() })
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn directories_whose_names_are_no_ids_are_named_and_harm_nobody() {
    let place = Place::new();
    for name in ["-rf", "a b", ".hidden", "ü"] {
        place.write(name, &job("x").to_json());
    }
    fs::create_dir(place.jobs().join(".empty")).unwrap();
    fs::write(place.jobs().join("README"), "hello").unwrap();
    place.put(vec![job("a")]);
    let jobs = place.store.jobs().unwrap();
    assert_eq!(jobs.briefs.len(), 1);
    assert_eq!(jobs.unreadable.keys().collect::<Vec<_>>(), ["-rf", ".hidden", "a b", "ü"]);
    assert_eq!(place.unreadable("-rf"), "`-rf` is no job id: it must not begin with a dot or a dash");
    fs::remove_dir_all(place.jobs().join("a b")).unwrap();
    assert_eq!(place.store.turn().unwrap().active().unwrap().unreadable.len(), 3);
}

#[test]
fn a_rewound_job_keeps_its_record_and_loses_its_logs() {
    let place = Place::new();
    place.put(vec![job("a")]);
    let folder = place.jobs().join("a");
    for name in ["stdout.log", "stderr.log", "stdout.log.1", "stderr.log.2", "outcome.json", "command.patch"]
    {
        fs::write(folder.join(name), "old").unwrap();
    }
    for name in ["ask-save.patch", "save-input.patch", "cancel.json", "mine.txt", "stdout.logbook"] {
        fs::write(folder.join(name), "old").unwrap();
    }
    let batch = Batch { records: vec![job("a")], rewound: vec![job_id("a")], ..Batch::default() };
    assert!(place.store.turn().unwrap().commit(batch).unwrap().is_empty());
    let mut left: Vec<(String, u64)> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().len()))
        .filter(|(name, _)| name != "job.json")
        .collect();
    left.sort();
    let left: Vec<(&str, u64)> = left.iter().map(|(name, size)| (name.as_str(), *size)).collect();
    assert_eq!(left, [("mine.txt", 3), ("stderr.log", 0), ("stdout.log", 0), ("stdout.logbook", 3)]);
}

/// The logs were emptied before it was found that the outcome cannot be removed.
#[test]
fn what_is_in_the_way_of_a_rewind_is_named_and_nothing_is_changed() {
    for name in ["stdout.log", "stderr.log", "stderr.log.1", "outcome.json", "command.patch", "events.jsonl"]
    {
        let place = Place::new();
        place.put(vec![job("a"), job("b")]);
        for job in ["a", "b"] {
            for log in ["stdout.log", "stderr.log", "outcome.json"] {
                fs::write(place.jobs().join(job).join(log), "old").unwrap();
            }
        }
        let path = place.jobs().join("b").join(name);
        fs::remove_file(&path).ok();
        fs::create_dir(&path).unwrap();
        let named =
            |error: JobStoreError| assert!(error.to_string().ends_with(&format!("/b/{name}")), "{error}");
        named(place.store.check_rewind(&job_id("b")).unwrap_err());
        place.store.check_rewind(&job_id("a")).unwrap();
        let before = place.tree();
        let changed = |id: &str| {
            let mut record = job(id);
            record.status = JobStatus::Failed;
            record
        };
        let batch = |is_whole| Batch {
            records: vec![changed("a"), changed("b")],
            rewound: vec![job_id("a"), job_id("b")],
            is_whole,
            ..Batch::default()
        };
        let kept = |id: &str| {
            let file = |name: &str| fs::read_to_string(place.jobs().join(id).join(name)).unwrap_or_default();
            let files = ["stdout.log", "stderr.log", "outcome.json"].map(file);
            (place.store.record(&job_id(id)).unwrap().unwrap().status, files)
        };
        let (a, b) = (kept("a"), kept("b"));
        assert_eq!(a, (JobStatus::Queued, ["old"; 3].map(str::to_owned)));
        named(place.store.turn().unwrap().commit(batch(true)).unwrap_err());
        assert_eq!((kept("a"), kept("b"), place.tree()), (a, b.clone(), before), "{name}");
        // Where each is for itself, the other one is rewound.
        let failed = place.store.turn().unwrap().commit(batch(false)).unwrap();
        assert_eq!(failed.len(), 1);
        failed.into_iter().for_each(|(_, error)| named(error));
        assert_eq!(
            (kept("a"), kept("b")),
            ((JobStatus::Failed, ["", "", ""].map(str::to_owned)), b),
            "{name}"
        );
    }
}

/// Nothing could be scheduled then.
#[test]
fn a_directory_in_the_place_of_the_index_is_in_nobodys_way() {
    for name in ["index.live", "index.done", "index.due"] {
        for is_empty in [true, false] {
            let place = Place::new();
            place.put(vec![job("a")]);
            let path = place.jobs().join(name);
            fs::remove_file(&path).ok();
            fs::create_dir(&path).unwrap();
            if !is_empty {
                fs::write(path.join("mine.txt"), "mine").unwrap();
            }
            place.put(vec![job("b")]);
            let again = Files::open(&place.folder.path().join("data")).unwrap();
            let mut done = job("a");
            done.status = JobStatus::Succeeded;
            let mut turn = again.turn().unwrap();
            assert_eq!(turn.active().unwrap().briefs.len(), 2, "{name}");
            assert!(turn.commit(Batch { records: vec![done], ..Batch::default() }).unwrap().is_empty());
            let due = tidewheel_store::jobs::Due { at: None, watches: true, runs: false };
            let is_due_kept = turn.set_due(due);
            assert_eq!(
                turn.active().unwrap().briefs.into_keys().collect::<Vec<_>>(),
                [job_id("b")],
                "{name}"
            );
            drop(turn);
            assert_eq!(place.names(), ["a", "b"]);
            let kept = fs::read_to_string(path.join("mine.txt")).ok();
            assert_eq!((path.is_file(), kept.is_some()), (is_empty, !is_empty), "{name}");
            // Only when somebody has to look again is known nowhere else.
            match is_due_kept {
                Ok(()) => assert_eq!(again.due().unwrap(), due),
                Err(error) => assert!(error.to_string().ends_with("/index.due"), "{error}"),
            }
            let in_the_way: Vec<String> = again.checkup().unwrap().in_the_way.into_keys().collect();
            assert_eq!(in_the_way.is_empty(), is_empty, "{in_the_way:?}");
        }
    }
}

#[test]
fn a_line_of_events_that_was_cut_off_is_left_out_and_does_not_spoil_the_next() {
    let place = Place::new();
    place.put(vec![job("a")]);
    let line = r#"{"at":"2026-02-01T12:00:00Z","attempt":1,"event":{"rewound":{"by":"me"}}}"#;
    let event = serde_json::from_str(line).unwrap();
    let path = place.jobs().join("a/events.jsonl");
    fs::write(&path, format!("{line}\n{}", &line[..30])).unwrap();
    assert_eq!(place.store.events(&job_id("a")).unwrap().len(), 1);
    let batch = Batch { events: vec![(job_id("a"), event)], ..Batch::default() };
    assert!(place.store.turn().unwrap().commit(batch).unwrap().is_empty());
    assert_eq!(place.store.events(&job_id("a")).unwrap().len(), 2);
    fs::write(&path, format!("{line}\nrubbish\n{line}\n")).unwrap();
    assert!(matches!(place.store.events(&job_id("a")), Err(JobStoreError::Json { .. })));
}

#[test]
fn a_due_time_is_written_only_when_it_changed() {
    let place = Place::new();
    let due = tidewheel_store::jobs::Due { at: None, watches: true, runs: false };
    let mut turn = place.store.turn().unwrap();
    turn.set_due(due).unwrap();
    let inode =
        || std::os::unix::fs::MetadataExt::ino(&fs::metadata(place.jobs().join("index.due")).unwrap());
    let held = fs::File::open(place.jobs().join("index.due")).unwrap();
    let before = inode();
    turn.set_due(due).unwrap();
    assert_eq!(inode(), before);
    turn.set_due(tidewheel_store::jobs::Due::default()).unwrap();
    assert_ne!(inode(), before);
    drop(held);
    fs::write(place.jobs().join("index.due"), "rubbish").unwrap();
    assert_eq!(place.store.due().unwrap(), tidewheel_store::jobs::Due::default());
}

/// Finished jobs beyond those that are looked at in one turn are looked at in the next ones.
#[test]
fn every_edit_of_an_old_record_is_seen_sooner_or_later() {
    const JOBS: usize = 1_000;
    let place = Place::new();
    let over = |n: usize| {
        let mut record = job(&format!("old-{n:04}"));
        record.status = JobStatus::Succeeded;
        record
    };
    place.put((0..JOBS).map(over).collect());
    assert!(place.store.turn().unwrap().active().unwrap().briefs.is_empty());
    place.write("old-0777", &job("old-0777").to_json());
    let data = place.folder.path().join("data");
    let sees = || !Files::open(&data).unwrap().turn().unwrap().active().unwrap().briefs.is_empty();
    // In each turn some are looked at, however slow the disk is.
    assert!((0..JOBS / 10).any(|_| sees()), "nobody saw it");
}

#[test]
fn a_lock_that_somebody_deleted_does_not_keep_anybody_from_the_next_turn() {
    let place = Place::new();
    drop(place.store.turn().unwrap());
    fs::remove_file(place.jobs().join("scheduler.lock")).unwrap();
    let turn = place.store.turn().unwrap();
    let other = Files::open(&place.folder.path().join("data")).unwrap();
    assert!(other.try_turn().unwrap().is_none());
    drop(turn);
    assert!(other.try_turn().unwrap().is_some());
}

/// A process that is no more.
fn dead() -> u32 {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    child.id()
}

/// Writes a temporary file as a writer does, some seconds ago.
fn leave(folder: &std::path::Path, name: &str, writer: u32, seconds: u64) -> PathBuf {
    let path = folder.join(format!(".{name}.{writer}.7.tmp"));
    let file = fs::File::create(&path).unwrap();
    file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(seconds)).unwrap();
    path
}

#[test]
fn what_a_dead_writer_left_beside_a_record_goes_with_the_next_one() {
    let place = Place::new();
    place.put(vec![job("a"), job("b")]);
    let [a, b] = ["a", "b"].map(|id| place.jobs().join(id));
    let dead = dead();
    let left = leave(&a, "job.json", dead, 3_600);
    let outcome = leave(&a, "outcome.json", dead, 3_600);
    let of_other = leave(&b, "job.json", dead, 3_600);
    // The number of a writer in another container means nothing here.
    let young = leave(&a, "job.json", dead + 1_000_000, 0);
    let alive = leave(&a, "ended.json", std::process::id(), 3_600);
    fs::write(a.join(".note.tmp"), "of a person").unwrap();
    place.put(vec![job("a")]);
    assert!(!left.exists() && !outcome.exists());
    assert!(young.exists() && alive.exists() && a.join(".note.tmp").exists());
    assert!(of_other.exists(), "nothing was written there");
}

#[test]
fn what_dead_writers_left_in_the_long_lists_goes_when_jobs_are_removed() {
    let place = Place::new();
    let batch = Batch {
        records: vec![member("r1", "a"), member("r1", "b")],
        manifest: Some(manifest("r1")),
        shared: vec![("key:k".to_owned(), "wf-r1-a".into())],
        ..Batch::default()
    };
    place.store.turn().unwrap().commit(batch).unwrap();
    let dead = dead();
    let left = ["", "runs", "keys"].map(|name| leave(&place.jobs().join(name), "x.json", dead, 3_600));
    place.put(vec![job("c")]);
    assert!(left.iter().all(|path| path.exists()));
    let removal = Removal { jobs: vec![job_id("wf-r1-a")], ..Removal::default() };
    place.store.turn().unwrap().remove(&[removal]).unwrap();
    assert!(left.iter().all(|path| !path.exists()));
    assert_eq!(place.names(), ["c", "wf-r1-b"]);
}

fn whole_run(nodes: &[&str]) -> Removal {
    let jobs = nodes.iter().map(|node| job_id(&format!("wf-r1-{node}"))).collect();
    Removal { run: Some(run_id("r1")), jobs, unmarked: Vec::new() }
}

fn enqueued(nodes: &[&str]) -> Place {
    let place = Place::new();
    let records = nodes.iter().map(|node| member("r1", node)).collect();
    let batch = Batch { records, manifest: Some(manifest("r1")), ..Batch::default() };
    place.store.turn().unwrap().commit(batch).unwrap();
    place
}

#[test]
fn what_others_put_into_the_directory_of_a_job_stays_when_it_is_removed() {
    let place = enqueued(&["a", "b"]);
    let of_job = |name: &str| place.jobs().join("wf-r1-a").join(name);
    for name in ["stdout.log", "stdout.log.1", "supervisor.log", "command.patch", ".job.json.17.3.tmp"] {
        fs::write(of_job(name), "ours").unwrap();
    }
    fs::write(of_job("notes.txt"), "mine").unwrap();
    fs::create_dir_all(of_job("results/deep")).unwrap();
    let removed = place.store.turn().unwrap().remove(&[whole_run(&["a", "b"])]).unwrap();
    assert!(removed[0].refusal.is_none() && removed[0].errors.is_empty(), "{removed:?}");
    assert_eq!(removed[0].left, ["jobs/wf-r1-a/notes.txt", "jobs/wf-r1-a/results"]);
    assert_eq!(fs::read_to_string(of_job("notes.txt")).unwrap(), "mine");
    let mut left: Vec<_> = fs::read_dir(place.jobs().join("wf-r1-a"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["notes.txt", "results"]);
    assert!(!place.jobs().join("wf-r1-b").exists());
    assert_eq!(place.names(), [""; 0]);
    assert!(!place.jobs().join("runs/r1.json").exists());
    assert_eq!(fs::read_dir(place.jobs().join("tmp")).unwrap().count(), 0);
}

#[test]
fn a_removal_works_where_no_directory_can_be_made_for_what_is_put_aside() {
    let place = enqueued(&["a", "b"]);
    // Whatever keeps it from being made: here a file is in its place.
    fs::write(place.jobs().join("tmp"), "").unwrap();
    let removed = place.store.turn().unwrap().remove(&[whole_run(&["a", "b"])]).unwrap();
    assert!(removed[0].refusal.is_none() && removed[0].errors.is_empty(), "{removed:?}");
    assert_eq!(place.names(), [""; 0]);
    let left: Vec<_> = fs::read_dir(place.jobs()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().contains("wf-r1")), "{left:?}");
    assert_eq!(fs::read_dir(place.jobs().join("runs")).unwrap().count(), 0);
}

#[test]
fn a_job_that_cannot_be_removed_keeps_its_run() {
    let place = enqueued(&["a", "b", "c"]);
    let lock = place.store.take_run_lock(&job_id("wf-r1-c")).unwrap().unwrap();
    let removed = place.store.turn().unwrap().remove(&[whole_run(&["a", "b", "c"])]).unwrap();
    assert!(removed[0].refusal.is_some());
    assert!(place.jobs().join("runs/r1.json").exists());
    assert_eq!(place.names(), ["wf-r1-a", "wf-r1-b", "wf-r1-c"]);
    drop(lock);
}

/// A run whose manifest names its jobs, as those that are really enqueued do.
fn enqueued_by_name(nodes: &[&str]) -> Place {
    let place = Place::new();
    let mut named = manifest("r1");
    for node in nodes {
        let kept = serde_json::json!({
            "job_id": format!("wf-r1-{node}"), "kind": "step", "uses": "cap.env.shell.command.run", "policy": "",
        });
        let kept = serde_json::from_value(kept).unwrap();
        named.nodes.insert(tidewheel_core::job::NodeId::new(node).unwrap(), kept);
    }
    let records = nodes.iter().map(|node| member("r1", node)).collect();
    let batch = Batch { records, manifest: Some(named), ..Batch::default() };
    place.store.turn().unwrap().commit(batch).unwrap();
    place
}

/// Does the first renames of a removal of run r1, as a process does that is killed then.
fn cut_short(place: &Place, renames: usize) {
    let bin = place.jobs().join("tmp");
    fs::create_dir_all(&bin).unwrap();
    let moves = [("runs/r1.json", ".manifest-r1.json"), ("wf-r1-a", "wf-r1-a"), ("wf-r1-b", "wf-r1-b")];
    for (from, to) in &moves[..renames] {
        fs::rename(place.jobs().join(from), bin.join(to)).unwrap();
    }
}

/// The space of such a run was never freed, and its jobs were neither there nor gone.
#[test]
fn a_removal_that_was_cut_short_is_finished_by_the_next_one() {
    for renames in 1..=3 {
        for is_half_swept in [false, true] {
            let place = enqueued_by_name(&["a", "b"]);
            cut_short(&place, renames);
            if is_half_swept && renames > 1 {
                fs::remove_file(place.jobs().join("tmp/wf-r1-a/job.json")).unwrap();
                fs::write(place.jobs().join("tmp/wf-r1-a/stdout.log"), "said").unwrap();
            }
            let finished = place.store.turn().unwrap().finish_removals().unwrap();
            assert!(finished.errors.is_empty() && finished.left.is_empty(), "{renames}: {finished:?}");
            assert_eq!(finished.jobs, [job_id("wf-r1-a"), job_id("wf-r1-b")], "{renames}");
            assert_eq!(finished.runs, [run_id("r1")], "{renames}");
            let left: Vec<PathBuf> =
                place.tree().into_iter().filter(|path| path.to_string_lossy().contains("r1")).collect();
            assert!(left.is_empty(), "{renames}: {left:?}");
            assert_eq!(place.names(), [""; 0]);
            let again = place.store.turn().unwrap().finish_removals().unwrap();
            assert!(again.jobs.is_empty() && again.runs.is_empty(), "{again:?}");
        }
    }
}

/// The repair of a doctor removed the only copy of the manifest as harmless.
#[test]
fn a_sweep_finishes_a_removal_and_keeps_the_manifest_of_one_that_it_cannot_finish() {
    let place = enqueued_by_name(&["a", "b"]);
    cut_short(&place, 2);
    let found = place.store.checkup().unwrap();
    assert!(found.jobs.is_empty() && found.lost_records.is_empty() && found.missing.is_empty(), "{found:?}");
    let paths = ["jobs/tmp/.manifest-r1.json", "jobs/tmp/wf-r1-a", "jobs/wf-r1-b"];
    assert_eq!(found.leftovers, paths);
    let lock = place.store.take_run_lock(&job_id("wf-r1-b")).unwrap().unwrap();
    let error = place.store.sweep_leftovers().unwrap_err();
    assert_eq!(error.to_string(), "job wf-r1-b is still held by its supervisor");
    assert!(place.jobs().join("tmp/.manifest-r1.json").exists() && place.jobs().join("wf-r1-b").exists());
    drop(lock);
    place.store.sweep_leftovers().unwrap();
    assert_eq!(place.store.checkup().unwrap().leftovers, [""; 0]);
    assert!(!place.jobs().join("wf-r1-b").exists());
}

#[test]
fn what_a_person_put_among_removed_jobs_stays() {
    let place = enqueued_by_name(&["a", "b"]);
    cut_short(&place, 2);
    let bin = place.jobs().join("tmp");
    fs::write(bin.join("notes.txt"), "mine").unwrap();
    fs::write(bin.join(".manifest-notes.json"), "mine").unwrap();
    fs::create_dir(bin.join("mine")).unwrap();
    fs::write(bin.join("mine/notes.txt"), "mine").unwrap();
    fs::write(bin.join("wf-r1-a/notes.txt"), "mine").unwrap();
    let finished = place.store.turn().unwrap().finish_removals().unwrap();
    assert_eq!(finished.left, ["jobs/wf-r1-a/notes.txt"]);
    place.store.sweep_leftovers().unwrap();
    assert_eq!(place.store.checkup().unwrap().leftovers, [""; 0]);
    for path in ["tmp/notes.txt", "tmp/.manifest-notes.json", "tmp/mine/notes.txt", "wf-r1-a/notes.txt"] {
        assert_eq!(fs::read_to_string(place.jobs().join(path)).unwrap(), "mine", "{path}");
    }
    assert!(!place.jobs().join("wf-r1-b").exists() && !bin.join(".manifest-r1.json").exists());
}

#[test]
fn a_manifest_that_a_person_copied_back_brings_its_run_back() {
    let place = enqueued_by_name(&["a", "b"]);
    cut_short(&place, 1);
    let [aside, there] = ["tmp/.manifest-r1.json", "runs/r1.json"].map(|path| place.jobs().join(path));
    fs::copy(&aside, &there).unwrap();
    let finished = place.store.turn().unwrap().finish_removals().unwrap();
    assert!(finished.jobs.is_empty() && finished.runs.is_empty(), "{finished:?}");
    assert_eq!((aside.exists(), there.exists()), (false, true));
    assert_eq!(place.names(), ["wf-r1-a", "wf-r1-b"]);
}

/// A directory was moved away with all that a person had in it.
#[test]
fn what_is_no_file_in_the_place_of_a_manifest_stays_there() {
    let place = enqueued_by_name(&["a"]);
    let there = place.jobs().join("runs/r1.json");
    fs::remove_file(&there).unwrap();
    fs::create_dir(&there).unwrap();
    fs::write(there.join("notes.txt"), "mine").unwrap();
    let removed = place.store.turn().unwrap().remove(&[whole_run(&["a"])]).unwrap();
    let (_, error) = removed[0].refusal.as_ref().unwrap();
    assert!(error.to_string().ends_with("data/jobs/runs/r1.json"), "{error}");
    assert_eq!(fs::read_to_string(there.join("notes.txt")).unwrap(), "mine");
    assert!(place.jobs().join("wf-r1-a").exists());
}
