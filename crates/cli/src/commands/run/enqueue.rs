//! Making the runs: what they are after, which branches they are pinned to, and their place in the queue.

use std::fs::File;
use std::io::Read as _;

use tidewheel_core::job::template::{Enqueue, Expanded};
use tidewheel_core::job::{
    After, AfterPolicy, Branch, JobId, NodeId, PinnedHead, RunId, check_after, last_jobs_of,
};
use tidewheel_core::time::Span;
use tidewheel_core::view::jobs::{FindError, find};
use tidewheel_runner::git::{GitError, Repository};
use tidewheel_runner::job::Ticked;
use tidewheel_store::jobs::{JobStore as _, Jobs};

use super::Arguments;
use crate::error::{Code, CommandError, cause};
use crate::jobs::{Flow, Opened, refused, run_of, unfit};

/// A run that was enqueued.
pub(super) struct Enqueued {
    /// Which of the repetitions it is, from one.
    pub(super) index: usize,
    pub(super) id: RunId,
    pub(super) roots: Vec<JobId>,
    pub(super) jobs: Vec<JobId>,
    pub(super) ticked: Ticked,
}

/// Enqueues the runs, each after the one before.
pub(super) fn enqueue(
    opened: &Opened,
    flow: &Flow,
    expanded: &Expanded,
    arguments: &Arguments,
) -> Result<Vec<Enqueued>, CommandError> {
    let git = Repository::at(&opened.place.root);
    let pin = arguments
        .pin
        .as_deref()
        .map(|branch| branch_named(branch).and_then(|branch| head(&git, Some(branch))));
    let pin = pin.transpose()?;
    let mut heads = std::collections::BTreeMap::new();
    for branch in expanded.pins() {
        heads.insert(branch.clone(), head(&git, branch)?);
    }
    let count = arguments.repeat.unwrap_or(1);
    let mut before: Vec<JobId> = Vec::new();
    let mut runs = Vec::new();
    for index in 0..count {
        let run = RunId::of_bits(random_bits()?);
        let mut after = asked(opened, expanded, &run, &arguments.after)?;
        after.extend(before);
        after.dedup();
        // Held time does not pass, and runs have an order all the same.
        let now = opened.now.saturating_add(Span::from_millis(u64::from(index)));
        let mut wish = Enqueue::new(run.clone(), &arguments.flow, now, &opened.actor());
        wish.alias.clone_from(&flow.alias);
        wish.source = Some(flow.source());
        wish.after = after.into_iter().map(|job_id| After { job_id, policy: AfterPolicy::Success }).collect();
        wish.pin.clone_from(&pin);
        wish.heads.clone_from(&heads);
        wish.require_approval = arguments.require_approval;
        wish.config_snapshot = opened.settings.snapshot();
        let made = expanded.materialise(&wish).map_err(|found| flow.wrong(&found))?;
        let jobs = made.records.iter().map(|record| record.id.clone()).collect();
        let ticked = opened.scheduler()?.enqueue(made.records, made.manifest);
        let ticked = ticked.map_err(|error| refused(&error))?;
        before = made.sinks;
        runs.push(Enqueued { index: index as usize + 1, id: run, roots: made.roots, jobs, ticked });
    }
    Ok(runs)
}

/// Returns the jobs that somebody wants the run to be after.
fn asked(
    opened: &Opened,
    expanded: &Expanded,
    run: &RunId,
    wanted: &[String],
) -> Result<Vec<JobId>, CommandError> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let jobs = opened.store().jobs().map_err(|error| unfit(&error))?;
    let mut texts: Vec<String> = Vec::new();
    for text in wanted {
        if text.starts_with("run:") {
            let before = run_of(&jobs.briefs, text)?;
            texts.extend(last_jobs_of(&before, &jobs.briefs).iter().map(ToString::to_string));
        } else {
            texts.push(meant(&jobs, text)?);
        }
    }
    let own: Result<Vec<JobId>, _> =
        expanded.node_ids().map(|node: &NodeId| JobId::of_node(run, node)).collect();
    // What is wrong with a name is told when the jobs are made.
    let own = own.unwrap_or_default();
    check_after(&texts, &own, &jobs.briefs, &jobs.unreadable).map_err(|error| {
        let told = CommandError::new(Code::JobMissing, error.to_string());
        match wanted.iter().find(|text| text.starts_with("run_")) {
            Some(run) => told.hint(format!("To wait for a run, write `--after run:{run}`.")),
            None => told,
        }
    })
}

/// Returns the id that a text means, or the text itself where it means none: others say what is wrong with it.
fn meant(jobs: &Jobs, text: &str) -> Result<String, CommandError> {
    match find(&jobs.briefs, text.trim()) {
        Ok(job) => Ok(job.id.to_string()),
        Err(FindError::NoJob { .. } | FindError::NoRun { .. }) => Ok(text.to_owned()),
        Err(error @ FindError::Ambiguous { .. }) => {
            Err(CommandError::new(Code::JobAmbiguous, error.to_string()))
        }
    }
}

fn branch_named(text: &str) -> Result<Branch, CommandError> {
    Branch::new(text).map_err(|error| CommandError::new(Code::FlowRefused, error.to_string()))
}

/// Returns where a branch stands; without one, the current branch.
fn head(git: &Repository, branch: Option<Branch>) -> Result<PinnedHead, CommandError> {
    let fail = |message: String| CommandError::new(Code::FlowUnpinned, message);
    let of_git = |error: GitError| fail(crate::store::with_causes(&error));
    let branch = match branch {
        Some(branch) => branch.to_string(),
        None => {
            let current = git.current_branch().map_err(of_git)?;
            current.ok_or_else(|| fail("no branch is checked out to pin the jobs to".to_owned()))?
        }
    };
    match git.head_of(&branch).map_err(of_git)? {
        Some(oid) => Ok(PinnedHead { branch, oid }),
        None => Err(fail(format!("required branch `{branch}` does not exist"))),
    }
}

/// Draws the bits of a run id.
fn random_bits() -> Result<u128, CommandError> {
    let mut bits = [0; 16];
    let drawn = File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut bits));
    drawn.map_err(|error| {
        CommandError::new(Code::JobsUnavailable, format!("no random bits can be drawn: {}", cause(&error)))
    })?;
    Ok(u128::from_be_bytes(bits))
}
