//! Records as somebody would write them by hand, and what a tick makes of them.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::sync::Mutex;

use serde_json::{Value, json};

use crate::world::World;

/// A world whose records are written by hand, with the run locks that the test holds for jobs that are said to run.
pub(crate) struct Desk {
    pub(crate) world: World,
    held: Mutex<BTreeMap<String, File>>,
    written: Mutex<u32>,
}

impl std::ops::Deref for Desk {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}

/// A record that is being written.
pub(crate) struct Job(pub(crate) Value);

/// What a tick said.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ticked {
    pub(crate) started: Vec<String>,
    pub(crate) updated: Vec<String>,
    pub(crate) errors: Vec<String>,
}

/// Begins the record of a job that only prints its version.
pub(crate) fn job(id: &str) -> Job {
    Job(json!({
        "id": id,
        "version": 1,
        "status": "queued",
        "command": ["tidewheel", "--version"],
        "child_args": ["--version"],
        "created_at": null,
        "stdout_path": format!(".tidewheel/jobs/{id}/stdout.log"),
        "stderr_path": format!(".tidewheel/jobs/{id}/stderr.log"),
        "metadata": {},
        "schedule": {},
    }))
}

impl Job {
    /// Sets a field of the record.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0[name] = value.into();
        self
    }

    /// Sets where it stands.
    pub(crate) fn status(self, status: &str) -> Self {
        self.with("status", status)
    }

    /// Sets a field of its schedule.
    pub(crate) fn schedule(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0["schedule"][name] = value.into();
        self
    }

    /// Sets a field of its metadata.
    pub(crate) fn meta(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0["metadata"][name] = value.into();
        self
    }

    /// Lets it wait for the success of others.
    pub(crate) fn after(self, ids: &[&str]) -> Self {
        let after: Vec<Value> = ids.iter().map(|id| json!({"job_id": id, "policy": "success"})).collect();
        self.schedule("after", after)
    }

    /// Lets it wait for artifacts.
    pub(crate) fn needs(self, artifacts: &[Value]) -> Self {
        let needed: Vec<Value> = artifacts.iter().map(|artifact| json!({"artifact": artifact})).collect();
        self.schedule("dependencies", needed)
    }

    /// Lets it make artifacts.
    pub(crate) fn makes(self, artifacts: &[Value]) -> Self {
        self.schedule("artifacts", artifacts.to_vec())
    }

    /// Lets it hold locks: `key:mode`.
    pub(crate) fn locks(self, locks: &[&str]) -> Self {
        let lock = |text: &&str| {
            let (key, mode) = text.rsplit_once(':').unwrap();
            json!({"key": key, "mode": mode})
        };
        self.schedule("locks", locks.iter().map(lock).collect::<Vec<Value>>())
    }

    /// Lets it wait for a person.
    pub(crate) fn gated(self) -> Self {
        let asked = json!({
            "required": true,
            "state": "pending",
            "requested_at": "2026-02-01T12:00:00Z",
            "requested_by": "bob",
        });
        self.schedule("approval", asked)
    }
}

/// Returns a custom artifact.
pub(crate) fn custom(type_id: &str, key: &str) -> Value {
    json!({"custom": {"type_id": type_id, "key": key}})
}

impl Desk {
    pub(crate) fn new() -> Self {
        Self { world: World::new(), held: Mutex::default(), written: Mutex::default() }
    }

    /// Returns a desk in a repository with one commit, everything that is the user's in it.
    pub(crate) fn with_git() -> Self {
        let desk = Self::new();
        desk.git(&["init", "-q", "-b", "main"]);
        desk.file("README.md", "# A repository\n");
        desk.commit("first");
        desk
    }

