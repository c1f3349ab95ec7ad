//! What a gate says to a job.

use crate::job::question::Question;
use crate::job::schedule::{WaitKind, WaitReason};
use crate::job::status::JobStatus;
use crate::time::Timestamp;

/// What a gate says to a job.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::job) enum Verdict {
    /// Go on.
    Open,
    /// Not now.
    Wait(Wait),
    /// Never.
    End(End),
    /// It depends on the world.
    Ask(Vec<Question>),
}

/// Why a job waits.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::job) struct Wait {
    /// Where it stands meanwhile.
    pub(in crate::job) status: JobStatus,
    /// What it waits for.
    pub(in crate::job) reason: WaitReason,
    /// Whether it waits for something that nobody tells us of.
    pub(in crate::job) watches: bool,
    /// When to look again.
    pub(in crate::job) wake_at: Option<Timestamp>,
    /// Whether only locks, slots and limits are in its way.
    pub(in crate::job) is_ready: bool,
}

/// How a job ended before it began.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::job) struct End {
    /// Where it stands now.
    pub(in crate::job) status: JobStatus,
    /// Why.
    pub(in crate::job) reason: WaitReason,
    /// What did not let it begin, if its policy may have an answer to that.
    pub(in crate::job) refusal: Option<Refusal>,
    /// Whether its policy skips it instead of letting it fail.
    pub(in crate::job) skips_failure: bool,
}

/// What does not let a job begin, and what its policy may have an answer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its deadline is over.
    Late,
    /// Its circuit breaker is open.
    CircuitOpen,
}

impl Verdict {
    /// The job waits for others.
    pub(super) fn wait_on_deps(kind: WaitKind, detail: String) -> Self {
        Self::Wait(Wait::new(JobStatus::WaitingOnDeps, kind, detail))
    }

    /// The job can never run.
    pub(super) fn block(kind: WaitKind, detail: String) -> Self {
        Self::end(JobStatus::BlockedByDependency, kind, detail)
    }

    /// The job is over.
    pub(in crate::job) fn end(status: JobStatus, kind: WaitKind, detail: impl Into<String>) -> Self {
        Self::End(End { status, reason: WaitReason::new(kind, detail), refusal: None, skips_failure: false })
    }

    /// The job has failed, unless its policy knows better.
    pub(super) fn refuse(refusal: Refusal, detail: impl Into<String>) -> Self {
        let reason = WaitReason::new(WaitKind::Schedule, detail);
        Self::End(End { status: JobStatus::Failed, reason, refusal: Some(refusal), skips_failure: false })
    }

    /// The job may not start, and its policy says to go on without it.
    pub(super) fn skip(detail: impl Into<String>) -> Self {
        let reason = WaitReason::new(WaitKind::Schedule, detail);
        Self::End(End { status: JobStatus::Skipped, reason, refusal: None, skips_failure: true })
    }
}

impl Wait {
    /// The job waits, and somebody tells us when that changes.
    pub(super) fn new(status: JobStatus, kind: WaitKind, detail: impl Into<String>) -> Self {
        let reason = WaitReason::new(kind, detail);
        Self { status, reason, watches: false, wake_at: None, is_ready: false }
    }

    /// The job waits for something in the world, which nobody tells us of.
    pub(super) fn watching(self) -> Verdict {
        Verdict::Wait(Self { watches: true, ..self })
    }

    /// The job could start if others did not.
    pub(super) fn ready(self) -> Verdict {
        Verdict::Wait(Self { is_ready: true, ..self })
    }

    /// The job is to be looked at again then.
    pub(super) fn until(self, at: Timestamp) -> Self {
        Self { wake_at: Some(at), ..self }
    }
}

/// Says again what a pass has said before.
pub(in crate::job) fn waits(status: JobStatus, reason: &WaitReason) -> Verdict {
    Verdict::Wait(Wait::new(status, reason.kind, reason.detail.clone()))
}
