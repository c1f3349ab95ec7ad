//! What holds a job up, followed from job to job until nothing is behind it. Every job is looked at once, so that a
//! circle ends and a net of jobs costs no more than its jobs and edges.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::Serialize;

use super::remedy::Remedy;
use super::text::instant;
use crate::job::{
    Artifact, Brief, Facts, Finding, Gate, Inspection, JobId, JobStatus, Look, NodeId, Question, RunId,
    budget_told,
};
use crate::policy::word_enum;
use crate::time::Timestamp;

word_enum! {
    /// What holds a job up.
    pub enum CauseKind {
        /// Jobs that it is after.
        After = "after",
        /// Jobs that make what it needs.
        Artifacts = "artifacts",
        /// Jobs that hold its locks, or come first.
        Locks = "locks",
        /// Jobs that have the slots.
        Capacity = "capacity",
        /// A job that does the same work.
        IdempotencyKey = "idempotency_key",
        /// A worker outside has it in hand.
        External = "external",
        /// It is running.
        Running = "running",
        /// It is on record as running, and whoever ran it is gone.
        Lost = "lost",
        /// A person has to approve it.
        Approval = "approval",
        /// A person rejected it.
        Rejected = "rejected",
        /// It failed.
        Failed = "failed",
        /// A person ended it.
        Cancelled = "cancelled",
        /// It was not needed.
        Skipped = "skipped",
        /// It succeeded.
        Succeeded = "succeeded",
        /// It ended as blocked by itself.
        Blocked = "blocked",
        /// It is not there.
        MissingJob = "missing_job",
        /// Its record cannot be read.
        UnreadableJob = "unreadable_job",
        /// What it needs is not there, and no job is about to make it.
        MissingArtifact = "missing_artifact",
        /// A branch stands elsewhere.
        PinnedHead = "pinned_head",
        /// Something in the repository is not as it has to be.
        Preconditions = "preconditions",
        /// Its time has not come, or is over.
        Schedule = "schedule",
        /// Its circuit breaker is open.
        CircuitBreaker = "circuit_breaker",
        /// Too many have started lately.
        RateLimit = "rate_limit",
        /// There is nothing to start.
        Command = "command",
        /// It ended, and its loop goes back.
        Loop = "loop",
        /// Nothing: it can start.
        Ready = "ready",
        /// Jobs wait for each other.
        Cycle = "cycle",
        /// Nobody looked.
        Unknown = "unknown",
    }
}

/// One job on the way from what was asked for to the root, and what holds it up.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cause {
    /// The job.
    pub job: String,
    /// What people call it.
    pub name: Option<String>,
    /// Its run.
    pub run: Option<RunId>,
    /// Its node.
    pub node: Option<NodeId>,
    /// Where it stands; `None` if it is not there.
    pub status: Option<JobStatus>,
    /// What holds it up.
    pub kind: CauseKind,
    /// The same as the scheduler says it.
    pub detail: String,
    /// The artifact or the locks that it is about.
    pub about: Option<String>,
    /// Until when, if it is a time.
    #[serde(serialize_with = "instant")]
    pub until: Option<Timestamp>,
    /// The jobs that it waits on.
    pub waits_on: Vec<JobId>,
    /// The job that waits on it, nearer to what was asked for.
    pub via: Option<String>,
    /// Whether nothing is behind it.
    pub root: bool,
    /// Who can change it.
    pub remedy: Option<Remedy>,
    /// The place of the job that waits on it.
    #[serde(skip)]
    pub(super) parent: Option<usize>,
}

/// Where causes are looked for.
pub(super) struct Search<'a, 'i> {
    pub(super) briefs: &'a BTreeMap<JobId, Brief>,
    pub(super) unreadable: &'a BTreeMap<String, String>,
    pub(super) facts: &'a Facts,
    pub(super) inspection: &'i mut Inspection<'a>,
    /// Running jobs whose supervisors are gone.
    pub(super) lost: &'a BTreeSet<JobId>,
    /// Gives what a job that has ended said last.
    pub(super) last_words: &'a dyn Fn(&JobId) -> Option<String>,
    /// What has to be known first.
    pub(super) questions: BTreeSet<Question>,
    /// Whether questions may be asked; otherwise what the last pass found counts.
    pub(super) may_ask: bool,
}

impl Search<'_, '_> {
    /// Follows what holds a job up. The first cause is the job itself, the nearest come first.
    pub(super) fn causes(&mut self, id: &JobId) -> Vec<Cause> {
        let mut causes: Vec<Cause> = Vec::new();
        let mut seen: BTreeSet<JobId> = BTreeSet::from([id.clone()]);
        let mut queue: VecDeque<(JobId, Option<usize>)> = VecDeque::from([(id.clone(), None)]);
        while let Some((next, parent)) = queue.pop_front() {
            let mut cause = self.cause(&next);
            cause.parent = parent;
            cause.via = parent.map(|parent| causes[parent].job.clone());
            for on in &cause.waits_on {
                if seen.insert(on.clone()) {
                    queue.push_back((on.clone(), Some(causes.len())));
                }
            }
            causes.push(cause);
        }
        if !causes.iter().any(|cause| cause.root)
            && let Some(last) = causes.last_mut()
        {
            (last.kind, last.root) = (CauseKind::Cycle, true);
            last.remedy = Remedy::of(last, None, self.facts);
        }
        causes
    }

