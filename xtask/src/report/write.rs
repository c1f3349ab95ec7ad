//! The command itself: measures unless it is told not to, and writes the page and its plots; knows nothing of what is
//! on them.
#![expect(clippy::print_stderr, reason = "telling what was written is the job of this binary")]

use std::ffi::OsString;
use std::path::Path;

use super::conditions::Conditions;
use super::figures::Figures;
use super::layout::SECTIONS;
use super::measure::{Kept, measure};
use super::page::Report;
use crate::bench;
use crate::command::Failure;
use crate::step::{Seconds, workspace_root};

/// Measures and writes `docs/benchmarks.md`.
pub(crate) fn run(arguments: &[OsString]) -> Result<(), Failure> {
    let options = Options::parse(arguments)?;
    let kept = Kept::here();
    let conditions = if options.is_from_last {
        let path = kept.conditions();
        let found = Conditions::kept(&path).map_err(|source| Failure::File { path, source })?;
        found.ok_or(Failure::NothingMeasured)?
    } else {
        measure(&kept, options.is_quick)?
    };
    let figures = Figures::read(&kept.lines(), &kept.criterion())
        .map_err(|source| Failure::File { path: kept.folder.clone(), source })?;
    write(&workspace_root(), &Report { sections: &SECTIONS, figures: &figures, conditions: &conditions })?;
    let took = Seconds(std::time::Duration::from_secs_f64(conditions.seconds()));
    eprintln!("==> report: {PAGE} is written, from {} figures in {took}", figures.measured.len());
    match missing(&conditions) {
        missing if missing.is_empty() => Ok(()),
        missing => Err(Failure::Missing(missing)),
    }
}

/// The page, in the root of the workspace.
const PAGE: &str = "docs/benchmarks.md";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Options {
    is_quick: bool,
    is_from_last: bool,
}

impl Options {
    fn parse(arguments: &[OsString]) -> Result<Self, Failure> {
        let mut options = Self::default();
        for argument in arguments {
            match argument.to_str() {
                Some("--quick") if !options.is_from_last => options.is_quick = true,
                // Nothing is measured then, so that it could not be quicker.
                Some("--from-last") if !options.is_quick => options.is_from_last = true,
                Some(_) | None => {
                    let argument = argument.clone();
                    return Err(Failure::UnexpectedArgument { command: "bench report", argument });
                }
            }
        }
        Ok(options)
    }
}

/// Writes the page and its plots.
fn write(root: &Path, report: &Report<'_>) -> Result<(), Failure> {
    for (name, text) in report.plots() {
        put(&root.join("docs/images").join(name), &text)?;
    }
    put(&root.join(PAGE), &report.page())
}

fn put(path: &Path, text: &str) -> Result<(), Failure> {
    let folder = path.parent().unwrap_or(path);
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(path, text));
    written.map_err(|source| Failure::File { path: path.to_owned(), source })
}

/// Returns the steps that did not succeed. Peers that cannot be fetched are not our failure.
fn missing(conditions: &Conditions) -> Vec<String> {
    let is_ours = |name: &str| !name.starts_with(bench::PEERS);
    let steps = conditions.steps.iter().filter(|step| is_ours(&step.name));
    steps.filter_map(|step| Some(format!("{}, {}", step.name, step.trouble.as_ref()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::conditions::Taken;
    use super::*;

    fn parsed(words: &[&str]) -> Result<Options, Failure> {
        Options::parse(&words.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn options_choose_and_what_has_no_effect_is_refused() {
        assert_eq!(parsed(&[]).unwrap(), Options::default());
        assert!(parsed(&["--quick"]).unwrap().is_quick);
        assert!(parsed(&["--from-last"]).unwrap().is_from_last);
        for wrong in [&["--fast"][..], &["--quick", "--from-last"], &["--from-last", "--quick"], &["growth"]]
        {
            assert!(parsed(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_benchmark_that_fails_is_told_and_peers_that_are_not_there_are_not() {
        let step = |name: &str, trouble: Option<&str>| Taken {
            name: name.to_owned(),
            command: String::new(),
            seconds: 1.0,
            trouble: trouble.map(str::to_owned),
        };
        let steps = vec![
            step("growth", None),
            step("append", Some("failed after 1.0 s")),
            step("peers, fetch", Some("failed")),
            step("peers", Some("left out")),
        ];
        let conditions = Conditions { steps, ..Conditions::default() };
        assert_eq!(missing(&conditions), ["append, failed after 1.0 s"]);
    }
}
