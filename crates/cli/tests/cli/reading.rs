//! Commands that only look: they change nothing, not even a time, and they start nothing, not even for a moment.
//!
//! The binary is run as a file that is gone. Whoever starts it again asks for the name that the system gives such a
//! file, and there stands something that writes down that it was started.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};
use serde_json::json;
use tempfile::TempDir;

use crate::home::{Home, Ran};
use crate::shop;
use crate::yard::Yard;

/// Each command that only looks, and the ways to look; with `!` before it, one that finds something wrong.
const READS: &[(&str, &[&str])] = &[
    ("init", &["! --check", "! --check --format json"]),
    ("doctor", &["!", "! --format json", "! --store shop/orders.db"]),
    ("run", &["two.toml --check", "two.toml --check --format json", "! broken.toml --check"]),
    (
        "graph",
        &[
            "two.toml",
            "two.toml --format mermaid",
            "two.toml --format dot",
            "two.toml --format json",
            "RUN",
            "RUN --format json",
        ],
    ),
    ("jobs list", &["", "--all --format table", "--all --format json", "--dismiss-failures"]),
    ("jobs show", &["ready", "JOB --format table", "JOB --format json"]),
    ("jobs status", &["ready", "JOB --format json"]),
    ("jobs explain", &["ready", "asks", "needs", "JOB", "needs --format json", "run:RUN"]),
    (
        "jobs schedule",
        &["", "--all", "--format dag --all", "--format json --all", "--job needs --format dag", "! --watch"],
    ),
    ("jobs tail", &["JOB", "JOB --raw --stream stdout", "JOB -n 1", "JOB --follow", "ready"]),
    ("jobs attach", &["JOB"]),
    ("runs list", &["", "--format json", "--store shop/orders.db", "--store shop/orders.db --format json"]),
    ("runs show", &["RUN", "RUN --format json", "order-2 --store shop/orders.db"]),
    (
        "runs timeline",
        &["RUN", "RUN --format json", "RUN --format svg", "order-2 --store shop/orders.db --format svg"],
    ),
    ("runs events", &["order-2 --store shop/orders.db"]),
    ("runs results", &["order-2 --store shop/orders.db", "order-2 --store shop/orders.db --format json"]),
    ("runs explain", &["RUN", "RUN --format json", "order-2 --store shop/orders.db"]),
    ("runs dead-letters", &["--store shop/orders.db", "--store shop/orders.db --format json"]),
    ("decide", &["delay questions.jsonl", "turn questions.jsonl"]),
    ("policy check", &["policies.toml", "policies.toml --name build", "policies.toml --format json"]),
    ("schema", &["template", "config", "policy"]),
    ("completions", &["bash", "zsh", "fish", "elvish", "powershell"]),
    ("man", &[""]),
    ("demo", &["--no-crash"]),
];

/// Each command that writes, or starts something, unless the list above has a way in which it does not.
const WRITES: &[&str] = &[
    "daemon",
    "demo",
    "doctor",
    "init",
    "jobs approve",
    "jobs cancel",
    "jobs complete",
    "jobs fail",
    "jobs gc",
    "jobs heartbeat",
    "jobs reject",
    "jobs retry",
    "jobs wait",
    "man",
    "run",
    "runs cancel",
    "runs complete",
    "runs dead-letters retry",
    "runs fail",
    "runs gc",
    "runs pause",
    "runs resume",
    "runs retry",
    "runs signal",
    "runs stop",
    "tick",
];

/// Where the stores of programs are.
const SHOP: &str = "shop";

/// What git is asked for by those who look.
const GIT_READS: [&str; 9] = [
    "rev-parse",
    "show-ref",
    "cat-file",
    "status",
    "for-each-ref",
    "ls-tree",
    "var",
    "version",
    "worktree list",
];

/// Where the binary is run from, and what is written down of what it starts.
struct Stage {
    folder: TempDir,
    binary: File,
}

