//! One run: what is known of it, what it was created with, its checkpoint, and its end.

use rusqlite::{Connection, OptionalExtension as _};
use tidewheel_core::fact::RunId;

use crate::record::{OwnerId, RunRecord, Version};
use crate::sqlite::fault::Fault;
use crate::sqlite::owner::reap;
use crate::sqlite::rows::{RECORD, counted, record};
use crate::sqlite::transaction::Transaction;
use crate::store::Refused;

/// Returns what is known of a run.
pub(crate) fn find(connection: &Connection, run: &RunId) -> Result<Option<RunRecord>, Fault> {
    let mut statement = connection.prepare_cached(&format!("SELECT {RECORD} FROM runs WHERE id = ?1"))?;
    Ok(statement.query_row([run.as_str()], record).optional()?.map(|(_, record)| record))
}

/// Returns what a run was created with.
pub(crate) fn definition(connection: &Connection, run: &RunId) -> Result<Option<String>, Fault> {
    let find = "SELECT body FROM definitions JOIN runs ON runs.key = definitions.run WHERE id = ?1";
    Ok(connection.prepare_cached(find)?.query_row([run.as_str()], |row| row.get(0)).optional()?)
}

/// Returns the last checkpoint of a run.
pub(crate) fn checkpoint(connection: &Connection, run: &RunId) -> Result<Option<(Version, String)>, Fault> {
    let find = "SELECT checkpoints.version, body FROM checkpoints JOIN runs ON runs.key = checkpoints.run
        WHERE id = ?1";
    let mut statement = connection.prepare_cached(find)?;
    Ok(statement.query_row([run.as_str()], |row| Ok((counted(row.get(0)?), row.get(1)?))).optional()?)
}

/// Forgets a run with all that is its, unless somebody drives it.
pub(crate) fn delete(transaction: &mut Transaction<'_>, run: &RunId) -> Result<Result<bool, Refused>, Fault> {
    reap(transaction)?;
    let found: Option<(i64, Option<i64>)> = transaction
        .statement("SELECT key, owner FROM runs WHERE id = ?1")?
        .query_row([run.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let key = match found {
        None => return Ok(Ok(false)),
        Some((_, Some(owner))) => {
            return Ok(Err(Refused::Owned { run: run.clone(), owner: OwnerId(owner) }));
        }
        Some((key, None)) => key,
    };
    transaction.statement("DELETE FROM events WHERE run = ?1")?.execute([key])?;
    transaction.statement("DELETE FROM dead_letters WHERE run = ?1")?.execute([run.as_str()])?;
    transaction.statement("DELETE FROM runs WHERE key = ?1")?.execute([key])?;
    Ok(Ok(true))
}
