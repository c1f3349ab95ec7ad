//! `tidewheel man`: the help as pages for `man`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use clap_mangen::Man;

use crate::error::{Code, CommandError, Ending, cause};
use crate::exit::Exit;
use crate::output;

/// Print the manual page, or write the pages of all commands
///
/// Without DIR the main page is printed. With it the page of each command is
/// written there, `tidewheel.1`, `tidewheel-run.1` and so on; DIR is made.
///
/// Example:
///
///   $ tidewheel man | man -l -
///   $ tidewheel man ~/.local/share/man/man1
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// Where the pages are written
    dir: Option<PathBuf>,
}

/// Writes the pages of a command.
pub(crate) fn run(arguments: &Arguments, command: clap::Command) -> Result<Exit, Ending> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    match &arguments.dir {
        None => output::bytes(&page(command).map_err(|error| CommandError::of_output(&error))?)?,
        Some(dir) => {
            let written = write(command, dir).map_err(|error| {
                let message = format!("`{}` cannot be written: {}.", dir.display(), cause(&error));
                CommandError::new(Code::OutputUnwritable, message)
            })?;
            output::aside(&format!("{written} pages are in `{}`.", dir.display()));
        }
    }
    Ok(Exit::Succeeded)
}

/// Writes a page for each command, and returns how many there are.
fn write(command: clap::Command, dir: &Path) -> io::Result<usize> {
    fs::create_dir_all(dir)?;
    let mut waiting = vec![command];
    let mut written = 0;
    while let Some(command) = waiting.pop() {
        waiting.extend(command.get_subcommands().filter(|command| !command.is_hide_set()).cloned());
        let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
        fs::write(dir.join(format!("{name}.1")), page(command)?)?;
        written += 1;
    }
    Ok(written)
}

fn page(command: clap::Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command).render(&mut page)?;
    Ok(page)
}
