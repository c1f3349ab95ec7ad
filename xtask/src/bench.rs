//! `cargo xtask bench`: the benchmarks of core; hides no output, a number without its spread says little.

use std::ffi::OsString;

use crate::command::{Command, Failure};
use crate::step::Step;

/// Runs the benchmarks of core.
pub(crate) const COMMAND: Command = Command {
    name: "bench",
    arguments: "[FILTER…]",
    about: "Runs the benchmarks of core whose name contains FILTER",
    run,
};

fn run(arguments: &[OsString]) -> Result<(), Failure> {
    Step::cargo("benchmarks", ["bench", "-p", "tidewheel-core", "--benches"])
        .with(["--"])
        .with(arguments)
        .run()?;
    Ok(())
}
