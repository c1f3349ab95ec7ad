//! Where a job stands, and the one table of the ways from one standing to another.

use crate::policy::word_enum;

word_enum! {
    /// Where a job stands.
    pub enum JobStatus {
        /// To be looked at, or due later.
        Queued = "queued",
        /// Something that it needs is not there yet.
        WaitingOnDeps = "waiting_on_deps",
        /// A person has to approve it.
        WaitingOnApproval = "waiting_on_approval",
        /// Somebody else holds a lock that it needs.
        WaitingOnLocks = "waiting_on_locks",
        /// Its supervisor is there.
        Running = "running",
        /// It did what it should.
        Succeeded = "succeeded",
        /// It did not.
        Failed = "failed",
        /// A person ended it.
        Cancelled = "cancelled",
        /// Something that it needs can never come.
        BlockedByDependency = "blocked_by_dependency",
        /// A person rejected it.
        BlockedByApproval = "blocked_by_approval",
        /// It is not needed: its edge was not taken, or its policy says so.
        Skipped = "skipped",
    }
}

impl JobStatus {
    /// Tells whether something may still happen to the job by itself.
    #[must_use]
    pub const fn is_active(self) -> bool {
        match self {
            Self::Queued
            | Self::WaitingOnDeps
            | Self::WaitingOnApproval
            | Self::WaitingOnLocks
            | Self::Running => true,
            Self::Succeeded
            | Self::Failed
            | Self::Cancelled
            | Self::BlockedByDependency
            | Self::BlockedByApproval
            | Self::Skipped => false,
        }
    }

    /// Tells whether nothing happens to the job any more unless a person asks for it.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        !self.is_active()
    }

    /// Tells whether the job can never run because of something else.
    #[must_use]
    pub const fn is_blocked(self) -> bool {
        matches!(self, Self::BlockedByDependency | Self::BlockedByApproval)
    }

    /// Returns what leads from here to there; `None` where no way does.
    #[must_use]
    pub fn way_to(self, next: Self) -> Option<Transition> {
        TABLE.iter().find(|(from, _, to)| from.contains(&self) && to.contains(&next)).map(|(_, way, _)| *way)
    }
}

word_enum! {
    /// What leads from one standing to another.
    pub enum Transition {
        /// A gate was looked at.
        Gate = "gate",
        /// All gates are open: the job starts.
        Start = "start",
        /// An attempt ended, for good.
        Finish = "finish",
        /// An attempt failed, and another one is due later.
        Retry = "retry",
        /// A person ended it.
        Cancel = "cancel",
        /// A person rejected it.
        Reject = "reject",
        /// A person, or a loop, wants it done again.
        Rewind = "rewind",
        /// A start that did not come about is taken back.
        Withdraw = "withdraw",
    }
}

use JobStatus::{
    BlockedByApproval, BlockedByDependency, Cancelled, Failed, Queued, Running, Skipped, Succeeded,
    WaitingOnApproval, WaitingOnDeps, WaitingOnLocks,
};

const WAITING: &[JobStatus] = &[Queued, WaitingOnDeps, WaitingOnApproval, WaitingOnLocks];

/// Every way there is. The first row that fits counts; what is in no row does not happen.
const TABLE: &[(&[JobStatus], Transition, &[JobStatus])] = &[
    (WAITING, Transition::Gate, &[Queued, WaitingOnDeps, WaitingOnApproval, WaitingOnLocks]),
    (WAITING, Transition::Gate, &[BlockedByDependency, BlockedByApproval, Skipped, Failed, Succeeded]),
    (WAITING, Transition::Start, &[Running]),
    (WAITING, Transition::Cancel, &[Cancelled]),
    (&[Running], Transition::Finish, &[Succeeded, Failed, Skipped, BlockedByDependency]),
    (&[Running], Transition::Retry, &[Queued, WaitingOnApproval]),
    (&[Running], Transition::Cancel, &[Cancelled]),
    (
        &[Succeeded, Failed, Cancelled, BlockedByDependency, BlockedByApproval, Skipped],
        Transition::Rewind,
        &[Queued],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_ended_goes_nowhere_but_back_to_the_queue() {
        for from in JobStatus::ALL.iter().filter(|status| status.is_terminal()) {
            for to in JobStatus::ALL {
                let way = from.way_to(*to);
                assert_eq!(way, (*to == Queued).then_some(Transition::Rewind), "{from} to {to}");
            }
        }
    }

    #[test]
    fn only_what_waits_can_start() {
        for from in JobStatus::ALL {
            let can = from.way_to(Running) == Some(Transition::Start);
            assert_eq!(can, from.is_active() && *from != Running, "{from}");
        }
    }
}
