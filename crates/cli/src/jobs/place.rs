//! Where the jobs are: the data directory, found as git finds a repository, without asking git.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::error::{Code, CommandError, cause};

/// The name of the data directory.
const DATA: &str = ".tidewheel";

/// Where the jobs are
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct DirArguments {
    /// The directory with `.tidewheel/`, instead of the one found from here
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

/// Where the jobs are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The directory that jobs run in.
    pub(crate) root: PathBuf,
    /// The data directory in it.
    pub(crate) data: PathBuf,
}

/// How a place was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// Somebody named it.
    Named,
    /// It is the nearest directory with a data directory, from the current one upwards.
    Nearest,
    /// It is the root of the main worktree: nothing above has a data directory.
    Repository,
    /// It is the current directory: nothing above has a data directory or is a repository.
    Here,
}

impl Place {
    /// Finds the data directory: the one that is named, or the one that belongs to the current directory.
    pub(crate) fn find(arguments: &DirArguments) -> Result<Self, CommandError> {
        Self::found(arguments).map(|(place, _)| place)
    }

    /// Finds the data directory, and says how.
    pub(crate) fn found(arguments: &DirArguments) -> Result<(Self, How), CommandError> {
        let fail = |what: &Path, error: &std::io::Error| {
            let message = format!("`{}` cannot be used: {}.", what.display(), cause(error));
            CommandError::new(Code::JobsUnavailable, message)
        };
        match &arguments.dir {
            Some(dir) => {
                let found = fs::canonicalize(dir).map_err(|error| fail(dir, &error))?;
                let place = Self::named(&found);
                if place.root.is_dir() {
                    return Ok((place, How::Named));
                }
                let message = format!("`{}` cannot be used: it is a file, and no directory.", dir.display());
                Err(CommandError::new(Code::JobsUnavailable, message)
                    .hint("--dir names the directory that has `.tidewheel/` in it."))
            }
            None => {
                let here = std::env::current_dir().map_err(|error| fail(Path::new("."), &error))?;
                Ok(Self::around(&here))
            }
        }
    }

    /// Tells whether nobody lets us look at what is in the data directory.
    pub(crate) fn is_closed(&self) -> bool {
        let found = fs::symlink_metadata(self.data.join("config.toml"));
        found.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    }

    /// Returns the place that somebody names: its root, or the data directory itself.
    fn named(dir: &Path) -> Self {
        match dir.parent() {
            Some(root) if dir.file_name().is_some_and(|name| name == DATA) => Self::of_root(root),
            _ => Self::of_root(dir),
        }
    }

    /// Returns the place that a directory belongs to: the nearest one above with a data directory, else the root of
    /// the main worktree, else the directory itself.
    fn around(here: &Path) -> (Self, How) {
        if let Some(root) = here.ancestors().find(|above| above.join(DATA).is_dir()) {
            return (Self::of_root(root), How::Nearest);
        }
        match here.ancestors().find_map(main_worktree) {
            Some(root) => (Self::of_root(&root), How::Repository),
            None => (Self::of_root(here), How::Here),
        }
    }

    fn of_root(root: &Path) -> Self {
        Self { root: root.to_owned(), data: root.join(DATA) }
    }
}

/// Returns the root of the main worktree, if this directory is the root of one: the main one, or one linked to it.
fn main_worktree(dir: &Path) -> Option<PathBuf> {
    let git = dir.join(".git");
    if git.is_dir() {
        return Some(dir.to_owned());
    }
    let text = fs::read_to_string(&git).ok()?;
    let of_worktree = dir.join(text.strip_prefix("gitdir:")?.trim());
    let common = fs::read_to_string(of_worktree.join("commondir")).ok();
    let common = common.and_then(|path| fs::canonicalize(of_worktree.join(path.trim())).ok());
    // A submodule has no common directory, and a bare repository no main worktree.
    let main = common.filter(|common| common.file_name().is_some_and(|name| name == ".git"));
    Some(main.and_then(|common| common.parent().map(Path::to_owned)).unwrap_or_else(|| dir.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(dirs: &[&str], files: &[(&str, &str)]) -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        for dir in dirs {
            fs::create_dir_all(tree.path().join(dir)).unwrap();
        }
        for (file, text) in files {
            fs::write(tree.path().join(file), text).unwrap();
        }
        tree
    }

    fn root_of(tree: &tempfile::TempDir, here: &str) -> String {
        let root = fs::canonicalize(tree.path()).unwrap();
        let (place, _) = Place::around(&root.join(here));
        assert_eq!(place.data, place.root.join(".tidewheel"));
        place.root.strip_prefix(&root).unwrap().display().to_string()
    }

    #[test]
    fn the_nearest_data_directory_above_counts() {
        let tree = tree(&["a/.tidewheel", "a/.git", "a/b/.tidewheel/jobs", "a/b/c/.git"], &[]);
        assert_eq!(root_of(&tree, "a/b/c"), "a/b");
        assert_eq!(root_of(&tree, "a/b/.tidewheel/jobs"), "a/b");
        assert_eq!(root_of(&tree, "a"), "a");
    }

    #[test]
    fn without_one_it_is_the_root_of_the_main_worktree() {
        let tree = tree(
            &["main/src", "main/.git/worktrees/side", "side/deep", "main/.git/modules/sub", "main/sub"],
            &[
                ("side/.git", "gitdir: ../main/.git/worktrees/side\n"),
                ("main/.git/worktrees/side/commondir", "../..\n"),
                ("main/sub/.git", "gitdir: ../.git/modules/sub\n"),
            ],
        );
        assert_eq!(root_of(&tree, "main/src"), "main");
        assert_eq!(root_of(&tree, "side/deep"), "main");
        assert_eq!(root_of(&tree, "main/sub"), "main/sub");
    }

    #[test]
    fn a_worktree_of_a_bare_repository_is_its_own_place() {
        let tree = tree(
            &["bare.git/worktrees/side", "side"],
            &[
                ("side/.git", "gitdir: ../bare.git/worktrees/side\n"),
                ("bare.git/worktrees/side/commondir", "../..\n"),
            ],
        );
        assert_eq!(root_of(&tree, "side"), "side");
    }

    #[test]
    fn without_a_repository_it_is_the_current_directory() {
        let tree = tree(&["plain"], &[("plain/.git", "what is this\n")]);
        // The directories of tests lie in none.
        assert_eq!(root_of(&tree, "plain"), "plain");
    }

    #[test]
    fn a_named_place_is_its_root_or_its_data_directory() {
        let place = Place::named(Path::new("/x/y"));
        assert_eq!(place.data, Path::new("/x/y/.tidewheel"));
        assert_eq!(Place::named(Path::new("/x/y/.tidewheel")), place);
    }
}
