//! How attempts end: by themselves, by a signal, by their time, by a person.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::world::World;

#[test]
fn a_process_that_ends_well_ends_so_and_its_streams_are_in_their_files() {
    let world = World::new();
    let report = world.run("echo hello; echo oops >&2");
    assert_eq!(report.end, "Exited(0)");
    assert_eq!(world.log("stdout.log"), "hello\n");
    assert_eq!(world.log("stderr.log"), "oops\n");
    assert_eq!(report.stderr, "oops\n");
    assert!(!report.has_children);
    assert_eq!(report.log_error, None);
}

#[test]
fn a_second_attempt_adds_to_the_files() {
    let world = World::new();
    world.run("echo one");
    world.run("echo two");
    assert_eq!(world.log("stdout.log"), "one\ntwo\n");
}

#[test]
fn the_code_of_an_exit_and_the_number_of_a_signal_are_told() {
    assert_eq!(World::new().run("exit 9").end, "Exited(9)");
    assert_eq!(World::new().run("kill -SEGV $$").end, "Signalled(11)");
    assert_eq!(World::new().run("kill -KILL $$").end, "Signalled(9)");
}

#[test]
fn a_process_reads_nothing_and_knows_who_it_is() {
    let world = World::new();
    let report = world.run("cat; env | grep ^TIDEWHEEL_ | grep -v TEST | sort; pwd");
    assert_eq!(report.end, "Exited(0)");
    let data = world.data().canonicalize().unwrap();
    let expected = [
        "TIDEWHEEL_ATTEMPT=2".to_owned(),
        format!("TIDEWHEEL_DIR={}", world.data().display()),
        "TIDEWHEEL_IDEMPOTENCY_KEY=key".to_owned(),
        "TIDEWHEEL_JOB_ID=job".to_owned(),
        format!("TIDEWHEEL_JOB_TOKEN=job:2:{}", data.display()),
        "TIDEWHEEL_NODE=node".to_owned(),
        "TIDEWHEEL_RUN=run_1".to_owned(),
        world.root().canonicalize().unwrap().display().to_string(),
    ];
    assert_eq!(world.log("stdout.log").lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_process_reads_what_it_is_given() {
    let world = World::new();
    std::fs::write(world.root().join("stdin"), "a prompt").unwrap();
    assert_eq!(world.run("cat").end, "Exited(0)");
    assert_eq!(world.log("stdout.log"), "a prompt");
}

#[test]
fn a_program_that_is_not_there_is_not_started() {
    let why = World::new().supervise_program(&["no-such-program-anywhere"]).failed();
    assert!(why.starts_with("Start(") && why.contains("NotFound"), "{why}");
}

#[test]
fn what_cannot_be_put_on_record_does_not_run_on() {
    let world = World::new().with("no_record", 1);
    let why = world.supervise("setsid NAP & NAP").failed();
    assert!(why.starts_with("Record {") && why.contains("no room"), "{why}");
    world.assert_nothing_lives();
}

#[test]
fn a_job_has_no_terminal_since_its_supervisor_leads_a_session() {
    let world = World::new();
    // The fourth word is the parent, the sixth the session, the seventh the terminal.
    assert_eq!(world.run("cut -d' ' -f4,6,7 /proc/$$/stat").end, "Exited(0)");
    let said = world.log("stdout.log");
    let [parent, session, terminal] = said.split_whitespace().collect::<Vec<_>>()[..] else {
        panic!("{said}")
    };
    assert_eq!((session, terminal), (parent, "0"));
}

#[test]
fn what_takes_too_long_is_ended() {
    let world = World::new().with("timeout_ms", 100);
    let report = world.run("echo begun; NAP; echo not reached");
    assert_eq!(report.end, "TimedOut");
    assert!(report.took >= Duration::from_millis(100));
    assert_eq!(world.log("stdout.log"), "begun\n");
    world.assert_nothing_lives();
}

#[test]
fn who_ends_well_when_its_time_is_over_was_too_late_all_the_same() {
    let world = World::new().with("timeout_ms", 200).with("grace_ms", 30_000);
    let report = world.run("trap 'echo tidied up; exit 0' TERM; while :; do sleep 0.01; done");
    assert_eq!(report.end, "TimedOut");
    assert!(report.took < Duration::from_secs(20), "it was not killed, and nobody waited for longer");
    assert_eq!(world.log("stdout.log"), "tidied up\n", "what it writes at its end is kept");
}

#[test]
fn silence_is_counted_from_the_last_word() {
    let world = World::new().with("heartbeat_ms", 400);
    let report = world.run("for i in 1 2 3 4 5 6 7 8; do sleep 0.1; echo $i; done; NAP");
    assert_eq!(report.end, "Silent");
    assert!(report.took >= Duration::from_millis(1_200), "{report:?}");
    assert!(world.log("stdout.log").ends_with("8\n"));
    world.assert_nothing_lives();
}

#[test]
fn i_164_cancel_ends_everything_and_what_would_have_followed_does_not() {
    let world = World::new();
    let mut supervisor = world.supervise("touch begun; NAP; touch f");
    let (pid, _) = supervisor.started();
    world.wait_for("begun");
    world.cancel();
    kill_process_group(Pid::from_raw(pid.try_into().unwrap()).unwrap(), Signal::TERM).unwrap();
    assert_eq!(supervisor.ended().end, "Cancelled");
    world.assert_nothing_lives();
    assert!(!world.root().join("f").exists());
}

#[test]
fn who_ignores_being_asked_to_end_is_killed_when_nobody_but_the_supervisor_cares() {
    // Nobody signals anything: the wish alone is enough.
    let world = World::new();
    let supervisor = world.supervise("trap '' TERM; touch begun; NAP; NAP");
    world.wait_for("begun");
    world.cancel();
    let report = supervisor.ended();
    assert_eq!(report.end, "Cancelled");
    assert!(report.took < Duration::from_secs(20), "{report:?}");
    world.assert_nothing_lives();
}

#[test]
fn a_wish_that_was_there_before_the_start_counts() {
    let world = World::new();
    world.cancel();
    assert_eq!(world.run("NAP").end, "Cancelled");
    world.assert_nothing_lives();
}
