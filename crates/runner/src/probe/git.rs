//! What is asked of git, with its own program: worktrees, hooks and settings are then as people know them.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A repository, or a directory that is none.
#[derive(Clone, Debug)]
pub struct Git {
    root: PathBuf,
}

/// Why git did not answer.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// There is no git on this machine.
    #[error("cannot run git")]
    Missing(#[source] io::Error),
    /// It ran and refused.
    #[error("git {command} failed: {message}")]
    Refused {
        /// What was asked.
        command: String,
        /// What it said.
        message: String,
    },
}

impl Git {
    /// Returns the repository at a directory. Nothing is looked at yet.
    #[must_use]
    pub fn at(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// Returns the commit of a local branch; `None` if there is no such branch.
    ///
    /// # Errors
    /// Git does not answer.
    pub fn head_of(&self, branch: &str) -> Result<Option<String>, GitError> {
        let reference = format!("refs/heads/{branch}^{{commit}}");
        let output = self.ask(&["rev-parse", "--verify", "--quiet", "--end-of-options", &reference])?;
        let oid = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        match output.status.code() {
            Some(0) if !oid.is_empty() => Ok(Some(oid)),
            Some(1) => Ok(None),
            // Where there is no repository there is no branch.
            Some(_) if String::from_utf8_lossy(&output.stderr).contains("not a git repository") => Ok(None),
            Some(_) | None => Err(refused("rev-parse", &output)),
        }
    }

    /// Returns the branch that is checked out; `None` if none is.
    ///
    /// # Errors
    /// Git does not answer.
    pub fn current_branch(&self) -> Result<Option<String>, GitError> {
        let output = self.ask(&["symbolic-ref", "--quiet", "--short", "HEAD"])?;
        match output.status.code() {
            Some(0) => Ok(Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())),
            Some(1) => Ok(None),
            Some(_) | None if is_no_repository(&output) => Ok(None),
            Some(_) | None => Err(refused("symbolic-ref", &output)),
        }
    }

    /// Tells whether a file is in the tree of a local branch.
    ///
    /// # Errors
    /// Git does not answer.
    pub fn has_file(&self, branch: &str, path: &str) -> Result<bool, GitError> {
        if self.head_of(branch)?.is_none() {
            return Ok(false);
        }
        let tree = format!("refs/heads/{branch}");
        let output = self.ask(&["ls-tree", "-z", "--full-tree", "--name-only", &tree, "--", path])?;
        if output.status.success() { Ok(!output.stdout.is_empty()) } else { Err(refused("ls-tree", &output)) }
    }

    /// Tells whether nothing is changed or untracked in the working tree, but for what this prefix list names.
    ///
    /// # Errors
    /// Git does not answer.
    pub fn is_clean_beside(&self, ignored: &[&str]) -> Result<bool, GitError> {
        let output =
            self.ask(&["status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames"])?;
        if !output.status.success() {
            return Err(refused("status", &output));
        }
        // Git names files from the top of the repository, which may lie above.
        let below = self.ask(&["rev-parse", "--show-prefix"])?;
        let below = below.stdout.trim_ascii_end();
        let is_ignored = |path: &[u8]| {
            let path = path.strip_prefix(below).unwrap_or(path);
            ignored.iter().any(|prefix| {
                path.strip_prefix(prefix.as_bytes())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
            })
        };
        // Each entry is two letters, a blank and the path; without renames there is one path each.
        let mut entries = output.stdout.split(|byte| *byte == 0).filter(|entry| entry.len() > 3);
        Ok(entries.all(|entry| is_ignored(&entry[3..])))
    }

    /// Tells whether a merge or the picking of a commit is in progress. What is no repository has none.
    #[must_use]
    pub fn is_merging(&self) -> bool {
        ["MERGE_HEAD", "CHERRY_PICK_HEAD"].into_iter().any(|name| {
            let Ok(output) = self.ask(&["rev-parse", "--git-path", name]) else { return false };
            let path = OsStr::from_bytes(output.stdout.trim_ascii_end());
            output.status.success() && self.root.join(path).exists()
        })
    }

    /// Removes a worktree, with whatever is changed in it, and what is known of it.
    ///
    /// # Errors
    /// Git does not answer, or it is still there.
    pub fn remove_worktree(&self, path: &Path) -> Result<(), GitError> {
        let path = path.as_os_str();
        let mut output = self.ask(&[OsStr::new("worktree"), OsStr::new("remove"), path])?;
        if !output.status.success() {
            output =
                self.ask(&[OsStr::new("worktree"), OsStr::new("remove"), OsStr::new("--force"), path])?;
        }
        self.ask(&["worktree", "prune", "--expire", "now"])?;
        if output.status.success() { Ok(()) } else { Err(refused("worktree remove", &output)) }
    }

    /// Tells whether a directory is one of the worktrees of the repository. What is no repository has none.
    ///
    /// # Errors
    /// There is no git.
    pub fn has_worktree(&self, path: &Path) -> Result<bool, GitError> {
        let output = self.ask(&["worktree", "list", "--porcelain", "-z"])?;
        let mut lines = output.stdout.split(|byte| *byte == 0);
        Ok(lines.any(|line| line.strip_prefix(b"worktree ") == Some(path.as_os_str().as_bytes())))
    }

    /// Runs git with an environment in which nothing points it elsewhere and nothing asks a person.
    fn ask(&self, arguments: &[impl AsRef<OsStr>]) -> Result<Output, GitError> {
        let mut command = Command::new("git");
        for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY"] {
            command.env_remove(name);
        }
        command
            .args(["--no-optional-locks", "-C"])
            .arg(&self.root)
            .args(arguments)
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .output()
            .map_err(GitError::Missing)
    }
}

fn is_no_repository(output: &Output) -> bool {
    String::from_utf8_lossy(&output.stderr).contains("not a git repository")
}

fn refused(command: &str, output: &Output) -> GitError {
    let message = String::from_utf8_lossy(&output.stderr);
    let message = message.lines().next().unwrap_or("it said nothing").trim_start_matches("fatal: ");
    GitError::Refused { command: command.to_owned(), message: message.to_owned() }
}
