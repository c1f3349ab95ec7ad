//! What happens to a job next and when, and who waits for it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use super::super::graph::Graph;
use super::cause::{Cause, CauseKind};
use super::chain::Words;
use super::text::{called, command, instant, jobs, listed};
use crate::job::{AfterPolicy, ApprovalState, Brief, Gate, JobId, JobStatus};
use crate::policy::word_enum;
use crate::time::Timestamp;
use crate::view::moment;

word_enum! {
    /// What happens next.
    pub enum NextKind {
        /// It starts at the next pass of the scheduler.
        Start = "start",
        /// It starts at an instant.
        Timer = "timer",
        /// It goes on when others do something.
        Wait = "wait",
        /// It goes on when a person says so.
        Approval = "approval",
        /// It ends at the next pass of the scheduler.
        End = "end",
        /// It runs on.
        Run = "run",
        /// It is done again, since its loop goes back.
        Loop = "loop",
        /// Nothing.
        Nothing = "nothing",
    }
}

/// What happens next.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Next {
    /// What.
    pub what: NextKind,
    /// When, if that is known.
    #[serde(serialize_with = "instant")]
    pub at: Option<Timestamp>,
    /// In how many milliseconds.
    pub in_ms: Option<u64>,
    /// When it is given up, if it has not started by then.
    #[serde(serialize_with = "instant")]
    pub gives_up_at: Option<Timestamp>,
    /// The same in sentences.
    pub text: String,
    /// What to type.
    pub commands: Vec<String>,
    /// Who waits for it.
    pub dependents: Dependents,
}

/// The jobs that come after a job and wait for it, or are blocked by it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Dependents {
    /// Those that hang on the job itself.
    pub direct: Vec<JobId>,
    /// How many wait for it, also through others.
    pub waiting: usize,
    /// How many are blocked by it, also through others.
    pub blocked: usize,
}

impl Dependents {
    /// Finds the jobs that wait for a job that is not over, or that are blocked by one that did not succeed.
    pub(super) fn of(graph: &Graph<'_>, job: &Brief) -> Self {
        let Some(place) = graph.place(&job.id) else { return Self::default() };
        let is_open = job.is_open();
        if !is_open && matches!(job.status, JobStatus::Succeeded | JobStatus::Skipped) {
            return Self::default();
        }
        let is_meant = |place: &&usize| match graph.jobs[**place].status {
            JobStatus::Queued
            | JobStatus::WaitingOnDeps
            | JobStatus::WaitingOnApproval
            | JobStatus::WaitingOnLocks => is_open,
            JobStatus::BlockedByDependency => !is_open,
            JobStatus::Running
            | JobStatus::Succeeded
            | JobStatus::Failed
            | JobStatus::Cancelled
            | JobStatus::BlockedByApproval
            | JobStatus::Skipped => false,
        };
        let direct = graph.dependents(place).iter().filter(is_meant);
        let mut direct: Vec<&Brief> = direct.map(|place| graph.jobs[*place]).collect();
        direct.sort_by_key(|job| (job.created_at, &job.id));
        let mut seen = vec![false; graph.jobs.len()];
        seen[place] = true;
        let (mut todo, mut count) = (vec![place], 0);
        while let Some(place) = todo.pop() {
            for next in graph.dependents(place).iter().filter(is_meant) {
                if !std::mem::replace(&mut seen[*next], true) {
                    count += 1;
                    todo.push(*next);
                }
            }
        }
        let (waiting, blocked) = if is_open { (count, 0) } else { (0, count) };
        Self { direct: direct.into_iter().map(|job| job.id.clone()).collect(), waiting, blocked }
    }

    /// Says who waits or is blocked.
    pub(super) fn said(&self, words: Words<'_>) -> Option<String> {
        let names = self.direct.iter().filter_map(|id| words.briefs.get(id));
        let names: Vec<String> = names.map(|job| called(job, words.run)).collect();
        let hang = match (self.blocked > 0, names.len()) {
            (_, 0) => return None,
            (true, 1) => "is blocked by it",
            (true, _) => "are blocked by it",
            (false, 1) => "waits for it",
            (false, _) => "wait for it",
        };
        let them = if names.len() == 1 { "that" } else { "them" };
        let through = match (self.waiting + self.blocked).saturating_sub(names.len()) {
            0 => String::new(),
            beyond => format!(", and {} behind {them}", jobs(beyond)),
        };
        Some(format!("{} {hang}{through}.", listed(&names)))
    }
}

