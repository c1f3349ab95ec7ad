//! The last commits that were answered, in a file beside the database.
//!
//! A log of SQLite that is damaged ends before the damage, and SQLite says nothing of the commits behind it. So the
//! process that writes notes the number of each commit in this file before it answers. The file is not synced: it
//! outlives the process, and after a power failure it is older than the database, which means nothing. A number in it
//! that is higher than the number in the database means that commits which were answered are missing.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::{Connection, OpenFlags, OptionalExtension as _, params};
use tidewheel_core::fact::RunId;
use tidewheel_core::time::Timestamp;

use crate::record::Version;
use crate::sqlite::fault::Fault;
use crate::sqlite::presence::MODE_OF_FILES;
use crate::sqlite::rows::{count, counted, instant, nanos};

/// The name of the file in the folder beside the database.
const NAME: &str = "commits";
/// The bytes of one commit; ids that do not fit are counted only.
const SLOT: usize = 1_024;
/// As many commits are kept; a later one takes the place of the one this many before it.
const SLOTS: u64 = 1_024;
/// What each slot begins with.
const MAGIC: [u8; 4] = *b"twc1";
/// As many runs are named in a sentence.
const MOST_NAMED: usize = 20;

/// Where commits are noted before they are answered.
#[derive(Debug)]
pub(crate) struct Acknowledged {
    file: File,
    /// The number that no other database has: the file may be left over from another one.
    database: i64,
    has_failed: AtomicBool,
}

impl Acknowledged {
    /// Notes a commit with the runs that it wrote to, each with the number of its events afterwards.
    pub(crate) fn note(&self, number: u64, written: &[(RunId, Version)]) {
        let slot = encode(self.database, number, written);
        let place = (number % SLOTS) * SLOT as u64;
        if let Err(error) = self.file.write_all_at(&slot, place)
            && !self.has_failed.swap(true, Ordering::Relaxed)
        {
            // What is not noted cannot be missed later; the commit itself is on the disk.
            tracing::warn!(%error, "a commit could not be noted beside the database");
        }
    }
}

/// Commits that were answered and are missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// When it was noticed.
    pub at: Timestamp,
    /// The last commit that is there.
    pub found: u64,
    /// The last commit that was answered.
    pub answered: u64,
    /// What is missing, as a sentence that names the runs.
    pub what: String,
}

/// Opens the file beside a database, and notices commits that are missing.
///
/// What is missing is written down in the database, and what is left of its log is kept beside it: SQLite is about to
/// write over it.
pub(crate) fn open(
    connection: &Connection,
    folder: &Path,
    path: &Path,
    now: Timestamp,
) -> Result<(Option<Acknowledged>, Option<Loss>), Fault> {
    let file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(MODE_OF_FILES)
        .open(folder.join(NAME))?;
    // Invariant: the file is read before the database, which another process may write meanwhile: it is never ahead.
    let slots = read_all(&file)?;
    let Some((found, database)) = commits(connection)? else { return Ok((None, None)) };
    if slots.chunks(SLOT).filter_map(database_of).any(|of| of != database) {
        // What another database left says nothing of this one.
        file.set_len(0)?;
    }
    let loss = match missing(connection, &slots, found, database)? {
        None => None,
        Some((answered, mut what)) => {
            if let Some(kept) = keep_log(folder, path, found) {
                what = format!("{what}. What is left of the log is in `{}`", kept.display());
            }
            let write = "INSERT INTO losses VALUES (?1, ?2, ?3, ?4, row_checksum('losses', ?1, ?2, ?3, ?4))";
            let transaction = connection.unchecked_transaction()?;
            transaction.execute(write, params![nanos(now), count(found), count(answered), what])?;
            // A number that was answered is never given again.
            transaction.execute(
                "UPDATE commits SET number = max(number, ?1), checksum = row_checksum('commits', max(number, ?1), database, at)",
                [count(answered)],
            )?;
            transaction.commit().map_err(Fault::of_commit)?;
            Some(Loss { at: now, found, answered, what })
        }
    };
    Ok((Some(Acknowledged { file, database, has_failed: AtomicBool::new(false) }), loss))
}

