//! `tidewheel jobs`: what there is to know of the jobs of a repository, and to ask of them.

mod approve;
mod attach;
mod cancel;
mod complete;
mod decided;
pub(super) mod explain;
mod fail;
mod gc;
mod heartbeat;
mod list;
mod reject;
pub(super) mod retry;
mod schedule;
mod show;
mod status;
mod tail;
mod wait;
mod watch;

use clap::{Args, Subcommand};

use crate::error::Ending;
use crate::exit::Exit;

/// Look at jobs, and ask things of them
///
/// A job is one process of a flow, with gates before it. Jobs live in the
/// directory `.tidewheel/` of the repository, and go on without any command
/// that waits for them. Looking changes nothing.
///
/// Wherever a command takes a JOB, any beginning or end of its id is enough if
/// only one job has it, and so is RUN/NODE.
///
/// Example:
///
///   $ tidewheel jobs list
///   $ tidewheel jobs tail build --follow
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(list::Arguments),
    Show(show::Arguments),
    Status(status::Arguments),
    Explain(explain::Arguments),
    Schedule(schedule::Arguments),
    Tail(tail::Arguments),
    Attach(attach::Arguments),
    Wait(wait::Arguments),
    Approve(approve::Arguments),
    Reject(reject::Arguments),
    Complete(complete::Arguments),
    Fail(fail::Arguments),
    Heartbeat(heartbeat::Arguments),
    Retry(retry::Arguments),
    Cancel(cancel::Arguments),
    Gc(gc::Arguments),
}

/// Does what was asked for.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Ending> {
    match &arguments.command {
        Command::List(arguments) => list::run(arguments),
        Command::Show(arguments) => show::run(arguments),
        Command::Status(arguments) => status::run(arguments),
        Command::Explain(arguments) => explain::run(arguments),
        Command::Schedule(arguments) => schedule::run(arguments),
        Command::Tail(arguments) => tail::run(arguments),
        Command::Attach(arguments) => attach::run(arguments),
        Command::Wait(arguments) => wait::run(arguments),
        Command::Approve(arguments) => approve::run(arguments).map_err(Ending::after_the_fact),
        Command::Reject(arguments) => reject::run(arguments).map_err(Ending::after_the_fact),
        Command::Complete(arguments) => complete::run(arguments).map_err(Ending::after_the_fact),
        Command::Fail(arguments) => fail::run(arguments).map_err(Ending::after_the_fact),
        Command::Heartbeat(arguments) => heartbeat::run(arguments).map_err(Ending::after_the_fact),
        Command::Retry(arguments) => retry::run(arguments).map_err(Ending::after_the_fact),
        Command::Cancel(arguments) => cancel::run(arguments).map_err(Ending::after_the_fact),
        Command::Gc(arguments) => gc::run(arguments),
    }
}

/// The version of what `--format json` prints.
pub(super) const VERSION: u32 = 1;
