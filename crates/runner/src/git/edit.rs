//! Commits that change one file of a branch, made without a working tree: nobody's files and nobody's index are
//! touched. Either the branch has the commit or nothing has changed.

use std::fs;
use std::path::Path;

use super::call::Call;
use super::repository::{GitError, Repository};

/// What is changed in a branch.
#[derive(Clone, Copy, Debug)]
pub struct Edit<'a> {
    /// The branch.
    pub branch: &'a str,
    /// The commit that the change is laid upon.
    pub parent: &'a str,
    /// The commit that the branch is known to be at; empty if it is to be made.
    pub from: &'a str,
    /// The file, from the top of the repository.
    pub path: &'a str,
    /// What is to be in it; without anything it is removed.
    pub content: Option<&'a [u8]>,
    /// What the commit says.
    pub message: &'a str,
    /// Where an index may be for as long as this takes.
    pub scratch: &'a Path,
}

impl Repository {
    /// Commits a change of one file; `None` if the file is like that already.
    ///
    /// # Errors
    /// Git refuses, or somebody else has moved the branch meanwhile.
    pub fn commit_edit(&self, edit: &Edit<'_>) -> Result<Option<String>, GitError> {
        let tree = self.edited_tree(edit);
        // Nobody misses it, and a lock beside it is only there if git was killed.
        for name in [edit.scratch.to_owned(), edit.scratch.with_added_extension("lock")] {
            let _missing = fs::remove_file(name);
        }
        let tree = tree?;
        if tree == self.tree_of(edit.parent)? {
            if edit.from != edit.parent {
                self.move_branch(edit.branch, edit.parent, edit.from, edit.message)?;
            }
            return Ok(None);
        }
        let commit = self.commit_tree(&tree, &[edit.parent], edit.message)?;
        self.move_branch(edit.branch, &commit, edit.from, edit.message)?;
        Ok(Some(commit))
    }

    fn edited_tree(&self, edit: &Edit<'_>) -> Result<String, GitError> {
        let top = self.seen_from(&self.top()?);
        let on_side = |call: Call| top.answer(&call.index(edit.scratch));
        on_side(Call::new(["read-tree", edit.parent]))?;
        match edit.content {
            Some(content) => {
                let blob =
                    top.word(&Call::new(["hash-object", "-w", "--no-filters", "--stdin"]).stdin(content))?;
                let entry = format!("100644,{blob},{}", edit.path);
                on_side(Call::new(["update-index", "--add", "--cacheinfo", &entry]))?;
            }
            None => {
                on_side(Call::new(["update-index", "--force-remove", "--", edit.path]))?;
            }
        }
        top.word(&Call::new(["write-tree"]).index(edit.scratch))
    }

    /// Makes a commit of a tree, on no branch yet.
    ///
    /// # Errors
    /// Git refuses, or does not know who commits.
    pub fn commit_tree(&self, tree: &str, parents: &[&str], message: &str) -> Result<String, GitError> {
        let mut call = Call::new(["commit-tree", tree]);
        for parent in parents {
            call = call.arg("-p").arg(parent);
        }
        // The plumbing does not look at this by itself.
        if self.is_set("commit.gpgSign")? {
            call = call.arg("-S");
        }
        self.word(&call.arg("-F").arg("-").stdin(message))
    }

    /// Lets a file of the working tree and of its index be as it is in the commit that is checked out.
    ///
    /// # Errors
    /// Git refuses.
    pub fn sync_file(&self, path: &str) -> Result<(), GitError> {
        let top = self.seen_from(&self.top()?);
        let literal = format!(":(top,literal){path}");
        let is_staged = !top.answer(&Call::new(["ls-files", "-z", "--", &literal]))?.is_empty();
        let head = top.commit_of("HEAD")?;
        let is_committed = head.map_or(Ok(None), |head| top.file_at(&head, path))?.is_some();
        if is_staged || is_committed {
            let call = ["restore", "--source=HEAD", "--staged", "--worktree", "--", &literal];
            top.answer(&Call::new(call))?;
        }
        Ok(())
    }

    /// Makes a branch at a commit. There must be none of this name.
    ///
    /// # Errors
    /// There is one, or git refuses.
    pub fn make_branch(&self, branch: &str, commit: &str) -> Result<(), GitError> {
        self.move_branch(branch, commit, "", "branch: made by tidewheel")
    }

    /// Moves a branch from one commit to another.
    ///
    /// # Errors
    /// It is not at the first any more, or git refuses.
    pub fn move_branch(&self, branch: &str, to: &str, from: &str, why: &str) -> Result<(), GitError> {
        let reference = format!("refs/heads/{branch}");
        let why = why.lines().next().unwrap_or_default();
        self.answer(&Call::new(["update-ref", "-m", why, "--", &reference, to, from])).map(drop)
    }

    /// Deletes a branch that is at a commit.
    ///
    /// # Errors
    /// It is not there any more, or git refuses.
    pub fn delete_branch(&self, branch: &str, at: &str) -> Result<(), GitError> {
        let reference = format!("refs/heads/{branch}");
        self.answer(&Call::new(["update-ref", "-d", "--", &reference, at])).map(drop)
    }
}
