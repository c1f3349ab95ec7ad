//! What these tests share: real processes that tell the test what they do, and false ones that do what it wants.

use std::fs;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use tidewheel_core::Outcome;
use tidewheel_core::fact::Payload;
use tidewheel_core::policy::{Failure, Matcher, Policy};
use tidewheel_core::workflow::{Component, Workflow};
use tidewheel_runner::process::{End, Group, Program, Signal, Spawn, Spawned, System, Waiting};
use tidewheel_runner::{Options, react_until_satisfied};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, empty, repeat, sink};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// A shell with a script.
pub(crate) fn sh(script: &str) -> [String; 3] {
    ["sh", "-c", script].map(str::to_owned)
}

/// Returns the processes of a group that run: the dead whom nobody took away do not.
pub(crate) fn living(group: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap().filter_map(|process| {
        let pid: u32 = process.ok()?.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let words: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
        (words[2] == group.to_string() && words[0] != "Z" && words[0] != "X").then_some(pid)
    });
    processes.collect()
}

/// Waits for something without a clock: others get their turn in between.
pub(crate) async fn until(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        tokio::task::yield_now().await;
    }
}

/// A workflow of one component, named `it`, under a policy.
pub(crate) fn workflow(component: impl Into<Component>, policy: Policy) -> Workflow {
    Workflow::new("w").add(component).policy(Matcher::Default, policy).build().unwrap()
}

/// Runs the component `it` on an input and returns what came of it.
pub(crate) async fn outcome<T: Payload>(
    component: impl Into<Component>,
    input: T,
) -> Result<serde_json::Value, Failure> {
    let mut run = workflow(component, Policy::new()).run("r");
    react_until_satisfied(&mut run, input, Options::new()).await.unwrap();
    match run.result("it").unwrap() {
        Some(value) => Ok(value),
        None => Err(run.failures().remove(0).failure.clone()),
    }
}

/// Runs a piece of work by itself.
pub(crate) async fn executed(workflow: &Workflow) -> Outcome {
    let mut run = workflow.run("r");
    run.plan(1);
    run.prepare().remove(0).execute_async().await.into_outcome()
}

/// What a process does, in its order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Started(u32),
    Wrote(Vec<u8>),
    /// Nobody looks after the group any more.
    Over(u32),
}

/// Starts real processes and tells what they do.
pub(crate) struct Watched(mpsc::UnboundedSender<Seen>);

/// Hears what processes do.
pub(crate) struct Watcher(mpsc::UnboundedReceiver<Seen>);

pub(crate) fn watched() -> (Arc<Watched>, Watcher) {
    let (tell, seen) = mpsc::unbounded_channel();
    (Arc::new(Watched(tell)), Watcher(seen))
}

impl Watcher {
    pub(crate) async fn next(&mut self) -> Seen {
        self.0.recv().await.unwrap()
    }

    /// Waits until a process has begun and written something; returns its group.
    pub(crate) async fn ready(&mut self) -> u32 {
        let Seen::Started(group) = self.next().await else { panic!("none started") };
        assert!(matches!(self.next().await, Seen::Wrote(_)));
        group
    }

    /// Waits until nobody looks after a group any more.
    pub(crate) async fn over(&mut self, group: u32) {
        while self.next().await != Seen::Over(group) {}
    }
}

impl Spawn for Watched {
    fn spawn(&self, program: &Program) -> io::Result<Spawned> {
        let spawned = System.spawn(program)?;
        self.0.send(Seen::Started(spawned.group.id())).ok();
        let stdout = Box::new(Heard(spawned.stdout, self.0.clone()));
        let group = Box::new(WatchedGroup(spawned.group, self.0.clone()));
        Ok(Spawned { stdout, group, ..spawned })
    }
}

struct Heard(Box<dyn AsyncRead + Send + Unpin>, mpsc::UnboundedSender<Seen>);

