//! Files beneath a directory, for operations that are given names by others: no name and no link leads out of it.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub(super) enum BeneathError {
    #[error("there is no such file")]
    Missing,
    #[error("it leads out of its directory")]
    Outside,
    #[error("it is no ordinary file")]
    NoFile,
    #[error("it is larger than {} MiB", .0 >> 20)]
    TooLarge(u64),
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Reads an ordinary file beneath a directory. Links are followed as long as they stay beneath it.
pub(super) fn read(directory: &Path, path: &str, most: u64) -> Result<Vec<u8>, BeneathError> {
    read_file(open(directory, path, ResolveFlags::BENEATH)?, most)
}

/// Opens a file beneath a directory, if there is one; no link is followed.
pub(super) fn open_plain(directory: &Path, path: &str) -> Result<Option<File>, BeneathError> {
    match open(directory, path, ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS) {
        Ok(file) => Ok(Some(file)),
        Err(BeneathError::Missing) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads an ordinary file beneath a directory, where no link is followed; `None` if that is not to be had.
pub(in crate::job) fn read_plain(directory: &Path, path: &str, most: u64) -> Option<Vec<u8>> {
    read_file(open_plain(directory, path).ok()??, most).ok()
}

/// Reads an open file.
pub(super) fn read_file(file: File, most: u64) -> Result<Vec<u8>, BeneathError> {
    if !file.metadata()?.is_file() {
        return Err(BeneathError::NoFile);
    }
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > most) {
        return Err(BeneathError::TooLarge(most));
    }
    Ok(bytes)
}

/// Writes a file beneath a directory, and the directories above it: whoever looks sees the old one or the new one.
pub(super) fn write(directory: &Path, path: &str, bytes: &[u8]) -> io::Result<()> {
    let place = directory.join(path);
    let parent = place.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let real = make_folder(directory, parent.strip_prefix(directory).unwrap_or(parent))?;
    let name = place.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let temporary = real.join(format!(".{}.{}.tmp", name.to_string_lossy(), std::process::id()));
    // What a process with our number left behind when it died is in nobody's way.
    fs::remove_file(&temporary).ok();
    // What a job keeps for itself is for its owner only.
    let mode = if path.starts_with("jobs/") { 0o600 } else { 0o666 };
    let made = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&temporary);
    let written = made.and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, real.join(name))?;
        File::open(&real)?.sync_all()
    });
    if written.is_err() {
        fs::remove_file(&temporary).ok();
    }
    written
}

/// Makes a directory beneath another one, step by step, and returns where it is. Links are followed as long as they stay
/// beneath it; outside nothing is made.
pub(super) fn make_folder(directory: &Path, path: &Path) -> io::Result<PathBuf> {
    let root = directory.canonicalize()?;
    let mut reached = root.clone();
    for step in path.components() {
        match step {
            Component::CurDir => continue,
            Component::Normal(name) => reached.push(name),
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return Err(leads_out()),
        }
        if let Err(error) = fs::create_dir(&reached)
            && error.kind() != io::ErrorKind::AlreadyExists
        {
            return Err(error);
        }
        // The step itself was made where the last one is, which is beneath the root.
        reached = reached.canonicalize()?;
        if !reached.starts_with(&root) {
            return Err(leads_out());
        }
    }
    Ok(reached)
}

fn leads_out() -> io::Error {
    io::Error::other("a link leads out of its directory")
}

/// Returns a path as it reads, if every step of it goes down.
pub(super) fn plain(path: &str) -> Option<PathBuf> {
    let path = Path::new(path);
    let goes_down = path.components().all(|step| matches!(step, Component::Normal(_) | Component::CurDir));
    (goes_down && path.components().any(|step| matches!(step, Component::Normal(_)))).then(|| path.to_owned())
}

