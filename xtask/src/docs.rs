//! `cargo xtask docs`: writes the pages of the documentation that are made from the binary; what they say is said by
//! the tests that compare them.

use std::ffi::OsString;

use crate::command::{Command, Failure};
use crate::step::Step;

/// Writes docs/reference and the index of the errors.
pub(crate) const COMMAND: Command = Command {
    name: "docs",
    arguments: "",
    about: "Writes the references of docs/ anew: commands, templates, configuration, policies, errors",
    run,
};

fn run(arguments: &[OsString]) -> Result<(), Failure> {
    COMMAND.takes_no_arguments(arguments)?;
    Step::cargo("docs", ["test", "-p", "tidewheel-cli", "--test", "cli", "--", "reference::"])
        .variable("TIDEWHEEL_WRITE_DOCS", "1")
        .run()?;
    Ok(())
}
