//! The store as its users see it: calls become requests for the thread that writes or for those that read.

use std::convert::Infallible;
use std::fmt;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};

use rusqlite::Connection;
use tidewheel_core::fact::RunId;
use tidewheel_core::time::Span;
use tokio::sync::{Mutex, mpsc, oneshot};

use crate::clock::{Clock, with_suspends};
use crate::record::{
    Command, CommandId, DeadLetter, DeadLetterId, Filter, Lease, NewCommand, OwnerId, Page, PutShared,
    RunRecord, Shared, Stored, Version,
};
use crate::sqlite::audit::Audit;
use crate::sqlite::connection::{open_to_look, open_writer};
use crate::sqlite::fault::Fault;
use crate::sqlite::health::Health;
use crate::sqlite::in_place::InPlace;
use crate::sqlite::options::Options;
use crate::sqlite::presence::{MODE_OF_FILES, Roster, folder_of};
use crate::sqlite::reader::{self, Queue};
use crate::sqlite::transaction::Transaction;
use crate::sqlite::turn::Turns;
use crate::sqlite::writer::{Ask, Gauges, Message, Writer};
use crate::sqlite::{
    acknowledged, append, claim, command, dead_letter, list, log, migrate, owner, run, shared,
};
use crate::store::{Answer, Append, Claim, Claimed, Joined, Refused, Renewed, Store, StoreError};
use crate::time::StoreTime;

/// How many requests may wait for the writer; more wait with their callers.
const WAITING_AT_MOST: usize = 4_096;

/// The folder beside a database is for the user that made it.
const MODE_OF_FOLDERS: u32 = 0o700;

/// Keeps runs in one file, for any number of processes on one machine.
///
/// Its threads end when it is dropped, after all that was asked before.
pub struct Sqlite {
    path: PathBuf,
    writes: mpsc::Sender<Message>,
    reads: Arc<Queue>,
    clock: Arc<dyn Clock>,
    roster: Arc<Roster>,
    gauges: Arc<Gauges>,
    health: Arc<Health>,
    audit: Arc<Audit>,
    /// Ends when the last thread has ended.
    ended: Mutex<mpsc::Receiver<Infallible>>,
}

impl Sqlite {
    /// Opens a database, and creates it if it is missing; its folder must exist.
    ///
    /// It waits for the disk, and for its turn where the shape of the database must change while others write.
    ///
    /// ```
    /// # mod tidewheel { pub use tidewheel_store as store; }
    /// use std::sync::Arc;
    /// use tidewheel::store::{Filter, RealClock, Sqlite, Store};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("orders.db");
    /// let store = Sqlite::open(&path, Arc::new(RealClock::new()))?;
    /// assert!(store.list(Filter::default()).await?.rows.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The file cannot be used now, is no database of ours, or was written by a later release.
    pub fn open(path: impl AsRef<Path>, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        Self::open_with(path, clock, &Options::new())
    }

