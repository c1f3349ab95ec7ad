//! `cargo xtask crash`: the long crash suite, which kills the real binary many times; not a part of `ci`.

use std::ffi::{OsStr, OsString};
use std::num::NonZeroU32;

use crate::command::{Command, Failure};
use crate::step::Step;

/// Kills the binary at many moments and checks what survives.
pub(crate) const COMMAND: Command = Command {
    name: "crash",
    arguments: "[COUNT]",
    about: "Runs the crash suite with COUNT kills (500 if not given)",
    run,
};

/// Enough kills to meet each window between two writes several times, in a few minutes.
const DEFAULT_KILLS: NonZeroU32 = NonZeroU32::new(500).expect("invariant: 500 is not zero");

/// What the crash suite reads; its own default is small, so that `ci` stays quick.
const KILLS_VARIABLE: &str = "TIDEWHEEL_CRASH_KILLS";

fn run(arguments: &[OsString]) -> Result<(), Failure> {
    let kills = match arguments {
        [] => DEFAULT_KILLS,
        [count] => parse_count(count)?,
        [_, extra, ..] => {
            return Err(Failure::UnexpectedArgument { command: COMMAND.name, argument: extra.clone() });
        }
    };
    Step::cargo("crash suite", ["test", "-p", "tidewheel-cli", "--test", "cli"])
        .with(["--", "crash", "--nocapture"])
        .variable(KILLS_VARIABLE, kills.to_string())
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
