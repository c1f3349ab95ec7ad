//! What a job waits for: the part of its record that gates look at.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::artifact::Artifact;
use super::id::JobId;
use super::outcome::NodeOutcome;
use super::status::JobStatus;
use super::time_text;
use crate::policy::word_enum;
use crate::policy::{CircuitBreaker, ConcurrencyLimit, Priority, RateLimit};
use crate::time::{Span, Timestamp};

/// Everything that gates look at, and what they found last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Schedule {
    /// The jobs that have to end first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<After>,
    /// The artifacts that have to be there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<Needed>,
    /// What becomes of the job if an artifact has no producer.
    #[serde(skip_serializing_if = "MissingProducer::is_block")]
    pub missing_producer: MissingProducer,
    /// The locks that it holds while it runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<Lock>,
    /// What it makes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// Where a branch has to stand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinned_head: Option<PinnedHead>,
    /// What else has to be so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub preconditions: Vec<Precondition>,
    /// Whether a person has to approve it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// What its policy says about when it may start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Box<Limits>>,
    /// Before this instant it does not start.
    #[serde(with = "time_text::option", skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// Since when only locks, slots and limits keep it from starting.
    #[serde(with = "time_text::option", skip_serializing_if = "Option::is_none")]
    pub ready_at: Option<Timestamp>,
    /// The attempt that a worker outside has in hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external: Option<Box<ExternalWait>>,
    /// Whether it failed and its loop gave up: it is blocked, and handlers of its failure run.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub gave_up: bool,
    /// How it ended when its loop went back, until it starts again: if it never does, that end counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub looped_on: Option<NodeOutcome>,
    /// Whether its policy skipped it instead of letting it fail.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub skipped_failure: bool,
    /// What it waits for now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_reason: Option<WaitReason>,
    /// What it has waited for so far, each kind once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waited_on: Vec<WaitKind>,
}

/// One job that has to end before another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct After {
    /// The job.
    pub job_id: JobId,
    /// How it has to end.
    #[serde(default)]
    pub policy: AfterPolicy,
}

word_enum! {
    /// How a job has to end so that another one may start.
    pub enum AfterPolicy {
        /// It succeeded.
        Success = "success",
        /// It failed.
        Failed = "failed",
        /// It was blocked.
        Blocked = "blocked",
        /// It was cancelled.
        Cancelled = "cancelled",
        /// Any of the three.
        Failure = "failure",
        /// It ended, however.
        Completion = "completion",
    }
}

#[expect(clippy::derivable_impls, reason = "the macro defines the enum")]
impl Default for AfterPolicy {
    fn default() -> Self {
        Self::Success
    }
}

impl AfterPolicy {
    /// Tells whether an end of that kind is what is waited for.
    #[must_use]
    pub const fn is_met_by(self, end: JobStatus) -> bool {
        match self {
            Self::Success => matches!(end, JobStatus::Succeeded),
            Self::Failed => matches!(end, JobStatus::Failed),
            Self::Blocked => end.is_blocked(),
            Self::Cancelled => matches!(end, JobStatus::Cancelled),
            Self::Failure => matches!(end, JobStatus::Failed | JobStatus::Cancelled) || end.is_blocked(),
            Self::Completion => end.is_terminal(),
        }
    }
}

/// One artifact that has to be there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Needed {
    /// The artifact.
    pub artifact: Artifact,
}

word_enum! {
    /// What becomes of a job whose artifact is missing and has no producer.
    pub enum MissingProducer {
        /// It is blocked.
        Block = "block",
        /// It waits until one comes.
        Wait = "wait",
    }
}

#[expect(clippy::derivable_impls, reason = "the macro defines the enum")]
impl Default for MissingProducer {
    fn default() -> Self {
        Self::Block
    }
}

impl MissingProducer {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
    fn is_block(&self) -> bool {
        *self == Self::Block
    }
}

/// A lock that a job holds while it runs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Lock {
    /// What is locked.
    pub key: String,
    /// With whom it is shared.
    pub mode: LockMode,
}

/// Writes what views show: `key:mode`.
impl fmt::Display for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.key, self.mode)
    }
}

word_enum! {
    /// With whom a lock is shared.
    pub enum LockMode {
        /// With others that share it.
        Shared = "shared",
        /// With nobody.
        Exclusive = "exclusive",
    }
}

/// Where a branch has to stand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedHead {
    /// The branch.
    pub branch: String,
    /// Its commit.
    pub oid: String,
}

/// Writes what views show: `branch@commit`.
impl fmt::Display for PinnedHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.branch, self.oid)
    }
}

