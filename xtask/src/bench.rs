//! `cargo xtask bench`: the benchmarks of core, store, runner and jobs, then peers on the same graphs; hides no output,
//! a number without its spread says little.
#![expect(clippy::print_stderr, reason = "telling what was not measured is the job of this binary")]

use std::ffi::OsString;

use crate::command::{Command, Failure};
use crate::report;
use crate::step::Step;

/// Runs the benchmarks of core, store, runner and jobs, and the peers.
pub(crate) const COMMAND: Command = Command {
    name: "bench",
    arguments: "[FILTER…]",
    about: "Runs the benchmarks and the peers; FILTER chooses among the cases, \"jobs\" the jobs, \"peers\" the peers; \"report [--quick] [--from-last]\" writes docs/benchmarks.md",
    run,
};

/// What else runs the graphs of our benchmarks. Not a member of the workspace: what it builds on is not ours.
const PEER: &str = "peers/dagrs/Cargo.toml";
/// The word that chooses the peers.
pub(crate) const PEERS: &str = "peers";
/// The word that asks for the page of figures.
const REPORT: &str = "report";
/// The word that chooses the benchmarks of jobs, which are targets of their own: nothing else is built for them.
const JOBS: &str = "jobs";

fn run(arguments: &[OsString]) -> Result<(), Failure> {
    if let Some((word, options)) = arguments.split_first()
        && word == REPORT
    {
        return report::run(options);
    }
    for step in steps(arguments) {
        step.run()?;
    }
    if arguments.is_empty() || arguments.iter().any(|word| word == PEERS) {
        measure_peers()?;
    }
    Ok(())
}

/// Returns a run of our benchmarks. All packages are named each time, since what is built depends on them.
pub(crate) fn ours(name: &'static str) -> Step {
    Step::cargo(name, ["bench", "-p", "tidewheel-core", "-p", "tidewheel-store"]).with([
        "-p",
        "tidewheel-runner",
        "-p",
        "tidewheel-cli",
    ])
}

/// Returns what to run of ours.
fn steps(arguments: &[OsString]) -> Vec<Step> {
    let all = ours("benchmarks").with(["--benches"]);
    if arguments.is_empty() {
        return vec![all];
    }
    let one = |word: &OsString| {
        if word == JOBS {
            let jobs = ["bench", "-p", "tidewheel-store", "-p", "tidewheel-cli", "--bench", "jobs"];
            Step::cargo("benchmarks of jobs", jobs)
        } else {
            // Criterion takes one filter at a time.
            all.clone().with(["--"]).with([word])
        }
    };
    arguments.iter().filter(|word| *word != PEERS).map(one).collect()
}

/// Measures the peers, if what they build on is here or can be fetched: a machine without the registry has its own
/// numbers all the same.
fn measure_peers() -> Result<(), Failure> {
    if let Err(error) = peers_fetched().run() {
        eprintln!("==> peers: not measured, since the registry cannot be reached\n{error}");
        return Ok(());
    }
    peers_measured().run()?;
    Ok(())
}

/// Returns the step that gets what the peers build on.
pub(crate) fn peers_fetched() -> Step {
    Step::cargo("peers, fetch", ["fetch", "--locked", "--manifest-path", PEER])
}

/// Returns the step that runs the peers.
pub(crate) fn peers_measured() -> Step {
    Step::cargo("peers", ["run", "--release", "--locked", "--offline", "--manifest-path", PEER])
        .with(["--target-dir", "target/peers"])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(words: &[&str]) -> Vec<String> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        steps(&words).iter().map(Step::to_string).collect()
    }

    #[test]
    fn everything_is_measured_unless_a_word_chooses() {
        let all =
            "cargo bench -p tidewheel-core -p tidewheel-store -p tidewheel-runner -p tidewheel-cli --benches";
        assert_eq!(shown(&[]), [all]);
        assert_eq!(shown(&["decide", "timers"]), [format!("{all} -- decide"), format!("{all} -- timers")]);
        assert!(shown(&["peers"]).is_empty());
    }

    #[test]
    fn jobs_are_measured_alone() {
        assert_eq!(
            shown(&["jobs", "peers"]),
            ["cargo bench -p tidewheel-store -p tidewheel-cli --bench jobs"]
        );
    }
}
