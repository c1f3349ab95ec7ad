//! Jobs as processes: the scheduler of a directory, the supervisor of one attempt, and what they need of the system.

pub mod attempt;
mod family;
mod identity;
pub mod launch;
pub mod leftover;
mod log;
mod mark;
pub mod operation;
mod scheduler;
mod streams;
pub mod wait;
mod worktree;

pub use identity::Identity;
pub use log::{LogFile, LogParts};
pub use mark::carried_token;
pub use scheduler::{
    Cancelled, ExternalFailure, GcReport, Options, Removes, Retried, Scheduler, SchedulerError, Serve, Ticked,
};
pub use worktree::{CleanError, is_peoples_worktree, remove_leftover as remove_leftover_worktree};
