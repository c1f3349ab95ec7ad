//! The seam to the system: whoever starts processes, and what may be asked of a group of them. Tests put others
//! in its place.

use std::io;
use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};

use super::program::Program;

/// Starts programs.
pub trait Spawn: Send + Sync {
    /// Starts a program as the leader of a process group of its own, with pipes to all of its streams.
    ///
    /// # Errors
    /// The system did not start it.
    fn spawn(&self, program: &Program) -> io::Result<Spawned>;
}

/// A program that was started.
pub struct Spawned {
    /// What it reads.
    pub stdin: Box<dyn AsyncWrite + Send + Unpin>,
    /// What it writes.
    pub stdout: Box<dyn AsyncRead + Send + Unpin>,
    /// What it complains about.
    pub stderr: Box<dyn AsyncRead + Send + Unpin>,
    /// The process, and those that it starts.
    pub group: Box<dyn Group>,
}

/// A process and those that it starts, as long as they stay in its group.
pub trait Group: Send {
    /// Returns the number of the group, which is that of its leader.
    fn id(&self) -> u32;

    /// Waits for the leader. May be dropped and called again, also after the end.
    fn wait(&mut self) -> Waiting<'_>;

    /// Looks whether the leader ended, without waiting.
    ///
    /// # Errors
    /// The system does not tell.
    fn try_wait(&mut self) -> io::Result<Option<End>>;

    /// Sends all processes of the group a signal. That there are none any more is no error.
    ///
    /// # Errors
    /// The system did not let any of them have it.
    fn signal(&mut self, signal: Signal) -> io::Result<()>;

    /// Tells whether nothing of the group runs any more. It is asked after the leader was waited for.
    fn is_gone(&mut self) -> bool;
}

/// Waits for the leader of a group.
pub type Waiting<'a> = Pin<Box<dyn Future<Output = io::Result<End>> + Send + 'a>>;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself, with this code.
    Exited(i32),
    /// By a signal of this number.
    Signalled(i32),
}

/// What a group is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Please end: `SIGTERM`.
    Terminate,
    /// Nobody asks: `SIGKILL`.
    Kill,
}
