//! Why one job is as it is, as one structure.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::super::graph::Graph;
use super::attempt::{AttemptOutcome, AttemptTold, Note, Told};
use super::cause::{Cause, CauseKind, Search};
use super::chain::Words;
use super::next::{Dependents, Next, Present, has_open_approval};
use super::page::Part;
use super::text::{exit, instant};
use crate::job::{Brief, Facts, Finding, Gate, Inspection, JobId, JobStatus, Look, NodeId, Question, RunId};
use crate::policy::word_enum;
use crate::time::Timestamp;
use crate::view::{between, long, moment};

/// The jobs among which something is explained.
#[derive(Clone, Copy)]
pub struct World<'a> {
    /// All jobs.
    pub briefs: &'a BTreeMap<JobId, Brief>,
    /// Records that cannot be read, and why.
    pub unreadable: &'a BTreeMap<String, String>,
    /// Running jobs whose supervisors are gone.
    pub lost: &'a BTreeSet<JobId>,
    /// Gives the last words of a job that has ended: why it failed, or what blocked it.
    pub last_words: &'a dyn Fn(&JobId) -> Option<String>,
    /// What is known of the world.
    pub facts: &'a Facts,
    /// How many jobs may run at once.
    pub capacity: u32,
    /// The present.
    pub now: Timestamp,
    /// Whether what is not known is asked for; otherwise what the last pass found counts.
    pub may_ask: bool,
}

/// The job that is explained.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// The job, as it is among the others.
    pub job: &'a Brief,
    /// Why it is kept as a dead letter, if it is.
    pub dead_letter: Option<&'a str>,
    /// What happened to it, with the lines that it wrote.
    pub told: &'a Told,
}

word_enum! {
    /// How a gate is.
    pub enum GateState {
        /// Nothing is asked of it.
        NotSet = "not_set",
        /// It is open.
        Passed = "passed",
        /// The job waits at it.
        Waiting = "waiting",
        /// It blocks the job for good.
        Blocked = "blocked",
        /// The job failed at it.
        Failed = "failed",
        /// The job is not needed, it says.
        Skipped = "skipped",
        /// The job has not come so far.
        NotReached = "not_reached",
        /// Nobody looked.
        Unknown = "unknown",
    }
}

/// A gate before a job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GateTold {
    /// Which.
    pub gate: Gate,
    /// How it is.
    pub state: GateState,
    /// What it says, or what is asked of it.
    pub detail: String,
    /// The jobs that are in the way.
    pub waits_on: Vec<JobId>,
    /// Until when, if it is a time.
    #[serde(serialize_with = "instant")]
    pub until: Option<Timestamp>,
}

/// Why a job is as it is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// The version of this form.
    pub version: u32,
    /// The job.
    pub job: JobId,
    /// What people call it.
    pub name: String,
    /// Its run.
    pub run: Option<RunId>,
    /// Its node.
    pub node: Option<NodeId>,
    /// Where it stands.
    pub status: JobStatus,
    /// How it ended.
    pub exit_code: Option<i32>,
    /// When it was enqueued.
    #[serde(serialize_with = "instant")]
    pub created_at: Option<Timestamp>,
    /// When its last attempt began.
    #[serde(serialize_with = "instant")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(serialize_with = "instant")]
    pub finished_at: Option<Timestamp>,
    /// All of it in a sentence.
    pub summary: String,
    /// Its gates in order.
    pub gates: Vec<GateTold>,
    /// What holds it up: the job itself, then all that is behind it, the nearest first.
    pub causes: Vec<Cause>,
    /// Its attempts.
    pub attempts: Vec<AttemptTold>,
    /// What else happened to it.
    pub notes: Vec<Note>,
    /// What happens next.
    pub next: Next,
    #[serde(skip)]
    parts: Vec<Part>,
}

