//! What follows the end of an attempt.

use std::collections::BTreeMap;

use serde_json::json;
use tidewheel_core::decide::ReasonCode;
use tidewheel_core::job::{
    ApprovalState, Artifact, Brief, By, Ended, Finished, JobEventKind, JobStatus, Liveness, ManifestNode,
    Metadata, NodeOutcome, Record, Shared, WaitKind, approve, finish, reject, start,
};
use tidewheel_core::policy::{Backoff, CircuitBreaker, Kind, OnFailure, Policy};
use tidewheel_core::time::Span;

use crate::world::{Job, at, custom, id, names, scene};

pub(crate) fn node(policy: &Policy) -> ManifestNode {
    ManifestNode {
        job_id: id("a"),
        kind: Kind::Shell,
        uses: "cap.env.shell.command.run".into(),
        args: serde_json::Map::new(),
        errexit: false,
        gates: Vec::new(),
        produces: BTreeMap::new(),
        policy: policy.to_record(),
        rule: None,
        loops: Vec::new(),
        retry: None,
        routes: Vec::new(),
        schemas: BTreeMap::new(),
        cuts: BTreeMap::new(),
    }
}

fn running() -> Record {
    let mut record = Record::new(id("a"), at(0));
    record.child_args = vec!["true".into()];
    record.pid = Some(7);
    start(&mut record, None, at(10));
    record.pid = Some(7);
    record
}

fn end(record: &mut Record, policy: &Policy, ended: &Ended) -> Finished {
    let from = record.status;
    let finished = finish(record, Some(&node(policy)), Some(at(0)), ended, &mut Shared::default());
    assert!(from.way_to(record.status).is_some(), "{from} to {}", record.status);
    finished
}

fn decisions(finished: &Finished) -> Vec<ReasonCode> {
    let decision = |event: &JobEventKind| match event {
        JobEventKind::AttemptFailed { decision, .. } => Some(decision.reason),
        _ => None,
    };
    finished.events.iter().filter_map(|event| decision(&event.event)).collect()
}

#[test]
fn m_136_an_exit_code_is_the_outcome() {
    let mut record = running();
    let finished = finish(&mut record, None, None, &Ended::exited(0, at(20)), &mut Shared::default());
    assert_eq!((record.status, record.exit_code), (JobStatus::Succeeded, Some(0)));
    assert_eq!(record.finished_at, Some(at(20)));
    assert_eq!(record.outcome_path.as_deref(), Some(".tidewheel/jobs/a/outcome.json"));
    assert_eq!(record.metadata.text(Metadata::NODE_OUTCOME), Some("succeeded"));
    assert_eq!(finished.outcome.unwrap().attempt, 1);

    let mut record = running();
    let finished = end(&mut record, &Policy::new(), &Ended::exited(9, at(20)));
    assert_eq!((record.status, record.exit_code), (JobStatus::Failed, Some(9)));
    assert_eq!(record.metadata.text(Metadata::NODE_OUTCOME), Some("failed"));
    assert_eq!(decisions(&finished), [ReasonCode::MaxRetriesReached]);
    assert_eq!(finished.outcome.unwrap().summary.as_deref(), Some("exit code 9"));
}

#[test]
fn other_ends_have_their_codes() {
    for (ended, status, exit_code, outcome) in [
        (Ended::timed_out(at(20)), JobStatus::Failed, 124, "failed"),
        (Ended::cancelled(at(20)), JobStatus::Cancelled, 143, "cancelled"),
        (Ended::blocked("a conflict", at(20)), JobStatus::BlockedByDependency, 10, "blocked"),
        (Ended::lost(Liveness::NotRunning, at(20)), JobStatus::Failed, 1, "failed"),
    ] {
        let mut record = running();
        let finished = end(&mut record, &Policy::new(), &ended);
        assert_eq!((record.status, record.exit_code), (status, Some(exit_code)));
        assert_eq!(record.metadata.text(Metadata::NODE_OUTCOME), Some(outcome));
        let written = finished.outcome.unwrap();
        assert_eq!(
            (written.status, written.exit_code, written.finished_at),
            (status, Some(exit_code), at(20))
        );
    }
}

