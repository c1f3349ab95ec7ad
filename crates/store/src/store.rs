//! The trait that every backend keeps, and why it may refuse. `tidewheel_testkit::store_suite` says what each
//! function promises, for every backend alike.

use std::pin::Pin;

use tidewheel_core::fact::RunId;
use tidewheel_core::time::{Span, Timestamp};

use crate::batch::Batch;
use crate::record::{
    Command, CommandId, DeadLetter, DeadLetterId, Fence, Filter, Lease, Letter, NewCommand, NewRun, OwnerId,
    Page, PutShared, RunRecord, Shared, Status, Stored, Version,
};

/// What a store will say, later.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Keeps runs. What it has answered survives the end of the process, if the backend is one that lasts.
///
/// Nothing is half done: a call that fails has changed nothing, and one whose answer got lost can be found out
/// by reading again.
pub trait Store: Send + Sync + 'static {
    /// Writes to the logs of runs, all in one commit. Each part is taken or refused by itself.
    ///
    /// Everything in a part happens together: events, status, due time, handled commands, checkpoint,
    /// and what is put aside.
    fn append(&self, appends: Vec<Append>) -> Answer<'_, Vec<Result<Lease, Refused>>>;

    /// Returns the events of a run from a number on, in order; an unknown run has none.
    ///
    /// They come as they were stored together, so the first of them may have a smaller number.
    fn read<'a>(&'a self, run: &'a RunId, from: Version) -> Answer<'a, Vec<Stored>>;

    /// Returns what is known of a run.
    fn find<'a>(&'a self, run: &'a RunId) -> Answer<'a, Option<RunRecord>>;

    /// Returns what a run was created with, as JSON.
    fn definition<'a>(&'a self, run: &'a RunId) -> Answer<'a, Option<String>>;

    /// Returns runs, newest first, page by page. A page is right for the moment in which it is read.
    fn list(&self, filter: Filter) -> Answer<'_, Page<RunRecord>>;

    /// Forgets a run with all that belongs to it, unless somebody drives it. Tells whether it was there.
    fn delete<'a>(&'a self, run: &'a RunId) -> Answer<'a, Result<bool, Refused>>;

    /// Returns the last checkpoint of a run: how many events it stands for, and what was kept.
    fn checkpoint<'a>(&'a self, run: &'a RunId) -> Answer<'a, Option<(Version, String)>>;

    /// Makes the caller an owner of runs, for as long as it renews in time and lives.
    ///
    /// The store judges leases, and never by comparing clocks of two processes: an owner is late when one who looks
    /// at the owners again and again (by joining, renewing, claiming, deleting or listing owners) has not seen it
    /// renew for a whole lease, its own or that of the owner, whichever is longer, by its own clock. One who did not look for half a lease or longer begins anew, so
    /// neither a clock that is wrong nor one that jumps, nor a process that was suspended, ends an owner that
    /// renews. Where the store knows that the process of an owner has ended, it need not wait for the lease.
    ///
    /// The store is the clock: it answers with its own time, which only moves forward, and due times are measured
    /// against that. A process whose clock shows something else is to count from there.
    fn join(&self, lease: Span) -> Answer<'_, Joined>;

    /// Stays an owner for another lease from now on, however late it comes, as long as no other process has ended it.
    /// An owner that was ended learns it here: it is refused, and its runs may be another's.
    fn renew(&self, owner: OwnerId, lease: Span) -> Answer<'_, Result<Renewed, Refused>>;

    /// Stops being an owner; its runs wait for somebody else.
    fn leave(&self, owner: OwnerId) -> Answer<'_, ()>;

    /// Returns the owners that are there now, in the order in which they came: none whose lease is over, and none
    /// whose process is known to have ended. Nothing is taken from those that are gone: a claim does that.
    fn owners(&self) -> Answer<'_, Vec<OwnerId>>;

    /// Takes runs that nobody drives, or whose owner is gone. Each claim raises the fence of its run.
    /// For an owner that is gone itself, nothing is taken.
    fn claim(&self, claim: Claim) -> Answer<'_, Claimed>;

    /// Gives runs back as they are. A lease that is over changes nothing.
    fn release(&self, leases: Vec<Lease>) -> Answer<'_, ()>;

    /// Notes that a piece of work of a run begins to be executed here, so that another process can find out what was
    /// under way when this one died. It does not wait for the disk: a note outlives the process, and need not outlive
    /// the machine.
    fn note_execution(&self, key: i64, work: &str);

    /// Takes a note back: the piece of work is executed no more.
    fn forget_execution(&self, key: i64, work: &str);

    /// Returns the pieces of work of a run that were noted and not taken back, and takes those notes back. For the owner
    /// that has just claimed the run.
    fn take_executions(&self, key: i64) -> Vec<String>;

    /// Asks something of a run. It becomes due, and its owner is told at once. A run that nobody drives stays due
    /// until somebody has handled what was asked of it.
    fn send(&self, command: NewCommand) -> Answer<'_, Result<CommandId, Refused>>;

    /// Returns what was asked of the runs of an owner and not handled yet, in order.
    fn commands(&self, owner: OwnerId) -> Answer<'_, Vec<Command>>;

    /// Returns what was asked of one run and not handled yet, in order.
    fn commands_of<'a>(&'a self, run: &'a RunId) -> Answer<'a, Vec<Command>>;

    /// Waits until somebody asked something of a run of this owner, or made a run due that nobody drives.
    /// It may also come back without a reason, and does so once when the owner leaves or hears that its lease is
    /// over; as somebody who is no owner here, one waits for ever.
    fn alerted(&self, owner: OwnerId) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;

    /// Returns a shared state.
    fn shared<'a>(&'a self, kind: &'a str, name: &'a str) -> Answer<'a, Option<Shared>>;

    /// Returns the shared states of a kind with their names, in the order of those, page by page.
    fn all_shared<'a>(&'a self, kind: &'a str, after: Option<String>) -> Answer<'a, Page<(String, Shared)>>;

    /// Writes and removes shared states, all of them or none. Tells whether it happened: one that somebody has
    /// written since the version that is expected of it holds up all of them.
    ///
    /// They are written one after the other, so a state that is named twice has the next version by then.
    /// A state that was there gets the version after the expected one. A new one begins with 1 in a store of which
    /// none was ever removed, and otherwise behind all that were: whoever saw a state before it was removed cannot
    /// write over a later one. What a new one got is to be read.
    fn put_shared(&self, puts: Vec<PutShared>) -> Answer<'_, bool>;

    /// Returns what was put aside, oldest first, page by page; of one run or of all.
    fn dead_letters<'a>(
        &'a self,
        run: Option<&'a RunId>,
        after: Option<String>,
    ) -> Answer<'a, Page<DeadLetter>>;

    /// Takes something that was put aside away. Tells whether it was there.
    fn unbury(&self, id: DeadLetterId) -> Answer<'_, bool>;

    /// Returns what was found not to be what was written since the store was opened: one sentence for each run, row or
    /// index, and for commits that are missing. It is found where it is read, and by a check beside the work.
    fn damage(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A write to the log of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Append {
    /// The run.
    pub run: RunId,
    /// By what right.
    pub guard: Guard,
    /// How many events the log has before; something else is a conflict. Zero for a new run.
    pub expected: Version,
    /// The events; there may be none.
    pub events: Batch,
    /// How the run is then.
    pub status: Status,
    /// Why, where there is something to say.
    pub reason: Option<String>,
    /// When somebody has to look at it again; now or earlier for a run with work to do.
    pub wake_at: Option<Timestamp>,
    /// What was asked and is done with this.
    pub handled: Vec<CommandId>,
    /// The state as a whole after these events, in place of the last one.
    pub checkpoint: Option<String>,
    /// What is put aside with this and what is so no more, in this order.
    pub letters: Vec<Letter>,
    /// Whether nobody drives the run afterwards.
    pub release: bool,
}

/// By what right somebody writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Guard {
    /// The run does not exist yet.
    New(Box<NewRun>),
    /// The run was claimed or created, and nobody claimed it since.
    Held {
        /// The store's own number of the run.
        key: i64,
        /// What the claim gave.
        fence: Fence,
    },
}

