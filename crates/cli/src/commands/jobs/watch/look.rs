//! Reads what is shown: the jobs from their index, and of one job the end of its logs. It writes nothing.

use tidewheel_core::job::JobId;
use tidewheel_store::jobs::JobStore as _;

use super::pages::{LogLine, Logged, Stream};
use super::state::Seen;
use crate::commands::jobs::schedule::Arguments;
use crate::commands::jobs::tail::{How, Log, Stream as Named};
use crate::error::CommandError;
use crate::jobs::{Form, MannerArguments, Opened, unfit};
use crate::store::now;

/// Looks at the jobs.
pub(super) fn look(opened: &Opened, arguments: &Arguments) -> Result<Seen, CommandError> {
    let survey = opened.store().survey().map_err(|error| unfit(&error))?;
    let all = survey.glances();
    let (jobs, focus) = arguments.choose(&survey, &all)?;
    let manner =
        MannerArguments::with_ids(Some(arguments.watched_ids())).of(Form::Table, &survey, &all, now());
    Ok(Seen::of(jobs, &arguments.ask(focus.as_ref()), &manner, now()))
}

/// The logs of a job while they are shown.
pub(super) struct Reading {
    logs: Vec<(Stream, Log)>,
}

/// So many lines from before are shown of each stream.
const BEFORE: usize = 1_000;

impl Reading {
    /// Begins to read, a while before the end.
    pub(super) fn new(opened: &Opened, job: &JobId) -> Self {
        let dir = opened.place.data.join("jobs").join(job.as_str());
        let how = How { stream: Named::Both, lines: Some(BEFORE), is_raw: false, follows: true };
        let log = |stream: Stream| {
            let mut log = Log::new(&dir, stream.name(), how);
            // What cannot be read is shown as empty; it may be readable later.
            log.start(None, how.lines).ok();
            log.go_on();
            (stream, log)
        };
        Self { logs: [Stream::Stdout, Stream::Stderr].map(log).into() }
    }

    /// Returns what has come since.
    pub(super) fn more(&mut self) -> Logged {
        let mut logged = Logged::default();
        for (stream, log) in &mut self.logs {
            let line = |text| LogLine { stream: *stream, text };
            logged.lines.extend(log.lines().unwrap_or_default().into_iter().map(line));
            logged.rest.extend(log.rest().map(line));
        }
        logged
    }
}
