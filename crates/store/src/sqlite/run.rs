//! One run: what is known of it, what it was created with, its checkpoint, and its end.

use rusqlite::{Connection, OptionalExtension as _, Row, params};
use tidewheel_core::fact::RunId;

use crate::record::{OwnerId, RunRecord, Version};
use crate::sqlite::checksum::is_sound;
use crate::sqlite::fault::Fault;
use crate::sqlite::owner::reap;
use crate::sqlite::rows::{RECORD, StoredRun, counted, damaged_record, record, text};
use crate::sqlite::transaction::Transaction;
use crate::store::Refused;

/// Returns what is known of a run.
pub(crate) fn find(connection: &Connection, run: &RunId) -> Result<Option<RunRecord>, Fault> {
    Ok(sound_run(connection, run)?.map(|found| found.record))
}

/// Returns a run with its key. One whose record is not what was written is an error.
pub(crate) fn sound_run(connection: &Connection, run: &RunId) -> Result<Option<StoredRun>, Fault> {
    let mut statement = connection.prepare_cached(&format!("SELECT {RECORD} FROM runs WHERE id = ?1"))?;
    match statement.query_row([run.as_str()], record).optional()? {
        Some(found) if !found.is_sound => Err(Fault::damaged(damaged_record(run))),
        found => Ok(found),
    }
}

/// Returns what a run was created with.
pub(crate) fn definition_of(connection: &Connection, run: &RunId) -> Result<Option<String>, Fault> {
    let Some(found) = sound_run(connection, run)? else { return Ok(None) };
    match definition(connection, found.key, run)? {
        Some((_, false)) => Err(Fault::damaged(damaged_definition(run))),
        found => Ok(found.map(|(text, _)| text)),
    }
}

/// Returns what the run with a key was created with, and whether that is what was written.
pub(crate) fn definition(
    connection: &Connection,
    key: i64,
    run: &RunId,
) -> Result<Option<(String, bool)>, Fault> {
    // One whose text is not there is not what was written either.
    let find = "SELECT ?2, body, definitions.checksum
        FROM definitions LEFT JOIN texts ON texts.id = definitions.text WHERE run = ?1";
    let read = |row: &Row<'_>| Ok((text(row, 1)?, is_sound(row, "definitions", 0..2, 2)?));
    Ok(connection.prepare_cached(find)?.query_row(params![key, run.as_str()], read).optional()?)
}

/// Writes down what a run is created with. The text is there once for all runs that have it.
pub(crate) fn define(transaction: &Transaction<'_>, key: i64, run: &RunId, body: &str) -> Result<(), Fault> {
    let find = "SELECT id FROM texts WHERE checksum = row_checksum('texts', ?1) AND body = ?1";
    let found: Option<i64> = transaction.statement(find)?.query_row([body], |row| row.get(0)).optional()?;
    let text = match found {
        Some(text) => text,
        None => {
            let add = "INSERT INTO texts (body, checksum) VALUES (?1, row_checksum('texts', ?1))";
            transaction.statement(add)?.execute([body])?;
            transaction.connection.last_insert_rowid()
        }
    };
    let define = "INSERT INTO definitions (run, text, checksum)
        VALUES (?1, ?2, row_checksum('definitions', ?3, ?4))";
    transaction.statement(define)?.execute(params![key, text, run.as_str(), body])?;
    Ok(())
}

/// Returns what is said of a run whose definition is not what was written.
pub(crate) fn damaged_definition(run: &RunId) -> String {
    format!("what run `{run}` was created with is not what was written")
}

/// Returns the last checkpoint of a run.
pub(crate) fn checkpoint(connection: &Connection, run: &RunId) -> Result<Option<(Version, String)>, Fault> {
    let find = "SELECT id, checkpoints.version, body, checkpoints.checksum
        FROM checkpoints JOIN runs ON runs.key = checkpoints.run WHERE id = ?1";
    let mut statement = connection.prepare_cached(find)?;
    let read = |row: &Row<'_>| {
        let is_sound = is_sound(row, "checkpoints", 0..3, 3)?;
        Ok(if is_sound { Some((counted(row.get(1)?), row.get(2)?)) } else { None })
    };
    match statement.query_row([run.as_str()], read).optional()? {
        Some(None) => Err(Fault::damaged(format!("the checkpoint of run `{run}` is not what was written"))),
        found => Ok(found.flatten()),
    }
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
    let text: Option<i64> = transaction
        .statement("SELECT text FROM definitions WHERE run = ?1")?
        .query_row([key], |row| row.get(0))
        .optional()?;
    transaction.statement("DELETE FROM runs WHERE key = ?1")?.execute([key])?;
    let unused = "DELETE FROM texts WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM definitions WHERE text = ?1)";
    transaction.statement(unused)?.execute([text])?;
    transaction.effects.deleted.push(key);
    Ok(Ok(true))
}
