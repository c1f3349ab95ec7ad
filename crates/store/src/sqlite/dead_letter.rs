//! Dead letters: work that was put aside with its log, until that goes on with it or somebody takes it away.

use rusqlite::{Connection, Row, params};
use tidewheel_core::fact::RunId;

use crate::page::{page, place, rows_of_page};
use crate::record::{DeadLetter, DeadLetterId, Letter, NewDeadLetter, Page};
use crate::sqlite::checksum::is_sound;
use crate::sqlite::fault::Fault;
use crate::sqlite::health::Health;
use crate::sqlite::rows::{instant, text};
use crate::sqlite::transaction::Transaction;
use crate::store::StoreError;

/// Puts work of a run aside, or no longer.
pub(crate) fn write(transaction: &Transaction<'_>, run: &RunId, letter: &Letter) -> Result<(), Fault> {
    match letter {
        Letter::Bury(NewDeadLetter { work, node, body }) => {
            // What is replaced gets another number: whoever saw the one before cannot take this one away unseen.
            let replace = "INSERT OR REPLACE INTO dead_letters (run, work, node, body, at, checksum)
                VALUES (?1, ?2, ?3, ?4, ?5, row_checksum('dead_letters', ?1, ?2, ?3, ?4, ?5))";
            let values = params![run.as_str(), work, node, body, transaction.nanos()];
            transaction.statement(replace)?.execute(values)?;
        }
        Letter::Raise { work } => {
            let remove = "DELETE FROM dead_letters WHERE run = ?1 AND work = ?2";
            transaction.statement(remove)?.execute([run.as_str(), work])?;
        }
    }
    Ok(())
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
    health: &Health,
) -> Result<Page<DeadLetter>, StoreError> {
    let wanted = rows_of_page(None);
    let after = place(after)?.unwrap_or(i64::MIN);
    let limit = i64::try_from(wanted + 1).unwrap_or(i64::MAX);
    let read = || -> rusqlite::Result<Vec<DeadLetter>> {
        let all = "SELECT id, run, work, node, body, at, checksum FROM dead_letters WHERE id > ?1
            ORDER BY id LIMIT ?2";
        let of_run =
            "SELECT id, run, work, node, body, at, checksum FROM dead_letters WHERE id > ?1 AND run = ?3
            ORDER BY id LIMIT ?2";
        let letter = |row: &Row<'_>| letter(row, health);
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

/// Reads a letter. One that is not what was written is noted and still shown, so that it does not hide all others.
fn letter(row: &Row<'_>, health: &Health) -> rusqlite::Result<DeadLetter> {
    let letter = DeadLetter {
        id: DeadLetterId(row.get(0)?),
        run: RunId::new(&text(row, 1)?),
        work: text(row, 2)?,
        node: text(row, 3)?,
        body: text(row, 4)?,
        at: instant(row.get_ref(5)?.as_i64().unwrap_or(0)),
    };
    if !is_sound(row, "dead_letters", 1..6, 6)? {
        health.note(format!("dead letter {} of run `{}` is not what was written", letter.id.0, letter.run));
    }
    Ok(letter)
}
