//! Reads single files of jobs. Writes nothing.

use std::collections::BTreeSet;
use std::io;

use rustix::fs::FileType;
use rustix::io::Errno;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tidewheel_core::job::{Brief, JobEvent, JobId, JobStatus, Manifest, NodeId, Record, RecordError, RunId};

use super::beneath::Root;
use super::layout;
use super::signature::Signature;
use crate::jobs::JobStoreError;

/// What is in the directory of a job.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum State {
    /// A record.
    Job(Box<Brief>),
    /// Something that is no record, and why.
    Unreadable(String),
    /// Nothing, or nothing yet.
    Vacant,
}

/// Reads a record, whether its run is there or not.
pub(super) fn record(root: &Root, id: &JobId) -> Result<Option<Record>, JobStoreError> {
    let path = layout::of_job(id, layout::RECORD);
    let Some(text) = text_of(root, &path)? else { return Ok(None) };
    let record = Record::parse(&text)?;
    if record.id != *id {
        return Err(RecordError::Misplaced { found: record.id }.into());
    }
    Ok(Some(record))
}

/// Reads what is in the directory of a job, with what its record is known by.
///
/// That this process may open no more files, or has no memory, says nothing about the record. It is an error of its own:
/// the index would remember it as damage as long as the record stays as it is.
pub(super) fn state(root: &Root, id: &JobId) -> Result<(Signature, State), JobStoreError> {
    // What the file is known by comes first: a file that is replaced in between differs the next time.
    let path = layout::of_job(id, layout::RECORD);
    let signature = signature(root, &path);
    let state = match record(root, id) {
        Ok(Some(record)) => State::Job(Box::new(Brief::from(&record))),
        Ok(None) => State::Vacant,
        Err(error) if error.lacks_room() => return Err(error),
        // The file may be sound and stay the same: the index has to read it again.
        Err(error) if may_pass(&error) => {
            return Ok((Signature::NO_FILE, State::Unreadable(error.explain())));
        }
        Err(error) => State::Unreadable(error.explain()),
    };
    Ok((signature, state))
}

/// Returns whether a failure is one of the system at this moment, and says nothing about the file.
fn may_pass(error: &JobStoreError) -> bool {
    let JobStoreError::Io { source, .. } = error else { return false };
    let passing = [Errno::IO, Errno::INTR, Errno::STALE, Errno::TIMEDOUT];
    Errno::from_io_error(source).is_some_and(|errno| passing.contains(&errno))
}

/// Returns what a file is known by; of one that is not there, or cannot be looked at, nothing but zeros.
pub(super) fn signature(root: &Root, path: &str) -> Signature {
    root.look(path).ok().flatten().map_or(Signature(0, 0, 0), |found| found.signature)
}

/// Tells whether a job has begun, so that its run was enqueued to the end, even if its manifest was lost since.
pub(super) const fn is_begun(status: JobStatus) -> bool {
    matches!(status, JobStatus::Running)
}

/// Tells whether a run was enqueued to the end.
pub(super) fn has_manifest(root: &Root, run: &RunId) -> bool {
    root.look(&layout::manifest(run)).is_ok_and(|found| found.is_some())
}

/// Returns whether a job without a record had one: it was started, or a run that was enqueued to the end has a job of this
/// name. The manifest of a run is written after the records, and removed before them.
pub(super) fn is_missed(root: &Root, id: &JobId) -> bool {
    let has_run = |rest: &str| {
        let runs = rest.match_indices('-').filter_map(|(at, _)| RunId::new(&rest[..at]).ok());
        runs.into_iter().any(|run| has_manifest(root, &run))
    };
    let lock = root.look(&layout::of_job(id, layout::RUN_LOCK));
    lock.is_ok_and(|found| found.is_some()) || id.as_str().strip_prefix("wf-").is_some_and(has_run)
}

/// Returns whether a job was started, by what only a start makes.
pub(super) fn was_started(root: &Root, id: &JobId) -> bool {
    let has = |name: &str| root.look(&layout::of_job(id, name)).is_ok_and(|found| found.is_some());
    has(layout::RUN_LOCK) || layout::LOGS.into_iter().any(has)
}

/// Reads the manifest of a run.
pub(super) fn manifest(root: &Root, run: &RunId) -> Result<Option<Manifest>, JobStoreError> {
    manifest_at(root, &layout::manifest(run))
}

/// Reads a manifest that may have been put aside.
pub(super) fn manifest_at(root: &Root, path: &str) -> Result<Option<Manifest>, JobStoreError> {
    Ok(text_of(root, path)?.map(|text| Manifest::parse(&text)).transpose()?)
}