#[test]
fn n_155_a_lost_supervisor_is_a_failure_that_says_how_it_is_known() {
    for (why, word) in
        [(Liveness::NotRunning, "stale_not_running"), (Liveness::MissingPid, "stale_missing_pid")]
    {
        let mut record = running();
        end(&mut record, &Policy::new(), &Ended::lost(why, at(20)));
        assert_eq!(record.metadata.text(Metadata::LIVENESS), Some(word));
        let mut record = running();
        let policy = Policy::new().max_retries(1).retryable_errors(["lost"]);
        end(&mut record, &policy, &Ended::lost(why, at(20)));
        assert_eq!(record.status, JobStatus::Queued, "its policy may retry it");
    }
}

#[test]
fn a_retry_waits_in_the_queue_for_its_time_and_counts() {
    let policy = Policy::new().max_retries(2).backoff(Backoff::Fixed).base_delay("5s");
    let mut record = running();
    let finished = end(&mut record, &policy, &Ended::exited(9, at(20)));
    assert_eq!((finished.outcome.is_none(), record.status), (true, JobStatus::Queued));
    assert_eq!((record.exit_code, record.finished_at, record.pid), (None, None, None));
    assert_eq!(record.schedule.not_before, Some(at(25)));
    let wait = record.schedule.wait_reason.clone().unwrap();
    assert_eq!(
        (wait.kind, wait.detail.as_str()),
        (WaitKind::Schedule, "retry 1 of 2 at 2026-02-01T10:00:25Z")
    );
    assert_eq!(decisions(&finished), [ReasonCode::RetryScheduled]);

    let mut scene = scene([Job(Brief::from(&record))]);
    scene.now = at(21);
    assert_eq!(scene.settle().wake_at, Some(at(25)));
    scene.now = at(25);
    assert_eq!(names(&scene.settle().starts), ["a"]);

    start(&mut record, None, at(25));
    assert_eq!(record.metadata.number(Metadata::NODE_ATTEMPT), Some(2));
    end(&mut record, &policy, &Ended::exited(9, at(30)));
    assert_eq!(record.schedule.wait_reason.as_ref().unwrap().detail, "retry 2 of 2 at 2026-02-01T10:00:35Z");
    start(&mut record, None, at(35));
    let finished = end(&mut record, &policy, &Ended::exited(9, at(40)));
    assert_eq!(record.status, JobStatus::Failed);
    assert_eq!(finished.outcome.unwrap().attempt, 3);
}

#[test]
fn only_what_the_policy_retries_is_retried() {
    let policy = || Policy::new().max_retries(3);
    for (policy, ended, retried) in [
        (policy().retryable_errors([9]), Ended::exited(9, at(20)), true),
        (policy().retryable_errors([9]), Ended::exited(8, at(20)), false),
        (policy().non_retryable_errors(["timeout"]), Ended::timed_out(at(20)), false),
        (policy().total_timeout("5s"), Ended::exited(9, at(20)), false),
        (policy().deadline("20s"), Ended::exited(9, at(20)), false),
        (policy().deadline("21s"), Ended::exited(9, at(20)), true),
        (policy(), Ended::blocked("wait", at(20)), false),
        (policy(), Ended::cancelled(at(20)), false),
    ] {
        let mut record = running();
        end(&mut record, &policy, &ended);
        assert_eq!(record.status == JobStatus::Queued, retried, "{ended:?} under {policy:?}");
    }
}

