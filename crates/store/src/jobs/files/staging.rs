//! Files on their way: written beside their places, synced together, then put there in order.

use std::fs::File;
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, OFlags, openat, renameat, unlinkat};
use rustix::io::Errno;

use super::beneath::FILE_MODE;
use super::folders::Folders;
use super::signature::{Found, Signature};
use super::sync::{Disk, MANY, What};
use super::{aside, layout};
use crate::jobs::JobStoreError;
use crate::sqlite::failpoint;

/// A file that is written and not yet in its place.
#[derive(Clone, Debug)]
pub(super) struct Staged {
    pub(super) folder: String,
    pub(super) name: String,
    /// By what it is known, here and in its place.
    pub(super) signature: Signature,
    temporary: String,
}

/// Files that are synced together.
pub(super) struct Staging {
    /// Those that are synced one by one; none when there are so many that all is synced.
    files: Vec<File>,
    is_many: bool,
    is_dirty: bool,
}

impl Staging {
    /// Begins; `count` is about how many files there will be.
    pub(super) const fn new(count: usize) -> Self {
        Self { files: Vec::new(), is_many: count > MANY, is_dirty: false }
    }

    /// Writes a file beside its place in a directory that is there.
    pub(super) fn write(
        &mut self,
        folders: &mut Folders<'_>,
        folder: &str,
        name: &str,
        text: &str,
    ) -> io::Result<Staged> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        const FLAGS: OFlags = OFlags::WRONLY
            .union(OFlags::CREATE)
            .union(OFlags::EXCL)
            .union(OFlags::NOFOLLOW)
            .union(OFlags::CLOEXEC);
        let open = folders.get(folder)?;
        let (mut file, temporary) = loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let temporary = format!(".{name}.{}.{count}.tmp", std::process::id());
            match openat(&*open, &temporary, FLAGS, FILE_MODE) {
                Ok(fd) => break (File::from(fd), temporary),
                // A process that had our number died here.
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        };
        let mut staged = Staged {
            folder: folder.to_owned(),
            name: name.to_owned(),
            signature: Signature(0, 0, 0),
            temporary,
        };
        match file.write_all(text.as_bytes()).and_then(|()| Found::of(&file)) {
            Ok(found) => staged.signature = found.signature,
            Err(error) => {
                staged.discard(folders);
                return Err(error);
            }
        }
        self.hold(file);
        Ok(staged)
    }

    /// Adds a file that was written in its place.
    pub(super) fn hold(&mut self, file: File) {
        self.is_dirty = true;
        if !self.is_many {
            self.files.push(file);
        }
        if self.files.len() > 4 * MANY {
            self.is_many = true;
            self.files.clear();
        }
    }

    /// Syncs all files.
    pub(super) fn sync(&mut self, folders: &Folders<'_>, disk: &Disk) -> Result<(), JobStoreError> {
        let files = std::mem::take(&mut self.files);
        if !std::mem::take(&mut self.is_dirty) {
            return Ok(());
        }
        if self.is_many {
            return disk.sync_all(folders.root);
        }
        disk.sync_each(&files.iter().collect::<Vec<_>>(), What::File, folders.root)
    }
}

impl Staged {
    /// Puts the file into its place.
    pub(super) fn place(&self, folders: &mut Folders<'_>) -> io::Result<()> {
        const OLD: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
        let folder = folders.get(&self.folder)?;
        if let Ok(old) = openat(&*folder, &self.name, OLD, FILE_MODE) {
            folders.grave.hold(old);
        }
        failpoint::pass(failpoint::BEFORE_RENAME);
        match renameat(&*folder, &self.temporary, &*folder, &self.name) {
            // What a process put there must not keep a job from its end. What is beside the jobs concerns all of them,
            // and is left for a person to see.
            Err(Errno::ISDIR | Errno::EXIST | Errno::NOTEMPTY)
                if self.folder != layout::JOBS
                    && self.folder != layout::RUNS
                    && aside::clear(folders.root, &*folder, &format!("{}/{}", self.folder, self.name))? =>
            {
                renameat(&*folder, &self.temporary, &*folder, &self.name)?;
            }
            renamed => renamed?,
        }
        folders.change(&self.folder);
        Ok(())
    }

    /// Takes the file away while it is not in its place. What cannot be removed is swept up with its job.
    pub(super) fn discard(&self, folders: &mut Folders<'_>) {
        self.remove(folders, &self.temporary);
    }

    /// Takes the file away again after it was put into its place.
    pub(super) fn undo(&self, folders: &mut Folders<'_>) {
        self.remove(folders, &self.name);
    }

    fn remove(&self, folders: &mut Folders<'_>, name: &str) {
        if let Ok(folder) = folders.get(&self.folder) {
            // It may be gone already, and there is nobody to tell.
            unlinkat(&*folder, name, AtFlags::empty()).ok();
        }
    }
}
