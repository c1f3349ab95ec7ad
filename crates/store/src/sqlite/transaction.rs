//! What a request works with while it writes: the connection, the time, and what follows once all is committed.

use std::collections::BTreeSet;

use rusqlite::{CachedStatement, Connection};
use tidewheel_core::fact::RunId;
use tidewheel_core::time::{Span, Timestamp};

use crate::record::{OwnerId, Version};
use crate::sqlite::fault::Fault;
use crate::sqlite::health::Health;
use crate::sqlite::presence::{Presence, Roster};
use crate::sqlite::rows::nanos;
use crate::time::StoreTime;

/// A transaction that is open.
pub(crate) struct Transaction<'a> {
    pub(crate) connection: &'a Connection,
    /// When it began, by the store's time; everything in it happens then.
    pub(crate) now: Timestamp,
    /// When it began, by the clock of this process. Leases are watched by it.
    pub(crate) local: Timestamp,
    /// The store's time of the last commit before it.
    pub(crate) stored: Timestamp,
    pub(crate) time: &'a mut StoreTime,
    pub(crate) roster: &'a Roster,
    pub(crate) health: &'a Health,
    pub(crate) effects: Effects,
}

/// What happens outside of the database after a commit, and only then.
#[derive(Default)]
pub(crate) struct Effects {
    /// Whom to tell that something was asked of its runs.
    pub(crate) ring: BTreeSet<OwnerId>,
    /// Whether everybody is to be told that a run waits for somebody.
    pub(crate) ring_all: bool,
    /// Who became an owner.
    pub(crate) joined: Vec<(OwnerId, Presence)>,
    /// The keys of runs that are gone.
    pub(crate) deleted: Vec<i64>,
    /// Who is none any more.
    pub(crate) left: Vec<OwnerId>,
    /// The runs that were written to, each with the number of its events afterwards.
    pub(crate) written: Vec<(RunId, Version)>,
}

impl Transaction<'_> {
    /// Returns a statement that is prepared once.
    pub(crate) fn statement(&self, sql: &str) -> Result<CachedStatement<'_>, Fault> {
        Ok(self.connection.prepare_cached(sql)?)
    }

    /// Asks again what the store's time is, after a look at who else keeps it.
    pub(crate) fn meet(&mut self, longest_lease: Option<Span>) {
        self.time.meet(self.local, self.stored, longest_lease);
        self.now = self.time.now(self.local, self.stored);
    }

    /// Returns the time as SQLite keeps it.
    pub(crate) fn nanos(&self) -> i64 {
        nanos(self.now)
    }
}
