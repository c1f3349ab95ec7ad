//! The life of a process: fed, read and waited for at the same time, and ended with everything that it started.

use std::future::poll_fn;
use std::io;
use std::ops::ControlFlow;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use tidewheel_core::time::Span;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::capture::{Capture, Captured};
use super::program::Program;
use super::spawn::{End, Group, Signal, Spawn, Spawned};

/// Starts a program.
///
/// # Errors
/// The system did not start it.
pub fn start(spawn: &dyn Spawn, program: &Program) -> Result<Started, StartError> {
    let Spawned { stdin, stdout, stderr, group } =
        spawn.spawn(program).map_err(|source| StartError { program: program.clone(), source })?;
    Ok(Started {
        members: Members { group, leader: None, are_gone: false },
        pipes: Pipes { stdin, stdout, stderr },
        at: Instant::now(),
    })
}

/// Why a program was not started.
#[derive(Debug, thiserror::Error)]
#[error("cannot start {}", program.name().unwrap_or_default().display())]
pub struct StartError {
    /// The program.
    pub program: Program,
    /// What the system says.
    #[source]
    pub source: io::Error,
}

/// A process that runs. Dropping it kills it, and everything in its group, at once.
pub struct Started {
    members: Members,
    pipes: Pipes,
    at: Instant,
}

/// What goes into a process, what becomes of what comes out of it, and how it is ended.
#[derive(Debug)]
pub struct Options {
    /// What it can read. A process that does not read it is none the worse for it.
    pub stdin: Vec<u8>,
    /// Who takes what it writes.
    pub stdout: Capture,
    /// Who takes what it complains about.
    pub stderr: Capture,
    /// How long its group may take to end when it is asked to, before it is killed.
    pub grace: Span,
}

/// What came of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How its leader ended.
    pub end: End,
    /// Why it was told to end; `None` if it ended by itself.
    pub stopped: Option<Stopped>,
    /// What was kept of its output.
    pub stdout: Captured,
    /// What was kept of its complaints.
    pub stderr: Captured,
    /// How long it took, until all of its group was gone.
    pub took: Duration,
}

/// Why a process was told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// Somebody asked for it.
    Asked,
    /// Whoever takes what it writes had enough.
    Full,
}

/// Why it is not known what came of a process. It is killed then, as far as the system lets us.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// Its end was not seen.
    #[error("cannot wait for process {id}")]
    Wait {
        /// The process.
        id: u32,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// It did not end, and the system did not let it be killed.
    #[error("cannot kill the processes of group {id}")]
    Kill {
        /// The group.
        id: u32,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// A pipe broke, so that it did not get all of its input or we did not get all of its output.
    #[error("the {stream} of process {id} broke")]
    Pipe {
        /// The process.
        id: u32,
        /// The stream.
        stream: &'static str,
        /// What the system says.
        #[source]
        source: io::Error,
    },
}

impl Started {
    /// Returns the number of its group, which is that of the process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.members.group.id()
    }

    /// Lets it run to its end, or until `stop` is ready; then it is asked to end, and killed after the grace. When
    /// this returns, nothing is left of its group: what the process left running when it ended is ended, too.
    ///
    /// # Errors
    /// The system does not tell what came of it.
    pub async fn run(
        self,
        options: Options,
        stop: impl Future<Output = ()>,
    ) -> Result<Outcome, ProcessError> {
        let Self { mut members, pipes, at } = self;
        let id = members.group.id();
        let Options { stdin, mut stdout, mut stderr, grace } = options;
        let (interrupt, mut interrupted) = mpsc::unbounded_channel();
        let (stopped, broken) = {
            let mut flows = Flows::new(id, pipes, (&stdin, &mut stdout, &mut stderr), interrupt);
            let stop = pin!(stop);
            let first = flows.beside(async {
                tokio::select! {
                    end = members.group.wait() => First::Ended(end),
                    () = stop => First::Interrupted(Interruption::Stop(Stopped::Asked)),
                    Some(interruption) = interrupted.recv() => First::Interrupted(interruption),
                }
            });
            let (stopped, mut broken) = match first.await {
                First::Ended(end) => {
                    members.leader = Some(end.map_err(|source| ProcessError::Wait { id, source })?);
                    (None, None)
                }
                First::Interrupted(Interruption::Stop(stopped)) => (Some(stopped), None),
                First::Interrupted(Interruption::Broken(error)) => (None, Some(error)),
            };
            // It may write while it ends, and must not have to wait for somebody who reads it.
            flows.beside(members.end(grace)).await?;
            flows.drain().await;
            drop(flows);
            while let Ok(interruption) = interrupted.try_recv() {
                if let Interruption::Broken(error) = interruption {
                    broken = broken.or(Some(error));
                }
            }
            (stopped, broken)
        };
        match (broken, members.leader) {
            (Some(error), _) => Err(error),
            (None, None) => Err(ProcessError::Wait { id, source: io::Error::other("it has no end") }),
            (None, Some(end)) => Ok(Outcome {
                end,
                stopped,
                stdout: stdout.into_captured(),
                stderr: stderr.into_captured(),
                took: at.elapsed(),
            }),
        }
    }
}

/// What happens first.
enum First {
    Ended(io::Result<End>),
    Interrupted(Interruption),
}

/// Why a process cannot go on.
enum Interruption {
    Stop(Stopped),
    Broken(ProcessError),
}

/// A group that is killed when nobody wants it any more.
struct Members {
    group: Box<dyn Group>,
    leader: Option<End>,
    are_gone: bool,
}

