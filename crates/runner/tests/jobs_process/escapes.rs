//! Processes that would rather stay.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use crate::world::World;

#[test]
fn what_a_job_leaves_in_the_background_ends_with_it() {
    let world = World::new();
    let report = world.run("NAP & NAP & exit 3");
    assert_eq!(report.end, "Exited(3)", "the end of the job is that of its first process");
    assert!(!report.has_children);
    world.assert_nothing_lives();
}

#[test]
fn a_session_of_ones_own_is_no_refuge() {
    let world = World::new();
    assert_eq!(world.run("setsid NAP & sleep 0.1; exit 0").end, "Exited(0)");
    world.assert_nothing_lives();
}

#[test]
fn two_forks_and_closed_streams_are_no_refuge() {
    let world = World::new();
    let script = "(setsid sh -c 'NAP <&- >&- 2>&- & NAP & true' & ) ; sleep 0.1; echo done";
    let report = world.run(script);
    assert_eq!(report.end, "Exited(0)");
    assert!(!report.has_children);
    assert_eq!(world.log("stdout.log"), "done\n");
    world.assert_nothing_lives();
}

#[test]
fn an_empty_environment_is_no_refuge() {
    let world = World::new();
    assert_eq!(world.run("env -i setsid NAP & sleep 0.1; exit 0").end, "Exited(0)");
    world.assert_nothing_lives();
}

#[test]
fn who_ignores_being_asked_is_killed_after_its_grace() {
    let world = World::new().with("timeout_ms", 300).with("grace_ms", 200);
    let report = world.run("trap '' TERM HUP INT; setsid sh -c 'trap \"\" TERM; NAP; NAP' & NAP; NAP");
    assert_eq!(report.end, "TimedOut");
    assert!(report.took >= Duration::from_millis(500), "it had its grace: {report:?}");
    world.assert_nothing_lives();
}

#[test]
fn who_was_stopped_hears_of_the_end() {
    let world = World::new().with("timeout_ms", 300).with("grace_ms", 20_000);
    let report = world.run("trap 'echo heard; exit' TERM; kill -STOP $$; NAP");
    assert_eq!(report.end, "TimedOut");
    assert!(report.took < Duration::from_secs(10), "it was not killed: {report:?}");
    assert_eq!(world.log("stdout.log"), "heard\n");
    world.assert_nothing_lives();
}

#[test]
fn processes_that_do_nothing_but_start_others_are_overtaken() {
    let world = World::new().with("timeout_ms", 300).with("grace_ms", 100);
    // Each lives only until it has started the next one; the file lets them end even if this test fails.
    let go = world.root().join("go");
    fs::write(&go, "").unwrap();
    let script = "trap '' TERM; f() { [ -e go ] && f & }; f; f; f; setsid sh -c \"$STORM\" & NAP; NAP";
    let script =
        format!("STORM='trap \"\" TERM; # {}\nf() {{ [ -e go ] && f & }}; f; f'; {script}", world.nap);
    let report = world.run(&script);
    assert_eq!(report.end, "TimedOut");
    assert!(!report.has_children);
    world.assert_nothing_lives();
    fs::remove_file(go).unwrap();
}

#[test]
fn hundreds_of_processes_are_ended_at_once() {
    let world = World::new().with("timeout_ms", 3_000).with("grace_ms", 100);
    let script = "trap '' TERM; i=0; while [ $i -lt 450 ]; do NAP & i=$((i+1)); done; touch all; NAP";
    let report = world.run(script);
    assert_eq!(report.end, "TimedOut");
    assert!(world.root().join("all").exists(), "all of them were started");
    world.assert_nothing_lives();
}

#[test]
fn a_supervisor_that_a_job_starts_is_not_a_part_of_it() {
    let world = World::new();
    let supervisor = world.root().join("supervisor");
    fs::write(&supervisor, "#!/bin/sh\n: >begun\nsleep \"$2\"\n").unwrap();
    fs::set_permissions(&supervisor, fs::Permissions::from_mode(0o700)).unwrap();
    let start = format!("TIDEWHEEL_DETACHED=1 setsid ./supervisor __workflow-node {} ", world.nap);
    let report = world.run(&(start + ">/dev/null 2>&1 & until [ -e begun ]; do :; done; exit 0"));
    assert_eq!(report.end, "Exited(0)");
    assert!(report.has_children, "it is there");
    assert!(!world.living().is_empty());
}

#[test]
fn the_variable_of_a_supervisor_is_no_refuge() {
    let world = World::new();
    assert_eq!(world.run("TIDEWHEEL_DETACHED=1 setsid NAP & sleep 0.1; exit 0").end, "Exited(0)");
    world.assert_nothing_lives();
}
