//! A look at a database as a whole, for those who ask whether it is in order. Nothing of it changes, nothing is
//! migrated, and what is found is judged elsewhere.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use tidewheel_core::fact::RunId;
use tidewheel_core::time::Timestamp;

use crate::record::{OwnerId, Version};
use crate::sqlite::connection::open_to_look;
use crate::sqlite::fault::Fault;
use crate::sqlite::options::Options;
use crate::sqlite::presence::{Roster, folder_of};
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
pub fn examine(path: &Path, options: &Options) -> Result<Examined, StoreError> {
    let connection = open_to_look(path, options)?;
    let version = migrate::seen(&connection)?;
    let mut examined = Examined {
        version,
        known: migrate::known(),
        problems: problems(&connection)?,
        damaged: Vec::new(),
        runs: 0,
        journal: connection
            .pragma_query_value(None, "journal_mode", |row| row.get(0))
            .map_err(Fault::from)?,
        log_bytes: log_bytes(path),
        owners: Vec::new(),
    };
    // What is older has other tables, and what is broken may answer anything.
    if version != examined.known || !examined.problems.is_empty() {
        return Ok(examined);
    }
    let runs = runs(&connection)?;
    examined.runs = runs.len() as u64;
    for run in runs {
        match log::read(&connection, &run, 0) {
            Ok(_) => {}
            Err(StoreError::Damaged { run, version, what }) => examined.damaged.push((run, version, what)),
            Err(error) => return Err(error),
        }
    }
    // Whatever links lead to it, all processes meet in the same folder.
    let path = path.canonicalize().map_err(Fault::from)?;
    let roster = Roster::new(folder_of(&path), path.clone());
    let owners = owner::all(&connection)?;
    examined.owners =
        owners.into_iter().map(|(owner, until)| (owner, until, roster.is_gone(owner))).collect();
    Ok(examined)
}

/// Returns what SQLite finds wrong. Where it cannot even look, that is what is wrong.
fn problems(connection: &Connection) -> Result<Vec<String>, Fault> {
    /// More than these say nothing new.
    const MOST: &str = "PRAGMA integrity_check(20)";
    let said = connection.prepare(MOST).and_then(|mut check| {
        let lines = check.query_map([], |row| row.get::<_, String>(0))?;
        lines.collect::<Result<Vec<String>, _>>()
    });
    match said {
        Ok(lines) => Ok(lines.into_iter().filter(|line| line != "ok").collect()),
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseCorrupt) => {
            Ok(vec![error.to_string()])
        }
        Err(error) => Err(error.into()),
    }
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