/// Explains a job that is there.
///
/// # Errors
/// What has to be known of the world first: ask again with the answers among the facts.
pub fn explain_job(world: World<'_>, subject: Subject<'_>) -> Result<Explanation, BTreeSet<Question>> {
    let World { briefs, unreadable, lost, last_words, facts, capacity, now, may_ask } = world;
    let Subject { job, dead_letter, told } = subject;
    let mut inspection = Inspection::new(briefs, unreadable, facts, capacity, now);
    let mut search = Search {
        briefs,
        unreadable,
        facts,
        inspection: &mut inspection,
        lost,
        last_words,
        questions: BTreeSet::new(),
        may_ask,
    };
    let mut causes = search.causes(&job.id);
    if !search.questions.is_empty() {
        return Err(search.questions);
    }
    let looks = inspection.look(&job.id);
    let gives_up_at = inspection.gives_up_at(&job.id);
    let words = Words { briefs, run: job.run.as_ref(), now };
    let is_ahead = |look: &&Look| look.finding == Finding::NotReached;
    let is_ending = looks.iter().any(|look| matches!(look.finding, Finding::Ends { .. }));
    let next = Next::of(
        Present {
            job,
            cause: &causes[0],
            roots: causes.iter().filter(|cause| cause.root).collect(),
            ahead: looks.iter().filter(is_ahead).map(|look| look.gate).collect(),
            is_ending: is_ending && job.status.is_active(),
            gives_up_at,
            dependents: Dependents::of(&Graph::of(briefs), job),
        },
        words,
    );
    // What runs or succeeded is held up by nothing, and what failed by itself has its attempts to tell why.
    let (kind, is_by_gate) = (causes[0].kind, job.schedule.wait_reason.is_some());
    let is_fine = matches!(kind, CauseKind::Running | CauseKind::Succeeded | CauseKind::Cancelled);
    let is_by_attempt = matches!(kind, CauseKind::Failed | CauseKind::Blocked | CauseKind::Skipped)
        && !told.attempts.is_empty()
        && !is_by_gate;
    if is_fine || is_by_attempt {
        causes.clear();
    }
    let mut explanation = Explanation {
        version: 1,
        summary: summary(job, lost.contains(&job.id), dead_letter, told, now),
        gates: looks.into_iter().map(|look| GateTold::of(look, job)).collect(),
        causes,
        attempts: told.attempts.clone(),
        notes: told.notes.clone(),
        next,
        parts: Vec::new(),
        created_at: Some(job.created_at),
        started_at: job.started_at,
        finished_at: job.finished_at,
        exit_code: job.exit_code,
        status: job.status,
        name: job.name.clone(),
        node: job.node.clone(),
        run: job.run.clone(),
        job: job.id.clone(),
    };
    explanation.parts = explanation.parts(words);
    Ok(explanation)
}

impl Explanation {
    /// Returns the page that people read.
    #[must_use]
    pub fn page(&self) -> &[Part] {
        &self.parts
    }
}

impl GateTold {
    fn of(look: Look, job: &Brief) -> Self {
        let asked = || asked(look.gate, job);
        let (state, detail, until) = match look.finding {
            Finding::NotSet => (GateState::NotSet, String::new(), None),
            // A time that was over before anybody decided ended it elsewhere.
            Finding::Open if look.gate == Gate::Approval && has_open_approval(job) => {
                (GateState::NotReached, asked(), None)
            }
            Finding::Open => (GateState::Passed, asked(), None),
            Finding::NotReached => (GateState::NotReached, asked(), None),
            Finding::Asks(_) => (GateState::Unknown, asked(), None),
            Finding::Waits { detail, until } => (GateState::Waiting, detail, until),
            Finding::Ends { status, detail } => {
                let state = match status {
                    JobStatus::Skipped => GateState::Skipped,
                    JobStatus::Succeeded => GateState::Passed,
                    JobStatus::Failed | JobStatus::Cancelled => GateState::Failed,
                    JobStatus::BlockedByDependency
                    | JobStatus::BlockedByApproval
                    | JobStatus::Queued
                    | JobStatus::WaitingOnDeps
                    | JobStatus::WaitingOnApproval
                    | JobStatus::WaitingOnLocks
                    | JobStatus::Running => GateState::Blocked,
                };
                (state, detail, None)
            }
        };
        Self { gate: look.gate, state, detail, waits_on: look.on, until }
    }
}

