//! Connections and how they are set: durable, patient, and strict about references.

use std::path::Path;
use std::time::Duration;

use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags};

use crate::sqlite::checksum;
use crate::sqlite::fault::Fault;
use crate::sqlite::options::Options;

/// The pages of the log that may gather before they are moved into the database, 4 KiB each: few large moves cost
/// less than many small ones, and reading stays quick.
const PAGES_OF_LOG: u32 = 4_000;
/// What is left of a log that a flood of writes made long, in bytes.
const BYTES_OF_LOG: u32 = 64 << 20;
/// What the writer may keep in memory, in KiB: the runs that are busy at one time.
const WRITER_CACHE: i32 = 65_536;
/// What each reader may keep in memory, in KiB.
const READER_CACHE: i32 = 8_192;
/// More than there are statements.
const STATEMENTS: usize = 128;

/// Opens the connection that writes.
pub(crate) fn open_writer(path: &Path, options: &Options) -> Result<Connection, Fault> {
    let connection = open(path, options)?;
    if !options.read_only {
        enter_wal(&connection, options.patience)?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "wal_autocheckpoint", PAGES_OF_LOG)?;
        connection.pragma_update_and_check(None, "journal_size_limit", BYTES_OF_LOG, |_| Ok(()))?;
        connection.pragma_update(None, "foreign_keys", "ON")?;
        if let Some(bytes) = options.bytes_at_most {
            connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, i32::try_from(bytes).unwrap_or(i32::MAX))?;
        }
        if let Some(pages) = options.pages_at_most {
            connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
        }
    }
    connection.pragma_update(None, "cache_size", -WRITER_CACHE)?;
    Ok(connection)
}

/// Opens a connection that only reads.
pub(crate) fn open_reader(path: &Path, options: &Options) -> Result<Connection, Fault> {
    let connection = open(path, options)?;
    connection.pragma_update(None, "query_only", "ON")?;
    connection.pragma_update(None, "cache_size", -READER_CACHE)?;
    Ok(connection)
}

fn open(path: &Path, options: &Options) -> Result<Connection, Fault> {
    // Each connection has one thread, so SQLite need not lock it.
    let mut flags = OpenFlags::SQLITE_OPEN_NO_MUTEX;
    flags |= if options.read_only {
        OpenFlags::SQLITE_OPEN_READ_ONLY
    } else {
        // The file is there already. One that was taken away since must not be made anew.
        OpenFlags::SQLITE_OPEN_READ_WRITE
    };
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(options.patience)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    checksum::add_function(&connection)?;
    Ok(connection)
}

/// Opens a database to look at it; it must exist, and nothing of it changes.
pub(crate) fn open_to_look(path: &Path, options: &Options) -> Result<Connection, Fault> {
    open(path, &options.clone().read_only())
}

/// Makes the database one with a log. Whoever does it needs the file for itself, and SQLite does not always wait
/// for that, so it is tried again until the patience is over.
fn enter_wal(connection: &Connection, patience: Duration) -> Result<(), Fault> {
    const PAUSE: Duration = Duration::from_millis(5);
    let mut left = patience;
    loop {
        let entered =
            connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
        let fault = match entered {
            Ok(mode) if mode.eq_ignore_ascii_case("wal") => return Ok(()),
            Ok(mode) => {
                let said = format!("the database cannot have a write-ahead log: its mode is {mode}");
                return Err(Fault::new(crate::store::Unavailable::Io, said));
            }
            Err(error) => error,
        };
        if fault.sqlite_error_code() != Some(rusqlite::ErrorCode::DatabaseBusy) || left.is_zero() {
            return Err(fault.into());
        }
        std::thread::sleep(PAUSE.min(left));
        left = left.saturating_sub(PAUSE);
    }
}
