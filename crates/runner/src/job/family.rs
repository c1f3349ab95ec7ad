//! Ends processes that belong together, and whatever they start meanwhile, until none is left. Who belongs together
//! is for others to say.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, pidfd_open, pidfd_send_signal, wait,
    waitid,
};

use super::identity::DETACHED;
use crate::procfs::{self, Process};

/// Processes that belong together.
pub(super) trait Family {
    /// Begins another look at all processes there are.
    fn begin(&mut self);

    /// Tells whether a process is one of them. During a look it is asked about each process, the older ones first.
    fn has(&mut self, process: &Process) -> bool;

    /// Tells whether it is known without a look that none is left.
    fn is_gone(&mut self) -> bool;

    /// Tells whether it is known that none is left after so many looks in a row that found nobody.
    fn is_gone_after(&mut self, empty_looks: u32) -> bool;
}

/// The commands of supervisors and wakers, as [`super::launch`] starts them.
const COMMANDS: [&[u8]; 2] = [super::launch::SUPERVISE.as_bytes(), super::launch::WAKE.as_bytes()];

/// Waits until all of these have ended, or until this instant.
pub(super) type Waiting<'a> = dyn FnMut(&[OwnedFd], Instant) -> io::Result<()> + 'a;

/// Ends all of a family: asks them, kills those that are still there after a while, and comes back when none is left.
///
/// # Errors
/// The system does not tell which processes there are, or does not let some of them be ended.
pub(super) fn end(
    family: &mut dyn Family,
    grace: Duration,
    is_asked: &dyn Fn(&Process) -> bool,
    wait: &mut Waiting<'_>,
) -> io::Result<()> {
    let until = Instant::now() + grace.min(LONGEST);
    let mut asked = BTreeSet::new();
    let mut empty_looks = 0;
    while Instant::now() < until {
        if family.is_gone() {
            return Ok(());
        }
        let found = look(family, |member| {
            if asked.insert(member.process.key()) && !is_asked(&member.process) {
                member.signal(Signal::TERM)?;
            }
            // Who was stopped would hear of it too late.
            member.signal(Signal::CONT)
        })?;
        if found.is_empty {
            empty_looks = u32::from(found.refused.is_empty());
            break;
        }
        wait(&found.fds, until)?;
    }
    kill(family, empty_looks, wait)
}

/// Nobody waits longer for somebody who was asked to end, and no clock counts further than it can.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
/// So many are waited for at once; a process may not have many more files open.
const AT_ONCE: usize = 200;
/// After so long it is looked again, whatever happened.
const AGAIN: Duration = Duration::from_secs(1);
/// Those that the system does not let us end are given up after so many looks that found nobody else.
const REFUSALS: u32 = 3;

/// Kills all of a family, of which so many looks in a row found nobody already.
fn kill(family: &mut dyn Family, mut empty_looks: u32, wait: &mut Waiting<'_>) -> io::Result<()> {
    let mut refusals = 0;
    loop {
        if family.is_gone() || (empty_looks > 0 && family.is_gone_after(empty_looks)) {
            return Ok(());
        }
        // Each is killed as it is found. A look comes to children after their parents, and who is told to die starts
        // no others, so that a family that does nothing but grow is overtaken.
        let found = look(family, |member| member.signal(Signal::KILL))?;
        if !found.is_empty {
            empty_looks = 0;
            wait(&found.fds, Instant::now() + AGAIN)?;
        } else if found.refused.is_empty() {
            empty_looks += 1;
        } else {
            refusals += 1;
            if refusals == REFUSALS {
                let who: Vec<String> = found.refused.iter().map(ToString::to_string).collect();
                let what = format!("not allowed to end process {}", who.join(", "));
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
            }
            wait(&[], Instant::now() + AGAIN / 10)?;
        }
    }
}

/// What a look found.
struct Found {
    /// Whether it found nobody.
    is_empty: bool,
    /// Some of those that it found, to wait for.
    fds: Vec<OwnedFd>,
    /// Those that nothing could be done to.
    refused: Vec<Pid>,
}

