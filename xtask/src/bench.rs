//! `cargo xtask bench`: the benchmarks of core and runner; hides no output, a number without its spread says little.

use std::ffi::OsString;

use crate::command::{Command, Failure};
use crate::step::Step;

/// Runs the benchmarks of core and runner.
pub(crate) const COMMAND: Command = Command {
    name: "bench",
    arguments: "[FILTER…]",
    about: "Runs the benchmarks of core and runner; FILTER chooses among those of criterion",
    run,
};

fn run(arguments: &[OsString]) -> Result<(), Failure> {
    Step::cargo("benchmarks", ["bench", "-p", "tidewheel-core", "-p", "tidewheel-runner", "--benches"])
        .with(["--"])
        .with(arguments)
        .run()?;
    Ok(())
}
