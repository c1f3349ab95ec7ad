//! What commands read: a file or the standard input, opened with errors that say what to do.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::Path;

use crate::error::{Code, CommandError, cause};

/// Something to read, with the name that messages use.
pub(crate) struct Input {
    pub(crate) name: String,
    pub(crate) reader: Box<dyn Read>,
}

impl Input {
    /// Opens a file; without one, and for `-`, the standard input.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, CommandError> {
        let Some(path) = path.filter(|path| *path != Path::new("-")) else {
            return Ok(Self { name: "standard input".to_owned(), reader: Box::new(io::stdin().lock()) });
        };
        let name = path.display().to_string();
        let file = File::open(path).map_err(|error| cannot_open(&name, &error))?;
        if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
            let error = CommandError::new(Code::InputUnreadable, format!("`{name}` is a directory."));
            return Err(error.hint("Give the name of a file in it."));
        }
        Ok(Self { name, reader: Box::new(file) })
    }
}

/// Tells whether a person is typing the standard input.
pub(crate) fn is_typed(path: Option<&Path>) -> bool {
    path.is_none_or(|path| path == Path::new("-")) && io::stdin().is_terminal()
}

/// Returns the error of an input that was opened and then failed.
pub(crate) fn cannot_read(name: &str, error: &io::Error) -> CommandError {
    CommandError::new(Code::InputUnreadable, format!("`{name}` cannot be read: {}.", cause(error)))
}

fn cannot_open(name: &str, error: &io::Error) -> CommandError {
    match error.kind() {
        io::ErrorKind::NotFound => {
            let error = CommandError::new(Code::InputMissing, format!("There is no file `{name}`."));
            error.hint("Check the name, or write `-` to read the standard input.")
        }
        _ => cannot_read(name, error),
    }
}
