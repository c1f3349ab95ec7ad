//! The jobs of the demo: a small build is enqueued and followed as `tidewheel run --follow` does it, in a directory of
//! its own. It only gathers what happened; others tell it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;
use tidewheel_core::job::{Brief, JobEventKind, JobStatus};
use tidewheel_store::jobs::JobStore as _;

use super::tell::{failed, temporary};
use crate::commands::run::{Ran, run_quietly};
use crate::error::{Code, CommandError, Ending, Kind, cause};
use crate::jobs::unfit;

/// What happened.
#[derive(Debug, Serialize)]
pub(crate) struct Story {
    /// The jobs, in the order of the template.
    pub(crate) jobs: Vec<JobStory>,
    /// Where the files are, if they were to be kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kept_in: Option<PathBuf>,
}

/// One job.
#[derive(Debug, Serialize)]
pub(crate) struct JobStory {
    pub(crate) node: String,
    pub(crate) status: JobStatus,
    /// The nodes that it came after.
    pub(crate) after: Vec<String>,
    /// How each start ended.
    pub(crate) exit_codes: Vec<Option<i32>>,
}

/// The template, which whoever keeps the files can read and run again.
const TEMPLATE: &str = include_str!("build.toml");
const FILE: &str = "build.toml";

/// As many jobs as the build has may run at once, also on a machine with one core.
const CONFIG: &str = "[scheduler]\ncapacity = 4\n";

/// Supervisors that do not end for so long are stuck; they need some milliseconds.
const PATIENCE: Duration = Duration::from_secs(20);

/// Lets it happen: in the directory `keep`, or in one that is gone afterwards.
pub(crate) fn build(keep: Option<&Path>) -> Result<Story, Ending> {
    let folder = match keep {
        Some(_) => None,
        None => Some(tempfile::Builder::new().prefix("tidewheel-demo-").tempdir().map_err(|error| {
            failed(&format!("no directory could be made in `{}`: {}", temporary(), cause(&error)))
        })?),
    };
    let place = match (keep, &folder) {
        (Some(keep), _) => made(keep)?,
        (None, folder) => folder.as_ref().map(|folder| folder.path().to_owned()).unwrap_or_default(),
    };
    let write = |name: &str, text: &str| {
        fs::write(place.join(name), text)
            .map_err(|error| failed(&format!("`{name}` cannot be written: {}", cause(&error))))
    };
    fs::create_dir(place.join(".tidewheel"))
        .map_err(|error| failed(&format!("`.tidewheel` cannot be made: {}", cause(&error))))?;
    write(".tidewheel/config.toml", CONFIG)?;
    write(FILE, TEMPLATE)?;
    let ran = run_quietly(&place, &place.join(FILE))?;
    let story = story_of(&ran, keep.is_some().then(|| place.clone()))?;
    wait_for_supervisors(&ran)?;
    Ok(story)
}

impl Story {
    /// Tells whether everything came as it was meant: all succeeded, and what failed at first was tried again.
    pub(crate) fn is_right(&self) -> bool {
        let all = self.jobs.iter().all(|job| job.status == JobStatus::Succeeded);
        all && self.jobs.iter().any(|job| job.exit_codes == [Some(75), Some(0)])
    }
}

/// Makes the directory that somebody wants to keep. One with something in it is not for us.
fn made(keep: &Path) -> Result<PathBuf, CommandError> {
    let fail = |what: &str| {
        let message = format!("The jobs of the demo cannot be kept in `{}`: {what}.", keep.display());
        let error = CommandError::new(Code::DemoWorkerFailed, message);
        // It is not the machine that is wrong here, but the name.
        CommandError { kind: Kind::User, ..error }.hint("Name a directory that does not exist yet.")
    };
    fs::create_dir_all(keep).map_err(|error| fail(&cause(&error)))?;
    let mut entries = fs::read_dir(keep).map_err(|error| fail(&cause(&error)))?;
    if entries.next().is_some() {
        return Err(fail("there is something in it"));
    }
    fs::canonicalize(keep).map_err(|error| fail(&cause(&error)))
}

fn story_of(ran: &Ran, kept_in: Option<PathBuf>) -> Result<Story, CommandError> {
    let node = |job: &Brief| job.node.as_ref().map_or_else(|| job.id.to_string(), ToString::to_string);
    let mut jobs = Vec::with_capacity(ran.jobs.len());
    for id in &ran.jobs {
        let Some(job) = ran.followed.jobs().find(|job| job.id == *id) else { continue };
        let before = ran
            .followed
            .jobs()
            .filter(|other| job.schedule.after.iter().any(|after| after.job_id == other.id));
        let events = ran.opened.store().events(id).map_err(|error| unfit(&error))?;
        let exit_codes = events.iter().filter_map(|event| match &event.event {
            JobEventKind::AttemptFailed { exit_code, .. } | JobEventKind::Completed { exit_code, .. } => {
                Some(*exit_code)
            }
            JobEventKind::Dispatched { .. }
            | JobEventKind::Withdrawn { .. }
            | JobEventKind::Rewound { .. }
            | JobEventKind::Decided { .. } => None,
        });
        jobs.push(JobStory {
            node: node(job),
            status: job.status,
            after: before.map(node).collect(),
            exit_codes: exit_codes.collect(),
        });
    }
    Ok(Story { jobs, kept_in })
}

/// Waits until nobody works in the directory any more: a job is over a little before its supervisor is.
fn wait_for_supervisors(ran: &Ran) -> Result<(), CommandError> {
    let store = ran.opened.store();
    let began = Instant::now();
    for id in &ran.jobs {
        while store.take_run_lock(id).map_err(|error| unfit(&error))?.is_none() {
            if began.elapsed() > PATIENCE {
                return Err(failed("a supervisor does not end"));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    Ok(())
}