/// Refuses a database that was put in the place of another one whose log is still there: SQLite would take the log for
/// its own.
pub(crate) fn refuse_foreign_log(path: &Path, folder: &Path, log_bytes: u64) -> Result<(), Fault> {
    if log_bytes == 0 {
        return Ok(());
    }
    let Ok(file) = File::open(folder.join(NAME)) else { return Ok(()) };
    let Some(wrote_log) = read_all(&file)?.chunks(SLOT).find_map(database_of) else { return Ok(()) };
    // The database without its log. It may be in the middle of a move of the log into it, and then says nothing.
    let Some(database) = database_without_log(path) else { return Ok(()) };
    if database == wrote_log {
        return Ok(());
    }
    let path = path.display();
    Err(Fault::moved(format!(
        "`{path}` is another database than the one whose last commits are in `{path}-wal`"
    )))
}

/// Refuses a database that cannot say how many commits it has, where commits of it were answered: its log was damaged
/// before anything of it was moved into the database, or an earlier copy was put in its place. To begin anew would be
/// to lose all of it without a word.
pub(crate) fn refuse_earlier_database(path: &Path, folder: &Path, bytes: u64) -> Result<(), Fault> {
    // An empty file is a new database, whatever was beside an earlier one.
    if bytes == 0 {
        return Ok(());
    }
    let Ok(file) = File::open(folder.join(NAME)) else { return Ok(()) };
    if read_all(&file)?.chunks(SLOT).find_map(database_of).is_none() {
        return Ok(());
    }
    let (path, folder) = (path.display(), folder.display());
    Err(Fault::damaged(format!(
        "commits were answered that `{path}` has no trace of: its log `{path}-wal` is damaged or gone, or an earlier copy \
         was put in its place; restore it, or delete `{folder}` to go on with what is there"
    )))
}

/// Returns the number that no other database has, from the file of the database alone.
fn database_without_log(path: &Path) -> Option<i64> {
    let mut name = String::from("file:");
    for byte in path.to_str()?.bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-".contains(&byte) {
            name.push(char::from(byte));
        } else {
            write!(name, "%{byte:02x}").ok()?;
        }
    }
    name.push_str("?immutable=1");
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(name, flags).ok()?;
    connection.query_row("SELECT database FROM commits", [], |row| row.get(0)).ok()
}

/// Looks for commits that are missing, and changes nothing.
pub(crate) fn look(connection: &Connection, folder: &Path, now: Timestamp) -> Result<Option<Loss>, Fault> {
    let file = match File::open(folder.join(NAME)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    // Invariant: the file is read before the database, which may be written meanwhile: it is never ahead.
    let slots = read_all(&file)?;
    let Some((found, database)) = commits(connection)? else { return Ok(None) };
    let missing = missing(connection, &slots, found, database)?;
    Ok(missing.map(|(answered, what)| Loss { at: now, found, answered, what }))
}

/// Returns the times at which commits were found missing.
pub(crate) fn losses(connection: &Connection) -> Result<Vec<Loss>, Fault> {
    let mut statement = connection.prepare("SELECT at, found, answered, what FROM losses ORDER BY rowid")?;
    let losses = statement.query_map([], |row| {
        Ok(Loss {
            at: instant(row.get(0)?),
            found: counted(row.get(1)?),
            answered: counted(row.get(2)?),
            what: row.get(3)?,
        })
    })?;
    Ok(losses.collect::<Result<_, _>>()?)
}

/// The last commit, as the database has it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LastCommit {
    /// Where the row is; `None` where there is none.
    row: Option<i64>,
    number: u64,
    /// The store's time when it was written to last.
    pub(crate) at: Timestamp,
}

