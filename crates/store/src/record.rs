//! What a store keeps of a run beside its events, and of everything else that must survive.

use tidewheel_core::fact::RunId;
use tidewheel_core::time::Timestamp;

pub use tidewheel_core::command::Status;

use crate::batch::Batch;

/// How many events a log has; the next one gets this number.
pub type Version = u64;

/// How often a run was claimed. Whoever writes with an older number is refused.
pub type Fence = u64;

/// Who drives runs: one process that opened the store, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnerId(pub i64);

/// Something that somebody asked of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandId(pub i64);

/// Work that was put aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeadLetterId(pub i64);

/// A run as lists show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRecord {
    /// Its id.
    pub id: RunId,
    /// The name of its workflow.
    pub workflow: String,
    /// The version of its workflow.
    pub workflow_version: u32,
    /// How it is.
    pub status: Status,
    /// Why, where there is something to say.
    pub reason: Option<String>,
    /// How many events its log has.
    pub version: Version,
    /// Who drives it; `None` if nobody does.
    pub owner: Option<OwnerId>,
    /// How often it was claimed.
    pub fence: Fence,
    /// When somebody has to look at it; `None` if nothing is to be done.
    pub wake_at: Option<Timestamp>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last written.
    pub updated_at: Timestamp,
}

/// A run to be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRun {
    /// The name of its workflow.
    pub workflow: String,
    /// The version of its workflow.
    pub workflow_version: u32,
    /// What the workflow consists of and what the run was given, as JSON: it comes back with a claim.
    pub definition: String,
    /// Who drives it from the start; without one it waits for somebody.
    pub owner: Option<OwnerId>,
}

/// The right to write to a run. It ends when somebody else claims the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The run.
    pub run: RunId,
    /// The store's own number of the run.
    pub key: i64,
    /// What every write carries.
    pub fence: Fence,
}

/// Some events as they were stored together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The number of the first of them.
    pub first: Version,
    /// When they were stored.
    pub at: Timestamp,
    /// The events.
    pub events: Batch,
}

/// Which runs to list, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only those with one of these; all where it is empty.
    pub statuses: Vec<Status>,
    /// Only those of this workflow.
    pub workflow: Option<String>,
    /// Only those whose id begins so.
    pub id_prefix: Option<String>,
    /// At most so many; a store has its own bound, too.
    pub limit: Option<u32>,
    /// Where the page before ended.
    pub after: Option<String>,
}

/// A part of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// The rows.
    pub rows: Vec<T>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<String>,
}

/// Something to ask of a run, as a row that its owner finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCommand {
    /// Of which run.
    pub run: RunId,
    /// What: a word that the runner knows.
    pub kind: String,
    /// With what, as JSON.
    pub body: String,
}

/// Something that was asked of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Its number; they are obeyed in this order.
    pub id: CommandId,
    /// Of which run.
    pub run: RunId,
    /// What.
    pub kind: String,
    /// With what, as JSON.
    pub body: String,
    /// When it was asked.
    pub at: Timestamp,
}

/// A small state that runs and processes share, such as that of a circuit breaker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shared {
    /// One more with each write, and never again the same under one name, even after the state was removed.
    pub version: u64,
    /// The state, as JSON.
    pub body: String,
}

/// A shared state to write or to remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutShared {
    /// What it is the state of.
    pub kind: String,
    /// Of which one.
    pub name: String,
    /// The version that was seen; zero where there was none.
    pub expected: u64,
    /// The state, as JSON; `None` removes it.
    pub body: Option<String>,
}

/// What becomes of one piece of work of a run among those that are put aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Letter {
    /// It is put aside, in place of what was put aside for it before.
    Bury(NewDeadLetter),
    /// It is put aside no more, if it was.
    Raise {
        /// Which piece of work.
        work: String,
    },
}

/// Work to put aside after it failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDeadLetter {
    /// Which piece of work of its run.
    pub work: String,
    /// Of which node.
    pub node: String,
    /// Its input, its failure and its history, as JSON.
    pub body: String,
}

/// Work that was put aside after it failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// Its number.
    pub id: DeadLetterId,
    /// Of which run.
    pub run: RunId,
    /// Which piece of work of its run.
    pub work: String,
    /// Of which node.
    pub node: String,
    /// Its input, its failure and its history, as JSON.
    pub body: String,
    /// When it was put aside.
    pub at: Timestamp,
}
