//! From rows to records: SQLite has numbers up to 2^63 only, so later instants become the last one there is.

use rusqlite::Row;
use tidewheel_core::fact::RunId;
use tidewheel_core::time::Timestamp;

use crate::record::{OwnerId, RunRecord, Status};

/// The columns that [`record`] reads, in its order.
pub(crate) const RECORD: &str = "key, id, workflow, workflow_version, status, reason, version, owner, fence, \
                                 wake_at, created_at, updated_at";

/// Reads a run with its key. Text that is not what was written shows as such, so that one bad row does not hide
/// all others of a list.
pub(crate) fn record(row: &Row<'_>) -> rusqlite::Result<(i64, RunRecord)> {
    let mut reason = row.get_ref(5)?.as_bytes_or_null()?.map(lossy);
    let name = text(row, 4)?;
    let status = Status::from_name(&name).unwrap_or_else(|| {
        reason = Some(format!("the stored record is damaged: `{name}` is no status"));
        Status::Parked
    });
    let record = RunRecord {
        id: RunId::new(&text(row, 1)?),
        workflow: text(row, 2)?,
        workflow_version: row.get(3)?,
        status,
        reason,
        version: counted(row.get(6)?),
        owner: row.get::<_, Option<i64>>(7)?.map(OwnerId),
        fence: counted(row.get(8)?),
        wake_at: row.get::<_, Option<i64>>(9)?.map(instant),
        created_at: instant(row.get(10)?),
        updated_at: instant(row.get(11)?),
    };
    Ok((row.get(0)?, record))
}

/// Reads a text; bytes that are none are replaced.
pub(crate) fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    Ok(lossy(row.get_ref(column)?.as_bytes()?))
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
