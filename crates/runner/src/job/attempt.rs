//! One process of a job, from its start until nothing of it is left: its output is in the logs, its time is measured,
//! and all that it started ends with it. What its end means is for others to say.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, kill_process_group, pidfd_open, set_child_subreaper,
    waitpid,
};
use tidewheel_core::job::Secrets;

use super::family::{self, Descendants, Family as _};
use super::identity::{DETACHED, TOKEN};
use super::log::LogFile;
use super::mark::Mark;
use super::streams::{Finished, Streams};
use super::wait::Watch;
use crate::process::{Captured, Program, StartError};
use crate::procfs;

/// How long a process may take to end when it is asked to, before it is killed, where nobody says.
///
/// Whoever cancels a job sees it gone within two seconds.
pub const GRACE: Duration = Duration::from_millis(1_500);

/// What is to be run, and how.
pub struct Attempt<'a> {
    /// The program, with its variables and its directory.
    pub program: Program,
    /// What it reads; nothing if there is none.
    pub stdin: Option<File>,
    /// Where its output goes.
    pub logs: Logs,
    /// How many of the last bytes of its output are kept beside that; a few where nobody says.
    pub keeps: Option<usize>,
    /// What nobody is to read in its output.
    pub secrets: Secrets,
    /// How long it may take.
    pub timeout: Option<Duration>,
    /// How long it may write nothing.
    pub heartbeat: Option<Duration>,
    /// How long it may take to end when it is asked to, before it is killed.
    pub grace: Duration,
    /// Told when it runs, before anything else happens to it. If that fails, it is ended.
    pub on_spawn: &'a mut dyn FnMut(Started) -> io::Result<()>,
    /// Tells whether somebody wants it to end.
    pub is_cancelled: &'a dyn Fn() -> bool,
    /// A directory into which a file comes when somebody does. Without it, who wants it has to signal its group.
    pub cancel_in: Option<PathBuf>,
}

/// Where output goes.
#[derive(Clone, Debug)]
pub struct Logs {
    /// What it writes.
    pub stdout: PathBuf,
    /// What it complains about.
    pub stderr: PathBuf,
    /// How long each of them may become before it is rotated.
    pub limit: u64,
}

/// The first process of an attempt, which leads its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Started {
    /// Its number, and that of its group.
    pub pid: u32,
    /// When it started, as the system counts.
    pub start_time: Option<u64>,
    /// Its session, which is that of its supervisor.
    pub session: Option<u32>,
}

/// What came of an attempt.
#[derive(Debug)]
pub struct Ended {
    /// How it ended.
    pub end: End,
    /// The last of what it wrote.
    pub stdout: Captured,
    /// The last of what it complained about.
    pub stderr: Captured,
    /// What first went wrong with its logs; some of its output is lost then.
    pub log_error: Option<io::Error>,
    /// How long it took, until nothing of it was left.
    pub took: Duration,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself, with this code.
    Exited(i32),
    /// By a signal of this number that was not ours.
    Signalled(i32),
    /// It took too long.
    TimedOut,
    /// It wrote nothing for too long.
    Silent,
    /// Somebody wanted it to end.
    Cancelled,
}

impl End {
    /// Returns the code that goes on record, as a shell would have it.
    #[must_use]
    pub const fn exit_code(self) -> i32 {
        match self {
            Self::Exited(code) => code,
            Self::Signalled(number) => 128 + number,
            Self::TimedOut | Self::Silent => 124,
            Self::Cancelled => 143,
        }
    }
}

