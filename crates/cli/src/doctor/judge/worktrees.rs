//! What jobs leave in a repository: worktrees, and merges that stopped at a conflict.

use tidewheel_runner::job::is_peoples_worktree;
use tidewheel_store::jobs::Checkup;

use super::whole::counted;
use crate::doctor::facts::{Facts, Sentinel, Tree, TreeState};
use crate::doctor::finding::{Check, Finding, Repair};

/// Says which worktrees no job owns.
pub(super) fn worktrees(facts: &Facts) -> Vec<Finding> {
    let found: Vec<Finding> = facts.trees.iter().filter_map(left_over).collect();
    if !found.is_empty() {
        return found;
    }
    let said = match facts.trees.len() {
        0 => "there are none".to_owned(),
        count => format!("{}, each of a job or of a person", counted(count, "worktree")),
    };
    vec![Finding::fine(Check::Worktrees, said)]
}

fn left_over(tree: &Tree) -> Option<Finding> {
    let Tree { name, state, is_owned } = tree;
    if *is_owned || is_peoples_worktree(name) {
        return None;
    }
    let file = format!(".tidewheel/tmp-worktrees/{name}");
    let finding = |message: &str| Finding::warning(Check::Worktrees, file.clone(), message);
    let remove = |force: &str| format!("`git worktree remove {force}{}`", typed(&file));
    let repair = Repair::Worktree(name.clone());
    // Only what a job is on record for is removed without a person: anybody can make a worktree here.
    Some(match state {
        TreeState::Clean => finding(
            "is a worktree that no job is on record as the owner of; all in it is committed to a branch",
        )
        .todo(format!("If you do not need it, {} removes it. The branch stays.", remove(""))),
        // The lock that Tidewheel puts on what it makes says whose it is.
        TreeState::HalfMade => {
            finding("is a worktree of a job that is gone, which was cut off while it made it")
                .todo(format!("{} removes it, and so does --fix.", remove("--force --force ")))
                .repair(repair)
        }
        TreeState::Gone => finding("is known to git as a worktree, and is not there any more")
            .todo("If it is gone for good, `git worktree prune` lets git forget it."),
        TreeState::Empty => finding("is an empty directory that no job owns")
            .todo("`rmdir` removes it, and so does --fix.")
            .repair(repair),
        TreeState::Changed => finding("is a worktree that no job owns, and something in it is on no branch")
            .todo(format!(
                "Look at it with `git status`; keep what you need, then {} removes it.",
                remove("--force ")
            )),
        TreeState::Unknown => finding("is owned by no job, and is no worktree that git knows")
            .todo("Look at what it is; keep what you need, then remove it by hand."),
    })
}

/// Returns a path as it is typed.
fn typed(path: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '/' | '.' | '_' | '-');
    if path.chars().all(is_plain) { path.to_owned() } else { format!("'{}'", path.replace('\'', "'\\''")) }
}

/// Says which merges stopped at a conflict, and no job is there to go on.
pub(super) fn sentinels(facts: &Facts, checkup: &Checkup) -> Vec<Finding> {
    let has_job = |job: &str| checkup.jobs.contains_key(job) || checkup.strange.contains_key(job);
    let judge = |Sentinel { file, job }: &Sentinel| {
        let (message, todo) = match job {
            Ok(job) if has_job(job) => return None,
            Ok(job) => (
                format!("says that a merge of job {job} stopped at a conflict, and there is no such job"),
                "Finish or abort the merge if git still has it (`git status`), then remove the file.",
            ),
            Err(why) => (
                format!("says that a merge stopped at a conflict, and cannot be read: {why}"),
                "`tidewheel jobs retry` on the job of the merge writes it anew; if there is none, remove \
                    the file.",
            ),
        };
        Some(Finding::warning(Check::Sentinels, file.clone(), message).todo(todo))
    };
    let found: Vec<Finding> = facts.sentinels.iter().filter_map(judge).collect();
    if !found.is_empty() {
        return found;
    }
    let said = match facts.sentinels.len() {
        0 => "no merge has stopped at a conflict".to_owned(),
        1 => "1 merge has stopped at a conflict, and its job is there".to_owned(),
        count => format!("{count} merges have stopped at conflicts, and their jobs are there"),
    };
    vec![Finding::fine(Check::Sentinels, said)]
}