    /// Runs git in the world.
    #[track_caller]
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        let mut command = std::process::Command::new("git");
        self.settle_in(&mut command);
        command.args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]).args(arguments);
        let ran = crate::world::Ran::of(&mut command);
        assert_eq!(ran.code, Some(0), "git {arguments:?}: {ran:?}");
        ran.out.trim_end().to_owned()
    }

    /// Commits everything but the jobs, and returns the commit.
    #[track_caller]
    pub(crate) fn commit(&self, message: &str) -> String {
        self.git(&["add", "-A", "--", ".", ":!.tidewheel/jobs"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// Writes a record. Each is a second younger than the one before.
    pub(crate) fn put(&self, job: Job) -> &Self {
        let Job(mut record) = job;
        let id = record["id"].as_str().unwrap().to_owned();
        if record["created_at"].is_null() {
            let mut written = self.written.lock().unwrap();
            record["created_at"] = json!(format!("2026-02-01T12:{:02}:{:02}Z", *written / 60, *written % 60));
            *written += 1;
        }
        let directory = self.in_jobs(&id);
        fs::create_dir_all(&directory).unwrap();
        if record["status"] == "running" {
            let lock = File::create(directory.join("run.lock")).unwrap();
            lock.lock().unwrap();
            self.held.lock().unwrap().insert(id, lock);
        }
        let text = serde_json::to_string_pretty(&record).unwrap();
        fs::write(directory.join("job.json.new"), text).unwrap();
        fs::rename(directory.join("job.json.new"), directory.join("job.json")).unwrap();
        self
    }

    /// Lets the supervisor of a job that is said to run disappear.
    pub(crate) fn abandon(&self, id: &str) -> &Self {
        drop(self.held.lock().unwrap().remove(id).unwrap());
        self
    }

    /// Ends a job that is said to run, as its supervisor would.
    pub(crate) fn end(&self, id: &str, status: &str) -> &Self {
        let mut record = self.record(id);
        record["status"] = json!(status);
        record["finished_at"] = json!("2026-02-01T13:00:00Z");
        self.put(Job(record)).abandon(id)
    }

    /// Ticks once, without errors.
    #[track_caller]
    pub(crate) fn tick(&self) -> Ticked {
        let ran = self.run(&["tick", "--format", "json"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let ticked = Ticked::of(&ran.json());
        assert_eq!(ticked.errors, [""; 0], "{ran:?}");
        ticked
    }

    /// Ticks once and returns where a job stands then: status, kind and detail of what it waits for.
    #[track_caller]
    pub(crate) fn ticked(&self, id: &str) -> (String, String, String) {
        self.tick();
        self.standing(id)
    }

    /// Ticks once, unless somebody was quicker, and sees a job succeed that waited so far.
    #[track_caller]
    pub(crate) fn succeeds(&self, id: &str) {
        self.tick();
        let ran = self.wait(id);
        assert_eq!(self.status(id), "succeeded", "{ran:?}");
    }

    /// Returns where a job stands: status, kind and detail of what it waits for.
    #[track_caller]
    pub(crate) fn standing(&self, id: &str) -> (String, String, String) {
        let record = self.record(id);
        let text = |path| record.pointer(path).and_then(Value::as_str).unwrap_or("").to_owned();
        (text("/status"), text("/schedule/wait_reason/kind"), text("/schedule/wait_reason/detail"))
    }
}

impl Ticked {
    /// Reads what `tick --format json` printed.
    #[track_caller]
    pub(crate) fn of(document: &Value) -> Self {
        let texts = |name: &str| -> Vec<String> {
            serde_json::from_value(document[name].clone()).unwrap_or_else(|_| panic!("{name}: {document}"))
        };
        assert!(document["version"].is_u64(), "{document}");
        Self { started: texts("started"), updated: texts("updated"), errors: texts("errors") }
    }
}

/// Returns a standing as the tests write it.
pub(crate) fn standing(status: &str, kind: &str, detail: &str) -> (String, String, String) {
    (status.to_owned(), kind.to_owned(), detail.to_owned())
}

/// Returns what is at a path of a record; nothing and null are the same.
pub(crate) fn at<'a>(record: &'a Value, path: &str) -> &'a Value {
    record.pointer(path).unwrap_or(&Value::Null)
}
