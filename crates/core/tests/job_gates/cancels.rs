//! Cancellations, and what came of a run.

use tidewheel_core::job::{Brief, Cleanup, JobStatus, Metadata, Record, RunResult, RunState, cancel};

use crate::world::{at, id, job, scene};

#[test]
fn i_86_and_87_what_is_active_can_be_cancelled() {
    for status in JobStatus::ALL.iter().filter(|status| status.is_active()) {
        let mut record = Record::new(id("J1"), at(0));
        record.status = *status;
        let (outcome, event) = cancel(&mut record, &Cleanup::Skipped, at(7)).unwrap();
        assert_eq!((record.status, record.exit_code), (JobStatus::Cancelled, Some(143)));
        assert_eq!(record.finished_at, Some(at(7)));
        assert_eq!(record.outcome_path.as_deref(), Some(".tidewheel/jobs/J1/outcome.json"));
        assert_eq!((outcome.status, outcome.exit_code), (JobStatus::Cancelled, Some(143)));
        assert_eq!(record.metadata.text(Metadata::NODE_OUTCOME), Some("cancelled"));
        assert_eq!(record.metadata.text(Metadata::CANCEL_CLEANUP_STATUS), Some("skipped"));
        assert_eq!(event.at, at(7));
        assert!(status.way_to(record.status).is_some());
    }
}

#[test]
fn i_88_what_is_over_cannot_be_cancelled() {
    for status in JobStatus::ALL.iter().filter(|status| status.is_terminal()) {
        let mut record = Record::new(id("J1"), at(0));
        record.status = *status;
        let before = record.clone();
        let error = cancel(&mut record, &Cleanup::Done, at(7)).unwrap_err();
        assert_eq!(error.to_string(), "job J1 is not active");
        assert_eq!(record, before);
    }
}

#[test]
fn i_89_a_worktree_that_is_gone_is_forgotten() {
    for (cleanup, path, error) in [
        (Cleanup::Done, None, None),
        (Cleanup::Skipped, Some("x"), None),
        (Cleanup::Degraded("busy".into()), Some("x"), Some("busy")),
    ] {
        let mut record = Record::new(id("J1"), at(0));
        record.metadata.set(Metadata::WORKTREE_PATH, "x");
        cancel(&mut record, &cleanup, at(7)).unwrap();
        assert_eq!(record.metadata.text(Metadata::WORKTREE_PATH), path);
        assert_eq!(record.metadata.text(Metadata::CANCEL_CLEANUP_ERROR), error);
    }
}

#[test]
fn i_91_what_depends_on_a_cancelled_job_is_blocked_in_the_next_pass() {
    let mut scene = scene([job("J1").status(JobStatus::Cancelled), job("x").after("J1")]);
    scene.settle();
    assert_eq!(scene.detail("x"), "dependency failed for job J1 (cancelled)");
}

#[test]
fn l_132_the_result_of_a_run_is_that_of_its_jobs_and_what_was_skipped_changes_nothing() {
    use JobStatus::{BlockedByApproval, BlockedByDependency, Cancelled, Failed, Running, Skipped, Succeeded};
    for (statuses, state, exit_code) in [
        (vec![Succeeded, Skipped], RunState::Succeeded, Some(0)),
        (vec![Skipped], RunState::Succeeded, Some(0)),
        (vec![Succeeded, Failed, BlockedByDependency], RunState::Failed, Some(1)),
        (vec![Cancelled, BlockedByApproval], RunState::Failed, Some(1)),
        (vec![Succeeded, BlockedByDependency], RunState::Blocked, Some(10)),
        (vec![BlockedByApproval, Skipped], RunState::Blocked, Some(10)),
        (vec![Failed, Running], RunState::Active, None),
    ] {
        let jobs: Vec<Brief> = statuses
            .iter()
            .enumerate()
            .map(|(index, status)| job(&format!("j{index}")).status(*status).0)
            .collect();
        let result = RunResult::of(&jobs);
        assert_eq!((result.state(), result.exit_code()), (state, exit_code), "{statuses:?}");
    }
    let open = [job("a").status(JobStatus::WaitingOnApproval).0, job("b").status(Failed).0];
    let result = RunResult::of(&open);
    assert_eq!((result.exit_code(), result.waiting_on_approval), (None, vec![id("a")]));
    let goes_back =
        job("a").status(Failed).with(|job| job.goes_back = tidewheel_core::job::NodeId::new("n").ok());
    assert_eq!(RunResult::of(&[goes_back.0]).state(), RunState::Active);
}