    /// Says what holds one job up.
    pub(super) fn cause(&mut self, id: &JobId) -> Cause {
        let Some(job) = self.briefs.get(id) else { return self.gone(id) };
        let looks = self.inspection.look(id);
        let look = looks.into_iter().find(Look::is_in_the_way);
        let mut cause = Cause {
            job: id.to_string(),
            name: Some(job.name.clone()),
            run: job.run.clone(),
            node: job.node.clone(),
            status: Some(job.status),
            kind: CauseKind::Unknown,
            detail: job.wait().unwrap_or_default().to_owned(),
            about: None,
            until: None,
            waits_on: Vec::new(),
            via: None,
            root: true,
            remedy: None,
            parent: None,
        };
        match look {
            Some(look) => self.held_up(&mut cause, job, look),
            None => cause.kind = standing(job),
        }
        if cause.kind == CauseKind::Running {
            cause.detail = "running".to_owned();
            if self.lost.contains(id) {
                (cause.kind, cause.detail) = (CauseKind::Lost, "its supervisor is gone".to_owned());
            }
        }
        if let (CauseKind::Failed, Some(code), "") = (cause.kind, job.exit_code, cause.detail.as_str()) {
            cause.detail = format!("exit code {code}");
        }
        if let (CauseKind::Blocked, Some(_), "") = (cause.kind, job.exit_code, cause.detail.as_str()) {
            let said = (self.last_words)(id).unwrap_or_default();
            cause.detail = budget_told(&said).unwrap_or(said);
        }
        if job.goes_back.is_some() && job.status.is_terminal() {
            (cause.kind, cause.root) = (CauseKind::Loop, true);
            cause.until = job.schedule.not_before;
            cause.waits_on.clear();
        }
        cause.remedy = Remedy::of(&cause, Some(job), self.facts);
        cause
    }

    fn held_up(&mut self, cause: &mut Cause, job: &Brief, look: Look) {
        match look.finding {
            Finding::Waits { detail, until } => (cause.detail, cause.until) = (detail, until),
            Finding::Ends { detail, .. } => cause.detail = detail,
            Finding::Asks(questions) if self.may_ask => {
                self.questions.extend(questions);
                return;
            }
            Finding::Asks(_) | Finding::NotSet | Finding::Open | Finding::NotReached => {}
        }
        let mut on = look.on;
        if look.gate == Gate::Artifacts {
            cause.about = artifact_in(job, &cause.detail).map(ToString::to_string);
            // Who has succeeded does not make it any more.
            on.retain(|maker| {
                self.briefs.get(maker).is_none_or(|maker| maker.status != JobStatus::Succeeded)
            });
        }
        if look.gate == Gate::Locks {
            let locks = job.schedule.locks.iter();
            let first = on.first().and_then(|holder| self.briefs.get(holder));
            let clashes = |key: &str| {
                first.is_none_or(|holder| holder.schedule.locks.iter().any(|held| held.key == key))
            };
            let keys: Vec<&str> = locks.map(|lock| lock.key.as_str()).filter(|key| clashes(key)).collect();
            cause.about = Some(keys.join(", "));
        }
        cause.root = on.is_empty();
        cause.waits_on = on;
        cause.kind = match look.gate {
            // A policy or a person ended it, not its gates.
            _ if matches!(job.status, JobStatus::Failed | JobStatus::Cancelled) => standing(job),
            Gate::After if cause.root => standing(job),
            Gate::After => CauseKind::After,
            Gate::Artifacts if cause.root => CauseKind::MissingArtifact,
            Gate::Artifacts => CauseKind::Artifacts,
            Gate::PinnedHead => CauseKind::PinnedHead,
            Gate::Preconditions => CauseKind::Preconditions,
            Gate::Approval if job.status == JobStatus::BlockedByApproval => CauseKind::Rejected,
            Gate::Approval => CauseKind::Approval,
            Gate::Locks => CauseKind::Locks,
            Gate::Schedule => CauseKind::Schedule,
            Gate::Capacity => CauseKind::Capacity,
            Gate::CircuitBreaker => CauseKind::CircuitBreaker,
            Gate::IdempotencyKey => CauseKind::IdempotencyKey,
            Gate::Command => CauseKind::Command,
            Gate::RateLimit => CauseKind::RateLimit,
        };
    }

    fn gone(&self, id: &JobId) -> Cause {
        let error = self.unreadable.get(id.as_str());
        let mut cause = Cause {
            job: id.to_string(),
            name: None,
            run: None,
            node: None,
            status: None,
            kind: if error.is_some() { CauseKind::UnreadableJob } else { CauseKind::MissingJob },
            detail: error.cloned().unwrap_or_else(|| format!("missing job dependency {id}")),
            about: None,
            until: None,
            waits_on: Vec::new(),
            via: None,
            root: true,
            remedy: None,
            parent: None,
        };
        cause.remedy = Remedy::of(&cause, None, self.facts);
        cause
    }
}

/// Says of a job at which no gate is in the way what that means for others.
const fn standing(job: &Brief) -> CauseKind {
    match job.status {
        _ if job.is_outside() => CauseKind::External,
        JobStatus::Running => CauseKind::Running,
        JobStatus::Succeeded => CauseKind::Succeeded,
        JobStatus::Failed => CauseKind::Failed,
        JobStatus::Cancelled => CauseKind::Cancelled,
        JobStatus::BlockedByDependency => CauseKind::Blocked,
        JobStatus::BlockedByApproval => CauseKind::Rejected,
        JobStatus::Skipped => CauseKind::Skipped,
        JobStatus::Queued
        | JobStatus::WaitingOnDeps
        | JobStatus::WaitingOnApproval
        | JobStatus::WaitingOnLocks => CauseKind::Ready,
    }
}

/// Returns the artifact of a job whose label ends a detail.
fn artifact_in<'j>(job: &'j Brief, detail: &str) -> Option<&'j Artifact> {
    let mut needed = job.schedule.dependencies.iter().map(|needed| &needed.artifact);
    needed.find(|artifact| detail.ends_with(&artifact.to_string()))
}
