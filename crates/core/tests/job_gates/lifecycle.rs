//! Starts, and what never starts.

use tidewheel_core::job::{Brief, JobStatus, Metadata, Record, WaitKind, start, withdraw};

use crate::world::{at, id, job, names, scene};

#[test]
fn a_2_a_job_without_arguments_fails_with_an_outcome() {
    let mut scene = scene([job("missing-child-args").with(|job| job.is_runnable = false)]);
    let settled = scene.settle();
    assert_eq!(scene.status("missing-child-args"), JobStatus::Failed);
    assert_eq!(scene.job("missing-child-args").exit_code, Some(1));
    assert_eq!(scene.job("missing-child-args").finished_at, Some(scene.now));
    assert_eq!(scene.wait("missing-child-args"), Some((WaitKind::Dependencies, "missing child args")));
    assert_eq!(names(&settled.changed), ["missing-child-args"]);
    assert!(settled.starts.is_empty());
    assert_eq!(settled.outcomes.len(), 1);
    assert_eq!(settled.outcomes[0].exit_code, Some(1));

    let mut record = Record::new(id("missing-child-args"), at(0));
    record.take_over(scene.job("missing-child-args"));
    assert_eq!(record.outcome_path.as_deref(), Some(".tidewheel/jobs/missing-child-args/outcome.json"));
    assert_eq!(record.metadata.text(Metadata::NODE_OUTCOME), Some("failed"));
}

#[test]
fn a_3_missing_arguments_are_judged_last() {
    let broken = || job("x").with(|job| job.is_runnable = false);
    let held = job("holder").exclusive("k").status(JobStatus::Running);
    for (broken, others, expected) in [
        (broken().after("dep"), vec![job("dep").status(JobStatus::Running)], JobStatus::WaitingOnDeps),
        (broken().exclusive("k"), vec![held], JobStatus::WaitingOnLocks),
    ] {
        let mut scene = scene(others.into_iter().chain([broken]));
        scene.settle();
        assert_eq!(scene.status("x"), expected);
    }
    let mut full = scene([job("busy").status(JobStatus::Running), broken()]);
    full.capacity = 1;
    full.settle();
    assert_eq!((full.status("x"), full.wait("x").unwrap().0), (JobStatus::Queued, WaitKind::Capacity));
}

#[test]
fn what_depends_on_a_job_without_arguments_is_settled_in_the_same_pass() {
    use tidewheel_core::job::AfterPolicy;
    let mut scene = scene([
        job("a").with(|job| job.is_runnable = false),
        job("b").after("a"),
        job("c").after("b"),
        job("h").after_with("a", AfterPolicy::Failed),
    ]);
    let settled = scene.settle();
    assert_eq!(scene.detail("b"), "dependency failed for job a (failed)");
    assert_eq!(scene.detail("c"), "dependency failed for job b (blocked_by_dependency)");
    assert_eq!(names(&settled.starts), ["h"]);
}

#[test]
fn a_4_what_is_over_is_never_run_again() {
    let ends = JobStatus::ALL.iter().filter(|status| status.is_terminal());
    let mut scene = scene(ends.map(|status| job(&format!("is-{status}")).status(*status)));
    let settled = scene.settle();
    assert!(settled.changed.is_empty() && settled.starts.is_empty());
}

#[test]
fn a_5_without_jobs_nothing_is_asked_and_nothing_happens() {
    let mut empty = scene([]);
    assert_eq!(empty.settle(), tidewheel_core::job::Settled::default());
    assert!(empty.asked.is_empty());
}

#[test]
fn a_8_jobs_start_by_priority_then_in_the_order_in_which_they_were_enqueued_then_by_id() {
    use tidewheel_core::job::Limits;
    use tidewheel_core::policy::Priority;
    let with =
        |name: &str, priority| job(name).limits(Limits { priority: Some(priority), ..Limits::default() });
    let mut scene =
        scene([job("c"), job("b"), with("low", Priority::Low), job("a"), with("high", Priority::High)]);
    for name in ["a", "b"] {
        scene.change(name, |job| job.created_at = at(1));
    }
    assert_eq!(names(&scene.settle().starts), ["high", "c", "a", "b", "low"]);
}

#[test]
fn a_9_a_pass_in_which_nothing_happens_changes_nothing() {
    let mut scene = scene([
        job("holder").exclusive("k").status(JobStatus::Running),
        job("locked").exclusive("k"),
        job("later").after("holder"),
        job("slot"),
    ]);
    scene.capacity = 1;
    assert_eq!(names(&scene.settle().changed), ["later", "locked", "slot"]);
    assert_eq!(scene.wait("locked"), Some((WaitKind::Locks, "waiting on locks")));
    scene.now = at(1_010);
    let settled = scene.settle();
    assert!(settled.changed.is_empty(), "{:?}", settled.changed);
}

#[test]
fn a_9_a_record_that_says_already_what_it_waits_for_is_not_written_again() {
    use tidewheel_core::job::WaitReason;
    let waits = |name: &str, status, kind, detail: &str| {
        job(name).status(status).with(|job| job.schedule.wait_reason = Some(WaitReason::new(kind, detail)))
    };
    let mut scene = scene([
        job("holder").exclusive("k").status(JobStatus::Running),
        waits("locked", JobStatus::WaitingOnLocks, WaitKind::Locks, "waiting on locks").exclusive("k"),
        waits("later", JobStatus::WaitingOnDeps, WaitKind::Dependencies, "waiting on job holder")
            .after("holder"),
    ]);
    assert!(scene.settle().changed.is_empty());
}

#[test]
fn a_start_counts_attempts_and_clears_what_the_job_waited_for() {
    let mut record = Record::new(id("a"), at(0));
    record.schedule.not_before = Some(at(5));
    start(&mut record, None, at(10));
    assert_eq!((record.status, record.started_at), (JobStatus::Running, Some(at(10))));
    assert_eq!(record.metadata.number(Metadata::NODE_ATTEMPT), Some(1));
    assert_eq!(record.metadata.number(Metadata::POLICY_ATTEMPT), Some(0));
    assert_eq!(record.metadata.text(Metadata::STEP_STARTED_AT), Some("2026-02-01T10:00:10Z"));
    assert_eq!((&record.schedule.wait_reason, record.schedule.not_before), (&None, None));
    start(&mut record, None, at(20));
    assert_eq!(record.metadata.number(Metadata::NODE_ATTEMPT), Some(2));
    assert_eq!(record.metadata.text(Metadata::STEP_STARTED_AT), Some("2026-02-01T10:00:10Z"));
    assert_eq!(Brief::from(&record).attempt, 2);
}

#[test]
fn a_start_that_did_not_come_about_leaves_the_record_as_it_was() {
    let before = Record::new(id("a"), at(0));
    let mut record = before.clone();
    start(&mut record, None, at(10));
    let event =
        withdraw(&mut record, &before, &mut tidewheel_core::job::Shared::default(), "no binary", at(11));
    assert_eq!(record, before);
    assert_eq!(event.attempt, 1);
}
