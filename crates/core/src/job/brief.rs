//! What scheduling and lists need to know of a job, and no more: a list of ten thousand is read at once.

use serde::{Deserialize, Serialize};

use super::id::{JobId, NodeId, RunId};
use super::metadata::Metadata;
use super::outcome::{JobOutcome, NodeOutcome};
use super::record::Record;
use super::schedule::Schedule;
use super::status::JobStatus;
use super::time_text;
use crate::time::Timestamp;

/// What scheduling and lists need to know of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Brief {
    /// Its id.
    pub id: JobId,
    /// Where it stands.
    pub status: JobStatus,
    /// When it was enqueued.
    #[serde(with = "time_text")]
    pub created_at: Timestamp,
    /// When its last attempt started.
    #[serde(default, with = "time_text::option", skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default, with = "time_text::option", skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The run that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The node that it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
    /// What people call it.
    pub name: String,
    /// The plan that it is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slug: Option<String>,
    /// How many times it was started.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempt: u32,
    /// The first node that its loop goes back to: it ended, and will be rewound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goes_back: Option<NodeId>,
    /// Whether it could be started at all: it has arguments.
    pub is_runnable: bool,
    /// What it waits for.
    pub schedule: Schedule,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Brief {
    /// Tells whether something may still happen to it by itself: it is active, or a loop will rewind it.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.status.is_active() || self.goes_back.is_some()
    }

    /// Returns whether an attempt of the job is in the hands of a worker outside.
    #[must_use]
    pub const fn is_outside(&self) -> bool {
        self.schedule.external.is_some()
    }

    /// Returns whether the job holds its locks and limits: it runs, here or outside.
    #[must_use]
    pub const fn holds_locks(&self) -> bool {
        matches!(self.status, JobStatus::Running) || self.is_outside()
    }

    /// Returns whether the policy of the job skipped it instead of letting it fail: it failed, or its breaker was open.
    #[must_use]
    pub const fn is_skipped_failure(&self) -> bool {
        // Records of releases that did not note it have the exit code of the failure; no other skipped job has one.
        let is_noted = self.schedule.skipped_failure || matches!(self.exit_code, Some(code) if code != 0);
        matches!(self.status, JobStatus::Skipped) && is_noted
    }

    /// Says why the policy of a skipped job skipped it; `None` where it was not needed.
    #[must_use]
    pub fn skipped_because(&self) -> Option<String> {
        if !self.is_skipped_failure() {
            return None;
        }
        let reason = self.schedule.wait_reason.as_ref().map(|reason| reason.detail.as_str());
        Some(match (reason, self.exit_code) {
            (Some(reason), _) => format!("{reason}, and its policy skips that"),
            (None, Some(code)) => format!("it failed (exit {code}), and its policy skips that"),
            (None, None) => "it failed, and its policy skips that".to_owned(),
        })
    }
}

impl From<&Record> for Brief {
    fn from(record: &Record) -> Self {
        Self {
            id: record.id.clone(),
            status: record.status,
            created_at: record.created_at,
            started_at: record.started_at,
            finished_at: record.finished_at,
            exit_code: record.exit_code,
            run: record.run(),
            node: record.node(),
            name: record.name(),
            slug: record.slug(),
            attempt: record.metadata.number(Metadata::NODE_ATTEMPT).unwrap_or(0),
            goes_back: record.loop_targets().into_iter().next(),
            is_runnable: !record.child_args.is_empty(),
            schedule: record.schedule.clone(),
        }
    }
}

impl Brief {
    /// Tells whether its deadline is over.
    #[must_use]
    pub fn is_late(&self, now: Timestamp) -> bool {
        let limits = self.schedule.limits.as_deref();
        limits.and_then(|limits| limits.deadline).is_some_and(|deadline| deadline <= now)
    }
}

impl Record {
    /// Takes over what a pass of the scheduler, which sees only briefs, has changed.
    pub fn take_over(&mut self, brief: &Brief) {
        // Whatever a pass ends for good has an outcome, too; what it only blocks or skips has none.
        if brief.finished_at.is_some() && self.finished_at.is_none() {
            self.outcome_path = Some(JobOutcome::path(&self.id));
            let outcome = NodeOutcome::of(brief.status);
            self.metadata.set(Metadata::NODE_OUTCOME, outcome.map_or("", NodeOutcome::name));
        }
        self.status = brief.status;
        self.finished_at = brief.finished_at;
        self.exit_code = brief.exit_code;
        self.schedule = brief.schedule.clone();
    }

    /// Returns what people call the job: the name of its node, or what it was asked to do.
    #[must_use]
    pub fn name(&self) -> String {
        let text = |name| self.metadata.text(name).map(str::trim).filter(|text| !text.is_empty());
        if let Some(name) = text(Metadata::NODE_NAME) {
            return name.to_owned();
        }
        if let Some(node) = text(Metadata::NODE_ID) {
            return node.replace("__", " / ").replace('_', " ");
        }
        if let Some(alias) = text(Metadata::COMMAND_ALIAS).or_else(|| text("scope")) {
            return match (text("plan"), text("target")) {
                (Some(plan), Some(target)) => format!("{alias}/{plan}/{target}"),
                (None, Some(target)) => format!("{alias}/{target}"),
                (_, None) => alias.to_owned(),
            };
        }
        match self.command.as_slice() {
            [] => "<command unavailable>".to_owned(),
            words if words.len() <= 3 => words.join(" "),
            words => format!("{} ...", words[..3].join(" ")),
        }
    }

    /// Returns from when its deadline counts, if that is not the beginning of its run.
    #[must_use]
    pub fn deadline_from(&self) -> Option<Timestamp> {
        Timestamp::parse(self.metadata.text(Metadata::DEADLINE_FROM)?).ok()
    }

    /// Returns the nodes that its loop goes back to, until their jobs are rewound.
    #[must_use]
    pub fn loop_targets(&self) -> Vec<NodeId> {
        let targets = self.metadata.get(Metadata::LOOP_TO).and_then(|value| value.as_array());
        let names = targets.into_iter().flatten().filter_map(|name| name.as_str());
        names.filter_map(|name| NodeId::new(name).ok()).collect()
    }

    /// Returns the plan that the job is of.
    #[must_use]
    pub fn slug(&self) -> Option<String> {
        let plan = self.metadata.text("plan").map(str::trim).filter(|plan| !plan.is_empty());
        plan.map(str::to_owned)
            .or_else(|| self.schedule.artifacts.iter().find_map(|made| made.slug().map(str::to_owned)))
    }
}
