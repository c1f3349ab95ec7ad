//! Applies patches to copies of the files that they name, in a directory where nothing else is, so that a patch can do
//! no harm, and one that does not apply changes nothing.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use tidewheel_store::jobs::make_folders;

use super::super::beneath;
use super::super::node::Node;
use super::files::PatchFile;
use super::git::git;
use super::headers;
use super::tree::{self, Tree};
use crate::git::lies_in;
use crate::probe::EPHEMERAL;

/// A directory for the work of one job, removed at the end unless somebody wants to keep it.
#[derive(Debug)]
pub(super) struct Scratch {
    pub(super) path: PathBuf,
    pub(super) is_kept: bool,
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.is_kept {
            // What cannot be removed is found empty or replaced by the next attempt.
            fs::remove_dir_all(&self.path).ok();
        }
    }
}

/// What patches come to.
#[derive(Debug)]
pub(super) struct Applied {
    /// The files without any of the patches.
    pub(super) before: Tree,
    /// The files with all of them.
    pub(super) after: Tree,
    /// How many of them had been applied already.
    pub(super) already: usize,
}

impl Scratch {
    /// Returns the place of the job of a node.
    pub(super) fn place(node: &Node<'_>) -> PathBuf {
        node.around.data().join("tmp").join(format!("patches-{}", node.record.id))
    }

    /// Makes the directory, empty.
    pub(super) fn new(node: &Node<'_>) -> Result<Self, String> {
        let place = Self::place(node);
        let fail = |error: std::io::Error| format!("cannot make {}: {error}", place.display());
        let is_link = |path: &Path| path.symlink_metadata().is_ok_and(|about| about.is_symlink());
        if is_link(&place) || place.parent().is_some_and(is_link) {
            return Err(format!("{} is a link, or lies behind one", place.display()));
        }
        if place.symlink_metadata().is_ok() {
            fs::remove_dir_all(&place).map_err(fail)?;
        }
        let data = node.around.data();
        let inside = place.strip_prefix(data).unwrap_or(&place).join("looked-at");
        make_folders(data, &inside).map_err(fail)?;
        // Git compares real paths.
        Ok(Self { path: place.canonicalize().map_err(fail)?, is_kept: false })
    }

    /// Returns the names of all files that a patch touches.
    ///
    /// # Errors
    /// It is no patch, or one that would do what no patch of ours may.
    pub(super) fn names(&self, file: &PatchFile) -> Result<BTreeSet<String>, String> {
        let path = &file.kept.path;
        let fail = |why: String| format!("`{path}` is no patch that can be applied: {why}");
        let directory = self.path.join("looked-at");
        let copy = self.copy(file)?;
        let looked = |flags: &[&str]| {
            let words: Vec<&str> = ["apply"].iter().chain(flags).copied().chain(["--", &copy]).collect();
            git(&directory, &words).map_err(fail)
        };
        let summary = looked(&["--summary"])?;
        for line in String::from_utf8_lossy(&summary).lines() {
            if let Some(kind) = strange_mode(line) {
                return Err(fail(format!("it has {kind}: {}", line.trim())));
            }
        }
        let mut names = BTreeSet::new();
        for entry in looked(&["--numstat", "-z"])?.split(|byte| *byte == 0).filter(|entry| !entry.is_empty())
        {
            let name = entry.splitn(3, |byte| *byte == b'\t').nth(2).unwrap_or_default();
            let name = std::str::from_utf8(name).map_err(|_| fail("a name in it is not UTF-8".to_owned()))?;
            names.insert(name.to_owned());
        }
        let written = headers::names(&file.bytes);
        // Git would take the slash away, and what is meant for elsewhere would be made here.
        if let Some(name) = written.all.iter().find(|name| headers::is_absolute(name)) {
            return Err(fail(format!("it touches `{}`", name.escape_debug())));
        }
        names.extend(written.sources);
        match names.iter().find(|name| !is_ours(name)) {
            Some(name) => Err(fail(format!("it touches `{}`", name.escape_debug()))),
            None if names.is_empty() => Err(fail("it touches nothing".to_owned())),
            None => Ok(names),
        }
    }

    /// Applies all patches to copies of files. What was applied before, all of them or the first ones, stays applied.
    ///
    /// # Errors
    /// One of them does not apply; which, and why.
    pub(super) fn apply(&self, now: &Tree, files: &[PatchFile]) -> Result<Applied, String> {
        let copies = files.iter().map(|file| self.copy(file)).collect::<Result<Vec<String>, _>>()?;
        let forward = |from: &Tree| self.run(from, copies.iter().enumerate(), false);
        let first = match forward(now) {
            Ok(after) => return Ok(Applied { before: now.clone(), after, already: 0 }),
            Err(wrong) => wrong,
        };
        for already in (1..=files.len()).rev() {
            let back = self.run(now, copies.iter().enumerate().take(already).rev(), true);
            if let Ok(before) = back
                && let Ok(after) = forward(&before)
            {
                return Ok(Applied { before, after, already });
            }
        }
        let (index, why) = first;
        Err(format!("`{}` does not apply: {why}", files[index].kept.path))
    }