/// A process that is held, so that its number means nobody else.
struct Member {
    process: Process,
    fd: OwnedFd,
}

impl Member {
    fn signal(&self, signal: Signal) -> rustix::io::Result<()> {
        match pidfd_send_signal(&self.fd, signal) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Looks at all processes and does something to each that lives and belongs to the family, at once.
fn look(
    family: &mut dyn Family,
    mut act: impl FnMut(&Member) -> rustix::io::Result<()>,
) -> io::Result<Found> {
    let mut found = Found { is_empty: true, fds: Vec::new(), refused: Vec::new() };
    family.begin();
    for id in procfs::all()? {
        let Some(process) = procfs::of(id) else { continue };
        if !family.has(&process) || !process.is_alive {
            continue;
        }
        let Ok(fd) = pidfd_open(id, PidfdFlags::empty()) else { continue };
        // The number may have been given to another process before it was opened, and never after it.
        if procfs::of(id).map(|now| now.key()) != Some(process.key()) {
            continue;
        }
        let member = Member { process, fd };
        match act(&member) {
            Ok(()) => {
                found.is_empty = false;
                if found.fds.len() < AT_ONCE {
                    found.fds.push(member.fd);
                }
            }
            Err(_) => found.refused.push(id),
        }
    }
    Ok(found)
}

/// Everything that this process has started, and what they have, however they hide: for whoever is left alone comes
/// to the nearest ancestor that adopts, and that is this one.
///
/// Supervisors and wakers that a job started are not of it, nor what they started.
#[derive(Debug, Default)]
pub(super) struct Descendants {
    /// Those that the current look has found, and when they started.
    known: BTreeMap<i32, u64>,
    /// How many children died since it began.
    deaths: u32,
}

impl Descendants {
    /// Takes the dead away.
    fn bury(&mut self) {
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {
            self.deaths = self.deaths.saturating_add(1);
        }
    }
}

impl Family for Descendants {
    fn begin(&mut self) {
        self.bury();
        self.known.clear();
        self.deaths = 0;
    }

    fn has(&mut self, process: &Process) -> bool {
        let is_mine = process.parent == getpid().as_raw_pid();
        if !(is_mine && !is_detached(process) || is_child_of(&self.known, process)) {
            return false;
        }
        self.known.insert(process.id.as_raw_pid(), process.start_time);
        true
    }

    fn is_gone(&mut self) -> bool {
        self.bury();
        let options = WaitIdOptions::NOHANG | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::All, options).err() == Some(Errno::CHILD)
    }

    fn is_gone_after(&mut self, _empty_looks: u32) -> bool {
        // Of a family that is not gone, a child of this process lives during the whole look and is found by it, or one
        // dies meanwhile.
        self.bury();
        self.deaths == 0
    }
}

/// Tells whether the parent of a process is one of these, each known by when it started.
pub(super) fn is_child_of(known: &BTreeMap<i32, u64>, process: &Process) -> bool {
    let Some(start_time) = known.get(&process.parent) else { return false };
    // The number of a parent that is gone may be that of a stranger by now.
    let parent = Pid::from_raw(process.parent).and_then(procfs::of);
    parent.is_some_and(|parent| parent.start_time == *start_time) && !is_detached(process)
}

/// Returns whether a process is a supervisor or a waker, which belong to no job. Any process can have their variable, so
/// that it has to run one of their commands, too.
pub(super) fn is_detached(process: &Process) -> bool {
    let environment = procfs::environment(process.id).unwrap_or_default();
    if procfs::variable(&environment, DETACHED).is_none_or(<[u8]>::is_empty) {
        return false;
    }
    // The first word is the program; of a script it is the interpreter, and the script the next.
    let line = procfs::command_line(process.id).unwrap_or_default();
    line.split(|byte| *byte == 0).skip(1).take(2).any(|word| COMMANDS.contains(&word))
}
