//! The data directory: every path is opened beneath it, and no link leads out of it.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, openat, openat2, unlinkat};
use rustix::io::Errno;

use super::signature::{Found, Signature};

/// The data directory.
#[derive(Debug)]
pub(super) struct Root {
    fd: OwnedFd,
    path: PathBuf,
    /// What was in the way of files and what became of it, until a caller asks.
    notes: Mutex<Vec<String>>,
}

/// No file of ours is larger.
pub(super) const MAX_FILE: u64 = 4 << 20;

/// The rights of new files: only their owner reads records, logs and payloads.
pub(super) const FILE_MODE: Mode = Mode::from_raw_mode(0o600);

/// The rights of new directories.
pub(super) const FOLDER_MODE: Mode = Mode::from_raw_mode(0o700);

impl Root {
    /// Opens the directory; `None` if there is none.
    pub(super) fn open(path: &Path) -> io::Result<Option<Self>> {
        match openat(CWD, path, DIRECTORY, Mode::empty()) {
            Ok(fd) => Ok(Some(Self { fd, path: path.to_owned(), notes: Mutex::default() })),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns where a file is, for people.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.path.join(path)
    }

    /// Notes what was in the way of a file.
    pub(super) fn note(&self, what: String) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }

    /// Returns what was noted since the last time.
    pub(super) fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut *self.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Opens what is at a path beneath the directory.
    pub(super) fn open_at(&self, path: &str, flags: OFlags) -> io::Result<OwnedFd> {
        open_beneath(self.fd.as_fd(), path, flags | OFlags::CLOEXEC).map_err(in_words)
    }

    /// Opens a directory beneath it.
    pub(super) fn folder(&self, path: &str) -> io::Result<OwnedFd> {
        self.open_at(path, DIRECTORY)
    }

    /// Reads a regular file and what it is known by; `None` if nothing is there.
    pub(super) fn read(&self, path: &str) -> io::Result<Option<(String, Signature)>> {
        self.read_up_to(path, MAX_FILE)
    }

    /// Reads a regular file that may have up to so many bytes.
    pub(super) fn read_up_to(&self, path: &str, max: u64) -> io::Result<Option<(String, Signature)>> {
        let Some((bytes, signature)) = self.bytes_up_to(path, max)? else { return Ok(None) };
        let text = String::from_utf8(bytes);
        let text = text.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))?;
        Ok(Some((text, signature)))
    }

    /// Reads a regular file that may be no text.
    pub(super) fn bytes_up_to(&self, path: &str, max: u64) -> io::Result<Option<(Vec<u8>, Signature)>> {
        // A pipe in the place of a file must not make us wait for its other end, nor a link read another file.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match open_beneath(self.fd.as_fd(), path, flags) {
            Ok(fd) => File::from(fd),
            Err(error) if is_missing(error) => return Ok(None),
            Err(error @ (Errno::LOOP | Errno::NXIO)) => {
                let kind = self.look(path).ok().flatten().map(|found| found.kind);
                let kind = kind.filter(|kind| *kind != FileType::RegularFile);
                return Err(kind.map_or_else(|| in_words(error), no_regular));
            }
            Err(error) => return Err(in_words(error)),
        };
        let found = Found::of(&file)?;
        let Signature(_, size, _) = found.signature;
        if found.kind != FileType::RegularFile {
            return Err(no_regular(found.kind));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(size.min(max)).unwrap_or(0));
        let read = file.take(max + 1).read_to_end(&mut bytes)?;
        if u64::try_from(read).is_ok_and(|read| read > max) {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("it is larger than {} MiB", max >> 20),
            ));
        }
        Ok(Some((bytes, found.signature)))
    }

    /// Looks at what is at a path; `None` if nothing is there.
    pub(super) fn look(&self, path: &str) -> io::Result<Option<Found>> {
        Found::at(&self.fd, path)
    }

    /// Returns the names in a directory with what they are, those of temporary files included; none if it is missing.
    pub(super) fn names(&self, path: &str) -> io::Result<Vec<(Vec<u8>, FileType)>> {
        match open_beneath(self.fd.as_fd(), path, DIRECTORY) {
            Ok(folder) => names(folder),
            // Something else in its place is no reason to say that there is nothing.
            Err(Errno::NOENT) => Ok(Vec::new()),
            Err(error) => Err(in_words(error)),
        }
    }
}