fn open(directory: &Path, path: &str, resolve: ResolveFlags) -> Result<File, BeneathError> {
    // Whoever puts a pipe in the place of a file must not make us wait for its other end.
    const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
    const TRIES: usize = 16;
    let path = plain(path).ok_or(BeneathError::Outside)?;
    let folder = openat(CWD, directory, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    let folder = folder.map_err(told)?;
    for _ in 0..TRIES {
        match openat2(&folder, &path, FLAGS, Mode::empty(), resolve | ResolveFlags::NO_MAGICLINKS) {
            // The system gives up when directories are renamed while it looks.
            Err(Errno::AGAIN | Errno::INTR) => {}
            // An old kernel, or a sandbox that does not know the call.
            Err(Errno::NOSYS | Errno::PERM) => return open_real(directory, &path, resolve),
            opened => return opened.map(File::from).map_err(told),
        }
    }
    Err(BeneathError::Io(Errno::AGAIN.into()))
}

/// The same for a system that cannot: the real path is looked at first.
fn open_real(directory: &Path, path: &Path, resolve: ResolveFlags) -> Result<File, BeneathError> {
    let missing = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => BeneathError::Missing,
        _ => BeneathError::Io(error),
    };
    let root = directory.canonicalize().map_err(missing)?;
    let real = root.join(path).canonicalize().map_err(missing)?;
    let is_plain = real == root.join(path);
    if !real.starts_with(&root) || (resolve.contains(ResolveFlags::NO_SYMLINKS) && !is_plain) {
        return Err(BeneathError::Outside);
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(CWD, real, flags, Mode::empty()).map_err(told)?.into())
}

fn told(error: Errno) -> BeneathError {
    match error {
        Errno::NOENT | Errno::NOTDIR => BeneathError::Missing,
        Errno::XDEV | Errno::LOOP => BeneathError::Outside,
        other => BeneathError::Io(other.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_leads_out_is_refused_and_what_stays_is_read() {
        let world = tempfile::tempdir().unwrap();
        let root = world.path().join("root");
        fs::create_dir_all(root.join("in")).unwrap();
        fs::write(world.path().join("out"), "no").unwrap();
        fs::write(root.join("in/file"), "yes").unwrap();
        symlink(world.path().join("out"), root.join("link")).unwrap();
        symlink("in/file", root.join("near")).unwrap();
        for path in ["in/file", "near", "./in/file"] {
            assert_eq!(read(&root, path, 10).unwrap(), b"yes", "{path}");
            let opened = open_real(&root, Path::new(path), ResolveFlags::BENEATH).unwrap();
            assert_eq!(read_file(opened, 10).unwrap(), b"yes", "{path}");
        }
        for path in ["link", "../out", "/etc/passwd", "in/../../out"] {
            assert!(matches!(read(&root, path, 10), Err(BeneathError::Outside)), "{path}");
        }
        assert!(matches!(open_plain(&root, "near"), Err(BeneathError::Outside)));
        assert!(open_plain(&root, "none").unwrap().is_none());
        assert!(matches!(read(&root, "in", 10), Err(BeneathError::NoFile)));
        assert!(matches!(read(&root, "in/file", 2), Err(BeneathError::TooLarge(2))));
    }

    #[test]
    fn a_file_is_written_beneath_its_directory_only() {
        let world = tempfile::tempdir().unwrap();
        let root = world.path().join("root");
        fs::create_dir_all(&root).unwrap();
        write(&root, "a/b/file", b"one").unwrap();
        write(&root, "a/b/file", b"two").unwrap();
        assert_eq!(fs::read(root.join("a/b/file")).unwrap(), b"two");
        assert_eq!(fs::read_dir(root.join("a/b")).unwrap().count(), 1);
        symlink(world.path(), root.join("out")).unwrap();
        for path in ["out/file", "out/new/file", "../file", "a/../../new/file"] {
            assert!(write(&root, path, b"no").is_err(), "{path}");
        }
        symlink(world.path().join("nowhere"), root.join("dangling")).unwrap();
        assert!(write(&root, "dangling/file", b"no").is_err());
        assert_eq!(fs::read_dir(world.path()).unwrap().count(), 1, "nothing is made outside");
        symlink("a", root.join("near")).unwrap();
        write(&root, "near/c/file", b"yes").unwrap();
        assert_eq!(fs::read(root.join("a/c/file")).unwrap(), b"yes");
    }
}
