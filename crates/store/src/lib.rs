//! Keeps what happened: the event logs of runs, who drives them, when they are due and what people asked of
//! them. It knows nothing of policies or of how work is run.

pub mod batch;
pub mod clock;
pub mod jobs;
pub mod memory;
mod page;
pub mod record;
pub mod sqlite;
pub mod store;
mod time;
mod watch;

pub use batch::{Batch, BatchError};
pub use clock::{Clock, RealClock, Sleep};
pub use memory::Memory;
pub use record::{
    Command, CommandId, DeadLetter, DeadLetterId, Fence, Filter, Lease, Letter, NewCommand, NewDeadLetter,
    NewRun, OwnerId, Page, PutShared, RunRecord, Shared, Status, Stored, Version,
};
pub use sqlite::Sqlite;
pub use store::{
    Answer, Append, Claim, Claimed, Guard, Joined, Refused, Renewed, Store, StoreError, Unavailable, Wanted,
};
