//! Repositories for operations on git: their settings are their own, and their templates lie where nobody looks.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::by_hand::Desk;

/// How a job of a run ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) id: String,
    pub(crate) record: Value,
    pub(crate) summary: String,
}

impl Ended {
    /// Returns the status and the exit code.
    pub(crate) fn end(&self) -> (&str, Option<i64>) {
        (self.record["status"].as_str().unwrap(), self.record["exit_code"].as_i64())
    }
}

/// Returns a repository with one commit on `main`, and somebody who commits.
pub(crate) fn repository() -> Desk {
    let desk = Desk::with_git();
    desk.git(&["config", "user.name", "Ada"]);
    desk.git(&["config", "user.email", "ada@example.org"]);
    desk
}

/// Returns a node with a label and more of it.
pub(crate) fn node(id: &str, uses: &str, more: &str) -> String {
    let kind = match uses {
        _ if uses.starts_with("control.") => "gate",
        _ if uses.starts_with("cap.env.shell.") => "shell",
        _ => "builtin",
    };
    format!("[[nodes]]\nid = \"{id}\"\nkind = \"{kind}\"\nuses = \"{uses}\"\n{more}\n")
}

/// Returns a node of an operation that is built in.
pub(crate) fn builtin(id: &str, operation: &str, more: &str) -> String {
    node(id, &format!("cap.env.builtin.{operation}"), more)
}

/// Returns a node that runs a script.
pub(crate) fn script(id: &str, text: &str, more: &str) -> String {
    node(id, "cap.env.shell.command.run", &format!("args = {{ script = '''{text}''' }}\n{more}"))
}

/// Writes a template where it does not make the working tree unclean.
pub(crate) fn template(desk: &Desk, nodes: &[String]) -> PathBuf {
    template_in(&desk.path(""), nodes)
}

/// Writes a template into a repository.
pub(crate) fn template_in(root: &Path, nodes: &[String]) -> PathBuf {
    let path = root.join(".tidewheel/tmp/flow.toml");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, format!("id = \"T\"\nversion = \"v1\"\n{}", nodes.concat())).unwrap();
    path
}

/// Runs a template to its end, and returns the id of its run and the exit code of the command.
#[track_caller]
pub(crate) fn follow(desk: &Desk, nodes: &[String]) -> (String, Option<i32>) {
    let path = template(desk, nodes);
    let ran = desk.run(&["run", path.to_str().unwrap(), "--follow", "--format", "json"]);
    assert!(!ran.out.is_empty(), "{ran:?}");
    (ran.json()["run_id"].as_str().unwrap().to_owned(), ran.code)
}

/// Returns how a node of a run ended.
#[track_caller]
pub(crate) fn of(desk: &Desk, run: &str, node: &str) -> Ended {
    let id = format!("wf-{run}-{node}");
    let outcome = fs::read_to_string(desk.in_jobs(&id).join("outcome.json")).unwrap_or_default();
    let outcome: Value = serde_json::from_str(&outcome).unwrap_or_default();
    let summary = outcome["summary"].as_str().unwrap_or("").to_owned();
    Ended { record: desk.record(&id), summary, id }
}

/// Runs a template with one node `n` to its end.
#[track_caller]
pub(crate) fn ended(desk: &Desk, node: String) -> Ended {
    let (run, _) = follow(desk, &[node]);
    of(desk, &run, "n")
}

/// Retries a job and waits for its end.
#[track_caller]
pub(crate) fn again(desk: &Desk, id: &str) -> Ended {
    let ran = desk.run(&["jobs", "retry", id]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    desk.wait(id);
    let (run, node) = id.strip_prefix("wf-").unwrap().split_at("run_".len() + 32);
    of(desk, run, &node[1..])
}

/// Returns what a job wrote to one of its logs.
pub(crate) fn log(desk: &Desk, id: &str, stream: &str) -> String {
    fs::read_to_string(desk.in_jobs(id).join(format!("{stream}.log"))).unwrap_or_default()
}

/// Returns the subjects of a branch, the newest first.
pub(crate) fn subjects(desk: &Desk, branch: &str) -> Vec<String> {
    desk.git(&["log", "--format=%s", branch]).lines().map(str::to_owned).collect()
}

/// Returns whether git finds something.
pub(crate) fn has(desk: &Desk, object: &str) -> bool {
    let mut command = std::process::Command::new("git");
    desk.settle_in(&mut command);
    command.args(["cat-file", "-e", object]);
    crate::world::Ran::of(&mut command).code == Some(0)
}

/// Returns what is changed in the working tree, but for what jobs write themselves.
pub(crate) fn status(desk: &Desk) -> String {
    let own = [":!.tidewheel/jobs", ":!.tidewheel/tmp", ":!.tidewheel/tmp-worktrees"];
    desk.git(&[&["status", "--porcelain", "--", "."], &own[..]].concat())
}
