//! `tidewheel schema`: the files that people write, described for editors.

use clap::{Args, ValueEnum};
use tidewheel_core::schema;

use crate::error::Ending;
use crate::exit::Exit;
use crate::output;

/// Print the JSON schema of a kind of file, for editors
///
/// Editors that know TOML (taplo, Even Better TOML in VS Code) complete and
/// check the files with it.
///
/// Example:
///
///   $ tidewheel schema template > .tidewheel/template.schema.json
///   $ cat .tidewheel/workflows/build.toml
///   #:schema ../template.schema.json
///   id = "template.build"
///   version = "v1"
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// The kind of file
    #[arg(value_enum)]
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// A template, such as those in `.tidewheel/workflows/`
    Template,
    /// `.tidewheel/config.toml`
    Config,
    /// A file of policies, as `tidewheel policy check` reads it
    Policy,
}

/// Prints the schema.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Ending> {
    output::json(&match arguments.kind {
        Kind::Template => schema::template(),
        Kind::Config => schema::config(),
        Kind::Policy => schema::policy(),
    })?;
    Ok(Exit::Succeeded)
}
