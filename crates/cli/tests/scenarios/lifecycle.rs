//! How a job begins and ends, and what a tick leaves alone.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::process::Command;

use serde_json::{Value, json};

use crate::by_hand::{Desk, Ticked, at, job, standing};
use crate::world::Ran;

/// Who nobody is: the tests may be run by root, whom permissions do not stop.
const NOBODY: u32 = 65_534;

#[test]
fn a_2_a_job_without_arguments_fails_with_an_outcome() {
    let desk = Desk::new();
    desk.put(job("missing-child-args").with("child_args", json!([])));
    let ticked = desk.tick();
    assert_eq!((ticked.started, ticked.updated), (vec![], vec!["missing-child-args".to_owned()]));
    assert_eq!(desk.standing("missing-child-args"), standing("failed", "dependencies", "missing child args"));
    let record = desk.record("missing-child-args");
    assert_eq!(record["exit_code"], 1);
    assert!(record["finished_at"].is_string());
    assert_eq!(record["outcome_path"], ".tidewheel/jobs/missing-child-args/outcome.json");
    let outcome = fs::read_to_string(desk.in_jobs("missing-child-args/outcome.json")).unwrap();
    let outcome: Value = serde_json::from_str(&outcome).unwrap();
    assert_eq!((&outcome["status"], &outcome["exit_code"]), (&json!("failed"), &json!(1)));
}

#[test]
fn a_3_missing_arguments_are_judged_last() {
    let desk = Desk::new();
    desk.put(job("dep").status("running"));
    desk.put(job("after").with("child_args", json!([])).after(&["dep"]));
    desk.put(job("gated").with("child_args", json!([])).gated());
    desk.put(job("holder").status("running").locks(&["k:exclusive"]));
    desk.put(job("locked").with("child_args", json!([])).locks(&["k:exclusive"]));
    desk.tick();
    assert_eq!(desk.standing("after"), standing("waiting_on_deps", "dependencies", "waiting on job dep"));
    assert_eq!(
        desk.standing("gated"),
        standing("waiting_on_approval", "approval", "awaiting human approval")
    );
    assert_eq!(desk.standing("locked"), standing("waiting_on_locks", "locks", "waiting on locks"));
}

#[test]
fn a_4_what_has_ended_is_never_run_again() {
    let desk = Desk::new();
    let ended =
        ["succeeded", "failed", "cancelled", "blocked_by_dependency", "blocked_by_approval", "skipped"];
    for status in ended {
        desk.put(job(status).status(status));
    }
    let see = || {
        ended.map(|id| {
            let path = desk.in_jobs(id).join("job.json");
            (fs::read(&path).unwrap(), fs::metadata(&path).unwrap().ino())
        })
    };
    let before = see();
    for _ in 0..2 {
        assert_eq!(desk.tick(), Ticked { started: vec![], updated: vec![], errors: vec![] });
    }
    assert!(see() == before);
}

#[test]
fn a_5_without_jobs_a_tick_looks_at_nothing() {
    let desk = Desk::new();
    // A repository that cannot be opened, and no directory of jobs.
    desk.file(".git/HEAD", "this is no head");
    fs::remove_dir_all(desk.in_jobs("")).unwrap();
    for _ in 0..2 {
        let ran = desk.run(&["tick", "--format", "json"]);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
        assert_eq!(Ticked::of(&ran.json()), Ticked { started: vec![], updated: vec![], errors: vec![] });
    }
}

#[test]
fn a_6_a_job_whose_binary_is_gone_stays_queued() {
    let desk = Desk::new();
    desk.put(job("one"));
    fs::copy(env!("CARGO_BIN_EXE_tidewheel"), desk.path("gone")).unwrap();
    // The shell runs a file that has no name any more, so that nobody can start it a second time by its name.
    let mut command = Command::new("sh");
    desk.settle_in(&mut command);
    command.args(["-c", "exec 9<gone; rm gone; exec /proc/self/fd/9 tick --format json"]);
    let ran = Ran::of(&mut command);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(!Ticked::of(&ran.json()).errors.is_empty(), "{ran:?}");
    let record = desk.record("one");
    assert_eq!((&record["status"], at(&record, "/pid")), (&json!("queued"), &Value::Null));

    assert_eq!(desk.tick().started, ["one"]);
    desk.wait("one");
    assert_eq!(desk.status("one"), "succeeded");
}

