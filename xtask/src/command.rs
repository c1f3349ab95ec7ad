//! What a command is, the list of them all, and how one can fail; must not run anything itself.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::process::ExitCode;

use crate::step::StepError;
use crate::{bench, ci, crash, fmt as format, help, simulate, test};

/// One chore: what a person types, what it is for and the function that does it.
pub(crate) struct Command {
    /// The word after `cargo xtask`.
    pub(crate) name: &'static str,
    /// The arguments as shown in the list of commands; empty if it takes none.
    pub(crate) arguments: &'static str,
    /// One line for the list of commands.
    pub(crate) about: &'static str,
    /// Does the chore.
    pub(crate) run: fn(&[OsString]) -> Result<(), Failure>,
}

/// Every command, in the order in which a developer meets them.
pub(crate) const ALL: [&Command; 7] = [
    &ci::COMMAND,
    &test::COMMAND,
    &format::COMMAND,
    &bench::COMMAND,
    &crash::COMMAND,
    &simulate::COMMAND,
    &help::COMMAND,
];

impl Command {
    /// Returns the command that a person means by `name`.
    pub(crate) fn named(name: &OsStr) -> Option<&'static Self> {
        if name == "--help" || name == "-h" {
            return Some(&help::COMMAND);
        }
        ALL.into_iter().find(|command| name == command.name)
    }

    /// Refuses arguments, for the commands that take none.
    ///
    /// An argument without an effect would let a person believe that it had one.
    pub(crate) fn takes_no_arguments(&self, arguments: &[OsString]) -> Result<(), Failure> {
        match arguments.first() {
            None => Ok(()),
            Some(argument) => {
                Err(Failure::UnexpectedArgument { command: self.name, argument: argument.clone() })
            }
        }
    }
}

/// Why a command did not do its work.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Nothing was asked for.
    NoCommand,
    /// There is no command of that name.
    UnknownCommand(OsString),
    /// The command cannot use this argument.
    UnexpectedArgument {
        /// The command that was asked for.
        command: &'static str,
        /// The argument that it has no use for.
        argument: OsString,
    },
    /// The argument should be a number of at least one.
    NotACount(OsString),
    /// A step was run and did not succeed.
    Step(StepError),
}

impl Failure {
    /// Returns 2 if the command line was wrong and 1 if the work failed.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::NoCommand
            | Self::UnknownCommand(_)
            | Self::UnexpectedArgument { .. }
            | Self::NotACount(_) => ExitCode::from(2),
            Self::Step(_) => ExitCode::from(1),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCommand => write!(out, "a command is missing\n\n{}", help::Commands),
            Self::UnknownCommand(name) => {
                write!(out, "there is no command '{}'\n\n{}", name.display(), help::Commands)
            }
            Self::UnexpectedArgument { command, argument } => {
                write!(out, "'{command}' takes no argument '{}'", argument.display())
            }
            Self::NotACount(argument) => {
                write!(out, "'{}' is not a number of at least 1", argument.display())
            }
            Self::Step(error) => error.fmt(out),
        }
    }
}

impl From<StepError> for Failure {
    fn from(error: StepError) -> Self {
        Self::Step(error)
    }
}