/// Reads the manifest of a run, of its nodes only one.
pub(super) fn manifest_with(
    root: &Root,
    run: &RunId,
    node: &NodeId,
) -> Result<Option<Manifest>, JobStoreError> {
    let text = text_of(root, &layout::manifest(run))?;
    Ok(text.map(|text| Manifest::parse_with(&text, node)).transpose()?)
}

/// Fails if something else is in the place of the directory of the manifests: every run would look as if it had never
/// been enqueued to the end.
pub(super) fn check_runs(root: &Root) -> Result<(), JobStoreError> {
    let found = root.look(layout::RUNS).ok().flatten().map(|found| found.kind);
    if matches!(found, None | Some(FileType::Directory)) {
        return Ok(());
    }
    match root.folder(layout::RUNS) {
        Err(source) if source.kind() == io::ErrorKind::NotADirectory => {
            Err(JobStoreError::Io { verb: "read", path: root.path(layout::RUNS), source })
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Returns the runs that have a manifest.
pub(super) fn runs(root: &Root) -> Result<BTreeSet<RunId>, JobStoreError> {
    let names = root.names(layout::RUNS).map_err(|source| {
        // What is in the way may stand above it.
        let path = if root.folder(layout::JOBS).is_err() { layout::JOBS } else { layout::RUNS };
        JobStoreError::Io { verb: "read", path: root.path(path), source }
    })?;
    let run = |name: &[u8]| RunId::new(std::str::from_utf8(name).ok()?.strip_suffix(".json")?).ok();
    Ok(names.iter().filter_map(|(name, _)| run(name)).collect())
}

/// What happened to a job, as far as it can be read.
#[derive(Debug, Default)]
pub struct History {
    /// What happened.
    pub events: Vec<JobEvent>,
    /// The lines that say nothing any more, from one, and what is wrong with each.
    pub damaged: Vec<(usize, serde_json::Error)>,
    /// Whether there is a file at all.
    pub is_there: bool,
}

impl History {
    /// Says what is wrong with the history of a job, in a few words. One that was started and is over has at least its
    /// start in it, whatever a crash cut off at the end.
    #[must_use]
    pub fn wrong_of(&self, job: &Brief) -> Option<String> {
        let is_lost = self.events.is_empty() && job.started_at.is_some() && job.status.is_terminal();
        let lost = if self.is_there { "no line of it is whole" } else { "it is gone" };
        self.wrong().or_else(|| is_lost.then(|| format!("{lost}, and the job was started")))
    }

    /// Says which lines are damaged, in a few words.
    fn wrong(&self) -> Option<String> {
        let (line, why) = self.damaged.first()?;
        // Where in its text, which is one line, helps nobody.
        let why = why.to_string();
        let why = why.split_once(" at line ").map_or(why.as_str(), |(why, _)| why);
        Some(match self.damaged.len() - 1 {
            0 => format!("line {line} is damaged: {why}"),
            1 => format!("line {line} and another one are damaged: {why}"),
            more => format!("line {line} and {more} others are damaged: {why}"),
        })
    }
}

/// Reads what happened to a job, and passes over what is damaged. What was cut off at the end by a crash is left out.
pub(super) fn history(root: &Root, id: &JobId) -> Result<History, JobStoreError> {
    const MAX_EVENTS: u64 = 256 << 20;
    let path = layout::of_job(id, layout::EVENTS);
    let fail = |source| JobStoreError::Io { verb: "read", path: root.path(&path), source };
    let mut history = History::default();
    let Some((bytes, _)) = root.bytes_up_to(&path, MAX_EVENTS).map_err(fail)? else { return Ok(history) };
    history.is_there = true;
    let end = bytes.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
    for (number, line) in (1..).zip(bytes[..end].split(|byte| *byte == b'\n')) {
        if line.trim_ascii().is_empty() {
            continue;
        }
        match serde_json::from_slice(line) {
            Ok(event) => history.events.push(event),
            Err(error) => history.damaged.push((number, error)),
        }
    }
    Ok(history)
}

/// Reads what happened to a job, all of it. What was cut off at the end by a crash is left out.
pub(super) fn events(root: &Root, id: &JobId) -> Result<Vec<JobEvent>, JobStoreError> {
    let History { events, damaged, .. } = history(root, id)?;
    match damaged.into_iter().next() {
        Some((_, source)) => {
            Err(JobStoreError::Json { path: root.path(&layout::of_job(id, layout::EVENTS)), source })
        }
        None => Ok(events),
    }
}

/// Reads any other file.
pub(super) fn json<T: DeserializeOwned>(root: &Root, path: &str) -> Result<Option<T>, JobStoreError> {
    json_up_to(root, path, super::beneath::MAX_FILE)
}

/// Reads a file that may have up to so many bytes.
pub(super) fn json_up_to<T: DeserializeOwned>(
    root: &Root,
    path: &str,
    max: u64,
) -> Result<Option<T>, JobStoreError> {
    let fail = |source| JobStoreError::Io { verb: "read", path: root.path(path), source };
    let Some((text, _)) = root.read_up_to(path, max).map_err(fail)? else { return Ok(None) };
    let value = serde_json::from_str(&text);
    value.map(Some).map_err(|source| JobStoreError::Json { path: root.path(path), source })
}

/// Returns the text of a file with this value.
pub(super) fn text(value: &Value) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("invariant: every key is a string");
    text.push('\n');
    text
}

fn text_of(root: &Root, path: &str) -> Result<Option<String>, JobStoreError> {
    let fail = |source| JobStoreError::Io { verb: "read", path: root.path(path), source };
    Ok(root.read(path).map_err(fail)?.map(|(text, _)| text))
}

#[cfg(test)]
mod tests {
    use tidewheel_core::time::Timestamp;

    use super::*;

    /// One damaged line took all others with it.
    #[test]
    fn a_history_is_read_as_far_as_it_goes() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("jobs/a")).unwrap();
        let root = Root::open(folder.path()).unwrap().unwrap();
        let id = JobId::new("a").unwrap();
        assert!(history(&root, &id).unwrap().events.is_empty());
        let event = br#"{"at":"2026-02-01T12:00:00Z","attempt":1,"event":{"withdrawn":{"reason":"x"}}}"#;
        let write = |lines: &[&[u8]]| {
            std::fs::write(folder.path().join("jobs/a/events.jsonl"), lines.join(&b'\n')).unwrap();
            history(&root, &id).unwrap()
        };
        // What a crash cut off at the end is no damage.
        let whole = write(&[event, b"", event, b"{\"at\":"]);
        assert_eq!((whole.events.len(), whole.wrong()), (2, None));
        assert_eq!(events(&root, &id).unwrap().len(), 2);
        let torn = write(&[event, b"what", event, b"\xff\xfe", b"{}", event, b""]);
        assert_eq!(torn.events.len(), 3);
        assert_eq!(torn.wrong().unwrap(), "line 2 and 2 others are damaged: expected value");
        assert!(matches!(events(&root, &id), Err(JobStoreError::Json { .. })));
    }

    #[test]
    fn a_job_that_was_started_and_is_over_has_a_history() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("jobs/a")).unwrap();
        let root = Root::open(folder.path()).unwrap().unwrap();
        let id = JobId::new("a").unwrap();
        let mut record = Record::new(id.clone(), Timestamp::from_millis(1));
        let wrong = |record: &Record| history(&root, &id).unwrap().wrong_of(&Brief::from(record));
        record.status = JobStatus::Cancelled;
        assert_eq!(wrong(&record), None, "it was never started");
        record.started_at = Some(Timestamp::from_millis(2));
        assert_eq!(wrong(&record).unwrap(), "it is gone, and the job was started");
        record.status = JobStatus::Running;
        assert_eq!(wrong(&record), None, "it is not over");
        record.status = JobStatus::Failed;
        std::fs::write(folder.path().join("jobs/a/events.jsonl"), "{\"at\":\"2026-02-01").unwrap();
        assert_eq!(wrong(&record).unwrap(), "no line of it is whole, and the job was started");
        let event = r#"{"at":"2026-02-01T12:00:00Z","attempt":1,"event":{"withdrawn":{"reason":"x"}}}"#;
        std::fs::write(folder.path().join("jobs/a/events.jsonl"), format!("{event}\n{{")).unwrap();
        assert_eq!(wrong(&record), None, "a crash may cut off the end");
    }

    #[test]
    fn a_file_in_the_place_of_the_jobs_is_not_taken_for_no_jobs() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(folder.path()).unwrap().unwrap();
        assert!(runs(&root).unwrap().is_empty());
        std::fs::write(folder.path().join("jobs"), "").unwrap();
        let Err(JobStoreError::Io { path, source, .. }) = runs(&root) else { panic!("it cannot be read") };
        assert_eq!((path, source.kind()), (folder.path().join("jobs"), std::io::ErrorKind::NotADirectory));
    }
}
