//! One call of an enqueue fails, each of them in its turn: afterwards the run is there as a whole or not at all, the
//! command says which, and the next run is enqueued as if nothing had been.

use std::fs;
use std::process::Command;

use crate::runs::flow;
use crate::world::{Ran, World};

/// The calls by which files are made, written, moved, synced and locked.
const CALLS: [&str; 13] = [
    "mkdirat",
    "openat2",
    "openat",
    "write",
    "pwrite64",
    "renameat",
    "unlinkat",
    "ftruncate",
    "fsync",
    "fdatasync",
    "syncfs",
    "flock",
    "statx",
];

/// Runs a command of which one call fails; `None` if it makes fewer of them.
fn with_fault(world: &World, call: &str, number: usize, arguments: &[&str]) -> Option<Ran> {
    let record = world.outside().join("calls");
    let mut command = Command::new("strace");
    world.settle_in(&mut command);
    command.args(["-f", "-qq", "-e", "signal=none", "-e", &format!("trace={call}")]);
    command.args(["-e", &format!("inject={call}:error=EIO:when={number}"), "-o"]).arg(&record);
    let ran = Ran::of(command.arg("--").arg(env!("CARGO_BIN_EXE_tidewheel")).args(arguments));
    let calls = fs::read_to_string(&record).expect("strace writes its record");
    calls.contains("(INJECTED)").then_some(ran)
}

#[test]
fn whichever_call_of_an_enqueue_fails_the_run_is_there_as_a_whole_or_not_at_all() {
    let works = Command::new("strace").args(["-qq", "-e", "trace=none", "true"]).output();
    if !works.is_ok_and(|output| output.status.success()) {
        println!("strace is not there: no calls were failed");
        return;
    }
    // Every call when asked for; otherwise a part of the many that read.
    let is_full = std::env::var("TIDEWHEEL_STORM").is_ok_and(|text| text == "full");
    let (mut failed, mut there, mut gone) = (0, 0, 0);
    for call in CALLS {
        let step = if is_full || !matches!(call, "openat" | "openat2" | "statx" | "write") { 1 } else { 5 };
        for number in (1..).step_by(step) {
            let world = World::new();
            world.flow("f", &flow(&[("a", "true", ""), ("b", "true", "after = [\"a\"]"), ("c", "true", "")]));
            // Nothing of it starts, so that only the enqueue is failed.
            let Some(ran) = with_fault(&world, call, number, &["run", "f", "--require-approval"]) else {
                break;
            };
            let place = format!("{call} {number}: {ran:?}");
            if ran.code == Some(127) {
                // The system could not load the program.
                continue;
            }
            failed += 1;
            assert!(matches!(ran.code, Some(0 | 1)), "{place}");
            let listed = world.run(&["runs", "list", "--format", "json"]);
            assert_eq!(listed.code, Some(0), "{place}: {listed:?}");
            let runs = listed.json()["runs"].as_array().unwrap().clone();
            let told = format!("{}{}", ran.out, ran.err);
            match &runs[..] {
                [] => {
                    gone += 1;
                    assert!(ran.code == Some(1) && ran.err.contains("error["), "{place}");
                    assert!(!told.contains("enqueued"), "{place}");
                }
                [run] => {
                    there += 1;
                    let id = run["id"].as_str().unwrap();
                    assert_eq!(run["status"], "waiting", "{place}");
                    let shown = world.json(&["runs", "show", id]);
                    assert_eq!(shown["jobs"].as_array().unwrap().len(), 3, "{place}: {shown}");
                    // A command that fails after the fact says that the run is there all the same.
                    assert!(told.contains("enqueued") && told.contains(id), "{place}");
                }
                _ => panic!("{place}: {runs:?}"),
            }
            let again = world.run(&["run", "f", "--follow"]);
            assert_eq!(again.code, Some(0), "after {place}: {again:?}");
        }
    }
    println!(
        "figure: calls of an enqueue failed: {failed}, the run was there {there} times, and {gone} times not"
    );
    assert!(failed > 40 && there > 0 && gone > 10, "{failed} calls failed, {there} there, {gone} gone");
}
