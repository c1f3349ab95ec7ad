//! Asks things of runs through the store, from a process that drives none of them: an operator's tool, a page.
//! What is asked becomes a row; whoever drives the run notices it at once, and otherwise its next owner does.

mod ask;
mod error;
mod sent;

pub use ask::Control;
pub use error::AskError;
pub use sent::Sent;