/// So many commands are told.
const MOST_COMMANDS: usize = 4;

/// What is known of a job whose future is asked for.
pub(super) struct Present<'a> {
    pub(super) job: &'a Brief,
    pub(super) cause: &'a Cause,
    /// What holds it up in the end.
    pub(super) roots: Vec<&'a Cause>,
    /// The gates that it has not reached.
    pub(super) ahead: Vec<Gate>,
    /// Whether the gate that is in the way never opens.
    pub(super) is_ending: bool,
    pub(super) gives_up_at: Option<Timestamp>,
    pub(super) dependents: Dependents,
}

impl Next {
    pub(super) fn of(present: Present<'_>, words: Words<'_>) -> Self {
        let Present { job, cause, roots, ahead, is_ending, gives_up_at, dependents } = present;
        let mut commands = Vec::new();
        let future = cause.until.filter(|at| *at > words.now);
        let (what, mut text) = match job.status {
            _ if cause.kind == CauseKind::Loop => (NextKind::Loop, loops(job, future, words)),
            JobStatus::Succeeded | JobStatus::Skipped => {
                (NextKind::Nothing, "Nothing: it is over.".to_owned())
            }
            JobStatus::Failed
            | JobStatus::Cancelled
            | JobStatus::BlockedByDependency
            | JobStatus::BlockedByApproval => {
                let text = if cause.root {
                    commands.push(command(&format!("jobs retry {}", job.id)));
                    "Nothing automatic: it is over. A retry runs it again, with all that is after it."
                } else {
                    "Nothing automatic: it is over. A retry of what holds it up runs it again, too."
                };
                let retries =
                    roots.iter().filter_map(|root| root.remedy.as_ref()).flat_map(|way| &way.commands);
                commands.extend(retries.filter(|_| !cause.root).take(MOST_COMMANDS).cloned());
                (NextKind::Nothing, text.to_owned())
            }
            JobStatus::Running if cause.kind == CauseKind::Lost => {
                commands.push(command("tick"));
                let text = "The next pass of the scheduler ends it, and decides whether it is tried again.";
                (NextKind::End, text.to_owned())
            }
            JobStatus::Running => {
                commands.push(command(&format!("jobs tail {} --follow", job.id)));
                (NextKind::Run, "It runs until it ends, and what is after it goes on then.".to_owned())
            }
            JobStatus::Queued
            | JobStatus::WaitingOnDeps
            | JobStatus::WaitingOnApproval
            | JobStatus::WaitingOnLocks => match (cause.kind, future) {
                _ if is_ending => {
                    commands.push(command("tick"));
                    let text = format!("The next pass of the scheduler ends it: {}.", cause.detail);
                    (NextKind::End, text)
                }
                (CauseKind::Ready, _) => {
                    commands.push(command("tick"));
                    (NextKind::Start, "The next pass of the scheduler starts it.".to_owned())
                }
                (CauseKind::Approval, _) => (
                    NextKind::Approval,
                    "It goes on when a person approves it, and is over if a person rejects it.".to_owned(),
                ),
                (_, Some(at)) => (NextKind::Timer, timer(cause, at, words)),
                _ => (NextKind::Wait, format!("It goes on when {}.", condition(cause, job, words))),
            },
        };
        if ahead.contains(&Gate::Approval) && !is_ending && has_open_approval(job) {
            // Nobody has to wait for the question to give the answer.
            commands.push(command(&format!("jobs approve {}", job.id)));
        }
        let then: Vec<String> = ahead.into_iter().filter_map(|gate| wanted(gate, job)).collect();
        if !then.is_empty() && !is_ending {
            let _ = write!(text, " Then it still needs {}.", listed(&then));
        }
        if let Some(at) = gives_up_at.filter(|_| !is_ending) {
            let what = if job.is_outside() { "ended" } else { "started" };
            let _ = write!(text, " If it has not {what} {}, it fails.", moment(at, words.now));
        }
        let at = future.filter(|_| matches!(what, NextKind::Timer | NextKind::Loop));
        let in_ms = at.map(|at| crate::view::between(words.now, at) / 1_000_000);
        Self { what, at, in_ms, gives_up_at, text, commands, dependents }
    }
}

fn loops(job: &Brief, future: Option<Timestamp>, words: Words<'_>) -> String {
    let node = job.goes_back.as_ref().map(ToString::to_string).unwrap_or_default();
    let when = future.map(|at| format!(" {}", moment(at, words.now))).unwrap_or_default();
    format!("Its loop goes back to {node}{when}, and all that is after that is done again.")
}

