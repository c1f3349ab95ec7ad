//! Who or what can change a cause, and the command to type.

use serde::Serialize;

use super::cause::{Cause, CauseKind};
use super::text::command;
use crate::job::{Answer, Branch, Brief, Facts, JobStatus, Precondition, Question};

/// Who or what can change something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Remedy {
    /// Who: `a person`, `time`, `the job itself`, `the scheduler`, `the producer`.
    pub who: &'static str,
    /// What has to happen, as a sentence.
    pub text: String,
    /// What to type, each as it is typed.
    pub commands: Vec<String>,
}

const PERSON: &str = "a person";
const EXTERNAL: &str = "the external worker";

impl Remedy {
    fn new(who: &'static str, text: impl Into<String>, commands: &[String]) -> Self {
        Self { who, text: text.into(), commands: commands.to_vec() }
    }

    /// Returns who can change a cause; `None` where nothing has to be changed.
    pub(super) fn of(cause: &Cause, job: Option<&Brief>, facts: &Facts) -> Option<Self> {
        let id = &cause.job;
        let retry = command(&format!("jobs retry {id}"));
        let cancel = command(&format!("jobs cancel {id}"));
        let remedy = match cause.kind {
            CauseKind::Running => Self::new(
                "the job itself",
                "It runs until its process ends; you can watch it, or cancel it.",
                &[command(&format!("jobs tail {id} --follow")), cancel],
            ),
            CauseKind::External => external(job, id, cancel),
            CauseKind::Lost => Self::new(
                "the scheduler",
                "The next pass of the scheduler ends it, and decides whether it is tried again.",
                &[command("tick")],
            ),
            CauseKind::Approval => Self::new(
                PERSON,
                "A person has to approve or reject it.",
                &[command(&format!("jobs approve {id}")), command(&format!("jobs reject {id}"))],
            ),
            CauseKind::Rejected => Self::new(
                PERSON,
                "A retry asks for the approval again, for it and what is after it.",
                &[retry],
            ),
            CauseKind::Blocked if cause.detail.is_empty() => Self::new(
                PERSON,
                "Its log may say what blocked it; once that is put right, a retry runs it again, and what is after it.",
                &[command(&format!("jobs tail {id}")), retry],
            ),
            CauseKind::Blocked => Self::new(
                PERSON,
                "Once that is put right, a retry runs it again, and what is after it.",
                &[retry],
            ),
            CauseKind::Failed | CauseKind::Cancelled => Self::new(
                PERSON,
                "A retry runs it again, and what is after it, once what went wrong is put right.",
                &[retry],
            ),
            CauseKind::MissingJob => {
                Self::new(PERSON, "Its record is gone, so that it can never end: run the flow again.", &[])
            }
            CauseKind::UnreadableJob => {
                Self::new(PERSON, format!("A person has to repair .tidewheel/jobs/{id}/job.json."), &[])
            }
            CauseKind::MissingArtifact => missing_artifact(cause, retry),
            CauseKind::PinnedHead => Self::new(PERSON, pinned_head(job, facts), &[cancel]),
            CauseKind::Preconditions => preconditions(cause, job, cancel),
            CauseKind::Schedule if cause.until.is_some() => {
                Self::new("time", "It has to be left alone until then; a person can cancel it.", &[cancel])
            }
            CauseKind::Schedule => Self::new(PERSON, "A retry gives it its time again.", &[retry]),
            CauseKind::CircuitBreaker if cause.status.is_some_and(JobStatus::is_terminal) => {
                Self::new(PERSON, "A retry runs it once the breaker lets attempts in again.", &[retry])
            }
            CauseKind::CircuitBreaker => Self::new(
                "time",
                "The breaker lets one attempt in after a while, and all once that has succeeded.",
                &[cancel],
            ),
            CauseKind::RateLimit => Self::new("time", "The window of the limit has to pass.", &[cancel]),
            CauseKind::Capacity => Self::new(
                PERSON,
                "A slot is free when one of them ends; `[scheduler] capacity` in .tidewheel/config.toml says how \
                 many there are, and `concurrency_limit` of a policy how many of one kind.",
                &[],
            ),
            CauseKind::Command => {
                Self::new(PERSON, "Its record has no `child_args`, so that there is nothing to start.", &[])
            }
            CauseKind::Loop | CauseKind::Ready => {
                Self::new("the scheduler", "The next pass of the scheduler sees to it.", &[command("tick")])
            }
            CauseKind::Cycle => Self::new(
                PERSON,
                "They wait for each other, so that nothing happens until one of them is cancelled.",
                &[cancel],
            ),
            CauseKind::After
            | CauseKind::Artifacts
            | CauseKind::Locks
            | CauseKind::IdempotencyKey
            | CauseKind::Succeeded
            | CauseKind::Skipped
            | CauseKind::Unknown => return None,
        };
        Some(remedy)
    }
}

