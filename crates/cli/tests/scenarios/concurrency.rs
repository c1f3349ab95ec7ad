//! Crashes, and many at once.

use std::fs;

use serde_json::{Value, json};

use crate::by_hand::{Desk, at, job, standing};
use crate::runs::{ONE, flow, flow_of};
use crate::world::{eventually, processes_with};
use rustix::process::{Signal, kill_process};

#[test]
fn n_155_a_running_job_without_a_supervisor_has_failed() {
    let desk = Desk::new();
    // A number that no process has, with a time at which none of them started.
    desk.put(job("dead").status("running").with("pid", 4_000_000).with("process_start_time", 1));
    desk.put(job("no-pid").status("running")).put(job("next").after(&["dead"]));
    desk.abandon("dead").abandon("no-pid").tick();
    for (id, state) in [("dead", "stale_not_running"), ("no-pid", "stale_missing_pid")] {
        let record = desk.record(id);
        assert_eq!((&record["status"], &record["exit_code"]), (&json!("failed"), &json!(1)), "{record}");
        assert_eq!(record["metadata"]["process_liveness_state"], state);
        assert!(record["finished_at"].is_string() && desk.in_jobs(id).join("outcome.json").exists());
    }
    let blocked = "dependency failed for job dead (failed)";
    assert_eq!(desk.standing("next"), standing("blocked_by_dependency", "dependencies", blocked));
}

#[test]
fn n_155_a_job_whose_lock_was_never_there_has_no_supervisor() {
    let desk = Desk::new();
    desk.put(job("dead").status("running").with("pid", 4_000_000));
    desk.abandon("dead");
    fs::remove_file(desk.in_jobs("dead/run.lock")).unwrap();
    desk.tick();
    assert_eq!(desk.record("dead")["metadata"]["process_liveness_state"], "stale_not_running");
}

#[test]
fn n_156_the_number_of_somebody_elses_process_does_not_make_a_job_alive_and_it_is_not_ended() {
    let desk = Desk::new();
    let mut other = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let pid = other.id();
    // The number was given again: the process with it started at another time.
    desk.put(job("dead").status("running").with("pid", pid).with("process_start_time", 1));
    desk.abandon("dead").tick();
    assert_eq!(desk.status("dead"), "failed");
    assert!(other.try_wait().unwrap().is_none(), "it lives");
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn n_155_what_a_dead_supervisor_left_running_is_ended_before_its_locks_are_free() {
    let desk = Desk::new();
    let lock = "locks = [{ key = \"k\", mode = \"exclusive\" }]\n";
    desk.flow("long", &(flow_of("touch begun; sleep 600; touch over") + lock));
    let run = desk.enqueue(&["long"]);
    let id = format!("wf-{run}-one");
    desk.flow("next", &(flow_of("true") + lock));
    let next = format!("wf-{}-one", desk.enqueue(&["next"]));
    eventually("it has begun and is on record", || {
        desk.path("begun").exists() && desk.record(&id)["pid"].is_u64()
    });
    let supervisor = desk.supervisor(&id);
    kill_process(supervisor, Signal::KILL).unwrap();
    eventually("the next one is done", || {
        desk.tick();
        desk.status(&next) == "succeeded"
    });
    let record = desk.record(&id);
    assert_eq!((&record["status"], &record["exit_code"]), (&json!("failed"), &json!(1)), "{record}");
    assert_eq!(record["metadata"]["process_liveness_state"], "stale_not_running");
    assert_eq!(processes_with(&format!("TIDEWHEEL_JOB_ID={id}")), []);
    assert!(!desk.path("over").exists());
}

#[test]
fn a_job_that_was_lost_is_not_told_to_have_exited() {
    let desk = Desk::new();
    desk.file(".tidewheel/config.toml", "[scheduler]\nprobe_interval = \"50ms\"\n");
    desk.flow("long", &flow_of("touch begun; sleep 600"));
    let id = format!("wf-{}-one", desk.enqueue(&["long"]));
    desk.has_begun(&id, "begun");
    kill_process(desk.supervisor(&id), Signal::KILL).unwrap();
    let ran = desk.run(&["jobs", "wait", &id]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), "one: failed (lost: its supervisor is gone)\n"));
    let shown = desk.run(&["jobs", "show", &id]).out;
    assert!(shown.contains("Exit code: 1, lost: its supervisor is gone\n"), "{shown}");
    assert_eq!(desk.json(&["jobs", "show", &id])["exit_code"], "1");
    let told = desk.json(&["jobs", "explain", &id]);
    assert!(told["summary"].as_str().unwrap().ends_with(", lost with its supervisor."), "{told}");
}

