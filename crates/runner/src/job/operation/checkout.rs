//! The working tree that an operation works in, and how it runs git there.

use std::error::Error;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use tidewheel_core::job::NodeOutcome;
use tidewheel_core::time::Timestamp;

use super::execution_root::execution_root;
use super::names::{Done, stopped};
use super::node::{Execute, Node, NodeEnd};
use crate::git::{Call, GitError, LockError, Repository, complaint};
use crate::job::attempt::{End, Ended};
use crate::job::worktree::is_peoples_worktree;
use crate::process::harmless;

/// What changes all the time and is nobody's work: it is never committed and never part of a patch, wherever it lies.
const NEVER: [&str; 4] = [
    ":(top,exclude,glob)**/.tidewheel/jobs/**",
    ":(top,exclude,glob)**/.tidewheel/sessions/**",
    ":(top,exclude,glob)**/.tidewheel/tmp/**",
    ":(top,exclude,glob)**/.tidewheel/tmp-worktrees/**",
];

/// A working tree.
#[derive(Debug)]
pub(super) struct Checkout {
    /// Its repository, seen from its top.
    pub(super) repository: Repository,
    /// Whether only jobs work in it.
    pub(super) is_of_jobs: bool,
}

impl Checkout {
    /// Returns the working tree that a node runs in.
    pub(super) fn of(node: &Node<'_>, operation: &str) -> Done<Self> {
        let directory =
            execution_root(node.root, &node.record.metadata).map_err(|error| Box::new(error.into()))?;
        Self::at(node, directory, operation)
    }

    /// Returns the working tree that a directory is in.
    pub(super) fn at(node: &Node<'_>, directory: PathBuf, operation: &str) -> Done<Self> {
        let fail = |error| failed(operation, &error);
        let top = Repository::asked_by(node.around.git(), &directory).top().map_err(fail)?;
        let trees = node.around.data().canonicalize().map(|data| data.join("tmp-worktrees"));
        let is_of_jobs = trees.is_ok_and(|trees| directory.starts_with(trees));
        if is_of_jobs && top != directory {
            // Git would work in the next repository above, which is the person's.
            return Err(stopped(format!("{operation} failed: {} is no worktree", directory.display())));
        }
        let repository = Repository::asked_by(node.around.git(), &top);
        clear_locks(node, &repository, operation)?;
        let name = top.file_name().unwrap_or_default();
        let is_of_jobs = is_of_jobs && name.to_str().is_some_and(|name| !is_peoples_worktree(name));
        Ok(Self { repository, is_of_jobs })
    }

    /// Checks that git can work here.
    pub(super) fn free_of_locks(&self, operation: &str) -> Done<()> {
        let held = |error: LockError| Box::new(NodeEnd::failed(format!("{operation} failed: {error}"), 1));
        self.repository.free_of_locks(self.is_of_jobs).map_err(held)
    }

    /// Returns the call that stages everything that is somebody's work.
    pub(super) fn stage_all() -> Call {
        Self::without_ours(Call::new(["add", "-A"]))
    }

    /// Takes out of the index whatever of this is in it because somebody staged it by hand.
    pub(super) fn unstage_ours(&self, operation: &str, execute: &mut Execute<'_>) -> Done<()> {
        let ours = || NEVER.map(|path| path.replace("exclude,", ""));
        let staged = Call::new(["diff", "--cached", "--name-only", "-z", "--"].map(str::to_owned));
        let staged = ours().into_iter().fold(staged, Call::arg);
        if !self.repository.answer(&staged).map_err(|error| failed(operation, &error))?.is_empty() {
            let reset = Call::new(["reset", "-q", "--"].map(str::to_owned));
            self.run(operation, &ours().into_iter().fold(reset, Call::arg), execute)?;
        }
        Ok(())
    }

    /// Limits a call to what is somebody's work.
    pub(super) fn without_ours(call: Call) -> Call {
        NEVER.iter().fold(call.arg("--").arg(":/"), |call, path| call.arg(*path))
    }

    /// Runs git here as a process of the job. Whatever is not asked of it to end with is the end of the node.
    pub(super) fn run(&self, operation: &str, call: &Call, execute: &mut Execute<'_>) -> Done<Ended> {
        let ended = self.try_run(operation, call, execute)?;
        if ended.end == End::Exited(0) {
            return Ok(ended);
        }
        let complaint = complaint(&ended.stderr.bytes).map(|line| harmless(&line));
        let mut end = NodeEnd::of(operation, &Ok(ended));
        if let Some(complaint) = complaint {
            end.summary = format!("{}: {complaint}", end.summary);
        }
        Err(Box::new(end))
    }

    /// Runs git here as a process of the job, and returns how it ended by itself.
    pub(super) fn try_run(&self, operation: &str, call: &Call, execute: &mut Execute<'_>) -> Done<Ended> {
        let result = execute(call.program(self.repository.directory()).into());
        match result {
            Ok(ended) if matches!(ended.end, End::Exited(_)) => Ok(ended),
            other => Err(Box::new(NodeEnd::of(operation, &other))),
        }
    }
}

/// Takes away what earlier attempts left locked when they were cut off, and says so.
fn clear_locks(node: &Node<'_>, repository: &Repository, operation: &str) -> Done<()> {
    let Some(started_at) = node.record.started_at.filter(|_| node.attempt > 1) else { return Ok(()) };
    let at = |time: Timestamp| SystemTime::UNIX_EPOCH + Duration::from_nanos(time.as_nanos());
    let fail = |error: LockError| Box::new(NodeEnd::failed(format!("{operation} failed: {error}"), 1));
    for lock in repository.clear_locks(at(node.record.created_at), at(started_at)).map_err(fail)? {
        node.around.complain(&format!("removed {}: the git that made it was killed", lock.display()));
    }
    Ok(())
}

/// Returns the end of a node that git refuses to help.
pub(super) fn failed(operation: &str, error: &GitError) -> Box<NodeEnd> {
    let mut text = format!("{operation} failed: {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    let end = NodeEnd::failed(text, 1);
    let stays = matches!(error, GitError::NoIdentity | GitError::Missing(_));
    Box::new(if stays { end.non_retryable() } else { end })
}

/// Tells whether a node came to its end because somebody or the time ended it.
pub(super) fn is_cut_off(end: &NodeEnd) -> bool {
    end.outcome == NodeOutcome::Cancelled
        || matches!(end.code, Some(tidewheel_core::policy::ErrorCode::Word(_)))
}
