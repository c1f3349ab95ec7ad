//! What the tests of the store write, and the database that they write to.

use std::path::PathBuf;
use std::sync::Arc;

use rusqlite::Connection;
use tempfile::TempDir;
use tidewheel_core::fact::RunId;
use tidewheel_core::time::{Span, Timestamp};
use tidewheel_store::sqlite::Options;
use tidewheel_store::{
    Append, Batch, Claim, Claimed, Guard, Lease, NewCommand, NewRun, OwnerId, RealClock, Refused, Sqlite,
    Status, Store, StoreError, Unavailable, Wanted,
};

pub(crate) const LEASE: Span = Span::from_secs(600);

/// A folder with a database in it.
pub(crate) struct Place {
    folder: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("store.db")
    }

    /// Returns the folder beside the database.
    pub(crate) fn beside(&self) -> PathBuf {
        self.folder.path().join("store.db-tidewheel")
    }

    pub(crate) fn open(&self) -> Sqlite {
        self.try_open(&Options::new()).unwrap()
    }

    pub(crate) fn try_open(&self, options: &Options) -> Result<Sqlite, StoreError> {
        Sqlite::open_with(self.path(), Arc::new(RealClock::new()), options)
    }

    /// Opens the database past the store.
    pub(crate) fn bare(&self) -> Connection {
        Connection::open(self.path()).unwrap()
    }
}

pub(crate) fn new_run(id: &str, owner: Option<OwnerId>) -> Append {
    let definition = r#"{"workflow":"flow"}"#.to_owned();
    let new = NewRun { workflow: "flow".to_owned(), workflow_version: 1, definition, owner };
    let lease = Lease { run: RunId::new(id), key: 0, fence: 0 };
    let wake_at = owner.is_none().then_some(Timestamp::from_nanos(0));
    Append { guard: Guard::New(Box::new(new)), wake_at, ..more(&lease, 0) }
}

pub(crate) fn more(lease: &Lease, expected: u64) -> Append {
    let mut events = Batch::new();
    events.push(&format!(r#"{{"n":{expected}}}"#));
    Append {
        run: lease.run.clone(),
        guard: Guard::Held { key: lease.key, fence: lease.fence },
        expected,
        events,
        status: Status::Running,
        reason: None,
        wake_at: None,
        handled: Vec::new(),
        checkpoint: None,
        letters: Vec::new(),
        release: false,
    }
}

pub(crate) fn command(id: &str) -> NewCommand {
    NewCommand { run: RunId::new(id), kind: "signal".to_owned(), body: "{}".to_owned() }
}

pub(crate) async fn write(store: &dyn Store, append: Append) -> Result<Result<Lease, Refused>, StoreError> {
    Ok(store.append(vec![append]).await?.remove(0))
}

pub(crate) async fn claim_due(store: &dyn Store, owner: OwnerId) -> Claimed {
    let workflows = vec![("flow".to_owned(), 1)];
    store.claim(Claim { owner, wanted: Wanted::Due { workflows, limit: 100 } }).await.unwrap()
}

/// Returns what stands in the way, where something does that may pass.
pub(crate) fn obstacle<T>(answer: Result<T, StoreError>) -> Option<Unavailable> {
    match answer {
        Err(StoreError::Unavailable { why, .. }) => Some(why),
        Ok(_) | Err(_) => None,
    }
}