#[test]
fn n_157_a_hundred_jobs_that_end_at_once_all_succeed() {
    let desk = Desk::new();
    let nodes: String = (0..100)
        .map(|index| {
            format!(
                "[[nodes]]\nid = \"n{index}\"\nkind = \"shell\"\nuses = \"cap.env.shell.command.run\"\n\
                 args = {{ script = \"true\" }}\nlocks = [{{ key = \"k{index}\", mode = \"exclusive\" }}]\n"
            )
        })
        .collect();
    desk.flow("wide", &format!("id = \"T\"\nversion = \"v1\"\n{nodes}"));
    let ran = desk.run(&["run", "wide", "--follow", "--format", "json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.json()["succeeded"].as_array().unwrap().len(), 100);
    for id in desk.job_dirs() {
        let record = desk.record(&id);
        assert_eq!((&record["status"], &record["exit_code"]), (&json!("succeeded"), &json!(0)), "{record}");
    }
}

#[test]
fn n_158_a_root_is_never_seen_without_its_gates() {
    let desk = Desk::new();
    desk.flow("touch", &flow_of("echo x >>ran"));
    std::thread::scope(|scope| {
        let enqueue = || {
            for _ in 0..10 {
                desk.enqueue(&["touch", "--require-approval"]);
            }
        };
        let first = scope.spawn(enqueue);
        let second = scope.spawn(enqueue);
        while !(first.is_finished() && second.is_finished()) {
            desk.tick();
        }
    });
    desk.tick();
    assert!(!desk.path("ran").exists());
    let all = desk.job_dirs();
    assert_eq!(all.len(), 20);
    assert!(all.iter().all(|id| desk.status(id) == "waiting_on_approval"));
}

#[test]
fn n_159_a_killed_scheduler_leaves_no_lock_behind() {
    let desk = Desk::new();
    desk.put(job("one"));
    let lock = fs::File::create(desk.in_jobs("scheduler.lock")).unwrap();
    lock.lock().unwrap();
    let mut waits = desk.command(&["tick", "--format", "json"]).spawn().unwrap();
    // Whoever holds the lock has its turn; its content does not matter.
    fs::write(desk.in_jobs("scheduler.lock"), "pid 1 since ever").unwrap();
    assert_eq!(desk.status("one"), "queued");
    waits.kill().unwrap();
    waits.wait().unwrap();
    drop(lock);
    assert_eq!(desk.tick().started, ["one"]);
}

#[test]
fn n_162_names_with_separators_are_refused() {
    let desk = Desk::new();
    fs::create_dir_all(desk.outside().join("x")).unwrap();
    fs::copy(desk.path(".tidewheel/config.toml"), desk.outside().join("x/job.json")).unwrap();
    for id in
        ["../../x", "../../../x", "/etc", ".", "..", "a/../b", "x\n", "", "runs", "artifacts", "\u{1b}[2J"]
    {
        for verb in ["status", "show", "tail", "cancel", "retry", "approve", "reject", "wait"] {
            let ran = desk.run(&["jobs", verb, id]);
            assert!(matches!(ran.code, Some(1 | 2)), "{verb} {id:?}: {ran:?}");
            assert!(!ran.err.contains('\u{1b}'), "{ran:?}");
        }
    }
    let text = flow(&[("a", "true", "needs = [{ merge_sentinel = { slug = \"${slug}\" } }]")]);
    desk.flow("slug", &(text + "[params]\nslug = \"ok\"\n"));
    for slug in ["../../x", "/x", "a/b", "..", ""] {
        let ran = desk.run(&["run", "slug", "--set", &format!("slug={slug}")]);
        assert!(matches!(ran.code, Some(1 | 2)), "{slug}: {ran:?}");
        assert_eq!(desk.job_dirs(), [""; 0]);
    }
}

#[test]
fn n_163_the_index_may_be_deleted_at_any_time() {
    let desk = Desk::new();
    desk.put(job("dep").status("running")).put(job("one").after(&["dep"]));
    desk.tick();
    for entry in fs::read_dir(desk.in_jobs("")).unwrap().flatten() {
        if entry.file_name().to_string_lossy().starts_with("index.") {
            fs::remove_file(entry.path()).unwrap();
        }
    }
    assert_eq!(desk.tick().updated, [""; 0]);
    desk.end("dep", "succeeded");
    desk.succeeds("one");
}

#[test]
fn a_job_goes_on_when_the_command_that_started_it_is_killed() {
    let desk = Desk::new();
    desk.flow(
        "long",
        &flow(&[
            ("one", "touch begun; while [ ! -e go ]; do sleep 0.02; done", ""),
            ("two", "touch over", "after = [\"one\"]"),
        ]),
    );
    let mut command = desk.command(&["run", "long", "--follow"]).spawn().unwrap();
    eventually("it has begun", || desk.path("begun").exists());
    command.kill().unwrap();
    command.wait().unwrap();
    desk.file("go", "");
    let last = desk.job_dirs().pop().unwrap();
    desk.wait(&last);
    assert!(desk.path("over").exists());
}

#[test]
fn a_record_changed_by_hand_is_seen() {
    let desk = Desk::new();
    desk.flow("one", ONE);
    desk.put(job("one").gated());
    desk.tick();
    let mut record = desk.record("one");
    record["schedule"]["approval"] = Value::Null;
    desk.put(crate::by_hand::Job(record));
    assert_eq!(desk.tick().started, ["one"]);
    desk.wait("one");
    assert_eq!(at(&desk.record("one"), "/schedule/wait_reason"), &Value::Null);
    fs::remove_dir_all(desk.in_jobs("one")).unwrap();
    assert_eq!(desk.run(&["jobs", "status", "one"]).code, Some(1));
}

#[test]
fn when_nothing_is_left_to_do_nothing_keeps_running() {
    let desk = Desk::new();
    let text = flow(&[("one", "test -e again || { touch again; exit 1; }", "")])
        + "[[policies]]\nmatch = { default = true }\nmax_retries = 1\nbackoff = \"fixed\"\nbase_delay = \"300ms\"\n";
    desk.flow("again", &text);
    // Nobody follows: the retry is done all the same.
    let run = desk.enqueue(&["again"]);
    let id = format!("wf-{run}-one");
    eventually("the retry is done", || desk.status(&id) == "succeeded");
    eventually("everybody has gone", || desk.processes().is_empty());
}

#[test]
fn a_run_that_a_job_follows_gets_the_slot_of_the_job() {
    let desk = Desk::new();
    desk.file(".tidewheel/config.toml", "[scheduler]\ncapacity = 1\n");
    let binary = env!("CARGO_BIN_EXE_tidewheel");
    desk.flow("inner", &crate::runs::flow_of("echo inner >>log"));
    desk.flow("middle", &crate::runs::flow_of(&format!("{binary} run inner --follow && echo middle >>log")));
    desk.flow("outer", &crate::runs::flow_of(&format!("{binary} run middle --follow && echo outer >>log")));
    let ran = desk.run(&["run", "outer", "--follow"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(desk.lines("log"), ["inner", "middle", "outer"]);
}

/// The job held its slot while it waited, and what it waited for never got one.
#[test]
fn a_job_that_a_job_waits_for_in_any_way_gets_its_slot() {
    let binary = env!("CARGO_BIN_EXE_tidewheel");
    let empty = "env -i PATH=\"$PATH\" TW_WORLD=\"$TW_WORLD\"";
    for waits in [
        format!("{binary} run inner && {binary} jobs attach child"),
        format!("{binary} run inner && {binary} jobs tail --follow child"),
        format!("{empty} {binary} run inner --follow"),
    ] {
        let desk = Desk::new();
        desk.file(".tidewheel/config.toml", "[scheduler]\ncapacity = 1\n");
        desk.flow("inner", &crate::runs::flow_of("echo inner >>log").replace("\"one\"", "\"child\""));
        desk.flow("outer", &crate::runs::flow_of(&format!("{waits} && echo outer >>log")));
        let ran = desk.run(&["run", "outer", "--follow"]);
        assert_eq!(ran.code, Some(0), "{waits}: {ran:?}");
        assert_eq!(desk.lines("log"), ["inner", "outer"], "{waits}");
    }
}

#[test]
fn who_waits_for_the_scheduler_lock_says_who_holds_it() {
    use std::io::{BufRead as _, BufReader};
    let desk = Desk::new();
    desk.tick();
    let lock = std::fs::File::options().read(true).write(true).open(desk.in_jobs("scheduler.lock")).unwrap();
    lock.lock().unwrap();
    desk.flow("one", &crate::runs::flow_of("true"));
    for arguments in [&["tick"][..], &["jobs", "gc"], &["run", "one"], &["run", "one", "--follow"]] {
        let mut child = desk.command(arguments).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let holder = format!("waiting for the scheduler lock, which process {} holds", std::process::id());
        let unlisted = "waiting for the scheduler lock, which another process holds";
        assert!(line.contains(&holder) || line.contains(unlisted), "{line}");
    }
    drop(lock);
    // The holder says what it does and since when, for people who look.
    assert_eq!(desk.run(&["tick"]).code, Some(0));
    let content = std::fs::read_to_string(desk.in_jobs("scheduler.lock")).unwrap();
    assert!(content.contains(" tidewheel tick, since 20"), "{content}");
}
