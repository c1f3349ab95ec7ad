//! Removes jobs, runs and markers. A job vanishes at once, by one rename; what was in it is swept up afterwards.

use std::fs::File;
use std::io;

use rustix::fs::{AtFlags, FileType, OFlags, openat, renameat, unlinkat};
use rustix::io::Errno;
use tidewheel_core::job::{Artifact, JobId, RunId};

use super::folders::Folders;
use super::layout::{self, BIN, JOBS};
use super::sweep;
use crate::jobs::JobStoreError;

/// Removes a job with all that is in its directory, unless its supervisor lives.
pub(super) fn job(folders: &mut Folders<'_>, id: &JobId) -> Result<(), JobStoreError> {
    let root = folders.root;
    let path = layout::job(id);
    let fail = |source| JobStoreError::Io { verb: "remove", path: root.path(&path), source };
    match root.look(&path).map_err(fail)?.map(|found| found.kind) {
        None => return Ok(()),
        Some(FileType::Directory) => {}
        // What the link points to is none of ours.
        Some(_) => {
            let jobs = folders.get(JOBS).map_err(fail)?;
            unlinkat(&*jobs, id.as_str(), AtFlags::empty()).map_err(|error| fail(error.into()))?;
            folders.change(JOBS);
            return Ok(());
        }
    }
    let lock = held(folders, id).map_err(fail)?;
    if matches!(lock, Hold::ByAnother) {
        return Err(JobStoreError::Held { job: id.clone() });
    }
    throw_away(folders, id).map_err(fail)
}

/// Removes a job that was made just now and is not to be.
pub(super) fn new_job(folders: &mut Folders<'_>, id: &JobId) {
    drop(throw_away(folders, id));
}

/// Removes the manifest of a run.
pub(super) fn manifest(folders: &mut Folders<'_>, run: &RunId) -> io::Result<()> {
    remove(folders, layout::RUNS, &layout::manifest_name(run))
}

/// Removes a state that jobs shared.
pub(super) fn shared(folders: &mut Folders<'_>, name: &str) -> io::Result<()> {
    remove(folders, layout::SHARED, &layout::shared_name(name))
}

/// Removes the marker and the payload that a job made of an artifact.
pub(super) fn unmark(folders: &mut Folders<'_>, id: &JobId, artifact: &Artifact) -> io::Result<()> {
    let Artifact::Custom { type_id, key } = artifact else { return Ok(()) };
    for base in [layout::MARKERS, layout::PAYLOADS] {
        let folder = layout::artifact(base, type_id, key);
        remove(folders, &folder, &layout::made_by(id))?;
        sweep::sweep(folders, &folder);
        // Nobody else makes anything there without a turn; a directory that is not empty stays.
        let mut path = folder.as_str();
        while let Some((above, name)) = path.rsplit_once('/')
            && path != base
            && let Ok(open) = folders.get(above)
            && unlinkat(&*open, name, AtFlags::REMOVEDIR).is_ok()
        {
            folders.forget(path);
            folders.change(above);
            path = above;
        }
    }
    Ok(())
}

fn remove(folders: &mut Folders<'_>, folder: &str, name: &str) -> io::Result<()> {
    let open = match folders.get(folder) {
        Ok(open) => open,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidFilename) => {
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    match unlinkat(&*open, name, AtFlags::empty()) {
        Ok(()) => {
            folders.change(folder);
            Ok(())
        }
        Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Who holds the run lock of a job.
enum Hold {
    Nobody,
    Us(#[expect(dead_code, reason = "held until it is dropped")] File),
    ByAnother,
}

fn held(folders: &mut Folders<'_>, id: &JobId) -> io::Result<Hold> {
    const FLAGS: OFlags = OFlags::RDWR.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);
    let folder = folders.root.folder(&layout::job(id))?;
    let file = match openat(folder, layout::RUN_LOCK, FLAGS, rustix::fs::Mode::empty()) {
        Ok(fd) => File::from(fd),
        Err(Errno::NOENT) => return Ok(Hold::Nobody),
        Err(error) => return Err(error.into()),
    };
    match file.try_lock() {
        Ok(()) => Ok(Hold::Us(file)),
        Err(std::fs::TryLockError::WouldBlock) => Ok(Hold::ByAnother),
        Err(std::fs::TryLockError::Error(error)) => Err(error),
    }
}

fn throw_away(folders: &mut Folders<'_>, id: &JobId) -> io::Result<()> {
    folders.make_all(BIN)?;
    let bin = folders.get(BIN)?;
    let jobs = folders.get(JOBS)?;
    let swept = folders.root.path(&format!("{BIN}/{id}"));
    // Whoever was here before us may have died before it was swept up.
    sweep(&swept)?;
    renameat(&*jobs, id.as_str(), &*bin, id.as_str())?;
    folders.forget(&layout::job(id));
    folders.change(JOBS);
    folders.links -= 1;
    sweep(&swept)
}

fn sweep(path: &std::path::Path) -> io::Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
