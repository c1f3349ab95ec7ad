//! What SQLite and the system say when they fail, and what that means for whoever asked.

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;

use rusqlite::ErrorCode;

use crate::store::{StoreError, Unavailable};

/// A failure that can be told to everybody who waited.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    kind: Kind,
    source: Arc<dyn Error + Send + Sync>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The surroundings are to blame, and may get better.
    Environment(Unavailable),
    /// What was written may not be on the disk, and nobody can tell.
    Final,
    /// The request itself may be to blame.
    Request,
    /// The files are not where they were, so a later process would not find what is written.
    Moved,
    /// A row that the request needs is not what was written.
    Damage,
}

/// Results of fsync that were bad; a second try would say that all is well, and be wrong.
const FAILED_SYNCS: [i32; 2] = [rusqlite::ffi::SQLITE_IOERR_FSYNC, rusqlite::ffi::SQLITE_IOERR_DIR_FSYNC];

impl Fault {
    pub(crate) fn new(kind: Unavailable, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { kind: Kind::Environment(kind), source: Arc::from(source.into()) }
    }

    /// Returns what a failed commit means: after an I/O error nobody knows what is on the disk.
    pub(crate) fn of_commit(error: rusqlite::Error) -> Self {
        let mut fault = Self::from(error);
        if fault.kind == Kind::Environment(Unavailable::Io) {
            fault.kind = Kind::Final;
        }
        fault
    }

    /// Returns the failure of a request that needs a row which is not what was written.
    pub(crate) fn damaged(what: String) -> Self {
        Self { kind: Kind::Damage, source: Arc::from(Box::<dyn Error + Send + Sync>::from(what)) }
    }

    /// Returns the failure of a store whose files were taken away.
    pub(crate) fn moved(what: String) -> Self {
        Self { kind: Kind::Moved, source: Arc::from(Box::<dyn Error + Send + Sync>::from(what)) }
    }

    /// Returns whether another process holds what was needed.
    pub(crate) fn is_busy(&self) -> bool {
        self.kind == Kind::Environment(Unavailable::Busy)
    }

    /// Tells whether the store can never be trusted again in this process.
    pub(crate) fn is_final(&self) -> bool {
        matches!(self.kind, Kind::Final | Kind::Moved)
    }

    /// Tells whether another request might be taken where this one failed.
    pub(crate) fn is_of_request(&self) -> bool {
        matches!(self.kind, Kind::Request | Kind::Damage)
    }

    /// Returns what a caller is told.
    pub(crate) fn error(&self) -> StoreError {
        let source = Box::new(Said(Arc::clone(&self.source)));
        match self.kind {
            Kind::Environment(why) => StoreError::Unavailable { why, source },
            Kind::Final => StoreError::Broken,
            Kind::Moved => StoreError::Moved { what: self.source.to_string() },
            Kind::Request => StoreError::Other(source),
            Kind::Damage => StoreError::DamagedRow { what: self.source.to_string() },
        }
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        let kind = match &error {
            rusqlite::Error::SqliteFailure(failure, _) if FAILED_SYNCS.contains(&failure.extended_code) => {
                Kind::Final
            }
            rusqlite::Error::SqliteFailure(failure, _) => match failure.code {
                ErrorCode::DiskFull => Kind::Environment(Unavailable::Full),
                ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::FileLockingProtocolFailed => Kind::Environment(Unavailable::Busy),
                ErrorCode::ReadOnly => Kind::Environment(Unavailable::ReadOnly),
                ErrorCode::SystemIoFailure
                | ErrorCode::CannotOpen
                | ErrorCode::PermissionDenied
                | ErrorCode::OutOfMemory => Kind::Environment(Unavailable::Io),
                _ => Kind::Request,
            },
            _ => Kind::Request,
        };
        Self { kind, source: Arc::new(error) }
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        let why = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Unavailable::Full,
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => Unavailable::ReadOnly,
            _ => Unavailable::Io,
        };
        Self::new(why, error)
    }
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        fault.error()
    }
}

/// Tells whether an error of a SQLite store means that its file is not what was written, as when its end is missing.
#[must_use]
pub fn is_damage(error: &StoreError) -> bool {
    let StoreError::Other(said) = error else { return false };
    let mut cause: Option<&(dyn Error + 'static)> = said.source();
    while let Some(error) = cause {
        if let Some(failure) = error.downcast_ref::<rusqlite::ffi::Error>() {
            return matches!(failure.code, ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase);
        }
        cause = error.source();
    }
    false
}

/// What the backend said, shared by all whom it concerns.
#[derive(Debug)]
struct Said(Arc<dyn Error + Send + Sync>);

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for Said {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(extended_code: i32) -> rusqlite::Error {
        rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(extended_code), None)
    }

    #[test]
    fn what_sqlite_says_is_told_in_our_words() {
        for (code, why) in [
            (rusqlite::ffi::SQLITE_FULL, Unavailable::Full),
            (rusqlite::ffi::SQLITE_BUSY, Unavailable::Busy),
            (rusqlite::ffi::SQLITE_BUSY_SNAPSHOT, Unavailable::Busy),
            (rusqlite::ffi::SQLITE_READONLY_DBMOVED, Unavailable::ReadOnly),
            (rusqlite::ffi::SQLITE_IOERR_WRITE, Unavailable::Io),
            (rusqlite::ffi::SQLITE_CANTOPEN, Unavailable::Io),
        ] {
            let error = Fault::from(failure(code)).error();
            assert!(matches!(error, StoreError::Unavailable { why: found, .. } if found == why), "{error:?}");
        }
        assert!(matches!(Fault::from(failure(rusqlite::ffi::SQLITE_TOOBIG)).error(), StoreError::Other(_)));
    }

    #[test]
    fn a_file_that_is_not_what_was_written_is_known_as_damaged() {
        use rusqlite::ffi;
        for code in [ffi::SQLITE_CORRUPT, ffi::SQLITE_CORRUPT_INDEX, ffi::SQLITE_NOTADB] {
            assert!(is_damage(&Fault::from(failure(code)).error()), "{code}");
        }
        for code in [ffi::SQLITE_FULL, ffi::SQLITE_TOOBIG, ffi::SQLITE_CANTOPEN, ffi::SQLITE_BUSY] {
            assert!(!is_damage(&Fault::from(failure(code)).error()), "{code}");
        }
    }

    #[test]
    fn a_sync_that_failed_is_final_wherever_it_happens() {
        for code in FAILED_SYNCS {
            assert!(matches!(Fault::from(failure(code)).error(), StoreError::Broken));
        }
        let write = || failure(rusqlite::ffi::SQLITE_IOERR_WRITE);
        assert!(!Fault::from(write()).is_final() && Fault::of_commit(write()).is_final());
        assert!(!Fault::of_commit(failure(rusqlite::ffi::SQLITE_FULL)).is_final());
    }
}
