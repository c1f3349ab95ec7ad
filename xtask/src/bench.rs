//! `cargo xtask bench`: the benchmarks of core, store and runner, then peers on the same graphs; hides no output, a number
//! without its spread says little.
#![expect(clippy::print_stderr, reason = "telling what was not measured is the job of this binary")]

use std::ffi::OsString;

use crate::command::{Command, Failure};
use crate::step::Step;

/// Runs the benchmarks of core, store and runner, and the peers.
pub(crate) const COMMAND: Command = Command {
    name: "bench",
    arguments: "[FILTER…]",
    about: "Runs the benchmarks and the peers; FILTER chooses among the cases, \"peers\" the peers",
    run,
};

/// What else runs the graphs of our benchmarks. Not a member of the workspace: what it builds on is not ours.
const PEER: &str = "peers/dagrs/Cargo.toml";
/// The word that chooses the peers.
const PEERS: &str = "peers";

fn run(arguments: &[OsString]) -> Result<(), Failure> {
    let (peers, filters): (Vec<&OsString>, Vec<&OsString>) =
        arguments.iter().partition(|word| word.as_os_str() == PEERS);
    let benchmarks = Step::cargo(
        "benchmarks",
        ["bench", "-p", "tidewheel-core", "-p", "tidewheel-store", "-p", "tidewheel-runner", "--benches"],
    );
    if arguments.is_empty() {
        benchmarks.run()?;
    } else {
        // Criterion takes one filter at a time.
        let benchmarks = benchmarks.with(["--"]);
        for filter in filters {
            benchmarks.clone().with([filter]).run()?;
        }
    }
    if arguments.is_empty() || !peers.is_empty() {
        measure_peers()?;
    }
    Ok(())
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
