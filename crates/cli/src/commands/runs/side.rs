//! Which runs are meant: those of a program, in its store, or those of a repository, in its data directory.

use std::path::PathBuf;

use clap::Args;

use crate::error::{Code, CommandError};
use crate::jobs::DirArguments;
use crate::store::StoreArguments;

/// Where the runs are
#[derive(Debug, Args)]
pub(super) struct EitherArguments {
    /// The SQLite file that a program keeps its runs in, instead of the runs of `.tidewheel/`
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
    /// The directory with `.tidewheel/`, instead of the one found from here
    #[arg(long, value_name = "DIR", conflicts_with = "store")]
    dir: Option<PathBuf>,
}

/// Whose runs they are.
pub(super) enum Side {
    /// Those of a program.
    Program(StoreArguments),
    /// Those of a repository.
    Repository(DirArguments),
}

impl EitherArguments {
    /// Returns whose runs are meant.
    pub(super) fn side(&self) -> Side {
        match &self.store {
            Some(store) => Side::Program(StoreArguments { store: store.clone() }),
            None => Side::Repository(DirArguments { dir: self.dir.clone() }),
        }
    }
}

/// Returns the error of something that the runs of a repository do not have.
pub(super) fn of_programs(what: &str, instead: &str) -> CommandError {
    let message = format!("{what} is for the runs of a program: --store FILE names their store.");
    CommandError::new(Code::OtherSide, message).hint(instead)
}

/// Returns the error of something that the runs of a program do not have.
pub(super) fn of_repositories(what: &str, instead: &str) -> CommandError {
    let message = format!("{what} is for the runs of a repository, without --store.");
    CommandError::new(Code::OtherSide, message).hint(instead)
}
