//! The data directory itself: where it is, whether it can be written, how much room there is, what its clock says.

use std::io::ErrorKind;

use tidewheel_core::time::{Span, Timestamp};
use tidewheel_store::jobs::{Checkup, Kept};

use super::whole::{counted, some};
use crate::doctor::facts::{Facts, Kind, Refusal, Space};
use crate::doctor::finding::{Check, Finding};
use crate::jobs::How;

/// Says where the data directory is, and how it was found.
pub(super) fn place(facts: &Facts) -> Vec<Finding> {
    let data = facts.place.data.display().to_string();
    let how = match facts.how {
        How::Named => "named by --dir",
        How::Nearest => "the nearest one from here upwards",
        How::Repository => "in the root of the repository",
        How::Here => "in the current directory",
    };
    match facts.data {
        Kind::Missing if facts.store.is_some() => {
            vec![Finding::fine(
                Check::Place,
                format!("no data directory, and none is needed for a store: {data}"),
            )]
        }
        Kind::Missing if !facts.refusals.is_empty() => {
            facts.refusals.iter().map(|refusal| refused(facts, refusal)).collect()
        }
        Kind::Missing => vec![
            Finding::warning(
                Check::Place,
                &data,
                format!("there is no data directory yet; it would be {how}"),
            )
            .todo(
                "`tidewheel init` makes it, with a first flow. If there should be one, go to its \
                    directory, or name it with --dir.",
            ),
        ],
        Kind::Other => vec![
            Finding::broken(Check::Place, &data, "the data directory is no directory")
                .todo("Move it away, and `tidewheel init` makes the directory."),
        ],
        Kind::Directory if facts.jobs_folder == Kind::Other => vec![
            Finding::broken(Check::Place, ".tidewheel/jobs", "the directory of the jobs is no directory")
                .todo("Move it away; the next `tidewheel run` makes the directory."),
        ],
        Kind::Directory if facts.runs_folder == Kind::Other => vec![
            Finding::broken(
                Check::Place,
                ".tidewheel/jobs/runs",
                "the directory of the manifests is no directory, and the runs are unknown without them",
            )
            .todo(
                "Move it away, and put the directory back from a backup: jobs of runs without manifests are not \
                shown, and `tidewheel jobs gc` would remove them.",
            ),
        ],
        Kind::Directory => vec![Finding::fine(Check::Place, format!("{data}, {how}"))],
    }
}

/// Says whether files can be read and written, and reach the disk.
pub(super) fn rights(facts: &Facts) -> Vec<Finding> {
    if facts.refusals.is_empty() {
        let fine = "files can be read and written, and what is written reaches the disk";
        return vec![Finding::fine(Check::Rights, fine)];
    }
    // What the data directory as a whole does not let be done, its parts do not either.
    let whole = facts.refusals.iter().find(|refusal| refusal.path == facts.place.data);
    let is_said = |refusal: &Refusal| {
        whole.is_some_and(|whole| {
            refusal.path != whole.path && (refusal.verb, refusal.kind) == (whole.verb, whole.kind)
        })
    };
    facts.refusals.iter().filter(|refusal| !is_said(refusal)).map(|refusal| refused(facts, refusal)).collect()
}

fn refused(facts: &Facts, refusal: &Refusal) -> Finding {
    let Refusal { path, verb, kind, why } = refusal;
    let inside = path.strip_prefix(&facts.place.root).ok().filter(|inside| !inside.as_os_str().is_empty());
    let file = inside.unwrap_or(path).display().to_string();
    let todo = match kind {
        ErrorKind::PermissionDenied => {
            "Work as the one who owns it, or let the owner give you the right: `chown -R` or `chmod -R \
                u+rwX` on `.tidewheel`."
        }
        ErrorKind::ReadOnlyFilesystem => {
            "Its file system is mounted for reading only. Mount it for writing, or use another directory \
                with --dir."
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => MAKE_ROOM,
        _ => {
            "Look at the disk, and at what the system says of it (`dmesg`). Nothing may be lost that is \
                not written."
        }
    };
    Finding::broken(Check::Rights, file, format!("cannot be {verb}: {why}")).todo(todo)
}

/// What gc removes needs no room.
const MAKE_ROOM: &str = "Make room on the disk: `tidewheel jobs gc` removes jobs that have been over for a while, \
    and `du -sh .tidewheel/jobs/*/ | sort -h` shows the largest ones.";

/// Less than this is too little for one more job with its log.
const TOO_FEW_BYTES: u64 = 1 << 20;
/// Less than this is soon used up by logs.
const FEW_BYTES: u64 = 100 << 20;
/// One more job has about so many files.
const TOO_FEW_FILES: u64 = 16;
/// So many are soon used up by a run with many jobs.
const FEW_FILES: u64 = 1000;

/// Says how much room there is.
pub(super) fn space(facts: &Facts) -> Vec<Finding> {
    let Some(Space { free_bytes, free_files }) = facts.space else { return Vec::new() };
    let files = free_files.map_or_else(String::new, |files| format!(" and {files} files"));
    let said = format!("room for {}{files}", size(free_bytes));
    let least = |bytes, files| free_bytes < bytes || free_files.is_some_and(|free| free < files);
    let todo = MAKE_ROOM;
    let data = facts.place.data.display().to_string();
    if least(TOO_FEW_BYTES, TOO_FEW_FILES) {
        return vec![Finding::broken(Check::Space, data, format!("the disk is full: {said}")).todo(todo)];
    }
    if least(FEW_BYTES, FEW_FILES) {
        return vec![
            Finding::warning(Check::Space, data, format!("the disk is almost full: {said}")).todo(todo),
        ];
    }
    vec![Finding::fine(Check::Space, said)]
}

/// Says how much that is, as people do.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (bytes / 1024, 0);
    while value >= 10 * 1024 && unit + 1 < UNITS.len() {
        value /= 1024;
        unit += 1;
    }
    format!("{value} {}", UNITS[unit])
}

