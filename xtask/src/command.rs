//! What a command is, the list of them all, and how one can fail; must not run anything itself.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::dist::DistError;
use crate::step::StepError;
use crate::{bench, ci, crash, dist, docs, fmt as format, help, simulate, test};

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
pub(crate) const ALL: [&Command; 9] = [
    &ci::COMMAND,
    &test::COMMAND,
    &format::COMMAND,
    &docs::COMMAND,
    &bench::COMMAND,
    &crash::COMMAND,
    &simulate::COMMAND,
    &dist::COMMAND,
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
    /// Something for packages could not be written.
    Dist(DistError),
    /// A file or a folder could not be read or written.
    File {
        /// Which one.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A page should be written from figures that are not there.
    NothingMeasured,
    /// The page was written, and these benchmarks are missing in it.
    Missing(Vec<String>),
    /// These suites did not pass.
    Crashed(Vec<String>),
}

impl Failure {
    /// Returns 2 if the command line was wrong and 1 if the work failed.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::NoCommand
            | Self::UnknownCommand(_)
            | Self::UnexpectedArgument { .. }
            | Self::NotACount(_) => ExitCode::from(2),
            Self::Step(_)
            | Self::Dist(_)
            | Self::File { .. }
            | Self::NothingMeasured
            | Self::Missing(_)
            | Self::Crashed(_) => ExitCode::from(1),
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
            Self::Dist(error) => error.fmt(out),
            Self::File { path, source } => write!(out, "'{}': {source}", path.display()),
            Self::NothingMeasured => {
                out.write_str("nothing is measured yet\nto measure: cargo xtask bench report")
            }
            Self::Missing(names) => {
                write!(out, "the page was written, but did not succeed: {}", names.join("; "))
            }
            Self::Crashed(suites) => write!(out, "did not pass: {}", suites.join("; ")),
        }
    }
}

impl From<DistError> for Failure {
    fn from(error: DistError) -> Self {
        Self::Dist(error)
    }
}

impl From<StepError> for Failure {
    fn from(error: StepError) -> Self {
        Self::Step(error)
    }
}
