//! What is asked of a repository. It only looks; who changes something is beside it.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;
use std::time::Duration;

use super::call::Call;
use super::system::{Git, System};

/// A repository, or a directory that is none, seen from one of its directories.
#[derive(Clone, Debug)]
pub struct Repository {
    pub(super) at: PathBuf,
    pub(super) git: Arc<dyn Git>,
}

/// Why git did not answer, or did not do what it was asked.
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
    /// Nobody is known who could be the author of a commit.
    #[error(
        "git does not know who commits: set user.name and user.email with `git config`, or GIT_AUTHOR_NAME, \
         GIT_AUTHOR_EMAIL, GIT_COMMITTER_NAME and GIT_COMMITTER_EMAIL, then retry"
    )]
    NoIdentity,
}

impl Repository {
    /// Returns the repository at a directory. Nothing is looked at yet.
    #[must_use]
    pub fn at(directory: &Path) -> Self {
        Self::asked_by(Arc::new(System::default()), directory)
    }

    /// Returns the repository at a directory, with somebody else to ask.
    #[must_use]
    pub fn asked_by(git: Arc<dyn Git>, directory: &Path) -> Self {
        Self { at: directory.to_owned(), git }
    }

    /// Returns the same repository, seen from another directory.
    #[must_use]
    pub fn seen_from(&self, directory: &Path) -> Self {
        Self { at: directory.to_owned(), git: Arc::clone(&self.git) }
    }

