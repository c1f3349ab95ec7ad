//! Markers say that an artifact is there; payloads say what is in it, and never that it is there.

use std::io;

use serde_json::Value;
use tidewheel_core::job::JobId;

use super::beneath::Root;
use super::layout;
use crate::jobs::{JobStoreError, Marker};

/// Tells whether a marker is there: of any of these jobs, or of any at all.
pub(super) fn has_marker(
    root: &Root,
    type_id: &str,
    key: &str,
    of: Option<&[JobId]>,
) -> Result<bool, JobStoreError> {
    let folder = layout::artifact(layout::MARKERS, type_id, key);
    let fail = |source| JobStoreError::Io { verb: "read", path: root.path(&folder), source };
    if let Some(jobs) = of {
        for job in jobs {
            let path = format!("{folder}/{}", layout::made_by(job));
            if is_there(root.look(&path)).map_err(fail)? {
                return Ok(true);
            }
        }
        return Ok(false);
    }
    let names = or_none(root.names(&folder)).map_err(fail)?;
    Ok(names.iter().any(|(name, _)| !name.starts_with(b".")))
}

/// Reads the payload beside the newest marker.
pub(super) fn payload(
    root: &Root,
    type_id: &str,
    key: &str,
    of: Option<&[JobId]>,
) -> Result<Option<Value>, JobStoreError> {
    let markers = layout::artifact(layout::MARKERS, type_id, key);
    let fail = |source| JobStoreError::Io { verb: "read", path: root.path(&markers), source };
    let mut newest = None;
    for (name, _) in or_none(root.names(&markers)).map_err(fail)? {
        let Some(job) = std::str::from_utf8(&name).ok().and_then(|name| name.strip_suffix(".json")) else {
            continue;
        };
        let Ok(job) = JobId::new(job) else { continue };
        if of.is_some_and(|jobs| !jobs.contains(&job)) {
            continue;
        }
        if let Some(found) = root.look(&format!("{markers}/{}", layout::made_by(&job))).map_err(fail)? {
            newest = newest.max(Some((found.signature.0, job)));
        }
    }
    let Some((_, job)) = newest else { return Ok(None) };
    let path = format!("{}/{}", layout::artifact(layout::PAYLOADS, type_id, key), layout::made_by(&job));
    super::read::json_up_to(root, &path, MOST_PAYLOAD)
}

/// A payload holds a text of many megabytes, written with all its escapes.
const MOST_PAYLOAD: u64 = 128 << 20;

/// Returns the text of a marker.
pub(super) fn marker_text(marker: &Marker) -> String {
    let value = serde_json::json!({
        "job_id": marker.job_id.as_str(),
        "type_id": marker.type_id,
        "key": marker.key,
        "written_at": marker.written_at.to_string(),
    });
    super::read::text(&value)
}

/// A name that is longer than any name can be is that of nothing.
fn or_none<T: Default>(result: io::Result<T>) -> io::Result<T> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::InvalidFilename => Ok(T::default()),
        result => result,
    }
}

fn is_there<T>(result: io::Result<Option<T>>) -> io::Result<bool> {
    Ok(or_none(result)?.is_some())
}
