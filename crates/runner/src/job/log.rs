//! The log of one stream of a job: written as it comes, and rotated before it is too long. What cannot be kept is
//! counted in the log itself.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use tidewheel_core::job::LogExtent;
use tidewheel_store::jobs::{Access, open_regular, split_data};

/// A log that a stream is written to. One earlier part of it is kept beside it, with `.1` behind its name.
///
/// Writing to it never fails and never waits for room: whoever writes into the stream must not have to wait because
/// a disk is full.
#[derive(Debug)]
pub struct LogFile {
    path: PathBuf,
    file: File,
    length: u64,
    limit: u64,
    /// What was dropped for good when it was turned over, since it was emptied the last time.
    dropped: u64,
    /// What was lost since the last word that was kept.
    lost: u64,
    error: Option<io::Error>,
}

impl LogFile {
    /// Opens a log to add to it.
    ///
    /// # Errors
    /// It cannot be opened, or is no ordinary file.
    pub fn open(path: &Path, limit: u64) -> io::Result<Self> {
        let file = open(path, false)?;
        let length = file.metadata()?.len();
        // Where that cannot be told, places in the log are wrong, and not a word of it.
        let dropped = Self::extent(path).map_or(0, |extent| extent.dropped);
        Ok(Self {
            path: path.to_owned(),
            file,
            length,
            limit: limit.max(LEAST),
            dropped,
            lost: 0,
            error: None,
        })
    }

    /// Opens a log to read it. A link is not followed, and nobody waits at a pipe.
    ///
    /// # Errors
    /// It cannot be opened, or is no ordinary file.
    pub fn read(path: &Path) -> io::Result<File> {
        ordinary(path, Access::Read)
    }

    /// Opens what there is of a log: the part that was put aside, the log itself, and where they stand in it.
    ///
    /// # Errors
    /// One of them is there and cannot be opened, or is no ordinary file.
    pub fn parts(path: &Path) -> io::Result<LogParts> {
        let found = |path: &Path| match Self::read(path) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        };
        loop {
            let now = found(path)?;
            let Some(aside) = found(&beside(path))? else {
                let length = length_at(now.as_ref())?;
                return Ok(LogParts {
                    aside: None,
                    now,
                    extent: LogExtent { length, ..LogExtent::default() },
                });
            };
            // Who turned it over in between moved the log that was opened first.
            if let Some(now) = &now
                && is_same(now, &aside)?
            {
                continue;
            }
            let extent = LogExtent {
                dropped: now.as_ref().map_or(0, dropped_before),
                aside: aside.metadata()?.len(),
                length: length_at(now.as_ref())?,
            };
            return Ok(LogParts { aside: Some(aside), now, extent });
        }
    }

    /// Returns how much of a log there is, and how much there was.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn extent(path: &Path) -> io::Result<LogExtent> {
        Self::parts(path).map(|parts| parts.extent)
    }

    /// Adds a piece.
    pub fn write(&mut self, mut piece: &[u8]) {
        if !self.tell_what_is_lost() {
            self.lose(piece.len());
            return;
        }
        while !piece.is_empty() {
            let room = self.limit.saturating_sub(self.length);
            let fits = usize::try_from(room).unwrap_or(usize::MAX).min(piece.len());
            // A line is not torn apart if it need not be.
            let whole = if fits == piece.len() { fits } else { end_of_line(&piece[..fits]) };
            let (now, later) = piece.split_at(whole);
            let missing = self.add(now);
            if missing > 0 {
                self.lose(missing + later.len());
                return;
            }
            if !later.is_empty() {
                self.rotate();
            }
            piece = later;
        }
    }

    /// Ends the log, and returns what first went wrong with it, with how much is missing if the log cannot say so.
    #[must_use]
    pub fn finish(mut self) -> Option<io::Error> {
        let is_told = self.tell_what_is_lost();
        let error = self.error?;
        if is_told {
            return Some(error);
        }
        let what = format!("{} bytes could not be written: {error}", self.lost);
        Some(io::Error::new(error.kind(), what))
    }

    /// Says in the log how much is missing at this place. Tells whether it could.
    fn tell_what_is_lost(&mut self) -> bool {
        if self.lost > 0 {
            let note = format!("[tidewheel] {} bytes of output could not be written here\n", self.lost);
            if self.add(note.as_bytes()) > 0 {
                return false;
            }
            self.lost = 0;
        }
        true
    }

    /// Writes a piece, and returns how many bytes of it could not be.
    fn add(&mut self, mut piece: &[u8]) -> usize {
        while !piece.is_empty() {
            match self.file.write(piece) {
                Ok(0) => {
                    self.remember(io::ErrorKind::WriteZero.into());
                    return piece.len();
                }
                Ok(written) => {
                    self.length = self.length.saturating_add(length_of(&piece[..written]));
                    piece = &piece[written..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.remember(error);
                    return piece.len();
                }
            }
        }
        0
    }

    fn lose(&mut self, bytes: usize) {
        self.lost = self.lost.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
    }

    /// Puts what is there aside, and begins anew. A log for which that does not work goes on where it is, longer than
    /// it should be, rather than losing a word.
    fn rotate(&mut self) {
        self.length = 0;
        let aside = beside(&self.path);
        let older = fs::symlink_metadata(&aside).map_or(0, |old| old.len());
        match fs::rename(&self.path, &aside).and_then(|()| open(&self.path, true)) {
            Ok(file) => self.file = file,
            Err(error) => return self.remember(error),
        }
        let name = aside.file_name().unwrap_or_default().display();
        self.dropped = self.dropped.saturating_add(older);
        let before = match self.dropped {
            0 => String::new(),
            dropped => format!("; {dropped}{DROPPED}"),
        };
        // A disk that is full has no room for this line either, and tells so at the next one.
        self.add(format!("{TURNED}{name}{before}\n").as_bytes());
    }

    fn remember(&mut self, error: io::Error) {
        self.error.get_or_insert(error);
    }
}

