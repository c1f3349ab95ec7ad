//! `tidewheel doctor`: each kind of damage is made, found, mended where that loses nothing, and found fine afterwards.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::home::{Home, Ran};
use crate::shop;
use crate::yard::Yard;

/// Who commits, and where programs are.
const VARIABLES: [(&str, &str); 6] = [
    ("PATH", "/usr/local/bin:/usr/bin:/bin"),
    ("USER", "ada"),
    ("GIT_AUTHOR_NAME", "Ada"),
    ("GIT_AUTHOR_EMAIL", "ada@example.org"),
    ("GIT_COMMITTER_NAME", "Ada"),
    ("GIT_COMMITTER_EMAIL", "ada@example.org"),
];

/// The run of records that are written by hand.
const RUN: &str = "run_000000000000000000000000000000ab";

fn doctor(home: &Home, arguments: &[&str]) -> Ran {
    home.run_under(&VARIABLES, &[&["doctor"], arguments].concat())
}

/// Returns what is not fine, as `level check file`, after checking the exit code against it.
#[track_caller]
fn complaints(home: &Home, arguments: &[&str]) -> Vec<String> {
    let ran = doctor(home, &[arguments, &["--format", "json"]].concat());
    let value: Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("it is JSON: {ran}"));
    assert_eq!(value["version"], 1);
    let all = value["findings"].as_array().unwrap();
    let word = |finding: &Value, name: &str| finding[name].as_str().unwrap_or("-").to_owned();
    let bad: Vec<&Value> = all.iter().filter(|finding| finding["level"] != "fine").collect();
    let is_broken = bad.iter().any(|finding| finding["level"] == "broken");
    assert_eq!(ran.code, Some(i32::from(is_broken)), "{ran}");
    let outcome = if is_broken {
        "broken"
    } else if bad.is_empty() {
        "fine"
    } else {
        "warning"
    };
    assert_eq!(value["outcome"], outcome);
    for finding in &bad {
        assert!(finding["file"].is_string() && finding["todo"].is_string(), "{finding}");
    }
    let line = |finding: &&Value| {
        let [level, check, file] = ["level", "check", "file"].map(|name| word(finding, name));
        format!("{level} {check} {file}")
    };
    bad.iter().map(line).collect()
}

/// Fails unless the doctor finds exactly this, and after `--fix` nothing.
#[track_caller]
fn is_found_and_fixed(home: &Home, expected: &[&str]) {
    assert_eq!(complaints(home, &[]), expected);
    assert_eq!(complaints(home, &["--fix"]), [""; 0], "{}", doctor(home, &[]));
    assert_eq!(complaints(home, &[]), [""; 0]);
}

/// Fails unless the doctor finds exactly this, and `--fix` neither mends nor changes it.
#[track_caller]
fn is_found_and_kept(home: &Home, expected: &[&str]) {
    assert_eq!(complaints(home, &[]), expected);
    assert_eq!(complaints(home, &["--fix"]), expected);
}

/// Makes a file or directory as old as two days.
fn age(path: &Path) {
    let two_days = SystemTime::now() - Duration::from_secs(2 * 86_400);
    File::open(path).unwrap().set_modified(two_days).unwrap();
}

fn of_run(node: &str) -> Value {
    json!({ "metadata": { "workflow_run_id": RUN, "workflow_node_id": node } })
}

