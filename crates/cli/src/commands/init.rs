//! `tidewheel init`: makes the files that a repository begins with, or looks whether they are in order. What is there
//! is never overwritten.

mod check;
mod files;

use clap::Args;
use serde_json::json;

use crate::commands::policy::Format;
use crate::error::Ending;
use crate::exit::Exit;
use crate::jobs::{DirArguments, Place};
use crate::output;
use crate::view::block::{block, named};
use files::{Made, Wanted};

/// Make the files that a repository begins with
///
/// A configuration `.tidewheel/config.toml`, a first flow
/// `.tidewheel/workflows/hello.toml`, and lines in `.gitignore` for what changes
/// all the time. What is there already is kept as it is.
///
/// With --stages there are four flows more, which lead from a spec to a merged
/// branch with the help of an agent: `draft`, `approve`, `merge`, and `develop`,
/// which is all three. They need git, and an agent in the configuration.
///
/// With --check nothing is made: the command ends with 0 if all of it is there
/// and the configuration and every template in `.tidewheel/workflows/` are in
/// order, and with 1 if not. The first flow may be replaced by others.
///
/// Example:
///
///   $ tidewheel init
///   $ tidewheel run hello --follow
///
///   $ tidewheel init --stages
///   $ tidewheel run draft alpha "Say hello in three languages." --follow
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// Make the flows that lead from a spec to a merged branch, too
    #[arg(long)]
    stages: bool,
    /// Look whether all is there and in order, and make nothing
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    dir: DirArguments,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The version of what `--format json` prints.
const VERSION: u32 = 1;

/// Makes the files, or looks at them.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Ending> {
    let place = Place::find(&arguments.dir)?;
    let wanted = if arguments.stages { Wanted::Stages } else { Wanted::First };
    if arguments.check {
        return check::run(&place, wanted, arguments.format);
    }
    let Made { created, changed, kept } = files::make(&place, wanted)?;
    let is_new = !created.is_empty() || !changed.is_empty();
    let next = next(&arguments.dir);
    match arguments.format {
        Format::Json => output::json(&json!({
            "version": VERSION,
            "outcome": if is_new { "initialised" } else { "already_initialised" },
            "root": place.root.display().to_string(),
            "created": created,
            "changed": changed,
            "kept": kept,
            "next": { "run": next },
        }))?,
        Format::Text => {
            let outcome = if is_new { "Initialised" } else { "Already initialised, nothing changed" };
            let mut rows = vec![("Outcome", outcome.to_owned()), ("Root", place.root.display().to_string())];
            for (label, files) in [("Created", created), ("Changed", changed), ("Kept", kept)] {
                rows.extend((!files.is_empty()).then(|| (label, named(&files))));
            }
            rows.push(("Next", next));
            output::text(&block(&rows, ""))?;
        }
    }
    Ok(Exit::Succeeded)
}

/// Returns what to do next, as it can be typed.
fn next(arguments: &DirArguments) -> String {
    let run = "tidewheel run hello --follow";
    match &arguments.dir {
        None => run.to_owned(),
        Some(dir) => format!("{run} --dir {}", quoted(&dir.display().to_string())),
    }
}

/// Returns a word as a shell reads it back.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+,:@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_where_a_shell_would_break_it() {
        assert_eq!(quoted("a/b-c.d"), "a/b-c.d");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
