//! The gate of preconditions: what else has to be so in the repository. They are judged in the order in which they are
//! listed; one that nobody knows blocks the job.

use super::verdict::{Verdict, Wait};
use super::view::View;
use crate::job::brief::Brief;
use crate::job::id::Branch;
use crate::job::question::{Answer, Question};
use crate::job::schedule::{Precondition, WaitKind};
use crate::job::status::JobStatus;

/// Says whether everything else is as it has to be.
pub(in crate::job) fn judge(job: usize, view: &View<'_>) -> Verdict {
    let brief = view.jobs[job];
    for precondition in &brief.schedule.preconditions {
        let verdict = match precondition {
            Precondition::CleanWorktree => clean_tree(view, ""),
            Precondition::BranchExists { branch } => {
                branch_exists(view, brief, branch.as_deref(), |branch| {
                    format!("required branch `{branch}` does not exist")
                })
            }
            Precondition::Custom { id, args } => match id.as_str() {
                "clean_worktree" => clean_tree(view, "custom precondition clean_worktree failed: "),
                "branch_exists" => {
                    let branch = args.get("branch").and_then(serde_json::Value::as_str);
                    branch_exists(view, brief, branch, |branch| {
                        format!("custom precondition branch_exists failed: `{branch}` missing")
                    })
                }
                _ => Verdict::block(
                    WaitKind::Preconditions,
                    format!("custom precondition `{id}` is not supported by scheduler runtime"),
                ),
            },
        };
        if verdict != Verdict::Open {
            return verdict;
        }
    }
    Verdict::Open
}

const NO_BRANCH: &str = "branch_exists precondition requires branch context (set precondition.branch, \
                         pinned_head, or a single branch lock)";

fn wait(detail: String) -> Verdict {
    Wait::new(JobStatus::WaitingOnDeps, WaitKind::Preconditions, detail).watching()
}

fn clean_tree(view: &View<'_>, before: &str) -> Verdict {
    let question = Question::CleanTree { root: None };
    match view.facts.get(&question) {
        None => Verdict::Ask(vec![question]),
        Some(Answer::Yes) => Verdict::Open,
        Some(Answer::Failed(error)) => wait(format!("{before}working tree cannot be examined: {error}")),
        Some(Answer::No | Answer::Text(_)) => {
            wait(format!("{before}working tree has uncommitted or untracked changes"))
        }
    }
}

fn branch_exists(
    view: &View<'_>,
    job: &Brief,
    given: Option<&str>,
    missing: impl Fn(&str) -> String,
) -> Verdict {
    let name = match given.filter(|name| !name.trim().is_empty()).or_else(|| branch_of(job)) {
        Some(name) => name,
        None => match view.facts.get(&Question::CurrentBranch) {
            None => return Verdict::Ask(vec![Question::CurrentBranch]),
            Some(Answer::Text(Some(name))) => name,
            Some(Answer::Text(None) | Answer::Yes | Answer::No | Answer::Failed(_)) => {
                return Verdict::block(WaitKind::Preconditions, NO_BRANCH.to_owned());
            }
        },
    };
    let Ok(branch) = Branch::new(name) else { return wait(missing(name)) };
    let question = Question::BranchExists(branch);
    match view.facts.get(&question) {
        None => Verdict::Ask(vec![question]),
        Some(Answer::Yes | Answer::Text(Some(_))) => Verdict::Open,
        Some(Answer::No | Answer::Text(None) | Answer::Failed(_)) => wait(missing(name)),
    }
}

/// Returns the branch that a job is about by itself: that of its pinned head, or of its only branch lock.
fn branch_of(job: &Brief) -> Option<&str> {
    if let Some(pinned) = &job.schedule.pinned_head {
        return Some(&pinned.branch);
    }
    let mut locked = job.schedule.locks.iter().filter_map(|lock| lock.key.strip_prefix("branch:"));
    let first = locked.next()?;
    locked.all(|other| other == first).then_some(first)
}
