//! The scheduler of jobs: every change of what is scheduled is one turn that ends with a pass over all gates.
//!
//! It decides nothing: the rules are core's, the files the store's, the processes its neighbours'. Any number of
//! processes may have one on the same directory.

mod approve;
mod cancel;
mod enqueue;
mod error;
mod external;
mod finish;
mod gc;
mod lost;
mod notes;
mod open;
mod options;
mod pass;
mod retry;
mod serve;
mod supervise;
mod ticked;

pub use cancel::Cancelled;
pub use error::SchedulerError;
pub use external::ExternalFailure;
pub use gc::{GcReport, Removes};
pub use open::Scheduler;
pub use options::Options;
pub use retry::Retried;
pub use serve::Serve;
pub use ticked::Ticked;
