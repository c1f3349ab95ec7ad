//! The records of jobs and the manifests of runs: which cannot be read, and which were never written to the end.

use std::collections::BTreeMap;

use tidewheel_core::job::{Brief, JobId, JobStatus, RunId};
use tidewheel_core::time::{Span, Timestamp};
use tidewheel_store::jobs::{Checkup, Kept, Trouble};

use super::directory::jobs_named;
use super::whole::counted;
use crate::doctor::facts::Facts;
use crate::doctor::finding::{Check, Finding, Repair};

/// A run that was not enqueued completely after this long never will be: the rule of gc.
const ABANDONED: Span = Span::from_secs(86_400);

/// No enqueue takes longer, unless whoever does it is gone.
const BUSY: Span = Span::from_secs(60);

/// Says which records cannot be read, and which belong to enqueues that did not finish.
pub(super) fn records(facts: &Facts, checkup: &Checkup) -> Vec<Finding> {
    let mut found = Vec::new();
    let lost = lost(checkup);
    for (id, kept) in &checkup.jobs {
        let is_said = matches!(kept, Kept::Vacant) && lost.contains_key(id);
        found.extend(record(id, kept, checkup).filter(|_| !is_said));
    }
    for (name, why) in &checkup.strange {
        found.push(
            Finding::broken(
                Check::Records,
                format!(".tidewheel/jobs/{name}/job.json"),
                format!("is in a directory whose name is no id: {why}"),
            )
            .todo("Give the directory the id that the record has, or move it away. No command reads it as it is."),
        );
    }
    for (path, Trouble { why, is_denied }) in &checkup.unreadable {
        let todo = match path.rsplit('/').next() {
            _ if *is_denied => DENIED,
            _ if path.starts_with("jobs/keys/") => {
                "Move it away. What it counted, such as a rate, or which job had done the work of a key, begins anew."
            }
            _ if path.starts_with("jobs/artifacts/") => {
                "Move it away. `tidewheel jobs retry` of the job that made the artifact makes it again."
            }
            Some(name) if path.strip_prefix("jobs/") == Some(name) => {
                "Move it away, and put the directory of the job back from a backup if there was one."
            }
            // A job without a history is no better than one with a damaged one.
            Some("events.jsonl") => {
                "The record of the job is in order, and says how it ended. Put this file back from a backup if \
                there is one; without, `jobs explain` says less, until gc removes the job."
            }
            _ => {
                "The record of the job is in order; move this away if it cannot be repaired. \
                `jobs explain` says less without it."
            }
        };
        let message = format!("cannot be read: {why}");
        found.push(Finding::warning(Check::Records, format!(".tidewheel/{path}"), message).todo(todo));
    }
    found.extend(lost.into_values());
    found.extend(unfinished(facts.now, checkup));
    if found.is_empty() {
        let count = counted(checkup.jobs.len(), "record");
        found.push(Finding::fine(Check::Records, format!("{count}, and nothing is wrong")));
    }
    found
}

fn record(id: &JobId, kept: &Kept, checkup: &Checkup) -> Option<Finding> {
    let file = format!(".tidewheel/jobs/{id}/job.json");
    Some(match kept {
        Kept::Record { .. } => return None,
        Kept::Newer(version) => {
            Finding::broken(Check::Records, file, format!("has version {version}: a later release wrote it"))
                .todo(
                    "Use that release, or a later one. This one never touches it, and jobs after it are \
                blocked.",
                )
        }
        Kept::Misplaced(other) => {
            Finding::broken(Check::Records, file, format!("is the record of job {other}")).todo(format!(
                "If there is no other, `mv .tidewheel/jobs/{id} .tidewheel/jobs/{other}`; else \
                move it away. Jobs after {id} are blocked until then."
            ))
        }
        Kept::Unreadable(Trouble { why, is_denied: true }) => {
            Finding::broken(Check::Records, file, format!("cannot be read: {why}")).todo(format!(
                "{DENIED} A user who may not read it does not see the job, and cannot schedule it."
            ))
        }
        Kept::Unreadable(Trouble { why, .. }) => {
            Finding::broken(Check::Records, file, format!("cannot be read: {why}")).todo(format!(
                "Mend it, or take it from a backup, or move `.tidewheel/jobs/{id}` away. Jobs \
                after it are blocked until then; all others are not concerned."
            ))
        }
        Kept::Vacant if checkup.leftovers.iter().any(|path| is_within(path, id)) => return None,
        Kept::Vacant => {
            // What gc leaves are files that Tidewheel did not make; nothing is lost with those.
            let of = if checkup.lost_records.contains(id) { Finding::broken } else { Finding::warning };
            of(
                Check::Records,
                format!(".tidewheel/jobs/{id}"),
                "has no `job.json`, and without this record it is no job",
            )
            .todo(
                "Put the record back from a backup, or remove the directory if what is in it is not needed: gc \
                leaves it.",
            )
        }
    })
}

