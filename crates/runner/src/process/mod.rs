//! Processes of the system: a program in a group of its own that is ended as a whole, and a step that runs one.

mod capture;
mod command;
mod failure;
mod program;
mod run;
mod spawn;
mod system;

pub use capture::{Capture, Captured};
pub use command::{Command, command};
pub(crate) use failure::{harmless, not_started, said};
pub use program::Program;
pub use run::{Options, Outcome, ProcessError, StartError, Started, Stopped, start};
pub use spawn::{End, Group, Signal, Spawn, Spawned, Waiting};
pub use system::System;
