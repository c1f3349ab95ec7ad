//! `tidewheel jobs tail`: what a job has written, and what it writes while one looks.

mod log;
mod since;

use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use tidewheel_core::job::{Brief, JobId};
use tidewheel_runner::job::wait::{Watch, Woken};

use self::log::unreadable;
use self::since::Since;
use crate::error::Ending;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::jobs::{DirArguments, Left, Opened};
use crate::output;

pub(super) use self::log::Log;

/// Print what a job has written
///
/// Each line begins with the stream that it came from, unless only one stream
/// is asked for. Sequences that steer a terminal are left out unless --raw is
/// given. With --follow the command stays until the job is over; Ctrl-C leaves
/// it, and the job goes on.
///
/// Example:
///
///   $ tidewheel jobs tail run_5c/build --follow
///   $ tidewheel jobs tail run_5c/build --since-attempt 2 --lines 20
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// The job: its id, any beginning or end of it, or RUN/NODE
    job: String,
    #[command(flatten)]
    dir: DirArguments,
    /// Which stream
    #[arg(long, value_enum, default_value_t)]
    stream: Stream,
    /// Stay until the job is over
    #[arg(long, short)]
    follow: bool,
    /// Begin with the last lines of each stream, so many
    #[arg(long, short = 'n', value_name = "N")]
    lines: Option<usize>,
    /// Only what was written since this attempt began; the first one is 1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    since_attempt: Option<u32>,
    /// Print the bytes as they are
    #[arg(long)]
    raw: bool,
}

/// A stream of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Stream {
    /// What it prints
    Stdout,
    /// What it complains about
    Stderr,
    /// Both, each line with the name of its stream
    #[default]
    Both,
}

/// How long to wait for a change until the job is looked at all the same.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How long to wait until somebody looks whether he was interrupted.
const LISTEN_AGAIN: Duration = Duration::from_millis(100);

/// Prints the logs.
pub(super) fn run(arguments: &Arguments) -> Result<Exit, Ending> {
    let opened = Opened::open(&arguments.dir)?;
    let job = opened.find(&arguments.job)?;
    let how = How {
        stream: arguments.stream,
        lines: arguments.lines,
        is_raw: arguments.raw,
        follows: arguments.follow,
    };
    let since = arguments.since_attempt.map(|attempt| Since::of(&opened, &job, attempt)).transpose()?;
    Tail { opened: &opened, job, how, since }.print()
}

/// What is printed of the logs, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct How {
    pub(super) stream: Stream,
    pub(super) lines: Option<usize>,
    pub(super) is_raw: bool,
    pub(super) follows: bool,
}

/// The logs of a job, to be printed since an attempt or all there is.
pub(super) struct Tail<'a> {
    pub(super) opened: &'a Opened,
    pub(super) job: JobId,
    pub(super) how: How,
    pub(super) since: Option<Since>,
}

impl Tail<'_> {
    /// Prints them.
    pub(super) fn print(&self) -> Result<Exit, Ending> {
        let Self { opened, job, how, since } = self;
        // From here on whoever leaves is told how to come back.
        let interrupt = how.follows.then(Interrupt::listen);
        let dir = opened.place.data.join("jobs").join(job.as_str());
        let names: &[&str] = match how.stream {
            Stream::Stdout => &["stdout"],
            Stream::Stderr => &["stderr"],
            Stream::Both => &["stdout", "stderr"],
        };
        let mut logs: Vec<Log> = names.iter().map(|name| Log::new(&dir, name, *how)).collect();
        for (log, name) in logs.iter_mut().zip(names) {
            let offsets = since.as_ref().map(|since| since.offsets(name));
            let gone = log.start(offsets, how.lines).map_err(|error| unreadable(&log.path, &error))?;
            if let Some(Since { attempt, .. }) = since
                && gone > 0
            {
                output::hint(&format!(
                    "The beginning of attempt {attempt} is gone: {gone} bytes of its {name} were dropped when the log was turned over."
                ));
            }
            while log.print(*how)? {
                if interrupt.as_ref().is_some_and(Interrupt::is_heard) {
                    break;
                }
            }
            if how.follows {
                log.go_on();
            } else {
                log.print_rest(*how)?;
            }
        }
        if let Some(interrupt) = interrupt
            && self.follow(&mut logs, &interrupt)? == Left::Interrupted
        {
            let command = Opened::command(&format!("jobs attach {job}"));
            output::hint(&format!("The job goes on without you: {command} comes back to it."));
            return Ok(Exit::Failed);
        }
        for log in &mut logs {
            log.print_rest(*how)?;
        }
        Ok(Exit::Succeeded)
    }

    /// Prints what comes until the job is over, or somebody has enough.
    fn follow(&self, logs: &mut [Log], interrupt: &Interrupt) -> Result<Left, Ending> {
        let watch = Watch::directory(&self.opened.place.data.join("jobs").join(self.job.as_str()));
        let lent = self.opened.lend_slot();
        if lent.is_some() {
            let passed = self.opened.pass()?;
            passed.warnings.iter().chain(&passed.errors).for_each(|trouble| output::warning(trouble));
        }
        loop {
            // What is written before the job is over is there once it is over.
            let job = Brief::from(&self.opened.read(&self.job)?);
            let is_lost = self.opened.is_lost(&job);
            let is_over = !job.is_open() || is_lost;
            let mut has_more = true;
            while has_more {
                has_more = false;
                for log in &mut *logs {
                    has_more |= log.print(self.how)?;
                }
                if interrupt.is_heard() {
                    return Ok(Left::Interrupted);
                }
            }
            if is_lost {
                let tick = Opened::command("tick");
                output::hint(&format!(
                    "The supervisor of the job is gone: {tick} ends the job, and says what is next."
                ));
            }
            if is_over {
                return Ok(Left::Over);
            }
            let again = Instant::now() + LOOK_AGAIN;
            while !interrupt.is_heard() && Instant::now() < again {
                if watch.wait(Some(again.min(Instant::now() + LISTEN_AGAIN))) == Woken::Changed {
                    break;
                }
            }
        }
    }
}
