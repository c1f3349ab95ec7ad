//! A mark that the processes of a job carry beside their environment: an open file that programs hand on to what they
//! start. `env -i` and `setsid` do not take it away; only a program that closes files that it did not open does.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::process::Pid;

/// The name of the file, as the system lists it.
const NAME: &str = "tidewheel-job";
/// Shells use small numbers for their own files, and scripts name files up to nine.
const LOWEST: i32 = 200;
/// No token is longer: a job id, a number and a path.
const LONGEST: u64 = 8 * 1024;

/// The mark of an attempt. Whatever this process starts while it is held carries it.
#[derive(Debug)]
pub(super) struct Mark(#[expect(dead_code, reason = "it is held, and closed with this value")] OwnedFd);

impl Mark {
    /// Makes a mark with the token of an attempt.
    ///
    /// # Errors
    /// The system has no room for another open file.
    pub(super) fn new(token: &[u8]) -> io::Result<Self> {
        let mut file = File::from(memfd_create(NAME, MemfdFlags::CLOEXEC)?);
        file.write_all(token)?;
        let held = fcntl_dupfd_cloexec(&file, LOWEST)?;
        fcntl_setfd(&held, FdFlags::empty())?;
        Ok(Self(held))
    }
}

/// Returns the token of the innermost mark that a process carries: a job that was started from within another one has
/// the mark of that one, too, and its own has the higher number.
pub(super) fn read(process: Pid) -> Option<Vec<u8>> {
    let folder = format!("/proc/{process}/fd");
    let target = format!("/memfd:{NAME} (deleted)");
    let files = fs::read_dir(&folder).ok()?.flatten().filter_map(|file| {
        let number: i32 = file.file_name().to_str()?.parse().ok()?;
        let is_mark = number >= LOWEST && fs::read_link(file.path()).ok()? == Path::new(&target);
        is_mark.then_some(number)
    });
    let mut token = Vec::new();
    let file = File::open(format!("{folder}/{}", files.max()?)).ok()?;
    file.take(LONGEST).read_to_end(&mut token).ok()?;
    Some(token)
}

/// Returns the token of the job that this process was started by, also where its environment was emptied.
#[must_use]
pub fn carried_token() -> Option<OsString> {
    read(rustix::process::getpid()).map(OsString::from_vec)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn what_is_started_carries_the_innermost_mark_whatever_its_environment() {
        let _outer = Mark::new(b"outer").unwrap();
        let inner = Mark::new(b"inner").unwrap();
        let start = || {
            let mut command = Command::new("env");
            command.args(["-i", "/bin/sh", "-c", "read x"]).stdin(Stdio::piped()).spawn().unwrap()
        };
        let mut child = start();
        assert_eq!(read(Pid::from_child(&child)).as_deref(), Some(&b"inner"[..]));
        drop(child.stdin.take());
        child.wait().unwrap();
        drop(inner);
        let mut child = start();
        assert_eq!(read(Pid::from_child(&child)).as_deref(), Some(&b"outer"[..]));
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
