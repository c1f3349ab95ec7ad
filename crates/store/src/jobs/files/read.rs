//! Reads single files of jobs. Writes nothing.

use std::collections::BTreeSet;

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
pub(super) fn state(root: &Root, id: &JobId) -> (Signature, State) {
    // What the file is known by comes first: a file that is replaced in between differs the next time.
    let path = layout::of_job(id, layout::RECORD);
    let signature = signature(root, &path);
    let state = match record(root, id) {
        Ok(Some(record)) => State::Job(Box::new(Brief::from(&record))),
        Ok(None) => State::Vacant,
        Err(error) => State::Unreadable(error.explain()),
    };
    (signature, state)
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

/// Reads the manifest of a run.
pub(super) fn manifest(root: &Root, run: &RunId) -> Result<Option<Manifest>, JobStoreError> {
    let text = text_of(root, &layout::manifest(run))?;
    Ok(text.map(|text| Manifest::parse(&text)).transpose()?)
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

/// Returns the runs that have a manifest.
pub(super) fn runs(root: &Root) -> Result<BTreeSet<RunId>, JobStoreError> {
    let names = root.names(layout::RUNS);
    let names =
        names.map_err(|source| JobStoreError::Io { verb: "read", path: root.path(layout::RUNS), source })?;
    let run = |name: &[u8]| RunId::new(std::str::from_utf8(name).ok()?.strip_suffix(".json")?).ok();
    Ok(names.iter().filter_map(|(name, _)| run(name)).collect())
}

/// Reads what happened to a job. What was cut off at the end by a crash is left out.
pub(super) fn events(root: &Root, id: &JobId) -> Result<Vec<JobEvent>, JobStoreError> {
    const MAX_EVENTS: u64 = 256 << 20;
    let path = layout::of_job(id, layout::EVENTS);
    let fail = |source| JobStoreError::Io { verb: "read", path: root.path(&path), source };
    let Some((text, _)) = root.read_up_to(&path, MAX_EVENTS).map_err(fail)? else { return Ok(Vec::new()) };
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let lines = whole.lines().filter(|line| !line.is_empty());
    let parse = |line| serde_json::from_str(line);
    lines
        .map(parse)
        .collect::<Result<_, _>>()
        .map_err(|source| JobStoreError::Json { path: root.path(&path), source })
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
