//! `cargo xtask crash`: the long crash suites, which kill the real binary, the durable runner and whoever writes jobs
//! many times, power failures and flipped bits, the storms over jobs in full, and a million foreign texts through all
//! that is shown; not a part of `ci`.

use std::ffi::{OsStr, OsString};
use std::num::NonZeroU32;

use crate::command::{Command, Failure};
use crate::step::Step;

/// Kills the binary, the runner and writers of jobs at many moments, and checks what survives.
pub(crate) const COMMAND: Command = Command {
    name: "crash",
    arguments: "[COUNT]",
    about: "Runs the crash suites with COUNT kills each (500, 5000 and 1000 if not given), power failures, flipped bits, the storms and the foreign texts in full",
    run,
};

/// Enough kills to meet each window between two writes several times, in a few minutes.
const KILLS_OF_THE_BINARY: NonZeroU32 = NonZeroU32::new(500).expect("invariant: 500 is not zero");

/// As many for the runner, which has more windows.
const KILLS_OF_THE_RUNNER: NonZeroU32 = NonZeroU32::new(5_000).expect("invariant: 5000 is not zero");

/// As many for a process that writes jobs: one is quick to start and to check.
const KILLS_OF_THE_JOB_STORE: NonZeroU32 = NonZeroU32::new(1_000).expect("invariant: 1000 is not zero");

/// What the crash suites read; their own defaults are small, so that `ci` stays quick.
const KILLS_VARIABLE: &str = "TIDEWHEEL_CRASH_KILLS";

/// What the crash suite of the store of jobs reads.
const JOB_STORE_VARIABLE: &str = "TIDEWHEEL_TEST_KILLS";

/// What the power failures over jobs read: how many states of the disk are tried. `ci` tries a few.
const POWER_VARIABLE: &str = "TIDEWHEEL_TEST_POWER_STATES";

/// As many states as meet each pair of unsynced writes several times.
const POWER_FAILURES: &str = "20000";

/// What makes the storms and the foreign texts as many as they get; a small part of them is a part of `ci`.
const STORM_VARIABLE: &str = "TIDEWHEEL_STORM";

fn run(arguments: &[OsString]) -> Result<(), Failure> {
    let given = match arguments {
        [] => None,
        [count] => Some(parse_count(count)?),
        [_, extra, ..] => {
            return Err(Failure::UnexpectedArgument { command: COMMAND.name, argument: extra.clone() });
        }
    };
    for step in steps(given) {
        step.run()?;
    }
    Ok(())
}

/// Returns the suites, with this many kills each.
fn steps(given: Option<NonZeroU32>) -> [Step; 8] {
    let kills = |usual: NonZeroU32| given.unwrap_or(usual).to_string();
    [
        Step::cargo("crash suite", ["test", "-p", "tidewheel-cli", "--test", "cli"])
            .with(["--", "crash", "--nocapture"])
            .variable(KILLS_VARIABLE, kills(KILLS_OF_THE_BINARY)),
        Step::cargo("crash suite of the runner", ["test", "-p", "tidewheel-runner", "--test", "crash"])
            .with(["--", "kills::", "--nocapture"])
            .variable(KILLS_VARIABLE, kills(KILLS_OF_THE_RUNNER)),
        Step::cargo("crash suite of the store of jobs", ["test", "-p", "tidewheel-store", "--test", "store"])
            .with(["--", "job_crash::", "--nocapture"])
            .variable(JOB_STORE_VARIABLE, kills(KILLS_OF_THE_JOB_STORE)),
        Step::cargo("power failures over jobs", ["test", "-p", "tidewheel-store", "--test", "store"])
            .with(["--", "job_power::", "--nocapture"])
            .variable(POWER_VARIABLE, POWER_FAILURES),
        Step::cargo("bits of a store that are others", ["test", "-p", "tidewheel-store", "--test", "store"])
            .with(["--", "bit_rot::", "--nocapture"])
            .variable(STORM_VARIABLE, "full"),
        // One at a time: each storm wants the machine for itself.
        Step::cargo("storms over jobs", ["test", "-p", "tidewheel-cli", "--test", "storms"])
            .with(["--", "--test-threads=1", "--nocapture"])
            .variable(STORM_VARIABLE, "full"),
        // Optimised, or a million texts through each place would take an hour.
        Step::cargo("foreign texts", ["test", "--release", "-p", "tidewheel-cli", "--bins"])
            .with(["--", "foreign"])
            .variable(STORM_VARIABLE, "full"),
        Step::cargo("crashes in operations on git", ["test", "-p", "tidewheel-cli", "--test", "scenarios"])
            .with(["--", "git_crashes::"])
            .variable(STORM_VARIABLE, "full"),
    ]
}

/// Reads a number of kills; zero is refused, since it would prove nothing and still pass.
fn parse_count(argument: &OsStr) -> Result<NonZeroU32, Failure> {
    argument
        .to_str()
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| Failure::NotACount(argument.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_a_number_of_at_least_one() {
        assert_eq!(parse_count(OsStr::new("20")).unwrap().get(), 20);
        for wrong in ["0", "-1", "many", ""] {
            assert!(parse_count(OsStr::new(wrong)).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_store_of_jobs_gets_the_count_and_the_storms_and_texts_are_whole() {
        let shown = |given| steps(given).map(|step| step.to_string());
        let store = "cargo test -p tidewheel-store --test store -- job_crash:: --nocapture";
        assert_eq!(shown(None)[2], format!("TIDEWHEEL_TEST_KILLS=1000 {store}"));
        assert_eq!(shown(NonZeroU32::new(7))[2], format!("TIDEWHEEL_TEST_KILLS=7 {store}"));
        let storms = "cargo test -p tidewheel-cli --test storms -- --test-threads=1 --nocapture";
        assert_eq!(shown(None)[5], format!("TIDEWHEEL_STORM=full {storms}"));
        let texts = "cargo test --release -p tidewheel-cli --bins -- foreign";
        assert_eq!(shown(None)[6], format!("TIDEWHEEL_STORM=full {texts}"));
        let power = "cargo test -p tidewheel-store --test store -- job_power:: --nocapture";
        assert_eq!(shown(None)[3], format!("TIDEWHEEL_TEST_POWER_STATES=20000 {power}"));
    }
}
