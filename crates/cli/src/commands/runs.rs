//! `tidewheel runs`: what there is to know of durable runs, and to ask of them, from their store alone.

mod ask;
mod dead_letters;
mod events;
mod explain;
mod follow;
mod gc;
mod list;
mod of_jobs;
mod results;
mod show;
mod side;
mod timeline;

use clap::{Args, Subcommand};

use crate::error::Ending;
use crate::exit::Exit;

/// Look at durable runs, and ask things of them
///
/// The runs of a repository are made of jobs, and live in `.tidewheel/`; list,
/// show, explain, timeline, cancel, retry and gc work on them. With --store,
/// all commands work on the file that a program keeps its runs in, without that
/// program. Looking changes nothing. What is asked of a run is written to the file; the
/// process that drives the run notices it at once, and the next one that takes
/// it up does otherwise.
///
/// Wherever a command takes the id of a RUN, the beginning of the id is enough
/// if only one run begins so.
///
/// Example:
///
///   $ tidewheel runs list
///   $ tidewheel runs list --store orders.db --status failed,waiting
///   $ tidewheel runs explain order-7 --store orders.db
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(list::Arguments),
    Show(show::Arguments),
    Timeline(timeline::Arguments),
    Events(events::Arguments),
    Results(results::Arguments),
    Explain(explain::Arguments),
    Cancel(ask::CancelArguments),
    Pause(ask::PauseArguments),
    Resume(ask::ResumeArguments),
    Stop(ask::StopArguments),
    Retry(ask::RetryArguments),
    Signal(ask::SignalArguments),
    Complete(ask::CompleteArguments),
    Fail(ask::FailArguments),
    DeadLetters(dead_letters::Arguments),
    Gc(gc::Arguments),
}

/// Does what was asked for.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Ending> {
    match &arguments.command {
        Command::List(arguments) => list::run(arguments),
        Command::Show(arguments) => show::run(arguments),
        Command::Timeline(arguments) => timeline::run(arguments),
        Command::Events(arguments) => events::run(arguments),
        Command::Results(arguments) => results::run(arguments),
        Command::Explain(arguments) => explain::run(arguments),
        Command::Cancel(arguments) => ask::cancel(arguments).map_err(Ending::after_the_fact),
        Command::Pause(arguments) => ask::pause(arguments).map_err(Ending::after_the_fact),
        Command::Resume(arguments) => ask::resume(arguments).map_err(Ending::after_the_fact),
        Command::Stop(arguments) => ask::stop(arguments).map_err(Ending::after_the_fact),
        Command::Retry(arguments) => ask::retry(arguments).map_err(Ending::after_the_fact),
        Command::Signal(arguments) => ask::signal(arguments).map_err(Ending::after_the_fact),
        Command::Complete(arguments) => ask::complete(arguments).map_err(Ending::after_the_fact),
        Command::Fail(arguments) => ask::fail(arguments).map_err(Ending::after_the_fact),
        Command::DeadLetters(arguments) => dead_letters::run(arguments),
        Command::Gc(arguments) => gc::run(arguments),
    }
}

/// The version of what `--format json` prints.
const VERSION: u32 = 1;
