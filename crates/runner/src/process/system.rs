//! The processes of this machine.

use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal as Number, WaitOptions, kill_process_group, test_kill_process_group, waitpgid,
};
use tokio::process::Child;

use super::program::Program;
use super::spawn::{End, Group, Signal, Spawn, Spawned, Waiting};

/// Starts processes of this machine. It has to be used inside a tokio runtime.
#[derive(Clone, Copy, Debug, Default)]
pub struct System;

impl Spawn for System {
    fn spawn(&self, program: &Program) -> io::Result<Spawned> {
        let name = program.name().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = tokio::process::Command::new(name);
        if program.clears_env() {
            command.env_clear();
        }
        if let Some(directory) = program.directory() {
            command.current_dir(directory);
        }
        for name in program.unset() {
            command.env_remove(name);
        }
        command.args(program.args()).envs(program.vars()).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let missing = || io::Error::other("a process without its pipes");
        let id = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)).ok_or_else(missing)?;
        Ok(Spawned {
            stdin: Box::new(child.stdin.take().ok_or_else(missing)?),
            stdout: Box::new(child.stdout.take().ok_or_else(missing)?),
            stderr: Box::new(child.stderr.take().ok_or_else(missing)?),
            group: Box::new(RealGroup { id, leader: child }),
        })
    }
}

// Invariant: the system gives the number of a group to nobody else while a process of it is there, dead or alive.
// So it is signalled until it is seen to be gone, and never again.
struct RealGroup {
    id: Pid,
    leader: Child,
}

impl Group for RealGroup {
    fn id(&self) -> u32 {
        self.id.as_raw_nonzero().get().unsigned_abs()
    }

    fn wait(&mut self) -> Waiting<'_> {
        Box::pin(async { self.leader.wait().await.and_then(end_of) })
    }

    fn try_wait(&mut self) -> io::Result<Option<End>> {
        self.leader.try_wait()?.map(end_of).transpose()
    }

    fn signal(&mut self, signal: Signal) -> io::Result<()> {
        let number = match signal {
            Signal::Terminate => Number::TERM,
            Signal::Kill => Number::KILL,
        };
        match kill_process_group(self.id, number) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn is_gone(&mut self) -> bool {
        self.take_dead_away();
        if test_kill_process_group(self.id) == Err(Errno::SRCH) {
            return true;
        }
        let is_dead = is_dead(self.id);
        if is_dead {
            // Some may have died in between, and nobody looks again.
            self.take_dead_away();
        }
        is_dead
    }
}

impl RealGroup {
    /// Takes the dead of the group away whom this process adopted, as the first process of a container does with
    /// what others leave behind: nobody else would.
    fn take_dead_away(&self) {
        while let Ok(Some(_)) = waitpgid(self.id, WaitOptions::NOHANG) {}
    }
}

fn end_of(status: ExitStatus) -> io::Result<End> {
    let end = status.code().map(End::Exited).or_else(|| status.signal().map(End::Signalled));
    end.ok_or_else(|| io::Error::other(format!("an end that is none: {status}")))
}

/// Tells whether the processes of a group are all dead, though nobody took them away: the first process of many a
/// container does not. Where the system does not tell, they are taken for alive.
fn is_dead(group: Pid) -> bool {
    let Ok(processes) = fs::read_dir("/proc") else { return false };
    let states = processes.filter_map(|process| {
        let stat = fs::read_to_string(process.ok()?.path().join("stat")).ok()?;
        // The name stands in brackets and may hold anything; what follows are words.
        let mut words = stat.rsplit_once(')')?.1.split_ascii_whitespace();
        let state = words.next()?.to_owned();
        let its_group: i32 = words.nth(1)?.parse().ok()?;
        (its_group == group.as_raw_nonzero().get()).then_some(state)
    });
    let mut is_there = false;
    for state in states {
        is_there = true;
        if !matches!(state.as_str(), "Z" | "X") {
            return false;
        }
    }
    is_there
}
