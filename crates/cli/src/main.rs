//! The `tidewheel` binary: hands its arguments on and ends with the exit code that comes back.

mod cli;
mod commands;
mod complete;
mod demo;
mod doctor;
mod error;
mod exit;
#[cfg(test)]
mod foreign;
mod input;
mod interrupt;
mod jobs;
mod output;
mod runtime;
mod store;
mod terminal;
mod view;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run(std::env::args_os().collect()).into()
}
