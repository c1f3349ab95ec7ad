//! A file system in memory: it knows what was synced, and makes up what a power failure may leave of the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

use crate::Dice;

/// Something that happened to a file system. Paths are absolute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiskOp {
    /// A folder was made.
    MakeFolder(String),
    /// A file was opened, and made where it was missing.
    Create(String),
    /// Bytes were written.
    Write {
        /// To which file.
        path: String,
        /// At which place.
        offset: u64,
        /// What.
        data: Vec<u8>,
    },
    /// A file got this length.
    SetLen(String, u64),
    /// A file or folder got another name, in place of what had it.
    Rename(String, String),
    /// A file or an empty folder was removed.
    Remove(String),
    /// A file, or the names in a folder, were synced.
    Sync(String),
    /// Everything was synced.
    SyncAll,
    /// The process printed something.
    Said(String),
}

/// What happened to one file system, in order, and what each change is about.
#[derive(Debug)]
pub struct DiskModel {
    root: String,
    ops: Vec<DiskOp>,
    changes: Vec<Change>,
    /// As the process sees it: what each folder has, by the number of its node.
    folders: BTreeMap<usize, BTreeMap<String, usize>>,
    lengths: BTreeMap<usize, u64>,
    nodes: usize,
}

/// An operation as it concerns nodes, which keep their number under each name.
#[derive(Clone, Debug)]
enum Change {
    /// The name in the folder leads to the node from now on, and another name of it no longer.
    Link {
        folder: usize,
        name: String,
        node: usize,
        from: Option<(usize, String)>,
        is_folder: bool,
    },
    Unlink {
        folder: usize,
        name: String,
    },
    Write {
        node: usize,
        offset: u64,
        data: Vec<u8>,
    },
    SetLen {
        node: usize,
        length: u64,
    },
    Sync {
        node: usize,
    },
    SyncAll,
    Nothing,
}

/// The node of the folder that all is in; it was there before.
const ROOT: usize = 0;

impl DiskModel {
    /// Returns a file system with a folder and these folders in it, which were there before.
    #[must_use]
    pub fn new(root: &str, existing: &[&str]) -> Self {
        let folders = BTreeMap::from([(ROOT, BTreeMap::new())]);
        let root = root.trim_end_matches('/').to_owned();
        let mut disk =
            Self { root, ops: Vec::new(), changes: Vec::new(), folders, lengths: BTreeMap::new(), nodes: 1 };
        for folder in existing {
            disk.record(DiskOp::MakeFolder(format!("{}/{folder}", disk.root)));
        }
        disk.record(DiskOp::SyncAll);
        disk
    }

    /// Returns what happened, in order.
    #[must_use]
    pub fn ops(&self) -> &[DiskOp] {
        &self.ops
    }

