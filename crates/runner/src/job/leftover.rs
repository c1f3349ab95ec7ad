//! What jobs without a supervisor left running: found by what only their processes have, and ended. A process whose
//! number the system gave to another one since is never signalled.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, getpid, kill_process_group};
use tidewheel_core::job::{JobId, Metadata, Record};

use super::family::{self, Family};
use super::identity::{self, TOKEN};
use super::mark;
use crate::procfs::{self, Process};

/// What a job is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Please end: `SIGTERM`.
    Terminate,
    /// Nobody asks: `SIGKILL`.
    Kill,
}

/// How long processes without a supervisor may take to end when they are asked to. All jobs of a pass share it.
const GRACE: Duration = Duration::from_millis(500);
/// So many looks in a row that find nobody are believed while others start processes all the time. One of three misses
/// the worst that we could think of.
const MANY_LOOKS: u32 = 12;

/// Returns which of these jobs have a process that lives. Only the holder of the run locks of all of them may ask.
///
/// # Errors
/// The system does not list its processes.
pub fn alive<'a>(
    records: impl IntoIterator<Item = &'a Record>,
    data: &Path,
) -> io::Result<BTreeSet<&'a JobId>> {
    let mut left = Left::of(records, data);
    if left.jobs.is_empty() {
        return Ok(BTreeSet::new());
    }
    let mut empty_looks = 0;
    loop {
        left.begin();
        let mut found = BTreeSet::new();
        for id in procfs::all()? {
            let Some(process) = procfs::of(id) else { continue };
            if let Some(job) = left.owner(&process).filter(|_| process.is_alive) {
                found.insert(left.jobs[job].id);
            }
        }
        empty_looks += 1;
        if !found.is_empty() || left.is_gone_after(empty_looks) {
            return Ok(found);
        }
    }
}

/// Ends whatever these jobs left running, all of them together, and comes back when nothing of them is there any more.
/// Only the holder of the run locks of all of them may do so.
///
/// # Errors
/// The system does not list its processes, or does not let some of them be ended.
pub fn end<'a>(records: impl IntoIterator<Item = &'a Record>, data: &Path) -> io::Result<()> {
    family::end(&mut Left::of(records, data), GRACE, &|_| false, &mut wait_for_all)
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

/// The process that the record of a job names.
struct Leader {
    id: Pid,
    start_time: u64,
    /// The session that it was started in: that of its supervisor.
    session: Option<i32>,
}

impl Leader {
    /// Returns whether the process of this number is still the one that was recorded, and leads its group.
    fn is_there(&self) -> bool {
        let key = (self.id.as_raw_pid(), self.start_time);
        procfs::of(self.id).is_some_and(|now| now.key() == key && now.group == key.0)
    }

    /// Returns whether a process is of the group that it leads, or has led.
    ///
    /// While a group has a member the system gives its number to no new process. So a group without its leader is the
    /// recorded one, or one of a process that got the number after the recorded group was gone; that one has another
    /// session, since the recorded session is gone with the supervisor and no other process can get its number while it has members.
    fn led(&self, process: &Process) -> bool {
        if process.group != self.id.as_raw_pid() {
            return false;
        }
        if let Some(now) = procfs::of(self.id) {
            return now.key() == (self.id.as_raw_pid(), self.start_time) && now.group == process.group;
        }
        self.session == Some(process.session) && process.start_time >= self.start_time
    }
}

fn recorded(record: &Record) -> Option<Leader> {
    let id = Pid::from_raw(i32::try_from(record.pid?).ok()?)?;
    let session = record.metadata.number(Metadata::PROCESS_SESSION).and_then(|id| i32::try_from(id).ok());
    Some(Leader { id, start_time: record.process_start_time?, session })
}

/// A job without a supervisor.
struct Orphaned<'a> {
    id: &'a JobId,
    leader: Option<Leader>,
}

/// What is left of jobs: their recorded groups, all that has their tokens or marks, and what they started.
struct Left<'a, 'd> {
    jobs: Vec<Orphaned<'a>>,
    data: &'d Path,
    /// Those that the current look has found, when they started, and of which job they are.
    known: BTreeMap<i32, (u64, usize)>,
    /// The process that was started last when it began.
    newest: Option<i32>,
}

impl<'a, 'd> Left<'a, 'd> {
    fn of(records: impl IntoIterator<Item = &'a Record>, data: &'d Path) -> Self {
        let orphaned = |record: &'a Record| Orphaned { id: &record.id, leader: recorded(record) };
        Self { jobs: records.into_iter().map(orphaned).collect(), data, known: BTreeMap::new(), newest: None }
    }

    /// Returns the job that a process is of.
    fn owner(&mut self, process: &Process) -> Option<usize> {
        // The process that asks may itself have been started by the job, and cannot end itself first.
        if process.id == getpid() {
            return None;
        }
        let leads = |job: &Orphaned<'_>| job.leader.as_ref().is_some_and(|leader| leader.led(process));
        let owner = self.jobs.iter().position(leads);
        let owner = owner.or_else(|| self.owner_of_parent(process)).or_else(|| self.owner_by_token(process));
        if let Some(job) = owner {
            self.known.insert(process.id.as_raw_pid(), (process.start_time, job));
        }
        owner
    }

    fn owner_of_parent(&self, process: &Process) -> Option<usize> {
        let (start_time, job) = *self.known.get(&process.parent)?;
        family::is_child_of(&BTreeMap::from([(process.parent, start_time)]), process).then_some(job)
    }

    /// Finds the job of a process by the token in its environment, or where that was taken away by the mark among its
    /// open files.
    fn owner_by_token(&self, process: &Process) -> Option<usize> {
        let of =
            |token: &[u8]| self.jobs.iter().position(|job| identity::is_token_of(token, job.id, self.data));
        let environment = procfs::environment(process.id)?;
        match procfs::variable(&environment, TOKEN) {
            Some(token) => of(token),
            // A supervisor or a waker that a job started has the mark of that job, and is not a part of it.
            None if family::is_detached(process) => None,
            None => of(&mark::read(process.id)?),
        }
    }
}

impl Family for Left<'_, '_> {
    fn begin(&mut self) {
        self.newest = procfs::newest();
        self.known.clear();
    }

    fn has(&mut self, process: &Process) -> bool {
        self.owner(process).is_some()
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
