//! `tidewheel init`: the files that a repository begins with, and whether they are in order.

use std::fs;

use insta::assert_snapshot;
use serde_json::json;

use crate::home::{Home, Ran};
use crate::yard::Yard;

const LINES: &str = "# What Tidewheel writes all the time.\n.tidewheel/jobs/\n.tidewheel/sessions/\n.tidewheel/tmp/\n\
                     .tidewheel/tmp-worktrees/\n";

/// Returns what a command said, with the name of the directory taken out.
fn said(home: &Home, ran: &Ran) -> String {
    let root = fs::canonicalize(home.path()).expect("the home is there");
    ran.to_string().replace(&root.display().to_string(), "HOME")
}

/// Returns the names and the texts of all files, sorted.
fn files(home: &Home) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut waiting = vec![home.path().to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).expect("it is a directory") {
            let path = entry.expect("it can be read").path();
            if path.is_dir() {
                waiting.push(path);
                continue;
            }
            let name = path.strip_prefix(home.path()).expect("it is inside").display().to_string();
            found.push((name, fs::read_to_string(path).expect("it is text")));
        }
    }
    found.sort();
    found
}

#[test]
fn a_repository_begins_with_three_files_and_the_second_time_with_none() {
    let home = Home::new();
    fs::create_dir(home.path().join(".git")).expect("the home is there");
    assert_snapshot!(said(&home, &home.run(&["init"]).succeeded()), @"
    Outcome: Initialised
    Root: HOME
    Created: .tidewheel/config.toml, .tidewheel/workflows/hello.toml, .gitignore
    Next: tidewheel run hello --follow
    ");
    let made = files(&home);
    let names: Vec<&str> = made.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, [".gitignore", ".tidewheel/config.toml", ".tidewheel/workflows/hello.toml"]);
    assert_eq!(made[0].1, LINES);
    assert_snapshot!(said(&home, &home.run(&["init"]).succeeded()), @"
    Outcome: Already initialised, nothing changed
    Root: HOME
    Kept: .tidewheel/config.toml, .tidewheel/workflows/hello.toml, .gitignore
    Next: tidewheel run hello --follow
    ");
    assert_eq!(files(&home), made);
    assert_snapshot!(said(&home, &home.run(&["init", "--check"]).succeeded()), @"
    Outcome: Everything is in order
    Root: HOME
    Templates: 1
    ");
}

#[test]
fn with_the_stages_there_are_four_flows_more() {
    let home = Home::new();
    fs::create_dir(home.path().join(".git")).expect("the home is there");
    home.run(&["init"]).succeeded();
    assert_snapshot!(said(&home, &home.run(&["init", "--stages", "--check"])), @"
    Outcome: Not everything is in order
    Root: HOME
    Templates: 1
    Missing: .tidewheel/workflows/draft.toml, .tidewheel/workflows/approve.toml, .tidewheel/workflows/merge.toml, .tidewheel/workflows/develop.toml
    --- stderr
    hint: `tidewheel init --stages` makes what is missing, and keeps what is there.
    --- exit code 1
    ");
    home.file(".tidewheel/workflows/merge.toml", "# mine\n");
    assert_snapshot!(said(&home, &home.run(&["init", "--stages"]).succeeded()), @"
    Outcome: Initialised
    Root: HOME
    Created: .tidewheel/workflows/draft.toml, .tidewheel/workflows/approve.toml, .tidewheel/workflows/develop.toml
    Kept: .tidewheel/config.toml, .tidewheel/workflows/hello.toml, .tidewheel/workflows/merge.toml, .gitignore
    Next: tidewheel run hello --follow
    ");
    fs::remove_file(home.path().join(".tidewheel/workflows/merge.toml")).expect("it is there");
    home.run(&["init", "--stages"]).succeeded();
    home.run(&["init", "--stages", "--check"]).succeeded();
}

#[test]
fn the_first_flow_runs() {
    let yard = Yard::new();
    yard.run(&["init"]).succeeded();
    let followed = yard.json(&["run", "hello", "Ada", "--follow"]);
    assert_eq!(followed["exit_code"].as_i64().unwrap_or(0), 0, "{followed}");
    assert_eq!(yard.jobs(&["tail", "greet"]).succeeded().out, "[stdout] Hello, Ada!\n");
}

#[test]
fn what_the_comments_of_the_configuration_propose_is_taken() {
    let yard = Yard::new();
    yard.run(&["init"]).succeeded();
    let path = yard.home.path().join(".tidewheel/config.toml");
    let text = fs::read_to_string(&path).expect("it was made");
    let is_setting = |line: &&str| line.starts_with("# [") || line.contains(" = ");
    let settings: Vec<&str> = text.lines().filter(is_setting).map(|line| &line[2..]).collect();
    assert!(settings.len() > 8, "{settings:?}");
    fs::write(&path, settings.join("\n")).expect("it can be written");
    yard.run(&["init", "--check"]).succeeded();
}

#[test]
fn what_is_there_is_kept_as_it_is() {
    let home = Home::new();
    home.file(".tidewheel/config.toml", "[jobs.gc]\ndays = 3\n")
        .file(".gitignore", "target\r\n/.tidewheel/tmp\r\nx");
    assert_snapshot!(said(&home, &home.run(&["init"]).succeeded()), @"
    Outcome: Initialised
    Root: HOME
    Created: .tidewheel/workflows/hello.toml
    Changed: .gitignore
    Kept: .tidewheel/config.toml
    Next: tidewheel run hello --follow
    ");
    let made = files(&home);
    assert_eq!(made[1].1, "[jobs.gc]\ndays = 3\n");
    assert_eq!(
        made[0].1,
        "target\r\n/.tidewheel/tmp\r\nx\r\n\r\n# What Tidewheel writes all the time.\r\n.tidewheel/jobs/\r\n\
         .tidewheel/sessions/\r\n.tidewheel/tmp-worktrees/\r\n"
    );
}

#[test]
fn outside_of_a_repository_nothing_is_said_to_git() {
    let home = Home::new();
    home.file("side/x", "");
    let ran = home.run(&["init", "--dir", "side", "--format", "json"]).succeeded();
    let told: serde_json::Value = serde_json::from_str(&ran.out).expect("it is JSON");
    let root = fs::canonicalize(home.path()).expect("the home is there").join("side");
    assert_eq!(
        told,
        json!({
            "version": 1,
            "outcome": "initialised",
            "root": root,
            "created": [".tidewheel/config.toml", ".tidewheel/workflows/hello.toml"],
            "changed": [],
            "kept": [],
            "next": { "run": "tidewheel run hello --follow --dir side" },
        })
    );
    assert!(!home.path().join("side/.gitignore").exists() && !home.path().join(".tidewheel").exists());
    home.run(&["init", "--check", "--dir", "side"]).succeeded();
}

#[test]
fn a_check_makes_nothing_and_says_what_is_missing() {
    let home = Home::new();
    home.file(".gitignore", ".tidewheel/jobs/\n");
    assert_snapshot!(said(&home, &home.run(&["init", "--check"])), @"
    Outcome: Not everything is in order
    Root: HOME
    Templates: 0
    Missing: .tidewheel/config.toml, .gitignore: .tidewheel/sessions/, .gitignore: .tidewheel/tmp/, .gitignore: .tidewheel/tmp-worktrees/, .tidewheel/workflows/hello.toml
    --- stderr
    hint: `tidewheel init` makes what is missing, and keeps what is there.
    --- exit code 1
    ");
    assert_eq!(files(&home).len(), 1);
}

#[test]
fn a_check_tells_all_that_is_wrong() {
    let home = Home::new();
    home.run(&["init"]).succeeded();
    home.file(".tidewheel/config.toml", "[scheduler]\ncapacity = 0\n");
    home.file(".tidewheel/workflows/bad.toml", "id = 'bad'\nversion = 'v1'\nnods = []\n");
    assert_snapshot!(said(&home, &home.run(&["init", "--check"])), @r"
    Outcome: Not everything is in order
    Root: HOME
    Templates: 2
    Wrong: .tidewheel/config.toml, .tidewheel/workflows/bad.toml
    --- stderr
    error: scheduler.capacity: must be at least 1: with 0 nothing would ever run
     --> .tidewheel/config.toml:2:12
      |
    2 | capacity = 0
      |            ^

    config error[TW0028]: `.tidewheel/config.toml` has 1 problem.
    error: nods: is not a known field
     --> .tidewheel/workflows/bad.toml:3:1
      |
    3 | nods = []
      | ^^^^
      |
      = help: did you mean `nodes`?

    config error[TW0026]: `.tidewheel/workflows/bad.toml` has 1 problem.
    --- exit code 1
    ");
    let ran = home.run(&["init", "--check", "--format", "json"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(1), ""));
    let told: serde_json::Value = serde_json::from_str(&ran.out).expect("it is JSON");
    assert_eq!(told["outcome"], "not_ready");
    assert_eq!(told["problems"][0]["path"], "scheduler.capacity");
    assert_eq!(told["problems"][0]["line"], 2);
    assert_eq!(told["problems"][1]["file"], ".tidewheel/workflows/bad.toml");
}

#[test]
fn a_template_whose_parameter_has_to_be_given_is_in_order() {
    let home = Home::new();
    home.run(&["init"]).succeeded();
    let text = "id = 'x'\nversion = 'v1'\n[params]\nslug = ''\n[[nodes]]\nid = 'a'\nkind = 'shell'\n\
                uses = 'cap.env.shell.command.run'\nargs = { script = 'true' }\nlocks = [{ key = '${slug}' }]\n";
    home.file(".tidewheel/workflows/needs.toml", text);
    // The first flow is not asked for where there are others.
    fs::remove_file(home.path().join(".tidewheel/workflows/hello.toml")).expect("it was made");
    home.run(&["init", "--check"]).succeeded();
}

#[test]
fn what_cannot_be_made_is_told_before_anything_is_made() {
    let home = Home::new();
    home.file(".tidewheel/workflows/hello.toml/x", "");
    assert_snapshot!(home.run(&["init"]), @"
    --- stderr
    error[TW0023]: `.tidewheel/workflows/hello.toml` is no file.
    hint: Move it away, or give another directory with --dir.
    --- exit code 1
    ");
    assert!(!home.path().join(".tidewheel/config.toml").exists());
}
