//! Bells between processes: each owner listens on a socket beside the database, and whoever has something for it
//! rings there. Where there can be no socket, the owner looks at the database now and then instead. One that has died
//! cannot ring, so its lock is looked at while there are others.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::sqlite::connection::open_reader;
use crate::sqlite::options::Options;
use crate::sqlite::peers::{Look, Peers};

/// The longest path that every system takes as the name of a socket.
const LONGEST_NAME: usize = 100;
/// How often an owner looks at the locks of others, and one without a socket at the database.
const PAUSE: Duration = Duration::from_millis(250);

/// A socket takes no shorter time to wait.
const SHORTEST: Duration = Duration::from_millis(1);

/// Listens for an owner until it is dropped.
pub(crate) enum Listener {
    Socket { socket: Arc<UnixDatagram>, stopped: Arc<AtomicBool>, path: PathBuf },
    Poll { stopped: Arc<(Mutex<bool>, Condvar)> },
}

impl Listener {
    /// Begins to listen at a path, and wakes whoever waits for `bell`.
    pub(crate) fn start(path: PathBuf, database: &Path, bell: &Arc<Notify>) -> io::Result<Self> {
        match bind(&path) {
            Ok(socket) => Self::on_socket(socket, path, Arc::clone(bell)),
            Err(error) => {
                tracing::warn!(%error, path = %path.display(), "no socket for alerts: the database is polled");
                Self::by_polling(path, database.to_owned(), Arc::clone(bell))
            }
        }
    }

    fn on_socket(socket: UnixDatagram, path: PathBuf, bell: Arc<Notify>) -> io::Result<Self> {
        let socket = Arc::new(socket);
        let stopped = Arc::new(AtomicBool::new(false));
        let (listening, until) = (Arc::clone(&socket), Arc::clone(&stopped));
        let mut peers = Peers::of(&path);
        thread::Builder::new().name("tidewheel-bell".to_owned()).spawn(move || {
            let mut byte = [0];
            // When the locks of others are looked at next; never while there are none.
            let mut look_at = Some(Instant::now());
            while !until.load(Ordering::Acquire) {
                if look_at.is_some_and(|at| at <= Instant::now()) {
                    let Look { has_others, has_died } = peers.look();
                    if has_died {
                        bell.notify_one();
                    }
                    look_at = has_others.then(|| Instant::now() + PAUSE);
                }
                let left = look_at.map(|at| at.saturating_duration_since(Instant::now()).max(SHORTEST));
                if let Err(error) = listening.set_read_timeout(left) {
                    tracing::warn!(%error, "the end of other processes is noticed late");
                }
                match listening.recv(&mut byte) {
                    Ok(_) => {
                        bell.notify_one();
                        // It may be one that has just come.
                        look_at.get_or_insert_with(|| Instant::now() + PAUSE);
                    }
                    Err(error) if is_passing(&error) => {}
                    Err(error) => {
                        tracing::warn!(%error, "an owner is deaf: alerts of other processes do not reach it");
                        return;
                    }
                }
            }
        })?;
        Ok(Self::Socket { socket, stopped, path })
    }

    fn by_polling(path: PathBuf, database: PathBuf, bell: Arc<Notify>) -> io::Result<Self> {
        let stopped = Arc::new((Mutex::new(false), Condvar::new()));
        let until = Arc::clone(&stopped);
        thread::Builder::new().name("tidewheel-bell".to_owned()).spawn(move || {
            let (stopped, changed) = &*until;
            let mut peers = Peers::of(&path);
            let mut connection = None;
            let mut seen = None;
            let mut is_stopped = stopped.lock().unwrap_or_else(PoisonError::into_inner);
            while !*is_stopped {
                (is_stopped, _) =
                    changed.wait_timeout(is_stopped, PAUSE).unwrap_or_else(PoisonError::into_inner);
                if connection.is_none() {
                    connection = open_reader(&database, &Options::new()).ok();
                }
                let version = connection.as_ref().and_then(|connection| {
                    connection.pragma_query_value(None, "data_version", |row| row.get::<_, i64>(0)).ok()
                });
                if version.is_none() || version != seen || peers.look().has_died {
                    bell.notify_one();
                }
                seen = version;
            }
        })?;
        Ok(Self::Poll { stopped })
    }
}

