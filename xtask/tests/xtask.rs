//! Runs the built binary: exit codes, list of commands, choice of cargo; must not start a real build.

use std::fs;
use std::path::{Path, PathBuf};
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
             \x20 ci                     Runs every check: format, clippy, tests, doc tests, docs\n\
             \x20 test [ARGS…]           Runs all tests and doc tests; ARGS go to cargo test\n\
             \x20 fmt                    Formats every source file\n\
             \x20 docs                   Writes the references of docs/ anew: commands, templates, configuration, policies, errors\n\
             \x20 bench [FILTER…]        Runs the benchmarks and the peers; FILTER chooses among the cases, \"jobs\" the jobs, \"peers\" the peers; \"report [--quick] [--from-last]\" writes docs/benchmarks.md\n\
             \x20 crash [COUNT] [SUITE…] Runs the long crash suites, or those that are named, with COUNT kills each where there is a choice, and writes docs/reliability.md\n\
             \x20 simulate [SEEDS]       Simulates 10,000 runs against a flaky service for each of SEEDS seeds (100 if not given)\n\
             \x20 dist [--debug]         Builds the release and writes what packages need into target/dist: manual pages, completions\n\
             \x20 help                   Shows this list\n"
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
    for arguments in
        [&["ci", "--fast"][..], &["fmt", "--check"], &["crash", "some"], &["bench", "report", "--fast"]]
    {
        let output = xtask(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(arguments[arguments.len() - 1]), "{arguments:?}");
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
    let line = "cargo test -p tidewheel-cli --test cli -- crash:: --test-threads=1 --nocapture";
    for (arguments, count) in [(&["crash", "decide"][..], "500"), (&["crash", "7", "decide"], "7")] {
        let shown = shown(arguments);
        assert!(
            shown.contains(&format!("TIDEWHEEL_CRASH_KILLS={count} ")) && shown.contains(line),
            "{shown}"
        );
        assert!(shown.contains("xtask: did not pass: decide, cannot be started"), "{shown}");
        assert!(!shown.contains("is written"), "a page of nothing: {shown}");
    }
}

#[test]
fn a_cargo_that_cannot_be_started_is_named() {
    let output = run_with_cargo("/nonexistent/cargo", &["fmt"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("format: cannot start '/nonexistent/cargo'"));
}

/// Returns an empty folder in the place of the workspace.
fn workspace(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("the folder of an earlier run can be removed");
    }
    fs::create_dir_all(&folder).expect("a folder can be made");
    folder
}

/// Writes a report in a workspace, with a cargo that cannot be started.
fn report(workspace: &Path, options: &[&str]) -> Output {
    Command::new(XTASK)
        .args(["bench", "report"])
        .args(options)
        .env("CARGO", "/nonexistent/cargo")
        .env("CARGO_MANIFEST_DIR", workspace.join("xtask"))
        .output()
        .expect("the binary was built for this test")
}

#[test]
fn no_page_is_written_from_figures_that_are_not_there() {
    let workspace = workspace("nothing measured");
    let output = report(&workspace, &["--from-last"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("nothing is measured yet\nto measure: cargo xtask bench report"));
    assert!(!workspace.join("docs").exists());
}

#[test]
fn a_page_is_written_from_what_was_measured_last() {
    let workspace = workspace("measured last");
    let kept = workspace.join("target/bench-report");
    let estimates = kept.join("criterion/kernel/retry/new");
    fs::create_dir_all(&estimates).unwrap();
    let conditions = r#"{"began":0,"is_quick":true,"commit":"abc","is_changed":true,"toolchain":null,
        "processor":null,"cores":2,"memory_kib":null,"kernel":null,"load":0.5,
        "steps":[{"name":"decide","command":"cargo bench","seconds":2.0,"trouble":null}]}"#;
    fs::write(kept.join("conditions.json"), conditions).unwrap();
    let lines = "{\"id\":\"kernel/retry\",\"goal\":50}\n{\"id\":\"growth/chain/1000\",\"unit\":\"ns\",\"median\":250}\n";
    fs::write(kept.join("figures.jsonl"), lines).unwrap();
    fs::write(estimates.join("benchmark.json"), r#"{"full_id":"kernel/retry","throughput":null}"#).unwrap();
    let estimate = r#"{"median":{"point_estimate":12.5},"median_abs_dev":{"point_estimate":0.5}}"#;
    fs::write(estimates.join("estimates.json"), estimate).unwrap();

    let output = report(&workspace, &["--from-last"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("docs/benchmarks.md is written, from 2 figures in 2.0 s"));
    let page = fs::read_to_string(workspace.join("docs/benchmarks.md")).unwrap();
    for seen in [
        "| date | 1970-01-01 00:00 UTC |",
        "| commit | `abc`, with changes |",
        "**Short measurements**",
        "| retry | 12.5 ns ± 0.50 ns | at most 50 ns: met | backoff by hand: not measured |",
        "1 of 1 goals are met",
    ] {
        assert!(page.contains(seen), "{seen} in {page}");
    }
    let plot = fs::read_to_string(workspace.join("docs/images/bench-core-run.svg")).unwrap();
    assert!(plot.contains("<title>chain, 1,000: 250 ns</title>"), "{plot}");
}

#[test]
fn a_report_that_cannot_be_built_says_so_on_the_page_and_fails() {
    let workspace = workspace("not built");
    let output = report(&workspace, &["--quick"]);
    let stderr = stderr(&output);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr.contains("==> report: 1 of 12, build"), "{stderr}");
    assert!(
        stderr.contains("xtask: the page was written, but did not succeed: build, cannot be started"),
        "{stderr}"
    );
    let page = fs::read_to_string(workspace.join("docs/benchmarks.md")).unwrap();
    assert!(page.contains("- build: cannot be started"), "{page}");
    assert!(page.contains("- growth: left out, since what it needs did not succeed"), "{page}");
    assert!(page.contains("| retry | not measured |"), "{page}");
    assert!(!page.contains(env!("CARGO_TARGET_TMPDIR")), "{page}");
}
