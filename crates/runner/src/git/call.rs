//! One call of git: what it is asked, and an environment in which nothing points it elsewhere and nothing asks a
//! person. It runs nothing.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::process::Program;

/// What git is asked, and what it reads.
#[derive(Clone, Debug, Default)]
pub struct Call {
    arguments: Vec<OsString>,
    index: Option<PathBuf>,
    stdin: Option<Vec<u8>>,
}

/// What would point git to another repository, another index or other settings, or would let it read our arguments
/// otherwise. Whoever starts us from a hook or an alias of git has some of them. Which settings a person has, and
/// who commits, is left as it is.
pub(crate) const ELSEWHERE: &[&str] = &[
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_ATTR_SOURCE",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DEFAULT_HASH",
    "GIT_DEFAULT_REF_FORMAT",
    "GIT_DIFF_OPTS",
    "GIT_DIR",
    "GIT_EXTERNAL_DIFF",
    "GIT_GLOB_PATHSPECS",
    "GIT_GRAFT_FILE",
    "GIT_ICASE_PATHSPECS",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INDEX_VERSION",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_LITERAL_PATHSPECS",
    "GIT_NAMESPACE",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_REFLOG_ACTION",
    "GIT_REF_STORAGE_FORMAT",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// What nobody waits for: an editor, a password, a pager.
const UNATTENDED: [(&str, &str); 5] = [
    ("GIT_EDITOR", ":"),
    ("GIT_SEQUENCE_EDITOR", ":"),
    ("GIT_MERGE_AUTOEDIT", "no"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_PAGER", "cat"),
];

/// What would stay behind, and be ended in the middle of its work with the job that it is not a part of.
const ALONE: [&str; 6] = ["-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "core.fsmonitor=false"];

impl Call {
    /// Returns a call with these arguments.
    pub fn new<A: Into<OsString>>(arguments: impl IntoIterator<Item = A>) -> Self {
        Self { arguments: arguments.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Lets it work with another index than that of the working tree.
    #[must_use]
    pub fn index(mut self, path: &Path) -> Self {
        self.index = Some(path.to_owned());
        self
    }

    /// Gives it something to read.
    #[must_use]
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(bytes.into());
        self
    }

    /// Returns what it reads.
    pub(super) fn input(&self) -> Option<&[u8]> {
        self.stdin.as_deref()
    }

    /// Returns the command that is asked, for messages.
    pub(super) fn name(&self) -> String {
        let words = self.arguments.iter().take_while(|word| !word.as_encoded_bytes().starts_with(b"-"));
        let words: Vec<_> = words.take(2).map(|word| word.to_string_lossy()).collect();
        // Only some commands have a second word that is a part of their name.
        if words.first().is_some_and(|word| word == "worktree") {
            words.join(" ")
        } else {
            words.first().map(|word| word.to_string()).unwrap_or_default()
        }
    }

    /// Returns the program that asks it at a directory.
    #[must_use]
    pub fn program(&self, at: &Path) -> Program {
        let words = ALONE.iter().map(OsStr::new).chain(self.arguments.iter().map(OsString::as_os_str));
        let argv = std::iter::once(OsStr::new("git")).chain(words).map(OsStr::to_owned);
        let mut program = Program::new(argv).current_dir(at);
        for name in ELSEWHERE {
            program = program.env_remove(name);
        }
        for (name, value) in UNATTENDED {
            program = program.env(name, value);
        }
        match &self.index {
            Some(index) => program.env("GIT_INDEX_FILE", index),
            None => program,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_points_git_elsewhere_and_the_identity_stays() {
        let program = Call::new(["status"]).index(Path::new("/tmp/index")).program(Path::new("/r"));
        let unset: Vec<_> = program.unset().map(|name| name.to_str().unwrap()).collect();
        for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_CONFIG_COUNT", "GIT_NAMESPACE"] {
            assert!(unset.contains(&name), "{name}");
        }
        for name in ["GIT_AUTHOR_NAME", "GIT_COMMITTER_EMAIL", "GIT_CONFIG_GLOBAL"] {
            assert!(!unset.contains(&name), "{name}");
        }
        // What is given counts before what is taken away.
        assert!(program.vars().any(|(name, value)| name == "GIT_INDEX_FILE" && value == "/tmp/index"));
        assert_eq!(program.directory(), Some(Path::new("/r")));
    }

    #[test]
    fn messages_name_the_command() {
        assert_eq!(Call::new(["worktree", "add", "--quiet"]).name(), "worktree add");
        assert_eq!(Call::new(["rev-parse", "main"]).name(), "rev-parse");
    }
}
