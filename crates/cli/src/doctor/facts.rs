//! What was seen, as data: what the judgement needs of the world, and nothing that it means.

use std::io;
use std::path::PathBuf;

use tidewheel_core::time::Timestamp;
use tidewheel_store::jobs::{Checkup, Due, Trouble};
use tidewheel_store::sqlite::Examined;

use crate::jobs::{How, Place};

/// All that was seen.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) now: Timestamp,
    pub(crate) place: Place,
    pub(crate) how: How,
    pub(crate) data: Kind,
    /// What is at the place of the jobs.
    pub(crate) jobs_folder: Kind,
    /// What is at the place of the manifests.
    pub(crate) runs_folder: Kind,
    /// Whether nobody lets us look at what is in the data directory.
    pub(crate) is_closed: bool,
    /// What could not be done in the directories that are written to.
    pub(crate) refusals: Vec<Refusal>,
    pub(crate) space: Option<Space>,
    /// By how many milliseconds a new file is older (or, below zero, younger) than the clock says.
    pub(crate) skew: Option<i64>,
    pub(crate) jobs: Result<Checkup, Trouble>,
    pub(crate) due: Due,
    /// What is among the worktrees of jobs, or known to git as such.
    pub(crate) trees: Vec<Tree>,
    pub(crate) sentinels: Vec<Sentinel>,
    pub(crate) git: Git,
    /// What is wrong with the configuration; `None` where there is none.
    pub(crate) config: Option<Vec<Complaint>>,
    /// How many templates there are, and what is wrong with them.
    pub(crate) templates: (usize, Vec<Complaint>),
    /// Aliases whose files are not there.
    pub(crate) lost_aliases: Vec<(String, String)>,
    /// The agents with their programs, and whether these were found.
    pub(crate) agents: Vec<(String, String, bool)>,
    pub(crate) store: Option<Store>,
}

/// What is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Missing,
    Directory,
    Other,
}

/// Something that could not be done.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) path: PathBuf,
    /// What was tried: `read`, `written`, `synced`.
    pub(crate) verb: &'static str,
    pub(crate) kind: io::ErrorKind,
    pub(crate) why: String,
}

/// How much room there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Space {
    pub(crate) free_bytes: u64,
    /// How many files more; `None` where the file system does not count them.
    pub(crate) free_files: Option<u64>,
}

/// A directory among the worktrees of jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tree {
    pub(crate) name: String,
    pub(crate) state: TreeState,
    /// Whether a job owns it, or may own it.
    pub(crate) is_owned: bool,
}

/// How such a directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TreeState {
    /// Git knows it, and nothing in it is lost if it goes: all is committed to a branch.
    Clean,
    /// Git knows it, and something in it is on no branch.
    Changed,
    /// Whoever made it was cut off.
    HalfMade,
    /// Git knows it, and it is not there any more.
    Gone,
    /// Git does not know it, and it is empty.
    Empty,
    /// Git does not know it, or it is no directory.
    Unknown,
}

/// A merge that stopped at a conflict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sentinel {
    pub(crate) file: String,
    /// The job that it names, or why it cannot be read.
    pub(crate) job: Result<String, String>,
}

/// What git says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Git {
    /// It cannot be run, and why.
    Missing(String),
    /// It answers.
    Found {
        /// What it says of its version.
        version: String,
        has_repository: bool,
        has_identity: bool,
    },
}

/// What is wrong in a file that somebody wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Complaint {
    pub(crate) file: String,
    pub(crate) line: Option<usize>,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

/// A library store.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) name: String,
    /// What was found, or why nothing could be, with what to do.
    pub(crate) examined: Result<Examined, (String, Option<String>)>,
}

#[cfg(test)]
impl Facts {
    /// Returns the facts of a data directory in which all is as it should be.
    pub(crate) fn in_order() -> Self {
        Self {
            now: Timestamp::from_millis(1_000_000),
            place: Place { root: "/r".into(), data: "/r/.tidewheel".into() },
            how: How::Nearest,
            data: Kind::Directory,
            jobs_folder: Kind::Directory,
            runs_folder: Kind::Directory,
            is_closed: false,
            refusals: Vec::new(),
            space: Some(Space { free_bytes: 1 << 40, free_files: None }),
            skew: Some(0),
            jobs: Ok(Checkup::default()),
            due: Due::default(),
            trees: Vec::new(),
            sentinels: Vec::new(),
            git: Git::Found {
                version: "git version 2.47.3".to_owned(),
                has_repository: true,
                has_identity: true,
            },
            config: Some(Vec::new()),
            templates: (1, Vec::new()),
            lost_aliases: Vec::new(),
            agents: Vec::new(),
            store: None,
        }
    }
}