impl LastCommit {
    /// Reads it, in the transaction of the next one.
    pub(crate) fn read(connection: &Connection) -> rusqlite::Result<Self> {
        let mut look = connection.prepare_cached("SELECT rowid, number, at FROM commits")?;
        let read = |row: &rusqlite::Row<'_>| {
            let (number, at) = (counted(row.get(1)?), instant(row.get(2)?));
            Ok(Self { row: Some(row.get(0)?), number, at })
        };
        Ok(look.query_row([], read).optional()?.unwrap_or_default())
    }

    /// Counts one more commit in its own transaction, and returns its number. The commit is what moves the store's time.
    pub(crate) fn next(self, connection: &Connection, now: Timestamp) -> rusqlite::Result<Option<u64>> {
        let Some(row) = self.row else { return Ok(None) };
        // One row by its place, without RETURNING: otherwise SQLite keeps copies of all pages that it changes.
        let next =
            "UPDATE commits SET number = ?2, at = ?3, checksum = row_checksum('commits', ?2, database, ?3)
            WHERE rowid = ?1";
        let number = self.number + 1;
        connection.prepare_cached(next)?.execute(params![row, count(number), nanos(now)])?;
        Ok(Some(number))
    }
}

fn commits(connection: &Connection) -> rusqlite::Result<Option<(u64, i64)>> {
    let look = "SELECT number, database FROM commits";
    connection.query_row(look, [], |row| Ok((counted(row.get(0)?), row.get(1)?))).optional()
}

fn missing(
    connection: &Connection,
    slots: &[u8],
    found: u64,
    database: i64,
) -> Result<Option<(u64, String)>, Fault> {
    let mut noted: BTreeMap<u64, Noted> =
        slots.chunks(SLOT).filter_map(|slot| decode(slot, database)).collect();
    noted.retain(|number, _| *number > found);
    let Some(answered) = noted.keys().next_back().copied() else { return Ok(None) };
    let mut runs: BTreeMap<RunId, Version> = BTreeMap::new();
    for (run, version) in noted.values().flat_map(|noted| &noted.runs) {
        let last = runs.entry(run.clone()).or_default();
        *last = (*last).max(*version);
    }
    let mut named = Vec::new();
    for (run, version) in &runs {
        let there: Option<i64> = connection
            .prepare_cached("SELECT version FROM runs WHERE id = ?1")?
            .query_row([run.as_str()], |row| row.get(0))
            .optional()?;
        match there.map(counted) {
            None => named.push(format!("run `{run}` is not there")),
            Some(there) if there < *version => {
                named.push(format!("run `{run}` had {version} events, and {there} are there"));
            }
            Some(_) => named.push(format!("something that was asked of run `{run}` is not there")),
        }
    }
    let unnamed =
        noted.values().map(|noted| noted.others).sum::<usize>() + named.len().saturating_sub(MOST_NAMED);
    named.truncate(MOST_NAMED);
    if unnamed > 0 {
        named.push(format!("and so for {unnamed} other writes"));
    }
    let count = answered - found;
    let commits = if count == 1 { "1 commit" } else { &format!("{count} commits") };
    let are = if count == 1 { "is" } else { "are" };
    let mut what = format!("{commits} that the store had answered {are} missing behind commit {found}");
    if !named.is_empty() {
        what = format!("{what}: {}", named.join("; "));
    }
    Ok(Some((answered, what)))
}

/// Keeps the log of a database as it is, and returns where.
fn keep_log(folder: &Path, path: &Path, found: u64) -> Option<PathBuf> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let kept = folder.join(format!("lost-after-{found}.wal"));
    match fs::metadata(&log).and_then(|_| fs::copy(&log, &kept)) {
        Ok(_) => Some(kept),
        Err(error) => {
            tracing::warn!(%error, "the damaged log could not be kept");
            None
        }
    }
}

fn read_all(file: &File) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len().min(SLOTS * SLOT as u64);
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    let mut done = 0;
    while done < bytes.len() {
        match file.read_at(&mut bytes[done..], done as u64)? {
            0 => break,
            read => done += read,
        }
    }
    Ok(bytes)
}

/// A commit as its slot has it.
#[derive(Debug, PartialEq, Eq)]
struct Noted {
    runs: Vec<(RunId, Version)>,
    /// How many writes did not fit.
    others: usize,
}

