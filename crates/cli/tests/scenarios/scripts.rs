//! How scripts are run. A script of several lines used to go on after a line that failed, so that a compile that failed
//! was a job that succeeded.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::by_hand::Desk;
use crate::prompts::{followed, talk};
use crate::world::{Ran, World};

/// Two lines of which the first fails.
const FAILS_FIRST: &str = "\"\"\"\nfalse\ntouch went-on\n\"\"\"";

/// Returns a template `T@v1` with one node `n`.
fn one(kind: &str, uses: &str, more: &str) -> String {
    format!(
        "id = \"T\"\nversion = \"v1\"\n[[nodes]]\nid = \"n\"\nkind = \"{kind}\"\nuses = \"{uses}\"\n{more}\n"
    )
}

/// Every place where a text for a shell can stand in a node.
fn places() -> Vec<(&'static str, String)> {
    let script = FAILS_FIRST;
    let shell = |operation: &str, more: &str| one("shell", &format!("cap.env.shell.{operation}"), more);
    let gate = |policy: &str, more: &str| one("gate", &format!("control.gate.{policy}"), more);
    let prompt = "produces.succeeded = [{ custom = { type_id = \"prompt_text\", key = \"k\" } }]";
    vec![
        ("a script", shell("command.run", &format!("args.script = {script}"))),
        ("a command that is a text", shell("command.run", &format!("args.command = {script}"))),
        ("checks", shell("cicd.run", &format!("args.script = {script}"))),
        (
            "the gate of checks",
            shell("cicd.run", &format!("[[nodes.gates]]\nkind = \"cicd\"\nscript = {script}")),
        ),
        ("a prompt", shell("prompt.resolve", &format!("{prompt}\nargs.script = {script}"))),
        (
            "a stop condition",
            gate("stop_condition", &format!("[[nodes.gates]]\nkind = \"script\"\nscript = {script}")),
        ),
        ("a gate of checks", gate("cicd", &format!("[[nodes.gates]]\nkind = \"cicd\"\nscript = {script}"))),
        (
            "the fix of a gate of checks",
            gate(
                "cicd",
                &format!(
                    "args.auto_resolve = true\nargs.auto_resolve_script = {script}\n\
                     [[nodes.gates]]\nkind = \"cicd\"\nscript = \"test -e went-on\""
                ),
            ),
        ),
    ]
}

#[test]
fn a_script_stops_at_its_first_line_that_fails_wherever_it_stands() {
    for (place, text) in places() {
        let desk = Desk::new();
        let (_, ran) = followed(&desk, &text);
        assert_eq!(ran.code, Some(1), "{place}: {ran:?}");
        assert!(!desk.path("went-on").exists(), "{place}");
    }
}

#[test]
fn errexit_false_lets_a_script_go_on_wherever_it_stands() {
    for (place, text) in places() {
        let desk = Desk::new();
        let text = text.replacen("id = \"n\"\n", "id = \"n\"\nerrexit = false\n", 1);
        let (_, ran) = followed(&desk, &text);
        assert_eq!(ran.code, Some(0), "{place}: {ran:?}");
        assert!(desk.path("went-on").exists(), "{place}");
    }
}

#[test]
fn the_command_of_an_agent_stops_at_its_first_line_that_fails_unless_it_may_not() {
    let config = format!("[agents.default]\ncommand = {FAILS_FIRST}\n");
    for (more, code) in [("", Some(1)), ("errexit = false\n", Some(0))] {
        let desk = Desk::new();
        desk.file(".tidewheel/config.toml", &format!("{config}{more}"));
        let (run, ran) = followed(&desk, &talk("args.prompt_text = \"hi\"", ""));
        assert_eq!(ran.code, code, "{ran:?}");
        assert_eq!(desk.path("went-on").exists(), code == Some(0));
        let said = desk.record(&format!("wf-{run}-agent"))["metadata"]["agent_command"].clone();
        assert!(!said.as_str().unwrap().contains("pipefail"), "{said}");
    }
}

/// Runs a script in a pipe whose first part fails, with a shell of one's own as `sh` if one is given.
fn piped(world: &World, sh: Option<&Path>) -> Ran {
    world.flow("piped", &one("shell", "cap.env.shell.command.run", "args.script = \"exit 3 | cat\""));
    let mut command = world.command(&["run", "piped", "--follow"]);
    if let Some(sh) = sh {
        let bin = world.outside().join("bin");
        fs::create_dir_all(&bin).unwrap();
        std::os::unix::fs::symlink(sh, bin.join("sh")).unwrap();
        let path = "/usr/local/bin:/usr/bin:/bin";
        command.env("PATH", format!("{}:{path}", bin.display()));
    }
    Ran::of(&mut command)
}

#[test]
fn a_pipe_fails_with_any_of_its_parts_where_the_shell_can_tell() {
    let has = |sh: &str| Command::new(sh).args(["-c", "command set -o pipefail 2>/dev/null"]).status();
    let world = World::new();
    let expected = if has("sh").unwrap().success() { Some(1) } else { Some(0) };
    let ran = piped(&world, None);
    assert_eq!(ran.code, expected, "{ran:?}");
    assert!(!ran.err.contains("pipefail"), "{ran:?}");
    // A machine without bash has nothing else to show it with.
    let bash = Path::new("/bin/bash");
    if bash.exists() {
        let ran = piped(&World::new(), Some(bash));
        assert_eq!(ran.code, Some(1), "{ran:?}");
    }
}

#[test]
fn the_messages_of_the_shell_name_the_lines_of_the_script() {
    let desk = Desk::new();
    let script = "\"\"\"\n:\nno-such-program-anywhere\n:\n\"\"\"";
    let text = one("shell", "cap.env.shell.command.run", &format!("args.script = {script}"));
    let (run, ran) = followed(&desk, &text);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let said = fs::read_to_string(desk.in_jobs(&format!("wf-{run}-n/stderr.log"))).unwrap();
    // The first newline behind the quotes is no part of the text.
    assert!(said.contains("2: no-such-program") || said.contains("line 2: no-such-program"), "{said}");
    assert_eq!(desk.record(&format!("wf-{run}-n"))["exit_code"], 127);
}

#[test]
fn a_first_line_for_the_shell_itself_is_a_comment_and_one_for_another_program_is_refused() {
    let desk = Desk::new();
    let text = |line: &str| {
        one(
            "shell",
            "cap.env.shell.command.run",
            &format!("args.script = \"\"\"{line}\ntrue\ntouch went-on\n\"\"\""),
        )
    };
    let (_, ran) = followed(&desk, &text("#!/bin/sh"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(desk.path("went-on").exists());
    desk.flow("other", &text("#!/usr/bin/env python3"));
    let ran = desk.run(&["run", "other", "--check"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("has a script for `python3`, and `sh` runs every script"), "{ran:?}");
}
