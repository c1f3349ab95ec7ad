//! Where the demo keeps what it makes: a directory of its own, so that nothing of anybody else is touched.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Code, CommandError, Kind, cause};

/// The directory, if nobody names one.
const NAME: &str = "tidewheel-demo";

/// So many demos beside each other are looked at, or kept by mistake.
const MOST: u32 = 100;

/// Makes the directory, and returns it as people would write it.
pub(crate) fn make(keep: Option<&Path>) -> Result<PathBuf, CommandError> {
    match keep {
        Some(keep) => named(keep),
        None => unused(),
    }
}

/// Makes the directory that somebody named. One with something in it is not for us.
fn named(keep: &Path) -> Result<PathBuf, CommandError> {
    let fail = |what: &str| {
        let message = format!("The demo cannot be kept in `{}`: {what}.", keep.display());
        let error = CommandError::new(Code::DemoWorkerFailed, message);
        // It is not the machine that is wrong here, but the name.
        CommandError { kind: Kind::User, ..error }.hint("Name a directory that does not exist yet.")
    };
    let refused = |error: io::Error| fail(&cause(&error)).after(&error);
    fs::create_dir_all(keep).map_err(refused)?;
    let mut entries = fs::read_dir(keep).map_err(refused)?;
    if entries.next().is_some() {
        return Err(fail("there is something in it"));
    }
    Ok(keep.to_owned())
}

/// Makes a directory that is not there yet.
fn unused() -> Result<PathBuf, CommandError> {
    for number in 1..=MOST {
        let name = if number == 1 { NAME.to_owned() } else { format!("{NAME}-{number}") };
        match fs::create_dir(&name) {
            Ok(()) => return Ok(name.into()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                let message = format!("`{name}` cannot be made here: {}.", cause(&error));
                let refused = CommandError::new(Code::DemoWorkerFailed, message);
                return Err(CommandError { kind: Kind::User, ..refused }
                    .after(&error)
                    .hint("`tidewheel demo --keep DIR` makes it elsewhere, and `--no-crash` needs none."));
            }
        }
    }
    let message = format!("There are {MOST} directories like `{NAME}-{MOST}` here.");
    let error = CommandError::new(Code::DemoWorkerFailed, message);
    Err(CommandError { kind: Kind::User, ..error }
        .hint("Remove some of them, or name another with `--keep DIR`."))
}
