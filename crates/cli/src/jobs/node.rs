//! `tidewheel __workflow-node --job-id ID [--dir DIR]`: the supervisor of one attempt of one job. People do not type it,
//! so that it is read by hand, and nothing of the command line is built for it.

use std::ffi::OsString;

use tidewheel_core::job::JobId;

use super::opened::{Opened, refused};
use super::place::{DirArguments, Place};
use super::settings::Settings;
use crate::error::{Code, CommandError, Ending};
use crate::exit::Exit;
use crate::output;

/// The hidden command.
pub(crate) const NAME: &str = "__workflow-node";

/// Runs one attempt. What comes of it is in the record; the exit code says only whether it could be put there.
pub(crate) fn run(arguments: &[OsString]) -> Result<Exit, Ending> {
    let (id, dir) = read(arguments)?;
    let place = Place::find(&dir)?;
    let settings = Settings::read_for_job(&place, &id);
    let opened = Opened::at(place, settings)?;
    let ticked = opened.silent_scheduler()?.supervise(&id).map_err(|error| refused(&error))?;
    // Its stderr is the log of the supervisor, which `jobs explain` reads.
    ticked.warnings.iter().for_each(|warning| output::warning(warning));
    Ok(Exit::Succeeded)
}

fn read(arguments: &[OsString]) -> Result<(JobId, DirArguments), CommandError> {
    let wrong = || CommandError::new(Code::OtherSide, format!("`{NAME}` takes --job-id ID and --dir DIR."));
    let (mut id, mut dir) = (None, DirArguments::default());
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.to_str() {
            Some("--job-id") => id = Some(rest.next().and_then(|id| id.to_str()).ok_or_else(wrong)?),
            Some("--dir") => dir.dir = Some(rest.next().ok_or_else(wrong)?.into()),
            _ => return Err(wrong()),
        }
    }
    let id = JobId::new(id.ok_or_else(wrong)?);
    let id = id.map_err(|error| CommandError::new(Code::JobMissing, error.to_string()))?;
    Ok((id, dir))
}
