//! Runs the built binary: exit codes, list of commands, choice of cargo; must not start a real build.

use std::process::{Command, Output};

const XTASK: &str = env!("CARGO_BIN_EXE_xtask");

/// Runs xtask with itself in the place of cargo: it refuses what cargo would accept, and nothing is built.
fn xtask(arguments: &[&str]) -> Output {
    run_with_cargo(XTASK, arguments)
}

fn run_with_cargo(cargo: &str, arguments: &[&str]) -> Output {
    Command::new(XTASK)
        .args(arguments)
        .env("CARGO", cargo)
        .output()
        .expect("the binary was built for this test")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn help_lists_every_command_on_stdout() {
    for word in ["help", "--help", "-h"] {
        let output = xtask(&[word]);
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(
            stdout(&output),
            "Usage: cargo xtask <command>\n\
             \n\
             Commands:\n\
             \x20 ci                Runs every check: format, clippy, tests, doc tests, docs\n\
             \x20 test [ARGS…]      Runs all tests and doc tests; ARGS go to cargo test\n\
             \x20 fmt               Formats every source file\n\
             \x20 bench [FILTER…]   Runs the benchmarks and the peers; FILTER chooses among the cases, \"jobs\" the jobs, \"peers\" the peers\n\
             \x20 crash [COUNT]     Runs the crash suites with COUNT kills each (500, 5000 and 1000 if not given), the storms and the foreign texts in full\n\
             \x20 simulate [SEEDS]  Simulates 10,000 runs against a flaky service for each of SEEDS seeds (100 if not given)\n\
             \x20 help              Shows this list\n"
        );
    }
}

#[test]
fn an_unknown_command_exits_with_2_and_lists_the_commands() {
    let output = xtask(&["frobnicate"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(stdout(&output), "");
    assert!(stderr(&output).contains("there is no command 'frobnicate'"));
    assert!(stderr(&output).contains("  crash [COUNT]"));
}

#[test]
fn a_missing_command_exits_with_2_and_lists_the_commands() {
    let output = xtask(&[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("  crash [COUNT]"));
}

#[test]
fn an_argument_without_an_effect_is_refused() {
    for arguments in [["ci", "--fast"], ["fmt", "--check"], ["crash", "some"]] {
        let output = xtask(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(arguments[1]), "{arguments:?}");
    }
}

#[test]
fn ci_stops_at_the_first_stage_that_fails() {
    let output = xtask(&["ci"]);
    let stderr = stderr(&output);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr.contains("'fmt' takes no argument '--all'"), "CARGO was not used: {stderr}");
    assert!(stderr.contains("xtask: format failed after "), "{stderr}");
    assert!(stderr.contains("to run only this step: cargo fmt --all --check"), "{stderr}");
    assert!(!stderr.contains("clippy"), "{stderr}");
}

#[test]
fn crash_hands_the_count_to_the_suite() {
    let shown = |arguments: &[&str]| stderr(&run_with_cargo("/nonexistent/cargo", arguments));
    let line = "cargo test -p tidewheel-cli --test cli -- crash --nocapture";
    assert!(shown(&["crash"]).contains(&format!("TIDEWHEEL_CRASH_KILLS=500 {line}")));
    assert!(shown(&["crash", "7"]).contains(&format!("TIDEWHEEL_CRASH_KILLS=7 {line}")));
}

#[test]
fn a_cargo_that_cannot_be_started_is_named() {
    let output = run_with_cargo("/nonexistent/cargo", &["fmt"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("format: cannot start '/nonexistent/cargo'"));
}
