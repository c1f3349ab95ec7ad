//! Processes: run, read, ended with all that they started; and the steps that run them.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod adopted;
mod command;
mod faults;
mod given_up;
mod group;
mod world;