impl AsFd for Root {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Returns the names in an open directory with what they are.
pub(super) fn names(folder: impl AsFd) -> io::Result<Vec<(Vec<u8>, FileType)>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push((name.to_owned(), entry.file_type()));
        }
    }
    Ok(names)
}

/// Takes an empty directory away that is in the place of a file; tells whether it did. What is in another one is not ours.
pub(super) fn clear_way(folder: impl AsFd, name: &str) -> bool {
    unlinkat(folder, name, AtFlags::REMOVEDIR).is_ok()
}

/// Tells whether an error means that nothing is there.
pub(super) fn is_missing(error: Errno) -> bool {
    error == Errno::NOENT || error == Errno::NOTDIR
}

/// Opens a regular file in an open directory, and says what else is in its place.
pub(super) fn regular(folder: impl AsFd, name: &str, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match openat(&folder, name, flags, FILE_MODE) {
        Ok(fd) => File::from(fd),
        // A link, a pipe without another end, a directory: the system would speak of loops and devices.
        Err(error @ (Errno::LOOP | Errno::NXIO | Errno::ISDIR)) => {
            let kind = Found::at(&folder, name)?.map(|found| found.kind);
            let kind = kind.filter(|kind| *kind != FileType::RegularFile && *kind != FileType::Directory);
            return Err(kind.map_or_else(|| error.into(), no_regular));
        }
        Err(error) => return Err(error.into()),
    };
    let kind = Found::of(&file)?.kind;
    if kind == FileType::RegularFile { Ok(file) } else { Err(no_regular(kind)) }
}

/// Says what is in the place of a regular file.
pub(super) fn what_it_is(kind: FileType) -> String {
    match kind {
        FileType::RegularFile => "it is a regular file".to_owned(),
        other => format!("it is {}, and no regular file", super::obstacle::in_words(other)),
    }
}

/// Returns the error of something in the place of a regular file.
pub(super) fn no_regular(kind: FileType) -> io::Error {
    io::Error::other(what_it_is(kind))
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Says what a link that leads out of the directory is; the system would speak of devices.
fn in_words(error: Errno) -> io::Error {
    if error == Errno::XDEV || error == Errno::LOOP {
        io::Error::new(io::ErrorKind::PermissionDenied, "a link leads out of the data directory")
    } else {
        error.into()
    }
}

fn open_beneath(folder: BorrowedFd<'_>, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    const RESOLVE: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);
    // The system gives up when directories are renamed while it looks; a few times are enough for us.
    const TRIES: usize = 16;
    let mode = if flags.contains(OFlags::CREATE) { FILE_MODE } else { Mode::empty() };
    for _ in 0..TRIES {
        match openat2(folder, path, flags, mode, RESOLVE) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            // An old kernel, or a sandbox that does not know the call.
            Err(Errno::NOSYS | Errno::PERM) => return open_by_steps(folder, path, flags, mode),
            result => return result,
        }
    }
    Err(Errno::AGAIN)
}

/// The same for a system that cannot: no link is followed at all.
fn open_by_steps(folder: BorrowedFd<'_>, path: &str, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    const STEP: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);
    let mut above: Option<OwnedFd> = None;
    let mut rest = path;
    while let Some((name, next)) = rest.split_once('/') {
        let from = above.as_ref().map_or(folder, AsFd::as_fd);
        above = Some(openat(from, name, STEP, Mode::empty())?);
        rest = next;
    }
    openat(above.as_ref().map_or(folder, AsFd::as_fd), rest, flags | OFlags::NOFOLLOW, mode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_open_find_files_and_refuse_links_that_lead_out() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "x").unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("jobs/a")).unwrap();
        std::fs::write(folder.path().join("jobs/a/job.json"), "{}").unwrap();
        std::os::unix::fs::symlink(outside.path(), folder.path().join("jobs/out")).unwrap();
        std::os::unix::fs::symlink(outside.path().join("secret"), folder.path().join("jobs/file")).unwrap();
        let root = Root::open(folder.path()).unwrap().unwrap();
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        for open in [
            |fd: BorrowedFd<'_>, path: &str, flags| open_by_steps(fd, path, flags, Mode::empty()),
            open_beneath,
        ] {
            assert!(open(root.as_fd(), "jobs/a/job.json", flags).is_ok());
            for out in ["jobs/out/secret", "jobs/file"] {
                assert!(open(root.as_fd(), out, flags).is_err(), "{out}");
            }
        }
    }
}
