//! The jobs of the demo: a small release is enqueued and followed as `tidewheel run --follow` does it, and its last job
//! waits for a person. It only gathers what happened; others tell it.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;
use tidewheel_core::job::{Brief, JobEventKind, JobId, JobStatus};
use tidewheel_runner::job::Ticked;
use tidewheel_store::jobs::JobStore as _;

use super::order::{failed, failed_by};
use crate::commands::run::enqueue_quietly;
use crate::error::{CommandError, Ending};
use crate::jobs::{Follow, Followed, Left, Opened, Tells, refused, unfit};

/// What happened.
#[derive(Debug, Serialize)]
pub(crate) struct Story {
    /// The jobs, in the order of the template.
    pub(crate) jobs: Vec<JobStory>,
    /// What was said about the last of them.
    pub(crate) answer: Answer,
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

/// What a person says about the release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// Yes.
    Approved,
    /// No.
    Rejected,
    /// Yes, said beforehand.
    ApprovedByOption,
    /// Nobody can be asked, and the demo says yes.
    NobodyAsked,
    /// Somebody was asked and went away.
    Unanswered,
}

/// The template, which whoever looks at the files can read and run again.
const TEMPLATE: &str = include_str!("release.toml");
/// Its file.
pub(crate) const FILE: &str = "release.toml";

/// As many jobs as the release has may run at once, also on a machine with one core.
const CONFIG: &str = "[scheduler]\ncapacity = 4\n";

/// Supervisors that do not end for so long are stuck; they need some milliseconds.
const PATIENCE: Duration = Duration::from_secs(20);

/// Lets it happen, in a directory. Before the last job, somebody is asked. Nothing comes back if somebody had enough.
pub(crate) fn tell(
    place: &Path,
    tells: Tells,
    ask: impl FnOnce() -> Result<Answer, Ending>,
) -> Result<Option<Story>, Ending> {
    let place = fs::canonicalize(place)
        .map_err(|error| failed_by(&format!("`{}` cannot be read", place.display()), &error))?;
    let write = |name: &str, text: &str| {
        fs::write(place.join(name), text)
            .map_err(|error| failed_by(&format!("`{name}` cannot be written"), &error))
    };
    fs::create_dir(place.join(".tidewheel"))
        .map_err(|error| failed_by("`.tidewheel` cannot be made", &error))?;
    write(".tidewheel/config.toml", CONFIG)?;
    write(FILE, TEMPLATE)?;
    let (opened, jobs) = enqueue_quietly(&place, &place.join(FILE))?;
    let Some((last, before)) = jobs.split_last() else { return Err(failed("there are no jobs").into()) };
    if follow(&opened, before, tells)?.is_none() {
        return Ok(None);
    }
    let answer = ask()?;
    let scheduler = opened.scheduler()?;
    let decided = match answer {
        Answer::Unanswered => None,
        Answer::Rejected => Some(scheduler.reject(last, Some("rejected in the demo"))),
        Answer::Approved | Answer::ApprovedByOption | Answer::NobodyAsked => Some(scheduler.approve(last)),
    };
    if let Some(decided) = decided {
        decided.map_err(|error| refused(&error))?;
        if follow(&opened, std::slice::from_ref(last), tells)?.is_none() {
            return Ok(None);
        }
    }
    let mut briefs = Vec::with_capacity(jobs.len());
    for id in &jobs {
        briefs.push(Brief::from(&opened.read(id)?));
    }
    Ok(Some(Story { jobs: stories(&opened, &briefs)?, answer }))
}

impl Story {
    /// Tells whether everything came as it was meant: what failed at first was tried again, and the last job did what
    /// was said.
    pub(crate) fn is_right(&self) -> bool {
        let Some((last, before)) = self.jobs.split_last() else { return false };
        let wanted = match self.answer {
            Answer::Rejected => JobStatus::BlockedByApproval,
            Answer::Unanswered => JobStatus::WaitingOnApproval,
            Answer::Approved | Answer::ApprovedByOption | Answer::NobodyAsked => JobStatus::Succeeded,
        };
        last.status == wanted
            && before.iter().all(|job| job.status == JobStatus::Succeeded)
            && before.iter().any(|job| job.exit_codes == [Some(75), Some(0)])
    }
}

/// Waits until jobs are over and nobody works on them any more: a job is over a little before its supervisor is.
fn follow(opened: &Opened, jobs: &[JobId], tells: Tells) -> Result<Option<Followed>, Ending> {
    let comes_back = format!("`tidewheel jobs list --dir {}` shows them", opened.place.root.display());
    let followed =
        Follow { opened, jobs: jobs.to_vec(), tells, trouble: Ticked::default(), until: None, comes_back }
            .run()?;
    if followed.ending == Left::Interrupted {
        return Ok(None);
    }
    let began = Instant::now();
    for id in jobs {
        while opened.store().take_run_lock(id).map_err(|error| unfit(&error))?.is_none() {
            if began.elapsed() > PATIENCE {
                return Err(failed("a supervisor does not end").into());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    Ok(Some(followed))
}

fn stories(opened: &Opened, jobs: &[Brief]) -> Result<Vec<JobStory>, CommandError> {
    let node = |job: &Brief| job.node.as_ref().map_or_else(|| job.id.to_string(), ToString::to_string);
    let mut stories = Vec::with_capacity(jobs.len());
    for job in jobs {
        let is_before = |other: &&Brief| job.schedule.after.iter().any(|after| after.job_id == other.id);
        let events = opened.store().events(&job.id).map_err(|error| unfit(&error))?;
        let exit_codes = events.iter().filter_map(|event| match &event.event {
            JobEventKind::AttemptFailed { exit_code, .. } | JobEventKind::Completed { exit_code, .. } => {
                Some(*exit_code)
            }
            JobEventKind::Dispatched { .. }
            | JobEventKind::Withdrawn { .. }
            | JobEventKind::Rewound { .. }
            | JobEventKind::Decided { .. } => None,
        });
        stories.push(JobStory {
            node: node(job),
            status: job.status,
            after: jobs.iter().filter(is_before).map(node).collect(),
            exit_codes: exit_codes.collect(),
        });
    }
    Ok(stories)
}
