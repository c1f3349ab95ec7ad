//! Takes away what is left of the last time, so that a job starts again from nothing. Its record is not touched.

use std::fs::File;
use std::io;

use rustix::fs::{AtFlags, FileType, OFlags, unlinkat};
use rustix::io::Errno;

use super::beneath::{self, regular};
use super::folders::Folders;
use super::layout;
use crate::jobs::JobStoreError;

/// Empties the logs, and removes those before them, the outcome, the patches and the wish to cancel.
pub(super) fn rewind(folders: &mut Folders<'_>, folder: &str) -> Result<(), JobStoreError> {
    for log in layout::LOGS {
        if let Some(file) = open(folders, folder, log)? {
            file.set_len(0).map_err(|source| failed(folders, "write", folder, log, source))?;
        }
    }
    for (name, _) in left(folders, folder)? {
        let open = folders.get(folder).map_err(|source| failed(folders, "open", folder, "", source))?;
        match unlinkat(&*open, name.as_str(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(failed(folders, "remove", folder, &name, error.into())),
        }
    }
    folders.change(folder);
    Ok(())
}

/// Fails where something is in the way of a rewind, and names it. Changes nothing.
pub(super) fn check(folders: &mut Folders<'_>, folder: &str) -> Result<(), JobStoreError> {
    // That it is rewound is among its events.
    for name in layout::LOGS.into_iter().chain([layout::EVENTS]) {
        open(folders, folder, name)?;
    }
    match left(folders, folder)?.into_iter().find(|(_, kind)| *kind == FileType::Directory) {
        Some((name, _)) => Err(failed(folders, "remove", folder, &name, Errno::ISDIR.into())),
        None => Ok(()),
    }
}

/// Opens a file to write; `None` if there is none.
fn open(folders: &mut Folders<'_>, folder: &str, name: &str) -> Result<Option<File>, JobStoreError> {
    let opened = folders.get(folder).and_then(|open| match regular(&*open, name, OFlags::WRONLY) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    });
    opened.map_err(|source| failed(folders, "write", folder, name, source))
}

/// Returns what else is left of the last time, and what it is.
fn left(folders: &mut Folders<'_>, folder: &str) -> Result<Vec<(String, FileType)>, JobStoreError> {
    let names = folders.get(folder).and_then(|open| beneath::names(&*open));
    let names = names.map_err(|source| failed(folders, "read", folder, "", source))?;
    let names = names.into_iter().filter_map(|(name, kind)| Some((String::from_utf8(name).ok()?, kind)));
    let is_old_log = |name: &str| {
        layout::LOGS.iter().any(|log| name.strip_prefix(log).is_some_and(|rest| rest.starts_with('.')))
    };
    Ok(names.filter(|(name, _)| is_old_log(name) || layout::LEFT.contains(&name.as_str())).collect())
}

fn failed(
    folders: &Folders<'_>,
    verb: &'static str,
    folder: &str,
    name: &str,
    source: io::Error,
) -> JobStoreError {
    let path = if name.is_empty() { folder.to_owned() } else { format!("{folder}/{name}") };
    JobStoreError::Io { verb, path: folders.root.path(&path), source }
}
