//! Shared states: written by whoever has seen the last one.

use rusqlite::{Connection, OptionalExtension as _, params};

use crate::record::Shared;
use crate::sqlite::fault::Fault;
use crate::sqlite::rows::{count, counted};
use crate::sqlite::transaction::Transaction;

/// Returns a shared state.
pub(crate) fn find(connection: &Connection, kind: &str, name: &str) -> Result<Option<Shared>, Fault> {
    let find = "SELECT version, body FROM shared WHERE kind = ?1 AND name = ?2";
    let shared = |row: &rusqlite::Row<'_>| Ok(Shared { version: counted(row.get(0)?), body: row.get(1)? });
    Ok(connection.prepare_cached(find)?.query_row([kind, name], shared).optional()?)
}

/// A shared state to be written.
pub(crate) struct Put {
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) expected: u64,
    pub(crate) body: String,
}

/// Writes a shared state, if it is as expected.
pub(crate) fn put(transaction: &Transaction<'_>, put: &Put) -> Result<bool, Fault> {
    let insert = "INSERT INTO shared (kind, name, version, body) VALUES (?1, ?2, ?3 + 1, ?4)
        ON CONFLICT (kind, name) DO NOTHING";
    let update =
        "UPDATE shared SET version = ?3 + 1, body = ?4 WHERE kind = ?1 AND name = ?2 AND version = ?3";
    let sql = if put.expected == 0 { insert } else { update };
    let written =
        transaction.statement(sql)?.execute(params![put.kind, put.name, count(put.expected), put.body])?;
    Ok(written == 1)
}
