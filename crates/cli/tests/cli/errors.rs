//! Every error that a person can meet, with its code: each is provoked here, and each has its page.

use std::collections::BTreeSet;
use std::fs::{File, read_dir};
use std::path::Path;

use insta::assert_snapshot;
use serde_json::json;

use crate::home::{Home, Ran};
use crate::shop;
use crate::yard::{FLOW, Yard};

/// Returns each error with what provokes it.
fn all() -> Vec<Ran> {
    let home = shop::home();
    let huge = "#".repeat(1024 * 1024 + 1);
    home.file("huge.toml", huge).file("latin.toml", b"\n# gr\xfcn").file("bad.toml", "x = 1");
    [
        home.run(&["decide", "turn", "none.jsonl"]),
        home.run(&["decide", "turn", "."]),
        into_full_disk(&home, &["demo"]),
        home.feed(&["decide", "turn"], "{}\noh\n"),
        home.run(&["policy", "check", "huge.toml"]),
        home.run(&["policy", "check", "latin.toml"]),
        home.run(&["policy", "check", "bad.toml"]),
        home.run(&["demo", "--keep", "bad.toml"]),
        home.run(&["runs", "list", "--store", "none.db"]),
        home.run(&["runs", "list", "--store", "bad.toml"]),
        home.run(&["runs", "list", "--store", "newer.db"]),
        home.run(&["runs", "list", "--store", "."]),
        home.run(&["runs", "show", "order-9", "--store", "orders.db"]),
        home.run(&["runs", "show", "order-", "--store", "orders.db"]),
        home.run(&["runs", "show", "order-1", "--store", "damaged.db"]),
        home.run(&["runs", "results", "order-2", "ship", "--store", "orders.db"]),
        home.run(&["runs", "resume", "order-1", "--store", "orders.db"]),
    ]
    .into_iter()
    .chain(of_jobs())
    .collect()
}

/// Returns each error of jobs with what provokes it.
fn of_jobs() -> Vec<Ran> {
    let yard = Yard::new();
    let asks = json!({ "approval": { "required": true, "state": "pending" } });
    yard.job("job-1", "succeeded", 0, json!({})).job("job-2", "succeeded", 1, json!({}));
    yard.job("gate", "waiting_on_approval", 2, json!({ "child_args": ["--version"], "schedule": asks }));
    yard.home.file(".tidewheel/jobs/bad/job.json", "not-json").file("bad.toml", "id = 'x'");
    yard.home.file("flow.toml", FLOW);
    let stuck = Yard::new();
    stuck.home.file(".tidewheel/jobs/stuck/job.json/x", "");
    let wrong = Home::new();
    wrong.file(".tidewheel/config.toml", "[scheduler]\nspeed = 1\n");
    yard.git(&["init", "--quiet", "--initial-branch", "other"]);
    let mut trouble = stuck.home.run(&["tick"]);
    trouble.err = trouble.err.replace(&stuck.home.path().display().to_string(), "…");
    vec![
        yard.home.run(&["jobs", "show", "build"]),
        yard.home.run(&["jobs", "show", "job"]),
        yard.home.run(&["jobs", "show", "bad"]),
        yard.home.run(&["jobs", "cancel", "job-1"]),
        trouble,
        yard.home.run(&["jobs", "list", "--dir", "nowhere"]),
        yard.home.run(&["jobs", "wait", "gate", "-q", "--timeout", "0s"]),
        yard.home.run(&["run", "nowhere"]),
        yard.home.run(&["run", "bad.toml", "--check"]),
        yard.home.run(&["run", "flow.toml", "--set", "x=1"]),
        wrong.run(&["jobs", "list"]),
        yard.home.run(&["jobs", "schedule", "--watch"]),
        yard.home.run(&["runs", "gc", "--older-than", "1d"]),
        yard.home.run(&["run", "flow.toml", "--pin", "main"]),
        yard.home.run(&["jobs", "schedule", "--max-depth", "2"]),
    ]
}

fn into_full_disk(home: &Home, arguments: &[&str]) -> Ran {
    let full = File::options().write(true).open("/dev/full").expect("Linux has such a device");
    let mut command = home.command(arguments);
    command.stdout(full);
    Ran::of(command, b"{}\n")
}

fn code_of(ran: &Ran) -> &str {
    let (_, rest) = ran.err.split_once("error[").expect("the error has a code");
    rest.split_once(']').expect("the error has a code").0
}

