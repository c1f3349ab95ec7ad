//! Whether the files of a database that is open are still where they were. SQLite goes on with the open files when
//! their names lead elsewhere, and the next process that opens the name would write beside it.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, StatxFlags};

use crate::sqlite::fault::Fault;

/// The files of an open database, and which ones they are.
#[derive(Debug)]
pub(crate) struct InPlace {
    database: Known,
    /// The log and the index of the log. SQLite makes them with the first write, and they stay while it is open.
    beside: [Known; 2],
}

#[derive(Debug)]
struct Known {
    path: PathBuf,
    /// The device and the number of the file; not known before it is there.
    file: Option<(u64, u64)>,
}

impl InPlace {
    /// Remembers the files of a database that was just opened.
    pub(crate) fn new(path: &Path) -> io::Result<Self> {
        let database = Known { path: path.to_owned(), file: Some(identity(path)?) };
        let beside = ["-wal", "-shm"].map(|suffix| {
            let mut name = path.as_os_str().to_owned();
            name.push(suffix);
            Known { path: name.into(), file: None }
        });
        Ok(Self { database, beside })
    }

    /// Fails if one of the files is no longer where it was.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        self.database.check()?;
        self.beside.iter().try_for_each(Known::check)
    }

    /// Checks the files after a commit, when all of them are there, and remembers those that are new.
    pub(crate) fn check_after_commit(&mut self) -> Result<(), Fault> {
        self.database.check()?;
        for known in &mut self.beside {
            if known.file.is_none() {
                known.file = identity(&known.path).ok();
            }
            known.check()?;
        }
        Ok(())
    }
}

impl Known {
    fn check(&self) -> Result<(), Fault> {
        let Some(file) = self.file else { return Ok(()) };
        let path = self.path.display();
        match identity(&self.path) {
            Ok(found) if found == file => Ok(()),
            Ok(_) => Err(Fault::moved(format!("another file was put in the place of `{path}`"))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(Fault::moved(format!("`{path}` was renamed or deleted")))
            }
            // What cannot be looked at may still be there; SQLite has it open.
            Err(_) => Ok(()),
        }
    }
}

/// Returns the device and the number of a file, and asks for nothing else: on a kernel with fine timestamps, a look at
/// the times of a file makes the next write to it change them, and the next sync has one more block to write.
fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let found = rustix::fs::statx(rustix::fs::CWD, path, AtFlags::empty(), StatxFlags::INO)?;
    Ok((rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor), found.stx_ino))
}