#[test]
fn a_retry_budget_is_shared_and_runs_out() {
    let policy = Policy::new().max_retries(3).retry_budget("api", 1, Span::from_secs(3_600));
    let mut shared = Shared::default();
    let mut statuses = Vec::new();
    for _ in 0..2 {
        let mut record = running();
        finish(&mut record, Some(&node(&policy)), None, &Ended::exited(9, at(20)), &mut shared);
        statuses.push(record.status);
    }
    assert_eq!(statuses, [JobStatus::Queued, JobStatus::Failed]);
    assert_eq!(shared.take_changed().len(), 1);
}

#[test]
fn what_failed_for_good_is_what_its_policy_says() {
    for (on_failure, status, outcome) in [
        (OnFailure::Halt, JobStatus::Failed, "failed"),
        (OnFailure::Skip, JobStatus::Skipped, "skipped"),
        (OnFailure::DeadLetter, JobStatus::Failed, "failed"),
    ] {
        let mut record = running();
        end(&mut record, &Policy::new().on_failure(on_failure), &Ended::exited(9, at(20)));
        assert_eq!((record.status, record.exit_code), (status, Some(9)));
        assert_eq!(record.metadata.text(Metadata::NODE_OUTCOME), Some(outcome));
        let letter = (on_failure == OnFailure::DeadLetter).then_some("exit code 9");
        assert_eq!(record.metadata.text(Metadata::DEAD_LETTER), letter);
    }
}

fn with_fallback(fallback: &serde_json::Value) -> ManifestNode {
    let record = json!({"v": 1, "fallback": fallback}).to_string();
    ManifestNode {
        policy: record,
        produces: BTreeMap::from([(NodeOutcome::Succeeded, vec![custom("k")])]),
        ..node(&Policy::new())
    }
}

#[test]
fn the_value_of_a_fallback_is_the_result() {
    let node = with_fallback(&json!({"value": {"text": "none"}}));
    node.policy().unwrap();
    let mut record = running();
    let finished = finish(&mut record, Some(&node), None, &Ended::exited(9, at(20)), &mut Shared::default());
    assert_eq!((record.status, record.exit_code), (JobStatus::Succeeded, Some(0)));
    assert_eq!(finished.marks, [custom("k")]);
    assert_eq!(finished.payload, Some(json!({"text": "none"})));
}

#[test]
fn other_arguments_of_a_fallback_get_one_more_start() {
    let node = with_fallback(&json!({"overrides": {"args": {"script": "true"}}}));
    node.policy().unwrap();
    let mut record = running();
    let mut shared = Shared::default();
    let finished = finish(&mut record, Some(&node), None, &Ended::exited(9, at(20)), &mut shared);
    assert_eq!((record.status, finished.outcome), (JobStatus::Queued, None));
    assert!(record.metadata.get(Metadata::FALLBACK).is_some());
    let mut scene = scene([Job(Brief::from(&record))]);
    scene.now = at(20);
    assert_eq!(names(&scene.settle().starts), ["a"], "it is due at once");
    start(&mut record, None, at(20));
    finish(&mut record, Some(&node), None, &Ended::exited(8, at(30)), &mut shared);
    assert_eq!((record.status, record.exit_code), (JobStatus::Failed, Some(8)), "there is no second one");
}

