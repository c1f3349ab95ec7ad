//! The command line as a whole: which commands there are, and what becomes of their results.

use std::ffi::OsString;

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::commands::{
    completions, daemon, decide, demo, doctor, graph, init, jobs, man, policy, run, runs, schema, tick,
};
use crate::complete;
use crate::demo::worker;
use crate::error::Ending;
use crate::exit::Exit;
use crate::jobs::node;
use crate::output;

/// Reads the arguments, runs the command that they name, and tells what is wrong.
pub(crate) fn run(arguments: Vec<OsString>) -> Exit {
    // A supervisor is started for each attempt of each job, and must not wait for the whole command line to be built.
    if arguments.get(1).is_some_and(|name| name == node::NAME) {
        return ended(node::run(&arguments[2..]));
    }
    if let Some(exit) = complete::answered(&arguments, Cli::command) {
        return exit;
    }
    if arguments.len() <= 1 {
        output::welcome(WELCOME);
        return Exit::Usage;
    }
    let arguments = run::with_flags_named(arguments);
    let result = match Cli::try_parse_from(&arguments) {
        Ok(Cli { command: Command::Run(arguments) }) => run::run(&arguments),
        Ok(Cli { command: Command::Demo(arguments) }) => demo::run(&arguments),
        Ok(Cli { command: Command::Doctor(arguments) }) => doctor::run(&arguments),
        Ok(Cli { command: Command::Graph(arguments) }) => graph::run(&arguments),
        Ok(Cli { command: Command::Init(arguments) }) => init::run(&arguments),
        Ok(Cli { command: Command::Jobs(arguments) }) => jobs::run(&arguments),
        Ok(Cli { command: Command::Tick(arguments) }) => {
            tick::run(&arguments).map_err(Ending::after_the_fact)
        }
        Ok(Cli { command: Command::Daemon(arguments) }) => daemon::run(&arguments),
        Ok(Cli { command: Command::Decide(arguments) }) => decide::run(&arguments),
        Ok(Cli { command: Command::Policy(arguments) }) => policy::run(&arguments),
        Ok(Cli { command: Command::Runs(arguments) }) => runs::run(&arguments),
        Ok(Cli { command: Command::Schema(arguments) }) => schema::run(&arguments),
        Ok(Cli { command: Command::Completions(arguments) }) => completions::run(&arguments),
        Ok(Cli { command: Command::Man(arguments) }) => man::run(&arguments, Cli::command()),
        Ok(Cli { command: Command::DemoWorker(arguments) }) => Ok(worker::run(&arguments)),
        Err(error) => {
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Succeeded };
            output::usage(&without_controls(&arguments).unwrap_or(error)).map(|()| exit)
        }
    };
    ended(result)
}

/// Tells what is wrong, and returns the exit code.
fn ended(result: Result<Exit, Ending>) -> Exit {
    match result {
        Ok(exit) => exit,
        Err(Ending::ReaderGone) => Exit::Succeeded,
        Err(Ending::Error(error)) => {
            output::error(&error);
            error.exit()
        }
    }
}

/// A workflow scheduler: retries, policies and decisions that come out the same every time
///
/// New here? Begin with `tidewheel demo`.
#[derive(Debug, Parser)]
#[command(name = "tidewheel", version, subcommand_required = true, arg_required_else_help = true)]
#[command(after_long_help = ENDS)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// What somebody reads who types the name alone.
const WELCOME: &str = "\
Tidewheel runs workflows on this machine: jobs in order and
side by side, with retries, approvals and locks. They
survive crashes, and need no server.

Begin with
  tidewheel demo                 see it work, in seconds
  tidewheel init                 begin a first flow here
  tidewheel run hello --follow   run it, and watch it

More
  tidewheel --help               all commands
  tidewheel help run             one command, by example
  tidewheel doctor               find out what is wrong";

/// How a command ends.
const ENDS: &str = "\
Exit codes:
  0  the command did what it was asked
  1  what was looked at is not in order, or the command could not do its part
  2  the command line is wrong, or `decide` met lines that are not JSON
  10 nothing failed, but a job can never run: what it needs will not come, or it was rejected

Each error has a code such as TW0001, and a page `docs/errors/TW0001.md` that says what to do.";

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::Arguments),
    Init(init::Arguments),
    Run(run::Arguments),
    Graph(graph::Arguments),
    Jobs(jobs::Arguments),
    Tick(tick::Arguments),
    Daemon(daemon::Arguments),
    Doctor(doctor::Arguments),
    Decide(decide::Arguments),
    Policy(policy::Arguments),
    Runs(runs::Arguments),
    Schema(schema::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
    #[command(name = "__demo-worker", hide = true)]
    DemoWorker(worker::Arguments),
}

/// Returns the error for the same arguments with their control characters written out, if they have any.
///
/// The error quotes the arguments, and once it is drawn they cannot be told from its own colours.
fn without_controls(arguments: &[OsString]) -> Option<clap::Error> {
    let shown: Vec<String> =
        arguments.iter().map(|argument| output::harmless(&argument.to_string_lossy()).into_owned()).collect();
    if shown.iter().zip(arguments).all(|(shown, argument)| argument == shown.as_str()) {
        return None;
    }
    Cli::try_parse_from(shown).err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
