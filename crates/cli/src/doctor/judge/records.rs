//! The records of jobs and the manifests of runs: which cannot be read, and which were never written to the end.

use std::collections::BTreeMap;

use tidewheel_core::job::{Brief, JobId, JobStatus, RunId};
use tidewheel_core::time::{Span, Timestamp};
use tidewheel_store::jobs::{Checkup, Kept};

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
    for (id, kept) in &checkup.jobs {
        found.extend(record(id, kept, checkup));
    }
    for (name, why) in &checkup.strange {
        found.push(
            Finding::broken(
                Check::Records,
                format!(".tidewheel/jobs/{name}/job.json"),
                format!("is in a directory whose name is no id: {why}"),
            )
            .todo("Give the directory the id that the record has, or move it away. Nobody looks at it so."),
        );
    }
    for (path, why) in &checkup.unreadable {
        found.push(
            Finding::warning(Check::Records, format!(".tidewheel/{path}"), format!("cannot be read: {why}"))
                .todo(
                    "The record of the job is in order; move this file away if nobody can mend it. \
                    `jobs explain` says less without it.",
                ),
        );
    }
    found.extend(lost(checkup));
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
        Kept::Unreadable(why) => Finding::broken(Check::Records, file, format!("cannot be read: {why}"))
            .todo(format!(
                "Mend it, or take it from a backup, or move `.tidewheel/jobs/{id}` away. Jobs \
                after it are blocked until then; all others are not concerned."
            )),
        Kept::Vacant if checkup.leftovers.iter().any(|path| path.starts_with(&format!("jobs/{id}"))) => {
            return None;
        }
        Kept::Vacant => Finding::warning(Check::Records, format!(".tidewheel/jobs/{id}"), "has no record")
            .todo(
                "If nobody is enqueuing just now, it is of no use: remove it, unless you want to keep \
                what is in it.",
            ),
    })
}

/// Says which records are gone that jobs wait for. What others need is never collected.
fn lost(checkup: &Checkup) -> Vec<Finding> {
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
    let judge = |(id, waiting): (&JobId, Vec<&JobId>)| {
        let message = format!("is gone, and {} came after it", jobs_named(&waiting));
        Finding::broken(Check::Records, format!(".tidewheel/jobs/{id}/job.json"), message)
            .todo("Put it back from a backup, or cancel those that wait for it and run the flow again.")
    };
    missing.into_iter().map(judge).collect()
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
        .map(|(run, why)| {
            Finding::broken(
                Check::Runs,
                format!(".tidewheel/jobs/runs/{run}.json"),
                format!("cannot be read: {why}"),
            )
            .todo(
                "Take it from a backup, or use the release that wrote it. Jobs of the run fail \
                    when they start without it.",
            )
        })
        .collect();
    found.extend(incomplete(facts.now, checkup));
    if found.is_empty() {
        let count = counted(checkup.manifests.len(), "manifest");
        return vec![Finding::fine(Check::Runs, format!("{count}, and nothing is wrong"))];
    }
    found
}

/// Says of which runs records were deleted. What gc takes of a run that is over is none of these: it takes nothing of
/// a run that may go on, and what is younger than a day only as a whole.
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
        if is_of_gc(&left) {
            return None;
        }
        let file = format!(".tidewheel/jobs/runs/{run}.json");
        let (is, it) = if gone.len() == 1 { ("is", "it") } else { ("are", "them") };
        let message = format!("{} of the run {is} gone: somebody deleted {it}", jobs_named(&gone));
        let todo = if left.is_empty() {
            format!(
                "Put {it} back from a backup. Nothing is left of the run but this file: `tidewheel jobs gc` removes it."
            )
        } else {
            format!("Put {it} back from a backup, or run the flow again. Nobody knows what came of {it}.")
        };
        Some(Finding::warning(Check::Runs, file, message).todo(todo))
    };
    runs.into_iter().filter_map(judge).collect()
}