/// What there is of a log.
#[derive(Debug)]
pub struct LogParts {
    /// What was put aside.
    pub aside: Option<File>,
    /// What is written to.
    pub now: Option<File>,
    /// Where they stand in all that was ever written.
    pub extent: LogExtent,
}

/// The line that a log begins with that was turned over.
const TURNED: &str = "[tidewheel] the output before this line is in ";

/// How that line ends if something is gone for good.
const DROPPED: &str = " bytes before that were dropped";

/// Returns how many bytes were dropped before the part that was put aside, as the first line of the log says.
fn dropped_before(log: &File) -> u64 {
    // Names and numbers are shorter.
    let mut line = [0; 512];
    let Ok(read) = log.read_at(&mut line, 0) else { return 0 };
    let line = String::from_utf8_lossy(&line[..read]);
    let first = line.split('\n').next().and_then(|first| first.strip_prefix(TURNED));
    let told = first.and_then(|rest| rest.split_once("; ")).and_then(|(_, rest)| rest.strip_suffix(DROPPED));
    told.and_then(|bytes| bytes.parse().ok()).unwrap_or(0)
}

fn length_at(file: Option<&File>) -> io::Result<u64> {
    file.map_or(Ok(0), |file| file.metadata().map(|file| file.len()))
}

/// Tells whether two open files are one.
fn is_same(one: &File, other: &File) -> io::Result<bool> {
    let (one, other) = (one.metadata()?, other.metadata()?);
    Ok((one.dev(), one.ino()) == (other.dev(), other.ino()))
}

/// A log has room for so much at least, or it would hold nothing but notes about what it does not hold.
const LEAST: u64 = 4 * 1_024;

/// Returns where the earlier part of a log is.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    PathBuf::from(name)
}

