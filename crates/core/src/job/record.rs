//! What is kept of a job, as it stands in its file. Fields that a later release wrote survive, at every depth.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::id::{JobId, NodeId, RunId};
use super::metadata::Metadata;
use super::overlay;
use super::schedule::Schedule;
use super::status::JobStatus;
use super::time_text;
use crate::time::Timestamp;

/// The version of the records that this release writes.
pub const RECORD_VERSION: u32 = 1;

/// What is kept of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Its id.
    pub id: JobId,
    /// Where it stands.
    pub status: JobStatus,
    /// What it was asked to do, for people.
    pub command: Vec<String>,
    /// The arguments of the process that runs it; without any it cannot start.
    pub child_args: Vec<String>,
    /// When it was enqueued.
    pub created_at: Timestamp,
    /// When its last attempt started.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// The leader of the process group of its attempt.
    pub pid: Option<u32>,
    /// When that process started, as the system counts, so that a number that was given again is told apart.
    pub process_start_time: Option<u64>,
    /// How it ended.
    pub exit_code: Option<i32>,
    /// Where its output is, relative to the root.
    pub stdout_path: String,
    /// Where its complaints are, relative to the root.
    pub stderr_path: String,
    /// Reserved.
    pub session_path: Option<String>,
    /// Where its outcome is, relative to the root.
    pub outcome_path: Option<String>,
    /// What else there is to know.
    pub metadata: Metadata,
    /// What was configured when it was enqueued.
    pub config_snapshot: Option<Value>,
    /// What it waits for.
    pub schedule: Schedule,
    /// All that was in the file when it was read; what we do not know goes back into it.
    kept: Map<String, Value>,
}

/// Why the text of a file is no record.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// It is no JSON, or a field is not what it should be.
    #[error("{0}")]
    Unreadable(#[from] serde_json::Error),
    /// A later release wrote it.
    #[error("record has version {found}, and this release knows up to {RECORD_VERSION}")]
    Newer {
        /// Its version.
        found: u64,
    },
    /// It is the record of another job.
    #[error("record is of job {found}")]
    Misplaced {
        /// The job.
        found: JobId,
    },
}

impl Record {
    /// Returns how many starts it has had since a person last had it done again: what budgets count.
    #[must_use]
    pub fn starts_since_retry(&self) -> u32 {
        let number = |name| self.metadata.number(name).unwrap_or(0);
        number(Metadata::NODE_ATTEMPT).max(1).saturating_sub(number(Metadata::ATTEMPTS_BEFORE))
    }

    /// Returns the record of a job that was just enqueued.
    #[must_use]
    pub fn new(id: JobId, created_at: Timestamp) -> Self {
        let log = |name: &str| format!(".tidewheel/jobs/{id}/{name}.log");
        Self {
            status: JobStatus::Queued,
            command: Vec::new(),
            child_args: Vec::new(),
            created_at,
            started_at: None,
            finished_at: None,
            pid: None,
            process_start_time: None,
            exit_code: None,
            stdout_path: log("stdout"),
            stderr_path: log("stderr"),
            session_path: None,
            outcome_path: None,
            metadata: Metadata::default(),
            config_snapshot: None,
            schedule: Schedule::default(),
            kept: Map::new(),
            id,
        }
    }

    /// Reads a record.
    ///
    /// # Errors
    /// The text is no record that this release may write again.
    pub fn parse(text: &str) -> Result<Self, RecordError> {
        let kept: Map<String, Value> = serde_json::from_str(text)?;
        if let Some(found) = kept.get("version").and_then(Value::as_u64)
            && found > u64::from(RECORD_VERSION)
        {
            return Err(RecordError::Newer { found });
        }
        let form = Form::deserialize(&Value::Object(kept.clone()))?;
        let log = |name: &str| format!(".tidewheel/jobs/{}/{name}.log", form.id);
        Ok(Self {
            stdout_path: form.stdout_path.unwrap_or_else(|| log("stdout")),
            stderr_path: form.stderr_path.unwrap_or_else(|| log("stderr")),
            id: form.id,
            status: form.status,
            command: form.command.unwrap_or_default(),
            child_args: form.child_args.unwrap_or_default(),
            created_at: form.created_at,
            started_at: form.started_at,
            finished_at: form.finished_at,
            pid: form.pid,
            process_start_time: form.process_start_time,
            exit_code: form.exit_code,
            session_path: form.session_path,
            outcome_path: form.outcome_path,
            metadata: form.metadata.unwrap_or_default(),
            config_snapshot: form.config_snapshot,
            schedule: form.schedule.unwrap_or_default(),
            kept,
        })
    }