/// Clocks of one machine and its disk agree much better; those of a file server should, too.
const MOST_SKEW_MS: u64 = 2_000;
/// Whoever writes a record may have a clock that is a little ahead.
const AHEAD: Span = Span::from_secs(60);

/// Says whether the clock agrees with the disk and with the records.
pub(super) fn clock(facts: &Facts, checkup: &Checkup) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Some(skew) = facts.skew
        && skew.unsigned_abs() > MOST_SKEW_MS
    {
        let word = if skew > 0 { "behind" } else { "ahead of" };
        let message = format!("the time of a new file is {}s {word} the clock", skew.unsigned_abs() / 1000);
        found.push(Finding::warning(Check::Clock, facts.place.data.display().to_string(), message).todo(
            "Set the clocks of this machine and of the file server by a time server; jobs must \
                    lie on a disk of this machine.",
        ));
    }
    let limit = facts.now.saturating_add(AHEAD);
    for (id, kept) in &checkup.jobs {
        let Kept::Record { brief, .. } = kept else { continue };
        let times = [Some(brief.created_at), brief.started_at, brief.finished_at];
        if let Some(latest) = times.into_iter().flatten().max().filter(|latest| *latest > limit) {
            let message = format!("is from the future: {latest}, and now it is {}", whole_second(facts.now));
            found.push(
                Finding::warning(Check::Clock, format!(".tidewheel/jobs/{id}/job.json"), message).todo(
                    "Check the clock, as with `timedatectl`. Until that time has come the job counts as \
                        new, and gc leaves it.",
                ),
            );
        }
    }
    if found.is_empty() {
        found.push(Finding::fine(Check::Clock, "the clock agrees with the disk and with the records"));
    }
    found
}

fn whole_second(instant: Timestamp) -> Timestamp {
    Timestamp::from_millis(instant.as_nanos() / 1_000_000_000 * 1000)
}

/// Names jobs for a sentence.
pub(super) fn jobs_named<T: ToString>(names: &[T]) -> String {
    format!("{} ({})", counted(names.len(), "job"), some(names))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Level;

    fn level(found: &[Finding]) -> Level {
        found.iter().map(|finding| finding.level).max().expect("every check says something")
    }

    #[test]
    fn room_is_judged_by_bytes_and_by_files() {
        let of = |free_bytes, free_files| {
            level(&space(&Facts { space: Some(Space { free_bytes, free_files }), ..Facts::in_order() }))
        };
        const MIB: u64 = 1 << 20;
        assert_eq!(of(100 * MIB, Some(1000)), Level::Fine);
        assert_eq!(of(100 * MIB - 1, Some(1000)), Level::Warning);
        assert_eq!(of(100 * MIB, Some(999)), Level::Warning);
        assert_eq!(of(MIB, None), Level::Warning);
        assert_eq!(of(MIB - 1, None), Level::Broken);
        assert_eq!(of(u64::MAX, Some(15)), Level::Broken);
    }

    #[test]
    fn a_clock_that_the_disk_does_not_share_is_told_in_both_directions() {
        let of = |skew| clock(&Facts { skew, ..Facts::in_order() }, &Checkup::default());
        assert_eq!(level(&of(None)), Level::Fine);
        assert_eq!(level(&of(Some(2_000))), Level::Fine);
        assert!(of(Some(5_000))[0].message.contains("5s behind the clock"));
        assert!(of(Some(-7_000))[0].message.contains("7s ahead of the clock"));
    }

    #[test]
    fn what_the_whole_directory_refuses_is_said_once_and_a_part_of_it_by_name() {
        let refusal =
            |path: &str, kind| Refusal { path: path.into(), verb: "written", kind, why: String::new() };
        let (readonly, denied) = (ErrorKind::ReadOnlyFilesystem, ErrorKind::PermissionDenied);
        let refusals = vec![
            refusal("/r/.tidewheel", readonly),
            refusal("/r/.tidewheel/jobs", readonly),
            refusal("/r/.tidewheel/jobs/a", denied),
        ];
        let found = rights(&Facts { refusals, ..Facts::in_order() });
        let files: Vec<&str> = found.iter().filter_map(|finding| finding.file.as_deref()).collect();
        assert_eq!(files, [".tidewheel", ".tidewheel/jobs/a"]);
        assert_eq!(level(&found), Level::Broken);
    }

    #[test]
    fn sizes_are_as_people_say_them() {
        assert_eq!(size(0), "0 KiB");
        assert_eq!(size(5 << 20), "5120 KiB");
        assert_eq!(size(100 << 20), "100 MiB");
        assert_eq!(size(40 << 30), "40 GiB");
        assert_eq!(size(u64::MAX), "16777215 TiB");
    }
}