    /// Opens a database in another way than the usual one.
    ///
    /// # Errors
    /// As for [`Sqlite::open`].
    pub fn open_with(
        path: impl AsRef<Path>,
        clock: Arc<dyn Clock>,
        options: &Options,
    ) -> Result<Self, StoreError> {
        let path = settle(path.as_ref(), options)?;
        let folder = folder_of(&path);
        let (health, audit) = (Arc::<Health>::default(), Arc::<Audit>::default());
        let bytes = (bytes_of(&path, ""), bytes_of(&path, "-wal"));
        let (mut acknowledged, mut in_place, mut opened, mut is_audited) = (None, None, None, false);
        let (connection, turns) = if options.read_only {
            let connection = open_writer(&path, options)?;
            migrate::check(&connection)?;
            // A reader without the right to the file beside the database sees the runs all the same.
            let missing = acknowledged::look(&connection, &folder, clock.now()).ok().flatten();
            note_losses(&health, &connection, missing)?;
            (connection, None)
        } else {
            match DirBuilder::new().mode(MODE_OF_FOLDERS).create(&folder) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(Fault::from(error).into());
                }
                Ok(()) | Err(_) => {}
            }
            let mut turns = Turns::open(&folder)?;
            let has_turn = turns.take(options.patience)?;
            let connection = acknowledged::refuse_foreign_log(&path, &folder, bytes.1)
                .and_then(|()| open_writer(&path, options));
            let connection = connection.map_err(StoreError::from).and_then(|mut connection| {
                in_place = Some(InPlace::new(&path).map_err(Fault::from)?);
                let (lock, is_first) = enter(&folder)?;
                is_audited = Audit::is_wanted(is_first, bytes.0, bytes.1);
                opened = Some(lock);
                if migrate::seen(&connection)? < migrate::COUNTS_COMMITS {
                    acknowledged::refuse_earlier_database(&path, &folder, bytes.0)?;
                }
                migrate::migrate(&mut connection, clock.now())?;
                let (noted, loss) = acknowledged::open(&connection, &folder, &path, clock.now())?;
                acknowledged = noted;
                // Also those that an earlier process noticed: it may have had no way to say so.
                note_losses(&health, &connection, loss)?;
                Ok(connection)
            });
            if has_turn {
                turns.give();
            }
            (connection?, Some(turns))
        };

        let roster = Arc::new(Roster::new(folder, path.clone()));
        let gauges = Arc::<Gauges>::default();
        let (writes, queue) = mpsc::channel(WAITING_AT_MOST);
        let (running, ended) = mpsc::channel::<Infallible>(1);
        let reads = Arc::<Queue>::default();
        let store = Self {
            path: path.clone(),
            writes,
            reads: Arc::clone(&reads),
            clock: Arc::clone(&clock),
            roster: Arc::clone(&roster),
            gauges: Arc::clone(&gauges),
            health: Arc::clone(&health),
            audit: Arc::clone(&audit),
            ended: Mutex::new(ended),
        };
        let mut readers = Vec::with_capacity(options.readers);
        for _ in 0..options.readers {
            let (reads, path, options) = (Arc::clone(&reads), path.clone(), options.clone());
            readers.push(spawn("tidewheel-read", move || reader::run(&reads, &path, &options))?);
        }
        if is_audited {
            let (options, health) = (options.clone(), Arc::clone(&health));
            readers.push(spawn("tidewheel-check", move || audit.run(&path, &options, &health))?);
        }
        let patience = options.patience;
        let writer = Writer {
            connection,
            queue,
            turns,
            patience,
            clock,
            time: StoreTime::default(),
            roster,
            gauges,
            health,
            acknowledged,
            in_place,
            _opened: opened,
            readers,
        };
        spawn("tidewheel-write", move || {
            writer.run();
            drop(running);
        })?;
        Ok(store)
    }

    /// Does what was asked before, then ends all threads and frees the owners of this process.
    /// What is asked afterwards is refused.
    pub async fn close(&self) {
        self.audit.stop();
        self.reads.close();
        // An error means that it is closed already.
        let _closed = self.writes.send(Message::Close).await;
        let _nothing = self.ended.lock().await.recv().await;
    }

    /// Returns how many transactions were committed; each is one wait for the disk.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.gauges.commits.load(Ordering::Relaxed)
    }

    /// Returns where the database is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Asks the thread that writes. The work may be done more than once; only its last result counts.
    fn write<T, F>(&self, weight: usize, work: F) -> Answer<'_, T>
    where
        T: Send + 'static,
        F: FnMut(&mut Transaction<'_>) -> Result<T, Fault> + Send + 'static,
    {
        Box::pin(async move {
            let (ask, answer) = Ask::new(weight, work);
            let sent = self.writes.send(Message::Write(Box::new(ask))).await;
            sent.map_err(|_| StoreError::Closed)?;
            answer.await.unwrap_or(Err(StoreError::Closed))
        })
    }

    /// Asks a thread that reads.
    fn read<T, F>(&self, work: F) -> Answer<'_, T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    {
        Box::pin(async move {
            if let Some(fault) = self.gauges.broken.get() {
                return Err(fault.error());
            }
            let (reply, answer) = oneshot::channel();
            let health = Arc::clone(&self.health);
            let read = Box::new(move |connection: Result<&Connection, Fault>| {
                let read = connection.map_err(StoreError::from).and_then(work);
                if let Err(error) = &read {
                    health.note_error(error);
                }
                // Nobody listens any more where the caller gave up.
                let _unheard = reply.send(read);
            });
            self.reads.push(read).map_err(|_| StoreError::Closed)?;
            answer.await.unwrap_or(Err(StoreError::Closed))
        })
    }
}

