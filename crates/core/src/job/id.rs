//! Names that come from outside, as types: one that exists was checked, and may become part of a path.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Why a text is not the name it is given as.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is no {what}: {reason}", shortened(text))]
pub struct IdError {
    /// What was given.
    pub text: String,
    /// What it should have been.
    pub what: &'static str,
    /// What is wrong with it.
    pub reason: &'static str,
}

/// Returns a text that fits into a message, with what could steer a terminal written out.
fn shortened(text: &str) -> String {
    const ENOUGH: usize = 60;
    let mut short: String = text.chars().take(ENOUGH).flat_map(char::escape_debug).collect();
    if text.chars().nth(ENOUGH).is_some() {
        short.push('…');
    }
    short
}

/// Defines a name that is checked when it is made.
macro_rules! name_type {
    ($(#[$meta:meta])* pub $Name:ident, $what:literal, $check:path) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $Name(Arc<str>);

        impl $Name {
            /// Checks a text.
            ///
            /// # Errors
            /// The text is no such name.
            pub fn new(text: &str) -> Result<Self, IdError> {
                match $check(text) {
                    Ok(()) => Ok(Self(Arc::from(text))),
                    Err(reason) => Err(IdError { text: text.to_owned(), what: $what, reason }),
                }
            }

            /// Returns the text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $Name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $Name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($Name), "({})"), self.0)
            }
        }

        impl AsRef<str> for $Name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl std::borrow::Borrow<str> for $Name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl Serialize for $Name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $Name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                Self::new(&text).map_err(serde::de::Error::custom)
            }
        }
    };
}

name_type! {
    /// One job: the name of its directory.
    pub JobId, "job id", check_job
}

name_type! {
    /// One run of a template: `run_` and 32 hexadecimal digits where we made it.
    pub RunId, "run id", check_file_name
}

name_type! {
    /// One node of a template, unique in it.
    pub NodeId, "node id", check_node
}

name_type! {
    /// A short name of a plan, which names files and branches.
    pub Slug, "slug", check_file_name
}

name_type! {
    /// The name of a branch of git.
    pub Branch, "branch name", check_branch
}

impl JobId {
    /// Returns the id of the job that runs a node: what a file name may not have becomes `-`.
    ///
    /// # Errors
    /// The name would be too long.
    pub fn of_node(run: &RunId, node: &NodeId) -> Result<Self, IdError> {
        let word: String =
            node.0.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).collect();
        let word = word.trim_matches('-');
        Self::new(&format!("wf-{run}-{}", if word.is_empty() { "node" } else { word }))
    }
}

impl RunId {
    /// Returns the id of a run whose bits somebody drew.
    #[must_use]
    pub fn of_bits(bits: u128) -> Self {
        Self(Arc::from(format!("run_{bits:032x}")))
    }
}

/// Names longer than this do not fit into a file name with what we add to it.
const MAX_NAME: usize = 200;

/// What stands beside the jobs in their directory, or may one day.
const TAKEN: [&str; 4] = ["runs", "artifacts", "keys", "tmp"];

fn check_job(text: &str) -> Result<(), &'static str> {
    check_file_name(text)?;
    let is_ours =
        ["index.", "scheduler.", "daemon.", "limits."].iter().any(|prefix| text.starts_with(prefix));
    if is_ours || TAKEN.contains(&text) { Err("the name is taken by the scheduler itself") } else { Ok(()) }
}

fn check_file_name(text: &str) -> Result<(), &'static str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if text.is_empty() {
        Err("it is empty")
    } else if text.len() > MAX_NAME {
        Err("it is longer than 200 characters")
    } else if text.starts_with(['.', '-']) {
        Err("it must not begin with a dot or a dash")
    } else if !text.chars().all(is_plain) {
        Err("only letters, digits, `_`, `-` and `.` are allowed")
    } else {
        Ok(())
    }
}

fn check_node(text: &str) -> Result<(), &'static str> {
    const MAX_NODE: usize = 120;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':');
    if text.is_empty() {
        Err("it is empty")
    } else if text.len() > MAX_NODE {
        Err("it is longer than 120 characters")
    } else if !text.chars().all(is_plain) {
        Err("only letters, digits, `_`, `-`, `.`, `/` and `:` are allowed")
    } else {
        Ok(())
    }
}

/// The rules of `git check-ref-format --branch`: also no name that a command line would take for an option, and none
/// that stands for what is checked out.
fn check_branch(text: &str) -> Result<(), &'static str> {
    let is_bad = |c: char| c.is_control() || matches!(c, ' ' | '~' | '^' | ':' | '?' | '*' | '[' | '\\');
    if text.is_empty() {
        Err("it is empty")
    } else if text.len() > MAX_NAME {
        Err("it is longer than 200 characters")
    } else if text.starts_with('-') {
        Err("it must not begin with a dash")
    } else if matches!(text, "HEAD" | "@") {
        Err("it stands for what is checked out")
    } else if text.chars().any(is_bad) {
        Err("it has a blank or a character that git does not allow")
    } else if text.contains("..") || text.contains("@{") || text.contains("//") {
        Err("it has `..`, `//` or `@{`")
    } else if text.split('/').any(|part| part.is_empty() || part.starts_with('.') || part.ends_with(".lock"))
        || text.ends_with('.')
    {
        Err("a part of it is empty, begins with a dot or ends with `.lock`")
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_leave_a_directory_is_no_name() {
        for bad in [
            "",
            ".",
            "..",
            "../x",
            "/x",
            "a/b",
            "a\0",
            "a\nb",
            "\u{1b}[2J",
            "-rf",
            ".git",
            "runs",
            "index.live",
        ] {
            assert!(JobId::new(bad).is_err(), "{bad:?}");
        }
        assert!(JobId::new(&"x".repeat(201)).is_err());
        for good in ["job-1", "wf-run_0a-two", "a.b", "A_1"] {
            assert_eq!(JobId::new(good).unwrap().as_str(), good);
        }
        let error = JobId::new("\u{1b}[2J").unwrap_err().to_string();
        assert_eq!(error, r"`\u{1b}[2J` is no job id: only letters, digits, `_`, `-` and `.` are allowed");
    }

    #[test]
    fn a_job_is_named_after_its_run_and_its_node() {
        let run = RunId::of_bits(0xab);
        let id = |node: &str| JobId::of_node(&run, &NodeId::new(node).unwrap()).unwrap().to_string();
        assert_eq!(id("one"), "wf-run_000000000000000000000000000000ab-one");
        assert_eq!(id("a.b"), id("a-b"));
        assert!(id("...").ends_with("-node"));
    }

    #[test]
    fn branches_are_what_git_takes() {
        for good in ["main", "draft/alpha", "feat-1.2", "HEAD/x", "head", "a@b", "x/-y"] {
            assert!(Branch::new(good).is_ok(), "{good}");
        }
        for bad in [
            "", "-x", "-", "a b", "a..b", "a//b", "/a", "a/", "a/.b", ".a", "x.lock", "x.lock/y", "a@{1}",
            "a\nb", "@", "HEAD", "a.", "a~1", "a^", "a:b", "a?", "a*", "a[b", "a\\b", "a\u{7f}",
        ] {
            assert!(Branch::new(bad).is_err(), "{bad:?}");
        }
    }
}
