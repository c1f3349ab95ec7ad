//! Merges: what is in the middle of one, and what has been merged already. It merges nothing itself.

use std::fs;

use super::call::Call;
use super::repository::{GitError, Repository};

/// What is in progress in a working tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MergeState {
    /// The commit that is being merged.
    pub merge_head: Option<String>,
    /// What the commit of a squashed merge is about to say. It is there until somebody commits or gives up.
    pub squash_message: Option<String>,
    /// The files that are in conflict, from the top of the repository.
    pub unmerged: Vec<String>,
}

/// What somebody made of a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeMerge {
    /// The files in which both sides were in conflict.
    pub conflicts: Vec<String>,
    /// The files that the commit changed.
    pub changed: Vec<String>,
}

impl MadeMerge {
    /// Tells whether the files alone show that the commit is a merge: there were conflicts, each of those files was
    /// changed, and so was another one, just as the merge does it.
    #[must_use]
    pub fn is_told_by_its_files(&self) -> bool {
        let is_resolved = self.conflicts.iter().all(|path| self.changed.contains(path));
        let has_more = self.changed.iter().any(|path| !self.conflicts.contains(path));
        !self.conflicts.is_empty() && is_resolved && has_more
    }
}

impl Repository {
    /// Tells whether a merge or the picking of a commit is in progress. What is no repository has none.
    #[must_use]
    pub fn is_merging(&self) -> bool {
        let Ok(directory) = self.private_directory() else { return false };
        ["MERGE_HEAD", "CHERRY_PICK_HEAD"].into_iter().any(|name| directory.join(name).exists())
    }

    /// Returns what is in progress in the working tree.
    ///
    /// # Errors
    /// Git does not answer.
    pub fn merge_state(&self) -> Result<MergeState, GitError> {
        let directory = self.private_directory()?;
        let read = |name: &str| {
            let bytes = fs::read(directory.join(name)).ok()?;
            Some(String::from_utf8_lossy(&bytes).into_owned())
        };
        Ok(MergeState {
            merge_head: read("MERGE_HEAD").map(|text| text.trim().to_owned()),
            squash_message: read("SQUASH_MSG"),
            unmerged: self.unmerged()?,
        })
    }

    /// Returns the files that are in conflict, sorted, from the top of the repository.
    ///
    /// # Errors
    /// Git does not answer.
    pub fn unmerged(&self) -> Result<Vec<String>, GitError> {
        let call =
            Call::new(["diff", "--name-only", "--diff-filter=U", "--no-relative", "-z", "--no-ext-diff"]);
        let mut paths = names(&self.answer(&call)?);
        paths.sort();
        paths.dedup();
        Ok(paths)
    }

    /// Returns the call that merges two commits without a working tree. It says the tree of the merge first; when
    /// they are in conflict, it ends with 1 and says where.
    #[must_use]
    pub fn merge_trees(into: &str, from: &str) -> Call {
        Call::new(["merge-tree", "--write-tree", "--name-only", "--no-messages", into, from])
    }

    /// Returns what a commit is as a merge of another one into its first parent; `None` if it differs from what git would
    /// make of that in files that are not in conflict.
    ///
    /// # Errors
    /// Git does not answer.
    pub fn merge_by(&self, commit: &str, from: &str) -> Result<Option<MadeMerge>, GitError> {
        let Some(before) = self.commit_of(&format!("{commit}^1"))? else { return Ok(None) };
        let call = ["merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", &before, from];
        let output = self.ask(&Call::new(call))?;
        if !matches!(output.status.code(), Some(0 | 1)) {
            return Ok(None);
        }
        let mut said = names(&output.stdout).into_iter();
        let Some(tree) = said.next() else { return Ok(None) };
        let conflicts: Vec<String> = said.collect();
        if self.different(&tree, commit)?.iter().any(|path| !conflicts.contains(path)) {
            return Ok(None);
        }
        Ok(Some(MadeMerge { conflicts, changed: self.different(&before, commit)? }))
    }

    /// Returns the files that a tree has and another one does not.
    ///
    /// # Errors
    /// Git does not answer.
    pub fn added(&self, to: &str, by: &str) -> Result<Vec<String>, GitError> {
        let call = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", "--diff-filter=A", to, by];
        Ok(names(&self.answer(&Call::new(call))?))
    }

    /// Returns the tracked files that are not as they are in the index.
    ///
    /// # Errors
    /// Git does not answer.
    pub fn unstaged(&self) -> Result<Vec<String>, GitError> {
        let call = ["diff", "--name-only", "--no-relative", "-z", "--no-ext-diff"];
        Ok(names(&self.answer(&Call::new(call))?))
    }

    /// Returns the files in which two trees differ.
    fn different(&self, one: &str, other: &str) -> Result<Vec<String>, GitError> {
        let call = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", one, other];
        Ok(names(&self.answer(&Call::new(call))?))
    }

    /// Returns the commits that came to a branch by itself since another commit, the newest first, with their subjects.
    ///
    /// # Errors
    /// Git does not answer.
    pub fn since(&self, commit: &str, since: &str) -> Result<Vec<(String, String)>, GitError> {
        let not = format!("^{since}");
        let call = [
            "log",
            "-z",
            "--first-parent",
            "--max-count=1000",
            "--format=%H %s",
            "--end-of-options",
            commit,
            &not,
        ];
        let lines = names(&self.answer(&Call::new(call))?);
        let pair =
            |line: &String| line.split_once(' ').map(|(oid, subject)| (oid.to_owned(), subject.to_owned()));
        Ok(lines.iter().filter_map(pair).collect())
    }

    /// Returns the newest commit of a branch, and not of another, that changed a file.
    ///
    /// # Errors
    /// Git does not answer.
    pub fn last_change(&self, commit: &str, not_in: &str, path: &str) -> Result<Option<String>, GitError> {
        let not = format!("^{not_in}");
        let path = format!(":(top,literal){path}");
        let oid = self.word(&Call::new(["rev-list", "--max-count=1", commit, &not, "--", &path]))?;
        Ok(Some(oid).filter(|oid| !oid.is_empty()))
    }
}

/// Returns what stands between zeros.
fn names(bytes: &[u8]) -> Vec<String> {
    let parts = bytes.split(|byte| *byte == 0).filter(|part| !part.is_empty());
    parts.map(|part| String::from_utf8_lossy(part).into_owned()).collect()
}