/// Names the token of a job that a worker outside has in hand, and the commands that take it.
fn external(job: Option<&Brief>, id: &str, cancel: String) -> Remedy {
    let Some(external) = job.and_then(|job| job.schedule.external.as_deref()) else {
        return Remedy::new(EXTERNAL, "A worker outside has to complete or fail it.", &[cancel]);
    };
    let with_token = |verb: &str| command(&format!("jobs {verb} {id} --token {}", external.token));
    let mut commands = vec![with_token("complete"), with_token("fail")];
    commands.extend(external.heartbeat_ms.map(|_| with_token("heartbeat")));
    commands.push(cancel);
    let text = format!(
        "The worker outside that has the token {} has to complete or fail it; no process of it runs here.",
        external.token
    );
    Remedy::new(EXTERNAL, text, &commands)
}

fn missing_artifact(cause: &Cause, retry: String) -> Remedy {
    let what = cause.about.as_deref().unwrap_or("the artifact");
    if cause.status.is_some_and(crate::job::JobStatus::is_active) {
        let text = format!("It goes on as soon as {what} is there.");
        return Remedy::new("the producer", text, &[]);
    }
    let text = format!("Once {what} is there, a retry goes on from here.");
    Remedy::new("the producer", text, &[retry])
}

fn pinned_head(job: Option<&Brief>, facts: &Facts) -> String {
    let Some(pinned) = job.and_then(|job| job.schedule.pinned_head.as_ref()) else {
        return "The branch has to stand where it stood.".to_owned();
    };
    let now = Branch::new(&pinned.branch).ok().and_then(|branch| facts.get(&Question::Head(branch)).cloned());
    let stands = match now {
        Some(Answer::Text(Some(oid))) => format!("stands at {}", short(&oid)),
        Some(Answer::Text(None) | Answer::No) => "does not exist".to_owned(),
        Some(Answer::Failed(error)) => format!("cannot be looked at: {error}"),
        Some(Answer::Yes) | None => "stands elsewhere".to_owned(),
    };
    format!(
        "`{}` {stands}, and has to stand at {} again; or cancel the job and run the flow from where it is now.",
        pinned.branch,
        short(&pinned.oid)
    )
}

/// Returns as much of a commit as people compare.
pub(super) fn short(oid: &str) -> &str {
    oid.get(..12).unwrap_or(oid)
}

fn preconditions(cause: &Cause, job: Option<&Brief>, cancel: String) -> Remedy {
    let wants_branch = |precondition: &Precondition| match precondition {
        Precondition::BranchExists { .. } => true,
        Precondition::CleanWorktree => false,
        Precondition::Custom { id, .. } => id == "branch_exists",
    };
    let text = "A person has to change the repository; the scheduler checks it again every `probe_interval`.";
    if cause.status.is_some_and(crate::job::JobStatus::is_terminal) {
        return Remedy::new(
            PERSON,
            "What the template asks for can never be: change it and run it again.",
            &[],
        );
    }
    if cause.detail.ends_with("working tree has uncommitted or untracked changes") {
        let text = "A person has to commit, stash or remove the changes.";
        return Remedy::new(PERSON, text, &["git status".to_owned()]);
    }
    let branch = cause.detail.split('`').nth(1).and_then(|name| Branch::new(name).ok());
    match branch {
        Some(branch) if job.is_some_and(|job| job.schedule.preconditions.iter().any(wants_branch)) => {
            Remedy::new(PERSON, "A person has to create the branch.", &[format!("git branch {branch}")])
        }
        Some(_) | None => Remedy::new(PERSON, text, &[cancel]),
    }
}