impl Stage {
    fn new() -> Self {
        let binary = Path::new(env!("CARGO_BIN_EXE_tidewheel"));
        // Beside it, so that it need not be copied.
        let folder = tempfile::tempdir_in(binary.parent().unwrap()).unwrap();
        let here = folder.path().join("tidewheel");
        fs::hard_link(binary, &here).or_else(|_| fs::copy(binary, &here).map(|_| ())).unwrap();
        let file = File::open(&here).unwrap();
        fs::remove_file(&here).unwrap();
        let stage = Self { folder, binary: file };
        stage.script("tidewheel (deleted)", "echo tidewheel \"$@\" >>\"$TW_STARTED\"");
        fs::create_dir(stage.path("bin")).unwrap();
        // The verb comes behind the settings.
        let git = "for word; do
case \"$skip$word\" in
-c | -C) skip=yes ;;
yes*) skip= ;;
-*) ;;
worktree) skip=; rest=worktree; continue ;;
*) echo \"${rest:+$rest }$word\" >>\"$TW_ASKED\"; break ;;
esac
done
PATH=/usr/local/bin:/usr/bin:/bin exec git \"$@\"";
        stage.script("bin/git", git);
        mknodat(CWD, stage.path("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        stage
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn script(&self, name: &str, text: &str) {
        fs::write(self.path(name), format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Runs a command to the end of all that it started, and returns what that was, beside git.
    fn run(&self, home: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> (Ran, String) {
        for name in ["started", "asked"] {
            fs::write(self.path(name), "").unwrap();
        }
        // Whoever is started has the other end of the pipe, and cannot know of it.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mut pipe = File::from(open(self.path("pipe"), flags, Mode::empty()).unwrap());
        let binary = format!("/proc/{}/fd/{}", std::process::id(), self.binary.as_raw_fd());
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "exec 9>\"$1\"; shift; exec \"$@\"", "sh"]).arg(self.path("pipe")).arg(binary);
        command.args(arguments).env_clear().current_dir(home).envs(variables.iter().copied());
        command.env("PATH", self.path("bin")).env("HOME", home).env("USER", "ada").env("TERM", "xterm");
        command.env("TW_STARTED", self.path("started")).env("TW_ASKED", self.path("asked"));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let ran = Ran::of(command, b"");
        // The end of the pipe is there once nobody is left.
        while pipe.read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock) {
            std::thread::yield_now();
        }
        for verb in fs::read_to_string(self.path("asked")).unwrap().lines() {
            assert!(GIT_READS.contains(&verb), "{arguments:?}: git {verb}");
        }
        (ran, fs::read_to_string(self.path("started")).unwrap())
    }
}

/// What can be known of a file beside when it was read.
#[derive(Debug, PartialEq, Eq)]
struct Known {
    inode: u64,
    mode: u32,
    length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    content: Vec<u8>,
}

/// Returns everything in a directory, but not what SQLite keeps beside a store for those who read it.
fn known(root: &Path) -> BTreeMap<PathBuf, Known> {
    let mut known = BTreeMap::new();
    let mut left = vec![root.to_owned()];
    while let Some(path) = left.pop() {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name == SHOP {
            left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        if name.ends_with(".db-shm") || name.ends_with(".db-wal") {
            continue;
        }
        let of = fs::symlink_metadata(&path).unwrap();
        let mut content = Vec::new();
        if of.is_dir() {
            left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if of.is_file() {
            content = fs::read(&path).unwrap();
        }
        let of = Known {
            inode: of.ino(),
            mode: of.mode(),
            length: of.len(),
            modified: (of.mtime(), of.mtime_nsec()),
            changed: (of.ctime(), of.ctime_nsec()),
            content,
        };
        known.insert(path, of);
    }
    known
}

/// Fails and names what is not as it was.
#[track_caller]
fn is_as_it_was(root: &Path, before: &BTreeMap<PathBuf, Known>, who: &str) {
    let after = known(root);
    let paths = before.keys().chain(after.keys());
    let mut others: Vec<&PathBuf> = paths.filter(|path| before.get(*path) != after.get(*path)).collect();
    others.dedup();
    assert!(others.is_empty(), "`{who}` changed {others:?}");
}

/// Returns all commands, as the help names them.
fn commands() -> Vec<String> {
    let home = Home::new();
    let mut left = vec![String::new()];
    let mut found = Vec::new();
    while let Some(path) = left.pop() {
        let words: Vec<&str> = path.split_whitespace().chain(["-h"]).collect();
        let help = home.run(&words).succeeded().out;
        let usage = help.lines().find(|line| line.starts_with("Usage: ")).unwrap();
        if !usage.ends_with(" <COMMAND>") {
            found.push(path.clone());
        }
        let below = help.lines().skip_while(|line| *line != "Commands:").skip(1);
        for line in below.take_while(|line| !line.is_empty()) {
            // What is said of a command may go on below it.
            if let Some(name) = line.strip_prefix("  ").filter(|line| !line.starts_with(' ')) {
                let name = name.split_whitespace().next().unwrap();
                if name != "help" {
                    left.push(format!("{path} {name}").trim_start().to_owned());
                }
            }
        }
    }
    found.sort();
    found
}

/// Returns a repository with jobs that could start at once, and the ids of a run and of a job of it.
fn yard() -> (Yard, String, String) {
    // The run is over elsewhere, so that nobody is left who looks at these jobs.
    let elsewhere = Yard::with_flows(&[]);
    let ran = elsewhere.run(&["run", "two.toml", "--follow"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    let run = ran.out.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let run = run.filter(|word| word.starts_with("run_")).find(|word| word.len() == 36).unwrap().to_owned();
    let yard = Yard::with_flows(&[("broken.toml", "id = \"x\"\nwhat = 1\n")]);
    let all = known(elsewhere.home.path());
    for (path, of) in all.iter().filter(|(path, _)| path.is_file()) {
        let name = path.strip_prefix(elsewhere.home.path()).unwrap();
        yard.home.file(name.to_str().unwrap(), &of.content);
    }
    let stores = shop::home();
    for (path, content) in shop::contents(stores.path()) {
        yard.home.file(&format!("{SHOP}/{}", path.file_name().unwrap().to_str().unwrap()), content);
    }
    yard.home.file("questions.jsonl", "{\"attempt\": 1}\n");
    yard.home.file("policies.toml", "[[policies]]\nmatch = { name = \"build\" }\nmax_retries = 2\n");
    yard.git(&["init", "-q", "-b", "main"]);
    let branch = json!([{ "artifact": { "plan_branch": { "slug": "a", "branch": "draft/a" } } }]);
    let asked = json!({ "required": true, "state": "pending", "requested_at": "2026-02-01T12:00:00Z",
        "requested_by": "bob" });
    yard.job("ready", "queued", 0, json!({ "child_args": ["--version"] }));
    yard.job("asks", "waiting_on_approval", 1, json!({ "schedule": { "approval": asked } }));
    yard.job(
        "needs",
        "waiting_on_deps",
        2,
        json!({ "child_args": ["--version"],
        "schedule": { "dependencies": branch, "preconditions": [{ "kind": "clean_worktree" }] } }),
    );
    yard.job("gone", "running", 3, json!({ "child_args": ["--version"], "pid": 1 }));
    let job = format!("wf-{run}-one");
    (yard, run, job)
}

#[test]
fn every_command_is_known_to_read_or_to_write() {
    let mut listed: Vec<&str> = READS.iter().map(|(name, _)| *name).chain(WRITES.iter().copied()).collect();
    listed.sort_unstable();
    listed.dedup();
    assert_eq!(commands(), listed, "a command is missing in one of the lists, or is there no longer");
}

#[test]
fn looking_changes_nothing_and_starts_nothing() {
    let (yard, run, job) = yard();
    let (stage, root) = (Stage::new(), yard.home.path());
    let before = known(root);
    for (name, ways) in READS {
        for way in *ways {
            let (way, code) = way.strip_prefix('!').map_or((*way, 0), |way| (way, 1));
            let line = format!("{name} {way}");
            let line = line.replace("RUN", &run).replace("JOB", &job);
            let words: Vec<&str> = line.split_whitespace().collect();
            let (ran, started) = stage.run(root, &words, &[("TIDEWHEEL_NOW", shop::NOW)]);
            assert_eq!(ran.code, Some(code), "{line}: {ran}");
            assert_eq!(started, "", "{line}: {ran}");
            is_as_it_was(root, &before, &line);
        }
    }
}

#[test]
fn completing_changes_nothing_and_starts_nothing() {
    let (yard, _, _) = yard();
    let (stage, root) = (Stage::new(), yard.home.path());
    let before = known(root);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        for line in ["jobs show r", "runs show r", "run tw", "run two.toml --set ", "graph two"] {
            let words: Vec<&str> = ["--", "tidewheel"].into_iter().chain(line.split(' ')).collect();
            let index = (words.len() - 2).to_string();
            let variables = [("_TIDEWHEEL_COMPLETE", shell), ("_CLAP_COMPLETE_INDEX", index.as_str())];
            let (ran, started) = stage.run(root, &words, &variables);
            assert_eq!((ran.code, ran.out.is_empty()), (Some(0), false), "{shell} {line}: {ran}");
            assert_eq!(started, "", "{shell} {line}");
            is_as_it_was(root, &before, &format!("{shell}: {line}"));
        }
    }
}

#[test]
fn where_nothing_is_nothing_is_made() {
    let (home, stage) = (Home::new(), Stage::new());
    home.file("two.toml", crate::yard::FLOW);
    let before = known(home.path());
    for line in
        ["jobs list", "jobs schedule", "jobs show x", "runs list", "graph two.toml", "run two.toml --check"]
    {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (ran, started) = stage.run(home.path(), &words, &[]);
        assert!(matches!(ran.code, Some(0 | 1)), "{line}: {ran}");
        assert_eq!(started, "", "{line}: {ran}");
        is_as_it_was(home.path(), &before, line);
    }
}

/// Without this nobody would know whether the others could fail.
#[test]
fn what_writes_and_starts_is_noticed() {
    let (yard, _, _) = yard();
    let (stage, root) = (Stage::new(), yard.home.path());
    let before = known(root);
    let (ran, started) = stage.run(root, &["tick"], &[]);
    assert!(started.contains("tidewheel __workflow-node --job-id ready"), "{started:?}: {ran}");
    assert_ne!(known(root), before);
}
