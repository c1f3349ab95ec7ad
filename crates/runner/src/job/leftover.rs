//! What a job without a supervisor left running: found by what only its processes have, and ended. A number that the
//! system gave to somebody else since is never signalled.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, getpid, kill_process_group};
use tidewheel_core::job::{JobId, Record};

use super::family::{self, Family};
use super::identity::{self, TOKEN};
use crate::procfs::{self, Process};

/// What a job is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Please end: `SIGTERM`.
    Terminate,
    /// Nobody asks: `SIGKILL`.
    Kill,
}

/// Whoever looks for what others left has the turn of the scheduler, and nobody else has it meanwhile.
const GRACE: Duration = Duration::from_millis(500);
/// So many looks in a row that find nobody are believed while others start processes all the time. One of three misses
/// the worst that we could think of.
const MANY_LOOKS: u32 = 12;

/// Ends whatever a job left running, and comes back when nothing of it is there any more. Only who holds the run lock
/// of the job may do so.
///
/// # Errors
/// The system does not tell which processes there are, or does not let some of them be ended.
pub fn end(record: &Record, data: &Path) -> io::Result<()> {
    let mut left =
        Left { job: &record.id, data, leader: recorded(record), known: BTreeMap::new(), newest: None };
    family::end(&mut left, GRACE, &|_| false, &mut wait_for_all)
}

/// Sends the recorded process of a job, and all of its group, a signal. That it is gone is no error.
///
/// # Errors
/// The system did not let any of them have it.
pub fn signal(record: &Record, signal: Signal) -> io::Result<()> {
    let Some(leader) = recorded(record).filter(Leader::is_there) else { return Ok(()) };
    let number = match signal {
        Signal::Terminate => rustix::process::Signal::TERM,
        Signal::Kill => rustix::process::Signal::KILL,
    };
    // A number that is free again comes last in the order in which numbers are given, so that it is still that of
    // the group just seen.
    match kill_process_group(leader.id, number) {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The process that the record of a job tells of.
struct Leader {
    id: Pid,
    start_time: u64,
}

impl Leader {
    /// Tells whether the process of this number is still the one that was recorded, and leads its group.
    fn is_there(&self) -> bool {
        let key = (self.id.as_raw_pid(), self.start_time);
        procfs::of(self.id).is_some_and(|now| now.key() == key && now.group == key.0)
    }
}

fn recorded(record: &Record) -> Option<Leader> {
    let id = Pid::from_raw(i32::try_from(record.pid?).ok()?)?;
    Some(Leader { id, start_time: record.process_start_time? })
}

/// What is left of a job: its recorded group, whatever has its token, and what they started.
struct Left<'a> {
    job: &'a JobId,
    data: &'a Path,
    leader: Option<Leader>,
    /// Those that the current look has found, and when they started.
    known: BTreeMap<i32, u64>,
    /// The process that was started last when it began.
    newest: Option<i32>,
}

impl Family for Left<'_> {
    fn begin(&mut self) {
        self.newest = procfs::newest();
        self.known.clear();
    }

    fn has(&mut self, process: &Process) -> bool {
        // Who asks may itself have been started by the job, and cannot end itself first.
        if process.id == getpid() {
            return false;
        }
        let is_in_group = || {
            let leader = self.leader.as_ref().filter(|leader| leader.id.as_raw_pid() == process.group);
            leader.is_some_and(Leader::is_there)
        };
        let has_token = || {
            procfs::has_variable(process.id, TOKEN, |token| identity::is_token_of(token, self.job, self.data))
        };
        let is_one = is_in_group() || family::is_child_of(&self.known, process) || has_token();
        if is_one {
            self.known.insert(process.id.as_raw_pid(), process.start_time);
        }
        is_one
    }

    fn is_gone(&mut self) -> bool {
        false
    }

    fn is_gone_after(&mut self, empty_looks: u32) -> bool {
        // Who starts another and dies at once may do so behind the back of a look. Where nobody was started meanwhile
        // nobody did, and hardly behind that of so many.
        let is_quiet = self.newest.is_some() && procfs::newest() == self.newest;
        is_quiet || empty_looks >= MANY_LOOKS
    }
}

/// Waits until all of these have ended, or until this instant.
fn wait_for_all(fds: &[OwnedFd], until: Instant) -> io::Result<()> {
    let mut fds: Vec<&OwnedFd> = fds.iter().collect();
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let mut polled: Vec<PollFd<'_>> = fds.iter().map(|fd| PollFd::new(*fd, PollFlags::IN)).collect();
        match poll(&mut polled, Timespec::try_from(left).ok().as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut ready = polled.iter().map(|fd| !fd.revents().is_empty()).collect::<Vec<_>>().into_iter();
        fds.retain(|_| ready.next() == Some(false));
        if fds.is_empty() || left.is_zero() {
            return Ok(());
        }
    }
}