/// Why it is not known what came of an attempt, or why there was none.
#[derive(Debug, thiserror::Error)]
pub enum AttemptError {
    /// A log could not be opened, so that nothing was started.
    #[error("cannot open {}", path.display())]
    Log {
        /// The log.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The program was not started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// That it runs could not be put on record, and it was ended.
    #[error("cannot put process {id} on record")]
    Record {
        /// The process.
        id: u32,
        /// What went wrong.
        #[source]
        source: io::Error,
    },
    /// Its end was not seen, and it was killed.
    #[error("cannot wait for process {id}")]
    Wait {
        /// The process.
        id: u32,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// Something of it is left.
    #[error("cannot end all that process {id} started")]
    Left {
        /// The process.
        id: u32,
        /// What the system says.
        #[source]
        source: io::Error,
    },
}

/// Of each stream, so many of the last bytes are kept.
const KEPT: usize = 8 * 1_024;
/// Who runs for so long may have an ear for who wants it to end. To close that takes the system so long that nobody
/// should have to wait for it who has nothing else to do.
const LONG: Duration = Duration::from_millis(200);
/// Where nobody can be told, somebody looks so often,
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// and so often where it matters that somebody is dead.
const BLIND: Duration = Duration::from_millis(10);

/// Runs a process, and comes back when nothing of it is left.
///
/// This process adopts whatever is left alone by its descendants, and takes the dead away, all of them: who calls it
/// must have no other children that somebody waits for.
///
/// # Errors
/// It was not started, or it is not known what came of it.
pub fn run(attempt: Attempt<'_>) -> Result<Ended, AttemptError> {
    let began = Instant::now();
    let open = |path: &PathBuf| {
        let log = LogFile::open(path, attempt.logs.limit);
        log.map_err(|source| AttemptError::Log { path: path.clone(), source })
    };
    let logs = [open(&attempt.logs.stdout)?, open(&attempt.logs.stderr)?];
    // Refused only by systems that do not know it; they lose sight of processes that leave their group.
    let _refused = set_child_subreaper(Some(getpid()));
    let keeps = attempt.keeps.unwrap_or(KEPT);
    let Attempt {
        program, stdin, secrets, timeout, heartbeat, grace, on_spawn, is_cancelled, cancel_in, ..
    } = attempt;
    // Without room for it, the token in the environment has to do.
    let token = program.vars().find(|(name, _)| *name == TOKEN).map(|(_, token)| token.as_bytes().to_vec());
    let _mark = token.and_then(|token| Mark::new(&token).ok());
    let child = match spawn(&program, stdin) {
        Ok(child) => child,
        Err(source) => return Err(StartError { program, source }.into()),
    };
    let (id, main) = (child.id(), Pid::from_child(&child));
    let wait_error = |source| AttemptError::Wait { id, source };
    let (fd, mut streams) = match hold(child, logs, keeps, &secrets) {
        Ok(held) => held,
        Err(source) => {
            end_unseen(main);
            return Err(wait_error(source));
        }
    };
    let mut life = Life { main, fd, is_taken: false, began, is_cancelled, streams: &mut streams };
    let found = procfs::of(main);
    let recorded = on_spawn(Started {
        pid: id,
        start_time: found.map(|main| main.start_time),
        session: found.and_then(|main| u32::try_from(main.session).ok()),
    });
    let end = match recorded {
        Ok(()) => life.wait(timeout, heartbeat, cancel_in.as_deref()),
        Err(_) => Ok(End::Cancelled),
    };
    // What is not seen any more is not asked either.
    let grace = if end.is_ok() { grace } else { Duration::ZERO };
    let gone = life.end(grace);
    let finished = streams.finish();
    recorded.map_err(|source| AttemptError::Record { id, source })?;
    let end = end.map_err(wait_error)?;
    gone.map_err(|source| AttemptError::Left { id, source })?;
    let Finished { stdout, stderr, log_error } = finished.map_err(wait_error)?;
    // Who signals a job says before why.
    let end = if is_cancelled() { End::Cancelled } else { end };
    Ok(Ended { end, stdout, stderr, log_error, took: began.elapsed() })
}

/// Starts a program as the leader of a group.
fn spawn(program: &Program, stdin: Option<File>) -> io::Result<Child> {
    let mut command = Command::new(program.name().ok_or(io::ErrorKind::InvalidInput)?);
    if program.clears_env() {
        command.env_clear();
    }
    if let Some(directory) = program.directory() {
        command.current_dir(directory);
    }
    for name in program.unset() {
        command.env_remove(name);
    }
    command.args(program.args()).env_remove(DETACHED).envs(program.vars()).process_group(0);
    command.stdin(stdin.map_or_else(Stdio::null, Stdio::from)).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn()
}

/// Takes hold of a process and of what it writes.
fn hold(
    mut child: Child,
    [out_log, err_log]: [LogFile; 2],
    keeps: usize,
    secrets: &Secrets,
) -> io::Result<(OwnedFd, Streams)> {
    let missing = || io::Error::other("a process without its pipes");
    let stdout = child.stdout.take().ok_or_else(missing)?;
    let stderr = child.stderr.take().ok_or_else(missing)?;
    let fd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
    let streams = Streams::new((stdout.into(), out_log, keeps), (stderr.into(), err_log, KEPT), secrets)?;
    Ok((fd, streams))
}

/// Ends a process that could not be taken hold of, and what it started.
fn end_unseen(main: Pid) {
    // Whatever the system says to this, it has said something worse before.
    let _refused = kill_process_group(main, Signal::KILL);
    let wait = &mut |_: &[OwnedFd], until: Instant| {
        std::thread::sleep(until.saturating_duration_since(Instant::now()).min(BLIND));
        Ok(())
    };
    let _refused = family::end(&mut Descendants::default(), Duration::ZERO, &|_| false, wait);
}

/// A process that runs.
struct Life<'a> {
    main: Pid,
    fd: OwnedFd,
    is_taken: bool,
    began: Instant,
    is_cancelled: &'a dyn Fn() -> bool,
    streams: &'a mut Streams,
}

impl Life<'_> {
    /// Waits for the end of the process, or for a reason to end it.
    fn wait(
        &mut self,
        timeout: Option<Duration>,
        heartbeat: Option<Duration>,
        cancel_in: Option<&Path>,
    ) -> io::Result<End> {
        if (self.is_cancelled)() {
            return Ok(End::Cancelled);
        }
        let due = timeout.and_then(|timeout| self.began.checked_add(timeout));
        let mut look = cancel_in.map(|_| self.began + LONG);
        let mut watch: Option<Watch> = None;
        loop {
            let silent = heartbeat.and_then(|heartbeat| self.streams.heard_at().checked_add(heartbeat));
            let until = [due, silent, look].into_iter().flatten().min();
            let ear = watch.as_ref().and_then(Watch::ear);
            let fds: Vec<_> = [Some(self.fd.as_fd()), ear].into_iter().flatten().collect();
            let ready = self.streams.wait(&fds, until)?;
            if ready[0] {
                return self.take_end();
            }
            let is_told = ready.get(1) == Some(&true) && watch.as_ref().is_some_and(Watch::take);
            let now = Instant::now();
            let is_over = |instant: Option<Instant>| instant.is_some_and(|instant| instant <= now);
            if is_over(look) {
                let watch =
                    watch.get_or_insert_with(|| Watch::arrivals(cancel_in.unwrap_or_else(|| Path::new("."))));
                look = watch.ear().is_none().then(|| now + LOOK_AGAIN);
                if (self.is_cancelled)() {
                    return Ok(End::Cancelled);
                }
            }
            if is_told && (self.is_cancelled)() {
                return Ok(End::Cancelled);
            }
            if is_over(due) {
                return Ok(End::TimedOut);
            }
            let heard_at = self.streams.heard_at();
            if is_over(heartbeat.and_then(|heartbeat| heard_at.checked_add(heartbeat))) {
                return Ok(End::Silent);
            }
        }
    }

    /// Takes the end of a process that has ended.
    fn take_end(&mut self) -> io::Result<End> {
        self.is_taken = true;
        let (_, status) = loop {
            match waitpid(Some(self.main), WaitOptions::empty()) {
                Ok(Some(ended)) => break ended,
                Ok(None) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        };
        let end = status.exit_status().map(End::Exited);
        let end = end.or_else(|| status.terminating_signal().map(End::Signalled));
        end.ok_or_else(|| io::Error::other("an end that is none"))
    }

    /// Ends whatever is left of it.
    fn end(&mut self, grace: Duration) -> io::Result<()> {
        // As long as its leader was not taken away, the number of a group is nobody else's. All of a group are told
        // at once: of two that wait for each other, none goes on with its work first.
        let asks = !self.is_taken && !grace.is_zero();
        let is_asked = asks && kill_process_group(self.main, Signal::TERM).is_ok();
        let mut descendants = Descendants::default();
        if descendants.is_gone() {
            return Ok(());
        }
        let group = self.main.as_raw_pid();
        let streams = &mut self.streams;
        family::end(
            &mut descendants,
            grace,
            &|process| is_asked && process.group == group,
            &mut |fds, until| streams.wait_for_all(fds, until),
        )
    }
}
