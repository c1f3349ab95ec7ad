//! The chores of this repository: `cargo xtask <command>`; only dispatches, each command has its own file.
#![expect(clippy::print_stderr, reason = "telling a person what happened is the job of this binary")]

mod bench;
mod ci;
mod command;
mod crash;
mod dist;
mod docs;
mod fmt;
mod help;
mod report;
mod simulate;
mod step;
mod test;

use std::ffi::OsString;
use std::process::ExitCode;

use command::{Command, Failure};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let name = arguments.next();
    let rest: Vec<OsString> = arguments.collect();

    match dispatch(name, &rest) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            failure.exit_code()
        }
    }
}

fn dispatch(name: Option<OsString>, arguments: &[OsString]) -> Result<(), Failure> {
    let Some(name) = name else {
        return Err(Failure::NoCommand);
    };
    match Command::named(&name) {
        Some(command) => (command.run)(arguments),
        None => Err(Failure::UnknownCommand(name)),
    }
}
