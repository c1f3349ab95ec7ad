//! The gate of a pinned head: a branch has to stand where it stood. It never blocks a job for good.

use super::verdict::{Verdict, Wait};
use super::view::View;
use crate::job::id::Branch;
use crate::job::question::{Answer, Question};
use crate::job::schedule::WaitKind;
use crate::job::status::JobStatus;

/// Says whether the branch of a job stands where it has to.
pub(in crate::job) fn judge(job: usize, view: &View<'_>) -> Verdict {
    let Some(pinned) = &view.jobs[job].schedule.pinned_head else { return Verdict::Open };
    if let Ok(branch) = Branch::new(&pinned.branch) {
        let question = Question::Head(branch);
        match view.facts.get(&question) {
            None => return Verdict::Ask(vec![question]),
            Some(Answer::Text(Some(oid))) if *oid == pinned.oid => return Verdict::Open,
            // A branch that is gone, or of which nobody could find out anything, does not stand there.
            Some(Answer::Text(_) | Answer::Yes | Answer::No | Answer::Failed(_)) => {}
        }
    }
    let detail = format!("pinned head mismatch on {}", pinned.branch);
    Wait::new(JobStatus::WaitingOnDeps, WaitKind::PinnedHead, detail).watching()
}