/// Lays out a slot: magic, length, checksum, then the database, the number, how many did not fit, and the runs.
fn encode(database: i64, number: u64, written: &[(RunId, Version)]) -> Vec<u8> {
    const HEAD: usize = 16;
    let mut body = Vec::with_capacity(128);
    body.extend_from_slice(&database.to_le_bytes());
    body.extend_from_slice(&number.to_le_bytes());
    body.extend_from_slice(&[0; 4]);
    let mut fit = 0;
    for (run, version) in written {
        let id = run.as_str().as_bytes();
        let Ok(length) = u16::try_from(id.len()) else { continue };
        if HEAD + body.len() + 10 + id.len() > SLOT {
            continue;
        }
        body.extend_from_slice(&version.to_le_bytes());
        body.extend_from_slice(&length.to_le_bytes());
        body.extend_from_slice(id);
        fit += 1;
    }
    let others = u32::try_from(written.len() - fit).unwrap_or(u32::MAX);
    body[16..20].copy_from_slice(&others.to_le_bytes());
    let mut slot = Vec::with_capacity(HEAD + body.len());
    slot.extend_from_slice(&MAGIC);
    slot.extend_from_slice(&u32::try_from(body.len()).unwrap_or(0).to_le_bytes());
    slot.extend_from_slice(&blake3::hash(&body).as_bytes()[..8]);
    slot.extend_from_slice(&body);
    slot
}

/// Returns the database that a slot belongs to.
fn database_of(slot: &[u8]) -> Option<i64> {
    let database = i64::from_le_bytes(slot.get(16..24)?.try_into().ok()?);
    decode(slot, database).map(|_| database)
}

/// Reads a slot of this database. What a power failure left of one, or what another database wrote, is none.
fn decode(slot: &[u8], database: i64) -> Option<(u64, Noted)> {
    let (magic, rest) = slot.split_at_checked(4)?;
    let (length, rest) = rest.split_at_checked(4)?;
    let (checksum, rest) = rest.split_at_checked(8)?;
    let length = u32::from_le_bytes(length.try_into().ok()?);
    let body = rest.get(..usize::try_from(length).ok()?)?;
    if magic != MAGIC || blake3::hash(body).as_bytes()[..8] != *checksum {
        return None;
    }
    let (found, body) = body.split_at_checked(8)?;
    let (number, body) = body.split_at_checked(8)?;
    let (others, mut body) = body.split_at_checked(4)?;
    if i64::from_le_bytes(found.try_into().ok()?) != database {
        return None;
    }
    let mut runs = Vec::new();
    while !body.is_empty() {
        let (version, rest) = body.split_at_checked(8)?;
        let (length, rest) = rest.split_at_checked(2)?;
        let (id, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(length.try_into().ok()?)))?;
        let version = u64::from_le_bytes(version.try_into().ok()?);
        runs.push((RunId::new(&String::from_utf8_lossy(id)), version));
        body = rest;
    }
    let others = u32::from_le_bytes(others.try_into().ok()?) as usize;
    Some((u64::from_le_bytes(number.try_into().ok()?), Noted { runs, others }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_comes_back_as_it_was_written_and_is_none_when_a_bit_is_another() {
        let written = [(RunId::new("order-ü"), 7), (RunId::new("b"), 0)];
        let slot = encode(-5, 12, &written);
        let noted = Noted { runs: written.to_vec(), others: 0 };
        assert_eq!(decode(&slot, -5), Some((12, noted)));
        assert_eq!(decode(&slot, 5), None, "another database wrote it");
        for bit in 0..slot.len() * 8 {
            let mut bad = slot.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&bad, -5), None, "bit {bit}");
        }
    }

    #[test]
    fn ids_that_do_not_fit_are_counted() {
        let written: Vec<_> =
            (0..100).map(|run| (RunId::new(&format!("a run with number {run}")), 1)).collect();
        let slot = encode(1, 1, &written);
        assert!(slot.len() <= SLOT);
        let (_, noted) = decode(&slot, 1).unwrap();
        assert_eq!(noted.runs.len() + noted.others, 100);
        assert!(noted.runs.len() > 20);
    }
}
