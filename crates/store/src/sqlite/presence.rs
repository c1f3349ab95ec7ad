//! Who is there: each owner holds a lock of the kernel while its process lives, so that its end is seen at once.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::record::OwnerId;
use crate::sqlite::bell::{Listener, Ringer};

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
    ringer: Ringer,
}

impl Roster {
    pub(crate) fn new(folder: PathBuf, database: PathBuf) -> Self {
        Self { folder, database, present: Mutex::default(), ringer: Ringer::new() }
    }

    /// Takes the lock of a new owner, of whom nobody else knows yet.
    pub(crate) fn enter(&self, owner: OwnerId) -> io::Result<Presence> {
        let lock =
            File::options().read(true).write(true).create(true).truncate(false).open(self.lock_of(owner))?;
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
        // What cannot be removed is in nobody's way: numbers of owners are never given again.
        let _removed = std::fs::remove_file(self.lock_of(owner));
        let _removed = std::fs::remove_file(self.socket_of(owner));
    }

    /// Lets all owners of this process go, as the end of the process would.
    pub(crate) fn clear(&self) {
        self.present().clear();
    }

    /// Tells whether the process of an owner has ended. Where nobody can tell, it has not.
    pub(crate) fn is_gone(&self, owner: OwnerId) -> bool {
        if self.present().contains_key(&owner) {
            return false;
        }
        let Ok(lock) = File::open(self.lock_of(owner)) else {
            return false;
        };
        // The lock that is got here goes with the file at the end. It is a shared one: of several who look at the
        // same time, each must see it.
        match lock.try_lock_shared() {
            Ok(()) => true,
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => false,
        }
    }

    /// Rings for an owner, and tells whether it is there to hear it.
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

    fn present(&self) -> MutexGuard<'_, BTreeMap<OwnerId, Presence>> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_of(&self, owner: OwnerId) -> PathBuf {
        self.folder.join(format!("owner-{}.lock", owner.0))
    }

    fn socket_of(&self, owner: OwnerId) -> PathBuf {
        self.folder.join(format!("owner-{}.sock", owner.0))
    }
}

/// Returns the folder beside a database.
pub(crate) fn folder_of(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-tidewheel");
    name.into()
}