    /// Returns the directory that it is seen from.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.at
    }

    /// Returns the commit of a local branch; `None` if there is no such branch.
    ///
    /// # Errors
    /// Git does not answer.
    pub fn head_of(&self, branch: &str) -> Result<Option<String>, GitError> {
        self.commit_of(&format!("refs/heads/{branch}"))
    }

    /// Returns the commit that a name stands for; `None` if it stands for none.
    ///
    /// # Errors
    /// Git does not answer.
    pub fn commit_of(&self, name: &str) -> Result<Option<String>, GitError> {
        let object = format!("{name}^{{commit}}");
        let call = Call::new(["rev-parse", "--verify", "--quiet", "--end-of-options", &object]);
        let output = self.ask(&call)?;
        let oid = line(&output.stdout);
        match output.status.code() {
            Some(0) if !oid.is_empty() => Ok(Some(oid)),
            Some(1) => Ok(None),
            // Where there is no repository there is no branch.
            Some(_) | None if is_no_repository(&output) => Ok(None),
            Some(_) | None => Err(refused(&call, &output)),
        }
    }

    /// Returns the branch that is checked out; `None` if none is.
    ///
    /// # Errors
    /// Git does not answer.
    pub fn current_branch(&self) -> Result<Option<String>, GitError> {
        let call = Call::new(["symbolic-ref", "--quiet", "--short", "HEAD"]);
        let output = self.ask(&call)?;
        match output.status.code() {
            Some(0) => Ok(Some(line(&output.stdout))),
            Some(1) => Ok(None),
            Some(_) | None if is_no_repository(&output) => Ok(None),
            Some(_) | None => Err(refused(&call, &output)),
        }
    }

    /// Tells whether a file is in the tree of a local branch.
    ///
    /// # Errors
    /// Git does not answer.
    pub fn has_file(&self, branch: &str, path: &str) -> Result<bool, GitError> {
        match self.head_of(branch)? {
            Some(commit) => Ok(self.blob_at(&commit, path)?.is_some()),
            None => Ok(false),
        }
    }

    /// Returns what is in a file of a commit; `None` if there is no such file.
    ///
    /// # Errors
    /// Git does not answer.
    pub fn file_at(&self, commit: &str, path: &str) -> Result<Option<Vec<u8>>, GitError> {
        match self.blob_at(commit, path)? {
            Some(blob) => Ok(Some(self.answer(&Call::new(["cat-file", "blob", &blob]))?)),
            None => Ok(None),
        }
    }

    /// Returns what is staged of a file; `None` if nothing is.
    ///
    /// # Errors
    /// Git does not answer.
    pub fn staged_file(&self, path: &str) -> Result<Option<Vec<u8>>, GitError> {
        let literal = format!(":(top,literal){path}");
        let listed = self.answer(&Call::new(["ls-files", "-z", "--stage", "--", &literal]))?;
        // Mode, object, stage, a tabulator, and the name.
        let listed = String::from_utf8_lossy(&listed);
        let blob = listed.split(' ').nth(1);
        blob.map(|blob| self.answer(&Call::new(["cat-file", "blob", blob]))).transpose()
    }

    fn blob_at(&self, commit: &str, path: &str) -> Result<Option<String>, GitError> {
        let listed = self.answer(&Call::new(["ls-tree", "-z", "--full-tree", commit, "--", path]))?;
        // Mode, kind, object, a tabulator, and the name.
        let entry = listed.split(|byte| *byte == b'\t').next().unwrap_or_default();
        let entry = String::from_utf8_lossy(entry);
        let mut words = entry.split(' ');
        let (_, kind, object) = (words.next(), words.next(), words.next());
        Ok(object.filter(|_| kind == Some("blob")).map(str::to_owned))
    }

    /// Returns the tree of a commit.
    ///
    /// # Errors
    /// Git does not answer.
    pub fn tree_of(&self, commit: &str) -> Result<String, GitError> {
        let tree = format!("{commit}^{{tree}}");
        self.word(&Call::new(["rev-parse", "--verify", "--end-of-options", &tree]))
    }

    /// Tells whether a commit is another one, or lies in its past.
    ///
    /// # Errors
    /// Git does not answer.
    pub fn is_ancestor(&self, commit: &str, of: &str) -> Result<bool, GitError> {
        let call = Call::new(["merge-base", "--is-ancestor", commit, of]);
        let output = self.ask(&call)?;
        match output.status.code() {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            Some(_) | None => Err(refused(&call, &output)),
        }
    }

    /// Tells whether nothing is changed or untracked in the working tree, but for what lies in directories with these
    /// names, wherever they are.
    ///
    /// # Errors
    /// Git does not answer.
    pub fn is_clean_beside(&self, ignored: &[&str]) -> Result<bool, GitError> {
        let call = Call::new(["status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames"]);
        let status = self.answer(&call)?;
        // Each entry is two letters, a blank and the path; without renames there is one path each.
        let mut entries = status.split(|byte| *byte == 0).filter(|entry| entry.len() > 3);
        Ok(entries.all(|entry| lies_in(&entry[3..], ignored)))
    }

    /// Returns the root of the working tree.
    ///
    /// # Errors
    /// Git does not answer, or there is none.
    pub fn top(&self) -> Result<PathBuf, GitError> {
        let answer = self.answer(&Call::new(["rev-parse", "--show-toplevel"]))?;
        let path = answer.strip_suffix(b"\n").unwrap_or(&answer);
        Ok(PathBuf::from(OsString::from_vec(path.to_vec())))
    }

    /// Returns the directory in which git keeps what is about this working tree alone: its index, its locks, a merge in
    /// progress.
    ///
    /// # Errors
    /// Git does not answer, or there is no repository.
    pub fn private_directory(&self) -> Result<PathBuf, GitError> {
        let answer = self.answer(&Call::new(["rev-parse", "--absolute-git-dir"]))?;
        let path = answer.strip_suffix(b"\n").unwrap_or(&answer);
        Ok(PathBuf::from(OsString::from_vec(path.to_vec())))
    }

    /// Returns the directory in which git keeps what is about all working trees: objects, branches, settings.
    ///
    /// # Errors
    /// Git does not answer, or there is no repository.
    pub fn common_directory(&self) -> Result<PathBuf, GitError> {
        let call = ["rev-parse", "--path-format=absolute", "--git-common-dir"];
        let answer = self.answer(&Call::new(call))?;
        let path = answer.strip_suffix(b"\n").unwrap_or(&answer);
        Ok(PathBuf::from(OsString::from_vec(path.to_vec())))
    }

    /// Checks that git knows who commits, before anything is changed.
    ///
    /// # Errors
    /// It does not.
    pub fn check_identity(&self) -> Result<(), GitError> {
        for name in ["GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"] {
            if !self.ask(&Call::new(["var", name]))?.status.success() {
                // Where there is no repository, that is what is wrong.
                self.top()?;
                return Err(GitError::NoIdentity);
            }
        }
        Ok(())
    }

    /// Tells whether a setting says yes.
    ///
    /// # Errors
    /// There is no git.
    pub fn is_set(&self, setting: &str) -> Result<bool, GitError> {
        let output = self.ask(&Call::new(["config", "--type=bool", "--get", setting]))?;
        Ok(line(&output.stdout) == "true")
    }

    /// Returns what git says when it does what it is asked.
    ///
    /// # Errors
    /// It does not.
    pub fn answer(&self, call: &Call) -> Result<Vec<u8>, GitError> {
        let output = self.ask(call)?;
        if output.status.success() { Ok(output.stdout) } else { Err(refused(call, &output)) }
    }

    /// Returns the one line that git says.
    ///
    /// # Errors
    /// It does not do what it is asked.
    pub(super) fn word(&self, call: &Call) -> Result<String, GitError> {
        Ok(line(&self.answer(call)?))
    }

    /// Returns whatever git says.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn ask(&self, call: &Call) -> Result<Output, GitError> {
        let mut output = self.git.ask(&self.at, call).map_err(GitError::Missing)?;
        for _ in 0..TRIES {
            let stumbled = complaint(&output.stderr).is_some_and(|line| is_half_seen(&line));
            if output.status.success() || !stumbled {
                break;
            }
            std::thread::sleep(MOMENT);
            output = self.git.ask(&self.at, call).map_err(GitError::Missing)?;
        }
        let is_unread = |output: &Output| complaint(&output.stderr).is_some_and(|line| is_unread(&line));
        // A git that lives writes such a file in no time: the one that began it was killed.
        if !output.status.success() && is_unread(&output) && self.forget_cut_off_worktrees()? {
            output = self.git.ask(&self.at, call).map_err(GitError::Missing)?;
        }
        Ok(output)
    }
}