#[test]
fn each_is_told_with_its_code() {
    let told: Vec<String> =
        all().iter().map(|ran| format!("{}--- exit code {}", ran.err, ran.code.unwrap_or(-1))).collect();
    assert_snapshot!(told.join("\n\n"), @r#"
    error[TW0001]: There is no file `none.jsonl`.
    hint: Check the name, or write `-` to read the standard input.
    --- exit code 1

    error[TW0002]: `.` is a directory.
    hint: Give the name of a file in it.
    --- exit code 1

    error[TW0003]: The output cannot be written: No space left on device.
    --- exit code 1

    error[TW0004]: 1 of 2 lines could not be read as JSON; the answers of kind `error` say which.
    --- exit code 2

    config error[TW0005]: `huge.toml` is larger than 1048576 bytes, which no file of policies is.
    hint: Check the name, or split the rules into several files.
    --- exit code 1

    config error[TW0006]: `latin.toml` is not UTF-8: see its line 2.
    hint: Save the file as UTF-8.
    --- exit code 1

    error: policies: is missing
     --> bad.toml:1:1
      |
    1 | x = 1
      | ^
      |
      = help: write one table of `policies` for each rule

    error: x: is not a known field
     --> bad.toml:1:1
      |
    1 | x = 1
      | ^
      |
      = help: known are policies

    config error[TW0007]: `bad.toml` has 2 problems.
    --- exit code 1

    error[TW0008]: The demo cannot be kept in `bad.toml`: File exists.
    hint: Name a directory that does not exist yet.
    --- exit code 1

    error[TW0009]: There is no store `none.db`.
    hint: It is the file that your program gives to `Runner::open`.
    --- exit code 1

    error[TW0010]: `bad.toml` is no store of Tidewheel: file is not a database.
    --- exit code 1

    error[TW0011]: The store `newer.db` has version 999, and this release knows 6 only.
    hint: Use the release that your programs use, or a later one.
    --- exit code 1

    error[TW0012]: The store `.` cannot be used: it is a directory.
    hint: Give the name of a file in it.
    --- exit code 1

    error[TW0013]: There is no run `order-9` in `orders.db`, and none that begins so.
    hint: `tidewheel runs list --store orders.db` lists the runs.
    --- exit code 1

    error[TW0014]: Several runs begin with `order-`: `order-6`, `order-5`, `order-4`, `order-3`, `order-2`, `order-1`.
    hint: Write more of the id, so that only one begins so.
    --- exit code 1

    error[TW0015]: The log of run `order-1` is damaged at event 9: the checksum is another one.
    hint: All other runs of the store are as they were.
    --- exit code 1

    error[TW0016]: `ship` of run `order-2` has no result: something before it failed.
    hint: `tidewheel runs explain order-2 ship --store orders.db` says more.
    --- exit code 1

    error[TW0017]: Run `order-1` is completed: nothing is left to do.
    --- exit code 1

    error[TW0018]: no background job build
    hint: `tidewheel jobs list --all` lists the jobs.
    --- exit code 1

    error[TW0019]: job is ambiguous: job-1, job-2
    hint: Write more of the id, or RUN/NODE.
    --- exit code 1

    error[TW0020]: unable to load background job bad: expected ident at line 1 column 2
    hint: `tidewheel doctor` says what to do about it; all other jobs are as they were.
    --- exit code 1

    error[TW0021]: job job-1 is not active
    --- exit code 1

    error[TW0022]: job stuck: its record cannot be read: cannot read …/.tidewheel/jobs/stuck/job.json: it is a directory, and no regular file; `tidewheel doctor` says what to do
    --- exit code 1

    error[TW0023]: `nowhere` cannot be used: No such file or directory.
    --- exit code 1

    error[TW0024]: The time is over, and 1 job is not.
    hint: `tidewheel jobs schedule` says what they wait for.
    --- exit code 1

    error[TW0025]: There is no flow `nowhere`: no file, no alias, no template with this id.
    hint: Put templates into `.tidewheel/workflows/`, or give the name of a file.
    hint: `tidewheel init` makes a first one, `hello`.
    --- exit code 1

    error: version: is missing
     --> bad.toml:1:1
      |
    1 | id = 'x'
      | ^
      |
      = help: write version = "v1" at the top of the file

    error: template x has no nodes
     --> bad.toml:1:1
      |
    1 | id = 'x'
      | ^

    config error[TW0026]: `bad.toml` has 2 problems.
    --- exit code 1

    error[TW0027]: unknown parameter `x` of template template.two
    --- exit code 2

    error: scheduler.speed: is not a known field
     --> .tidewheel/config.toml:2:1
      |
    2 | speed = 1
      | ^^^^^
      |
      = help: known are capacity, probe_interval

    config error[TW0028]: `.tidewheel/config.toml` has 1 problem.
    --- exit code 1

    error[TW0029]: `--watch` requires an interactive TTY with ANSI enabled; rerun without `--watch` for static output.
    --- exit code 1

    error[TW0030]: `--older-than` is for the runs of a program: --store FILE names their store.
    hint: Here --days says how old.
    --- exit code 2

    error[TW0031]: required branch `main` does not exist
    --- exit code 1

    error[TW0032]: `--max-depth` has no effect here: a summary follows nothing without `--job`.
    hint: Leave out `--max-depth`.
    --- exit code 2
    "#);
}

#[test]
fn each_page_is_of_an_error_that_can_be_met() {
    let ran = all();
    let met: BTreeSet<&str> = ran.iter().map(code_of).collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors");
    let pages: BTreeSet<String> = read_dir(folder)
        .expect("there are pages")
        .map(|entry| entry.expect("there are pages").path())
        .map(|path| path.file_stem().expect("a page has a name").to_string_lossy().into_owned())
        .filter(|name| name != "README")
        .collect();
    assert_eq!(met, pages.iter().map(String::as_str).collect());
}

#[test]
fn a_full_disk_is_told_whatever_is_printed() {
    let home = Home::new();
    home.file("rules.toml", "policies = []");
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["demo", "--format", "json"],
        &["decide", "turn"],
        &["policy", "check", "rules.toml"],
        &["policy", "check", "rules.toml", "--format", "json"],
    ] {
        let ran = into_full_disk(&home, arguments);
        assert_eq!((ran.code, code_of(&ran)), (Some(1), "TW0003"), "{arguments:?}: {ran}");
    }
}

