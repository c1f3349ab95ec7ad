//! The directories that one write touches: opened once, made where they are missing, and synced together at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::rc::Rc;

use rustix::fs::mkdirat;
use rustix::io::Errno;

use super::beneath::{FOLDER_MODE, Root};
use super::grave::Grave;
use super::layout;
use super::sync::{Disk, MANY, What};
use crate::jobs::JobStoreError;

/// The directories that one write touches.
pub(super) struct Folders<'r> {
    pub(super) root: &'r Root,
    open: BTreeMap<String, Rc<File>>,
    changed: BTreeSet<String>,
    /// How many directories more there are in the one of the jobs.
    pub(super) links: i64,
    pub(super) grave: Grave,
}

impl<'r> Folders<'r> {
    pub(super) fn new(root: &'r Root) -> Self {
        Self { root, open: BTreeMap::new(), changed: BTreeSet::new(), links: 0, grave: Grave::default() }
    }

    /// Opens a directory that is there.
    pub(super) fn get(&mut self, path: &str) -> io::Result<Rc<File>> {
        if let Some(folder) = self.open.get(path) {
            return Ok(Rc::clone(folder));
        }
        let folder = Rc::new(File::from(self.root.folder(path)?));
        // A process may open about a thousand files.
        if self.open.len() < MANY {
            self.open.insert(path.to_owned(), Rc::clone(&folder));
        }
        Ok(folder)
    }

    /// Makes a directory in one that is there; tells whether it was missing.
    pub(super) fn make(&mut self, parent: &str, name: &str) -> io::Result<bool> {
        match mkdirat(&*self.get(parent)?, name, FOLDER_MODE) {
            Ok(()) => {
                self.changed.insert(parent.to_owned());
                if parent == layout::JOBS {
                    self.links += 1;
                }
                Ok(true)
            }
            Err(Errno::EXIST) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes a directory with all above it.
    pub(super) fn make_all(&mut self, path: &str) -> io::Result<()> {
        if self.open.contains_key(path) || self.get(path).is_ok() {
            return Ok(());
        }
        let mut end = path.find('/');
        while let Some(slash) = end {
            let rest = &path[slash + 1..];
            let next = rest.find('/').map(|at| slash + 1 + at);
            let name = &path[slash + 1..next.unwrap_or(path.len())];
            self.make(&path[..slash], name)?;
            end = next;
        }
        Ok(())
    }

    /// Notes that names in a directory have changed.
    pub(super) fn change(&mut self, path: &str) {
        if !self.changed.contains(path) {
            self.changed.insert(path.to_owned());
        }
    }

    /// Syncs the directories that have changed since the last time, all at once.
    pub(super) fn sync(&mut self, disk: &Disk) -> Result<(), JobStoreError> {
        let changed = std::mem::take(&mut self.changed);
        if changed.len() > MANY {
            return disk.sync_all(self.root);
        }
        let mut folders = Vec::with_capacity(changed.len());
        for path in &changed {
            match self.get(path) {
                Ok(folder) => folders.push(folder),
                // It was removed in the meantime, and the one above it has changed as well.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => {
                    return Err(JobStoreError::Io { verb: "open", path: self.root.path(path), source });
                }
            }
        }
        let folders: Vec<&File> = folders.iter().map(|folder| &**folder).collect();
        disk.sync_each(&folders, What::Folder, self.root)
    }

    /// Forgets a directory that is gone.
    pub(super) fn forget(&mut self, path: &str) {
        self.open.remove(path);
    }
}
