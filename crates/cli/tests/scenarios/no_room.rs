//! Disks that fill up while jobs run: nothing that ran is lost while somebody may still make room, and whoever waits is
//! told what is in the way. The limit on the size of files stands for the disk, so that no test needs one of its own.

use std::fs;
use std::process::Command;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use serde_json::json;

use crate::by_hand::{Desk, job};
use crate::runs::flow_of;
use crate::world::{Ran, World, eventually};

/// Runs the command in a shell, in which a file that may not grow is an error and no signal.
fn run_after(world: &World, before: &str, arguments: &str) -> Ran {
    let mut command = Command::new("sh");
    world.settle_in(&mut command);
    let text = format!("trap '' XFSZ; {before} exec \"$0\" {arguments}");
    Ran::of(command.args(["-c", &text, env!("CARGO_BIN_EXE_tidewheel")]))
}

/// Lets the files that a process writes grow up to this size.
fn limit(process: Pid, size: Option<u64>) {
    let Rlimit { maximum, .. } = getrlimit(Resource::Fsize);
    let limit = Rlimit { current: size, maximum };
    prlimit(Some(process), Resource::Fsize, limit).expect("whoever runs a process may limit it");
}

#[test]
fn an_end_that_there_is_no_room_for_is_put_on_record_when_there_is() {
    let desk = Desk::new();
    desk.pipe("go").flow("f", &flow_of("touch begun; : <go; echo done"));
    let run = run_after(&desk, "", "run f --format json").json()["run_id"].as_str().unwrap().to_owned();
    let id = format!("wf-{run}-one");
    desk.has_begun(&id, "begun");
    let supervisor = desk.supervisor(&id);
    limit(supervisor, Some(0));
    desk.let_go("go");
    // Who takes the turn signs the lock, and there is no room even for that. When it is free again, the first try is over.
    let is_tried = || fs::metadata(desk.in_jobs("scheduler.lock")).unwrap().len() == 0;
    eventually("it was tried", is_tried);
    drop(desk.take_turn());
    // Others do not take the job for lost.
    desk.tick();
    assert_eq!(desk.status(&id), "running");
    limit(supervisor, getrlimit(Resource::Fsize).current);
    assert_eq!(desk.wait(&id).code, Some(0));
    let outcome = fs::read_to_string(desk.in_jobs(&id).join("outcome.json")).unwrap();
    let missing =
        "command.run succeeded; some of its output is lost: 5 bytes could not be written: File too large";
    assert!(outcome.contains(missing), "{outcome}");
}

#[test]
fn who_waits_is_told_once_that_passes_fail_and_why() {
    let desk = Desk::new();
    desk.file(".tidewheel/config.toml", "[scheduler]\nprobe_interval = \"10ms\"\n");
    desk.put(job("lost").status("running").with("pid", 1)).abandon("lost");
    let ran = run_after(&desk, "ulimit -f 0;", "jobs wait lost --timeout 1s");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    for words in ["File too large", "It is tried again for as long as you wait."] {
        assert_eq!(ran.err.matches(words).count(), 1, "{words}: {}", ran.err);
    }
    assert_eq!(desk.wait("lost").code, Some(1));
    assert_eq!(desk.record("lost")["metadata"]["process_liveness_state"], json!("stale_not_running"));
}

#[test]
fn what_was_in_the_way_of_a_supervisor_that_is_gone_is_told() {
    let desk = Desk::new();
    desk.put(job("lost").status("running").with("pid", 1)).abandon("lost");
    desk.file(".tidewheel/jobs/lost/supervisor.log", "error[TW0022]: there is no room\n");
    desk.tick();
    let ran = desk.run(&["jobs", "explain", "lost"]);
    assert!(ran.out.contains("Its supervisor said: error[TW0022]: there is no room"), "{ran:?}");
    // What succeeded has nothing to account for.
    desk.put(job("fine").status("succeeded"));
    desk.file(".tidewheel/jobs/fine/supervisor.log", "error[TW0022]: there is no room\n");
    assert!(!desk.run(&["jobs", "explain", "fine"]).out.contains("no room"));
}
