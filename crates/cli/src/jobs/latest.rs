//! The last thing that a job wrote, for those who watch many. It reads the ends of the logs and no more.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use tidewheel_core::view::jobs::latest_line;
use tidewheel_runner::job::LogFile;

use crate::view::logs::plain;

/// So much of the end of a log is read.
const TAIL: u64 = 16 * 1024;

/// Returns the last line of the log that was written last, behind the name of its stream; of two equally old ones, of
/// the complaints. It is fit to be shown.
pub(crate) fn latest(dir: &Path) -> Option<String> {
    let tail = |stream: &str| {
        let mut file = LogFile::read(&dir.join(format!("{stream}.log"))).ok()?;
        let metadata = file.metadata().ok()?;
        file.seek(SeekFrom::Start(metadata.len().saturating_sub(TAIL))).ok()?;
        let mut bytes = Vec::new();
        file.take(TAIL).read_to_end(&mut bytes).ok()?;
        let line = latest_line(&String::from_utf8_lossy(&bytes))?.to_owned();
        Some((metadata.modified().ok()?, format!("[{stream}] {}", plain(&line))))
    };
    let (stdout, stderr) = (tail("stdout"), tail("stderr"));
    match (stdout, stderr) {
        (Some(out), Some(err)) => Some(if err.0 >= out.0 { err.1 } else { out.1 }),
        (one, other) => one.or(other).map(|(_, line)| line),
    }
}
