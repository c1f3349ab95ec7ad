//! `tidewheel jobs schedule --watch`: the schedule on the whole terminal, with keys to look closer and to steer.

#[cfg(feature = "tui")]
mod act;
#[cfg(feature = "tui")]
mod ask;
#[cfg(feature = "tui")]
mod columns;
#[cfg(feature = "tui")]
mod draw;
#[cfg(feature = "tui")]
mod given_back;
#[cfg(feature = "tui")]
mod help;
#[cfg(feature = "tui")]
mod keys;
#[cfg(feature = "tui")]
mod look;
#[cfg(feature = "tui")]
mod pages;
#[cfg(all(test, feature = "tui"))]
mod sample;
#[cfg(feature = "tui")]
mod screen;
#[cfg(feature = "tui")]
mod sheet;
#[cfg(feature = "tui")]
mod state;
#[cfg(feature = "tui")]
mod update;
#[cfg(feature = "tui")]
mod why;

use std::io::IsTerminal as _;

use super::schedule::Arguments;
use crate::error::{Code, CommandError, Ending};
use crate::exit::Exit;
use crate::jobs::Opened;

/// Shows the schedule until somebody has seen enough.
pub(super) fn run(opened: &Opened, arguments: &Arguments) -> Result<Exit, Ending> {
    let is_seen = std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
    if !is_seen || !arguments.has_ansi() || crate::terminal::is_dumb() {
        let message = "`--watch` requires an interactive TTY with ANSI enabled; rerun without `--watch` for static output.";
        return Err(CommandError::new(Code::NotWatched, message).into());
    }
    shown(opened, arguments)
}

#[cfg(feature = "tui")]
fn shown(opened: &Opened, arguments: &Arguments) -> Result<Exit, Ending> {
    screen::run(opened, arguments)
}

#[cfg(not(feature = "tui"))]
fn shown(_: &Opened, _: &Arguments) -> Result<Exit, Ending> {
    let message = "This `tidewheel` was built without the feature `tui`, which `--watch` needs; rerun without `--watch`.";
    Err(CommandError::new(Code::NotWatched, message).into())
}
