//! The one way to open a file beneath a data directory from outside of the store: regular files only, and no link on the
//! way to them. Jobs may put anything there, and nothing that they put there makes another process wait, or read or
//! write somewhere else.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fsync, mkdirat, openat, openat2};
use rustix::io::Errno;

use super::beneath::{FILE_MODE, FOLDER_MODE, what_it_is};

/// What a file is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// To be read.
    Read,
    /// To be locked; it is made if it is missing.
    Lock,
    /// To be locked, if it is there.
    LockThere,
    /// To be added to; it is made if it is missing.
    Append,
    /// To be written; it must not be there.
    New,
    /// To be added to; it must not be there.
    NewAppend,
}

impl Access {
    const fn flags(self) -> OFlags {
        match self {
            Self::Read => OFlags::RDONLY,
            Self::Lock => OFlags::RDWR.union(OFlags::CREATE),
            Self::LockThere => OFlags::RDWR,
            Self::Append => OFlags::WRONLY.union(OFlags::APPEND).union(OFlags::CREATE),
            Self::New => OFlags::RDWR.union(OFlags::CREATE).union(OFlags::EXCL),
            Self::NewAppend => OFlags::WRONLY.union(OFlags::APPEND).union(OFlags::CREATE).union(OFlags::EXCL),
        }
    }
}

/// Opens a regular file beneath a directory. The directory itself may be a link: the caller chose it.
///
/// # Errors
/// It is a link, a pipe, a socket, a device or a directory, which the error says; a link is on the way to it; or the
/// system does not open it.
pub fn open_regular(directory: &Path, path: &Path, access: Access) -> io::Result<File> {
    const ALWAYS: OFlags =
        OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
    let is_plain = path.components().all(|step| matches!(step, Component::Normal(_)));
    if !is_plain || path.file_name().is_none() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "its path does not go down only"));
    }
    let flags = access.flags() | ALWAYS;
    let mode = if flags.contains(OFlags::CREATE) { FILE_MODE } else { Mode::empty() };
    let folder = openat(CWD, directory, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let file = match open_without_links(&folder, path, flags, mode) {
        Ok(fd) => File::from(fd),
        Err(Errno::LOOP | Errno::XDEV) => return Err(named(directory, path, "a link is on the way to it")),
        // What has no other end, or is no file at all, says so in words that do not name the cause.
        Err(error @ (Errno::NXIO | Errno::ISDIR | Errno::NODEV)) => {
            return Err(named(directory, path, &error.to_string()));
        }
        Err(error) => return Err(error.into()),
    };
    let kind = file.metadata()?.file_type();
    if kind.is_file() { Ok(file) } else { Err(named(directory, path, "it is no regular file")) }
}

/// Reads a regular file of at most so many bytes beneath a directory; `None` if there is none.
///
/// # Errors
/// As of [`open_regular`], or it is larger.
pub fn read_regular(directory: &Path, path: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match open_regular(directory, path, Access::Read) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > most) {
        let what = format!("it is larger than {most} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
    }
    Ok(Some(bytes))
}

/// Makes a directory with all above it beneath a data directory, for its owner only, and lets the disk have each
/// name that was missing. No link is followed.
///
/// # Errors
/// One of them cannot be made, or is none.
pub fn make_folders(directory: &Path, path: &Path) -> io::Result<()> {
    const FOLDER: OFlags =
        OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
    let mut reached =
        openat(CWD, directory, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    for step in path.components() {
        let Component::Normal(name) = step else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "its path does not go down only"));
        };
        match mkdirat(&reached, name, FOLDER_MODE) {
            Ok(()) => fsync(&reached)?,
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        reached = openat(&reached, name, FOLDER, Mode::empty())?;
    }
    Ok(())
}

/// Splits the path of a file of a job, or of another one two steps beneath a data directory, into that directory and the
/// rest; of any other path only its last step is apart.
#[must_use]
pub fn split_data(path: &Path) -> (PathBuf, PathBuf) {
    let above = path.ancestors().nth(2);
    let is_ours = above.and_then(Path::file_name).is_some_and(|name| name == "jobs" || name == "tmp");
    let directory = path.ancestors().nth(if is_ours { 3 } else { 1 }).unwrap_or_else(|| Path::new(""));
    let rest = path.strip_prefix(directory).unwrap_or(path).to_owned();
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    (directory.to_owned(), rest)
}

/// Says what is at a path, as `it is a pipe, and no regular file`.
fn named(directory: &Path, path: &Path, otherwise: &str) -> io::Error {
    use std::os::unix::fs::MetadataExt as _;
    let found = fs::symlink_metadata(directory.join(path));
    let kind = found.ok().map(|found| FileType::from_raw_mode(found.mode()));
    let words = match kind {
        Some(kind) if kind != FileType::RegularFile => what_it_is(kind),
        _ => otherwise.to_owned(),
    };
    io::Error::other(words)
}

