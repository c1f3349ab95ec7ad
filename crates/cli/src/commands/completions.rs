//! `tidewheel completions`: a script for a shell that lets it ask this binary how a command line goes on.

use clap::{Args, ValueEnum};

use crate::complete::{self, Shell};
use crate::error::{CommandError, Ending};
use crate::exit::Exit;
use crate::output;

/// Print a script that completes command lines in a shell
///
/// The script asks `tidewheel` itself: commands and flags complete, and so do
/// the ids of jobs and runs, flows, and the flags and parameters of a flow.
/// Completing changes nothing and starts nothing. Let the shell read the script
/// when it starts, so that it fits the installed version.
///
/// Example:
///
///   $ echo 'source <(tidewheel completions bash)' >> ~/.bashrc
///   $ echo 'source <(tidewheel completions zsh)' >> ~/.zshrc
///   $ tidewheel completions fish > ~/.config/fish/completions/tidewheel.fish
///   $ echo 'eval (tidewheel completions elvish | slurp)' >> ~/.elvish/rc.elv
///   $ tidewheel completions powershell >> $PROFILE
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// The shell
    #[arg(value_enum)]
    shell: Name,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Name {
    Bash,
    Zsh,
    Fish,
    Elvish,
    Powershell,
}

/// Prints the script.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Ending> {
    let shell = match arguments.shell {
        Name::Bash => "bash",
        Name::Zsh => "zsh",
        Name::Fish => "fish",
        Name::Elvish => "elvish",
        Name::Powershell => "powershell",
    };
    let shell = Shell::named(shell).expect("invariant: every shell that can be named is known");
    let script = complete::script(&shell).map_err(|error| CommandError::of_output(&error))?;
    output::bytes(&script)?;
    Ok(Exit::Succeeded)
}
