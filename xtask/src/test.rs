//! `cargo xtask test`: the tests and doc tests of all crates; chooses nothing, the arguments go to cargo.

use std::ffi::OsString;

use crate::command::{Command, Failure};
use crate::step::Step;

/// Runs the tests of the whole workspace.
pub(crate) const COMMAND: Command = Command {
    name: "test",
    arguments: "[ARGS…]",
    about: "Runs all tests and doc tests; ARGS go to cargo test",
    run,
};

fn run(arguments: &[OsString]) -> Result<(), Failure> {
    Step::cargo("tests", ["test", "--workspace"]).with(arguments).run()?;
    Ok(())
}
