//! Causes as sentences: the way from what was asked for to each root, short enough to read.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::cause::{Cause, CauseKind};
use super::page::Line;
use super::text::{called, listed};
use crate::job::{Brief, JobId, JobStatus, RunId};
use crate::time::Timestamp;
use crate::view::{between, long, moment};

/// So many ways are told; programs get all of them.
const MOST_WAYS: usize = 5;

/// So many commands are told for one way.
const MOST_COMMANDS: usize = 4;

/// A way with more jobs is shortened: so many are named at its beginning, and as many at its end.
const NAMED: usize = 3;

/// What sentences are made of.
#[derive(Clone, Copy)]
pub(super) struct Words<'a> {
    pub(super) briefs: &'a BTreeMap<JobId, Brief>,
    /// The run that is spoken of.
    pub(super) run: Option<&'a RunId>,
    pub(super) now: Timestamp,
}

impl Words<'_> {
    /// Says what holds a job up, root by root, and who can change it.
    pub(super) fn why(self, causes: &[Cause]) -> Vec<Line> {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        let mut known: BTreeMap<(Option<usize>, CauseKind), usize> = BTreeMap::new();
        for (place, cause) in causes.iter().enumerate().filter(|(_, cause)| cause.root) {
            match known.get(&(cause.parent, cause.kind)).filter(|_| is_alike(cause.kind)) {
                Some(group) => groups[*group].push(place),
                None => {
                    known.insert((cause.parent, cause.kind), groups.len());
                    groups.push(vec![place]);
                }
            }
        }
        let mut lines = Vec::new();
        for group in groups.iter().take(MOST_WAYS) {
            lines.push(Line::Sentence(self.way(causes, group)));
            let members = group.iter().map(|place| &causes[*place]);
            if let Some(remedy) = causes[group[0]].remedy.as_ref() {
                lines.push(Line::Sentence(remedy.text.clone()));
            }
            let commands =
                members.filter_map(|cause| cause.remedy.as_ref()).flat_map(|remedy| &remedy.commands);
            lines.extend(commands.take(MOST_COMMANDS).cloned().map(Line::Command));
            // Whoever made the slots few can make them many.
            let parent = causes[group[0]].parent.map(|parent| &causes[parent]);
            let of_parent = parent.filter(|cause| cause.kind == CauseKind::Capacity);
            lines.extend(
                of_parent
                    .and_then(|cause| cause.remedy.as_ref())
                    .map(|remedy| Line::Sentence(remedy.text.clone())),
            );
        }
        if groups.len() > MOST_WAYS {
            let more = groups.len() - MOST_WAYS;
            lines.push(Line::Sentence(format!(
                "There are {more} more such reasons; --format json has all of them."
            )));
        }
        lines
    }

    /// Says the way to a root, or to several that are alike.
    fn way(self, causes: &[Cause], group: &[usize]) -> String {
        let mut way = vec![group[0]];
        while let Some(parent) = causes[way[way.len() - 1]].parent {
            way.push(parent);
        }
        way.reverse();
        let mut sentence = self.name(&causes[way[0]]);
        let left_out = way.len().saturating_sub(2 * NAMED);
        for (step, pair) in way.windows(2).enumerate() {
            if left_out > 2 && step >= NAMED && step < NAMED + left_out {
                if step == NAMED {
                    let is_over = causes[pair[0]].status.is_some_and(JobStatus::is_terminal);
                    let (waits, on) = if is_over { ("is blocked", "by") } else { ("waits", "for") };
                    let more = super::super::counted_number(left_out - 1);
                    let _ = write!(sentence, ", which {waits} through {more} more jobs {on} ");
                    sentence.push_str(&self.name(&causes[way[NAMED + left_out]]));
                }
                continue;
            }
            let is_last = step + 2 == way.len();
            let names: Vec<String> = if is_last {
                group.iter().map(|place| self.name(&causes[*place])).collect()
            } else {
                vec![self.name(&causes[pair[1]])]
            };
            sentence.push_str(if step == 0 { " " } else { ", which " });
            sentence.push_str(&on(&causes[pair[0]], &listed(&names)));
        }
        sentence.push_str(if way.len() == 1 { " " } else { ", which " });
        sentence.push_str(&self.root(&causes[group[0]], group.len() > 1));
        sentence.push('.');
        sentence
    }

    fn name(self, cause: &Cause) -> String {
        let job = self.briefs.get(cause.job.as_str());
        job.map_or_else(|| cause.job.clone(), |job| called(job, self.run))
    }

    /// Says how a root is, behind its name.
    pub(super) fn root(self, cause: &Cause, is_many: bool) -> String {
        let (is, was) = if is_many { ("are", "were") } else { ("is", "was") };
        let job = self.briefs.get(cause.job.as_str());
        let said = |text: &str| text.trim().trim_end_matches('.').to_owned();
        match cause.kind {
            CauseKind::Running => match job.and_then(|job| job.started_at).filter(|_| !is_many) {
                Some(at) => format!("has been running for {}", long(between(at, self.now))),
                None => format!("{is} running"),
            },
            CauseKind::External if is_many => "wait for workers outside to complete or fail them".to_owned(),
            CauseKind::External => "waits for a worker outside to complete or fail it".to_owned(),
            CauseKind::Lost => format!("{was} running until its supervisor was gone"),
            CauseKind::Approval if cause.detail == "awaiting human approval" && is_many => {
                "await a person's approval".to_owned()
            }
            CauseKind::Approval if cause.detail == "awaiting human approval" => {
                let approval = job.and_then(|job| job.schedule.approval.as_ref());
                let by = approval.and_then(|approval| approval.requested_by.as_deref());
                let at = approval.and_then(|approval| approval.requested_at);
                let asked = match (by.filter(|by| *by != "unknown"), at) {
                    (Some(by), Some(at)) => format!(", which {by} asked for {}", moment(at, self.now)),
                    (Some(by), None) => format!(", which {by} asked for"),
                    (None, Some(at)) => format!(", which was asked for {}", moment(at, self.now)),
                    (None, None) => String::new(),
                };
                format!("awaits a person's approval{asked}")
            }
            CauseKind::Approval => format!("waits for a person: {}", said(&cause.detail)),
            CauseKind::Rejected => {
                let approval = job.and_then(|job| job.schedule.approval.as_ref());
                let by = approval.and_then(|approval| approval.decided_by.as_deref()).unwrap_or("a person");
                format!("was rejected by {by}: {}", said(&cause.detail))
            }
            CauseKind::Failed if cause.detail.is_empty() => "failed".to_owned(),
            CauseKind::Failed if cause.detail.starts_with("exit code ") => {
                format!("failed with {}", cause.detail)
            }
            CauseKind::Failed => format!("failed: {}", said(&cause.detail)),
            CauseKind::Cancelled => format!("{was} cancelled"),
            CauseKind::Skipped if cause.detail.is_empty() => format!("{was} skipped"),
            CauseKind::Skipped => format!("{was} skipped: {}", said(&cause.detail)),
            CauseKind::Succeeded => "succeeded".to_owned(),
            CauseKind::Blocked if cause.detail.is_empty() => {
                "ended as blocked, and left no reason".to_owned()
            }
            CauseKind::MissingJob => "is not there any more".to_owned(),
            CauseKind::UnreadableJob => format!("has a record that cannot be read: {}", said(&cause.detail)),
            // An instant that is over says nothing of what is next: a pass is due, or another gate is closed by now.
            CauseKind::Schedule => match cause.until.filter(|at| *at > self.now) {
                Some(at) if cause.detail.starts_with("not before ") => {
                    format!("does not start before {}", moment(at, self.now))
                }
                Some(at) => match cause.detail.split_once(" at ") {
                    Some((what, _)) => {
                        format!("waits for {}, which comes {}", said(what), moment(at, self.now))
                    }
                    None => format!(
                        "waits: {}; it is looked at again {}",
                        said(&cause.detail),
                        moment(at, self.now)
                    ),
                },
                None => format!("{}: {}", held(cause.status), said(&cause.detail)),
            },
            CauseKind::Loop => match cause.until.filter(|at| *at > self.now) {
                Some(at) => format!("ended, and its loop goes back {}", moment(at, self.now)),
                None => "ended, and its loop goes back".to_owned(),
            },
            CauseKind::Ready => "is not held up: it can start".to_owned(),
            CauseKind::Cycle => "waits for one of those before it, in a circle".to_owned(),
            CauseKind::Unknown => "was not looked at".to_owned(),
            CauseKind::Command => "has nothing to start: missing child args".to_owned(),
            CauseKind::Blocked
            | CauseKind::After
            | CauseKind::Artifacts
            | CauseKind::Locks
            | CauseKind::Capacity
            | CauseKind::IdempotencyKey
            | CauseKind::MissingArtifact
            | CauseKind::PinnedHead
            | CauseKind::Preconditions
            | CauseKind::CircuitBreaker
            | CauseKind::RateLimit => format!("{}: {}", held(cause.status), said(&cause.detail)),
        }
    }
}

