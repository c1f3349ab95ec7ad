//! The files that a repository begins with. Each is made as a whole or not at all, and none is overwritten.

use std::borrow::Cow;
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tidewheel_core::job::Branch;
use tidewheel_runner::git::Repository;

use crate::error::{Code, CommandError, cause};
use crate::jobs::Place;

/// What became of the files, by their names from the root.
#[derive(Debug, Default)]
pub(super) struct Made {
    pub(super) created: Vec<&'static str>,
    pub(super) changed: Vec<&'static str>,
    pub(super) kept: Vec<&'static str>,
}

/// The configuration.
pub(super) const CONFIG: &str = ".tidewheel/config.toml";
/// The first flow.
pub(super) const HELLO: &str = ".tidewheel/workflows/hello.toml";
/// What git is not to look at.
pub(super) const IGNORE: &str = ".gitignore";

/// What every repository begins with.
const TEXTS: [(&str, &str); 2] = [(CONFIG, include_str!("config.toml")), (HELLO, include_str!("hello.toml"))];

/// The stages from a spec to a merged branch.
const STAGES: [(&str, &str); 4] = [
    (".tidewheel/workflows/draft.toml", include_str!("stages/draft.toml")),
    (".tidewheel/workflows/approve.toml", include_str!("stages/approve.toml")),
    (".tidewheel/workflows/merge.toml", include_str!("stages/merge.toml")),
    (".tidewheel/workflows/develop.toml", include_str!("stages/develop.toml")),
];

/// Which files are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// What every repository begins with.
    First,
    /// The stages, too.
    Stages,
}

impl Wanted {
    fn stages(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::First => &[],
            Self::Stages => &STAGES,
        }
    }
}

/// What changes all the time.
const IGNORED: [&str; 4] =
    [".tidewheel/jobs/", ".tidewheel/sessions/", ".tidewheel/tmp/", ".tidewheel/tmp-worktrees/"];

/// Makes what is not there.
pub(super) fn make(place: &Place, wanted: Wanted) -> Result<Made, CommandError> {
    let mut made = Made::default();
    let texts = || TEXTS.iter().chain(wanted.stages()).copied();
    // What cannot be made is found before anything is made.
    for (name, _) in texts() {
        is_there(&place.root, name)?;
    }
    let ignored = ignored(&place.root)?;
    let branch = Repository::at(&place.root).current_branch().ok().flatten();
    let branch = branch.and_then(|branch| Branch::new(&branch).ok());
    for (name, text) in texts() {
        if is_there(&place.root, name)? {
            made.kept.push(name);
            continue;
        }
        let text = for_branch(text, branch.as_ref());
        let is_new = create(&place.root.join(name), text.as_bytes()).map_err(|error| fail(name, &error))?;
        if is_new { &mut made.created } else { &mut made.kept }.push(name);
    }
    match ignored {
        Ignored::NotNeeded => {}
        Ignored::File { text, missing } if missing.is_empty() => {
            debug_assert!(!text.is_empty(), "a file without a line lacks lines");
            made.kept.push(IGNORE);
        }
        Ignored::File { text, missing } => {
            let mut file = OpenOptions::new().append(true).open(place.root.join(IGNORE));
            let added = file.as_mut().map_err(|error| fail(IGNORE, error))?;
            added.write_all(&addition(&text, &missing)).map_err(|error| fail(IGNORE, &error))?;
            made.changed.push(IGNORE);
        }
        Ignored::NoFile => {
            let text = addition(b"", &IGNORED);
            let is_new = create(&place.root.join(IGNORE), &text).map_err(|error| fail(IGNORE, &error))?;
            if is_new { &mut made.created } else { &mut made.kept }.push(IGNORE);
        }
    }
    Ok(made)
}

