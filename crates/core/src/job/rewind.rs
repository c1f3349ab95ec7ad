//! Which jobs are done again when one is: it, and all that is after it or needs what it makes. It changes nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::artifact::Artifact;
use super::brief::Brief;
use super::id::{JobId, RunId};
use super::metadata::Metadata;
use super::record::Record;
use super::status::JobStatus;
use crate::command::{Effect, RunCommand};

/// Which jobs are rewound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewind {
    /// Where it begins.
    pub root: JobId,
    /// All that are rewound: the root, then in the order in which they were enqueued.
    pub set: Vec<JobId>,
    /// What came directly before the root and succeeded.
    pub last_successful_point: Vec<JobId>,
}

/// Why jobs cannot be rewound.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RewindError {
    /// There is no such job.
    #[error("no background job {0}")]
    Unknown(String),
    /// Some of them run.
    #[error("cannot retry while jobs are running in the retry set: {}", list(.0))]
    Running(Vec<JobId>),
    /// Git is in the middle of something that these jobs are about.
    #[error(
        "cannot retry merge-related jobs while Git has an in-progress merge/cherry-pick; run `git merge --abort` or \
         `git cherry-pick --abort` (or resolve/commit), then retry"
    )]
    Merging,
}

fn list(running: &[JobId]) -> String {
    running.iter().map(|id| format!("{id} (running)")).collect::<Vec<_>>().join(", ")
}

/// Returns what is rewound with a job. The work grows with the number of jobs and edges.
///
/// # Errors
/// There is no such job, or one of those that would be rewound is running.
pub fn rewind(jobs: &BTreeMap<JobId, Brief>, root: &JobId) -> Result<Rewind, RewindError> {
    let edges = Edges::of(jobs);
    let set = edges.rewound(jobs, root, &mut BTreeSet::new(), &mut BTreeSet::new())?;
    let last_successful_point = edges.before(&jobs[root], jobs);
    Ok(Rewind { root: root.clone(), set, last_successful_point })
}

/// Returns what is rewound with several jobs, each once. The work grows with the number of jobs and edges, however many
/// of them are rewound.
///
/// # Errors
/// There is no such job, or one of those that would be rewound is running.
pub fn rewind_all<'a>(
    jobs: &'a BTreeMap<JobId, Brief>,
    roots: impl IntoIterator<Item = &'a JobId>,
) -> Result<Vec<JobId>, RewindError> {
    let edges = Edges::of(jobs);
    let (mut seen, mut used) = (BTreeSet::new(), BTreeSet::new());
    let mut set = Vec::new();
    for root in roots {
        if !seen.contains(root) {
            set.extend(edges.rewound(jobs, root, &mut seen, &mut used)?);
        }
    }
    Ok(set)
}

/// What merges, or waits for a merge, whatever it says of sentinels.
const MERGES: [&str; 2] = ["git.integrate_plan_branch", "gate.conflict_resolution"];

/// Returns the plans whose merge sentinels are removed when these jobs are rewound.
///
/// # Errors
/// The jobs are about merges, and git is in the middle of a merge or of picking a commit.
pub fn sentinels<'a>(
    records: impl IntoIterator<Item = &'a Record>,
    is_merging: bool,
) -> Result<BTreeSet<String>, RewindError> {
    let mut slugs = BTreeSet::new();
    let mut is_about_merges = false;
    for record in records {
        let does =
            [Metadata::EXECUTOR_OPERATION, Metadata::CONTROL_POLICY].map(|name| record.metadata.text(name));
        is_about_merges |= does.into_iter().flatten().any(|what| MERGES.contains(&what));
        let schedule = &record.schedule;
        let needed = schedule.dependencies.iter().map(|need| &need.artifact);
        for artifact in schedule.artifacts.iter().chain(needed) {
            if let Artifact::MergeSentinel { slug } = artifact {
                slugs.insert(slug.clone());
            }
        }
        let locked = schedule.locks.iter().filter_map(|lock| lock.key.strip_prefix("merge_sentinel:"));
        slugs.extend(locked.map(str::to_owned));
        if record.metadata.text(Metadata::COMMAND_ALIAS) == Some("merge") {
            slugs.extend(record.metadata.text("plan").map(str::to_owned));
        }
    }
    if is_merging && (is_about_merges || !slugs.is_empty()) { Err(RewindError::Merging) } else { Ok(slugs) }
}