/// Tells whether causes of a kind are told together: nothing differs but the names.
const fn is_alike(kind: CauseKind) -> bool {
    matches!(
        kind,
        CauseKind::Running
            | CauseKind::Lost
            | CauseKind::Approval
            | CauseKind::Succeeded
            | CauseKind::Cancelled
            | CauseKind::MissingJob
            | CauseKind::Ready
    )
}

/// Says how something holds a job that stands so.
fn held(status: Option<JobStatus>) -> &'static str {
    match status {
        Some(JobStatus::BlockedByDependency | JobStatus::BlockedByApproval) => "is blocked",
        Some(JobStatus::Failed) => "failed",
        Some(JobStatus::Skipped) => "was skipped",
        Some(
            JobStatus::Queued
            | JobStatus::WaitingOnDeps
            | JobStatus::WaitingOnApproval
            | JobStatus::WaitingOnLocks
            | JobStatus::Running
            | JobStatus::Succeeded
            | JobStatus::Cancelled,
        )
        | None => "waits",
    }
}

/// Says how a job hangs on others.
fn on(cause: &Cause, names: &str) -> String {
    let is_over = cause.status.is_some_and(JobStatus::is_terminal);
    let is_skipped = cause.status == Some(JobStatus::Skipped);
    let about = cause.about.as_deref().unwrap_or_default();
    match cause.kind {
        CauseKind::Artifacts if is_over => format!("is blocked without {about} from {names}"),
        CauseKind::Artifacts => format!("waits on {about} from {names}"),
        CauseKind::Locks => format!("waits on the lock {about} behind {names}"),
        CauseKind::Capacity => format!("is {} behind {names}", cause.detail),
        CauseKind::IdempotencyKey => format!("waits on the same work of {names}"),
        CauseKind::After
        | CauseKind::External
        | CauseKind::Running
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
        | CauseKind::MissingArtifact
        | CauseKind::PinnedHead
        | CauseKind::Preconditions
        | CauseKind::Schedule
        | CauseKind::CircuitBreaker
        | CauseKind::RateLimit
        | CauseKind::Command
        | CauseKind::Loop
        | CauseKind::Ready
        | CauseKind::Cycle
        | CauseKind::Unknown => match (is_skipped, is_over) {
            (true, _) => format!("was skipped because of {names}"),
            (false, true) => format!("is blocked by {names}"),
            (false, false) => format!("waits on {names}"),
        },
    }
}
