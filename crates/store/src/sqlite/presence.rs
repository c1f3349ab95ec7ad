//! Who is there: each owner holds a lock of the kernel while its process lives, so that its end is seen at once.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidewheel_core::time::{Span, Timestamp};
use tokio::sync::Notify;

use crate::record::OwnerId;
use crate::sqlite::bell::{Listener, Ringer};
use crate::sqlite::peers::{LOCK, OWNER, is_free};
use crate::watch::{Renewal, Watch};

/// Files beside a database are for the user that made them, as the database is; a person may allow others more.
pub(crate) const MODE_OF_FILES: u32 = 0o600;

/// How the name of a note of an execution begins.
const EXECUTES: &str = "executes-";

/// An owner of this process.
pub(crate) struct Presence {
    /// The kernel lets it go when the process ends, however it ends.
    _lock: File,
    bell: Arc<Notify>,
    _listener: Listener,
}

/// The owners of this process, and the ways to those of others.
pub(crate) struct Roster {
    folder: PathBuf,
    database: PathBuf,
    present: Mutex<BTreeMap<OwnerId, Presence>>,
    watch: Mutex<Watch>,
    ringer: Ringer,
}

impl Roster {
    pub(crate) fn new(folder: PathBuf, database: PathBuf) -> Self {
        Self { folder, database, present: Mutex::default(), watch: Mutex::default(), ringer: Ringer::new() }
    }

    /// Returns where the database is.
    pub(crate) fn database(&self) -> &Path {
        &self.database
    }

    /// Takes the lock of a new owner, of whom nobody else knows yet.
    pub(crate) fn enter(&self, owner: OwnerId) -> io::Result<Presence> {
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false).mode(MODE_OF_FILES);
        let lock = options.open(self.lock_of(owner))?;
        lock.lock()?;
        let bell = Arc::default();
        let listener = Listener::start(self.socket_of(owner), &self.database, &bell)?;
        Ok(Presence { _lock: lock, bell, _listener: listener })
    }

    /// Remembers an owner of this process.
    pub(crate) fn add(&self, owner: OwnerId, presence: Presence) {
        self.present().insert(owner, presence);
    }

    /// Removes what an owner had beside the database. Whoever waits as this owner is woken.
    pub(crate) fn remove(&self, owner: OwnerId) {
        if let Some(presence) = self.present().remove(&owner) {
            presence.bell.notify_one();
        }
        self.watch().forget(owner);
        // What cannot be removed is in nobody's way: numbers of owners are never given again.
        let _removed = std::fs::remove_file(self.lock_of(owner));
        let _removed = std::fs::remove_file(self.socket_of(owner));
    }

    /// Lets all owners of this process go, as the end of the process would.
    pub(crate) fn clear(&self) {
        self.present().clear();
    }

    /// Returns whether the process of an owner has ended. Where that cannot be found out, it has not.
    pub(crate) fn is_gone(&self, owner: OwnerId) -> bool {
        !self.has(owner) && is_free(&self.lock_of(owner))
    }

    /// Returns whether an owner is one of this process.
    pub(crate) fn has(&self, owner: OwnerId) -> bool {
        self.present().contains_key(&owner)
    }

    /// Looks at an owner, and returns whether this process saw it not renew for a lease.
    pub(crate) fn is_late(&self, owner: OwnerId, renewal: Renewal, lease: Span, now: Timestamp) -> bool {
        self.watch().is_late(owner, renewal, lease, now)
    }

    /// Rings for an owner, and returns whether it is there to hear it.
    pub(crate) fn ring(&self, owner: OwnerId) -> bool {
        if let Some(presence) = self.present().get(&owner) {
            presence.bell.notify_one();
            return true;
        }
        self.ringer.ring(&self.socket_of(owner))
    }

    /// Returns what an owner of this process waits for.
    pub(crate) fn bell(&self, owner: OwnerId) -> Option<Arc<Notify>> {
        self.present().get(&owner).map(|presence| Arc::clone(&presence.bell))
    }

    /// Notes that a piece of work is executed, by a file without content: it is there when this process dies.
    pub(crate) fn note_execution(&self, key: i64, work: &str) {
        let path = self.folder.join(format!("{EXECUTES}{key}-{work}"));
        let noted = File::options().append(true).create(true).mode(MODE_OF_FILES).open(path);
        if let Err(error) = noted {
            // Then no process suspects it, and it may be lost again and again.
            tracing::warn!(%error, work, "it cannot be noted that work which was lost before is executed");
        }
    }

    /// Takes a note back.
    pub(crate) fn forget_execution(&self, key: i64, work: &str) {
        // What cannot be removed is taken for lost once more than it was.
        let _removed = std::fs::remove_file(self.folder.join(format!("{EXECUTES}{key}-{work}")));
    }

    /// Returns what was noted of a run, and takes it back.
    pub(crate) fn take_executions(&self, key: i64) -> Vec<String> {
        let prefix = format!("{EXECUTES}{key}-");
        let names = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let names = names.filter_map(|entry| entry.file_name().into_string().ok());
        let works: Vec<String> =
            names.filter_map(|name| Some(name.strip_prefix(&prefix)?.to_owned())).collect();
        for work in &works {
            self.forget_execution(key, work);
        }
        works
    }

    fn present(&self) -> MutexGuard<'_, BTreeMap<OwnerId, Presence>> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watch(&self) -> MutexGuard<'_, Watch> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_of(&self, owner: OwnerId) -> PathBuf {
        self.folder.join(format!("{OWNER}{}.{LOCK}", owner.0))
    }

    fn socket_of(&self, owner: OwnerId) -> PathBuf {
        self.folder.join(format!("{OWNER}{}.sock", owner.0))
    }
}

/// Returns the folder beside a database.
pub(crate) fn folder_of(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-tidewheel");
    name.into()
}