fn open(path: &Path, is_new: bool) -> io::Result<File> {
    ordinary(path, if is_new { Access::NewAppend } else { Access::Append })
}

/// Opens a log. A job may have put a link or a pipe in its place, or a link in that of its directory.
fn ordinary(path: &Path, access: Access) -> io::Result<File> {
    let (directory, rest) = split_data(path);
    open_regular(&directory, &rest, access)
}

/// Returns how much of a text is whole lines; all of it if it has no end of a line.
fn end_of_line(text: &[u8]) -> usize {
    text.iter().rposition(|byte| *byte == b'\n').map_or(text.len(), |at| at + 1)
}

fn length_of(piece: &[u8]) -> u64 {
    u64::try_from(piece.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_full_disk_has_no_room_for_is_counted_where_it_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stdout.log");
        let mut log = LogFile::open(&path, 1 << 20).unwrap();
        log.write(b"one\n");
        let disk = std::mem::replace(&mut log.file, File::options().write(true).open("/dev/full").unwrap());
        log.write(b"two\n");
        log.write(b"three\n");
        log.file = disk;
        log.write(b"four\n");
        log.lost = 7;
        assert_eq!(log.finish().unwrap().kind(), io::ErrorKind::StorageFull);
        let note = |bytes: u64| format!("[tidewheel] {bytes} bytes of output could not be written here\n");
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("one\n{}four\n{}", note(10), note(7)));
    }

    #[test]
    fn a_log_without_room_for_a_word_leaves_it_to_others_to_say_how_much_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = LogFile::open(&folder.path().join("stdout.log"), 1 << 20).unwrap();
        log.file = File::options().write(true).open("/dev/full").unwrap();
        log.write(b"one\n");
        log.write(b"two\n");
        let error = log.finish().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(error.to_string().starts_with("8 bytes could not be written: No space"), "{error}");
    }

    #[test]
    fn a_log_that_cannot_be_rotated_loses_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stdout.log");
        let mut log = LogFile::open(&path, LEAST).unwrap();
        // A directory that is not empty is in its way.
        fs::create_dir_all(folder.path().join("stdout.log.1/full")).unwrap();
        let line = [b"x".repeat(99), b"\n".to_vec()].concat();
        for _ in 0..100 {
            log.write(&line);
        }
        assert_eq!(fs::read(&path).unwrap(), line.repeat(100));
        assert!(log.finish().is_some());
    }

    #[test]
    fn a_second_rotation_tells_what_it_drops() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stdout.log");
        let mut log = LogFile::open(&path, LEAST).unwrap();
        let line = [b"x".repeat(1_023), b"\n".to_vec()].concat();
        for _ in 0..6 {
            log.write(&line);
        }
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            text.starts_with("[tidewheel] the output before this line is in stdout.log.1\nxxx"),
            "{text}"
        );
        for _ in 0..4 {
            log.write(&line);
        }
        let text = fs::read_to_string(&path).unwrap();
        let note = "[tidewheel] the output before this line is in stdout.log.1; 4096 bytes before that were dropped\n";
        assert!(text.starts_with(note), "{text}");
    }

    #[test]
    fn places_stay_right_however_often_a_log_is_turned_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stdout.log");
        let mut end = 0;
        for number in 0..40_u64 {
            // Each attempt opens the log anew, and knows what the one before it has dropped.
            let mut log = LogFile::open(&path, LEAST).unwrap();
            let before = LogFile::extent(&path).unwrap();
            assert!(before.end() >= end, "{number}: {before:?}");
            log.write(&[b"x".repeat(700), b"\n".to_vec()].concat());
            end = LogFile::extent(&path).unwrap().end();
            assert!(end >= before.end() + 701, "{number}");
        }
        let extent = LogFile::extent(&path).unwrap();
        assert!(extent.dropped >= 5 * LEAST && extent.aside <= LEAST && extent.length <= LEAST, "{extent:?}");
        assert_eq!(extent.end(), end);
    }
}
