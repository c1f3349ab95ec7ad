//! Work by itself: a piece that was handed out, how it is run, and what came of it.

mod executed;
mod hooks;
mod runnable;
mod start;
mod wait;

pub use executed::{Executed, Outcome, Ticket};
pub(crate) use runnable::{Input, runnable_id};
pub use runnable::{Runnable, RunnableRef};
pub(crate) use wait::wait_for;
