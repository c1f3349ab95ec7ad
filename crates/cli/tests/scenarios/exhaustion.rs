//! A machine that has no more of something: descriptors, processes, threads. Commands end with an error that names it and
//! says what to do, never by a panic, and what they could not look at is not taken for damaged afterwards.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::runs::flow;
use crate::world::{Ran, World};

/// Runs a command that may have this many open files.
fn with_descriptors(world: &World, most: usize, arguments: &str) -> Ran {
    let mut command = Command::new("sh");
    world.settle_in(&mut command);
    let text = format!("ulimit -n {most}; exec \"$0\" {arguments}");
    Ran::of(command.args(["-c", &text, env!("CARGO_BIN_EXE_tidewheel")]))
}

/// Returns a world with a run of two jobs, the second of which failed, and the id of the run.
fn world() -> (World, String) {
    let world = World::new();
    world.flow("f", &flow(&[("a", "echo a", ""), ("b", "exit 3", "after = [\"a\"]")]));
    let run = world.enqueue(&["f"]);
    assert_eq!(world.wait(&format!("run:{run}")).code, Some(1));
    (world, run)
}

#[test]
fn without_descriptors_no_command_panics_and_each_says_what_to_do() {
    let (world, run) = world();
    fs::write(world.path("runs.db"), "").unwrap();
    let mut short = 0;
    // With four a program can be loaded; with sixteen most commands have enough.
    for most in [4, 6, 8, 10, 12, 16] {
        for arguments in [
            "run f --require-approval",
            "tick",
            "jobs list",
            &format!("jobs show {run}/a"),
            &format!("jobs explain {run}/b"),
            &format!("jobs tail {run}/a"),
            &format!("jobs wait {run}/a"),
            "jobs schedule",
            "jobs gc",
            "runs list",
            &format!("runs show {run}"),
            &format!("runs cancel {run}"),
            "runs list --store runs.db",
            "runs pause r --store runs.db",
            "doctor",
            "graph f",
        ] {
            let ran = with_descriptors(&world, most, arguments);
            let place = format!("{arguments} with {most} descriptors: {ran:?}");
            assert!(matches!(ran.code, Some(0 | 1)), "{place}");
            assert!(!ran.err.contains("panicked"), "{place}");
            if ran.code == Some(1) && ran.err.contains("error[") && ran.err.contains("Too many open files") {
                assert!(ran.err.contains("`ulimit -n`"), "{place}");
                short += 1;
            }
        }
    }
    assert!(short > 10, "{short} commands had too few");
    assert_eq!(world.run(&["tick"]).code, Some(0));
    let listed = world.run(&["jobs", "list", "--all"]);
    assert!(listed.code == Some(0) && listed.err.is_empty(), "{listed:?}");
}

/// A tick that could open no more files once put it into the index that the records are damaged. It stayed there when
/// there were descriptors again, and what came after them was blocked.
#[test]
fn what_could_not_be_opened_is_not_remembered_as_damaged() {
    let (world, run) = world();
    let waiting = world.enqueue(&["f", "--require-approval"]);
    let mut refused = 0;
    for most in 4..=14 {
        // The index knows records by when they were written, and reads those again that are newer.
        for id in world.job_dirs() {
            let path = world.in_jobs(&id).join("job.json");
            if let Ok(text) = fs::read(&path) {
                fs::write(&path, text).unwrap();
            }
        }
        let ran = with_descriptors(&world, most, "tick");
        refused += usize::from(ran.code == Some(1));
        let ran = world.run(&["tick"]);
        assert!(ran.code == Some(0) && ran.err.is_empty(), "after {most} descriptors: {ran:?}");
        let listed = world.run(&["jobs", "list", "--all"]);
        assert!(listed.code == Some(0) && listed.err.is_empty(), "after {most} descriptors: {listed:?}");
        assert_eq!(world.status(&format!("wf-{waiting}-b")), "waiting_on_deps");
        assert_eq!(world.status(&format!("wf-{run}-a")), "succeeded");
    }
    assert!(refused > 1, "{refused} ticks had too few");
}

/// The limit counts the processes of a user, and root has none.
#[test]
fn without_processes_and_threads_a_run_is_enqueued_and_says_why_nothing_starts() {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        println!("only root can act as a user who has no process");
        return;
    }
    // A user of whom nothing else runs.
    let user = 60_000 + std::process::id() % 5_000;
    let world = World::new();
    world.flow("f", &flow(&[("a", "echo a >>log", "")]));
    let limited = |most: u32, arguments: &str| {
        let mut command = Command::new("sh");
        world.settle_in(&mut command);
        // The letter of the limit is not the same in every shell.
        let limit = format!("ulimit -p {most} 2>&- || ulimit -u {most}");
        let text = format!("{limit}; exec \"$0\" {arguments}");
        Ran::of(command.args(["-c", &text, env!("CARGO_BIN_EXE_tidewheel")]).uid(user).gid(user))
    };
    let own = |path: &std::path::Path| std::os::unix::fs::chown(path, Some(user), Some(user)).unwrap();
    for path in [world.outside(), &world.path(""), &world.path(".tidewheel"), &world.in_jobs("")] {
        own(path);
    }
    let is_reachable = limited(1_000, "--version").code == Some(0);
    if !is_reachable {
        println!("the binary is where no other user may run it");
        return;
    }
    let ran = limited(1, "run f --format json");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    for says in
        ["was not started: cannot run", "Resource temporarily unavailable", "no room for more processes"]
    {
        assert!(ran.err.contains(says), "{says}: {ran:?}");
    }
    let listed = limited(1, "runs list --format json");
    assert!(listed.code == Some(0) && listed.out.contains("run_"), "{listed:?}");
    // With processes it goes on, and its one attempt runs once.
    let ran = limited(1_000, "jobs wait a");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(fs::read_to_string(world.path("log")).unwrap(), "a\n");
}