/// What an owner learns when it becomes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Joined {
    /// Who it is.
    pub owner: OwnerId,
    /// The store's time.
    pub now: Timestamp,
}

/// What an owner learns when it renews.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renewed {
    /// The store's time.
    pub now: Timestamp,
    /// Whether there is no other owner, not even one that is gone and still has its runs: nobody can leave runs
    /// behind that this one would have to look for.
    pub is_alone: bool,
}

/// Which runs to take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// For whom.
    pub owner: OwnerId,
    /// Which.
    pub wanted: Wanted,
}

/// Which runs to take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// This one, whether it is due or not.
    Run(RunId),
    /// This one, which the owner has: the lease that it had is over. For an owner to whom the answer to a claim
    /// got lost.
    Again(RunId),
    /// Those that are due, those that are due longest first.
    Due {
        /// Of these workflows only, by name and version.
        workflows: Vec<(String, u32)>,
        /// At most so many.
        limit: u32,
    },
}

/// What a claim gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// The runs, each with what it was created with.
    pub runs: Vec<(Lease, RunRecord, String)>,
    /// When the next run that nobody drives becomes due; only for a claim of what is due.
    pub next_due: Option<Timestamp>,
}

/// Why one write was refused. Nothing of it happened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// There is no such run.
    #[error("there is no run `{run}`")]
    NotFound {
        /// Which.
        run: RunId,
    },
    /// A run of that id exists.
    #[error("run `{run}` exists")]
    Exists {
        /// Which.
        run: RunId,
    },
    /// Another process drives the run.
    #[error("run `{run}` is driven by another process")]
    Owned {
        /// Which.
        run: RunId,
        /// Who drives it.
        owner: OwnerId,
    },
    /// Somebody else claimed the run since.
    #[error("run `{run}` was taken over by another process")]
    Fenced {
        /// Which.
        run: RunId,
    },
    /// The log does not end where it should.
    #[error("the log of run `{run}` has {found} events, and {expected} were expected")]
    Conflict {
        /// Which.
        run: RunId,
        /// Where it should end.
        expected: Version,
        /// Where it ends.
        found: Version,
    },
    /// The record of the run is not what was written, so no write can be checked against it.
    #[error("the record of run `{run}` is damaged: it is not what was written")]
    Damaged {
        /// Which.
        run: RunId,
    },
    /// The owner did not renew in time.
    #[error("the lease is over: it was not renewed in time")]
    LeaseOver,
}