fn open_without_links(folder: &OwnedFd, path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    const RESOLVE: ResolveFlags =
        ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);
    // The system gives up when directories are renamed while it looks; a few times are enough for us.
    const TRIES: usize = 16;
    const STEP: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);
    for _ in 0..TRIES {
        match openat2(folder, path, flags, mode, RESOLVE) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            // An old kernel, or a sandbox that does not know the call: step by step.
            Err(Errno::NOSYS | Errno::PERM) => {
                let mut above: Option<OwnedFd> = None;
                let steps: Vec<_> = path.components().collect();
                let (last, before) = steps.split_last().ok_or(Errno::NOENT)?;
                for step in before {
                    let from = above.as_ref().map_or_else(|| folder.as_fd(), |fd| fd.as_fd());
                    above = Some(openat(from, step.as_os_str(), STEP, Mode::empty())?);
                }
                let from = above.as_ref().map_or_else(|| folder.as_fd(), |fd| fd.as_fd());
                return openat(from, last.as_os_str(), flags, mode);
            }
            result => return result,
        }
    }
    Err(Errno::AGAIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::os::unix::net::UnixListener;

    const ALL: [Access; 4] = [Access::Read, Access::Lock, Access::LockThere, Access::Append];

    /// Nothing waits here, or the test would.
    #[test]
    fn what_is_no_regular_file_is_refused_by_name_and_nothing_is_made_outside() {
        let world = tempfile::tempdir().unwrap();
        let (data, outside) = (world.path().join("data"), world.path().join("outside"));
        fs::create_dir_all(data.join("jobs/folder")).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("secret"), "x").unwrap();
        let at = |name: &str| data.join("jobs").join(name);
        rustix::fs::mknodat(CWD, at("pipe"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        let _socket = UnixListener::bind(at("socket")).unwrap();
        symlink(outside.join("new"), at("dangling")).unwrap();
        symlink(outside.join("secret"), at("link")).unwrap();
        symlink(&outside, at("away")).unwrap();
        fs::write(at("file"), "x").unwrap();
        symlink("file", at("near")).unwrap();
        for access in ALL {
            for (name, what) in [
                ("pipe", "it is a pipe, and no regular file"),
                ("socket", "it is a socket, and no regular file"),
                ("folder", "it is a directory, and no regular file"),
                ("link", "it is a link, and no regular file"),
                ("near", "it is a link, and no regular file"),
                ("dangling", "it is a link, and no regular file"),
                ("away/secret", "a link is on the way to it"),
                ("away/new", "a link is on the way to it"),
            ] {
                let error = open_regular(&data, &Path::new("jobs").join(name), access).unwrap_err();
                assert_eq!(error.to_string(), what, "{access:?} {name}");
            }
            assert!(open_regular(&data, Path::new("jobs/file"), access).is_ok(), "{access:?}");
            for path in ["../outside/secret", "/etc/passwd", "jobs/../../outside/secret", ""] {
                assert!(open_regular(&data, Path::new(path), access).is_err(), "{access:?} {path}");
            }
        }
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
        // The directory itself may be a link.
        symlink(&data, world.path().join("chosen")).unwrap();
        let read = read_regular(&world.path().join("chosen"), Path::new("jobs/file"), 10);
        assert_eq!(read.unwrap().unwrap(), b"x");
        assert!(read_regular(&data, Path::new("jobs/file"), 0).is_err());
        assert!(read_regular(&data, Path::new("jobs/none"), 9).unwrap().is_none());
    }

    #[test]
    fn what_is_made_is_for_its_owner_only() {
        let world = tempfile::tempdir().unwrap();
        make_folders(world.path(), Path::new("tmp/merge-conflicts")).unwrap();
        make_folders(world.path(), Path::new("tmp/merge-conflicts")).unwrap();
        open_regular(world.path(), Path::new("tmp/merge-conflicts/a"), Access::New).unwrap();
        for (path, mode) in [("tmp", 0o700), ("tmp/merge-conflicts", 0o700), ("tmp/merge-conflicts/a", 0o600)]
        {
            let found = fs::metadata(world.path().join(path)).unwrap().permissions().mode() & 0o777;
            assert_eq!(found, mode, "{path}");
        }
        symlink("tmp", world.path().join("link")).unwrap();
        assert!(make_folders(world.path(), Path::new("link/new")).is_err());
    }

    #[test]
    fn a_path_of_a_job_is_split_at_the_data_directory() {
        let split = |path: &str| {
            let (directory, rest) = split_data(Path::new(path));
            (directory.display().to_string(), rest.display().to_string())
        };
        let of = |one: &str, other: &str| (one.to_owned(), other.to_owned());
        assert_eq!(split("/r/.tidewheel/jobs/a/stdout.log"), of("/r/.tidewheel", "jobs/a/stdout.log"));
        assert_eq!(split("jobs/a/stdout.log"), of(".", "jobs/a/stdout.log"));
        assert_eq!(split("/t/stdout.log"), of("/t", "stdout.log"));
        assert_eq!(split("stdout.log"), of(".", "stdout.log"));
    }
}