/// Says what a job asks of a gate.
fn asked(gate: Gate, job: &Brief) -> String {
    fn joined<T: ToString>(items: impl Iterator<Item = T>) -> String {
        items.map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
    }
    let schedule = &job.schedule;
    let limits = schedule.limits.as_deref();
    match gate {
        Gate::After => {
            joined(schedule.after.iter().map(|after| format!("{}:{}", after.policy, after.job_id)))
        }
        Gate::Artifacts => joined(schedule.dependencies.iter().map(|needed| &needed.artifact)),
        Gate::PinnedHead => schedule.pinned_head.as_ref().map(ToString::to_string).unwrap_or_default(),
        Gate::Preconditions => joined(schedule.preconditions.iter().map(precondition)),
        Gate::Approval => match schedule.approval.as_ref() {
            Some(approval) => match &approval.decided_by {
                Some(by) => format!("{} by {by}", approval.state),
                None => approval.state.to_string(),
            },
            None => String::new(),
        },
        Gate::Locks => joined(schedule.locks.iter()),
        Gate::Schedule => schedule.not_before.map(|at| format!("not before {at}")).unwrap_or_default(),
        Gate::CircuitBreaker => {
            let breaker = limits.and_then(|limits| limits.breaker.as_ref());
            breaker.map(|breaker| breaker.name.clone()).unwrap_or_default()
        }
        Gate::IdempotencyKey => limits.and_then(|limits| limits.idempotency_key.clone()).unwrap_or_default(),
        Gate::RateLimit => {
            let rate = limits.and_then(|limits| limits.rate.as_ref());
            rate.and_then(|rate| rate.name.clone()).unwrap_or_default()
        }
        Gate::Capacity | Gate::Command => String::new(),
    }
}

fn precondition(precondition: &crate::job::Precondition) -> String {
    match precondition {
        crate::job::Precondition::CleanWorktree => "clean_worktree".to_owned(),
        crate::job::Precondition::BranchExists { branch: Some(branch) } => format!("branch_exists {branch}"),
        crate::job::Precondition::BranchExists { branch: None } => "branch_exists".to_owned(),
        crate::job::Precondition::Custom { id, .. } => id.clone(),
    }
}

/// Says in a sentence how a job is.
fn summary(job: &Brief, is_lost: bool, dead_letter: Option<&str>, told: &Told, now: Timestamp) -> String {
    let id = job.id.as_str();
    let who = if job.name == id { format!("Job {id}") } else { format!("{} (job {id})", job.name) };
    let ended = job.finished_at.map(|at| format!(" {}", moment(at, now))).unwrap_or_default();
    let last = told.attempts.last().and_then(|told| told.message.as_deref());
    let code = exit(job.exit_code, last);
    let tries = match told.attempts.iter().filter(|told| told.outcome != AttemptOutcome::Withdrawn).count() {
        0 | 1 => String::new(),
        many => format!(", after {many} attempts"),
    };
    let since = job.started_at.map(|at| format!(" for {}", long(between(at, now)))).unwrap_or_default();
    let text = match job.status {
        JobStatus::Queued => format!("{who} is queued."),
        JobStatus::WaitingOnDeps => format!("{who} waits for what it needs ({}).", job.status),
        JobStatus::WaitingOnApproval => format!("{who} waits for a person ({}).", job.status),
        JobStatus::WaitingOnLocks => format!("{who} waits for locks ({}).", job.status),
        JobStatus::Running if is_lost => {
            format!("{who} is on record as running{since}{tries}, but its supervisor is gone.")
        }
        JobStatus::Running => format!("{who} has been running{since}{tries}."),
        JobStatus::Succeeded => {
            let took = job.started_at.zip(job.finished_at).map(|(start, end)| long(between(start, end)));
            let took = took.map(|took| format!(", in {took}")).unwrap_or_default();
            format!("{who} succeeded{ended}{took}{tries}.")
        }
        JobStatus::Failed => format!("{who} failed{ended}{code}{tries}."),
        JobStatus::Cancelled => {
            let before = if job.started_at.is_none() { ", before it began" } else { "" };
            format!("{who} was cancelled by a person{ended}{before}{tries}.")
        }
        JobStatus::BlockedByDependency if job.exit_code.is_some() => {
            let why = told.spent.as_deref().or(last).unwrap_or("it left no reason");
            format!("{who} ended as blocked{ended}{code}{tries}: {}.", why.trim_end_matches('.'))
        }
        JobStatus::BlockedByDependency => {
            format!("{who} is blocked and does not start without a retry ({}).", job.status)
        }
        JobStatus::BlockedByApproval => format!("{who} was rejected{ended} ({}).", job.status),
        JobStatus::Skipped if job.started_at.is_some() => {
            format!("{who} failed{ended}{code}{tries}, and its policy lets that pass ({}).", job.status)
        }
        JobStatus::Skipped if job.is_skipped_failure() => {
            format!("{who} was not started, and its policy lets that pass ({}).", job.status)
        }
        JobStatus::Skipped => format!("{who} was skipped: it is not needed."),
    };
    match dead_letter {
        Some(why) => format!("{text} It is kept as a dead letter: {}.", why.trim_end_matches('.')),
        None => text,
    }
}
