//! The working trees of a repository: which there are, how one is made, and how one is removed for good.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use super::call::Call;
use super::repository::{GitError, Repository, is_no_repository, refused};

/// One working tree of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Worktree {
    /// Where it is, without links.
    pub path: PathBuf,
    /// The local branch that is checked out, if one is.
    pub branch: Option<String>,
    /// Why it is kept from being removed: by a person, or while it is made.
    pub lock: Option<String>,
    /// Whether it is only known, and not there any more.
    pub is_gone: bool,
}

/// Why a working tree is locked that we make, or that git makes.
const BEING_MADE: [&str; 2] = ["tidewheel is making it", "initializing"];

impl Worktree {
    /// Tells whether whoever made it was cut off before it was whole.
    #[must_use]
    pub fn is_half_made(&self) -> bool {
        self.lock.as_deref().is_some_and(|reason| BEING_MADE.contains(&reason))
    }
}

impl Repository {
    /// Returns the working trees, the main one first. What is no repository has none.
    ///
    /// # Errors
    /// There is no git, or it cannot list them.
    pub fn worktrees(&self) -> Result<Vec<Worktree>, GitError> {
        let call = Call::new(["worktree", "list", "--porcelain", "-z"]);
        let output = self.ask(&call)?;
        if !output.status.success() && !is_no_repository(&output) {
            return Err(refused(&call, &output));
        }
        let mut found: Vec<Worktree> = Vec::new();
        for line in output.stdout.split(|byte| *byte == 0) {
            if let Some(path) = line.strip_prefix(b"worktree ") {
                let path = PathBuf::from(OsString::from_vec(path.to_vec()));
                found.push(Worktree { path, ..Worktree::default() });
                continue;
            }
            let Some(last) = found.last_mut() else { continue };
            if let Some(branch) = line.strip_prefix(b"branch refs/heads/") {
                last.branch = Some(String::from_utf8_lossy(branch).into_owned());
            } else if let Some(reason) = line.strip_prefix(b"locked") {
                last.lock = Some(String::from_utf8_lossy(reason).trim().to_owned());
            } else if line.starts_with(b"prunable") {
                last.is_gone = true;
            }
        }
        Ok(found)
    }

    /// Returns the working tree that has a local branch checked out.
    ///
    /// # Errors
    /// There is no git.
    pub fn worktree_with(&self, branch: &str) -> Result<Option<Worktree>, GitError> {
        let found = self.worktrees()?.into_iter().find(|tree| tree.branch.as_deref() == Some(branch));
        Ok(found.filter(|tree| !tree.is_gone))
    }

    /// Tells whether a directory is one of the working trees of the repository. What is no repository has none.
    ///
    /// # Errors
    /// There is no git.
    pub fn has_worktree(&self, path: &Path) -> Result<bool, GitError> {
        Ok(self.worktrees()?.iter().any(|tree| tree.path == path))
    }

    /// Removes a working tree, with whatever is changed in it, and what is known of it. It is gone, and nobody knows
    /// of it any more, when this succeeds.
    ///
    /// # Errors
    /// Git does not answer, or it is still there.
    pub fn remove_worktree(&self, path: &Path) -> Result<(), RemoveError> {
        let remove = |force: &[&str]| {
            let call = Call::new(["worktree", "remove"].iter().chain(force).map(OsStr::new));
            self.answer(&call.arg("--").arg(path))
        };
        let fail = |source| RemoveError::Io { path: path.to_owned(), source };
        let mut refusal = None;
        let known = self.worktrees()?.into_iter().find(|tree| tree.path == path);
        if known.is_none()
            && fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
        {
            // To prune what is not there might take away what another job is just making.
            return Ok(());
        }
        if let Some(tree) = known {
            // One that was cut off while it was made is locked, and wants to be forced twice. The lock of a person holds.
            let twice = if tree.is_half_made() { &["--force", "--force"][..] } else { &["--force"] };
            refusal = remove(&[]).or_else(|_| remove(twice)).err();
            let is_ours = tree.lock.is_none() || tree.is_half_made();
            if refusal.is_some() && is_ours && path.is_dir() {
                // Git does not recognise it any more: one may be cut off while its very first file is written.
                fs::remove_dir_all(path).map_err(fail)?;
            }
        }
        let prune = ["worktree", "prune", "--expire", "now"];
        self.ask(&Call::new(prune))?;
        // What git does not know, or has forgotten, is a directory like any other.
        match fs::symlink_metadata(path) {
            Ok(_) if !self.has_worktree(path)? => fs::remove_dir_all(path).map_err(fail)?,
            Ok(_) => return Err(refusal.map_or_else(|| RemoveError::Left(path.to_owned()), RemoveError::Git)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // The directory may be gone while git still locks what it knows of it.
                if self.has_worktree(path)? {
                    self.ask(&Call::new(["worktree", "unlock", "--"]).arg(path))?;
                    self.ask(&Call::new(prune))?;
                    if self.has_worktree(path)? {
                        return Err(RemoveError::Left(path.to_owned()));
                    }
                }
            }
            Err(error) => return Err(fail(error)),
        }
        Ok(())
    }

