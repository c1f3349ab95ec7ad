//! The gate of a person: where an approval is required, somebody has to give it.

use super::verdict::{Verdict, Wait};
use super::view::View;
use crate::job::schedule::{ApprovalState, WaitKind};
use crate::job::status::JobStatus;

/// Says whether a person let the job go on.
pub(in crate::job) fn judge(job: usize, view: &View<'_>) -> Verdict {
    let Some(approval) = view.jobs[job].schedule.approval.as_ref().filter(|approval| approval.required)
    else {
        return Verdict::Open;
    };
    let reason = approval.reason.as_deref().filter(|reason| !reason.trim().is_empty());
    match approval.state {
        ApprovalState::Approved => Verdict::Open,
        ApprovalState::Pending => {
            // Whoever asks may say why: a policy that lets failed work wait for a person does.
            let detail = reason.unwrap_or("awaiting human approval");
            Verdict::Wait(Wait::new(JobStatus::WaitingOnApproval, WaitKind::Approval, detail))
        }
        ApprovalState::Rejected => Verdict::end(
            JobStatus::BlockedByApproval,
            WaitKind::Approval,
            reason.unwrap_or("approval rejected"),
        ),
    }
}
