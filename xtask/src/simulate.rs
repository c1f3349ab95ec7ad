//! `cargo xtask simulate`: many runs against a flaky service, on a clock of their own, with many seeds; not a part of
//! `ci`, which tries a few.

use std::ffi::OsString;

use crate::command::{Command, Failure};
use crate::step::Step;

/// Simulates many runs with many seeds.
pub(crate) const COMMAND: Command = Command {
    name: "simulate",
    arguments: "[SEEDS]",
    about: "Simulates 10,000 runs against a flaky service for each of SEEDS seeds (100 if not given)",
    run,
};

const SEEDS: &str = "100";
const RUNS: &str = "10000";

fn run(arguments: &[OsString]) -> Result<(), Failure> {
    let seeds = match arguments {
        [] => OsString::from(SEEDS),
        [seeds] => {
            let is_count =
                seeds.to_str().is_some_and(|text| text.parse::<u32>().is_ok_and(|count| count > 0));
            if !is_count {
                return Err(Failure::NotACount(seeds.clone()));
            }
            seeds.clone()
        }
        [_, extra, ..] => {
            return Err(Failure::UnexpectedArgument { command: COMMAND.name, argument: extra.clone() });
        }
    };
    // Optimised, or it would take half an hour.
    Step::cargo("simulation", ["test", "--release", "-p", "tidewheel-runner", "--test", "simulation"])
        .with(["--", "--nocapture"])
        .variable("TIDEWHEEL_SEEDS", seeds.to_string_lossy().into_owned())
        .variable("TIDEWHEEL_RUNS", RUNS.to_owned())
        .run()?;
    Ok(())
}
