//! Shared states: written by whoever has seen the last ones, all together.

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::page::{page, rows_of_page};
use crate::record::{Page, PutShared, Shared};
use crate::sqlite::checksum::is_sound;
use crate::sqlite::fault::Fault;
use crate::sqlite::health::Health;
use crate::sqlite::rows::{count, counted, text};
use crate::sqlite::transaction::Transaction;

/// Returns a shared state.
pub(crate) fn find(connection: &Connection, kind: &str, name: &str) -> Result<Option<Shared>, Fault> {
    let find = "SELECT kind, name, version, body, checksum FROM shared WHERE kind = ?1 AND name = ?2";
    match connection.prepare_cached(find)?.query_row([kind, name], row_of).optional()? {
        Some((_, None)) => Err(Fault::damaged(damaged(kind, name))),
        found => Ok(found.and_then(|(_, shared)| shared)),
    }
}

/// Reads the name and the state of a row, which has no state if it is not what was written.
fn row_of(row: &Row<'_>) -> rusqlite::Result<(String, Option<Shared>)> {
    let name = text(row, 1)?;
    if !is_sound(row, "shared", 0..4, 4)? {
        return Ok((name, None));
    }
    Ok((name, Some(Shared { version: counted(row.get(2)?), body: row.get(3)? })))
}

fn damaged(kind: &str, name: &str) -> String {
    format!("the shared state `{name}` of kind `{kind}` is not what was written")
}

/// Returns a page of the shared states of a kind, in the order of their names. Those that are not what was written are
/// noted and left out.
pub(crate) fn list(
    connection: &Connection,
    kind: &str,
    after: Option<&str>,
    health: &Health,
) -> Result<Page<(String, Shared)>, Fault> {
    let wanted = rows_of_page(None);
    let limit = i64::try_from(wanted + 1).unwrap_or(i64::MAX);
    // An empty name is one, too, and comes before all others.
    let rows = "SELECT kind, name, version, body, checksum FROM shared
        WHERE kind = ?1 AND name >= ifnull(?2, '') AND name IS NOT ?2 ORDER BY name LIMIT ?3";
    let mut statement = connection.prepare_cached(rows)?;
    let rows = statement.query_map(params![kind, after, limit], row_of)?.collect::<Result<Vec<_>, _>>()?;
    let Page { rows, next } = page(rows, wanted, |(name, _)| name.clone());
    let sound = |(name, shared): (String, Option<Shared>)| {
        if shared.is_none() {
            health.note(damaged(kind, &name));
        }
        shared.map(|shared| (name, shared))
    };
    Ok(Page { rows: rows.into_iter().filter_map(sound).collect(), next })
}

/// Writes and removes shared states, if all of them are as expected.
pub(crate) fn put(transaction: &Transaction<'_>, puts: &[PutShared]) -> Result<bool, Fault> {
    // Others have written in the same transaction, and what they wrote must stay.
    transaction.statement("SAVEPOINT puts")?.execute([])?;
    for put in puts {
        if !put_one(transaction, put)? {
            transaction.statement("ROLLBACK TO puts")?.execute([])?;
            transaction.statement("RELEASE puts")?.execute([])?;
            return Ok(false);
        }
    }
    transaction.statement("RELEASE puts")?.execute([])?;
    Ok(true)
}

fn put_one(transaction: &Transaction<'_>, put: &PutShared) -> Result<bool, Fault> {
    let PutShared { kind, name, expected, body } = put;
    let expected = count(*expected);
    let changed = match (body, expected) {
        (Some(body), 0) => {
            let insert = "INSERT INTO shared (kind, name, version, body, checksum)
                SELECT ?1, ?2, version + 1, ?3, row_checksum('shared', ?1, ?2, version + 1, ?3)
                FROM shared_removed WHERE TRUE
                ON CONFLICT (kind, name) DO NOTHING";
            transaction.statement(insert)?.execute([kind, name, body])?
        }
        (Some(body), expected) => {
            let update = "UPDATE shared SET version = ?3 + 1, body = ?4,
                    checksum = row_checksum('shared', ?1, ?2, ?3 + 1, ?4)
                WHERE kind = ?1 AND name = ?2 AND version = ?3";
            transaction.statement(update)?.execute(params![kind, name, expected, body])?
        }
        (None, 0) => {
            let there = "SELECT 1 FROM shared WHERE kind = ?1 AND name = ?2";
            return Ok(!transaction.statement(there)?.exists([kind, name])?);
        }
        (None, expected) => {
            let remove = "DELETE FROM shared WHERE kind = ?1 AND name = ?2 AND version = ?3";
            // A row that is not what was written keeps its wrong checksum.
            let keep = "UPDATE shared_removed SET version = max(version, ?1), checksum = CASE
                WHEN checksum = row_checksum('shared_removed', version)
                THEN row_checksum('shared_removed', max(version, ?1)) ELSE checksum END";
            let removed = transaction.statement(remove)?.execute(params![kind, name, expected])?;
            if removed == 1 {
                transaction.statement(keep)?.execute([expected])?;
            }
            removed
        }
    };
    Ok(changed == 1)
}
