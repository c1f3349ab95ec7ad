//! What is to be run: a program, its arguments and its surroundings. No shell reads it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

/// A program with its arguments, its environment and its directory.
#[derive(Clone, Default)]
pub struct Program {
    argv: Vec<OsString>,
    env: BTreeMap<OsString, OsString>,
    unset: BTreeSet<OsString>,
    clears_env: bool,
    directory: Option<PathBuf>,
}

impl Program {
    /// Returns a program: its name or path first, then its arguments.
    pub fn new<A: Into<OsString>>(argv: impl IntoIterator<Item = A>) -> Self {
        Self { argv: argv.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// Gives it a variable of the environment.
    #[must_use]
    pub fn env(mut self, key: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.insert(key.into(), value.into());
        self
    }

    /// Keeps one variable that this process has in its environment from it.
    #[must_use]
    pub fn env_remove(mut self, key: impl Into<OsString>) -> Self {
        self.unset.insert(key.into());
        self
    }

    /// Keeps what this process has in its environment from it. What is given with [`Program::env`] stays.
    #[must_use]
    pub const fn env_clear(mut self) -> Self {
        self.clears_env = true;
        self
    }

    /// Says in which directory it runs; without it, in that of this process. The path of a program that has a
    /// slash and does not begin with one counts from there.
    #[must_use]
    pub fn current_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Returns the name or path of the program; `None` if nobody gave one.
    #[must_use]
    pub fn name(&self) -> Option<&OsStr> {
        self.argv.first().map(OsString::as_os_str)
    }

    /// Returns the arguments, without the program.
    pub fn args(&self) -> impl Iterator<Item = &OsStr> {
        self.argv.iter().skip(1).map(OsString::as_os_str)
    }

    /// Returns the variables that were given, sorted by name.
    pub fn vars(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.env.iter().map(|(key, value)| (key.as_os_str(), value.as_os_str()))
    }

    /// Returns the names of the variables that are kept from it, sorted.
    pub fn unset(&self) -> impl Iterator<Item = &OsStr> {
        self.unset.iter().map(OsString::as_os_str)
    }

    /// Tells whether it sees nothing of the environment of this process.
    #[must_use]
    pub const fn clears_env(&self) -> bool {
        self.clears_env
    }

    /// Returns the directory in which it runs, if one was given.
    #[must_use]
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }
}

/// Values of the environment are often secrets, so that only their names are shown.
impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program")
            .field("argv", &self.argv)
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field("clears_env", &self.clears_env)
            .field("directory", &self.directory)
            .finish()
    }
}
