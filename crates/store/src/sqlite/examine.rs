//! A look at a database as a whole, for those who ask whether it is in order. Nothing of it changes, nothing is
//! migrated, and what is found is judged elsewhere.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use tidewheel_core::fact::RunId;
use tidewheel_core::time::Timestamp;

use crate::record::{OwnerId, Version};
use crate::sqlite::acknowledged::{self, Loss};
use crate::sqlite::connection::open_to_look;
use crate::sqlite::fault::Fault;
use crate::sqlite::options::Options;
use crate::sqlite::presence::{Roster, folder_of};
use crate::sqlite::verify::{self, Findings};
use crate::sqlite::{log, migrate, owner};
use crate::store::StoreError;

/// What a look at a database found.
#[derive(Debug)]
pub struct Examined {
    /// How many steps the database has taken.
    pub version: u32,
    /// How many steps this release knows.
    pub known: u32,
    /// What SQLite finds wrong with its pages, rows and indexes.
    pub problems: Vec<String>,
    /// The logs of runs that are not as they were written, and why.
    pub damaged: Vec<(RunId, Version, String)>,
    /// The rows that are not as they were written, one sentence for each.
    pub rows: Vec<String>,
    /// Commits that were answered and are missing, as they were noticed; the last may be noticed only now.
    pub losses: Vec<Loss>,
    /// How many runs there are.
    pub runs: u64,
    /// How it keeps what is being written: `wal`, as the store wants it, or something else.
    pub journal: String,
    /// How many bytes wait in the write-ahead log.
    pub log_bytes: u64,
    /// Who drives runs, until when without renewing, and whether its process has ended.
    pub owners: Vec<(OwnerId, Timestamp, bool)>,
}

/// Looks at a database as a whole. With many runs it takes as long as reading all of it.
///
/// # Errors
/// The file cannot be used now, is no database of ours, or was written by a later release.
pub fn examine(path: &Path, options: &Options, now: Timestamp) -> Result<Examined, StoreError> {
    let connection = open_to_look(path, options)?;
    let version = migrate::seen(&connection)?;
    let mut examined = Examined {
        version,
        known: migrate::known(),
        problems: verify::problems(&connection)?,
        damaged: Vec::new(),
        rows: Vec::new(),
        losses: Vec::new(),
        runs: 0,
        journal: connection
            .pragma_query_value(None, "journal_mode", |row| row.get(0))
            .map_err(Fault::from)?,
        log_bytes: log_bytes(path),
        owners: Vec::new(),
    };
    // What is older has other tables.
    if version != examined.known {
        return Ok(examined);
    }
    let rows = &mut examined.rows;
    let looked =
        verify::rows(&connection, &mut Findings { note: &mut |what| rows.push(what), goes_on: &|| true });
    // Where SQLite has found its pages broken, a look at the rows may end anywhere.
    if examined.problems.is_empty() {
        looked?;
    }
    // Whatever links lead to it, all processes meet in the same folder.
    let path = path.canonicalize().map_err(Fault::from)?;
    let folder = folder_of(&path);
    // What is broken may answer anything, and each answer may be that it cannot be read.
    match look_at_the_rest(&connection, &folder, path, now, &mut examined) {
        Err(_) if !examined.problems.is_empty() => Ok(examined),
        Err(error) => Err(error),
        Ok(()) => Ok(examined),
    }
}

fn look_at_the_rest(
    connection: &Connection,
    folder: &Path,
    path: PathBuf,
    now: Timestamp,
    examined: &mut Examined,
) -> Result<(), StoreError> {
    examined.losses = acknowledged::losses(connection)?;
    examined.losses.extend(acknowledged::look(connection, folder, now)?);
    let runs = runs(connection)?;
    examined.runs = runs.len() as u64;
    for run in runs {
        match log::read(connection, &run, 0) {
            // The record of the run was named with the rows.
            Ok(_) | Err(StoreError::DamagedRow { .. }) => {}
            Err(StoreError::Damaged { run, version, what }) => examined.damaged.push((run, version, what)),
            Err(error) => return Err(error),
        }
    }
    let roster = Roster::new(folder.to_owned(), path);
    let owners = owner::all(connection, &roster)?;
    examined.owners =
        owners.into_iter().map(|one| (one.id, one.renewal.expires_at, roster.is_gone(one.id))).collect();
    Ok(())
}

fn runs(connection: &Connection) -> Result<Vec<RunId>, Fault> {
    let mut statement = connection.prepare("SELECT id FROM runs ORDER BY key")?;
    let runs = statement.query_map([], |row| Ok(RunId::new(&row.get::<_, String>(0)?)))?;
    Ok(runs.collect::<Result<_, _>>()?)
}

fn log_bytes(path: &Path) -> u64 {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    fs::metadata(name).map_or(0, |found| found.len())
}