fn timer(cause: &Cause, at: Timestamp, words: Words<'_>) -> String {
    let what = match cause.detail.split_once(" at ") {
        Some((retry, _)) if retry.starts_with("retry ") => retry,
        Some(_) | None => "it",
    };
    let mut letters = what.chars();
    let begins: String = letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect();
    format!("{begins} starts {}.", moment(at, words.now))
}

/// Says what has to happen so that a job goes on, without its subject.
fn condition(cause: &Cause, job: &Brief, words: Words<'_>) -> String {
    let names = cause
        .waits_on
        .iter()
        .map(|id| words.briefs.get(id).map_or_else(|| id.to_string(), |job| called(job, words.run)));
    let names: Vec<String> = names.collect();
    let has = if names.len() == 1 { "has" } else { "have" };
    let about = cause.about.as_deref().unwrap_or("what it needs");
    match cause.kind {
        CauseKind::After if job.schedule.after.iter().all(|after| after.policy == AfterPolicy::Success) => {
            format!("{} {has} succeeded", listed(&names))
        }
        CauseKind::After => format!("{} {has} ended in the way that is waited for", listed(&names)),
        CauseKind::Artifacts | CauseKind::MissingArtifact => format!("{about} is there"),
        CauseKind::Locks => format!("the lock {about} is free"),
        CauseKind::Capacity => "a slot is free".to_owned(),
        CauseKind::IdempotencyKey => {
            format!("{} {has} ended, and takes its result if it succeeded", listed(&names))
        }
        CauseKind::PinnedHead => "the branch stands again where it stood".to_owned(),
        CauseKind::Preconditions => "the repository is as it has to be".to_owned(),
        CauseKind::CircuitBreaker => "its circuit breaker lets it in".to_owned(),
        CauseKind::RateLimit => "its rate limit lets it in".to_owned(),
        CauseKind::Cycle => "one of the jobs in the circle is cancelled".to_owned(),
        CauseKind::External => "the worker outside completes it, or fails it".to_owned(),
        CauseKind::Running
        | CauseKind::Lost
        | CauseKind::Approval
        | CauseKind::Rejected
        | CauseKind::Failed
        | CauseKind::Cancelled
        | CauseKind::Skipped
        | CauseKind::Succeeded
        | CauseKind::Blocked
        | CauseKind::MissingJob
        | CauseKind::UnreadableJob
        | CauseKind::Schedule
        | CauseKind::Command
        | CauseKind::Loop
        | CauseKind::Ready
        | CauseKind::Unknown => "the scheduler has looked at it".to_owned(),
    }
}

/// Says what a gate that was not reached will ask for, where that is more than a matter of course.
fn wanted(gate: Gate, job: &Brief) -> Option<String> {
    let schedule = &job.schedule;
    match gate {
        Gate::Artifacts => {
            let labels: Vec<String> =
                schedule.dependencies.iter().map(|needed| needed.artifact.to_string()).collect();
            Some(listed(&labels))
        }
        Gate::PinnedHead => {
            schedule.pinned_head.as_ref().map(|pinned| format!("`{}` to stand still", pinned.branch))
        }
        Gate::Preconditions => Some("its preconditions".to_owned()),
        Gate::Approval => has_open_approval(job).then(|| "a person's approval".to_owned()),
        Gate::Locks => {
            let locks: Vec<String> = schedule.locks.iter().map(|lock| lock.key.clone()).collect();
            Some(format!("the lock {}", listed(&locks)))
        }
        Gate::After
        | Gate::Schedule
        | Gate::Capacity
        | Gate::CircuitBreaker
        | Gate::IdempotencyKey
        | Gate::Command
        | Gate::RateLimit => None,
    }
}

pub(super) fn has_open_approval(job: &Brief) -> bool {
    job.schedule.approval.as_ref().is_some_and(|approval| approval.state == ApprovalState::Pending)
}

/// Groups by a key, keeping the order in which keys come.
pub(super) fn grouped<K: Ord + Clone, V>(pairs: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut places: BTreeMap<K, usize> = BTreeMap::new();
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in pairs {
        let place = *places.entry(key.clone()).or_insert_with(|| {
            groups.push((key, Vec::new()));
            groups.len() - 1
        });
        groups[place].1.push(value);
    }
    groups
}