/// Something else that has to be so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Precondition {
    /// Nothing is changed in the working tree.
    CleanWorktree,
    /// A branch exists.
    BranchExists {
        /// The branch; without it, that of the pinned head, of the only branch lock, or the current one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        branch: Option<String>,
    },
    /// One of these, by name and with arguments.
    Custom {
        /// The name.
        id: String,
        /// The arguments.
        #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
        args: serde_json::Map<String, serde_json::Value>,
    },
}

/// What a person has to say, and said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// Whether it is needed at all.
    pub required: bool,
    /// What was said.
    pub state: ApprovalState,
    /// When it was asked for.
    #[serde(default, with = "time_text::option", skip_serializing_if = "Option::is_none")]
    pub requested_at: Option<Timestamp>,
    /// Who asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_by: Option<String>,
    /// When it was decided.
    #[serde(default, with = "time_text::option", skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<Timestamp>,
    /// Who decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    /// Why it was rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Approval {
    /// Who asks where a policy says pause.
    pub(super) const BY_POLICY: &'static str = "policy";

    /// Tells whether a policy asks for it, after a failure, and nobody has answered yet.
    pub(super) fn is_of_pause(&self) -> bool {
        self.required
            && self.state == ApprovalState::Pending
            && self.requested_by.as_deref() == Some(Self::BY_POLICY)
    }

    /// Returns an approval that somebody asks for.
    #[must_use]
    pub fn pending(by: &str, at: Timestamp) -> Self {
        Self {
            required: true,
            state: ApprovalState::Pending,
            requested_at: Some(at),
            requested_by: Some(by.to_owned()),
            decided_at: None,
            decided_by: None,
            reason: None,
        }
    }
}

word_enum! {
    /// What a person said.
    pub enum ApprovalState {
        /// Nothing yet.
        Pending = "pending",
        /// Yes.
        Approved = "approved",
        /// No.
        Rejected = "rejected",
    }
}

/// What the policy of a job says about when it may start.
///
/// Invariant: each limit has its name: its own, or that of its rule. It counts over all jobs that have the same.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Who goes first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// How many may run at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<ConcurrencyLimit>,
    /// How many may start in any window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateLimit>,
    /// What stops starting what keeps failing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub breaker: Option<CircuitBreaker>,
    /// How long it waits once nothing else is in its way, before its first attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// When waiting for a start is over: its queue timeout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_timeout_ms: Option<u64>,
    /// Jobs with the same key are one piece of work: the second waits and takes the result of the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// After this instant it is too late to start.
    #[serde(with = "time_text::option", skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// Whether its policy says what becomes of it where it may not start any more; otherwise it has failed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub has_recourse: bool,
    /// Whether its work is done elsewhere: it starts without a process and takes no slot.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub external: bool,
}

/// An attempt that a worker outside has in hand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalWait {
    /// What the worker has to give with its result: the number of the attempt, and bits that nothing else has.
    pub token: String,
    /// When the attempt has taken too long.
    #[serde(default, with = "time_text::option", skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// How long the worker may give no sign of life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_ms: Option<u64>,
    /// When it last gave one.
    #[serde(with = "time_text")]
    pub heard_at: Timestamp,
}

impl ExternalWait {
    /// Returns when the worker has been silent for too long.
    #[must_use]
    pub fn silent_at(&self) -> Option<Timestamp> {
        self.heartbeat_ms.map(|millis| self.heard_at.saturating_add(Span::from_millis(millis)))
    }

    /// Returns when the attempt is given up, if the worker does nothing.
    #[must_use]
    pub fn due(&self) -> Option<Timestamp> {
        self.until.into_iter().chain(self.silent_at()).min()
    }
}

/// What a job waits for now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitReason {
    /// Which gate.
    pub kind: WaitKind,
    /// What exactly.
    #[serde(default)]
    pub detail: String,
}

impl WaitReason {
    /// Says what a job waits for.
    pub fn new(kind: WaitKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into() }
    }
}

/// Writes what views show: `kind: detail`.
impl fmt::Display for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.detail.trim() {
            "" => write!(f, "{}: waiting", self.kind),
            detail => write!(f, "{}: {detail}", self.kind),
        }
    }
}

word_enum! {
    /// The gates that a job can wait at.
    pub enum WaitKind {
        /// Other jobs, or artifacts.
        Dependencies = "dependencies",
        /// A branch that stands elsewhere.
        PinnedHead = "pinned_head",
        /// Something else that is not so.
        Preconditions = "preconditions",
        /// A person.
        Approval = "approval",
        /// Locks that others hold.
        Locks = "locks",
        /// Too many jobs run.
        Capacity = "capacity",
        /// A time to come.
        Schedule = "schedule",
        /// A worker outside, which has its token.
        External = "external",
    }
}
