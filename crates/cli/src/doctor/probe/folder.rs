//! Looks at the data directory as a place for files: what may be done there, how much room there is, and its clock.
//!
//! Whether files can be written is tried with one that never gets a name, so that nothing changes.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;
use std::time::SystemTime;

use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags, accessat, openat, statvfs};
use rustix::io::Errno;
use tidewheel_store::jobs::{Checkup, Kept};

use crate::doctor::facts::{Kind, Refusal, Space};
use crate::error::cause;

/// Says what is at a path.
pub(super) fn kind(path: &Path) -> Kind {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Kind::Directory,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // A link to nowhere is there, too.
            if fs::symlink_metadata(path).is_ok() { Kind::Other } else { Kind::Missing }
        }
        Ok(_) => Kind::Other,
        // Something above it is in the way, and is told itself.
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Kind::Missing,
        // Somebody who may not look at it is told so when it is opened.
        Err(_) => Kind::Directory,
    }
}

/// Returns what cannot be done in the directories that are written to: the data directory, those of all jobs, and
/// that of each job that may still run.
pub(super) fn refusals(data: &Path, checkup: Option<&Checkup>) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    let mut folders = vec![data.to_owned(), data.join("jobs"), data.join("jobs/runs")];
    if kind(data) == Kind::Missing {
        // Where it would be made.
        folders.extend(data.parent().map(Path::to_owned));
    }
    for folder in folders.iter().filter(|folder| kind(folder) == Kind::Directory) {
        if let Err((verb, error)) = tried(folder) {
            refusals.push(Refusal { path: folder.clone(), verb, kind: error.kind(), why: cause(&error) });
        }
    }
    let is_open = |kept: &Kept| matches!(kept, Kept::Record { brief, .. } if brief.is_open());
    for (id, _) in checkup.iter().flat_map(|checkup| &checkup.jobs).filter(|(_, kept)| is_open(kept)) {
        let path = data.join("jobs").join(id.as_str());
        let access = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
        if let Err(error) = accessat(CWD, &path, access, AtFlags::EACCESS) {
            let error = io::Error::from(error);
            refusals.push(Refusal { path, verb: "written", kind: error.kind(), why: cause(&error) });
        }
    }
    refusals
}

/// Tries to read a directory, to write a file in it, and to sync both.
fn tried(folder: &Path) -> Result<(), (&'static str, io::Error)> {
    fs::read_dir(folder).map_err(|error| ("read", error))?;
    match nameless(folder) {
        Ok(mut file) => {
            file.write_all(b"doctor\n").map_err(|error| ("written", error))?;
            file.sync_all().map_err(|error| ("synced", error))?;
        }
        // Not every file system has files without a name; then the rights have to do.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {
            let access = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
            accessat(CWD, folder, access, AtFlags::EACCESS).map_err(|error| ("written", error.into()))?;
        }
        Err(error) => return Err(("written", error.into())),
    }
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| ("synced", error))
}

fn nameless(folder: &Path) -> Result<File, Errno> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    openat(CWD, folder, flags, Mode::RUSR | Mode::WUSR).map(File::from)
}

/// Says how much room there is.
pub(super) fn space(data: &Path) -> Option<Space> {
    let found = statvfs(data).ok()?;
    Some(Space {
        free_bytes: found.f_bavail.saturating_mul(found.f_frsize),
        free_files: (found.f_files > 0).then_some(found.f_favail),
    })
}

/// Says by how many milliseconds the time of a new file is behind the clock.
pub(super) fn skew(data: &Path) -> Option<i64> {
    let mut file = nameless(data).ok()?;
    file.write_all(b"doctor\n").ok()?;
    let (written, now) = (file.metadata().and_then(|of| of.modified()).ok()?, SystemTime::now());
    let millis = |of: std::time::Duration| i64::try_from(of.as_millis()).unwrap_or(i64::MAX);
    Some(match now.duration_since(written) {
        Ok(behind) => millis(behind),
        Err(ahead) => -millis(ahead.duration()),
    })
}