#[test]
fn a_pause_waits_for_a_person_who_gives_it_all_its_attempts_again_or_rejects_it() {
    let policy = Policy::new().max_retries(1).on_failure(OnFailure::Pause);
    let mut record = running();
    end(&mut record, &policy, &Ended::exited(9, at(20)));
    start(&mut record, None, at(20));
    let finished = end(&mut record, &policy, &Ended::exited(9, at(21)));
    assert_eq!((record.status, finished.outcome), (JobStatus::WaitingOnApproval, None));
    let detail = "paused after a failure: exit code 9";
    assert_eq!(record.schedule.wait_reason.as_ref().unwrap().detail, detail);
    let mut before = scene([Job(Brief::from(&record))]);
    before.settle();
    assert_eq!((before.status("a"), before.detail("a")), (JobStatus::WaitingOnApproval, detail));

    let mut approved = record.clone();
    approve(&mut approved, By { actor: "anna", at: at(30) }).unwrap();
    let mut after = scene([Job(Brief::from(&approved))]);
    assert_eq!(names(&after.settle().starts), ["a"]);
    start(&mut approved, None, at(30));
    end(&mut approved, &policy, &Ended::exited(9, at(31)));
    assert_eq!(approved.status, JobStatus::Queued, "it has its retry again");
    start(&mut approved, None, at(31));
    end(&mut approved, &policy, &Ended::exited(9, at(32)));
    assert_eq!(approved.status, JobStatus::WaitingOnApproval);
    assert_eq!(approved.schedule.approval.as_ref().unwrap().state, ApprovalState::Pending);

    reject(&mut record, None, By { actor: "anna", at: at(30) }).unwrap();
    assert_eq!(record.status, JobStatus::BlockedByApproval);
}

#[test]
fn c_38_markers_are_set_by_a_success_and_taken_back_by_anything_else() {
    let made = vec![custom("k"), Artifact::TargetBranch { name: "main".into() }];
    for (ended, marks, unmarks) in [
        (Ended::exited(0, at(20)), vec![custom("k")], vec![]),
        (Ended::exited(1, at(20)), vec![], vec![custom("k")]),
        (Ended::cancelled(at(20)), vec![], vec![custom("k")]),
    ] {
        let mut record = running();
        record.schedule.artifacts.clone_from(&made);
        let finished = finish(&mut record, None, None, &ended, &mut Shared::default());
        assert_eq!((finished.marks, finished.unmarks), (marks, unmarks));
    }
}

#[test]
fn what_a_node_makes_depends_on_how_it_ends() {
    let node = ManifestNode {
        produces: BTreeMap::from([
            (NodeOutcome::Succeeded, vec![custom("good")]),
            (NodeOutcome::Failed, vec![custom("bad")]),
        ]),
        ..node(&Policy::new())
    };
    let mut record = running();
    let finished = finish(&mut record, Some(&node), None, &Ended::exited(1, at(20)), &mut Shared::default());
    assert_eq!((finished.marks, finished.unmarks), (vec![custom("bad")], vec![custom("good")]));
    assert_eq!(finished.outcome.unwrap().artifacts, [custom("bad")]);
}

#[test]
fn a_retry_that_an_open_breaker_stops_waits_without_counting() {
    use tidewheel_core::job::Limits;
    let config = CircuitBreaker { failure_threshold: 1, ..CircuitBreaker::new("api") };
    let policy = Policy::new().max_retries(3).circuit_breaker(config.clone());
    let limits = Limits { breaker: Some(config), ..Limits::default() };
    let mut two = scene(["a", "b"].map(|name| crate::world::job(name).limits(limits.clone())));
    let settled = two.tick();
    let mut records: Vec<Record> = ["a", "b"]
        .map(|name| {
            let mut record = Record::new(id(name), at(0));
            record.schedule = two.job(name).schedule.clone();
            start(&mut record, settled.permits.get(&id(name)), two.now);
            record
        })
        .to_vec();
    for record in &mut records {
        finish(record, Some(&node(&policy)), None, &Ended::exited(9, two.now), &mut two.shared);
        assert_eq!(record.metadata.get(Metadata::BREAKER_PERMIT), None);
    }
    assert_eq!(records[0].metadata.number(Metadata::POLICY_ATTEMPT), Some(1));
    assert_eq!(records[1].metadata.number(Metadata::POLICY_ATTEMPT), Some(0), "it waits for the breaker");
    let detail = &records[1].schedule.wait_reason.as_ref().unwrap().detail;
    assert!(detail.starts_with("circuit breaker `api` is open until 2026-"), "{detail}");
}

