//! Dead letters: work that was put aside, until somebody takes it away.

use rusqlite::{Connection, Row, params};
use tidewheel_core::fact::RunId;

use crate::page::{page, place, rows_of_page};
use crate::record::{DeadLetter, DeadLetterId, NewDeadLetter, Page};
use crate::sqlite::fault::Fault;
use crate::sqlite::rows::instant;
use crate::sqlite::transaction::Transaction;
use crate::store::StoreError;

/// Puts work aside.
pub(crate) fn bury(transaction: &Transaction<'_>, letter: &NewDeadLetter) -> Result<DeadLetterId, Fault> {
    let insert = "INSERT INTO dead_letters (run, node, body, at) VALUES (?1, ?2, ?3, ?4)";
    let values = params![letter.run.as_str(), letter.node, letter.body, transaction.nanos()];
    transaction.statement(insert)?.execute(values)?;
    Ok(DeadLetterId(transaction.connection.last_insert_rowid()))
}

/// Takes something that was put aside away.
pub(crate) fn unbury(transaction: &Transaction<'_>, id: DeadLetterId) -> Result<bool, Fault> {
    Ok(transaction.statement("DELETE FROM dead_letters WHERE id = ?1")?.execute([id.0])? == 1)
}

/// Returns a page of what was put aside, oldest first.
pub(crate) fn list(
    connection: &Connection,
    run: Option<&RunId>,
    after: Option<&str>,
) -> Result<Page<DeadLetter>, StoreError> {
    let wanted = rows_of_page(None);
    let after = place(after)?.unwrap_or(i64::MIN);
    let limit = i64::try_from(wanted + 1).unwrap_or(i64::MAX);
    let read = || -> rusqlite::Result<Vec<DeadLetter>> {
        let all = "SELECT id, run, node, body, at FROM dead_letters WHERE id > ?1 ORDER BY id LIMIT ?2";
        let of_run = "SELECT id, run, node, body, at FROM dead_letters WHERE id > ?1 AND run = ?3
            ORDER BY id LIMIT ?2";
        match run {
            None => connection.prepare_cached(all)?.query_map([after, limit], letter)?.collect(),
            Some(run) => connection
                .prepare_cached(of_run)?
                .query_map(params![after, limit, run.as_str()], letter)?
                .collect(),
        }
    };
    Ok(page(read().map_err(Fault::from)?, wanted, |letter| letter.id.0))
}

fn letter(row: &Row<'_>) -> rusqlite::Result<DeadLetter> {
    Ok(DeadLetter {
        id: DeadLetterId(row.get(0)?),
        run: RunId::new(row.get_ref(1)?.as_str()?),
        node: row.get(2)?,
        body: row.get(3)?,
        at: instant(row.get(4)?),
    })
}
