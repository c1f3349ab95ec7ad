//! A mark that the processes of a job carry beside their environment: an open file that programs hand on to what they
//! start. `env -i` and `setsid` do not take it away; only a program that closes files that it did not open does.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::SystemTime;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{Errno, FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::process::Pid;

/// The name of the file, as the system lists it.
const NAME: &str = "tidewheel-job";
/// Shells use small numbers for their own files, and scripts name files up to nine: the mark has a higher one where the
/// process may have so many files open.
const WANTED: i32 = 200;
/// No mark takes the place of one of the three streams.
const LOWEST: i32 = 3;
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
        // To the nanosecond: the system itself notes it by its ticks, in which two marks may be made.
        file.set_modified(SystemTime::now())?;
        let mut from = WANTED;
        let held = loop {
            match fcntl_dupfd_cloexec(&file, from) {
                Ok(held) => break held,
                Err(Errno::INVAL | Errno::MFILE) if from > LOWEST => from = LOWEST.max(from / 2),
                Err(error) => return Err(error.into()),
            }
        };
        fcntl_setfd(&held, FdFlags::empty())?;
        Ok(Self(held))
    }
}

/// Returns the token of the innermost mark that a process carries: a job that was started from within another one has
/// the mark of that one, too, and its own was made later. The number says nothing where the limit of open files changed.
pub(super) fn read(process: Pid) -> Option<Vec<u8>> {
    let folder = format!("/proc/{process}/fd");
    let target = format!("/memfd:{NAME} (deleted)");
    let files = fs::read_dir(&folder).ok()?.flatten().filter_map(|file| {
        if fs::read_link(file.path()).ok()? != Path::new(&target) {
            return None;
        }
        let number: i32 = file.file_name().to_str()?.parse().ok()?;
        let made = fs::metadata(file.path()).ok()?;
        Some((made.mtime(), made.mtime_nsec(), number))
    });
    let mut token = Vec::new();
    let (_, _, innermost) = files.max()?;
    let file = File::open(format!("{folder}/{innermost}")).ok()?;
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

    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    use super::*;

    /// With so few files there was no mark at all.
    #[test]
    fn a_mark_is_made_where_few_files_may_be_open_and_the_last_one_counts() {
        // The limit and the marks are those of a whole process, so that another one has them.
        let test = "job::mark::tests::makes_marks_for_another_test";
        let mut command = Command::new(std::env::current_exe().unwrap());
        let told = command.args(["--exact", test, "--ignored"]).output().unwrap();
        let words = String::from_utf8_lossy(&told.stdout);
        assert!(told.status.success() && words.contains("1 passed"), "{words}");
    }

    #[test]
    #[ignore = "another test starts it in another process"]
    fn makes_marks_for_another_test() {
        let _outer = Mark::new(b"outer").unwrap();
        setrlimit(Resource::Nofile, Rlimit { current: Some(40), ..getrlimit(Resource::Nofile) }).unwrap();
        let _inner = Mark::new(b"inner").unwrap();
        let mut child = Command::new("sh").args(["-c", "read x"]).stdin(Stdio::piped()).spawn().unwrap();
        let mark = read(Pid::from_child(&child));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(mark.as_deref(), Some(&b"inner"[..]));
    }

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