#[test]
fn a_7_a_record_that_cannot_be_written_stops_only_its_own_job() {
    let desk = Desk::new();
    desk.put(job("stuck")).put(job("free"));
    // Everything belongs to nobody, who runs the tick, but the directory of one job.
    for path in ["..", "", ".tidewheel", ".tidewheel/config.toml", ".tidewheel/jobs", ".tidewheel/jobs/free"]
    {
        chown(desk.path(path), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    chown(desk.in_jobs("free/job.json"), Some(NOBODY), Some(NOBODY)).unwrap();
    fs::set_permissions(desk.in_jobs("stuck"), fs::Permissions::from_mode(0o555)).unwrap();
    let mut command = desk.command(&["tick", "--format", "json"]);
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    if is_root {
        command.uid(NOBODY).gid(NOBODY);
    }
    let ran = Ran::of(&mut command);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let ticked = Ticked::of(&ran.json());
    assert_eq!(ticked.started, ["free"], "{ran:?}");
    assert!(ticked.errors.iter().any(|error| error.contains("stuck")), "{ran:?}");
    assert_eq!(desk.status("stuck"), "queued");
    fs::set_permissions(desk.in_jobs("stuck"), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_8_jobs_start_in_the_order_of_their_creation() {
    let desk = Desk::new();
    desk.put(job("c").with("created_at", "2026-02-01T10:00:00Z"));
    desk.put(job("a").with("created_at", "2026-02-01T10:00:01Z"));
    desk.put(job("b").with("created_at", "2026-02-01T10:00:02Z"));
    // The same instant in another zone: then the ids decide.
    desk.put(job("aa").with("created_at", "2026-02-01T11:00:02+01:00"));
    assert_eq!(desk.tick().started, ["c", "a", "aa", "b"]);
}

#[test]
fn a_9_a_tick_that_changes_nothing_writes_nothing() {
    let desk = Desk::new();
    desk.put(job("holder").status("running").locks(&["k:exclusive"]));
    desk.put(job("dep").status("running"));
    desk.put(
        job("waits")
            .locks(&["k:exclusive"])
            .status("waiting_on_locks")
            .schedule("wait_reason", json!({"kind": "locks", "detail": "waiting on locks"}))
            .schedule("waited_on", json!(["locks"])),
    );
    desk.put(
        job("later")
            .after(&["dep"])
            .status("waiting_on_deps")
            .schedule("wait_reason", json!({"kind": "dependencies", "detail": "waiting on job dep"}))
            .schedule("waited_on", json!(["dependencies"])),
    );
    let see = || {
        ["waits", "later", "holder"].map(|id| {
            let path = desk.in_jobs(id).join("job.json");
            (fs::read(&path).unwrap(), fs::metadata(&path).unwrap().ino())
        })
    };
    let before = see();
    assert_eq!(desk.tick(), Ticked { started: vec![], updated: vec![], errors: vec![] });
    assert!(see() == before);
}

#[test]
fn a_10_output_goes_to_the_logs_and_nothing_comes_in() {
    let desk = Desk::new();
    desk.flow(
        "talk",
        r#"
id = "template.talk"
version = "v1"
[[nodes]]
id = "talk"
kind = "shell"
uses = "cap.env.shell.command.run"
args = { script = "echo hello; echo oops >&2; cat; readlink /proc/self/fd/0 >where; pwd >>where" }
"#,
    );
    let run = desk.enqueue(&["talk"]);
    let id = format!("wf-{run}-talk");
    desk.wait(&id);
    assert_eq!(desk.status(&id), "succeeded");
    assert_eq!(fs::read_to_string(desk.in_jobs(&id).join("stdout.log")).unwrap(), "hello\n");
    assert!(fs::read_to_string(desk.in_jobs(&id).join("stderr.log")).unwrap().contains("oops"));
    let root = fs::canonicalize(desk.path("")).unwrap();
    assert_eq!(fs::read_to_string(desk.path("where")).unwrap(), format!("/dev/null\n{}\n", root.display()));
}

#[test]
fn a_10_logs_are_appended_to() {
    let desk = Desk::new();
    desk.put(job("one"));
    fs::write(desk.in_jobs("one/stdout.log"), "before\n").unwrap();
    desk.tick();
    desk.wait("one");
    let log = fs::read_to_string(desk.in_jobs("one/stdout.log")).unwrap();
    assert!(log.starts_with("before\ntidewheel "), "{log:?}");
}

#[test]
fn a_job_that_runs_says_who_runs_it_and_ends_with_its_outcome() {
    let desk = Desk::new();
    desk.put(job("one"));
    assert_eq!(desk.tick().started, ["one"]);
    desk.wait("one");
    let record = desk.record("one");
    assert_eq!((&record["status"], &record["exit_code"]), (&json!("succeeded"), &json!(0)));
    assert!(record["started_at"].is_string() && record["finished_at"].is_string(), "{record}");
    assert_eq!(record["outcome_path"], ".tidewheel/jobs/one/outcome.json");
    assert!(desk.in_jobs("one/outcome.json").exists());
    let events = fs::read_to_string(desk.in_jobs("one/events.jsonl")).unwrap();
    assert!(events.contains("dispatched") && events.contains("completed"), "{events}");

    // A process that ends with another code is a failure with that code.
    desk.put(job("two").with("child_args", json!(["--no-such-option"])));
    desk.tick();
    desk.wait("two");
    let record = desk.record("two");
    assert_eq!((&record["status"], &record["exit_code"]), (&json!("failed"), &json!(2)));
}

#[test]
fn fields_that_nobody_knows_survive_and_a_newer_record_is_left_alone() {
    let desk = Desk::new();
    desk.put(job("mine").with("mood", "good").meta("x", json!([1])).schedule("tide", 7));
    desk.put(job("newer").with("version", 99).with("future", true));
    let newer = fs::read(desk.in_jobs("newer/job.json")).unwrap();
    let ran = desk.run(&["tick", "--format", "json"]);
    assert_eq!(Ticked::of(&ran.json()).started, ["mine"], "{ran:?}");
    desk.wait("mine");
    let record = desk.record("mine");
    assert_eq!(record["mood"], "good");
    assert_eq!(record["metadata"]["x"], json!([1]));
    assert_eq!(record["schedule"]["tide"], 7);
    for verb in ["cancel", "retry", "approve", "reject"] {
        assert_eq!(desk.run(&["jobs", verb, "newer"]).code, Some(1), "{verb}");
    }
    assert_eq!(fs::read(desk.in_jobs("newer/job.json")).unwrap(), newer);
}
