//! Starts supervisors and wakers so that they outlive whoever starts them, and lets them find their place. It knows
//! nothing of what they do.

use std::fs::{File, TryLockError};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use rustix::process::{Pid, getpid, set_child_subreaper, setpgid, setsid};
use tidewheel_core::job::JobId;
use tidewheel_store::jobs::{Access, open_regular, split_data};

use super::identity::{DETACHED, OF_A_JOB};
use crate::procfs;

/// The command of a supervisor.
pub(super) const SUPERVISE: &str = "__workflow-node";
/// The command of a waker.
pub(super) const WAKE: &str = "daemon";

/// Starts the supervisor of a job and hands it the run lock of the job, which is never free in between: the lock is
/// that of the open file, and the file is the stdin of the supervisor. Returns its number.
///
/// # Errors
/// The system did not start it. The lock is free again.
pub fn launch(
    binary: &Path,
    id: &JobId,
    root: &Path,
    lock: File,
    data: &Path,
    launched: &Launched,
) -> io::Result<u32> {
    let log = supervisor_log(data, id)?;
    let mut command = detached(binary, root);
    command.args([SUPERVISE, "--job-id", id.as_str()]);
    start(tell_where(&mut command, root, data).stdin(lock).stderr(log), launched)
}

/// Starts a process that looks again when a time has come, and ends when none is to come. Returns its number.
///
/// # Errors
/// The system did not start it.
pub fn launch_waker(binary: &Path, root: &Path, data: &Path, launched: &Launched) -> io::Result<u32> {
    let mut command = detached(binary, root);
    command.args([WAKE, "--until-idle"]);
    start(tell_where(&mut command, root, data).stdin(Stdio::null()).stderr(Stdio::null()), launched)
}

/// The processes that this one started and that nobody has taken away since they died.
#[derive(Debug, Default)]
pub struct Launched(Mutex<Children>);

#[derive(Debug, Default)]
struct Children {
    list: Vec<Child>,
    /// How many there were after the dead were last taken away.
    left: usize,
}

/// So many more than before may be dead: who asks after each of them at each start asks too often.
const DEAD_AT_MOST: usize = 64;

impl Launched {
    /// Takes the dead away, without waiting for the others. Whoever stays for long does so now and then.
    pub fn reap(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).reap();
    }

    fn add(&self, child: Child) {
        let mut children = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if children.list.len() >= 2 * children.left + DEAD_AT_MOST {
            children.reap();
        }
        children.list.push(child);
    }
}

impl Children {
    fn reap(&mut self) {
        // One that cannot be asked about was taken away by somebody else.
        self.list.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        self.left = self.list.len();
    }
}

/// Lets a supervisor belong to itself: no terminal ends it, and whatever its job leaves behind comes to it.
///
/// What the system refuses of this, it goes without.
pub fn detach() {
    // The leader of a group cannot begin a session, so that it joins another group first: that of who started it,
    // or, if that one is gone, that of the session. A group outside of our container has no number here.
    let me = procfs::of(getpid());
    if let Some(me) = me.filter(|me| me.group == me.id.as_raw_pid() && me.session != me.group) {
        let parent = Pid::from_raw(me.parent).and_then(procfs::of);
        let groups = parent.map(|parent| parent.group).into_iter().chain([me.session]);
        for group in groups.filter_map(Pid::from_raw) {
            if setpgid(None, Some(group)).is_ok() {
                break;
            }
        }
    }
    if setsid().is_err() {
        // Then at least a group of its own.
        let _refused = setpgid(None, None);
    }
    let _refused = set_child_subreaper(Some(getpid()));
}

/// Returns the run lock that this process was handed; `None` if its stdin is not that file, or does not hold the lock.
#[must_use]
pub fn handed_over(lock: &Path) -> Option<File> {
    held(lock).ok().flatten()
}

fn held(lock: &Path) -> io::Result<Option<File>> {
    let handed = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let (directory, rest) = split_data(lock);
    let opened = open_regular(&directory, &rest, Access::LockThere)?;
    let same = |one: std::fs::Metadata, other: std::fs::Metadata| {
        one.is_file() && (one.dev(), one.ino()) == (other.dev(), other.ino())
    };
    if !same(handed.metadata()?, opened.metadata()?) {
        return Ok(None);
    }
    match opened.try_lock() {
        // Nobody holds it, so that it was not handed over; it is free again when the file is closed.
        Ok(()) => Ok(None),
        // Somebody does. Who holds a lock gets it once more.
        Err(TryLockError::WouldBlock) => Ok(handed.try_lock().is_ok().then_some(handed)),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Returns a command in a group of its own, which Ctrl-C at the terminal does not reach, and without the variables of
/// the job that it may be started by.
fn detached(binary: &Path, root: &Path) -> Command {
    let mut command = Command::new(binary);
    command.current_dir(root).process_group(0).stdout(Stdio::null()).env(DETACHED, "1");
    for name in OF_A_JOB {
        command.env_remove(name);
    }
    command
}

/// Names the data directory where it is not the one that is found from the root.
fn tell_where<'a>(command: &'a mut Command, root: &Path, data: &Path) -> &'a mut Command {
    if data != root.join(".tidewheel") {
        command.arg("--dir").arg(data);
    }
    command
}

/// Opens the file for what a supervisor has to say: it says something only when it breaks.
fn supervisor_log(data: &Path, id: &JobId) -> io::Result<File> {
    let path: PathBuf = ["jobs", id.as_str(), "supervisor.log"].iter().collect();
    let fail = |error: io::Error| {
        let what = format!("cannot open {}: {error}", data.join(&path).display());
        io::Error::new(error.kind(), what)
    };
    open_regular(data, &path, Access::Append).map_err(fail)
}

fn start(command: &mut Command, launched: &Launched) -> io::Result<u32> {
    let child = command.spawn()?;
    let id = child.id();
    launched.add(child);
    Ok(id)
}
