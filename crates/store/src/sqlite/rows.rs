//! From rows to records: SQLite has numbers up to 2^63 only, so later instants become the last one there is.

use rusqlite::{Connection, OptionalExtension as _, Row};
use tidewheel_core::fact::RunId;
use tidewheel_core::time::Timestamp;

use crate::record::{OwnerId, RunRecord, Status};
use crate::sqlite::checksum::is_sound;

/// The columns that [`record`] reads, in its order.
pub(crate) const RECORD: &str = "key, id, workflow, workflow_version, status, reason, version, owner, fence, \
                                 wake_at, created_at, updated_at, checksum";

/// A run as its row has it.
pub(crate) struct StoredRun {
    pub(crate) key: i64,
    pub(crate) record: RunRecord,
    /// Whether the row is what was written.
    pub(crate) is_sound: bool,
}

/// Reads a run with its key. A row that is not what was written shows as such and as parked, so that it does not hide
/// all others of a list.
pub(crate) fn record(row: &Row<'_>) -> rusqlite::Result<StoredRun> {
    let mut is_sound = is_sound(row, "runs", 1..12, 12)?;
    let mut reason = row.get_ref(5)?.as_bytes_or_null().ok().flatten().map(lossy);
    let name = text(row, 4)?;
    let known = Status::from_name(&name);
    let status = known.filter(|_| is_sound).unwrap_or(Status::Parked);
    if known.is_none() {
        is_sound = false;
        reason = Some(format!("the stored record is damaged: `{name}` is no status"));
    } else if !is_sound {
        reason = Some("the stored record is damaged: it is not what was written".to_owned());
    }
    let record = RunRecord {
        id: RunId::new(&text(row, 1)?),
        workflow: text(row, 2)?,
        workflow_version: u32::try_from(number(row, 3)?.unwrap_or(0)).unwrap_or(0),
        status,
        reason,
        version: counted(number(row, 6)?.unwrap_or(0)),
        owner: number(row, 7)?.map(OwnerId),
        fence: counted(number(row, 8)?.unwrap_or(0)),
        wake_at: number(row, 9)?.map(instant),
        created_at: instant(number(row, 10)?.unwrap_or(0)),
        updated_at: instant(number(row, 11)?.unwrap_or(0)),
    };
    Ok(StoredRun { key: row.get(0)?, record, is_sound })
}

/// Returns the run with a key.
pub(crate) fn stored_run(connection: &Connection, key: i64) -> rusqlite::Result<Option<StoredRun>> {
    connection
        .prepare_cached(&format!("SELECT {RECORD} FROM runs WHERE key = ?1"))?
        .query_row([key], record)
        .optional()
}

/// Returns what is said of a run whose record is not what was written.
pub(crate) fn damaged_record(run: &RunId) -> String {
    format!("the record of run `{run}` is not what was written")
}

/// Reads a text; bytes that are none are replaced.
pub(crate) fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    Ok(row.get_ref(column)?.as_bytes().map(lossy).unwrap_or_default())
}

/// Reads a number; what is none is as if it were absent.
fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<i64>> {
    Ok(row.get_ref(column)?.as_i64().ok())
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns a count as SQLite keeps it.
pub(crate) fn count(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Returns a count that SQLite kept.
pub(crate) fn counted(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}

/// Returns an instant as SQLite keeps it.
pub(crate) fn nanos(at: Timestamp) -> i64 {
    count(at.as_nanos())
}

/// Returns an instant that SQLite kept.
pub(crate) fn instant(nanos: i64) -> Timestamp {
    Timestamp::from_nanos(counted(nanos))
}
