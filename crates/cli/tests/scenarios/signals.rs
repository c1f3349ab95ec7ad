//! How a test and the jobs of a world tell each other what to wait for, so that nothing depends on how long it takes.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::fs;

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};
use rustix::process::Pid;
use serde_json::Value;

use crate::world::{World, eventually};

impl World {
    /// Makes a pipe at which a job waits with `: <name`.
    pub(crate) fn pipe(&self, name: &str) -> &Self {
        mknodat(CWD, self.path(name), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        self
    }

    /// Waits until somebody is at a pipe, and lets them go on.
    #[track_caller]
    pub(crate) fn let_go(&self, name: &str) {
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        eventually(&format!("somebody is at {name}"), || open(self.path(name), flags, Mode::empty()).is_ok());
    }

    /// Waits until a job runs, its process is on record, and it has made a file.
    #[track_caller]
    pub(crate) fn has_begun(&self, id: &str, file: &str) {
        eventually(&format!("{id} has begun"), || {
            self.path(file).exists() && self.record(id)["pid"].is_u64()
        });
    }

    /// Takes the turn, as a scheduler does; until it is dropped nobody puts anything on record.
    pub(crate) fn take_turn(&self) -> fs::File {
        let lock =
            fs::File::options().create(true).append(true).open(self.in_jobs("scheduler.lock")).unwrap();
        lock.lock().unwrap();
        lock
    }

    /// Waits until the supervisor of a job has seen its end, and waits for the turn to put it on record.
    #[track_caller]
    pub(crate) fn has_ended(&self, id: &str) {
        let is_there = |name: &&str| self.in_jobs(id).join(name).exists();
        eventually(&format!("{id} has ended"), || ["ended.json", "outcome.json"].iter().any(is_there));
    }

    /// Returns the supervisor of a job.
    #[track_caller]
    pub(crate) fn supervisor(&self, id: &str) -> Pid {
        let all = self.processes();
        let found = all.iter().find(|(_, line)| line.contains("__workflow-node") && line.contains(id));
        found.unwrap_or_else(|| panic!("{id} has no supervisor: {all:?}")).0
    }

    /// Waits until a process is gone.
    #[track_caller]
    pub(crate) fn is_gone(&self, pid: Pid) {
        eventually("the process is gone", || self.processes().iter().all(|(other, _)| *other != pid));
    }

    /// Returns what happened to a job: the attempt and the name of each event.
    #[track_caller]
    pub(crate) fn events(&self, id: &str) -> Vec<(u64, String)> {
        let text = fs::read_to_string(self.in_jobs(id).join("events.jsonl")).unwrap();
        let event = |line: &str| {
            let event: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {text}"));
            let name = event["event"].as_object().unwrap().keys().next().unwrap().clone();
            (event["attempt"].as_u64().unwrap(), name)
        };
        text.lines().map(event).collect()
    }

    /// Returns the lines that jobs have added to a file.
    pub(crate) fn lines(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.path(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}