/// How often git is asked again that stumbled over what another one was just making.
pub(crate) const TRIES: usize = 50;
/// How long that is waited for each time.
pub(crate) const MOMENT: Duration = Duration::from_millis(20);

/// Tells whether git stumbled over a working tree that another one was just making or forgetting: it looks at all of
/// them, and takes away the directory of all of them when it is empty.
pub(crate) fn is_half_seen(complaint: &str) -> bool {
    let is_unmade =
        complaint.contains("could not open '") || complaint.contains("could not create directory of '");
    let is_gone = complaint.contains("/worktrees/") && complaint.ends_with("No such file or directory");
    is_unread(complaint) || (is_unmade && is_gone)
}

/// Tells whether git found what it notes of a working tree without its content.
fn is_unread(complaint: &str) -> bool {
    complaint.contains("failed to read ") && complaint.contains("/commondir: ")
}

/// Tells whether a path is one of these directories, or lies in one, wherever that is.
pub(crate) fn lies_in(path: &[u8], folders: &[&str]) -> bool {
    let begins = |at: usize| at == 0 || path[at - 1] == b'/';
    let ends = |at: usize| at == path.len() || path[at] == b'/';
    folders.iter().map(|folder| folder.as_bytes()).any(|folder| {
        let found = path.windows(folder.len()).enumerate().filter(|(_, part)| *part == folder);
        found.map(|(at, _)| at).any(|at| begins(at) && ends(at + folder.len()))
    })
}

/// Returns the first line, without its end.
pub(super) fn line(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).lines().next().unwrap_or_default().trim().to_owned()
}

pub(super) fn is_no_repository(output: &Output) -> bool {
    String::from_utf8_lossy(&output.stderr).contains("not a git repository")
}

/// Returns the first line of what git complains about.
pub(crate) fn complaint(stderr: &[u8]) -> Option<String> {
    let said = String::from_utf8_lossy(stderr);
    let lines = || said.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_bad = |line: &&str| line.starts_with("fatal: ") || line.starts_with("error: ");
    let message = lines().find(is_bad).or_else(|| lines().next())?;
    let message = message.trim_start_matches("fatal: ").trim_start_matches("error: ");
    Some(message.trim_end_matches('.').to_owned())
}

/// Returns what git complains about, in a line.
pub(super) fn refused(call: &Call, output: &Output) -> GitError {
    let mut message = complaint(&output.stderr).unwrap_or_else(|| "it said nothing".to_owned());
    if message.ends_with(".lock': File exists") {
        message.push_str("; if no git is at work there, one was killed: remove that file and retry");
    } else if is_unread(&message) {
        message.push_str(
            "; a git was killed while it made that worktree: remove the directory of that file and retry",
        );
    }
    GitError::Refused { command: call.name(), message }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A git that stumbles some times before it answers.
    #[derive(Debug)]
    struct Stumbles(AtomicUsize);

    impl Git for Stumbles {
        fn ask(&self, _: &Path, _: &Call) -> io::Result<Output> {
            let left =
                self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
            let stderr = b"fatal: failed to read .git/worktrees/x/commondir: Success".to_vec();
            let status = ExitStatus::from_raw(if left { 128 << 8 } else { 0 });
            Ok(Output { status, stdout: b"main".to_vec(), stderr })
        }
    }

    #[test]
    fn git_is_asked_again_if_it_stumbled_over_a_worktree_that_is_being_made() {
        let git = Repository::asked_by(Arc::new(Stumbles(AtomicUsize::new(3))), Path::new("/r"));
        assert_eq!(git.current_branch().unwrap().as_deref(), Some("main"));
        let git = Repository::asked_by(Arc::new(Stumbles(AtomicUsize::new(usize::MAX))), Path::new("/r"));
        let error = git.current_branch().unwrap_err().to_string();
        assert!(error.contains("commondir"), "{error}");
    }

    #[test]
    fn what_another_git_was_making_is_known_by_the_complaint() {
        for complaint in [
            "failed to read .git/worktrees/a/commondir: Success",
            "could not open '.git/worktrees/a/gitdir' for writing: No such file or directory",
            "could not create directory of '/r.git/worktrees/a': No such file or directory",
        ] {
            assert!(is_half_seen(complaint), "{complaint}");
        }
        for complaint in [
            "could not create directory of '.tidewheel/tmp-worktrees/a': No such file or directory",
            "could not open '.git/worktrees/a/gitdir' for writing: Permission denied",
            "invalid reference: x",
        ] {
            assert!(!is_half_seen(complaint), "{complaint}");
        }
    }

    #[test]
    fn what_lies_in_a_directory_is_known_wherever_that_is() {
        let folders = ["x/jobs", "x/tmp"];
        for path in ["x/jobs", "x/jobs/a", "sub/x/tmp/a/", "x/jobs-old/x/jobs/b"] {
            assert!(lies_in(path.as_bytes(), &folders), "{path}");
        }
        for path in ["", "jobs/a", "ax/jobs/b", "x/jobs-old/a", "x/tmp2", "x/b/jobs/a"] {
            assert!(!lies_in(path.as_bytes(), &folders), "{path}");
        }
    }
}