    /// Takes away what git has noted of working trees that we were making when git was killed, and that no git can read
    /// any more. Returns whether there was one. Other working trees, and those that a person makes, stay.
    ///
    /// # Errors
    /// There is no git.
    pub(super) fn forget_cut_off_worktrees(&self) -> Result<bool, GitError> {
        let call = Call::new(["rev-parse", "--path-format=absolute", "--git-common-dir"]);
        let output = self.git.ask(&self.at, &call).map_err(GitError::Missing)?;
        let noted = Path::new(OsStr::from_bytes(output.stdout.trim_ascii_end())).join("worktrees");
        let is_cut_off = |note: &Path| {
            let says = |name: &str| fs::read_to_string(note.join(name)).map(|text| text.trim().to_owned());
            says("commondir").is_ok_and(|text| text.is_empty())
                && says("locked").is_ok_and(|text| text == BEING_MADE[0])
        };
        let notes = fs::read_dir(noted).into_iter().flatten().flatten().map(|entry| entry.path());
        // What cannot be taken away makes git complain again, and that is what the caller is given.
        Ok(notes.filter(|note| is_cut_off(note)).filter(|note| fs::remove_dir_all(note).is_ok()).count() > 0)
    }

    /// Returns the calls that make a working tree with a local branch that is there. Until the second one has succeeded,
    /// it is known to be half made.
    #[must_use]
    pub fn add_worktree(path: &Path, branch: &str) -> [Call; 2] {
        let add = Call::new(["worktree", "add", "--lock", "--reason", BEING_MADE[0], "--"]);
        [add.arg(path).arg(branch), Call::new(["worktree", "unlock", "--"]).arg(path)]
    }
}

/// Why a working tree is still there.
#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    /// Git does not answer, or refuses.
    #[error(transparent)]
    Git(#[from] GitError),
    /// It cannot be removed.
    #[error("cannot remove {}: {source}", path.display())]
    Io {
        /// Where it is.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Nobody says why.
    #[error("worktree {} is still there", .0.display())]
    Left(PathBuf),
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::{ExitStatus, Output};
    use std::sync::Arc;

    use super::*;
    use crate::git::Git;

    /// A git that says the same to everything.
    #[derive(Debug)]
    struct Says(&'static [u8]);

    impl Git for Says {
        fn ask(&self, _: &Path, _: &Call) -> io::Result<Output> {
            Ok(Output { status: ExitStatus::from_raw(0), stdout: self.0.to_vec(), stderr: Vec::new() })
        }
    }

    #[test]
    fn worktrees_are_read_with_all_that_their_names_may_have() {
        let said =
            b"worktree /r\0HEAD 1\0branch refs/heads/main\0\0worktree /r/a b\nworktree c\0HEAD 2\0detached\0\
            locked initializing\0\0worktree /gone\0HEAD 3\0branch refs/heads/x/y\0prunable gitdir file\0\0";
        let git = Repository::asked_by(Arc::new(Says(said)), Path::new("/r"));
        let tree = |path: &str| Worktree { path: path.into(), ..Worktree::default() };
        let branch = |name: &str| Some(name.to_owned());
        assert_eq!(
            git.worktrees().unwrap(),
            [
                Worktree { branch: branch("main"), ..tree("/r") },
                Worktree { lock: branch("initializing"), ..tree("/r/a b\nworktree c") },
                Worktree { branch: branch("x/y"), is_gone: true, ..tree("/gone") },
            ]
        );
        assert_eq!(git.worktree_with("main").unwrap().map(|tree| tree.path), Some("/r".into()));
        // What is not there any more has nothing checked out.
        assert_eq!(git.worktree_with("x/y").unwrap(), None);
        assert!(git.has_worktree(Path::new("/gone")).unwrap());
    }
}
