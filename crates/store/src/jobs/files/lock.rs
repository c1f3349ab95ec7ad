//! Locks of the kernel, which sets them free when their holder dies. The files stay when nobody holds them.

use std::fs::{File, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{FileType, Mode, OFlags, fstat, major, minor, openat};
use tidewheel_core::job::JobId;
use tidewheel_core::time::Timestamp;

use super::beneath::{Root, regular};
use super::signature::Found;
use super::{aside, layout, obstacle};
use crate::jobs::JobStoreError;

/// Waits for the lock of the turns. After a second the waiting process learns which process holds it.
pub(super) fn turn(root: &Root, tell: Option<TellOfWait>) -> Result<File, JobStoreError> {
    let fail = |source| turn_error(root, source);
    loop {
        let file = open(root, layout::JOBS, layout::TURN_LOCK)?;
        match lock_and_tell(root, &file, tell) {
            Ok(()) if is_in_place(root, &file).map_err(fail)? => {
                sign(&file);
                return Ok(file);
            }
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(source) => return Err(fail(source)),
        }
    }
}

/// Called once by a process that has waited for a turn for longer than a second, with the holder of the lock if the
/// kernel lists it.
pub type TellOfWait = fn(Option<&Holder>);

/// After so long a process says what it waits for.
const SILENCE: Duration = Duration::from_secs(1);

fn lock_and_tell(root: &Root, file: &File, tell: Option<TellOfWait>) -> io::Result<()> {
    let Some(tell) = tell else { return file.lock() };
    match file.try_lock() {
        Ok(()) => return Ok(()),
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let (held, is_held) = mpsc::channel::<()>();
    thread::scope(|scope| {
        // Without a thread to be had, the process waits and says nothing.
        let _teller = thread::Builder::new().spawn_scoped(scope, move || {
            if is_held.recv_timeout(SILENCE) == Err(RecvTimeoutError::Timeout) {
                tell(holder(root, layout::JOBS, layout::TURN_LOCK).as_ref());
            }
        });
        let locked = file.lock();
        drop(held);
        locked
    })
}

/// Takes the lock of the turns if it is free.
pub(super) fn try_turn(root: &Root) -> Result<Option<File>, JobStoreError> {
    let fail = |source| turn_error(root, source);
    loop {
        let file = open(root, layout::JOBS, layout::TURN_LOCK)?;
        if !taken(&file).map_err(fail)? {
            return Ok(None);
        }
        if is_in_place(root, &file).map_err(fail)? {
            sign(&file);
            return Ok(Some(file));
        }
    }
}

/// Tells whether a file that we locked is still the one that others find: somebody may have deleted it meanwhile.
fn is_in_place(root: &Root, file: &File) -> io::Result<bool> {
    let found = root.look(&format!("{}/{}", layout::JOBS, layout::TURN_LOCK))?;
    let own = Found::of(file)?;
    Ok(found.is_some_and(|found| found.signature.2 == own.signature.2))
}

/// Takes the run lock of a job if it is free. What is no file in its place is cleared away, unless the supervisor that was
/// handed the file before is still there.
pub(super) fn run(root: &Root, id: &JobId) -> Result<Option<File>, JobStoreError> {
    let (folder, path) = (layout::job(id), layout::of_job(id, layout::RUN_LOCK));
    let file = match open(root, &folder, layout::RUN_LOCK) {
        Ok(file) => file,
        Err(error) => {
            let fail = |source| JobStoreError::Io { verb: "open", path: root.path(&path), source };
            if obstacle::obstacle(root, &path).is_some() && is_replaced_input(root, id) {
                return Ok(None);
            }
            let inside = root.folder(&folder).map_err(fail)?;
            if !aside::clear(root, inside, &path).map_err(fail)? {
                return Err(error);
            }
            open(root, &folder, layout::RUN_LOCK)?
        }
    };
    let path = root.path(&path);
    let is_taken = taken(&file).map_err(|source| JobStoreError::Io { verb: "lock", path, source })?;
    Ok(is_taken.then_some(file))
}

/// Takes the lock by which a process of a job lends the slot of the job while it waits for others.
pub(super) fn lend(root: &Root, id: &JobId) -> Result<File, JobStoreError> {
    let file = open(root, &layout::job(id), layout::LENT_LOCK)?;
    let path = root.path(&layout::of_job(id, layout::LENT_LOCK));
    // A process of the same job that lends it already is as good.
    file.lock_shared().map_err(|source| JobStoreError::Io { verb: "lock", path, source })?;
    Ok(file)
}

/// Returns whether a process of a job lends the slot of the job.
pub(super) fn is_lent(root: &Root, id: &JobId) -> bool {
    if !root.look(&layout::of_job(id, layout::LENT_LOCK)).is_ok_and(|found| found.is_some()) {
        return false;
    }
    open(root, &layout::job(id), layout::LENT_LOCK).is_ok_and(|file| taken(&file).is_ok_and(|taken| !taken))
}

/// Returns whether a process holds the run lock of a job, by what the kernel lists: to try it would be in the way of one
/// that takes it. A lock that cannot be looked at counts as held, so that no reader calls its job lost.
pub(super) fn is_held(root: &Root, id: &JobId) -> bool {
    // The process that was started has made it; of a record that a person wrote there is nothing to know.
    has_holder(root, id).unwrap_or(true)
}

/// As [`is_held`], and says what keeps it from looking.
pub(super) fn has_holder(root: &Root, id: &JobId) -> io::Result<bool> {
    let folder = root.folder(&layout::job(id))?;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = fstat(openat(folder, layout::RUN_LOCK, flags, Mode::empty())?)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Ok(is_replaced_input(root, id));
    }
    let locks = std::fs::read_to_string("/proc/locks")?;
    let file = format!("{:02x}:{:02x}:{}", major(found.st_dev), minor(found.st_dev), found.st_ino);
    Ok(locks.lines().any(|line| line.split_ascii_whitespace().any(|word| word == file))
        || is_input_of_somebody(found.st_dev, found.st_ino))
}

/// Tells whether a process has a file as its input, as a supervisor has its lock. In a container the kernel does not
/// list a lock whose first holder is gone, though it was handed on.
fn is_input_of_somebody(device: u64, inode: u64) -> bool {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let inputs = processes.filter_map(|process| std::fs::metadata(process.path().join("fd/0")).ok());
    inputs.into_iter().any(|input| (input.dev(), input.ino()) == (device, inode))
}

/// Returns whether a process has as its input a file that was the run lock of a job and was removed since.
fn is_replaced_input(root: &Root, id: &JobId) -> bool {
    let Ok(mut lock) = root.path(layout::JOBS).canonicalize() else { return false };
    lock.push(id.as_str());
    lock.push(format!("{} (deleted)", layout::RUN_LOCK));
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut inputs = processes.filter_map(|process| std::fs::read_link(process.path().join("fd/0")).ok());
    inputs.any(|input| input == lock)
}

/// Who holds a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The number of the process.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Whether it was stopped, as by Ctrl-Z, and does nothing until somebody lets it go on.
    pub is_stopped: bool,
    /// What it does, and since when, as it wrote into the lock.
    pub about: Option<String>,
}

