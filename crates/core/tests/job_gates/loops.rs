//! Loops: a node that failed goes back to one before it.

use tidewheel_core::job::{
    AfterPolicy, Brief, Cause, Cleanup, Ended, Finished, GoBack, JobStatus, Loop, ManifestNode, Metadata,
    NodeId, NodeOutcome, Record, Retry, Shared, finish, reset, rewind, start,
};
use tidewheel_core::policy::{Backoff, Policy};

use crate::finishing::node;
use crate::world::{Job, at, id, job, names, scene};

fn looping(policy: &Policy, retry: Option<(&str, u32)>) -> ManifestNode {
    ManifestNode {
        loops: vec![Loop { on: NodeOutcome::Failed, to: NodeId::new("build").unwrap() }],
        retry: retry.map(|(mode, budget)| Retry { mode: mode.into(), budget }),
        ..node(policy)
    }
}

fn attempt(record: &mut Record, node: &ManifestNode, ended: &Ended) -> Finished {
    start(record, None, ended.at);
    finish(record, Some(node), None, ended, &mut Shared::default())
}

fn again(record: &mut Record) {
    let cause = Cause { by: "test", is_loop: true, not_before: None, asks_first: None, at: at(50) };
    reset(record, &Cleanup::Skipped, cause);
}

#[test]
fn a_loop_is_taken_as_often_as_its_budget_says_and_then_the_job_is_blocked() {
    for (retry, budget) in [(Some(("on_failure", 2)), 2), (None, 1), (Some(("until_gate", 0)), 0)] {
        let node = looping(&Policy::new(), retry);
        let mut record = Record::new(id("test"), at(0));
        for round in 1..=budget {
            let finished = attempt(&mut record, &node, &Ended::exited(7, at(20)));
            assert_eq!((record.status, record.exit_code), (JobStatus::Failed, Some(7)));
            let to = NodeId::new("build").unwrap();
            assert_eq!(finished.go_back, Some(GoBack { to: vec![to], not_before: None }), "round {round}");
            assert_eq!(Brief::from(&record).goes_back, NodeId::new("build").ok());
            again(&mut record);
            assert_eq!(Brief::from(&record).goes_back, None);
            assert_eq!(record.metadata.number(Metadata::LOOP_COUNT), Some(round));
        }
        let finished = attempt(&mut record, &node, &Ended::exited(7, at(20)));
        assert_eq!((finished.go_back, record.status), (None, JobStatus::BlockedByDependency));
        assert_eq!(record.exit_code, Some(10));
        let summary = finished.outcome.unwrap().summary.unwrap();
        assert_eq!(summary, format!("failed on attempt {}; retry budget exhausted ({budget})", budget + 1));
    }
}

#[test]
fn m_139_a_stop_condition_counts_its_attempts() {
    let gate = |retry| ManifestNode {
        uses: "control.gate.stop_condition".into(),
        loops: Vec::new(),
        ..looping(&Policy::new(), retry)
    };
    let at_attempt = |number: u32| {
        let mut record = Record::new(id("stop"), at(0));
        record.metadata.set(Metadata::NODE_ATTEMPT, number);
        record
    };
    let mut third = at_attempt(3);
    let finished = attempt(&mut third, &gate(Some(("until_gate", 1))), &Ended::exited(7, at(20)));
    assert_eq!((third.status, third.exit_code), (JobStatus::BlockedByDependency, Some(10)));
    assert_eq!(
        finished.outcome.unwrap().summary.as_deref(),
        Some("stop-condition failed on attempt 3; retry budget exhausted (1)")
    );
    let mut second = at_attempt(2);
    attempt(&mut second, &gate(Some(("until_gate", 1))), &Ended::exited(7, at(20)));
    assert_eq!((second.status, second.exit_code), (JobStatus::Failed, Some(7)));
}

