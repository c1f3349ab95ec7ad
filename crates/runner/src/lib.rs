//! Makes it happen: drives runs on an async runtime. It decides nothing that core can decide.

pub mod react;
mod workers;

pub use react::{Options, SyncWork, react_until_satisfied, run_until_satisfied};