    /// Returns the text of its file.
    #[must_use]
    pub fn to_json(&self) -> String {
        let form = Form {
            id: self.id.clone(),
            version: Some(RECORD_VERSION),
            status: self.status,
            command: Some(self.command.clone()),
            child_args: Some(self.child_args.clone()),
            created_at: self.created_at,
            started_at: self.started_at,
            finished_at: self.finished_at,
            pid: self.pid,
            process_start_time: self.process_start_time,
            exit_code: self.exit_code,
            stdout_path: Some(self.stdout_path.clone()),
            stderr_path: Some(self.stderr_path.clone()),
            session_path: self.session_path.clone(),
            outcome_path: self.outcome_path.clone(),
            metadata: Some(self.metadata.clone()),
            config_snapshot: self.config_snapshot.clone(),
            schedule: Some(self.schedule.clone()),
        };
        let mut fields = form.to_value();
        if !self.kept.is_empty() {
            let raw = Value::Object(self.kept.clone());
            let known = Form::deserialize(&raw).map_or(Value::Null, |form| form.to_value());
            overlay::put_back(&mut fields, &raw, &known);
        }
        let mut text = serde_json::to_string_pretty(&fields).expect("invariant: every key is a string");
        text.push('\n');
        text
    }

    /// Returns the run that it belongs to, if it belongs to one.
    #[must_use]
    pub fn run(&self) -> Option<RunId> {
        RunId::new(self.metadata.text(Metadata::RUN_ID)?).ok()
    }

    /// Returns the node that it runs.
    #[must_use]
    pub fn node(&self) -> Option<NodeId> {
        NodeId::new(self.metadata.text(Metadata::NODE_ID)?).ok()
    }
}

/// The written form.
#[derive(Serialize, Deserialize)]
struct Form {
    id: JobId,
    version: Option<u32>,
    status: JobStatus,
    command: Option<Vec<String>>,
    child_args: Option<Vec<String>>,
    #[serde(with = "time_text")]
    created_at: Timestamp,
    #[serde(default, with = "time_text::option")]
    started_at: Option<Timestamp>,
    #[serde(default, with = "time_text::option")]
    finished_at: Option<Timestamp>,
    pid: Option<u32>,
    process_start_time: Option<u64>,
    exit_code: Option<i32>,
    stdout_path: Option<String>,
    stderr_path: Option<String>,
    session_path: Option<String>,
    outcome_path: Option<String>,
    metadata: Option<Metadata>,
    config_snapshot: Option<Value>,
    schedule: Option<Schedule>,
}

impl Form {
    fn to_value(&self) -> Value {
        serde_json::to_value(self).expect("invariant: every key of a record is a string")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_later_release_added_survives() {
        let text = r#"{"id":"a","version":1,"status":"queued","created_at":"2026-02-01T12:00:00+00:00",
            "mood":"good","metadata":{"x":[1]},"schedule":{"after":[{"job_id":"b","policy":"success"}],"tide":7}}"#;
        let mut record = Record::parse(text).unwrap();
        record.status = JobStatus::Cancelled;
        record.schedule.after.clear();
        let again: Value = serde_json::from_str(&record.to_json()).unwrap();
        assert_eq!(again["mood"], "good");
        assert_eq!(again["schedule"]["tide"], 7);
        assert_eq!(again["metadata"]["x"][0], 1);
        assert_eq!(again["status"], "cancelled");
        assert_eq!(again["schedule"].get("after"), None);
        assert_eq!(again["exit_code"], Value::Null);
        assert_eq!(Record::parse(&record.to_json()).unwrap().to_json(), record.to_json());
    }

    #[test]
    fn a_later_version_is_refused() {
        let text = r#"{"id":"a","version":2,"status":"queued","created_at":"2026-02-01T12:00:00Z"}"#;
        assert!(matches!(Record::parse(text), Err(RecordError::Newer { found: 2 })));
    }
}