#[test]
fn a_policy_that_cannot_be_read_allows_no_retry() {
    let broken = ManifestNode { policy: "{".into(), ..node(&Policy::new()) };
    let mut record = running();
    finish(&mut record, Some(&broken), None, &Ended::exited(9, at(20)), &mut Shared::default());
    assert_eq!(record.status, JobStatus::Failed);
}

/// A pass writes the events of an attempt before its record. Killed in between, it leaves a log from which the next pass
/// has to come to the same record, outcome and artifacts, however late it is.
#[test]
fn recovery_from_the_log_alone_repeats_every_decision_to_the_byte() {
    let words = |word: &'static str| Ended { code: word.into(), ..Ended::exited(124, at(20)) };
    let ends = [
        Ended::exited(0, at(20)),
        Ended::exited(9, at(20)),
        Ended::timed_out(at(20)),
        words("heartbeat"),
        Ended::lost(Liveness::NotRunning, at(20)),
        Ended::lost(Liveness::MissingPid, at(20)),
        Ended { non_retryable: true, ..Ended::exited(9, at(20)) },
        Ended {
            summary: Some("command.run failed (exit 9)".into()),
            complaint: Some("no: such file".into()),
            ..Ended::exited(9, at(20))
        },
        Ended { exit_code: None, ..Ended::exited(1, at(20)) },
        Ended::cancelled(at(20)),
        Ended::blocked("a conflict", at(20)),
    ];
    let retries = || Policy::new().max_retries(2).backoff(Backoff::Fixed).base_delay(Span::from_secs(10));
    let policies = [
        Policy::new(),
        retries(),
        retries().retryable_errors(["lost", "heartbeat", "timeout"]),
        retries().non_retryable_errors(["lost"]),
        Policy::new().on_failure(OnFailure::Skip),
        Policy::new().on_failure(OnFailure::Pause),
        Policy::new().on_failure(OnFailure::DeadLetter),
        Policy::new().fallback_value(json!({"safe": true})),
        retries().retry_budget("calls", 1, Span::from_secs(3_600)),
    ];
    for policy in &policies {
        for ended in &ends {
            let mut node = node(policy);
            node.produces.insert(NodeOutcome::Succeeded, vec![custom("k")]);
            let before = running();
            let (mut whole, mut shared) = (before.clone(), Shared::default());
            let finished = finish(&mut whole, Some(&node), Some(at(0)), ended, &mut shared);
            let text = serde_json::to_string(&finished.events).unwrap();
            let log: Vec<tidewheel_core::job::JobEvent> = serde_json::from_str(&text).unwrap();
            // A torn write may leave the first event alone.
            for length in 1..=log.len() {
                let told = Ended::of_log(&log[..length]).unwrap();
                let (mut again, mut shared_again) = (before.clone(), Shared::default());
                let repeated = finish(&mut again, Some(&node), Some(at(0)), &told, &mut shared_again);
                let what = format!("{ended:?} under {} after {length} events", policy.to_record());
                assert_eq!(again.to_json(), whole.to_json(), "{what}");
                assert_eq!(repeated, finished, "{what}");
                assert_eq!(shared_again.take_changed(), shared.clone().take_changed(), "{what}");
            }
        }
    }
}

#[test]
fn a_log_of_an_earlier_release_keeps_its_decision() {
    let policy = Policy::new().max_retries(1).retryable_errors(["lost"]);
    let mut record = running();
    let finished = end(&mut record, &policy, &Ended::lost(Liveness::NotRunning, at(20)));
    let mut text = serde_json::to_value(&finished.events).unwrap();
    text[0]["event"]["attempt_failed"].as_object_mut().unwrap().remove("error").unwrap();
    let log: Vec<tidewheel_core::job::JobEvent> = serde_json::from_value(text).unwrap();
    let mut again = running();
    end(&mut again, &policy, &Ended::of_log(&log).unwrap());
    assert_eq!(again.status, JobStatus::Queued, "the retry that was decided comes");
    assert_eq!(again.schedule.not_before, record.schedule.not_before);
}