/// Notes the commits that are missing: this loss, and those that are written down in the database.
fn note_losses(
    health: &Health,
    connection: &Connection,
    loss: Option<acknowledged::Loss>,
) -> Result<(), Fault> {
    let known = acknowledged::losses(connection)?;
    known.into_iter().chain(loss).for_each(|loss| health.note(loss.what));
    Ok(())
}

/// Returns the one path of a database, whatever links lead to it: all processes must meet in the same folder.
/// A database that is not ours is refused here, before anything is written beside it.
fn settle(path: &Path, options: &Options) -> Result<PathBuf, StoreError> {
    let length = match path.metadata() {
        Ok(found) if found.len() == 0 => {
            refuse_log_alone(path)?;
            0
        }
        Ok(found) => found.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !options.read_only => {
            refuse_log_alone(path)?;
            let mut options = File::options();
            options.append(true).create(true).mode(MODE_OF_FILES).open(path).map_err(Fault::from)?;
            0
        }
        Err(error) => return Err(Fault::from(error).into()),
    };
    // An empty file is a database that is about to be created.
    if length > 0 {
        let looked = open_to_look(path, options)
            .map_err(StoreError::from)
            .and_then(|connection| migrate::refuse_strangers(&connection));
        match looked {
            // Whoever only looks cannot finish what a process that died left over; the opening itself can.
            Ok(()) | Err(StoreError::Unavailable { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(path.canonicalize().map_err(Fault::from)?)
}

/// Returns the lock that a store holds while it is open, and whether no other one has the database open.
fn enter(folder: &Path) -> Result<(File, bool), Fault> {
    let lock = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(MODE_OF_FILES)
        .open(folder.join("open.lock"))?;
    let is_first = lock.try_lock().is_ok();
    lock.lock_shared()?;
    Ok((lock, is_first))
}

/// Refuses to make a database beside the log of another one: SQLite would take the log for its own, and a process that
/// still has the other one open would go on to write to it.
fn refuse_log_alone(path: &Path) -> Result<(), Fault> {
    if bytes_of(path, "-wal") == 0 {
        return Ok(());
    }
    let path = path.display();
    Err(Fault::moved(format!(
        "`{path}-wal` has the last commits of a database, and `{path}`, to which they belong, is not there"
    )))
}

fn bytes_of(path: &Path, suffix: &str) -> u64 {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    std::fs::metadata(name).map_or(0, |found| found.len())
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, StoreError> {
    Ok(thread::Builder::new().name(name.to_owned()).spawn(work).map_err(Fault::from)?)
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        // The thread that writes ends when nobody can ask it any more, which is so after this.
        self.audit.stop();
        self.reads.close();
    }
}

impl fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sqlite").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Store for Sqlite {
    fn append(&self, appends: Vec<Append>) -> Answer<'_, Vec<Result<Lease, Refused>>> {
        self.write(appends.len(), move |transaction| {
            appends.iter().map(|one| append::append(transaction, one)).collect()
        })
    }

    fn read<'a>(&'a self, run: &'a RunId, from: Version) -> Answer<'a, Vec<Stored>> {
        let run = run.clone();
        self.read(move |connection| log::read(connection, &run, from))
    }

    fn find<'a>(&'a self, run: &'a RunId) -> Answer<'a, Option<RunRecord>> {
        let run = run.clone();
        self.read(move |connection| Ok(run::find(connection, &run)?))
    }

    fn definition<'a>(&'a self, run: &'a RunId) -> Answer<'a, Option<String>> {
        let run = run.clone();
        self.read(move |connection| Ok(run::definition_of(connection, &run)?))
    }

    fn list(&self, filter: Filter) -> Answer<'_, Page<RunRecord>> {
        let health = Arc::clone(&self.health);
        self.read(move |connection| list::list(connection, &filter, &health))
    }

    fn delete<'a>(&'a self, run: &'a RunId) -> Answer<'a, Result<bool, Refused>> {
        let run = run.clone();
        self.write(1, move |transaction| run::delete(transaction, &run))
    }

    fn checkpoint<'a>(&'a self, run: &'a RunId) -> Answer<'a, Option<(Version, String)>> {
        let run = run.clone();
        self.read(move |connection| Ok(run::checkpoint(connection, &run)?))
    }

    fn join(&self, lease: Span) -> Answer<'_, Joined> {
        self.write(1, move |transaction| owner::join(transaction, lease))
    }

    fn renew(&self, owner: OwnerId, lease: Span) -> Answer<'_, Result<Renewed, Refused>> {
        self.write(1, move |transaction| owner::renew(transaction, owner, lease))
    }

    fn leave(&self, owner: OwnerId) -> Answer<'_, ()> {
        self.write(1, move |transaction| owner::leave(transaction, owner))
    }

    fn owners(&self) -> Answer<'_, Vec<OwnerId>> {
        let (clock, roster) = (Arc::clone(&self.clock), Arc::clone(&self.roster));
        self.read(move |connection| Ok(owner::live(connection, &roster, with_suspends(clock.as_ref()))?))
    }

    fn claim(&self, claim: Claim) -> Answer<'_, Claimed> {
        self.write(1, move |transaction| claim::claim(transaction, &claim))
    }

    fn release(&self, leases: Vec<Lease>) -> Answer<'_, ()> {
        self.write(leases.len(), move |transaction| claim::release(transaction, &leases))
    }

    fn note_execution(&self, key: i64, work: &str) {
        self.roster.note_execution(key, work);
    }

    fn forget_execution(&self, key: i64, work: &str) {
        self.roster.forget_execution(key, work);
    }

    fn take_executions(&self, key: i64) -> Vec<String> {
        self.roster.take_executions(key)
    }

    fn send(&self, command: NewCommand) -> Answer<'_, Result<CommandId, Refused>> {
        self.write(1, move |transaction| command::send(transaction, &command))
    }

    fn commands(&self, owner: OwnerId) -> Answer<'_, Vec<Command>> {
        let health = Arc::clone(&self.health);
        self.read(move |connection| Ok(command::of_owner(connection, owner, &health)?))
    }

    fn commands_of<'a>(&'a self, run: &'a RunId) -> Answer<'a, Vec<Command>> {
        let (run, health) = (run.clone(), Arc::clone(&self.health));
        self.read(move |connection| Ok(command::of_run(connection, &run, &health)?))
    }

    fn alerted(&self, owner: OwnerId) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let bell = self.roster.bell(owner);
        Box::pin(async move {
            match bell {
                Some(bell) => bell.notified().await,
                None => std::future::pending().await,
            }
        })
    }

    fn shared<'a>(&'a self, kind: &'a str, name: &'a str) -> Answer<'a, Option<Shared>> {
        let (kind, name) = (kind.to_owned(), name.to_owned());
        self.read(move |connection| Ok(shared::find(connection, &kind, &name)?))
    }

    fn all_shared<'a>(&'a self, kind: &'a str, after: Option<String>) -> Answer<'a, Page<(String, Shared)>> {
        let (kind, health) = (kind.to_owned(), Arc::clone(&self.health));
        self.read(move |connection| Ok(shared::list(connection, &kind, after.as_deref(), &health)?))
    }

    fn put_shared(&self, puts: Vec<PutShared>) -> Answer<'_, bool> {
        self.write(puts.len(), move |transaction| shared::put(transaction, &puts))
    }

    fn dead_letters<'a>(
        &'a self,
        run: Option<&'a RunId>,
        after: Option<String>,
    ) -> Answer<'a, Page<DeadLetter>> {
        let (run, health) = (run.cloned(), Arc::clone(&self.health));
        self.read(move |connection| dead_letter::list(connection, run.as_ref(), after.as_deref(), &health))
    }

    fn unbury(&self, id: DeadLetterId) -> Answer<'_, bool> {
        self.write(1, move |transaction| dead_letter::unbury(transaction, id))
    }

    fn damage(&self) -> Vec<String> {
        self.health.found()
    }
}
