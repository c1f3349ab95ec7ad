//! The other owners of a database on this machine: the lock of one that has died is free, which a look shows
//! at once. It wakes no process and takes nothing.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

/// How the name of an owner's lock ends.
pub(crate) const LOCK: &str = "lock";
/// How the name of an owner's lock begins.
pub(crate) const OWNER: &str = "owner-";

/// The locks of the other owners in the folder beside a database.
pub(crate) struct Peers {
    folder: PathBuf,
    own: OsString,
    /// Those that were found free already.
    free: BTreeSet<OsString>,
}

/// What a look at the locks found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    /// Whether there are others.
    pub(crate) has_others: bool,
    /// Whether one of them has died since the last look.
    pub(crate) has_died: bool,
}

impl Peers {
    /// Returns the others beside the owner whose socket or lock this is.
    pub(crate) fn of(own: &Path) -> Self {
        let lock = own.with_extension(LOCK);
        Self {
            folder: lock.parent().unwrap_or_else(|| Path::new(".")).to_owned(),
            own: lock.file_name().unwrap_or_default().to_owned(),
            free: BTreeSet::new(),
        }
    }

    /// Looks at all locks. Where the folder cannot be read, there are no others.
    pub(crate) fn look(&mut self) -> Look {
        let mut look = Look { has_others: false, has_died: false };
        let mut free = BTreeSet::new();
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let is_lock = Path::new(&name).extension().is_some_and(|end| end == LOCK)
                && name.as_encoded_bytes().starts_with(OWNER.as_bytes());
            if !is_lock || name == self.own {
                continue;
            }
            look.has_others = true;
            if is_free(&entry.path()) {
                look.has_died |= !self.free.contains(&name);
                free.insert(name);
            }
        }
        self.free = free;
        look
    }
}

/// Returns whether the process that held a lock has ended. Where that cannot be found out, it has not.
pub(crate) fn is_free(lock: &Path) -> bool {
    let Ok(lock) = File::open(lock) else {
        return false;
    };
    // The lock that is got here goes with the file at the end. It is a shared one: of several who look at the same
    // time, each must see it.
    match lock.try_lock_shared() {
        Ok(()) => true,
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_death_of_another_is_seen_once() {
        let folder = tempfile::tempdir().unwrap();
        let lock = |owner: u32| {
            let file = File::create(folder.path().join(format!("owner-{owner}.lock"))).unwrap();
            file.lock().unwrap();
            file
        };
        let seen = |has_others, has_died| Look { has_others, has_died };
        let mut peers = Peers::of(&folder.path().join("owner-1.sock"));
        assert_eq!(peers.look(), seen(false, false));
        let (_own, other) = (lock(1), lock(2));
        File::create(folder.path().join("turn.lock")).unwrap();
        assert_eq!(peers.look(), seen(true, false));
        drop(other);
        assert_eq!(peers.look(), seen(true, true));
        assert_eq!(peers.look(), seen(true, false));
        // One that was looked at before it had its lock counts when it dies.
        let late = lock(2);
        assert_eq!(peers.look(), seen(true, false));
        drop(late);
        assert_eq!(peers.look(), seen(true, true));
        fs::remove_file(folder.path().join("owner-2.lock")).unwrap();
        assert_eq!(peers.look(), seen(false, false));
    }
}
