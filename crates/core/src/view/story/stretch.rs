//! What a piece of work spends its time with. It measures nothing: that is done by whoever adds times up.

use serde::Serialize;

use crate::event::Hold;
use crate::time::Timestamp;

/// A piece of time in the life of a piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Stretch {
    /// What it was spent with.
    pub doing: Doing,
    /// What held it, where it was spent with waiting.
    pub hold: Option<Hold>,
    /// When it began.
    pub from: Timestamp,
    /// When it ended; `None` while it goes on.
    pub to: Option<Timestamp>,
}

/// What a piece of work spends its time with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Doing {
    /// Somebody works on it.
    Attempt,
    /// Somebody worked on it, in vain.
    Failed,
    /// Its process was lost, and some time later the same attempt was handed out again.
    Lost,
    /// It could start, and waits for somebody who does it.
    Queue,
    /// It waits for locks that others hold.
    Locks,
    /// It waits for others to end, because no more may run at once.
    Capacity,
    /// It waits for its next attempt.
    Backoff,
    /// It waits for a person.
    Approval,
    /// It waits until something is so outside: a branch, a working tree.
    World,
    /// Something else holds it: a limit, a time, somebody outside.
    Waiting,
}

impl Doing {
    /// All of them; those that get on best first.
    pub const ALL: [Self; 10] = [
        Self::Attempt,
        Self::Failed,
        Self::Lost,
        Self::Queue,
        Self::Locks,
        Self::Capacity,
        Self::Backoff,
        Self::Approval,
        Self::World,
        Self::Waiting,
    ];

    /// Returns the word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Attempt => "attempt",
            Self::Failed => "failed",
            Self::Lost => "lost",
            Self::Queue => "queue",
            Self::Locks => "locks",
            Self::Capacity => "capacity",
            Self::Backoff => "backoff",
            Self::Approval => "approval",
            Self::World => "world",
            Self::Waiting => "waiting",
        }
    }

    /// Returns its place among all.
    pub(in crate::view) const fn place(self) -> usize {
        match self {
            Self::Attempt => 0,
            Self::Failed => 1,
            Self::Lost => 2,
            Self::Queue => 3,
            Self::Locks => 4,
            Self::Capacity => 5,
            Self::Backoff => 6,
            Self::Approval => 7,
            Self::World => 8,
            Self::Waiting => 9,
        }
    }
}