impl AsyncRead for Heard {
    fn poll_read(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.0).poll_read(task, buffer))?;
        let piece = &buffer.filled()[before..];
        if !piece.is_empty() {
            self.1.send(Seen::Wrote(piece.to_vec())).ok();
        }
        Poll::Ready(Ok(()))
    }
}

struct WatchedGroup(Box<dyn Group>, mpsc::UnboundedSender<Seen>);

impl Group for WatchedGroup {
    fn id(&self) -> u32 {
        self.0.id()
    }

    fn wait(&mut self) -> Waiting<'_> {
        self.0.wait()
    }

    fn try_wait(&mut self) -> io::Result<Option<End>> {
        self.0.try_wait()
    }

    fn signal(&mut self, signal: Signal) -> io::Result<()> {
        self.0.signal(signal)
    }

    fn is_gone(&mut self) -> bool {
        self.0.is_gone()
    }
}

impl Drop for WatchedGroup {
    fn drop(&mut self) {
        self.1.send(Seen::Over(self.0.id())).ok();
    }
}

/// A process that is none. It runs until a signal ends it.
#[derive(Clone, Default)]
pub(crate) struct Fake {
    /// What ends it; nothing does without it.
    pub(crate) obeys: Option<Signal>,
    /// Whether those that it started stay when it ends, until they are killed.
    pub(crate) has_stubborn_children: bool,
    /// What goes wrong.
    pub(crate) fault: Option<Fault>,
    /// What it was told, and when.
    pub(crate) told: Arc<Mutex<Vec<(Signal, Instant)>>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Wait,
    Kill,
    Input,
    Output,
    /// There is always more of it.
    EndlessOutput,
}

impl Fake {
    pub(crate) fn obeying(signal: Signal) -> Self {
        Self { obeys: Some(signal), ..Self::default() }
    }

    pub(crate) fn with(self, fault: Fault) -> Self {
        Self { fault: Some(fault), ..self }
    }

    pub(crate) fn told(&self) -> Vec<(Signal, Instant)> {
        self.told.lock().unwrap().clone()
    }

    fn was_told(&self, signal: Signal) -> bool {
        self.told().iter().any(|(told, _)| *told == signal)
    }
}

impl Spawn for Fake {
    fn spawn(&self, _: &Program) -> io::Result<Spawned> {
        Ok(Spawned {
            stdin: if self.fault == Some(Fault::Input) { Box::new(Broken) } else { Box::new(sink()) },
            stdout: match self.fault {
                Some(Fault::Output) => Box::new(Broken),
                Some(Fault::EndlessOutput) => Box::new(repeat(b'y')),
                _ => Box::new(empty()),
            },
            stderr: Box::new(empty()),
            group: Box::new(self.clone()),
        })
    }
}

impl Group for Fake {
    fn id(&self) -> u32 {
        1_000_000
    }

    fn wait(&mut self) -> Waiting<'_> {
        Box::pin(async {
            if self.fault == Some(Fault::Wait) {
                return Err(io::Error::other("no child"));
            }
            loop {
                if let Some(end) = self.try_wait()? {
                    return Ok(end);
                }
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
        })
    }

    fn try_wait(&mut self) -> io::Result<Option<End>> {
        let ended = self.obeys.is_some_and(|signal| self.was_told(signal)) || self.was_told(Signal::Kill);
        Ok(ended.then_some(End::Signalled(15)))
    }

    fn signal(&mut self, signal: Signal) -> io::Result<()> {
        if self.fault == Some(Fault::Kill) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        self.told.lock().unwrap().push((signal, Instant::now()));
        Ok(())
    }

    fn is_gone(&mut self) -> bool {
        !self.has_stubborn_children || self.was_told(Signal::Kill)
    }
}

/// A pipe that fails.
struct Broken;

impl AsyncRead for Broken {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Err(io::Error::other("the disk burns")))
    }
}

impl AsyncWrite for Broken {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Err(io::Error::other("the disk burns")))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
