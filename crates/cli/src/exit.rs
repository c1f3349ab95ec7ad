//! The exit codes of the binary, all of them. They are documented and stable: scripts depend on them.

use std::process::ExitCode;

/// How the command ended, as the shell sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The command did what it was asked; a refusal of the decision engine is an answer, too.
    Succeeded = 0,
    /// What was looked at is not in order, or the command could not do its part.
    Failed = 1,
    /// The command line is wrong, or `decide` met lines that are not JSON.
    Usage = 2,
    /// Nothing failed, and something can never run: what it needs will not come, or a person rejected it.
    Blocked = 10,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
