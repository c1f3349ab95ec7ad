//! The durable runner: runs that survive the end of the process. What must survive is stored before it is acted
//! upon: an input before it is acknowledged, a dispatch before work starts, a result before what it wakes.

mod active;
mod asking;
mod commit;
mod control;
mod core;
mod crash;
mod definition;
mod elsewhere;
mod error;
mod handle;
mod held;
mod hooks;
mod keeper;
mod keys;
mod load;
mod options;
mod outside;
mod registry;
mod service;
mod start;
mod store_clock;

pub use control::{AskError, Control, Sent};
pub use elsewhere::CommandOutcome;
pub use error::{CommandError, InputError, ResultError, StartError};
pub use handle::RunHandle;
pub use hooks::{Hooks, RunEvent};
pub use options::{Checkpoints, Executor, RunnerOptions, StartOptions};
pub use service::Runner;