/// Returns who holds a lock, by what the kernel lists.
pub(super) fn holder(root: &Root, folder: &str, name: &str) -> Option<Holder> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = fstat(openat(root.folder(folder).ok()?, name, flags, Mode::empty()).ok()?).ok()?;
    let file = format!("{:02x}:{:02x}:{}", major(found.st_dev), minor(found.st_dev), found.st_ino);
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let pid = locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        // Those who only wait have an arrow before what they wait for.
        let [_, "FLOCK", _, _, pid, at, ..] = words[..] else { return None };
        if at == file { pid.parse().ok() } else { None }
    })?;
    let of = |name| std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
    // The name stands in brackets, and may have any character; the state is the first word behind it.
    let is_stopped = of("stat").rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['T', 't']));
    let about = root.read(&format!("{folder}/{name}")).ok().flatten().and_then(|(text, _)| {
        let about = text.trim_end().strip_prefix(&format!("{pid} "))?;
        Some(about.to_owned())
    });
    Some(Holder { pid, name: of("comm").trim_end().to_owned(), is_stopped, about })
}

fn open(root: &Root, folder: &str, name: &str) -> Result<File, JobStoreError> {
    let path = || root.path(&format!("{folder}/{name}"));
    let fail = |source| JobStoreError::Io { verb: "open", path: path(), source };
    let opened = root.folder(folder).and_then(|folder| regular(folder, name, OFlags::RDWR | OFlags::CREATE));
    opened.map_err(fail)
}

fn taken(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Writes who holds the lock, what for and since when, for people who look. Nothing depends on it, so that no error
/// counts.
fn sign(mut file: &File) {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let since = Timestamp::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX));
    let text = format!("{} {}, since {since}\n", std::process::id(), own_command());
    if file.set_len(0).is_ok() {
        drop(file.write_all(text.as_bytes()));
    }
}

/// Returns what this process was started as: its name and the words of its command, without what was given to that.
fn own_command() -> String {
    let line = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    let words = line.split(|byte| *byte == 0).skip(1).map(String::from_utf8_lossy);
    let is_plain = |word: &str| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || matches!(byte, b'_' | b'-'))
    };
    let name = std::fs::read_to_string("/proc/self/comm").unwrap_or_default();
    let mut text = name.trim_end().to_owned();
    // The second word may be a flow or a job, which says what it is about; more would say what was given.
    for word in words.take(2).take_while(|word| is_plain(word) && !word.starts_with("--")) {
        text.push(' ');
        text.push_str(&word);
    }
    text
}

fn turn_error(root: &Root, source: io::Error) -> JobStoreError {
    JobStoreError::Io { verb: "lock", path: root.path("jobs/scheduler.lock"), source }
}
