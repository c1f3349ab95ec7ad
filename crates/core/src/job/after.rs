//! What a new job may be told to be after: jobs that are there, can be read, and do not wait for it.

use std::collections::{BTreeMap, BTreeSet};

use super::brief::Brief;
use super::id::{JobId, RunId};
use super::schedule::AfterPolicy;

/// Why a job cannot be after another.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AfterError {
    /// There is no such job.
    #[error("unknown --after job id: {}", if id.is_empty() { "<empty>" } else { id })]
    Unknown {
        /// What was given.
        id: String,
    },
    /// It is the job itself.
    #[error("invalid --after self dependency: {id}")]
    Itself {
        /// The job.
        id: JobId,
    },
    /// Its record cannot be read.
    #[error("cannot read job record for --after {id}: {reason}")]
    Unreadable {
        /// The job.
        id: String,
        /// Why.
        reason: String,
    },
    /// Jobs would wait for each other.
    #[error("invalid --after cycle: {}", names(way))]
    Cycle {
        /// The way round, from a job to what it is after, back to where it began.
        way: Vec<JobId>,
    },
}

fn names(way: &[JobId]) -> String {
    way.iter().map(JobId::as_str).collect::<Vec<_>>().join(" -> ")
}

/// Checks what somebody wants jobs to be after. Each is there once in the answer, in the order of the wish.
///
/// # Errors
/// One of them cannot be waited for.
pub fn check_after(
    wanted: &[String],
    own: &[JobId],
    jobs: &BTreeMap<JobId, Brief>,
    unreadable: &BTreeMap<String, String>,
) -> Result<Vec<JobId>, AfterError> {
    let mut found: Vec<JobId> = Vec::with_capacity(wanted.len());
    for text in wanted.iter().map(|text| text.trim()) {
        if let Some(id) = own.iter().find(|id| id.as_str() == text) {
            return Err(AfterError::Itself { id: id.clone() });
        }
        if let Some(reason) = unreadable.get(text) {
            return Err(AfterError::Unreadable { id: text.to_owned(), reason: reason.clone() });
        }
        let (id, _) = jobs.get_key_value(text).ok_or_else(|| AfterError::Unknown { id: text.to_owned() })?;
        if !found.contains(id) {
            found.push(id.clone());
        }
    }
    match circle(&found, own, jobs) {
        Some(way) => Err(AfterError::Cycle { way }),
        None => Ok(found),
    }
}

/// Returns the jobs of a run that no other job of it is after, without those that run only when something went wrong:
/// whoever is after a run is after these.
#[must_use]
pub fn last_jobs_of(run: &RunId, jobs: &BTreeMap<JobId, Brief>) -> Vec<JobId> {
    let own: Vec<&Brief> = jobs.values().filter(|brief| brief.run.as_ref() == Some(run)).collect();
    let is_own = |id: &JobId| jobs.get(id).is_some_and(|brief| brief.run.as_ref() == Some(run));
    let mut followers: BTreeMap<&JobId, Vec<&JobId>> = BTreeMap::new();
    let mut left: Vec<&JobId> = Vec::new();
    for brief in &own {
        for after in brief.schedule.after.iter().filter(|after| is_own(&after.job_id)) {
            match after.policy {
                AfterPolicy::Success => followers.entry(&after.job_id).or_default().push(&brief.id),
                AfterPolicy::Completion => {}
                AfterPolicy::Failed
                | AfterPolicy::Blocked
                | AfterPolicy::Cancelled
                | AfterPolicy::Failure => {
                    left.push(&brief.id);
                }
            }
        }
    }
    let mut conditional: BTreeSet<&JobId> = BTreeSet::new();
    while let Some(id) = left.pop() {
        if conditional.insert(id) {
            left.extend(followers.get(id).into_iter().flatten());
        }
    }
    let certain: Vec<&&Brief> = own.iter().filter(|brief| !conditional.contains(&brief.id)).collect();
    let before: BTreeSet<&JobId> =
        certain.iter().flat_map(|brief| &brief.schedule.after).map(|after| &after.job_id).collect();
    certain.iter().filter(|brief| !before.contains(&brief.id)).map(|brief| brief.id.clone()).collect()
}

/// Finds a way from what is wanted back to a job on it, or to one of the new ones.
fn circle(wanted: &[JobId], own: &[JobId], jobs: &BTreeMap<JobId, Brief>) -> Option<Vec<JobId>> {
    let mut done: BTreeSet<JobId> = BTreeSet::new();
    for start in wanted {
        // Each step of the way is a job with the number of the one it is after that is looked at next.
        let mut way: Vec<(JobId, usize)> = vec![(start.clone(), 0)];
        let mut on_way: BTreeSet<JobId> = BTreeSet::from([start.clone()]);
        while let Some((id, next)) = way.last_mut() {
            let after = jobs.get(id).and_then(|brief| brief.schedule.after.get(*next));
            *next += 1;
            let Some(before) = after.map(|after| after.job_id.clone()) else {
                if let Some((id, _)) = way.pop() {
                    on_way.remove(&id);
                    done.insert(id);
                }
                continue;
            };
            if own.contains(&before) {
                let steps = way.into_iter().map(|(id, _)| id);
                return Some([before.clone()].into_iter().chain(steps).chain([before]).collect());
            }
            if on_way.contains(&before) {
                let steps = way.into_iter().map(|(id, _)| id).skip_while(|id| *id != before);
                return Some(steps.chain([before.clone()]).collect());
            }
            if !done.contains(&before) {
                on_way.insert(before.clone());
                way.push((before, 0));
            }
        }
    }
    None
}
