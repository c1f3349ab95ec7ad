//! `cargo xtask fmt`: formats all crates; must not change anything but layout.

use std::ffi::OsString;

use crate::command::{Command, Failure};
use crate::step::Step;

/// Formats every source file.
pub(crate) const COMMAND: Command =
    Command { name: "fmt", arguments: "", about: "Formats every source file", run };

fn run(arguments: &[OsString]) -> Result<(), Failure> {
    COMMAND.takes_no_arguments(arguments)?;
    Step::cargo("format", ["fmt", "--all"]).run()?;
    Ok(())
}
