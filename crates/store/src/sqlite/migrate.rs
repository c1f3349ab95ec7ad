//! The shape of the database, as steps that each happen once, whoever comes first. A step that was taken is never
//! changed: its hash is kept, and another one is refused.

use rusqlite::{Connection, TransactionBehavior, params};
use tidewheel_core::time::Timestamp;

use crate::sqlite::fault::Fault;
use crate::sqlite::rows::nanos;
use crate::store::StoreError;

/// The steps in order; the version of a database is how many it has taken.
const STEPS: [&str; 6] = [
    include_str!("migrations/0001.sql"),
    include_str!("migrations/0002.sql"),
    include_str!("migrations/0003.sql"),
    include_str!("migrations/0004.sql"),
    include_str!("migrations/0005.sql"),
    include_str!("migrations/0006.sql"),
];

/// The step from which on a database knows how many commits it has.
pub(crate) const COUNTS_COMMITS: u32 = 4;

const TABLE: &str = "CREATE TABLE migrations (
    version INTEGER PRIMARY KEY,
    hash    TEXT    NOT NULL,
    at      INTEGER NOT NULL
) STRICT";

/// Why a database is none of ours.
#[derive(Debug, thiserror::Error)]
enum Strange {
    #[error("the database has tables, and none of Tidewheel's")]
    NotOurs,
    #[error("step {version} of the database is another one than in this release")]
    Changed { version: u32 },
    #[error(
        "the database has no tables: it was copied without its `-wal`, or nothing was ever written to it"
    )]
    Bare,
    #[error("the database has version {found}; it must be opened for writing once to get version {known}")]
    Older { found: u32, known: u32 },
}

/// Brings a database to the newest version.
pub(crate) fn migrate(connection: &mut Connection, now: Timestamp) -> Result<(), StoreError> {
    // Most openings find nothing to do, and then need not wait for those that write.
    if seen(connection)? == known() {
        return Ok(());
    }
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(Fault::from)?;
    // Invariant: the version is read again behind the lock; somebody else may have been quicker.
    let version = taken(&transaction)?;
    if tables(&transaction)? == Tables::None {
        transaction.execute_batch(TABLE).map_err(Fault::from)?;
    }
    for (number, step) in (1_u32..).zip(STEPS).skip(version as usize) {
        transaction.execute_batch(step).map_err(Fault::from)?;
        transaction
            .execute("INSERT INTO migrations VALUES (?1, ?2, ?3)", params![number, hash(step), nanos(now)])
            .map_err(Fault::from)?;
    }
    transaction.commit().map_err(|error| Fault::of_commit(error).error())
}

/// Refuses a database that is none of ours, or of a later release.
pub(crate) fn refuse_strangers(connection: &Connection) -> Result<(), StoreError> {
    seen(connection).map(|_| ())
}

/// Refuses a database that is not at the newest version; for those who may not change it.
pub(crate) fn check(connection: &Connection) -> Result<(), StoreError> {
    match seen(connection)? {
        found if found == known() => Ok(()),
        0 => Err(strange(Strange::Bare)),
        found => Err(strange(Strange::Older { found, known: known() })),
    }
}

/// Returns how many steps this release knows.
pub(crate) fn known() -> u32 {
    u32::try_from(STEPS.len()).unwrap_or(u32::MAX)
}

/// Returns how many steps were taken at one moment: somebody may just be taking them.
pub(crate) fn seen(connection: &Connection) -> Result<u32, StoreError> {
    let snapshot = connection.unchecked_transaction().map_err(Fault::from)?;
    taken(&snapshot)
}

/// Returns how many steps were taken, after looking at each; inside a transaction.
fn taken(connection: &Connection) -> Result<u32, StoreError> {
    match tables(connection)? {
        Tables::None => return Ok(0),
        Tables::Strange => return Err(strange(Strange::NotOurs)),
        Tables::Ours => {}
    }
    let read = || -> rusqlite::Result<Vec<(u32, String)>> {
        let mut statement = connection.prepare("SELECT version, hash FROM migrations ORDER BY version")?;
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
    };
    let taken = read().map_err(Fault::from)?;
    let found = taken.last().map_or(0, |(version, _)| *version);
    if found > known() {
        return Err(StoreError::Newer { found, known: known() });
    }
    for ((version, found), step) in taken.into_iter().zip(STEPS) {
        if found != hash(step) {
            return Err(strange(Strange::Changed { version }));
        }
    }
    Ok(found)
}

/// Whose tables a database has.
#[derive(PartialEq, Eq)]
enum Tables {
    None,
    Ours,
    Strange,
}

/// Looks with one statement, which sees one moment.
fn tables(connection: &Connection) -> Result<Tables, Fault> {
    let look = "SELECT count(*), count(*) FILTER (WHERE name = 'migrations') FROM sqlite_schema";
    let (all, ours): (i64, i64) = connection.query_row(look, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(match (all, ours) {
        (0, _) => Tables::None,
        (_, 0) => Tables::Strange,
        _ => Tables::Ours,
    })
}

fn hash(step: &str) -> String {
    blake3::hash(step.as_bytes()).to_hex().to_string()
}

fn strange(strange: Strange) -> StoreError {
    StoreError::Other(Box::new(strange))
}
