//! Shared states: written by whoever has seen the last ones, all together.

use rusqlite::{Connection, OptionalExtension as _, params};

use crate::page::{page, rows_of_page};
use crate::record::{Page, PutShared, Shared};
use crate::sqlite::fault::Fault;
use crate::sqlite::rows::{count, counted, text};
use crate::sqlite::transaction::Transaction;

/// Returns a shared state.
pub(crate) fn find(connection: &Connection, kind: &str, name: &str) -> Result<Option<Shared>, Fault> {
    let find = "SELECT version, body FROM shared WHERE kind = ?1 AND name = ?2";
    let shared = |row: &rusqlite::Row<'_>| Ok(Shared { version: counted(row.get(0)?), body: row.get(1)? });
    Ok(connection.prepare_cached(find)?.query_row([kind, name], shared).optional()?)
}

/// Returns a page of the shared states of a kind, in the order of their names.
pub(crate) fn list(
    connection: &Connection,
    kind: &str,
    after: Option<&str>,
) -> Result<Page<(String, Shared)>, Fault> {
    let wanted = rows_of_page(None);
    let limit = i64::try_from(wanted + 1).unwrap_or(i64::MAX);
    // An empty name is one, too, and comes before all others.
    let rows = "SELECT name, version, body FROM shared
        WHERE kind = ?1 AND name >= ifnull(?2, '') AND name IS NOT ?2 ORDER BY name LIMIT ?3";
    let mut statement = connection.prepare_cached(rows)?;
    let rows = statement.query_map(params![kind, after, limit], |row| {
        Ok((row.get(0)?, Shared { version: counted(row.get(1)?), body: text(row, 2)? }))
    })?;
    Ok(page(rows.collect::<Result<_, _>>()?, wanted, |(name, _): &(String, Shared)| name.clone()))
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
            let insert = "INSERT INTO shared (kind, name, version, body)
                VALUES (?1, ?2, (SELECT version + 1 FROM shared_removed), ?3)
                ON CONFLICT (kind, name) DO NOTHING";
            transaction.statement(insert)?.execute([kind, name, body])?
        }
        (Some(body), expected) => {
            let update = "UPDATE shared SET version = ?3 + 1, body = ?4
                WHERE kind = ?1 AND name = ?2 AND version = ?3";
            transaction.statement(update)?.execute(params![kind, name, expected, body])?
        }
        (None, 0) => {
            let there = "SELECT 1 FROM shared WHERE kind = ?1 AND name = ?2";
            return Ok(!transaction.statement(there)?.exists([kind, name])?);
        }
        (None, expected) => {
            let remove = "DELETE FROM shared WHERE kind = ?1 AND name = ?2 AND version = ?3";
            let keep = "UPDATE shared_removed SET version = max(version, ?1)";
            let removed = transaction.statement(remove)?.execute(params![kind, name, expected])?;
            if removed == 1 {
                transaction.statement(keep)?.execute([expected])?;
            }
            removed
        }
    };
    Ok(changed == 1)
}