/// What to do about a file that may be in order.
const DENIED: &str = "Work as the one who owns it, or let the owner give you the right.";

/// Tells whether a path is the directory of a job, or in it.
fn is_within(path: &str, id: &JobId) -> bool {
    let rest = path.strip_prefix("jobs/").and_then(|path| path.strip_prefix(id.as_str()));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Says which records are gone that jobs wait for. What others need is never collected.
fn lost(checkup: &Checkup) -> BTreeMap<&JobId, Finding> {
    let mut missing: BTreeMap<&JobId, Vec<&JobId>> = BTreeMap::new();
    for kept in checkup.jobs.values() {
        let Kept::Record { brief, .. } = kept else { continue };
        if !brief.status.is_active() && brief.status != JobStatus::BlockedByDependency {
            continue;
        }
        for after in &brief.schedule.after {
            if matches!(checkup.jobs.get(&after.job_id), None | Some(Kept::Vacant)) {
                missing.entry(&after.job_id).or_default().push(&brief.id);
            }
        }
    }
    let judge = |id: &JobId, waiting: &[&JobId]| {
        let message = format!("is gone, and {} came after it", jobs_named(waiting));
        Finding::broken(Check::Records, format!(".tidewheel/jobs/{id}/job.json"), message)
            .todo("Put it back from a backup, or cancel those that wait for it and run the flow again.")
    };
    missing.into_iter().map(|(id, waiting)| (id, judge(id, &waiting))).collect()
}

/// Tells whether a job is on record as running.
pub(super) fn is_running(kept: &Kept) -> bool {
    matches!(kept, Kept::Record { brief, .. } if brief.status == JobStatus::Running)
}

/// Says which runs have records and no manifest.
fn unfinished(now: Timestamp, checkup: &Checkup) -> Vec<Finding> {
    let mut runs: BTreeMap<&RunId, Vec<&Brief>> = BTreeMap::new();
    for kept in checkup.jobs.values() {
        let Kept::Record { brief, .. } = kept else { continue };
        if let Some(run) = brief.run.as_ref().filter(|run| !checkup.manifests.contains_key(*run)) {
            runs.entry(run).or_default().push(brief);
        }
    }
    let has_begun =
        |jobs: &[&Brief]| jobs.iter().any(|job| job.started_at.is_some() || job.status.is_terminal());
    // Somebody may just be enqueuing these; nothing begins before that is done.
    runs.retain(|_, jobs| has_begun(jobs) || jobs.iter().all(|job| now.has_reached(job.created_at, BUSY)));
    // Whoever removes one of them removes all, and what has begun is not to be lost.
    let is_safe = !runs.values().any(|jobs| has_begun(jobs));
    let judge = |(run, jobs): (&RunId, Vec<&Brief>)| {
        let file = format!(".tidewheel/jobs/runs/{run}.json");
        let ids: Vec<&JobId> = jobs.iter().map(|job| &job.id).collect();
        let named = jobs_named(&ids);
        if has_begun(&jobs) {
            return Finding::broken(
                Check::Records,
                file,
                format!(
                    "the manifest is gone, and {named} of the run had begun: they are not shown any more"
                ),
            )
            .todo(
                "Put the manifest back from a backup. `tidewheel jobs gc` would remove these jobs for good.",
            );
        }
        let message =
            format!("the manifest is missing: {named} of an enqueue that did not finish, and never run");
        let finding = Finding::warning(Check::Records, file, message);
        if !jobs.iter().all(|job| now.has_reached(job.created_at, ABANDONED)) {
            return finding
                .todo("Nothing was started: run the flow again. gc and --fix remove these after a day.");
        }
        if is_safe {
            finding
                .todo(
                    "Nothing was started: run the flow again. `tidewheel jobs gc` removes these, \
                and so does --fix.",
                )
                .repair(Repair::Unfinished)
        } else {
            finding.todo("`tidewheel jobs gc` removes these; see to the runs that had begun first.")
        }
    };
    runs.into_iter().map(judge).collect()
}

/// Says which manifests cannot be read, and which name jobs that are gone.
pub(super) fn runs(facts: &Facts, checkup: &Checkup) -> Vec<Finding> {
    let wrong = checkup.manifests.iter().filter_map(|(run, wrong)| Some((run, wrong.as_ref()?)));
    let mut found: Vec<Finding> = wrong
        .map(|(run, Trouble { why, is_denied })| {
            let file = format!(".tidewheel/jobs/runs/{run}.json");
            let todo = if *is_denied {
                DENIED
            } else {
                "Take it from a backup, or use the release that wrote it. Jobs of the run fail \
                    when they start without it."
            };
            Finding::broken(Check::Runs, file, format!("cannot be read: {why}")).todo(todo)
        })
        .collect();
    found.extend(incomplete(facts.now, checkup));
    if found.is_empty() {
        let count = counted(checkup.manifests.len(), "manifest");
        return vec![Finding::fine(Check::Runs, format!("{count}, and nothing is wrong"))];
    }
    found
}

/// Says of which runs records were deleted. What gc removes is none of these: it removes a run as a whole, with its
/// manifest. An earlier release removed the jobs of a run that is over one by one.
fn incomplete(now: Timestamp, checkup: &Checkup) -> Vec<Finding> {
    let mut runs: BTreeMap<&RunId, (Vec<&JobId>, Vec<&Brief>)> = BTreeMap::new();
    for (id, run) in &checkup.missing {
        runs.entry(run).or_default().0.push(id);
    }
    for kept in checkup.jobs.values() {
        if let Kept::Record { brief, .. } = kept
            && let Some((_, left)) = brief.run.as_ref().and_then(|run| runs.get_mut(run))
        {
            left.push(brief);
        }
    }
    let is_of_gc = |left: &[&Brief]| {
        let is_old = left.iter().any(|job| now.has_reached(job.created_at, ABANDONED));
        is_old && !left.iter().any(|job| job.is_open())
    };
    let judge = |(run, (gone, left)): (&RunId, (Vec<&JobId>, Vec<&Brief>))| {
        let file = format!(".tidewheel/jobs/runs/{run}.json");
        let (is, it) = if gone.len() == 1 { ("is", "it") } else { ("are", "them") };
        let message =
            format!("{} of the run {is} gone: deleted by a person or another program", jobs_named(&gone));
        let todo = if left.is_empty() {
            format!(
                "Put {it} back from a backup. Nothing is left of the run but this file: `tidewheel jobs gc` removes it \
                when it is old."
            )
        } else if is_of_gc(&left) {
            format!(
                "Put {it} back from a backup. If gc of an earlier release removed {it}, `tidewheel jobs gc` removes \
                what is left of the run."
            )
        } else {
            format!("Put {it} back from a backup, or run the flow again. What came of {it} is not known.")
        };
        Finding::broken(Check::Runs, file, message).todo(todo)
    };
    runs.into_iter().map(judge).collect()
}