#[test]
fn the_attempts_of_the_policy_come_before_the_loop_and_begin_again_after_it() {
    let node = looping(&Policy::new().max_retries(1).backoff(Backoff::Fixed).base_delay("5s"), None);
    let mut record = Record::new(id("test"), at(0));
    let failed = Ended::exited(7, at(20));
    assert_eq!(attempt(&mut record, &node, &failed).go_back, None);
    let finished = attempt(&mut record, &node, &failed);
    assert_eq!(finished.go_back.unwrap().not_before, Some(at(25)), "a loop waits as a retry does");
    again(&mut record);
    attempt(&mut record, &node, &failed);
    assert_eq!(record.status, JobStatus::Queued);
    attempt(&mut record, &node, &failed);
    assert_eq!(record.status, JobStatus::BlockedByDependency);
    assert_eq!(record.metadata.number(Metadata::NODE_ATTEMPT), Some(4));
}

#[test]
fn other_outcomes_have_their_loops_too() {
    let mut node = looping(&Policy::new(), None);
    node.loops = vec![Loop { on: NodeOutcome::Blocked, to: NodeId::new("build").unwrap() }];
    let mut record = Record::new(id("test"), at(0));
    assert_eq!(attempt(&mut record, &node, &Ended::exited(7, at(20))).go_back, None);
    assert_eq!(record.status, JobStatus::Failed);
    let mut record = Record::new(id("test"), at(0));
    assert!(attempt(&mut record, &node, &Ended::blocked("x", at(20))).go_back.is_some());
    again(&mut record);
    assert!(attempt(&mut record, &node, &Ended::blocked("x", at(20))).go_back.is_none());
}

#[test]
fn a_node_that_never_retries_does_not_go_back() {
    let mut record = Record::new(id("test"), at(0));
    let finished =
        attempt(&mut record, &looping(&Policy::new(), Some(("never", 3))), &Ended::exited(7, at(20)));
    assert_eq!((finished.go_back, record.status), (None, JobStatus::Failed));
}

#[test]
fn a_person_who_retries_gives_the_loop_its_budget_back() {
    let mut record = Record::new(id("test"), at(0));
    record.metadata.set(Metadata::LOOP_COUNT, 1);
    let cause = Cause { by: "anna", is_loop: false, not_before: None, asks_first: None, at: at(50) };
    reset(&mut record, &Cleanup::Skipped, cause);
    assert_eq!(record.metadata.number(Metadata::LOOP_COUNT), None);
}

#[test]
fn nobody_takes_a_job_that_will_be_rewound_for_failed() {
    let mut record = Record::new(id("test"), at(0));
    attempt(&mut record, &looping(&Policy::new(), None), &Ended::exited(7, at(20)));
    let mut scene = scene([
        job("build").status(JobStatus::Succeeded),
        Job(Brief::from(&record)).after("build"),
        job("handler").after_with("test", AfterPolicy::Failed),
        job("next").after("test"),
        job("beside").after("build").status(JobStatus::Running),
    ]);
    let settled = scene.settle();
    assert_eq!(names(&settled.loops), ["test"]);
    assert!(settled.starts.is_empty());
    for name in ["handler", "next"] {
        assert_eq!(scene.detail(name), "waiting on job test");
    }
    let error = rewind(&scene.jobs, &id("build")).unwrap_err();
    assert!(error.to_string().ends_with("beside (running)"), "it goes back when that one has ended");
    scene.set("beside", JobStatus::Succeeded);
    let plan = rewind(&scene.jobs, &id("build")).unwrap();
    assert_eq!(names(&plan.set), ["build", "test", "handler", "next", "beside"]);
}

#[test]
fn the_root_of_a_loop_is_due_when_the_loop_says() {
    let mut record = Record::new(id("build"), at(0));
    start(&mut record, None, at(1));
    let cause = Cause { by: "test", is_loop: true, not_before: Some(at(99)), asks_first: None, at: at(50) };
    reset(&mut record, &Cleanup::Skipped, cause);
    assert_eq!(record.schedule.not_before, Some(at(99)));
}
