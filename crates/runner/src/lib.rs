//! Makes it happen: drives runs on an async runtime, under policies. It decides nothing that core can decide.

mod bounds;
pub mod driver;
mod ear;
pub mod git;
mod in_memory;
pub mod job;
mod limits;
mod pool;
pub mod probe;
pub mod process;
mod procfs;
pub mod react;
pub mod runner;
mod supervise;
pub mod telemetry;
mod timers;
mod words;

pub use driver::{DriveOptions, drive, execute_with_policies};
pub use process::{Command, command};
pub use react::{Options, SyncWork, react_until_satisfied, run_until_satisfied};
pub use runner::{
    AskError, Checkpoints, CommandError, CommandOutcome, Control, Executor, Hooks, InputError, ResultError,
    RunEvent, RunHandle, Runner, RunnerOptions, Sent, StartError, StartOptions,
};
pub(crate) use words::words;
