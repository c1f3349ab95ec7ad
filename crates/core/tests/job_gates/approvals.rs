//! Approvals: waiting for a person, and what the person says.

use tidewheel_core::job::{
    Approval, ApprovalState, Brief, By, JobStatus, Metadata, Record, WaitKind, approve, reject,
};

use crate::world::{Job, at, id, job, names, scene};

fn pending() -> Approval {
    Approval::pending("enqueuer", at(0))
}

fn record() -> Record {
    let mut record = Record::new(id("J1"), at(0));
    record.status = JobStatus::WaitingOnApproval;
    record.schedule.approval = Some(pending());
    record
}

const ANNA: By<'static> = By { actor: "anna", at: tidewheel_core::time::Timestamp::from_millis(7_000) };

#[test]
fn f_53_a_pending_approval_is_waited_for() {
    let mut scene = scene([job("x").approval(pending())]);
    let settled = scene.settle();
    assert_eq!(scene.status("x"), JobStatus::WaitingOnApproval);
    assert_eq!(scene.wait("x"), Some((WaitKind::Approval, "awaiting human approval")));
    assert!(!settled.watches && settled.wake_at.is_none(), "the person tells us");
}

#[test]
fn f_55_an_approval_is_stamped_and_the_job_starts_in_the_next_pass() {
    let mut record = record();
    record.schedule.approval.as_mut().unwrap().reason = Some("why not".into());
    let event = approve(&mut record, ANNA).unwrap();
    let approval = record.schedule.approval.clone().unwrap();
    assert_eq!(approval.state, ApprovalState::Approved);
    assert_eq!((approval.decided_at, approval.decided_by.as_deref()), (Some(ANNA.at), Some("anna")));
    assert_eq!(approval.reason, None);
    assert_eq!(approval.requested_by.as_deref(), Some("enqueuer"));
    assert_eq!(event.at, ANNA.at);
    record.child_args = vec!["true".into()];
    let mut scene = scene([Job(Brief::from(&record))]);
    assert_eq!(names(&scene.settle().starts), ["J1"]);
}

#[test]
fn f_56_a_rejection_ends_the_job_with_its_reason() {
    for (reason, detail, kept) in [
        (Some("not today"), "not today", Some("not today")),
        (None, "approval rejected", None),
        (Some("  "), "approval rejected", None),
    ] {
        let mut record = record();
        let (outcome, _) = reject(&mut record, reason, ANNA).unwrap();
        assert_eq!(record.status, JobStatus::BlockedByApproval);
        assert_eq!((record.exit_code, record.finished_at), (Some(10), Some(ANNA.at)));
        assert_eq!(record.outcome_path.as_deref(), Some(".tidewheel/jobs/J1/outcome.json"));
        let wait = record.schedule.wait_reason.clone().unwrap();
        assert_eq!((wait.kind, wait.detail.as_str()), (WaitKind::Approval, detail));
        let approval = record.schedule.approval.clone().unwrap();
        assert_eq!((approval.state, approval.reason.as_deref()), (ApprovalState::Rejected, kept));
        assert_eq!((outcome.exit_code, outcome.status), (Some(10), JobStatus::BlockedByApproval));
    }
}

#[test]
fn f_58_what_cannot_be_approved_says_why_and_stays_as_it_is() {
    let with = |change: &dyn Fn(&mut Record)| {
        let mut record = record();
        change(&mut record);
        record
    };
    let decided = |state| move |record: &mut Record| record.schedule.approval.as_mut().unwrap().state = state;
    for (before, message) in [
        (with(&|r| r.schedule.approval = None), "job J1 is not configured for approval gating"),
        (
            with(&|r| r.schedule.approval.as_mut().unwrap().required = false),
            "job J1 is not configured for approval gating",
        ),
        (with(&|r| r.status = JobStatus::Running), "job J1 is running"),
        (with(&|r| r.status = JobStatus::Succeeded), "job J1 is terminal (succeeded)"),
        (with(&decided(ApprovalState::Approved)), "job J1 is already approved"),
        (with(&decided(ApprovalState::Rejected)), "job J1 is already rejected"),
    ] {
        let mut after = before.clone();
        assert_eq!(approve(&mut after, ANNA).unwrap_err().to_string(), message);
        assert_eq!(reject(&mut after, None, ANNA).unwrap_err().to_string(), message);
        assert_eq!(after, before);
    }
}

#[test]
fn f_60_the_approval_comes_before_the_locks() {
    let mut scene = scene([
        job("holder").exclusive("k").status(JobStatus::Running),
        job("x").exclusive("k").approval(pending()),
    ]);
    scene.settle();
    assert_eq!(scene.status("x"), JobStatus::WaitingOnApproval);
    scene.change("x", |job| job.schedule.approval.as_mut().unwrap().state = ApprovalState::Approved);
    scene.settle();
    assert_eq!(scene.status("x"), JobStatus::WaitingOnLocks);
    assert_eq!(scene.job("x").schedule.waited_on, [WaitKind::Approval, WaitKind::Locks]);
}

#[test]
fn f_61_an_approval_that_is_not_required_is_ignored() {
    for state in ApprovalState::ALL {
        let mut scene = scene([job("x").approval(Approval { required: false, state: *state, ..pending() })]);
        assert_eq!(names(&scene.settle().starts), ["x"], "{state}");
    }
}

#[test]
fn f_62_a_rejection_in_a_record_that_still_waits_blocks_it() {
    for (reason, detail) in [(Some("no"), "no"), (None, "approval rejected")] {
        let rejected =
            Approval { state: ApprovalState::Rejected, reason: reason.map(str::to_owned), ..pending() };
        let mut scene = scene([job("x").approval(rejected), job("y").after("x")]);
        let settled = scene.settle();
        assert_eq!(scene.status("x"), JobStatus::BlockedByApproval);
        assert_eq!(scene.wait("x"), Some((WaitKind::Approval, detail)));
        assert_eq!(scene.job("x").exit_code, None);
        assert!(settled.outcomes.is_empty());
        assert_eq!(scene.detail("y"), "dependency failed for job x (blocked_by_approval)");
    }
}

#[test]
fn whoever_approves_a_job_that_its_policy_paused_gives_it_all_its_attempts_again() {
    let mut record = record();
    record.metadata.set(Metadata::PAUSED, false);
    record.metadata.set(Metadata::POLICY_ATTEMPT, 3);
    record.metadata.set(Metadata::STEP_STARTED_AT, at(1).to_string());
    approve(&mut record, ANNA).unwrap();
    assert_eq!(record.metadata.number(Metadata::POLICY_ATTEMPT), None);
    assert_eq!(record.metadata.get(Metadata::STEP_STARTED_AT), None);
}