/// A group is looked at after so long, and then after twice as long each time: what ends at all mostly ends at
/// once.
const FIRST_LOOK: Duration = Duration::from_millis(1);
/// A group that takes its time is looked at this often.
const LATER_LOOKS: Duration = Duration::from_millis(100);
/// What a group wrote lies in the pipes when it is gone, and only has to be fetched. Pipes that are still open
/// then are held by a process that left the group, and may stay open for ever.
const DRAIN: Duration = Duration::from_millis(250);
/// Whoever drops a group waits so long to take the dead away; they are killed, and it takes them no time.
const BURIAL: Duration = Duration::from_millis(100);

impl Members {
    /// Ends whatever is left of the group.
    async fn end(&mut self, grace: Span) -> Result<(), ProcessError> {
        let id = self.group.id();
        if self.look() {
            return Ok(());
        }
        let until = Instant::now().checked_add(Duration::from_millis(grace.as_millis()));
        if !grace.is_zero() {
            // Who may not be asked is killed later, and whether that works counts.
            drop(self.group.signal(Signal::Terminate));
        }
        let mut pause = FIRST_LOOK;
        loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let is_over = left.is_some_and(|left| left.is_zero());
            if is_over {
                self.group.signal(Signal::Kill).map_err(|source| ProcessError::Kill { id, source })?;
            }
            if self.leader.is_none() {
                let wait = self.group.wait();
                let ended = match until {
                    Some(until) if !is_over => timeout_at(until, wait).await.ok(),
                    Some(_) | None => Some(wait.await),
                };
                if let Some(end) = ended {
                    self.leader = Some(end.map_err(|source| ProcessError::Wait { id, source })?);
                }
            } else {
                sleep(if is_over { pause } else { left.map_or(pause, |left| left.min(pause)) }).await;
                pause = (2 * pause).min(LATER_LOOKS);
            }
            if self.look() {
                return Ok(());
            }
        }
    }

    /// Looks whether the group is gone.
    fn look(&mut self) -> bool {
        self.are_gone = self.are_gone || (self.leader.is_some() && self.group.is_gone());
        self.are_gone
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        if self.are_gone {
            return;
        }
        // Nobody is there to be told, and nothing else can be done.
        drop(self.group.signal(Signal::Kill));
        let begun = std::time::Instant::now();
        while begun.elapsed() < BURIAL {
            if self.leader.is_none() {
                match self.group.try_wait() {
                    Ok(end) => self.leader = end,
                    Err(_) => return,
                }
            }
            if self.look() {
                return;
            }
            thread::sleep(FIRST_LOOK);
        }
    }
}

struct Pipes {
    stdin: Box<dyn AsyncWrite + Send + Unpin>,
    stdout: Box<dyn AsyncRead + Send + Unpin>,
    stderr: Box<dyn AsyncRead + Send + Unpin>,
}

type Flow<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// What flows into a process and out of it, all at the same time: a process that writes before it has read
/// everything would else wait for us, and we for it.
struct Flows<'a> {
    input: Option<Flow<'a>>,
    outputs: Option<Flow<'a>>,
}

impl<'a> Flows<'a> {
    fn new(
        id: u32,
        pipes: Pipes,
        (stdin, stdout, stderr): (&'a [u8], &'a mut Capture, &'a mut Capture),
        interrupt: mpsc::UnboundedSender<Interruption>,
    ) -> Self {
        let tell = move |interruption| drop(interrupt.send(interruption));
        let tell_broken = {
            let tell = tell.clone();
            move |stream, result: io::Result<()>| {
                if let Err(source) = result {
                    tell(Interruption::Broken(ProcessError::Pipe { id, stream, source }));
                }
            }
        };
        let tell_full = move || tell(Interruption::Stop(Stopped::Full));
        let tell_no_input = tell_broken.clone();
        let input = async move { tell_no_input("input", feed(pipes.stdin, stdin).await) };
        let outputs = async move {
            tokio::join!(
                async { tell_broken("output", pump(pipes.stdout, stdout, &tell_full).await) },
                async { tell_broken("error output", pump(pipes.stderr, stderr, &tell_full).await) },
            );
        };
        Self { input: Some(Box::pin(input)), outputs: Some(Box::pin(outputs)) }
    }

    /// Does something while everything flows.
    async fn beside<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        poll_fn(|task| {
            // First, since a process that writes without end leaves tokio no patience for what comes after it.
            let done = work.as_mut().poll(task);
            if done.is_pending() {
                self.poll(task);
            }
            done
        })
        .await
    }

    /// Fetches what lies in the pipes.
    async fn drain(&mut self) {
        let fetched = poll_fn(|task| {
            self.poll(task);
            if self.outputs.is_none() { Poll::Ready(()) } else { Poll::Pending }
        });
        // That it was not at the end is no error: all that the group wrote is there.
        drop(timeout(DRAIN, fetched).await);
    }

    fn poll(&mut self, task: &mut Context<'_>) {
        for flow in [&mut self.input, &mut self.outputs] {
            if flow.as_mut().is_some_and(|flow| flow.as_mut().poll(task).is_ready()) {
                *flow = None;
            }
        }
    }
}

/// Gives a process its input, as far as it wants it.
async fn feed(mut stdin: Box<dyn AsyncWrite + Send + Unpin>, input: &[u8]) -> io::Result<()> {
    let written = async {
        stdin.write_all(input).await?;
        stdin.shutdown().await
    };
    match written.await {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Reads a stream to its end, also when it is enough: who writes must not have to wait.
async fn pump(
    mut stream: Box<dyn AsyncRead + Send + Unpin>,
    capture: &mut Capture,
    full: impl Fn(),
) -> io::Result<()> {
    let mut buffer = vec![0; 8 * 1024];
    let mut is_full = false;
    loop {
        let length = stream.read(&mut buffer).await?;
        if length == 0 {
            return Ok(());
        }
        if capture.take(&buffer[..length]) == ControlFlow::Break(()) && !is_full {
            is_full = true;
            full();
        }
    }
}
