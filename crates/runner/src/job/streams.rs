//! What flows out of a process, into its logs, while something is waited for. It decides nothing about the process.

use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

use super::log::LogFile;
use crate::process::{Capture, Captured};
use tidewheel_core::job::{Hiding, Secrets};

/// The two streams of a process.
#[derive(Debug)]
pub(super) struct Streams {
    streams: [Stream; 2],
    buffer: Vec<u8>,
    heard_at: Instant,
}

#[derive(Debug)]
struct Stream {
    pipe: Option<std::fs::File>,
    log: LogFile,
    kept: Capture,
    /// What hides values that nobody is to read, and what it let through last.
    hiding: Option<Hiding>,
    shown: Vec<u8>,
}

impl Stream {
    fn take(&mut self, piece: &[u8]) {
        let Some(hiding) = &mut self.hiding else {
            self.log.write(piece);
            // A tail is never full.
            let _flow = self.kept.take(piece);
            return;
        };
        hiding.push(piece, &mut self.shown);
        self.show();
    }

    /// Nothing more comes.
    fn finish(&mut self) {
        if let Some(hiding) = &mut self.hiding {
            hiding.finish(&mut self.shown);
            self.show();
        }
    }

    fn show(&mut self) {
        self.log.write(&self.shown);
        let _flow = self.kept.take(&self.shown);
        self.shown.clear();
    }
}

/// So many bytes are fetched at once: as many as a pipe holds.
const PIECE: usize = 64 * 1_024;
/// The largest pipe that the system allows has so many pieces, though each of them may come in smaller ones.
const FULL_PIPE: usize = 1_024;

impl Streams {
    /// Takes the pipes of a process. Of each stream so many of the last bytes are kept, and nothing of any secret.
    pub(super) fn new(
        stdout: (OwnedFd, LogFile, usize),
        stderr: (OwnedFd, LogFile, usize),
        secrets: &Secrets,
    ) -> io::Result<Self> {
        let stream = |(pipe, log, keeps): (OwnedFd, LogFile, usize)| -> io::Result<Stream> {
            // Somebody who left the job may hold the other end for ever.
            fcntl_setfl(&pipe, fcntl_getfl(&pipe)? | OFlags::NONBLOCK)?;
            let (pipe, kept) = (Some(pipe.into()), Capture::tail(keeps));
            Ok(Stream { pipe, log, kept, hiding: secrets.in_stream(), shown: Vec::new() })
        };
        Ok(Self {
            streams: [stream(stdout)?, stream(stderr)?],
            buffer: vec![0; PIECE],
            heard_at: Instant::now(),
        })
    }

    /// Returns when the process wrote something last.
    pub(super) const fn heard_at(&self) -> Instant {
        self.heard_at
    }

    /// Lets everything flow until one of these is ready, or until this instant. Returns which are ready.
    pub(super) fn wait(&mut self, fds: &[BorrowedFd<'_>], until: Option<Instant>) -> io::Result<Vec<bool>> {
        loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let ready = self.turn(fds, left)?;
            if ready.contains(&true) || left.is_some_and(|left| left.is_zero()) {
                return Ok(ready);
            }
        }
    }

    /// Lets everything flow until all of these are ready, or until this instant.
    pub(super) fn wait_for_all(&mut self, fds: &[OwnedFd], until: Instant) -> io::Result<()> {
        let mut fds: Vec<BorrowedFd<'_>> = fds.iter().map(|fd| fd.as_fd()).collect();
        loop {
            let ready = self.wait(&fds, Some(until))?;
            let mut ready = ready.into_iter();
            fds.retain(|_| ready.next() == Some(false));
            if fds.is_empty() || Instant::now() >= until {
                return Ok(());
            }
        }
    }

    /// Fetches what lies in the pipes, and returns what was kept of both streams, and what went wrong with the logs.
    pub(super) fn finish(mut self) -> io::Result<Finished> {
        // All who wrote are dead, so that what they wrote is there; a pipe that never empties is held by a stranger.
        for _ in 0..FULL_PIPE {
            if !self.fetch(&[true, true])? {
                break;
            }
        }
        self.streams.iter_mut().for_each(Stream::finish);
        let [stdout, stderr] = self.streams;
        let log_errors = [stdout.log.finish(), stderr.log.finish()];
        Ok(Finished {
            stdout: stdout.kept.into_captured(),
            stderr: stderr.kept.into_captured(),
            log_error: log_errors.into_iter().flatten().next(),
        })
    }

    /// Waits once, and fetches what has come.
    fn turn(&mut self, fds: &[BorrowedFd<'_>], left: Option<Duration>) -> io::Result<Vec<bool>> {
        let pipes = self.streams.iter().filter_map(|stream| stream.pipe.as_ref());
        let mut polled: Vec<PollFd<'_>> = fds
            .iter()
            .map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN))
            .chain(pipes.map(|pipe| PollFd::new(pipe, PollFlags::IN)))
            .collect();
        // A time that the system cannot count to does not come.
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut polled, left.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready: Vec<bool> = polled.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(polled);
        let (ready, pipes) = ready.split_at(fds.len());
        let mut pipes = pipes.iter();
        let has_more = [0, 1].map(|one: usize| {
            self.streams[one].pipe.is_some() && pipes.next().is_some_and(|is_ready| *is_ready)
        });
        let ready = ready.to_vec();
        self.fetch(&has_more)?;
        Ok(ready)
    }

    /// Fetches one piece of each stream that has some. Tells whether there was any.
    fn fetch(&mut self, has_more: &[bool; 2]) -> io::Result<bool> {
        let mut is_any = false;
        for (stream, has_more) in self.streams.iter_mut().zip(has_more) {
            let Some(pipe) = stream.pipe.as_mut().filter(|_| *has_more) else { continue };
            match pipe.read(&mut self.buffer) {
                Ok(0) => stream.pipe = None,
                Ok(length) => {
                    stream.take(&self.buffer[..length]);
                    self.heard_at = Instant::now();
                    is_any = true;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => is_any = true,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(is_any)
    }
}

/// What is left of the streams of a process.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) stdout: Captured,
    pub(super) stderr: Captured,
    pub(super) log_error: Option<io::Error>,
}
