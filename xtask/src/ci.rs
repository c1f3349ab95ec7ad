//! `cargo xtask ci`: all that must hold for a commit; changes no source file and needs only the toolchain.
#![expect(clippy::print_stderr, reason = "showing progress is the job of this binary")]

use std::ffi::OsString;
use std::time::Duration;

use crate::command::{Command, Failure};
use crate::step::{Seconds, Step};

/// Runs every check and stops at the first that fails.
pub(crate) const COMMAND: Command = Command {
    name: "ci",
    arguments: "",
    about: "Runs every check: format, clippy, tests, doc tests, docs",
    run,
};

fn run(arguments: &[OsString]) -> Result<(), Failure> {
    COMMAND.takes_no_arguments(arguments)?;

    let mut total = Duration::ZERO;
    for stage in stages() {
        total += stage.run()?;
    }
    eprintln!("==> ci: all passed in {}", Seconds(total));
    Ok(())
}

/// Returns the stages, those that fail fastest first.
fn stages() -> [Step; 5] {
    [
        Step::cargo("format", ["fmt", "--all", "--check"]),
        Step::cargo("clippy", ["clippy", "--workspace", "--all-targets"]).with([
            "--all-features",
            "--",
            "-D",
            "warnings",
        ]),
        // Doc tests cannot be asked for together with a choice of targets, so they are the next stage.
        Step::cargo("tests", ["test", "--workspace", "--all-features"]).with([
            // Whoever reads the output of a build server wants all that is broken, not the first of it.
            "--no-fail-fast",
            "--lib",
            "--bins",
            "--tests",
            "--examples",
        ]),
        Step::cargo("doc tests", ["test", "--workspace", "--all-features", "--doc"]),
        Step::cargo("docs", ["doc", "--workspace", "--all-features", "--no-deps"])
            .variable("RUSTDOCFLAGS", "-D warnings"),
    ]
}
