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
/// Held while a process of the job waits for other jobs and lends them its slot.
pub(super) const LENT_LOCK: &str = "lent.lock";
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

/// What its supervisor says when it breaks.
pub(super) const SUPERVISOR_LOG: &str = "supervisor.log";
/// What else is made in the directory of a job: by its supervisor, and by git for the time of an operation.
const WORK: [&str; 4] = [SUPERVISOR_LOG, "commit-message.txt", "patch.index", "document.index"];

/// How removed jobs begin that are put aside where there is no room for [`BIN`].
pub(super) const ASIDE: &str = ".removed-";
/// How manifests begin that are put aside. No job has such a name.
pub(super) const MANIFEST_ASIDE: &str = ".manifest-";

/// Returns whether a name in the directory of a job is that of a file which is made there by Tidewheel: one of its files,
/// an earlier part of a log, or one of these on its way to its place.
pub(super) fn is_made_in_job(name: &str) -> bool {
    let own = [RECORD, EVENTS, RUN_LOCK, LENT_LOCK];
    let is_known = |name: &str| {
        own.contains(&name) || LOGS.contains(&name) || LEFT.contains(&name) || WORK.contains(&name)
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let without_number = |name: &'_ str| -> Option<usize> {
        let (rest, number) = name.rsplit_once('.')?;
        is_number(number).then_some(rest.len())
    };
    if is_known(name) {
        return true;
    }
    if let Some(on_its_way) = name.strip_prefix('.').and_then(|name| name.strip_suffix(".tmp")) {
        // `.<name>.<process>.<count>.tmp`, or without the count.
        let Some(once) = without_number(on_its_way).map(|end| &on_its_way[..end]) else { return false };
        let twice = without_number(once).map(|end| &once[..end]);
        return is_known(once) || twice.is_some_and(is_known);
    }
    let is_beside = |ending: &str| name.strip_suffix(ending).is_some_and(is_known);
    let is_old_log = without_number(name).is_some_and(|end| LOGS.contains(&&name[..end]));
    is_beside(".new") || is_beside(".lock") || is_old_log
}

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
    fn what_is_made_in_the_directory_of_a_job_is_told_from_what_others_put_there() {
        for name in [
            "job.json",
            "events.jsonl",
            "run.lock",
            "stdout.log",
            "stderr.log.1",
            "supervisor.log",
            "command.patch",
            "command.patch.new",
            "patch.index.lock",
            ".job.json.17.0.tmp",
            ".patch-pipeline.json.17.tmp",
        ] {
            assert!(is_made_in_job(name), "{name}");
        }
        for name in [
            "notes.txt",
            "job.json.bak",
            "stdout.log.old",
            "stdout.log.",
            ".notes.17.0.tmp",
            ".job.json.tmp",
            ".tmp",
            "core.17",
            "",
        ] {
            assert!(!is_made_in_job(name), "{name}");
        }
    }

    #[test]
    fn a_long_name_of_a_shared_state_still_fits_into_a_file_name() {
        assert!(shared_name(&"x".repeat(10_000)).len() < 200);
        assert_ne!(shared_name(&"x".repeat(10_000)), shared_name(&"x".repeat(10_001)));
        assert_eq!(shared_name("a/b"), "612f62.json");
    }
}
