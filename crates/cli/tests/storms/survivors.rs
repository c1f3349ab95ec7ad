//! Jobs that do all they can to survive their end.

use std::fs;
use std::path::Path;

use rustix::process::{Signal, kill_process};

use crate::flow;
use crate::world::{World, eventually, processes_with};

/// What a process does that wants to stay: it says its number, and then it sleeps.
const STAY: &str = "echo $$ >>pids; while :; do sleep 600; done";

/// Ways to get out of reach; each has one process that stays.
fn ways() -> Vec<(&'static str, &'static str)> {
    vec![
        ("plain", "sh stay.sh"),
        ("deaf", "trap '' TERM INT HUP; sh stay.sh"),
        ("a session of its own", "setsid sh stay.sh & sleep 600"),
        ("a fork of a fork", "(setsid sh -c '(sh stay.sh &) &') & sleep 600"),
        ("no output", "(setsid sh stay.sh <&- >&- 2>&- &); sleep 600"),
        ("a parent that ends", "(setsid sh stay.sh &) & sleep 600"),
        ("deaf, in a session of its own", "trap '' TERM HUP; setsid sh stay.sh & sleep 600"),
        ("stopped", "sh stay.sh & until [ -s pids ]; do sleep 0.01; done; kill -STOP $!; sleep 600"),
    ]
}

/// Starts a job and waits until the process that stays has said its number. Returns its id and the number.
fn begun(world: &World, script: &str) -> (String, String) {
    fs::remove_file(world.path("pids")).ok();
    world.file("stay.sh", STAY);
    world.flow("stay", &flow([("n".to_owned(), script.to_owned(), String::new())]));
    let id = format!("wf-{}-n", world.enqueue(&["stay"]));
    let said = || fs::read_to_string(world.path("pids")).unwrap_or_default();
    eventually("it has begun", || said().ends_with('\n'));
    (id, said().trim_end().to_owned())
}

/// Fails if anything of a job lives.
fn is_gone(world: &World, id: &str, pid: &str, way: &str) {
    assert_eq!(processes_with(&format!("TIDEWHEEL_JOB_ID={id}")), [], "{way}");
    let of = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let is_dead = of.is_empty() || of.contains(") Z ") || of.contains(") X ");
    assert!(is_dead || !is_in(world, pid), "{way}: {of}");
}

/// Tells whether a process with that number works in this world: the number may have been given again.
fn is_in(world: &World, pid: &str) -> bool {
    fs::read_link(Path::new("/proc").join(pid).join("cwd")).is_ok_and(|at| at.starts_with(world.outside()))
}

#[test]
fn nothing_of_a_cancelled_job_survives() {
    let world = World::new();
    let without_marks = [("without its environment", "env -i setsid sh stay.sh & sleep 600")];
    for (way, script) in ways().into_iter().chain(without_marks) {
        let (id, pid) = begun(&world, script);
        let ran = world.run(&["jobs", "cancel", &id]);
        assert_eq!(ran.code, Some(0), "{way}: {ran:?}");
        is_gone(&world, &id, &pid, way);
        assert_eq!(world.status(&id), "cancelled", "{way}");
    }
}

#[test]
fn nothing_of_a_job_survives_its_supervisor_and_a_cancellation() {
    let world = World::new();
    for (way, script) in ways() {
        let (id, pid) = begun(&world, script);
        let all = world.processes();
        let supervisor = all.iter().find(|(_, line)| line.contains("__workflow-node") && line.contains(&id));
        kill_process(supervisor.unwrap_or_else(|| panic!("{way}: {all:?}")).0, Signal::KILL).unwrap();
        // Whoever comes first, the scheduler or the person, sees to it.
        let ran = world.run(&["jobs", "cancel", &id]);
        assert!(matches!(ran.code, Some(0 | 1)), "{way}: {ran:?}");
        world.run(&["tick"]);
        is_gone(&world, &id, &pid, way);
        assert!(
            ["cancelled", "failed"].contains(&world.status(&id).as_str()),
            "{way}: {}",
            world.record(&id)
        );
    }
}

#[test]
fn what_a_job_leaves_behind_ends_with_it() {
    let world = World::new();
    for (way, script) in ways() {
        if let Some(script) = script.strip_suffix(" sleep 600") {
            let script = format!("{script} until [ -s pids ]; do sleep 0.01; done");
            let (id, pid) = begun(&world, &script);
            world.wait(&id);
            is_gone(&world, &id, &pid, way);
            assert_eq!(world.status(&id), "succeeded", "{way}");
        }
    }
}
