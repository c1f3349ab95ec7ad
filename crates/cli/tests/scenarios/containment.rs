//! What is cleaned up is only what a record says is owned, and nothing that a job puts into the data directory makes
//! anything wait, or reach out of it.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};

use crate::by_hand::{Desk, Job, job};
use crate::git_world::{builtin, ended, repository, subjects};
use crate::runs::{ONE, flow, flow_of};
use crate::world::{Ran, eventually};

const OLD: &str = "2026-01-01T00:00:00Z";

fn old(id: &str) -> Job {
    job(id).status("succeeded").with("created_at", OLD).with("finished_at", OLD)
}

/// Lets a job own a worktree.
fn with_tree(desk: &Desk, job: Job, name: &str, owner: &str) -> Job {
    let place = format!(".tidewheel/tmp-worktrees/{name}");
    if !desk.path(&place).exists() {
        desk.git(&["worktree", "add", "-q", &place, "-b", &format!("branch-{name}")]);
    }
    job.meta("worktree_owned", true)
        .meta("worktree_path", place.as_str())
        .meta("worktree_name", name)
        .meta("worktree_owner", owner)
        .meta("execution_root", place.as_str())
}

fn pipe(desk: &Desk, name: &str) {
    mknodat(CWD, desk.path(name), FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("a FIFO");
}

#[test]
fn gc_removes_the_worktree_of_the_job_on_record_and_none_that_only_ends_alike() {
    let desk = repository();
    // The id of the old job is the end of that of the other one.
    desk.put(with_tree(&desk, old("build"), "work-build", "build"));
    desk.put(with_tree(&desk, job("nightly-build").gated(), "work-nightly-build", "nightly-build"));
    fs::write(desk.path(".tidewheel/tmp-worktrees/work-nightly-build/new"), "work").unwrap();
    let ran = desk.run(&["jobs", "gc"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(desk.job_dirs(), ["nightly-build"]);
    assert!(!desk.path(".tidewheel/tmp-worktrees/work-build").exists());
    let kept = fs::read_to_string(desk.path(".tidewheel/tmp-worktrees/work-nightly-build/new"));
    assert_eq!(kept.unwrap(), "work");
}

#[test]
fn the_owner_of_a_worktree_stays_while_an_open_job_works_in_it() {
    let desk = repository();
    desk.put(with_tree(&desk, old("owner"), "work-owner", "owner"));
    desk.put(with_tree(&desk, old("middle"), "work-owner", "owner").after(&["owner"]));
    desk.put(job("open").after(&["middle"]).gated());
    assert_eq!(desk.run(&["jobs", "gc"]).code, Some(0));
    assert_eq!(desk.job_dirs(), ["middle", "open", "owner"]);
    assert!(desk.path(".tidewheel/tmp-worktrees/work-owner/README.md").exists());
}

#[test]
fn a_worktree_that_cannot_be_removed_keeps_the_job_that_owns_it() {
    let desk = repository();
    desk.put(with_tree(&desk, old("a"), "work-a", "a"));
    desk.put(old("b"));
    desk.git(&["worktree", "lock", "--reason", "mine", ".tidewheel/tmp-worktrees/work-a"]);
    let ran = desk.run(&["jobs", "gc"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.contains("removed 1 job(s)") && ran.err.contains("mine"), "{ran:?}");
    assert_eq!(desk.job_dirs(), ["a"]);
    desk.git(&["worktree", "unlock", ".tidewheel/tmp-worktrees/work-a"]);
    assert_eq!(desk.run(&["jobs", "gc"]).code, Some(0));
    assert_eq!(desk.job_dirs(), [""; 0]);
    assert!(!desk.path(".tidewheel/tmp-worktrees/work-a").exists());
}

#[test]
fn the_worktrees_of_people_are_never_removed() {
    let desk = repository();
    for name in ["workspace-ada", "tidewheel-workspace-ada"] {
        desk.put(with_tree(&desk, job("r").status("failed").gated(), name, "r"));
        desk.json(&["jobs", "retry", "r"]);
        assert_eq!(desk.record("r")["metadata"]["retry_cleanup_status"], "degraded", "{name}");
        desk.put(with_tree(&desk, job("c").gated(), name, "c"));
        assert_eq!(desk.run(&["jobs", "cancel", "c", "--cleanup-worktree"]).code, Some(0));
        desk.put(with_tree(&desk, old("g"), name, "g"));
        assert_eq!(desk.run(&["jobs", "gc"]).code, Some(0), "{name}");
        assert!(!desk.in_jobs("g").exists());
        assert!(desk.path(&format!(".tidewheel/tmp-worktrees/{name}/README.md")).exists(), "{name}");
    }
    // One that was moved is still known to git by its name.
    let to = ".tidewheel/tmp-worktrees/plain";
    desk.git(&["worktree", "move", ".tidewheel/tmp-worktrees/tidewheel-workspace-ada", to]);
    desk.put(with_tree(&desk, old("g"), "plain", "g"));
    assert_eq!(desk.run(&["jobs", "gc"]).code, Some(0));
    assert!(desk.path(to).join("README.md").exists());
}

#[test]
fn a_commit_without_a_message_has_the_usual_one() {
    let desk = repository();
    desk.file("new", "x");
    let end = ended(&desk, builtin("n", "git.stage_commit", ""));
    assert_eq!(end.end(), ("succeeded", Some(0)), "{end:?}");
    assert_eq!(subjects(&desk, "main")[0], "chore: workflow stage commit");
}

#[test]
fn the_directory_of_the_sentinels_goes_with_the_last_one() {
    let desk = repository();
    let of = |operation: &str, slug: &str| {
        let end = ended(&desk, builtin("n", operation, &format!("args = {{ slug = '{slug}' }}")));
        assert_eq!(end.end(), ("succeeded", Some(0)), "{end:?}");
    };
    let folder = desk.path(".tidewheel/tmp/merge-conflicts");
    of("merge.sentinel.write", "a");
    of("merge.sentinel.write", "b");
    of("merge.sentinel.clear", "a");
    assert!(folder.join("b.json").exists());
    of("merge.sentinel.clear", "b");
    assert!(!folder.exists());
    of("merge.sentinel.clear", "b");
}

#[test]
fn gc_leaves_and_names_what_it_did_not_make() {
    let desk = Desk::new();
    desk.put(old("a"));
    desk.file(".tidewheel/jobs/a/stdout.log", "ours").file(".tidewheel/jobs/a/notes.txt", "mine");
    let gone = desk.run(&["jobs", "gc", "--format", "json"]);
    assert_eq!(gone.code, Some(0), "{gone:?}");
    assert_eq!(gone.json()["left"], json!(["jobs/a/notes.txt"]));
    assert_eq!(gone.json()["removed"], json!(["a"]));
    assert_eq!(fs::read_to_string(desk.path(".tidewheel/jobs/a/notes.txt")).unwrap(), "mine");
    assert!(!desk.path(".tidewheel/jobs/a/stdout.log").exists());
    assert_eq!(desk.json(&["jobs", "list", "--all"])["jobs"], json!([]));
}

#[test]
fn a_pipe_for_the_log_of_a_supervisor_stops_nothing_but_its_job() {
    let desk = Desk::new();
    desk.put(job("bad")).put(job("good"));
    pipe(&desk, ".tidewheel/jobs/bad/supervisor.log");
    // If it waited, this would never come back.
    let ran = desk.run(&["tick"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("supervisor.log: it is a pipe, and no regular file"), "{ran:?}");
    assert_eq!(desk.wait("good").code, Some(0));
    assert_eq!(desk.status("bad"), "queued");
    let doctor = desk.run(&["doctor"]);
    assert!(doctor.out.contains("jobs/bad/supervisor.log: cannot be read: it is a pipe"), "{doctor:?}");
    fs::remove_file(desk.path(".tidewheel/jobs/bad/supervisor.log")).unwrap();
    desk.run(&["tick"]);
    assert_eq!(desk.wait("bad").code, Some(0));
}

#[test]
fn a_lock_of_the_daemon_that_is_a_link_or_a_pipe_makes_nothing_outside_and_blocks_no_command() {
    let desk = Desk::new();
    desk.flow("one", ONE);
    let lock = ".tidewheel/jobs/daemon.lock";
    let outside = desk.outside().join("made");
    fs::create_dir_all(desk.path(".tidewheel/jobs")).unwrap();
    let made: [&dyn Fn(); 2] = [&|| symlink(&outside, desk.path(lock)).unwrap(), &|| pipe(&desk, lock)];
    for (what, make) in [("a link", made[0]), ("a pipe", made[1])] {
        make();
        let ran = desk.run(&["daemon", "--until-idle"]);
        assert!(
            ran.code == Some(1) && ran.err.contains(&format!("it is {what}, and no regular file")),
            "{ran:?}"
        );
        // A command that runs something goes on without a waker.
        assert_eq!(desk.run(&["run", "one", "--follow"]).code, Some(0), "{what}");
        let doctor = desk.run(&["doctor"]);
        assert!(doctor.out.contains(&format!("jobs/daemon.lock: is {what}")), "{doctor:?}");
        assert!(!outside.exists());
        fs::remove_file(desk.path(lock)).unwrap();
    }
}

#[test]
fn a_configuration_that_is_no_regular_file_is_refused_and_nothing_of_it_is_shown() {
    let desk = Desk::new();
    desk.flow("one", ONE);
    let secret = desk.outside().join("secret");
    fs::write(&secret, "password = hunter2\n").unwrap();
    drop(fs::remove_file(desk.path(".tidewheel/config.toml")));
    symlink(&secret, desk.path(".tidewheel/config.toml")).unwrap();
    let refuses = |what: &str| {
        for arguments in [&["run", "one"][..], &["jobs", "list"], &["tick"], &["doctor"]] {
            let ran: Ran = desk.run(arguments);
            let all = format!("{}{}", ran.out, ran.err);
            assert!(ran.code == Some(1) && all.contains(what) && !all.contains("hunter2"), "{ran:?}");
        }
    };
    refuses("it is a link, and no regular file");
    fs::remove_file(desk.path(".tidewheel/config.toml")).unwrap();
    pipe(&desk, ".tidewheel/config.toml");
    refuses("it is a pipe, and no regular file");
}

#[test]
fn a_data_directory_that_is_a_link_is_used() {
    let desk = Desk::new();
    let real = desk.outside().join("data");
    fs::create_dir_all(desk.path(".tidewheel")).unwrap();
    fs::rename(desk.path(".tidewheel"), &real).unwrap();
    symlink(&real, desk.path(".tidewheel")).unwrap();
    desk.file("one.toml", ONE).file(".tidewheel/config.toml", "[scheduler]\ncapacity = 2\n");
    assert_eq!(desk.run(&["run", "one.toml", "--follow"]).code, Some(0));
    assert!(real.join("jobs/scheduler.lock").exists());
}

#[test]
fn what_jobs_write_is_readable_by_their_owner_only() {
    let desk = Desk::new();
    desk.flow("f", &flow_of("echo said; echo complained >&2"));
    // What is there already keeps the rights that it has.
    drop(fs::remove_dir_all(desk.path(".tidewheel/jobs")));
    let run = desk.enqueue(&["f"]);
    let id = format!("wf-{run}-one");
    desk.wait(&id);
    let mode = |path: &str| fs::metadata(desk.path(path)).unwrap().permissions().mode() & 0o777;
    for folder in ["jobs", "jobs/runs", &format!("jobs/{id}")] {
        assert_eq!(mode(&format!(".tidewheel/{folder}")), 0o700, "{folder}");
    }
    let of_job = ["job.json", "outcome.json", "events.jsonl", "stdout.log", "stderr.log", "run.lock"];
    let of_job = of_job.iter().map(|name| format!("jobs/{id}/{name}"));
    let common =
        ["jobs/scheduler.lock".to_owned(), format!("jobs/runs/{run}.json"), "jobs/index.live".to_owned()];
    for file in of_job.chain(common) {
        assert_eq!(mode(&format!(".tidewheel/{file}")), 0o600, "{file}");
    }
}

#[test]
fn gc_makes_room_where_there_is_none() {
    let desk = Desk::new();
    desk.flow("one", ONE);
    let run = desk.enqueue(&["one"]);
    let id = format!("wf-{run}-one");
    desk.wait(&id);
    desk.put(Job(desk.record(&id)).with("created_at", OLD).with("finished_at", OLD));
    desk.put(old("alone"));
    // Nothing may grow any more; what is written last fails, and is not what counts.
    let mut is_gone = false;
    eventually("the supervisor is gone", || {
        let mut command = std::process::Command::new("sh");
        desk.settle_in(&mut command);
        let text = "trap '' XFSZ; ulimit -f 0; exec \"$0\" jobs gc --format json";
        let ran = Ran::of(command.args(["-c", text, env!("CARGO_BIN_EXE_tidewheel")]));
        let removed: Value = serde_json::from_str(&ran.out).unwrap_or_default();
        let count = removed["removed"].as_array().map_or(0, Vec::len);
        let has_run = removed["removed_runs"] == json!([run]);
        // A run goes with its job, or not at all.
        assert_eq!(has_run, !desk.in_jobs(&id).exists() && !is_gone, "{ran:?}");
        is_gone |= has_run;
        assert!(count > 0 || !removed["errors"].as_array().is_none_or(Vec::is_empty), "{ran:?}");
        is_gone
    });
    assert_eq!(desk.job_dirs(), [""; 0]);
    assert_eq!(fs::read_dir(desk.in_jobs("runs")).unwrap().count(), 0);
}

/// What a job can put in the place of a file, as a shell makes it.
const IN_THE_WAY: [(&str, &str); 4] = [
    ("link", "ln -s /nowhere/x $P"),
    ("pipe", "mkfifo $P"),
    ("folder", "mkdir $P"),
    ("full", "mkdir $P; echo mine >$P/mine"),
];

/// It stayed running for ever, and at a capacity of one nothing else ran any more.
#[test]
fn what_a_job_puts_in_the_place_of_its_files_keeps_neither_its_end_nor_another_job() {
    let desk = Desk::new();
    desk.file(".tidewheel/config.toml", "[scheduler]\ncapacity = 1\n");
    let files = ["events.jsonl", "outcome.json", "ended.json", "cancel.json"];
    let nodes: Vec<(String, String)> = files
        .iter()
        .flat_map(|file| {
            IN_THE_WAY.map(|(what, make)| {
                let place = format!("P=$TIDEWHEEL_DIR/jobs/$TIDEWHEEL_JOB_ID/{file}; rm -f $P");
                (format!("{}-{what}", &file[..5]), format!("{place}; {make}"))
            })
        })
        .collect();
    let nodes: Vec<(&str, &str, &str)> =
        nodes.iter().map(|(id, script)| (id.as_str(), script.as_str(), "")).collect();
    desk.flow("f", &flow(&nodes)).flow("one", ONE);
    let ran = desk.run(&["run", "f", "--follow", "--format", "json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let run = ran.json()["run_id"].as_str().unwrap().to_owned();
    assert_eq!(desk.run(&["run", "one", "--follow"]).code, Some(0));
    for (id, _, _) in &nodes {
        let id = format!("wf-{run}-{id}");
        assert_eq!(desk.status(&id), "succeeded", "{id}");
        assert!(desk.in_jobs(&id).join("outcome.json").is_file(), "{id}");
        assert!(desk.events(&id).iter().any(|(_, name)| name == "completed"), "{id}");
    }
    // The scheduler keeps what was in one, and names what it moved.
    for (id, file) in [("event-full", "events.jsonl"), ("outco-full", "outcome.json")] {
        let id = format!("wf-{run}-{id}");
        let kept = desk.in_jobs(&id).join(format!(".in-the-way.{file}/mine"));
        assert_eq!(fs::read_to_string(kept).unwrap(), "mine\n");
        let told = fs::read_to_string(desk.in_jobs(&id).join("supervisor.log")).unwrap();
        let said = format!("/{file} was a directory where a file belongs, and is now `.in-the-way.{file}`");
        assert!(told.starts_with("warning: ") && told.contains(&said), "{told}");
    }
    let why = desk.run(&["jobs", "explain", &format!("wf-{run}-outco-full")]);
    assert!(why.err.contains("/outcome.json was a directory where a file belongs"), "{why:?}");
}

#[test]
fn a_job_without_its_supervisor_ends_whatever_is_in_the_place_of_its_files() {
    let desk = Desk::new();
    desk.file(".tidewheel/config.toml", "[scheduler]\ncapacity = 1\n");
    let mut lost = Vec::new();
    for file in ["run.lock", "events.jsonl", "outcome.json", "ended.json", "cancel.json"] {
        for (what, make) in IN_THE_WAY {
            let id = format!("{}-{what}", &file[..3]);
            desk.put(job(&id).status("running").with("pid", 1)).abandon(&id);
            let path = desk.in_jobs(&id).join(file);
            fs::remove_file(&path).ok();
            let mut shell = std::process::Command::new("sh");
            desk.settle_in(&mut shell);
            assert_eq!(Ran::of(shell.env("P", &path).args(["-c", make])).code, Some(0));
            lost.push(id);
        }
    }
    // A text that is no answer is none either.
    desk.put(job("text").status("running").with("pid", 1)).abandon("text");
    desk.file(".tidewheel/jobs/text/ended.json", "what").file(".tidewheel/jobs/text/cancel.json", "what");
    desk.put(job("next"));
    let ran = desk.run(&["tick"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for id in &lost {
        let record = desk.record(id);
        assert_eq!(record["status"], "failed", "{id}");
        assert_eq!(record["metadata"]["process_liveness_state"], "stale_not_running", "{id}");
    }
    assert_eq!(desk.status("text"), "cancelled");
    for told in
        ["run-pipe/run.lock was a pipe where a file belongs", "eve-link/events.jsonl", "text/ended.json"]
    {
        assert!(ran.err.contains(told), "{told}: {ran:?}");
    }
    assert_eq!(desk.wait("next").code, Some(0));
    // The obstacle is gone, so that nothing is in the way of the next attempt.
    assert_eq!(desk.run(&["jobs", "retry", "eve-link"]).code, Some(0));
}

#[test]
fn a_supervisor_whose_lock_was_replaced_is_not_taken_for_gone() {
    let desk = Desk::new();
    desk.pipe("go").pipe("gate").pipe("never");
    // Before its process is on record, a job without its lock is given up.
    let replace = "touch begun; : <go; P=$TIDEWHEEL_DIR/jobs/$TIDEWHEEL_JOB_ID/run.lock; rm $P; mkfifo $P";
    desk.flow("f", &flow_of(&format!("{replace}; : <gate")));
    let id = format!("wf-{}-one", desk.enqueue(&["f"]));
    desk.has_begun(&id, "begun");
    desk.let_go("go");
    let is_replaced = |id: &str| {
        let lock = fs::symlink_metadata(desk.in_jobs(id).join("run.lock"));
        lock.is_ok_and(|found| !found.is_file())
    };
    eventually("the lock is replaced", || is_replaced(&id));
    desk.tick();
    assert_eq!(desk.status(&id), "running");
    desk.let_go("gate");
    desk.wait(&id);
    assert_eq!(desk.status(&id), "succeeded");
    // The whole run is cancelled, and no job of it is left out.
    fs::remove_file(desk.path("begun")).unwrap();
    let script = format!("{replace}; : <never");
    desk.flow("g", &flow(&[("a", &script, ""), ("b", "touch other; : <never", "")]));
    let run = desk.enqueue(&["g"]);
    let [a, b] = ["a", "b"].map(|node| format!("wf-{run}-{node}"));
    desk.has_begun(&a, "begun");
    desk.has_begun(&b, "other");
    desk.let_go("go");
    eventually("the lock is replaced", || is_replaced(&a));
    let ran = desk.run(&["runs", "cancel", &run]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!([a, b].map(|id| desk.status(&id)), ["cancelled", "cancelled"]);
}

#[test]
fn a_pipe_in_the_place_of_a_row_an_artifact_or_a_job_is_found_and_stops_nothing() {
    let desk = Desk::new();
    desk.flow("one", ONE);
    let places = ["keys/61.json", "artifacts/custom/61/62/a.json", "artifacts/data/61/62/a.json", "wf-x"];
    for place in places {
        fs::create_dir_all(desk.in_jobs(place).parent().unwrap()).unwrap();
        pipe(&desk, &format!(".tidewheel/jobs/{place}"));
    }
    assert_eq!(desk.run(&["run", "one", "--follow"]).code, Some(0));
    let doctor = desk.run(&["doctor"]);
    let words = doctor.out.split_whitespace().collect::<Vec<_>>().join(" ");
    for place in places {
        assert!(
            words.contains(&format!("jobs/{place}: cannot be read: it is a pipe")),
            "{place}: {doctor:?}"
        );
    }
}

#[test]
fn a_tick_names_the_job_whose_record_is_lost_until_it_is_back() {
    let desk = Desk::new();
    desk.flow("one", ONE);
    let id = format!("wf-{}-one", desk.enqueue(&["one"]));
    desk.wait(&id);
    desk.tick();
    let away = desk.outside().join("away");
    for lost in [desk.in_jobs(&id).join("job.json"), desk.in_jobs(&id)] {
        fs::rename(&lost, &away).unwrap();
        for _ in 0..2 {
            let ran = desk.run(&["tick"]);
            let said = format!("job {id}: its record cannot be read: it is gone");
            assert!(ran.code == Some(1) && ran.err.contains(&said), "{ran:?}");
        }
        fs::rename(&away, &lost).unwrap();
        desk.tick();
    }
    // A directory that never had one is not missed.
    fs::create_dir(desk.in_jobs("wf-other-one")).unwrap();
    desk.tick();
}
