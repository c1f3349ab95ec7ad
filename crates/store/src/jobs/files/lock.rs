//! Locks of the kernel, which sets them free when their holder dies. The files stay when nobody holds them.

use std::fs::{File, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;

use rustix::fs::{FileType, Mode, OFlags, fstat, major, minor, openat};
use tidewheel_core::job::JobId;

use super::beneath::{FILE_MODE, Root};
use super::layout;
use super::signature::Found;
use crate::jobs::JobStoreError;

/// Waits for the lock of the turns.
pub(super) fn turn(root: &Root) -> Result<File, JobStoreError> {
    let fail = |source| turn_error(root, source);
    loop {
        let file = open(root, layout::JOBS, layout::TURN_LOCK)?;
        match file.lock() {
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

/// Takes the run lock of a job if it is free.
pub(super) fn run(root: &Root, id: &JobId) -> Result<Option<File>, JobStoreError> {
    let folder = layout::job(id);
    let file = open(root, &folder, layout::RUN_LOCK)?;
    let path = root.path(&layout::of_job(id, layout::RUN_LOCK));
    let is_taken = taken(&file).map_err(|source| JobStoreError::Io { verb: "lock", path, source })?;
    Ok(is_taken.then_some(file))
}

/// Tells whether somebody holds the run lock of a job, by what the kernel lists: to try it would be in the way of
/// somebody who takes it.
pub(super) fn is_held(root: &Root, id: &JobId) -> bool {
    let folder = root.folder(&layout::job(id));
    let found = folder.and_then(|folder| {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(fstat(openat(folder, layout::RUN_LOCK, flags, Mode::empty())?)?)
    });
    // Whoever was started has made it; of a record that somebody wrote nobody knows.
    let Ok(found) = found else { return true };
    let Ok(locks) = std::fs::read_to_string("/proc/locks") else { return true };
    let file = format!("{:02x}:{:02x}:{}", major(found.st_dev), minor(found.st_dev), found.st_ino);
    locks.lines().any(|line| line.split_ascii_whitespace().any(|word| word == file))
        || is_input_of_somebody(found.st_dev, found.st_ino)
}

/// Tells whether a process has a file as its input, as a supervisor has its lock. In a container the kernel does not
/// list a lock whose first holder is gone, though it was handed on.
fn is_input_of_somebody(device: u64, inode: u64) -> bool {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let inputs = processes.filter_map(|process| std::fs::metadata(process.path().join("fd/0")).ok());
    inputs.into_iter().any(|input| (input.dev(), input.ino()) == (device, inode))
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
    Some(Holder { pid, name: of("comm").trim_end().to_owned(), is_stopped })
}

fn open(root: &Root, folder: &str, name: &str) -> Result<File, JobStoreError> {
    const FLAGS: OFlags = OFlags::RDWR
        .union(OFlags::CREATE)
        .union(OFlags::NOFOLLOW)
        .union(OFlags::NONBLOCK)
        .union(OFlags::NOCTTY)
        .union(OFlags::CLOEXEC);
    let path = || root.path(&format!("{folder}/{name}"));
    let fail = |source| JobStoreError::Io { verb: "open", path: path(), source };
    let folder = root.folder(folder).map_err(fail)?;
    let file = File::from(openat(folder, name, FLAGS, FILE_MODE).map_err(|error| fail(error.into()))?);
    if Found::of(&file).map_err(fail)?.kind != FileType::RegularFile {
        return Err(fail(io::Error::other("it is no regular file")));
    }
    Ok(file)
}

fn taken(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Writes who holds the lock, for people who look. Nobody depends on it, so no error counts.
fn sign(mut file: &File) {
    let name = std::fs::read_to_string("/proc/self/comm").unwrap_or_default();
    let text = format!("{} {}\n", std::process::id(), name.trim_end());
    if file.set_len(0).is_ok() {
        drop(file.write_all(text.as_bytes()));
    }
}

fn turn_error(root: &Root, source: io::Error) -> JobStoreError {
    JobStoreError::Io { verb: "lock", path: root.path("jobs/scheduler.lock"), source }
}
