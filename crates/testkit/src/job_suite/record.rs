//! Records, outcomes and events: what was written comes back, and nothing else was changed.
#![expect(clippy::unwrap_used, reason = "a case that cannot be set up has failed")]

use tidewheel_core::job::{JobEvent, JobEventKind, JobOutcome, JobStatus, NodeOutcome, Record};
use tidewheel_core::time::Timestamp;
use tidewheel_store::jobs::{Batch, CancelRequest, Due, Removal};

use super::world::{World, job, job_id, names};

/// A record comes back, with what a later release added to it.
pub fn a_record_comes_back_with_what_nobody_knows(world: World) {
    let text = r#"{"id":"a","version":1,"status":"queued","created_at":"2026-02-01T12:00:00Z","tide":{"high":[1]},
        "schedule":{"moon":"full"},"metadata":{"x":null,"y":2}}"#;
    let mut record = Record::parse(text).unwrap();
    world.put(&[record.clone()]);
    record = world.other.record(&record.id).unwrap().unwrap();
    record.status = JobStatus::Failed;
    world.put(&[record.clone()]);
    let again = world.other.record(&record.id).unwrap().unwrap();
    assert_eq!(again.to_json(), record.to_json());
    let value: serde_json::Value = serde_json::from_str(&again.to_json()).unwrap();
    assert_eq!(value["tide"]["high"][0], 1);
    assert_eq!(value["schedule"]["moon"], "full");
    assert_eq!(value["metadata"]["y"], 2);
}

/// There is nothing where nothing was written, and asking makes nothing.
pub fn what_is_not_there_is_none(world: World) {
    let id = job_id("a");
    assert_eq!(world.store.record(&id).unwrap(), None);
    assert_eq!(world.store.outcome(&id).unwrap(), None);
    assert_eq!(world.store.events(&id).unwrap(), []);
    assert_eq!(world.store.manifest(&super::run_id("r")).unwrap(), None);
    assert!(!world.store.is_asked_to_cancel(&id).unwrap());
    assert_eq!(world.store.due().unwrap(), Due::default());
    assert!(world.store.take_run_lock(&id).is_err());
    assert!(world.store.ask_to_cancel(&id, by_me(1)).is_err());
    assert!(world.store.write_process(&job("a")).is_err());
    assert_eq!(names(&world.store.jobs().unwrap()), [""; 0]);
    assert_eq!(names(&world.all()), [""; 0]);
}

/// Outcome and events are written with the record, and events are added.
pub fn outcome_and_events_come_back(world: World) {
    let mut record = job("a");
    world.put(&[record.clone()]);
    let event = |attempt, reason: &str| JobEvent {
        at: Timestamp::from_millis(5),
        attempt,
        event: JobEventKind::Withdrawn { reason: reason.to_owned() },
    };
    let outcome = outcome("a", 2);
    record.status = JobStatus::Succeeded;
    world.commit(Batch {
        records: vec![record.clone()],
        events: vec![(record.id.clone(), event(1, "a\nb")), (record.id.clone(), event(2, "c"))],
        outcomes: vec![outcome.clone()],
        ..Batch::default()
    });
    world.commit(Batch { events: vec![(record.id.clone(), event(3, "d"))], ..Batch::default() });
    assert_eq!(world.other.outcome(&record.id).unwrap(), Some(outcome));
    assert_eq!(world.other.events(&record.id).unwrap(), [event(1, "a\nb"), event(2, "c"), event(3, "d")]);
    assert_eq!(world.other.record(&record.id).unwrap().unwrap().status, JobStatus::Succeeded);
}

/// What a supervisor writes without a turn is seen by everybody.
pub fn what_a_supervisor_writes_is_seen(world: World) {
    let mut record = job("a");
    record.status = JobStatus::Running;
    world.put(&[record.clone()]);
    assert_eq!(world.active().briefs[&record.id].started_at, None);
    record.started_at = Some(Timestamp::from_millis(1_700_000_000_001));
    record.pid = Some(7);
    world.store.write_process(&record).unwrap();
    assert_eq!(world.active().briefs[&record.id].started_at, record.started_at);
    assert_eq!(world.other.jobs().unwrap().briefs[&record.id].started_at, record.started_at);
    assert_eq!(world.other.record(&record.id).unwrap().unwrap().pid, Some(7));
    world.store.write_ended(&outcome("a", 1)).unwrap();
    assert_eq!(world.other.ended(&record.id).unwrap(), Some(outcome("a", 1)));
    assert_eq!(world.other.outcome(&record.id).unwrap(), None, "it is not on record yet");
}

/// A job that starts again has nothing left of the last time but its events.
pub fn a_rewound_job_has_no_outcome_and_nobody_asks_it_to_end(world: World) {
    let mut record = job("a");
    record.status = JobStatus::Failed;
    world.commit(Batch {
        records: vec![record.clone()],
        outcomes: vec![outcome("a", 1)],
        ..Batch::default()
    });
    world.store.ask_to_cancel(&record.id, by_me(3)).unwrap();
    assert!(world.other.is_asked_to_cancel(&record.id).unwrap());
    record.status = JobStatus::Queued;
    world.commit(Batch {
        records: vec![record.clone()],
        rewound: vec![record.id.clone()],
        ..Batch::default()
    });
    assert!(!world.other.is_asked_to_cancel(&record.id).unwrap());
    assert_eq!(world.other.outcome(&record.id).unwrap(), None);
    assert_eq!(names(&world.active()), ["a"]);
}

