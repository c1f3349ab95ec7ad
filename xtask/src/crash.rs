//! `cargo xtask crash`: the long crash suites, which kill the real binary and the durable runner many times; not a
//! part of `ci`.

use std::ffi::{OsStr, OsString};
use std::num::NonZeroU32;

use crate::command::{Command, Failure};
use crate::step::Step;

/// Kills the binary and the runner at many moments and checks what survives.
pub(crate) const COMMAND: Command = Command {
    name: "crash",
    arguments: "[COUNT]",
    about: "Runs the crash suites with COUNT kills each (500 and 5000 if not given)",
    run,
};

/// Enough kills to meet each window between two writes several times, in a few minutes.
const KILLS_OF_THE_BINARY: NonZeroU32 = NonZeroU32::new(500).expect("invariant: 500 is not zero");

/// As many for the runner, which has more windows.
const KILLS_OF_THE_RUNNER: NonZeroU32 = NonZeroU32::new(5_000).expect("invariant: 5000 is not zero");

/// What the crash suites read; their own defaults are small, so that `ci` stays quick.
const KILLS_VARIABLE: &str = "TIDEWHEEL_CRASH_KILLS";

fn run(arguments: &[OsString]) -> Result<(), Failure> {
    let given = match arguments {
        [] => None,
        [count] => Some(parse_count(count)?),
        [_, extra, ..] => {
            return Err(Failure::UnexpectedArgument { command: COMMAND.name, argument: extra.clone() });
        }
    };
    Step::cargo("crash suite", ["test", "-p", "tidewheel-cli", "--test", "cli"])
        .with(["--", "crash", "--nocapture"])
        .variable(KILLS_VARIABLE, given.unwrap_or(KILLS_OF_THE_BINARY).to_string())
        .run()?;
    Step::cargo("crash suite of the runner", ["test", "-p", "tidewheel-runner", "--test", "crash"])
        .with(["--", "kills::", "--nocapture"])
        .variable(KILLS_VARIABLE, given.unwrap_or(KILLS_OF_THE_RUNNER).to_string())
        .run()?;
    Ok(())
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
}
