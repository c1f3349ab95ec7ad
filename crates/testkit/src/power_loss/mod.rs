//! Power failures: the calls that a real process makes are recorded by `strace`, and a file system in memory keeps,
//! drops, tears and reorders what was not synced. Nothing here knows what the files mean.

mod disk;
mod trace;

pub use disk::{DiskModel, DiskOp};
pub use trace::{TRACED_CALLS, parse_trace, strace};
