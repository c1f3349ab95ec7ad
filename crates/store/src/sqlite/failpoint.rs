//! Places at which a test lets its own process die, as if by `kill -9`. Without the feature there are none.

#[cfg(feature = "failpoints")]
use std::sync::Mutex;

/// Before the transaction of a group of writes begins.
pub const BEFORE_BEGIN: &str = "before-begin";
/// After it began.
pub const AFTER_BEGIN: &str = "after-begin";
/// After each request of the group.
pub const AFTER_REQUEST: &str = "after-request";
/// After all of them.
pub const BEFORE_COMMIT: &str = "before-commit";
/// After the commit, before anybody is answered.
pub const AFTER_COMMIT: &str = "after-commit";

/// Before a file of a job is renamed into its place.
pub const BEFORE_RENAME: &str = "before-rename";

/// Every place of the database, in the order in which a write passes them.
pub const ALL: [&str; 5] = [BEFORE_BEGIN, AFTER_BEGIN, AFTER_REQUEST, BEFORE_COMMIT, AFTER_COMMIT];

#[cfg(feature = "failpoints")]
static ARMED: Mutex<Option<(String, u64)>> = Mutex::new(None);

/// Lets the process kill itself when it comes to a place for the `nth` time; the next time is the first.
#[cfg(feature = "failpoints")]
pub fn arm(name: &str, nth: u64) {
    *ARMED.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some((name.to_owned(), nth));
}

/// Lets the next commit fail as if the disk had not taken it.
#[cfg(feature = "failpoints")]
pub fn fail_sync() {
    IS_SYNC_BAD.store(true, std::sync::atomic::Ordering::Release);
}

#[cfg(feature = "failpoints")]
static IS_SYNC_BAD: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

/// Fails here, if a test wants it.
#[cfg(feature = "failpoints")]
pub(crate) fn sync() -> rusqlite::Result<()> {
    if IS_SYNC_BAD.swap(false, std::sync::atomic::Ordering::AcqRel) {
        let error = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR_FSYNC);
        return Err(rusqlite::Error::SqliteFailure(error, None));
    }
    Ok(())
}

/// Never fails: there are no such places without the feature.
#[cfg(not(feature = "failpoints"))]
pub(crate) const fn sync() -> rusqlite::Result<()> {
    Ok(())
}

/// Dies here, if a test wants it.
#[cfg(feature = "failpoints")]
pub(crate) fn pass(name: &str) {
    let mut armed = ARMED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let Some((wanted, left)) = armed.as_mut().filter(|(wanted, _)| wanted == name) else { return };
    debug_assert_eq!(wanted, name);
    *left = left.saturating_sub(1);
    if *left == 0 {
        // Nothing of this process may run any more: no destructor, no flush. An abort is what is left where the
        // signal cannot be sent.
        let _sent = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        std::process::abort();
    }
}

/// Does nothing: there are no such places without the feature.
#[cfg(not(feature = "failpoints"))]
pub(crate) const fn pass(_name: &str) {}