#[test]
fn a_directory_in_order_is_all_fine() {
    let yard = Yard::new();
    yard.git(&["init", "-q"]);
    assert_eq!(doctor(&yard.home, &[]).code, Some(0));
    let ran = yard.home.run_under(&VARIABLES, &["init"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    let ran = yard.home.run_under(&VARIABLES, &["run", "hello", "--follow"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    assert_eq!(complaints(&yard.home, &[]), [""; 0]);
    let ran = doctor(&yard.home, &[]).succeeded();
    assert!(ran.out.ends_with("\nOutcome: Everything is fine\n"), "{ran}");
}

#[test]
fn what_is_told_to_people() {
    let yard = Yard::new();
    yard.job("gone", "running", 0, json!({ "child_args": ["--version"], "pid": 1 }));
    yard.home.file(".tidewheel/jobs/bad/job.json", "not-json").file(".tidewheel/jobs/index.live", "what");
    let variables = [VARIABLES[0], ("COLUMNS", "100"), ("TIDEWHEEL_NOW", "2026-02-01T13:00:00Z")];
    let ran = yard.home.run_under(&variables, &["doctor"]);
    let home = yard.home.path().display().to_string();
    let hide = |line: &str| {
        let line = line.replace(&home, "HOME");
        if line.starts_with("fine      space") {
            "fine      space        …".to_owned()
        } else if line.starts_with("fine      git") {
            "fine      git          …".to_owned()
        } else {
            line
        }
    };
    let mut told: String = ran.out.lines().map(|line| hide(line) + "\n").collect();
    told.push_str(&ran.err);
    assert_snapshot!(told, @"
    fine      place        HOME/.tidewheel, the nearest one from here upwards
    fine      rights       files can be read and written, and what is written reaches the disk
    fine      space        …
    fine      clock        the clock agrees with the disk and with the records
    fine      lock         no process is scheduling just now; no daemon runs, and none is needed
    broken    records      .tidewheel/jobs/bad/job.json: cannot be read: expected ident at line 1 column
                           2
                           Mend it, or take it from a backup, or move `.tidewheel/jobs/bad` away. Jobs
                           after it are blocked until then; all others are not concerned.
    fine      runs         0 manifests, and nothing is wrong
    warning   index        .tidewheel/jobs/index.live: makes no sense, and is not used
                           It is only a cache: the next command that schedules builds it anew from the
                           records, and so does --fix.
    broken    supervisors  .tidewheel/jobs/gone/run.lock: job gone is on record as running, and its
                           supervisor is gone
                           `tidewheel tick` ends what it left and settles it; `tidewheel jobs retry
                           gone` runs it again.
    fine      leftovers    no temporary files are left over
    fine      worktrees    there are none
    fine      sentinels    no merge has stopped at a conflict
    fine      git          …
    fine      config       there is no config.toml, and what is usual counts
    fine      templates    there are none in .tidewheel/workflows
    fine      agents       none is configured

    Outcome: 2 broken, 1 warning, 13 fine
    hint: `tidewheel doctor --fix` repairs 2 of these.
    ");
    assert_eq!(ran.code, Some(1));
}

#[test]
fn an_empty_directory_is_told_how_to_begin() {
    let home = Home::new();
    let data = home.path().join(".tidewheel").display().to_string();
    assert_eq!(complaints(&home, &[]), [format!("warning place {data}")]);
    assert_eq!(complaints(&home, &["--fix"]), [format!("warning place {data}")]);
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0, "nothing is made");
    let ran = home.run(&["doctor", "--dir", "nowhere"]);
    assert!(ran.code == Some(1) && ran.err.contains("TW0023"), "{ran}");
}

#[test]
fn a_file_in_the_place_of_a_directory_is_found() {
    let home = Home::new();
    home.file(".tidewheel", "");
    let data = home.path().join(".tidewheel").display().to_string();
    is_found_and_kept(&home, &[&format!("broken place {data}")]);
    let home = Home::new();
    home.file(".tidewheel/jobs", "");
    let found = complaints(&home, &[]);
    assert_eq!(found[0], "broken place .tidewheel/jobs", "{found:?}");
}

#[test]
fn a_file_in_the_place_of_the_templates_is_found() {
    let home = Home::new();
    home.file(".tidewheel/workflows", "");
    is_found_and_kept(&home, &["broken templates .tidewheel/workflows"]);
    let ran = home.run(&["init"]);
    assert_eq!(ran.code, Some(1), "{ran}");
    let ran = doctor(&home, &[]);
    assert!(ran.out.contains("Move it away; `tidewheel init` makes the directory.\n"), "{ran}");
    fs::remove_file(home.path().join(".tidewheel/workflows")).unwrap();
    home.run(&["init"]).succeeded();
    assert_eq!(complaints(&home, &[]), [""; 0]);
}

#[test]
fn a_damaged_index_is_built_anew() {
    let yard = Yard::new();
    yard.job("a", "succeeded", 0, json!({})).job("b", "failed", 1, json!({}));
    assert_eq!(yard.run(&["tick"]).code, Some(0));
    assert_eq!(complaints(&yard.home, &[]), [""; 0]);
    fs::write(yard.path("index.live"), "what is this\n").unwrap();
    is_found_and_fixed(&yard.home, &["warning index .tidewheel/jobs/index.live"]);
    // A line of the other file that says something else than the record: nobody would notice it by its time.
    let text = fs::read_to_string(yard.path("index.done")).unwrap();
    assert!(text.contains("\"failed\""), "{text}");
    fs::write(yard.path("index.done"), text.replace("\"failed\"", "\"queued\"")).unwrap();
    is_found_and_fixed(&yard.home, &["warning index .tidewheel/jobs/index.done"]);
    assert_eq!(yard.record("b")["status"], "failed");
    assert_eq!(yard.json(&["jobs", "list", "--all"])["jobs"].as_array().unwrap().len(), 2);
}

/// It was fine, or a warning about another file.
#[test]
fn a_directory_in_the_place_of_a_file_of_the_index_is_removed_if_it_is_empty() {
    let yard = Yard::new();
    yard.job("a", "succeeded", 0, json!({}));
    assert_eq!(yard.run(&["tick"]).code, Some(0));
    for name in ["index.due", "index.live", "index.done", "index.live.tmp", "index.done.tmp"] {
        let (path, said) = (yard.path(name), format!("broken index .tidewheel/jobs/{name}"));
        let put = |is_empty: bool| {
            drop(fs::remove_file(&path));
            fs::create_dir(&path).unwrap();
            if !is_empty {
                fs::write(path.join("mine.txt"), "mine").unwrap();
            }
        };
        put(false);
        is_found_and_kept(&yard.home, &[&said]);
        assert_eq!(fs::read(path.join("mine.txt")).unwrap(), b"mine");
        fs::remove_dir_all(&path).unwrap();
        put(true);
        is_found_and_fixed(&yard.home, &[&said]);
        assert_eq!(yard.run(&["tick"]).code, Some(0), "{name}");
    }
}

#[test]
fn an_empty_directory_in_the_place_of_a_lock_is_removed() {
    let yard = Yard::new();
    yard.job("a", "succeeded", 0, json!({}));
    let names = ["a/run.lock", "daemon.lock", "scheduler.lock"];
    for name in names {
        fs::create_dir(yard.path(name)).unwrap();
    }
    // What needs the lock is done after it can be taken.
    fs::write(yard.path("index.live"), "what is this\n").unwrap();
    let mut expected: Vec<String> =
        names.iter().map(|name| format!("broken lock .tidewheel/jobs/{name}")).collect();
    expected.push("warning index .tidewheel/jobs/index.live".to_owned());
    is_found_and_fixed(&yard.home, &expected.iter().map(String::as_str).collect::<Vec<_>>());
    // Nobody knows what somebody put into one.
    fs::remove_file(yard.path("scheduler.lock")).unwrap();
    yard.home.file(".tidewheel/jobs/scheduler.lock/mine.txt", "mine");
    is_found_and_kept(&yard.home, &["broken lock .tidewheel/jobs/scheduler.lock"]);
    assert!(yard.path("scheduler.lock/mine.txt").exists());
}

#[test]
fn a_job_whose_supervisor_is_gone_is_settled() {
    let yard = Yard::new();
    yard.job("gone", "running", 0, json!({ "child_args": ["--version"], "pid": 1 }));
    yard.job(
        "after",
        "waiting_on_deps",
        1,
        json!({ "child_args": ["--version"],
        "schedule": { "after": [{ "job_id": "gone", "policy": "success" }] } }),
    );
    let (gone, after) = (yard.record("gone"), yard.record("after"));
    assert_eq!(complaints(&yard.home, &[]), ["broken supervisors .tidewheel/jobs/gone/run.lock"]);
    assert_eq!((yard.record("gone"), yard.record("after")), (gone, after), "looking changes nothing");
    assert_eq!(complaints(&yard.home, &["--fix"]), [""; 0]);
    assert_eq!(yard.record("gone")["status"], "failed");
    assert_eq!(yard.record("gone")["metadata"]["process_liveness_state"], "stale_not_running");
    assert_eq!(yard.record("after")["status"], "blocked_by_dependency");
}

#[test]
fn a_job_whose_supervisor_lives_is_fine() {
    let yard = Yard::new();
    yard.job("busy", "running", 0, json!({ "child_args": ["--version"], "pid": 1 }));
    let lock = File::create(yard.path("busy/run.lock")).unwrap();
    lock.lock().unwrap();
    assert_eq!(complaints(&yard.home, &["--fix"]), [""; 0]);
    assert_eq!(yard.record("busy")["status"], "running");
}

#[test]
fn records_that_cannot_be_used_are_named_and_kept() {
    let yard = Yard::new();
    yard.job("newer", "queued", 0, json!({ "version": 9 })).job("fine", "succeeded", 1, json!({}));
    yard.job("other", "queued", 2, json!({ "id": "another" }));
    yard.home
        .file(".tidewheel/jobs/bad/job.json", "not-json")
        .file(".tidewheel/jobs/what's this/job.json", "{}");
    yard.home
        .file(".tidewheel/jobs/fine/events.jsonl", "{}\n")
        .file(".tidewheel/jobs/empty/notes.txt", "mine");
    let names =
        ["newer/job.json", "other/job.json", "bad/job.json", "what's this/job.json", "empty/notes.txt"];
    let read = || names.map(|name| fs::read(yard.path(name)).unwrap());
    let before = read();
    age(&yard.path("empty"));
    is_found_and_kept(
        &yard.home,
        &[
            "broken records .tidewheel/jobs/bad/job.json",
            "warning records .tidewheel/jobs/empty",
            "broken records .tidewheel/jobs/newer/job.json",
            "broken records .tidewheel/jobs/other/job.json",
            "broken records .tidewheel/jobs/what's this/job.json",
            "warning records .tidewheel/jobs/fine/events.jsonl",
        ],
    );
    assert_eq!(read(), before, "nothing of them is touched");
}

/// The doctor said that everything is fine, and other screens that it knows what to do.
#[test]
fn a_directory_whose_record_was_deleted_is_named() {
    let yard = Yard::with_flows(&[]);
    let ran = yard.json(&["run", "two.toml", "--follow"]);
    let run = ran["run_id"].as_str().unwrap();
    fs::remove_file(yard.path(&format!("wf-{run}-one/job.json"))).unwrap();
    let said = format!("broken records .tidewheel/jobs/wf-{run}-one");
    is_found_and_kept(&yard.home, &[&said]);
    // The supervisor may be about to go; then nothing else is left of the run.
    File::open(yard.path(&format!("wf-{run}-two/run.lock"))).unwrap().lock().unwrap();
    let ran = yard.run(&["jobs", "gc", "--days", "0"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    assert!(yard.path(&format!("runs/{run}.json")).exists(), "the record may come back: {ran}");
    is_found_and_kept(&yard.home, &[&said]);
    assert!(yard.path(&format!("wf-{run}-one/stdout.log")).exists());
    // One that never started has nothing but its name in the manifest.
    let ran = yard.json(&["run", "two.toml", "--require-approval"]);
    let run = ran["run_id"].as_str().unwrap();
    fs::remove_file(yard.path(&format!("wf-{run}-two/job.json"))).unwrap();
    let found = complaints(&yard.home, &[]);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.contains(&said), "{found:?}");
    assert!(found.contains(&format!("broken records .tidewheel/jobs/wf-{run}-two")), "{found:?}");
}

#[test]
fn a_log_that_is_a_directory_is_found() {
    let yard = Yard::new();
    yard.job("a", "succeeded", 0, json!({}));
    fs::create_dir(yard.path("a/stdout.log")).unwrap();
    is_found_and_kept(&yard.home, &["warning records .tidewheel/jobs/a/stdout.log"]);
}

#[test]
fn an_enqueue_that_did_not_finish_is_removed_after_a_day() {
    let manifest = format!("warning records .tidewheel/jobs/runs/{RUN}.json");
    let yard = Yard::new();
    yard.job("mine", "succeeded", 0, json!({}));
    yard.job(&format!("wf-{RUN}-one"), "queued", 1, of_run("one"));
    let young = [VARIABLES[0], ("TIDEWHEEL_NOW", "2026-02-01T13:00:00Z")];
    let ran = yard.home.run_under(&young, &["doctor", "--fix"]);
    assert!(ran.code == Some(0) && ran.out.contains("did not finish"), "{ran}");
    assert!(yard.path(&format!("wf-{RUN}-one/job.json")).exists(), "it may still be at work");
    is_found_and_fixed(&yard.home, &[&manifest]);
    assert!(!yard.path(&format!("wf-{RUN}-one")).exists());
    assert!(yard.path("mine/job.json").exists(), "what is over stays, however old it is");
}

#[test]
fn jobs_that_had_begun_are_not_removed_with_their_lost_manifest() {
    let yard = Yard::new();
    yard.job(&format!("wf-{RUN}-one"), "succeeded", 1, of_run("one"));
    is_found_and_kept(&yard.home, &[&format!("broken records .tidewheel/jobs/runs/{RUN}.json")]);
    assert!(yard.path(&format!("wf-{RUN}-one/job.json")).exists());
    fs::create_dir_all(yard.path("runs")).unwrap();
    fs::write(yard.path(&format!("runs/{RUN}.json")), "{").unwrap();
    is_found_and_kept(&yard.home, &[&format!("broken runs .tidewheel/jobs/runs/{RUN}.json")]);
}

#[test]
fn what_dead_writers_left_is_swept_up_and_nothing_else() {
    let yard = Yard::new();
    yard.job("a", "succeeded", 0, json!({}));
    // No process has this number: it is above what the system gives.
    let left = [
        "a/.job.json.4194304.0.tmp",
        "runs/.r.json.4194304.7.tmp",
        "artifacts/custom/61/62/.x.4194304.1.tmp",
        "tmp/b/job.json",
        "index.live.tmp",
    ];
    let kept = ["a/notes.tmp", "a/.hidden", "artifacts/custom/61/62/a.json"];
    let living = format!("a/.job.json.{}.0.tmp", std::process::id());
    for name in left.iter().chain(&kept).chain([&living.as_str()]) {
        yard.home.file(&format!(".tidewheel/jobs/{name}"), "x");
        age(&yard.path(name));
    }
    yard.home.file(".tidewheel/jobs/a/.job.json.4194304.9.tmp", "too young");
    fs::create_dir(yard.path("vacant")).unwrap();
    age(&yard.path("vacant"));
    is_found_and_fixed(&yard.home, &["warning leftovers .tidewheel/jobs/a/.job.json.4194304.0.tmp"]);
    for name in left.iter().chain(&["vacant"]) {
        assert!(!yard.path(name).exists(), "{name}");
    }
    for name in kept.iter().chain(&[living.as_str(), "a/.job.json.4194304.9.tmp", "a/job.json"]) {
        assert!(yard.path(name).exists(), "{name}");
    }
}

/// Returns a repository with a commit.
fn repository() -> Yard {
    let yard = Yard::new();
    yard.git(&["init", "-q", "-b", "main"]);
    yard.git(&["config", "user.name", "Ada"]).git(&["config", "user.email", "ada@example.org"]);
    yard.home.file("a.txt", "a\n").file(".gitignore", ".tidewheel\n");
    yard.git(&["add", "."]).git(&["commit", "-q", "-m", "a"]);
    yard
}

#[test]
fn worktrees_without_an_owner_on_record_are_named_and_left_to_people() {
    let yard = repository();
    yard.job(
        "here",
        "succeeded",
        0,
        json!({ "metadata": { "worktree_path": ".tidewheel/tmp-worktrees/odd" } }),
    );
    let place = yard.home.path().join(".tidewheel/tmp-worktrees");
    for name in [
        "build-here",
        "odd",
        "workspace-mine",
        "build-clean",
        "build-changed",
        "build-detached",
        "build-gone",
    ] {
        let path = place.join(name).display().to_string();
        if name == "build-detached" {
            yard.git(&["worktree", "add", "-q", "--detach", &path]);
        } else {
            yard.git(&["worktree", "add", "-q", "-b", name, &path]);
        }
    }
    fs::write(place.join("build-changed/new.txt"), "mine").unwrap();
    fs::remove_dir_all(place.join("build-gone")).unwrap();
    fs::create_dir(place.join("build-empty")).unwrap();
    fs::create_dir(place.join("build-strange")).unwrap();
    fs::write(place.join("build-strange/x"), "mine").unwrap();
    let file = |name: &str| format!("warning worktrees .tidewheel/tmp-worktrees/{name}");
    let all =
        ["build-changed", "build-clean", "build-detached", "build-empty", "build-gone", "build-strange"];
    assert_eq!(complaints(&yard.home, &[]), all.map(file));
    let told = doctor(&yard.home, &[]).out;
    for command in [
        "`git worktree remove .tidewheel/tmp-worktrees/build-clean`",
        "`git worktree remove --force .tidewheel/tmp-worktrees/build-changed`",
        "`git worktree prune`",
    ] {
        assert!(told.contains(command), "{command}\n{told}");
    }
    let left = ["build-changed", "build-clean", "build-detached", "build-gone", "build-strange"];
    assert_eq!(complaints(&yard.home, &["--fix"]), left.map(file));
    for name in [
        "build-here",
        "odd",
        "workspace-mine",
        "build-clean/a.txt",
        "build-changed/new.txt",
        "build-detached",
        "build-strange/x",
    ] {
        assert!(place.join(name).exists(), "{name}");
    }
    // An empty directory is none.
    assert!(!place.join("build-empty").exists());
    // What was cut off in the making has the lock of Tidewheel.
    yard.git(&[
        "worktree",
        "add",
        "-q",
        "-b",
        "half",
        "--lock",
        "--reason",
        "tidewheel is making it",
        &place.join("build-half").display().to_string(),
    ]);
    assert!(complaints(&yard.home, &[]).contains(&file("build-half")));
    assert!(!complaints(&yard.home, &["--fix"]).contains(&file("build-half")));
    assert!(!place.join("build-half").exists() && place.join("build-clean/a.txt").exists());
    yard.git(&["rev-parse", "--verify", "-q", "half"]);
}

#[test]
fn a_merge_without_a_job_is_left_to_people() {
    let yard = Yard::new();
    yard.job("here", "blocked_by_dependency", 0, json!({}));
    let file = |slug: &str, text: &str| {
        yard.home.file(&format!(".tidewheel/tmp/merge-conflicts/{slug}.json"), text);
    };
    file("known", r#"{"slug": "known", "job_id": "here"}"#);
    assert_eq!(complaints(&yard.home, &[]), [""; 0]);
    file("lost", r#"{"slug": "lost", "job_id": "gone"}"#);
    file("odd", "{");
    let expected = [
        "warning sentinels .tidewheel/tmp/merge-conflicts/lost.json",
        "warning sentinels .tidewheel/tmp/merge-conflicts/odd.json",
    ];
    is_found_and_kept(&yard.home, &expected);
}

#[test]
fn a_stopped_scheduler_is_named_and_waited_for_only_so_long() {
    let yard = Yard::new();
    yard.job("gone", "running", 0, json!({ "child_args": ["--version"], "pid": 1 }));
    // It takes the lock and is stopped by what it starts.
    let lock = yard.path("scheduler.lock").display().to_string();
    let mut holder = Command::new("flock").args([&lock, "-c", "kill -STOP $PPID"]).spawn().unwrap();
    let stat = format!("/proc/{}/stat", holder.id());
    while !fs::read_to_string(&stat).unwrap().contains(") T ") {
        std::thread::yield_now();
    }
    let ran = doctor(&yard.home, &[]);
    let said = format!(
        ".tidewheel/jobs/scheduler.lock: is held by process {} (flock), which is stopped",
        holder.id()
    );
    assert!(ran.code == Some(1) && ran.out.contains(&said), "{ran}");
    let ran = doctor(&yard.home, &["--fix"]);
    assert!(ran.code == Some(1) && ran.out.contains("not fixed supervisors"), "{ran}");
    assert_eq!(yard.record("gone")["status"], "running");
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert_eq!(complaints(&yard.home, &["--fix"]), [""; 0]);
    assert_eq!(yard.record("gone")["status"], "failed");
}

#[test]
fn a_time_that_nobody_waits_for_is_found() {
    let yard = Yard::new();
    yard.job("a", "succeeded", 0, json!({}));
    fs::write(yard.path("index.due"), r#"{"at":"2026-02-01T12:00:00Z","watches":false,"runs":false}"#)
        .unwrap();
    is_found_and_fixed(&yard.home, &["warning lock .tidewheel/jobs/index.due"]);
    fs::write(yard.path("index.due"), r#"{"at":null,"watches":true,"runs":false}"#).unwrap();
    is_found_and_fixed(&yard.home, &["warning lock .tidewheel/jobs/index.due"]);
}

#[test]
fn records_of_the_future_are_found() {
    let yard = Yard::new();
    yard.job("a", "succeeded", 0, json!({ "created_at": "2500-01-01T00:00:00Z" }));
    is_found_and_kept(&yard.home, &["warning clock .tidewheel/jobs/a/job.json"]);
}

#[test]
fn what_people_wrote_is_checked() {
    let home = Home::new();
    home.file(".tidewheel/config.toml", "[scheduler]\nspeed = 1\n");
    is_found_and_kept(&home, &["broken config .tidewheel/config.toml:2"]);
    home.file(
        ".tidewheel/config.toml",
        "[commands]\nship = \"file:ship.toml\"\n[agents.default]\ncommand = [\"no-such-program\"]\n[agents.own]\ncommand = [\"./run.sh\"]\n",
    );
    home.file(".tidewheel/workflows/bad.toml", "id = \"x\"\nversion = \"v1\"\nwhat = 1\n");
    home.file("run.sh", "#!/bin/sh\n");
    let agents = "warning agents .tidewheel/config.toml";
    let template = "broken templates .tidewheel/workflows/bad.toml:3";
    let found = complaints(&home, &[]);
    assert_eq!(found[0], "warning config .tidewheel/config.toml");
    assert!(found.contains(&template.to_owned()), "{found:?}");
    assert_eq!(found.iter().filter(|line| *line == agents).count(), 2, "{found:?}");
    fs::set_permissions(home.path().join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(complaints(&home, &[]).iter().filter(|line| *line == agents).count(), 1);
}

#[test]
fn git_that_is_missing_or_old_or_does_not_know_who_commits_is_told() {
    let yard = repository();
    let bin = yard.home.path().join("bin");
    fs::create_dir(&bin).unwrap();
    let path = bin.display().to_string();
    let levels = |variables: &[(&str, &str)]| {
        let ran = yard.home.run_under(variables, &["doctor", "--format", "json"]);
        assert_eq!(ran.code, Some(0), "{ran}");
        let value: Value = serde_json::from_str(&ran.out).unwrap();
        let all = value["findings"].as_array().unwrap().iter().filter(|finding| finding["check"] == "git");
        all.map(|finding| finding["message"].as_str().unwrap().to_owned()).collect::<Vec<_>>().join("; ")
    };
    assert!(levels(&[("PATH", &path)]).starts_with("cannot be run: "));
    let script = bin.join("git");
    fs::write(&script, "#!/bin/sh\necho git version 2.30.1\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{path}:/usr/bin:/bin");
    assert_eq!(levels(&[("PATH", &path)]), "is too old: git version 2.30.1");
    yard.git(&["config", "user.useConfigOnly", "true"]).git(&["config", "--unset", "user.email"]);
    assert_eq!(levels(&VARIABLES[..1]), "git does not know who commits");
}

#[test]
fn a_link_to_nowhere_is_no_data_directory() {
    let home = Home::new();
    symlink("nowhere", home.path().join(".tidewheel")).unwrap();
    let found = complaints(&home, &[]);
    assert!(found[0].starts_with("broken place "), "{found:?}");
}

#[test]
fn a_store_is_looked_at_beside() {
    let home = shop::home();
    assert_eq!(complaints(&home, &["--store", "orders.db"]), [""; 0]);
    // Somebody changed the logs of three runs.
    assert_eq!(complaints(&home, &["--store", "damaged.db"]), ["broken store damaged.db"; 3]);
    assert_eq!(complaints(&home, &["--store", "newer.db"]), ["broken store newer.db"]);
    home.file("text.db", "no database at all, and long enough to be looked at");
    assert_eq!(complaints(&home, &["--store", "text.db"]), ["broken store text.db"]);
    assert_eq!(complaints(&home, &["--store", "none.db"]), ["broken store none.db"]);
    // Pages that are none, in the middle of a file that begins as it should.
    let mut bytes = fs::read(home.path().join("orders.db")).unwrap();
    let middle = bytes.len() / 2 / 4096 * 4096;
    bytes[middle..middle + 4096].fill(0xa5);
    home.file("torn.db", bytes);
    let found = complaints(&home, &["--store", "torn.db"]);
    assert!(!found.is_empty() && found.iter().all(|line| line == "broken store torn.db"), "{found:?}");
}

#[test]
fn names_that_steer_a_terminal_are_written_out() {
    let yard = Yard::new();
    yard.home
        .file(".tidewheel/tmp-worktrees/a\u{1b}[31m/x", "")
        .file(".tidewheel/jobs/b\u{1b}[2J/job.json", "{}");
    let ran = yard.home.run_under(&[("CLICOLOR_FORCE", "1")], &["doctor"]);
    let plain = crate::errors::without_styles(&ran.out);
    assert!(plain.contains("a\\u{1b}[31m") && plain.contains("b\\u{1b}[2J"), "{plain}");
    assert!(!plain.contains('\u{1b}'), "{plain:?}");
}

#[test]
fn records_and_manifests_that_are_gone_are_named_if_somebody_needs_them() {
    let home = Home::new();
    home.file(
        "two.toml",
        "id = \"template.two\"\nversion = \"v1\"\n[[nodes]]\nid = \"a\"\nkind = \"shell\"\n\
         uses = \"cap.env.shell.command.run\"\nargs = { script = \"true\" }\non.succeeded = [\"b\"]\n\
         [[nodes]]\nid = \"b\"\nkind = \"shell\"\nuses = \"cap.env.shell.command.run\"\nargs = { script = \"true\" }\n\
         gates = [{ kind = \"approval\", required = true }]\n",
    );
    let ran = home.run_under(&VARIABLES, &["run", "two.toml", "--format", "json"]).succeeded();
    let run: Value = serde_json::from_str(&ran.out).unwrap();
    let run = run["run_id"].as_str().unwrap();
    assert_eq!(home.run_under(&VARIABLES, &["jobs", "wait", &format!("wf-{run}-a"), "-q"]).code, Some(0));
    let jobs = home.path().join(".tidewheel/jobs");
    let manifest = jobs.join(format!("runs/{run}.json"));
    let (kept, beside) = (fs::read(&manifest).unwrap(), jobs.join(format!("wf-{run}-a/job.json")));
    fs::remove_file(&manifest).unwrap();
    is_found_and_kept(&home, &[&format!("broken records .tidewheel/jobs/runs/{run}.json")]);
    fs::write(&manifest, kept).unwrap();
    fs::remove_file(&beside).unwrap();
    let found = complaints(&home, &[]);
    assert!(found.contains(&format!("broken records .tidewheel/jobs/wf-{run}-a/job.json")), "{found:?}");
}
