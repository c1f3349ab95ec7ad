//! `cargo xtask bench`: the benchmarks of core, store, runner and jobs, then peers on the same graphs; hides no output,
//! a number without its spread says little.
#![expect(clippy::print_stderr, reason = "telling what was not measured is the job of this binary")]

use std::ffi::OsString;

use crate::command::{Command, Failure};
use crate::step::Step;

/// Runs the benchmarks of core, store, runner and jobs, and the peers.
pub(crate) const COMMAND: Command = Command {
    name: "bench",
    arguments: "[FILTER…]",
    about: "Runs the benchmarks and the peers; FILTER chooses among the cases, \"jobs\" the jobs, \"peers\" the peers",
    run,
};

/// What else runs the graphs of our benchmarks. Not a member of the workspace: what it builds on is not ours.
const PEER: &str = "peers/dagrs/Cargo.toml";
/// The word that chooses the peers.
const PEERS: &str = "peers";
/// The word that chooses the benchmarks of jobs, which are targets of their own: nothing else is built for them.
const JOBS: &str = "jobs";

fn run(arguments: &[OsString]) -> Result<(), Failure> {
    for step in steps(arguments) {
        step.run()?;
    }
    if arguments.is_empty() || arguments.iter().any(|word| word == PEERS) {
        measure_peers()?;
    }
    Ok(())
}

/// Returns what to run of ours.
fn steps(arguments: &[OsString]) -> Vec<Step> {
    let all = Step::cargo("benchmarks", ["bench", "-p", "tidewheel-core", "-p", "tidewheel-store"]).with([
        "-p",
        "tidewheel-runner",
        "-p",
        "tidewheel-cli",
        "--benches",
    ]);
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
    let fetched = Step::cargo("peers, fetch", ["fetch", "--locked", "--manifest-path", PEER]).run();
    if let Err(error) = fetched {
        eprintln!("==> peers: not measured, since the registry cannot be reached\n{error}");
        return Ok(());
    }
    Step::cargo("peers", ["run", "--release", "--locked", "--offline", "--manifest-path", PEER])
        .with(["--target-dir", "target/peers"])
        .run()?;
    Ok(())
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