/// Returns a stage whose target is the branch that is checked out, if one is.
fn for_branch(text: &'static str, branch: Option<&Branch>) -> Cow<'static, str> {
    const TARGET: &str = "\ntarget = \"main\"\n";
    match branch {
        // No branch has a character that has to be escaped but for the quote.
        Some(branch) if branch.as_str() != "main" && text.contains(TARGET) => {
            let branch = branch.as_str().replace('"', "\\\"");
            Cow::Owned(text.replace(TARGET, &format!("\ntarget = \"{branch}\"\n")))
        }
        Some(_) | None => Cow::Borrowed(text),
    }
}

/// Returns what is not there: names of files, and the lines of a file that lack.
pub(super) fn missing(place: &Place, wanted: Wanted) -> Result<Vec<String>, CommandError> {
    let mut missing = Vec::new();
    for name in [CONFIG].into_iter().chain(wanted.stages().iter().map(|(name, _)| *name)) {
        if !is_there(&place.root, name)? {
            missing.push(name.to_owned());
        }
    }
    match ignored(&place.root)? {
        Ignored::NotNeeded => {}
        Ignored::NoFile => missing.push(IGNORE.to_owned()),
        Ignored::File { missing: lines, .. } => {
            missing.extend(lines.iter().map(|line| format!("{IGNORE}: {line}")));
        }
    }
    Ok(missing)
}

/// Tells whether a file is there; something else of that name is an error.
fn is_there(root: &Path, name: &'static str) -> Result<bool, CommandError> {
    let path = root.join(name);
    match fs::metadata(&path) {
        Ok(metadata) if metadata.is_file() => Ok(true),
        Ok(_) => Err(CommandError::new(Code::JobsUnavailable, format!("`{name}` is no file."))
            .hint("Move it away, or give another directory with --dir.")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // A link to nowhere cannot be replaced without overwriting it.
            if fs::symlink_metadata(&path).is_ok() { Err(fail(name, &error)) } else { Ok(false) }
        }
        Err(error) => Err(fail(name, &error)),
    }
}

/// How a repository ignores what changes all the time.
enum Ignored {
    /// Nobody asks: there is no repository.
    NotNeeded,
    NoFile,
    File {
        text: Vec<u8>,
        missing: Vec<&'static str>,
    },
}

fn ignored(root: &Path) -> Result<Ignored, CommandError> {
    if is_there(root, IGNORE)? {
        let text = fs::read(root.join(IGNORE)).map_err(|error| fail(IGNORE, &error))?;
        let missing = IGNORED.into_iter().filter(|line| !is_ignored(&text, line)).collect();
        return Ok(Ignored::File { text, missing });
    }
    let is_repository = root.ancestors().any(|above| above.join(".git").exists());
    Ok(if is_repository { Ignored::NoFile } else { Ignored::NotNeeded })
}

/// Tells whether a file says something about a directory: that very one, or the whole data directory. Whoever takes
/// it out again with `!` has decided, too.
fn is_ignored(text: &[u8], directory: &str) -> bool {
    let bare = |line: &str| {
        let line = line.trim_start_matches('\u{feff}').trim_end();
        let line = line.strip_prefix('!').unwrap_or(line);
        let line = line.strip_prefix("**/").or_else(|| line.strip_prefix('/')).unwrap_or(line);
        line.trim_end_matches('*').trim_end_matches('/').to_owned()
    };
    let wanted = bare(directory);
    let whole = wanted.split('/').next().unwrap_or_default().to_owned();
    text.split(|byte| *byte == b'\n')
        .filter_map(|line| std::str::from_utf8(line).ok())
        .any(|line| [&wanted, &whole].contains(&&bare(line)))
}

/// Returns what is to be added to a file, with the line ends that it has.
fn addition(text: &[u8], lines: &[&str]) -> Vec<u8> {
    let has_returns = text.windows(2).any(|pair| pair == b"\r\n");
    let end = if has_returns { "\r\n" } else { "\n" };
    let mut added = String::new();
    if !text.is_empty() {
        if !text.ends_with(b"\n") {
            added.push_str(end);
        }
        added.push_str(end);
    }
    for line in ["# What Tidewheel writes all the time."].iter().chain(lines) {
        added.push_str(line);
        added.push_str(end);
    }
    added.into_bytes()
}

/// Makes a file with the directories above it, and tells whether it was made: another process may have been first.
fn create(path: &Path, text: &[u8]) -> io::Result<bool> {
    let directory = path.parent().unwrap_or(path);
    fs::create_dir_all(directory)?;
    // The umask takes away what it takes away from any file; a temporary one would be for its owner alone.
    let mut file =
        tempfile::Builder::new().permissions(Permissions::from_mode(0o666)).tempfile_in(directory)?;
    file.write_all(text)?;
    file.as_file().sync_all()?;
    match file.persist_noclobber(path) {
        Ok(_) => Ok(true),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error.error),
    }
}

fn fail(name: &str, error: &io::Error) -> CommandError {
    CommandError::new(Code::JobsUnavailable, format!("`{name}` cannot be used: {}.", cause(error)))
        .after(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_ignored_by_itself_or_with_the_whole() {
        for line in [
            ".tidewheel/jobs/",
            "/.tidewheel/jobs",
            "**/.tidewheel/jobs/",
            ".tidewheel/jobs/  \r",
            "\u{feff}.tidewheel",
            ".tidewheel/*",
            "!.tidewheel/jobs/",
        ] {
            assert!(is_ignored(format!("x\n{line}\ny").as_bytes(), ".tidewheel/jobs/"), "{line:?}");
        }
        for line in ["# .tidewheel/jobs/", ".tidewheel/jobs/x", "jobs/", ".tidewheel/tmp/", ".tide", ""] {
            assert!(!is_ignored(line.as_bytes(), ".tidewheel/jobs/"), "{line:?}");
        }
        assert!(is_ignored(b"\xff\n.tidewheel/jobs/\n", ".tidewheel/jobs/"));
    }

    #[test]
    fn what_is_added_has_the_line_ends_of_the_file() {
        let added = |text: &[u8]| String::from_utf8(addition(text, &["a/"])).unwrap();
        let comment = "# What Tidewheel writes all the time.";
        assert_eq!(added(b""), format!("{comment}\na/\n"));
        assert_eq!(added(b"x\n"), format!("\n{comment}\na/\n"));
        assert_eq!(added(b"x"), format!("\n\n{comment}\na/\n"));
        assert_eq!(added(b"x\r\ny"), format!("\r\n\r\n{comment}\r\na/\r\n"));
    }
}
