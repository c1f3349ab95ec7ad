//! Makes it happen: drives runs on an async runtime, under policies. It decides nothing that core can decide.

pub mod driver;
mod in_memory;
mod pool;
pub mod react;
pub mod runner;
mod timers;
mod words;

pub use driver::{DriveOptions, drive, execute_with_policies};
pub use react::{Options, SyncWork, react_until_satisfied, run_until_satisfied};
pub use runner::{
    Checkpoints, CommandError, Executor, Hooks, InputError, ResultError, RunEvent, RunHandle, Runner,
    RunnerOptions, StartError, StartOptions,
};
pub(crate) use words::words;