/// A removed job is gone, and so is a removed run; the name can be used again.
pub fn a_removed_job_is_gone(world: World) {
    world.enqueue("r1", &["a", "b"]);
    let (gone, left) = (job_id("wf-r1-a"), job_id("wf-r1-b"));
    world.remove(None, std::slice::from_ref(&gone));
    assert_eq!(world.other.record(&gone).unwrap(), None);
    assert_eq!(names(&world.all()), ["wf-r1-b"]);
    assert_eq!(names(&world.other.jobs().unwrap()), ["wf-r1-b"]);
    world.remove(Some("r1"), &[left]);
    assert_eq!(world.other.manifest(&super::run_id("r1")).unwrap(), None);
    assert_eq!(names(&world.all()), [""; 0]);
    world.put(&[job(gone.as_str())]);
    assert_eq!(names(&world.active()), ["wf-r1-a"]);
    world.remove(None, &[job_id("never-was")]);
}

/// What was written with the last turn counts, and what limits share has names of any kind.
pub fn shared_states_and_due_times_come_back(world: World) {
    let long = "x".repeat(5_000);
    let names = ["rate/a", "rate/b", "../../x", "", long.as_str()];
    let shared = |n: usize| names.map(|name| (name.to_owned(), serde_json::json!([n, name]))).to_vec();
    world.commit(Batch { shared: shared(1), ..Batch::default() });
    world.commit(Batch { shared: shared(2)[..2].to_vec(), ..Batch::default() });
    let mut turn = world.other.turn().unwrap();
    for (at, name) in names.iter().enumerate() {
        let expected = serde_json::json!([if at < 2 { 2 } else { 1 }, name]);
        assert_eq!(turn.shared(name).unwrap(), Some(expected));
    }
    assert_eq!(turn.shared("rate").unwrap(), None);
    for due in [
        Due { at: Some(Timestamp::from_nanos(1_700_000_000_000_000_001)), watches: true, runs: false },
        Due { at: None, watches: false, runs: true },
    ] {
        turn.set_due(due).unwrap();
        assert_eq!(world.store.due().unwrap(), due);
    }
}

/// An error of one job is its own.
pub fn one_job_that_cannot_be_written_does_not_stop_the_others(world: World) {
    world.put(&[job("a")]);
    let mut turn = world.store.turn().unwrap();
    let batch = Batch { records: vec![job("b")], rewound: vec![job_id("never-was")], ..Batch::default() };
    let failed = turn.commit(batch).unwrap();
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0].0, job_id("never-was"));
    assert_eq!(names(&turn.active().unwrap()), ["a", "b"]);
}

/// A run of which one job cannot be removed stays as a whole, and the others go.
pub fn a_run_is_removed_as_a_whole_or_not_at_all(world: World) {
    world.enqueue("r1", &["a", "b", "c"]);
    world.enqueue("r2", &["a"]);
    let lock = world.other.take_run_lock(&job_id("wf-r1-b")).unwrap().unwrap();
    let whole = |run: &str, nodes: &[&str]| Removal {
        run: Some(super::run_id(run)),
        jobs: nodes.iter().map(|node| job_id(&format!("wf-{run}-{node}"))).collect(),
        unmarked: Vec::new(),
    };
    let removals = [whole("r1", &["a", "b", "c"]), whole("r2", &["a"])];
    let mut turn = world.store.turn().unwrap();
    let removed = turn.remove(&removals).unwrap();
    let refused: Vec<_> =
        removed.iter().map(|one| one.refusal.as_ref().and_then(|(id, _)| id.clone())).collect();
    assert_eq!(refused, [Some(job_id("wf-r1-b")), None]);
    assert_eq!(names(&turn.active().unwrap()), ["wf-r1-a", "wf-r1-b", "wf-r1-c"]);
    assert!(world.other.manifest(&super::run_id("r1")).unwrap().is_some());
    assert_eq!(world.other.manifest(&super::run_id("r2")).unwrap(), None);
    drop(lock);
    assert!(turn.remove(&removals[..1]).unwrap()[0].refusal.is_none());
    assert_eq!(names(&turn.all().unwrap()), [""; 0]);
}

/// Returns the request of a person to end one job.
const fn by_me(millis: u64) -> CancelRequest<'static> {
    CancelRequest { by: "me", at: Timestamp::from_millis(millis), is_of_run: false }
}

pub(crate) fn outcome(id: &str, attempt: u32) -> JobOutcome {
    JobOutcome {
        version: 1,
        job_id: job_id(id),
        attempt,
        status: JobStatus::Succeeded,
        outcome: NodeOutcome::Succeeded,
        exit_code: Some(0),
        code: None,
        non_retryable: false,
        complaint: None,
        started_at: None,
        finished_at: Timestamp::from_millis(9),
        summary: Some("done".to_owned()),
        artifacts: Vec::new(),
    }
}