#[test]
fn a_reader_that_has_gone_is_no_error() {
    let home = Home::new();
    home.file("rules.toml", "policies = []");
    for arguments in
        [&["--help"][..], &["demo"], &["demo", "--format", "json"], &["policy", "check", "rules.toml"]]
    {
        let (reader, writer) = std::io::pipe().expect("there are pipes");
        drop(reader);
        let mut command = home.command(arguments);
        command.stdout(writer);
        Ran::of(command, b"").succeeded();
    }
}

#[test]
fn a_directory_as_standard_input_is_told() {
    let home = Home::new();
    for arguments in [&["decide", "turn"][..], &["policy", "check", "-"]] {
        let mut command = home.command(arguments);
        let output =
            command.stdin(File::open(home.path()).expect("it is there")).output().expect("it starts");
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(err, "error[TW0002]: `standard input` cannot be read: Is a directory.\n");
        assert_eq!(output.status.code(), Some(1));
    }
}

/// Names come from outside, and a terminal obeys whatever it is shown.
#[test]
fn controls_in_names_and_arguments_do_not_reach_the_terminal() {
    let home = Home::new();
    let name = "a\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}.toml";
    home.file(name, "x = 1\n[[policies]]\nmatch.name = \"\u{9b}31m\u{202e}\"\ntimeout = \"\u{9b}\u{85}\"\n");
    let rules = "rules.toml";
    home.file(
        rules,
        "[[policies]]\nmatch.tag = \"\u{9b}31m\"\nmetadata = { \"\u{9b}\" = \"\\u001b\u{7}\" }\n"
            .replace('\u{7}', ""),
    );
    let node = "n\u{1b}[31m";
    for arguments in [
        &["policy", "check", name][..],
        &["policy", "check", name, "--format", "json"],
        &["policy", "check", "no\u{1b}[31m"],
        &["policy", "check", rules],
        &["policy", "check", rules, "--name", node, "--tag", "\u{9b}31m"],
        &["policy", "check", rules, "--name", node, "--tag", "\u{9b}31m", "--format", "json"],
        &["policy", "check", rules, "--kind", "\u{1b}[31mstep"],
        &["decide", "\u{1b}[31mturn"],
        &["\u{1b}[31m\u{9b}"],
        &["demo", "--\u{1b}[31m"],
    ] {
        // With colours forced, nothing is stripped on the way out.
        let ran = home.run_under(&[("CLICOLOR_FORCE", "1")], arguments);
        let printed = format!("{}{}", ran.out, ran.err);
        let plain = without_styles(&printed);
        let harmful = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
        assert!(!plain.contains(harmful), "{arguments:?}: {plain:?}");
        assert!(!printed.contains("\u{1b}[31mstep") && !printed.contains("\u{1b}[31mturn"), "{printed:?}");
    }
}

/// Takes the styles away that we use ourselves: `ESC [ digits m`.
pub(crate) fn without_styles(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.find(|c: char| !c.is_ascii_digit() && c != ';') {
            Some(end) if part[end..].starts_with('m') => plain.push_str(&part[end + 1..]),
            _ => {
                plain.push('\u{1b}');
                plain.push_str(part);
            }
        }
    }
    plain
}