/// Returns whether a socket only had nothing to say.
fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}

impl Drop for Listener {
    fn drop(&mut self) {
        match self {
            Self::Socket { socket, stopped, path } => {
                stopped.store(true, Ordering::Release);
                // The thread wakes up and ends; one that cannot be woken sleeps for good and costs nothing.
                let _woken = socket.shutdown(std::net::Shutdown::Both);
                let _removed = std::fs::remove_file(path);
            }
            Self::Poll { stopped } => {
                *stopped.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
                stopped.1.notify_all();
            }
        }
    }
}

/// Rings at sockets of other processes.
pub(crate) struct Ringer {
    socket: Option<UnixDatagram>,
}

impl Ringer {
    pub(crate) fn new() -> Self {
        let socket = UnixDatagram::unbound().and_then(|socket| {
            socket.set_nonblocking(true)?;
            Ok(socket)
        });
        Self { socket: socket.ok() }
    }

    /// Rings, and tells whether somebody listens.
    pub(crate) fn ring(&self, path: &Path) -> bool {
        let Some(socket) = &self.socket else { return false };
        let sent = short(path).and_then(|name| socket.send_to(&[1], &name.name));
        match sent {
            Ok(_) => true,
            // So many rings are waiting there that one more would not be noticed.
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        }
    }
}

fn bind(path: &Path) -> io::Result<UnixDatagram> {
    let name = short(path)?;
    match UnixDatagram::bind(&name.name) {
        // A name that is left over has no owner: numbers of owners are never given again.
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            std::fs::remove_file(path)?;
            UnixDatagram::bind(&name.name)
        }
        bound => bound,
    }
}

/// A path that fits into the name of a socket.
struct Name {
    name: PathBuf,
    /// Keeps a name through its folder right.
    _folder: Option<File>,
}

/// Returns a short name for a path: a long one goes through its folder, opened.
fn short(path: &Path) -> io::Result<Name> {
    if path.as_os_str().len() <= LONGEST_NAME {
        return Ok(Name { name: path.to_owned(), _folder: None });
    }
    let (Some(parent), Some(file)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let folder = File::open(parent)?;
    let mut name = OsString::from(format!("/proc/self/fd/{}/", folder.as_raw_fd()));
    name.push(file);
    Ok(Name { name: name.into(), _folder: Some(folder) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block_on(future: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async { tokio::time::timeout(Duration::from_secs(10), future).await }).unwrap();
    }

    #[test]
    fn a_bell_rings_through_a_path_of_any_length() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("x".repeat(120)).join("y".repeat(120));
        std::fs::create_dir_all(&deep).unwrap();
        for path in [folder.path().join("short.sock"), deep.join("long.sock")] {
            let bell = Arc::default();
            let listener = Listener::start(path.clone(), Path::new("unused"), &bell).unwrap();
            assert!(matches!(listener, Listener::Socket { .. }));
            assert!(Ringer::new().ring(&path));
            block_on(bell.notified());
            drop(listener);
            assert!(!path.exists() && !Ringer::new().ring(&path));
            // The thread has ended, and with it went its bell.
            while Arc::strong_count(&bell) > 1 {
                thread::yield_now();
            }
        }
    }

    #[test]
    fn without_a_socket_the_database_is_polled() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("a.db");
        let other = rusqlite::Connection::open(&database).unwrap();
        let bell = Arc::default();
        let nowhere = folder.path().join("missing").join("a.sock");
        let listener = Listener::start(nowhere, &database, &bell).unwrap();
        assert!(matches!(listener, Listener::Poll { .. }));
        block_on(bell.notified());
        other.execute_batch("CREATE TABLE a (b)").unwrap();
        block_on(bell.notified());
    }

    #[test]
    fn many_rings_do_not_block() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deaf.sock");
        let _deaf = bind(&path).unwrap();
        let ringer = Ringer::new();
        assert!((0..10_000).all(|_| ringer.ring(&path)));
    }
}
