//! Takes away what is left of the last time, so that a job starts again from nothing. Its record is not touched.

use std::fs::File;
use std::io;

use rustix::fs::{AtFlags, OFlags, openat, unlinkat};
use rustix::io::Errno;

use super::beneath::{self, FILE_MODE};
use super::folders::Folders;
use super::layout;

/// Empties the logs, and removes those before them, the outcome, the patches and the wish to cancel.
pub(super) fn rewind(folders: &mut Folders<'_>, folder: &str) -> io::Result<()> {
    const FLAGS: OFlags =
        OFlags::WRONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);
    let open = folders.get(folder)?;
    for log in layout::LOGS {
        match openat(&*open, log, FLAGS, FILE_MODE) {
            Ok(fd) => File::from(fd).set_len(0)?,
            Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
    }
    for (name, _) in beneath::names(&*open)? {
        let Ok(name) = std::str::from_utf8(&name) else { continue };
        let is_old_log =
            layout::LOGS.iter().any(|log| name.strip_prefix(log).is_some_and(|rest| rest.starts_with('.')));
        if is_old_log || layout::LEFT.contains(&name) {
            match unlinkat(&*open, name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    folders.change(folder);
    Ok(())
}