    /// Returns whether a path is the folder or beneath it.
    pub(super) fn has(&self, path: &str) -> bool {
        path.strip_prefix(&self.root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Returns the node at a path.
    pub(super) fn file_at(&self, path: &str) -> Option<usize> {
        let (folder, name) = self.place_of(path)?;
        self.folders.get(&folder)?.get(&name).copied()
    }

    /// Returns how long a file is for the process.
    pub(super) fn len_of(&self, node: usize) -> u64 {
        self.lengths.get(&node).copied().unwrap_or(0)
    }

    /// Notes what happened. What is not beneath the folder is left out.
    pub(super) fn record(&mut self, op: DiskOp) {
        let change = match &op {
            DiskOp::MakeFolder(path) => match self.node_at(path) {
                Some(_) => return,
                None => self.link_new(path, true),
            },
            DiskOp::Create(path) => match self.file_at(path) {
                Some(_) => return,
                None => self.link_new(path, false),
            },
            DiskOp::Write { path, offset, data } => self.file_at(path).map(|node| {
                let length = self.lengths.entry(node).or_default();
                *length = (*length).max(offset + data.len() as u64);
                Change::Write { node, offset: *offset, data: data.clone() }
            }),
            DiskOp::SetLen(path, length) => self.file_at(path).map(|node| {
                self.lengths.insert(node, *length);
                Change::SetLen { node, length: *length }
            }),
            DiskOp::Rename(from, to) => self.rename(from, to),
            DiskOp::Remove(path) => self.place_of(path).map(|(folder, name)| {
                self.folders.entry(folder).or_default().remove(&name);
                Change::Unlink { folder, name }
            }),
            DiskOp::Sync(path) => self.node_at(path).map(|node| Change::Sync { node }),
            DiskOp::SyncAll => Some(Change::SyncAll),
            DiskOp::Said(_) => Some(Change::Nothing),
        };
        if let Some(change) = change {
            self.ops.push(op);
            self.changes.push(change);
        }
    }

    fn link_new(&mut self, path: &str, is_folder: bool) -> Option<Change> {
        let (folder, name) = self.place_of(path)?;
        let node = self.nodes;
        self.nodes += 1;
        if is_folder {
            self.folders.insert(node, BTreeMap::new());
        }
        self.folders.entry(folder).or_default().insert(name.clone(), node);
        Some(Change::Link { folder, name, node, from: None, is_folder })
    }

    fn rename(&mut self, from: &str, to: &str) -> Option<Change> {
        let ((old, old_name), (folder, name)) = (self.place_of(from)?, self.place_of(to)?);
        let node = self.folders.get_mut(&old)?.remove(&old_name)?;
        self.folders.entry(folder).or_default().insert(name.clone(), node);
        let is_folder = self.folders.contains_key(&node);
        Some(Change::Link { folder, name, node, from: Some((old, old_name)), is_folder })
    }

    /// Returns the node of a file or folder.
    fn node_at(&self, path: &str) -> Option<usize> {
        if path.trim_end_matches('/') == self.root { Some(ROOT) } else { self.file_at(path) }
    }

    /// Returns the folder of a path and the name in it.
    fn place_of(&self, path: &str) -> Option<(usize, String)> {
        if !self.has(path) {
            return None;
        }
        let mut folder = ROOT;
        let mut parts = path[self.root.len()..].split('/').filter(|part| !part.is_empty());
        let mut name = parts.next()?;
        for next in parts {
            folder = *self.folders.get(&folder)?.get(name)?;
            name = next;
        }
        Some((folder, name.to_owned()))
    }

    /// Makes up what a power failure after the first `count` operations may leave, and writes it to a folder, which is
    /// then what the folder of the model was.
    ///
    /// What was synced is there. Of the rest, each write is kept, dropped or torn, and each name that was made, changed
    /// or removed is so or is not, independently of what came before it.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn write_state(&self, count: usize, dice: &mut Dice, to: &Path) -> io::Result<()> {
        let changes = &self.changes[..count.min(self.changes.len())];
        let synced = synced(changes);
        let kept_of_ten = [0, 3, 5, 9, 10][dice.below(5)];
        let mut folders: BTreeMap<usize, BTreeMap<String, usize>> = BTreeMap::from([(ROOT, BTreeMap::new())]);
        let mut files: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
        for (index, change) in changes.iter().enumerate() {
            let is_synced = synced[index];
            let is_kept = |dice: &mut Dice| dice.below(10) < kept_of_ten;
            match change {
                Change::Link { folder, name, node, from, is_folder } => {
                    if *is_folder {
                        folders.entry(*node).or_default();
                    } else {
                        files.entry(*node).or_default();
                    }
                    if is_synced || is_kept(dice) {
                        if let Some((old, old_name)) = from {
                            let names = folders.entry(*old).or_default();
                            if names.get(old_name) == Some(node) {
                                names.remove(old_name);
                            }
                        }
                        folders.entry(*folder).or_default().insert(name.clone(), *node);
                    }
                }
                Change::Unlink { folder, name } => {
                    if is_synced || is_kept(dice) {
                        folders.entry(*folder).or_default().remove(name);
                    }
                }
                Change::Write { node, offset, data } => {
                    let part = if is_synced || is_kept(dice) {
                        data.len()
                    } else if dice.chance(50) {
                        0
                    } else {
                        dice.below(data.len() + 1)
                    };
                    let file = files.entry(*node).or_default();
                    let begin = usize::try_from(*offset).unwrap_or(usize::MAX);
                    // The length may be there without what was written.
                    let end =
                        if part < data.len() && dice.chance(50) { begin + data.len() } else { begin + part };
                    if part > 0 || end > file.len() && dice.chance(50) {
                        if file.len() < end {
                            file.resize(end, 0);
                        }
                        file[begin..begin + part].copy_from_slice(&data[..part]);
                    }
                }
                Change::SetLen { node, length } => {
                    if is_synced || is_kept(dice) {
                        files.entry(*node).or_default().resize(usize::try_from(*length).unwrap_or(0), 0);
                    }
                }
                Change::Sync { .. } | Change::SyncAll | Change::Nothing => {}
            }
        }
        write_folder(ROOT, &folders, &files, to)
    }
}

/// Returns for each change whether a later one synced it. Names are synced with their folder.
fn synced(changes: &[Change]) -> Vec<bool> {
    let mut nodes: BTreeSet<usize> = BTreeSet::new();
    let mut is_all = false;
    let mut synced: Vec<bool> = changes
        .iter()
        .rev()
        .map(|change| match change {
            Change::SyncAll => {
                is_all = true;
                true
            }
            Change::Sync { node } => {
                nodes.insert(*node);
                true
            }
            Change::Link { folder, from, .. } => {
                is_all || nodes.contains(folder) || from.as_ref().is_some_and(|(old, _)| nodes.contains(old))
            }
            Change::Unlink { folder, .. } => is_all || nodes.contains(folder),
            Change::Write { node, .. } | Change::SetLen { node, .. } => is_all || nodes.contains(node),
            Change::Nothing => true,
        })
        .collect();
    synced.reverse();
    synced
}

fn write_folder(
    node: usize,
    folders: &BTreeMap<usize, BTreeMap<String, usize>>,
    files: &BTreeMap<usize, Vec<u8>>,
    to: &Path,
) -> io::Result<()> {
    fs::create_dir(to)?;
    for (name, node) in folders.get(&node).into_iter().flatten() {
        let path = to.join(name);
        match files.get(node) {
            Some(bytes) => fs::write(path, bytes)?,
            None => write_folder(*node, folders, files, &path)?,
        }
    }
    Ok(())
}
