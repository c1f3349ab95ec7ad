//! What becomes of output: seen as it comes, bounded, and never lost in silence.

use std::fs;

use crate::world::{World, until};

#[test]
fn n_165_a_word_is_in_the_log_while_the_process_runs() {
    let world = World::new();
    let mut supervisor = world.supervise("echo a; while [ ! -e go ]; do sleep 0.01; done; echo b");
    supervisor.started();
    until("the first word", || world.log("stdout.log") == "a\n");
    fs::write(world.root().join("go"), "").unwrap();
    assert_eq!(supervisor.ended().end, "Exited(0)");
    assert_eq!(world.log("stdout.log"), "a\nb\n");
}

#[test]
fn a_flood_is_bounded_and_what_is_dropped_is_counted() {
    const LIMIT: u64 = 1 << 20;
    const LINES: u64 = 10_000_000;
    let world = World::new().with("limit", LIMIT);
    // 100 MB, and the last lines of it.
    let report = world.run(&format!("yes 012345678 | head -n {LINES}; echo the end"));
    assert_eq!(report.end, "Exited(0)");
    assert_eq!(report.log_error, None);
    let (now, before) = (world.log("stdout.log"), world.log("stdout.log.1"));
    assert!(now.len() as u64 <= LIMIT && before.len() as u64 <= LIMIT, "{} {}", now.len(), before.len());
    assert!(now.ends_with("012345678\nthe end\n"));
    let first = now.lines().next().unwrap();
    let told = first.strip_prefix("[tidewheel] the output before this line is in stdout.log.1; ").unwrap();
    assert!(told.ends_with(" bytes before that were dropped"), "{first}");
    assert!(before.lines().skip(1).all(|line| line == "012345678"), "no line is torn");
    assert_eq!(fs::read_dir(world.job()).unwrap().count(), 3, "two parts of one log, and another log");
}

#[test]
fn a_line_longer_than_a_log_is_kept_in_parts() {
    let world = World::new().with("limit", 8_192);
    let report = world.run("head -c 20000 /dev/zero | tr '\\0' x; echo; echo the end");
    assert_eq!(report.end, "Exited(0)");
    assert!(world.log("stdout.log").ends_with("x\nthe end\n"));
    assert!(world.log("stdout.log").len() <= 8_192);
    assert!(world.log("stdout.log.1").len() <= 8_192);
}

#[test]
fn a_pipe_or_a_link_in_the_place_of_a_log_is_refused_and_nothing_is_started() {
    for what in ["mkfifo stdout.log", "ln -s /dev/null stdout.log", "mkdir stdout.log"] {
        let world = World::new();
        let made = std::process::Command::new("sh").args(["-c", what]).current_dir(world.job()).status();
        assert!(made.unwrap().success());
        let why = world.supervise("touch started").failed();
        assert!(why.starts_with("Log {"), "{what}: {why}");
        assert!(!world.root().join("started").exists(), "{what}");
    }
}
