//! `cargo xtask help`: the list of commands, taken from the commands; must not repeat what they say.
#![expect(clippy::print_stdout, reason = "the list was asked for, so it is the output")]

use std::ffi::OsString;
use std::fmt;

use crate::command::{ALL, Command, Failure};

/// Lists the commands.
pub(crate) const COMMAND: Command = Command { name: "help", arguments: "", about: "Shows this list", run };

fn run(arguments: &[OsString]) -> Result<(), Failure> {
    COMMAND.takes_no_arguments(arguments)?;
    print!("{Commands}");
    Ok(())
}

/// The list of commands, as a person reads it.
pub(crate) struct Commands;

impl fmt::Display for Commands {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "Usage: cargo xtask <command>\n\nCommands:")?;
        for command in ALL {
            let usage = format!("{} {}", command.name, command.arguments);
            writeln!(out, "  {usage:<22} {}", command.about)?;
        }
        Ok(())
    }
}
