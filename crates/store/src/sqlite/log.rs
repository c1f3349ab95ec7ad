//! Reads of logs: each row is checked against what was written, and a log without gaps is what comes back.

use rusqlite::{Connection, Row, params};
use tidewheel_core::fact::RunId;

use crate::batch::Batch;
use crate::record::{Stored, Version};
use crate::sqlite::checksum::short_hash;
use crate::sqlite::fault::Fault;
use crate::sqlite::rows::{count, counted, instant};
use crate::sqlite::run::sound_run;
use crate::store::StoreError;

/// Begins with the row that holds the first event that is wanted.
const ROWS: &str = "SELECT first, count, at, checksum, body FROM events
    WHERE run = ?1 AND first >= ifnull((SELECT max(first) FROM events WHERE run = ?1 AND first <= ?2), 0)
    ORDER BY first";

/// Returns the rows whose last event is the wanted one or a later one.
pub(crate) fn read(connection: &Connection, run: &RunId, from: Version) -> Result<Vec<Stored>, StoreError> {
    // Run and events are read at the same moment, or a write between them would look like a gap.
    let snapshot = connection.unchecked_transaction().map_err(Fault::from)?;
    let Some(found) = sound_run(&snapshot, run)? else { return Ok(Vec::new()) };
    let (key, version) = (found.key, found.record.version);
    if from >= version {
        return Ok(Vec::new());
    }
    let mut statement = snapshot.prepare_cached(ROWS).map_err(Fault::from)?;
    let mut rows = statement.query(params![key, count(from)]).map_err(Fault::from)?;
    let mut stored: Vec<Stored> = Vec::new();
    let mut next = None;
    loop {
        let damaged =
            |what: String| StoreError::Damaged { run: run.clone(), version: next.unwrap_or(from), what };
        let row = match rows.next() {
            Ok(Some(row)) => row,
            Ok(None) => break,
            Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseCorrupt) => {
                return Err(damaged(error.to_string()));
            }
            Err(error) => return Err(Fault::from(error).error()),
        };
        let batch = match checked(run, row) {
            Ok(batch) => batch,
            Err(Bad { first, what }) => {
                return Err(StoreError::Damaged { run: run.clone(), version: first, what });
            }
        };
        let is_next = match next {
            None => batch.first <= from,
            Some(next) => batch.first == next,
        };
        if !is_next {
            return Err(damaged(format!("event {} comes next", batch.first)));
        }
        next = Some(batch.first + u64::from(batch.events.len()));
        stored.push(batch);
    }
    let end = next.unwrap_or(from);
    if end != version {
        let what = format!("the log ends there, and {version} events were written");
        return Err(StoreError::Damaged { run: run.clone(), version: end, what });
    }
    Ok(stored)
}

/// Returns what is kept beside a row of events, to tell whether it is what was written: the first 8 bytes of the
/// hash of the run, the numbers (first, count, at) and the events.
pub(crate) fn checksum(run: &RunId, numbers: [i64; 3], body: &[u8]) -> i64 {
    let id = run.as_str().as_bytes();
    let mut hashed = Vec::with_capacity(8 + id.len() + 24 + body.len());
    hashed.extend_from_slice(&(id.len() as u64).to_le_bytes());
    hashed.extend_from_slice(id);
    for number in numbers {
        hashed.extend_from_slice(&number.to_le_bytes());
    }
    hashed.extend_from_slice(body);
    short_hash(&hashed)
}

/// A row that is not what was written.
struct Bad {
    first: Version,
    what: String,
}

fn checked(run: &RunId, row: &Row<'_>) -> Result<Stored, Bad> {
    let first: i64 = row.get(0).unwrap_or(0);
    let bad = |what: String| Bad { first: counted(first), what };
    let unreadable = |error: rusqlite::Error| bad(error.to_string());
    let (events, at): (i64, i64) = (row.get(1).map_err(unreadable)?, row.get(2).map_err(unreadable)?);
    let expected: i64 = row.get(3).map_err(unreadable)?;
    let body = row.get_ref(4).map_err(unreadable)?.as_bytes().map_err(|error| bad(error.to_string()))?;
    if checksum(run, [first, events, at], body) != expected {
        return Err(bad("the checksum is another one".to_owned()));
    }
    let body = String::from_utf8(body.to_vec()).map_err(|error| bad(error.to_string()))?;
    let events = u32::try_from(events).map_err(|error| bad(error.to_string()))?;
    Ok(Stored { first: counted(first), at: instant(at), events: Batch::stored(body, events) })
}