    /// Applies patches one after the other, or takes them back. Says which one could not be, and why.
    fn run<'c>(
        &self,
        from: &Tree,
        patches: impl Iterator<Item = (usize, &'c String)>,
        takes_back: bool,
    ) -> Result<Tree, (usize, String)> {
        let directory = self.path.join("work");
        let fail = |why: String| (0, why);
        empty(&directory).map_err(fail)?;
        tree::write_all(&directory, from).map_err(fail)?;
        for (index, patch) in patches {
            let mut words = vec!["apply", "--whitespace=nowarn"];
            words.extend(takes_back.then_some("-R"));
            words.extend(["--", patch]);
            git(&directory, &words).map_err(|why| (index, why))?;
        }
        tree::walk(&directory).map_err(fail)
    }

    /// Writes a patch where git reads it.
    fn copy(&self, file: &PatchFile) -> Result<String, String> {
        let path = self.path.join(format!("{}.patch", file.kept.digest));
        fs::write(&path, &file.bytes).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        path.into_os_string()
            .into_string()
            .map_err(|_| "the data directory has a name that is not UTF-8".to_owned())
    }

    /// Returns one patch for the way from some files to others.
    pub(super) fn difference(&self, before: &Tree, after: &Tree) -> Result<Vec<u8>, String> {
        let (work, repository) = (self.path.join("work"), self.path.join("objects.git"));
        empty(&repository)?;
        let text = |path: &Path| path.to_string_lossy().into_owned();
        git(&self.path, &["init", "-q", "--bare", "--template=", &text(&repository)])?;
        let git_dir = format!("--git-dir={}", text(&repository));
        let work_tree = format!("--work-tree={}", text(&work));
        let mut trees = Vec::new();
        for files in [before, after] {
            empty(&work)?;
            tree::write_all(&work, files)?;
            git(&work, &[&git_dir, &work_tree, "add", "-A", "-f", "."])?;
            let tree = git(&work, &[&git_dir, "write-tree"])?;
            trees.push(String::from_utf8_lossy(&tree).trim().to_owned());
        }
        git(&work, &[&git_dir, "diff", "--binary", "--full-index", "--no-renames", &trees[0], &trees[1]])
    }
}

/// Makes a directory that is empty.
fn empty(directory: &Path) -> Result<(), String> {
    let fail = |error: std::io::Error| format!("cannot make {}: {error}", directory.display());
    if directory.exists() {
        fs::remove_dir_all(directory).map_err(fail)?;
    }
    fs::create_dir_all(directory).map_err(fail)
}

/// Says what a line of a summary makes that is no ordinary file.
fn strange_mode(line: &str) -> Option<&'static str> {
    let mut words = line.split_whitespace();
    let modes: Vec<&str> = match (words.next(), words.next()) {
        (Some("create" | "delete"), Some("mode")) => words.take(1).collect(),
        (Some("mode"), Some("change")) => words.take(3).collect(),
        _ => return None,
    };
    if modes.contains(&"120000") {
        Some("a link")
    } else if modes.contains(&"160000") {
        Some("a submodule")
    } else {
        None
    }
}

/// Tells whether a name is one that a patch may touch: beneath the directory, and neither git's nor that of a job.
fn is_ours(name: &str) -> bool {
    let is_git = |step: &str| step.eq_ignore_ascii_case(".git");
    let is_of_jobs = lies_in(name.as_bytes(), &EPHEMERAL);
    beneath::plain(name).is_some() && !name.split('/').any(is_git) && !is_of_jobs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_ours_is_known_by_its_name() {
        for name in ["a", "a/b", ".tidewheel/workflows/a.toml", ".gitignore", ".tidewheel/jobs-old"] {
            assert!(is_ours(name), "{name}");
        }
        for name in [
            "",
            "/a",
            "../a",
            "a/../../b",
            ".git/config",
            "a/.GIT/hooks/x",
            ".tidewheel/jobs/x/job.json",
            "a/.tidewheel/sessions/x",
        ] {
            assert!(!is_ours(name), "{name}");
        }
        assert_eq!(strange_mode(" create mode 120000 x"), Some("a link"));
        assert_eq!(strange_mode(" mode change 100644 => 160000 x"), Some("a submodule"));
        assert_eq!(strange_mode(" create mode 100755 120000"), None);
    }
}