/// What leads from job to job.
pub(super) struct Edges<'a> {
    after: BTreeMap<&'a JobId, Vec<&'a Brief>>,
    /// Who needs an artifact: of this run, or of any.
    users: BTreeMap<(&'a Artifact, Option<&'a RunId>), Vec<&'a Brief>>,
    makers: BTreeMap<(&'a Artifact, Option<&'a RunId>), Vec<&'a Brief>>,
}

impl<'a> Edges<'a> {
    pub(super) fn of(jobs: &'a BTreeMap<JobId, Brief>) -> Self {
        let mut this = Self { after: BTreeMap::new(), users: BTreeMap::new(), makers: BTreeMap::new() };
        for job in jobs.values() {
            for after in &job.schedule.after {
                this.after.entry(&after.job_id).or_default().push(job);
            }
            for artifact in &job.schedule.artifacts {
                for scope in scopes(artifact, job) {
                    this.makers.entry((artifact, scope)).or_default().push(job);
                }
            }
        }
        for job in jobs.values() {
            for need in &job.schedule.dependencies {
                let key = (&need.artifact, this.scope_of(&need.artifact, job));
                this.users.entry(key).or_default().push(job);
            }
        }
        this
    }

    /// Returns a job and all that is after it or needs what it makes, without what was seen before: the root, then in the
    /// order in which they were enqueued.
    fn rewound(
        &self,
        jobs: &'a BTreeMap<JobId, Brief>,
        root: &JobId,
        seen: &mut BTreeSet<&'a JobId>,
        used: &mut BTreeSet<(&'a Artifact, Option<&'a RunId>)>,
    ) -> Result<Vec<JobId>, RewindError> {
        let Some(first) = jobs.get(root) else { return Err(RewindError::Unknown(root.to_string())) };
        seen.insert(&first.id);
        let mut todo = vec![first];
        let mut members = Vec::new();
        while let Some(job) = todo.pop() {
            members.push(job);
            let mut next: Vec<&Brief> = self.after.get(&job.id).into_iter().flatten().copied().collect();
            for artifact in &job.schedule.artifacts {
                for scope in scopes(artifact, job) {
                    // Producers of one artifact with the same consumers lead to the same jobs.
                    if used.insert((artifact, scope)) {
                        next.extend(self.users.get(&(artifact, scope)).into_iter().flatten());
                    }
                }
            }
            todo.extend(next.into_iter().filter(|job| seen.insert(&job.id)));
        }
        members.sort_unstable_by_key(|job| (job.id != *root, job.created_at, &job.id));
        let running =
            members.iter().filter(|job| RunCommand::Retry.effect_on_job(job.status) != Effect::Acts);
        let running: Vec<JobId> = running.map(|job| job.id.clone()).collect();
        if !running.is_empty() {
            return Err(RewindError::Running(running));
        }
        Ok(members.into_iter().map(|job| job.id.clone()).collect())
    }

    /// Returns whose makers count for a job that needs an artifact: those of its run, or all.
    fn scope_of(&self, artifact: &Artifact, job: &'a Brief) -> Option<&'a RunId> {
        let run = job.run.as_ref().filter(|_| matches!(artifact, Artifact::Custom { .. }))?;
        self.makers.contains_key(&(artifact, Some(run))).then_some(run)
    }

    /// Returns those who make what a job needs.
    pub(super) fn makers_for(&self, job: &'a Brief) -> impl Iterator<Item = &'a Brief> {
        job.schedule.dependencies.iter().flat_map(|need| {
            let key = (&need.artifact, self.scope_of(&need.artifact, job));
            self.makers.get(&key).into_iter().flatten().copied()
        })
    }

    /// Returns what came directly before a job and succeeded, in the order in which it was enqueued.
    fn before(&self, job: &'a Brief, jobs: &'a BTreeMap<JobId, Brief>) -> Vec<JobId> {
        let after = job.schedule.after.iter().filter_map(|after| jobs.get(&after.job_id));
        let all = after.chain(self.makers_for(job)).filter(|other| other.id != job.id);
        let succeeded = all.filter(|other| other.status == JobStatus::Succeeded);
        let sorted: BTreeSet<_> = succeeded.map(|other| (other.created_at, &other.id)).collect();
        sorted.into_iter().map(|(_, id)| id.clone()).collect()
    }
}

/// Returns for whom a job makes an artifact: for all, and of custom ones for those of its run in particular.
fn scopes<'a>(artifact: &Artifact, job: &'a Brief) -> impl Iterator<Item = Option<&'a RunId>> {
    let run = job.run.as_ref().filter(|_| matches!(artifact, Artifact::Custom { .. }));
    std::iter::once(None).chain(run.map(Some))
}
