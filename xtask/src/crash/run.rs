//! The command itself: runs the suites in turn, keeps what those counted that passed, shows the table and writes the page.
#![expect(clippy::print_stderr, reason = "telling what held is the job of this binary")]

use std::ffi::{OsStr, OsString};
use std::io;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::page::{PAGE, Run, page, table_for_people};
use super::suites::{Suite, suites};
use crate::command::{Command, Failure};
use crate::report::{Conditions, Figures, Taken};
use crate::step::workspace_root;

/// Kills, stops and starves everything at many moments, and checks what survives.
pub(crate) const COMMAND: Command = Command {
    name: "crash",
    arguments: "[COUNT] [SUITE…]",
    about: "Runs the long crash suites, or those that are named, with COUNT kills each where there is a choice, and writes docs/reliability.md",
    run,
};

fn run(arguments: &[OsString]) -> Result<(), Failure> {
    let suites = chosen(arguments)?;
    let kept = Kept { folder: workspace_root().join("target/crash-report") };
    let mut failed = Vec::new();
    let mut has_passed = false;
    for suite in suites {
        match kept.take(&suite)? {
            None => has_passed = true,
            Some(why) => failed.push(format!("{}, {why}", suite.name)),
        }
    }
    if has_passed {
        let runs = kept.runs()?;
        eprint!("{}", table_for_people(&runs));
        let path = workspace_root().join(PAGE);
        std::fs::write(&path, page(&runs)).map_err(|source| Failure::File { path, source })?;
        eprintln!("==> crash: {PAGE} is written");
    }
    if failed.is_empty() { Ok(()) } else { Err(Failure::Crashed(failed)) }
}

/// Returns the suites that are asked for, all if none is named.
fn chosen(arguments: &[OsString]) -> Result<Vec<Suite>, Failure> {
    let (count, names) = match arguments.split_first() {
        Some((first, rest)) if !is_suite(first) => (Some(parse_count(first)?), rest),
        _ => (None, arguments),
    };
    if let Some(argument) = names.iter().find(|name| !is_suite(name)) {
        return Err(Failure::UnexpectedArgument { command: COMMAND.name, argument: argument.clone() });
    }
    let is_wanted = |suite: &Suite| names.is_empty() || names.iter().any(|name| name == suite.name);
    Ok(suites(count).into_iter().filter(is_wanted).collect())
}

fn is_suite(word: &OsString) -> bool {
    suites(None).iter().any(|suite| word == suite.name)
}

/// Reads a number of kills; zero is refused, since it would prove nothing and still pass.
fn parse_count(argument: &OsStr) -> Result<NonZeroU32, Failure> {
    argument
        .to_str()
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| Failure::NotACount(argument.to_owned()))
}

/// Where the last good run of each suite is kept, so that a run of one suite leaves what is known of the others.
struct Kept {
    folder: PathBuf,
}

impl Kept {
    fn conditions(&self, suite: &str) -> PathBuf {
        self.folder.join(format!("{suite}.json"))
    }

    fn figures(&self, suite: &str) -> PathBuf {
        self.folder.join(format!("{suite}.jsonl"))
    }

    /// Runs a suite and keeps what it counted if it passes; returns in a few words why it did not.
    fn take(&self, suite: &Suite) -> Result<Option<String>, Failure> {
        let fail = |path: &Path, source: io::Error| Failure::File { path: path.to_owned(), source };
        std::fs::create_dir_all(&self.folder).map_err(|error| fail(&self.folder, error))?;
        let fresh = self.folder.join(format!("{}.jsonl.new", suite.name));
        match std::fs::remove_file(&fresh) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fail(&fresh, error)),
            Ok(()) | Err(_) => {}
        }
        let mut conditions = Conditions::now(false);
        let began = Instant::now();
        let step = suite.step.clone().variable("TIDEWHEEL_BENCH_FILE", fresh.as_os_str().to_owned());
        if let Err(error) = step.run() {
            eprintln!("==> {}: {error}", suite.name);
            return Ok(Some(error.in_short()));
        }
        let (name, command) = (suite.name.to_owned(), suite.step.to_string());
        let seconds = began.elapsed().as_secs_f64();
        conditions.steps.push(Taken { name, command, seconds, trouble: None });
        // A suite that counts nothing has written nothing.
        let figures = std::fs::read(&fresh).unwrap_or_default();
        let path = self.figures(suite.name);
        std::fs::write(&path, figures).map_err(|error| fail(&path, error))?;
        let path = self.conditions(suite.name);
        conditions.keep(&path).map_err(|error| fail(&path, error))?;
        Ok(None)
    }

    /// Returns what is kept, in the order of the suites.
    fn runs(&self) -> Result<Vec<Run>, Failure> {
        let mut runs = Vec::new();
        for suite in suites(None) {
            let path = self.conditions(suite.name);
            let kept = Conditions::kept(&path).map_err(|source| Failure::File { path, source })?;
            let Some(conditions) = kept else { continue };
            let path = self.figures(suite.name);
            let figures = Figures::read(&path, &self.folder.join("none"));
            let figures = figures.map_err(|source| Failure::File { path, source })?;
            runs.push(Run { suite: suite.name, conditions, figures });
        }
        Ok(runs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(words: &[&str]) -> Result<Vec<&'static str>, Failure> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        chosen(&words).map(|suites| suites.iter().map(|suite| suite.name).collect())
    }

    #[test]
    fn a_count_is_a_number_of_at_least_one() {
        assert_eq!(parse_count(OsStr::new("20")).unwrap().get(), 20);
        for wrong in ["0", "-1", "many", ""] {
            assert!(parse_count(OsStr::new(wrong)).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn suites_are_chosen_by_their_names_and_all_if_none_is_named() {
        assert_eq!(names(&["20", "power", "calls"]).unwrap(), ["calls", "power"]);
        assert_eq!(names(&["git"]).unwrap(), ["git"]);
        assert_eq!(names(&[]).unwrap().len(), suites(None).len());
        assert_eq!(names(&["7"]).unwrap().len(), suites(None).len());
        assert!(names(&["7", "gti"]).is_err() && names(&["gti"]).is_err());
    }

    #[test]
    fn what_is_kept_comes_back_and_what_was_never_run_is_not_there() {
        let folder = std::env::temp_dir().join(format!("xtask-crash-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let kept = Kept { folder: folder.clone() };
        let conditions = Conditions { began: 7, ..Conditions::default() };
        conditions.keep(&kept.conditions("power")).unwrap();
        let line = r#"{"id":"power failures over jobs","unit":"count","median":20000,"samples":1}"#;
        std::fs::write(kept.figures("power"), line).unwrap();
        let runs = kept.runs().unwrap();
        std::fs::remove_dir_all(folder).unwrap();
        assert_eq!(runs.iter().map(|run| run.suite).collect::<Vec<_>>(), ["power"]);
        assert_eq!(runs[0].figures.measured["power failures over jobs"].median, 20_000.0);
    }
}
