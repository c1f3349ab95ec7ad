//! A repository with jobs in it, written by hand as the files have them, or run for real.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::home::{Home, Ran};

/// Two nodes, one after the other, and a parameter.
pub(crate) const FLOW: &str = r#"
id = "template.two"
version = "v1"
[cli]
positional = ["word"]
named = { where = "place" }
[params]
word = "hello"
place = "here"
[[nodes]]
id = "one"
kind = "shell"
uses = "cap.env.shell.command.run"
args = { script = "echo ${word} ${place}; echo oops >&2" }
[[nodes]]
id = "two"
kind = "shell"
uses = "cap.env.shell.command.run"
args = { script = "echo two" }
after = [{ node_id = "one" }]
"#;

/// A repository with jobs.
pub(crate) struct Yard {
    pub(crate) home: Home,
}

impl Yard {
    /// Returns an empty one.
    pub(crate) fn new() -> Self {
        let yard = Self { home: Home::new() };
        std::fs::create_dir_all(yard.path("")).unwrap();
        yard
    }

    /// Returns one with flows: `two.toml`, and others by name.
    pub(crate) fn with_flows(flows: &[(&str, &str)]) -> Self {
        let yard = Self::new();
        yard.home.file("two.toml", FLOW);
        for (name, text) in flows {
            yard.home.file(name, text);
        }
        yard
    }

    /// Writes the record of a job that was enqueued so many seconds after noon.
    pub(crate) fn job(&self, id: &str, status: &str, second: u32, rest: Value) -> &Self {
        let mut record = json!({ "id": id, "version": 1, "status": status, "command": ["make", id],
            "created_at": format!("2026-02-01T12:00:{second:02}Z") });
        record.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        self.home.file(&format!(".tidewheel/jobs/{id}/job.json"), record.to_string());
        self
    }

    /// Returns the path of something in the directory of the jobs.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(".tidewheel/jobs").join(name)
    }

    /// Reads a record.
    pub(crate) fn record(&self, id: &str) -> Value {
        let text = std::fs::read_to_string(self.path(id).join("job.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// Runs a command on jobs.
    pub(crate) fn jobs(&self, arguments: &[&str]) -> Ran {
        self.home.run(&[&["jobs"], arguments].concat())
    }

    /// Runs a command for its JSON, which has a version.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let ran = self.run(&[arguments, &["--format", "json"]].concat());
        let value: Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("it is JSON: {ran}"));
        assert_eq!(value["version"], 1);
        value
    }

    /// Runs a command in an environment that knows where programs are.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        self.home.run_under(&[("PATH", "/usr/bin:/bin"), ("USER", "ada")], arguments)
    }

    /// Asks git for something, with nobody's configuration.
    pub(crate) fn git(&self, arguments: &[&str]) -> &Self {
        let mut git = Command::new("git");
        git.args(arguments).current_dir(self.home.path()).env("HOME", self.home.path());
        git.env("GIT_CONFIG_NOSYSTEM", "1");
        assert!(git.status().unwrap().success(), "{arguments:?}");
        self
    }

    /// Returns a text with the ids of runs replaced by numbers, in the order in which they appear.
    pub(crate) fn plain(text: &str) -> String {
        let mut plain = String::new();
        let mut seen: Vec<String> = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find("run_") {
            let end = at + 4 + rest[at + 4..].chars().take_while(char::is_ascii_hexdigit).count();
            let id = &rest[at..end];
            plain.push_str(&rest[..at]);
            rest = &rest[end..];
            if id.len() != 36 {
                plain.push_str(id);
                continue;
            }
            let number = seen.iter().position(|known| known == id).unwrap_or_else(|| {
                seen.push(id.to_owned());
                seen.len() - 1
            });
            plain.extend(["run_", &number.to_string()]);
        }
        plain + rest
    }
}