/// Why a store could not do its part. Nothing of the call happened.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It cannot now, and may again later.
    #[error("the store cannot be used now: {why}")]
    Unavailable {
        /// What stands in the way.
        why: Unavailable,
        /// What the backend said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// What is stored of one run is not what was written.
    #[error("the log of run `{run}` is damaged at event {version}: {what}")]
    Damaged {
        /// Which run.
        run: RunId,
        /// The first event that cannot be trusted.
        version: Version,
        /// What is wrong.
        what: String,
    },
    /// A row that is no event is not what was written.
    #[error("the store is damaged: {what}")]
    DamagedRow {
        /// Which row, as a sentence.
        what: String,
    },
    /// The store was written by a later release.
    #[error("the store has version {found}, this release knows {known}")]
    Newer {
        /// The version it has.
        found: u32,
        /// The newest one that this release knows.
        known: u32,
    },
    /// It can never be trusted again in this process: what was written may not be on the disk.
    #[error("the store failed while it wrote to the disk and must be opened again")]
    Broken,
    /// Its files were renamed, deleted or replaced while it was open: nothing is written any more, since the next
    /// process that opens it would not find it.
    #[error(
        "the files of the store were taken away while it was open: {what}; put them back or restore them, and open it again"
    )]
    Moved {
        /// Which file, and what happened to it.
        what: String,
    },
    /// It was closed.
    #[error("the store is closed")]
    Closed,
    /// Something else that the backend said.
    #[error("the store failed")]
    Other(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// What stands in the way of a store that may work again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// The disk is full.
    Full,
    /// Somebody else holds it.
    Busy,
    /// It may only be read.
    ReadOnly,
    /// The disk or the connection failed.
    Io,
}

impl std::fmt::Display for Unavailable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Full => "the disk is full",
            Self::Busy => "somebody else holds it",
            Self::ReadOnly => "it may only be read",
            Self::Io => "input or output failed",
        })
    }
}
