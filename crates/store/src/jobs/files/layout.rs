//! Where everything lies beneath the data directory. Only names that were checked, or made of digits, get in here.

use std::fmt::Write as _;

use tidewheel_core::job::{JobId, RunId};

/// The directory of all that is about jobs.
pub(super) const JOBS: &str = "jobs";
/// The directory of the manifests.
pub(super) const RUNS: &str = "jobs/runs";
/// The directory of the markers.
pub(super) const MARKERS: &str = "jobs/artifacts/custom";
/// The directory of the payloads.
pub(super) const PAYLOADS: &str = "jobs/artifacts/data";
/// The directory of the states that jobs share.
pub(super) const SHARED: &str = "jobs/keys";
/// The directory of all that is about artifacts.
pub(super) const ARTIFACTS: &str = "jobs/artifacts";
/// Where removed jobs go until they are swept up.
pub(super) const BIN: &str = "jobs/tmp";
/// The lock of whoever serves the times of jobs.
pub(super) const SERVER_LOCK: &str = "daemon.lock";
/// The lock of the turns.
pub(super) const TURN_LOCK: &str = "scheduler.lock";
/// When somebody has to look again.
pub(super) const DUE: &str = "index.due";

/// The canonical record, in the directory of its job.
pub(super) const RECORD: &str = "job.json";
/// How the job ended.
pub(super) const OUTCOME: &str = "outcome.json";
/// How its last attempt ended, as its supervisor wrote it down before it could be put on record.
pub(super) const ENDED: &str = "ended.json";
/// What happened to it.
pub(super) const EVENTS: &str = "events.jsonl";
/// That somebody wants it to end.
pub(super) const CANCEL: &str = "cancel.json";
/// Held while its supervisor lives.
pub(super) const RUN_LOCK: &str = "run.lock";
/// What its process says.
pub(super) const LOGS: [&str; 2] = ["stdout.log", "stderr.log"];
/// What is left of the last time when a job starts again from nothing.
pub(super) const LEFT: [&str; 9] = [
    OUTCOME,
    ENDED,
    CANCEL,
    "command.patch",
    "ask-save.patch",
    "save-input.patch",
    "patch-pipeline.json",
    "patch-pipeline.patch",
    "patch-pipeline.finalize.json",
];

/// Returns the directory of a job.
pub(super) fn job(id: &JobId) -> String {
    format!("{JOBS}/{id}")
}

/// Returns a file of a job.
pub(super) fn of_job(id: &JobId, name: &str) -> String {
    format!("{JOBS}/{id}/{name}")
}

/// Returns the name of the manifest of a run.
pub(super) fn manifest_name(run: &RunId) -> String {
    format!("{run}.json")
}

/// Returns the manifest of a run.
pub(super) fn manifest(run: &RunId) -> String {
    format!("{RUNS}/{run}.json")
}

/// Returns the directory of the markers or payloads of an artifact.
pub(super) fn artifact(base: &str, type_id: &str, key: &str) -> String {
    format!("{base}/{}/{}", hex(type_id), hex(key))
}

/// Returns the name of what a job made of an artifact.
pub(super) fn made_by(id: &JobId) -> String {
    format!("{id}.json")
}

/// Returns the name of a shared state: its digits, or those of its hash where they are too many for a file name.
pub(super) fn shared_name(name: &str) -> String {
    const MAX: usize = 100;
    if name.len() <= MAX {
        format!("{}.json", hex(name))
    } else {
        format!("b3-{}.json", blake3::hash(name.as_bytes()))
    }
}

/// Returns the bytes of a text in lower-case hexadecimal digits.
fn hex(text: &str) -> String {
    let mut digits = String::with_capacity(2 * text.len());
    for byte in text.bytes() {
        write!(digits, "{byte:02x}").expect("invariant: a string takes any text");
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_38_a_marker_lies_under_the_digits_of_its_names() {
        assert_eq!(artifact(MARKERS, "acme.exec", "k1"), "jobs/artifacts/custom/61636d652e65786563/6b31");
        assert_eq!(artifact(PAYLOADS, "../..", "/ä"), "jobs/artifacts/data/2e2e2f2e2e/2fc3a4");
    }

    #[test]
    fn a_long_name_of_a_shared_state_still_fits_into_a_file_name() {
        assert!(shared_name(&"x".repeat(10_000)).len() < 200);
        assert_ne!(shared_name(&"x".repeat(10_000)), shared_name(&"x".repeat(10_001)));
        assert_eq!(shared_name("a/b"), "612f62.json");
    }
}
