//! What a later release wrote into a record survives whatever this release does to the job.

use serde_json::{Value, json};
use tidewheel_core::job::{
    Brief, By, Cause, Cleanup, JobStatus, Record, WaitKind, WaitReason, approve, cancel, note_cleanup,
    reject, reset, start,
};
use tidewheel_core::time::Timestamp;

/// A record with something in every place.
fn whole() -> Value {
    json!({
        "id": "wf-run_1-a", "version": 1, "status": "waiting_on_approval",
        "command": ["x"], "child_args": ["y"], "created_at": "2026-02-01T12:00:00Z",
        "stdout_path": "o", "stderr_path": "e", "metadata": {"workflow_run_id": "run_1"},
        "schedule": {
            "after": [{"job_id": "a", "policy": "success"}, {"job_id": "b", "policy": "failed"}],
            "dependencies": [
                {"artifact": {"custom": {"type_id": "t", "key": "k"}}},
                {"artifact": {"plan_doc": {"slug": "s", "branch": "b"}}},
            ],
            "locks": [{"key": "k", "mode": "shared"}, {"key": "l", "mode": "exclusive"}],
            "artifacts": [{"target_branch": {"name": "main"}}, {"command_patch": {"job_id": "a"}}],
            "pinned_head": {"branch": "main", "oid": "0123"},
            "preconditions": [
                {"kind": "clean_worktree"},
                {"kind": "branch_exists", "branch": "x"},
                {"kind": "custom", "id": "i", "args": {"n": 1}},
            ],
            "approval": {
                "required": true, "state": "pending",
                "requested_at": "2026-02-01T12:00:00Z", "requested_by": "bob",
            },
            "limits": {
                "concurrency": {"limit": 2, "name": "c"},
                "idempotency_key": "key",
            },
            "wait_reason": {"kind": "approval", "detail": "awaiting human approval"},
            "waited_on": ["approval"],
        },
    })
}

/// Numbers that are the same in every run of the test.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn value(&mut self) -> Value {
        match self.next() % 5 {
            0 => Value::Null,
            1 => json!(self.next()),
            2 => json!([self.next(), {"deep": self.next()}]),
            3 => json!({"deep": {"deeper": self.next()}}),
            _ => json!(format!("text {}", self.next())),
        }
    }
}

/// Adds unknown fields to some of the objects, and notes them.
fn add_unknown(value: &mut Value, numbers: &mut Numbers, added: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(object) => {
            object.values_mut().for_each(|value| add_unknown(value, numbers, added));
            if !numbers.next().is_multiple_of(4) {
                let (name, value) = (format!("later_{}", added.len()), numbers.value());
                object.insert(name.clone(), value.clone());
                added.push((name, value));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|value| add_unknown(value, numbers, added)),
        _ => {}
    }
}

/// Returns the values of a name, wherever it is.
fn found<'v>(value: &'v Value, name: &str) -> Vec<&'v Value> {
    match value {
        Value::Object(object) => {
            let here = object.get(name).into_iter();
            here.chain(object.values().flat_map(|value| found(value, name))).collect()
        }
        Value::Array(items) => items.iter().flat_map(|value| found(value, name)).collect(),
        _ => Vec::new(),
    }
}

type Change = (&'static str, fn(&mut Record));

const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);
const BY: By<'static> = By { actor: "me", at: NOW };

/// Everything that changes a record.
const CHANGES: [Change; 9] = [
    ("nothing", |_| {}),
    ("start", |record| start(record, None, NOW)),
    ("approve", |record| drop(approve(record, BY).unwrap())),
    ("reject", |record| drop(reject(record, Some("no"), BY).unwrap())),
    ("cancel", |record| drop(cancel(record, &Cleanup::Skipped, NOW).unwrap())),
    ("clean up", |record| note_cleanup(record, &Cleanup::Done)),
    ("reset", |record| {
        drop(reset(
            record,
            &Cleanup::Done,
            Cause { by: "me", is_loop: false, not_before: None, asks_first: None, at: NOW },
        ));
    }),
    ("take over", |record| {
        let mut brief = Brief::from(&*record);
        brief.status = JobStatus::WaitingOnLocks;
        brief.schedule.wait_reason = Some(WaitReason::new(WaitKind::Locks, "waiting on locks"));
        brief.schedule.waited_on.push(WaitKind::Locks);
        record.take_over(&brief);
    }),
    ("fewer locks", |record| drop(record.schedule.locks.remove(0))),
];

#[test]
fn unknown_fields_survive_every_change_at_every_depth() {
    for seed in 0..200 {
        let mut numbers = Numbers(seed);
        let (mut text, mut added) = (whole(), Vec::new());
        add_unknown(&mut text, &mut numbers, &mut added);
        for (what, change) in CHANGES {
            let mut record = Record::parse(&text.to_string()).unwrap();
            change(&mut record);
            let written: Value = serde_json::from_str(&record.to_json()).unwrap();
            for (name, value) in &added {
                let is_of_gone = {
                    // What was in an object that is not there any more has gone with it.
                    let schedule = &text["schedule"];
                    let gone_wait = written["schedule"].get("wait_reason").is_none()
                        && !found(&schedule["wait_reason"], name).is_empty();
                    let gone_lock = what == "fewer locks" && !found(&schedule["locks"][0], name).is_empty();
                    gone_wait || gone_lock
                };
                let expected: &[&Value] = if is_of_gone { &[] } else { &[value] };
                assert_eq!(found(&written, name), expected, "seed {seed}, {what}, {name}");
            }
            // And what is written once more is the same.
            let again = Record::parse(&record.to_json()).unwrap().to_json();
            assert_eq!(again, record.to_json(), "seed {seed}, {what}");
        }
    }
}

#[test]
fn what_this_release_takes_away_does_not_come_back() {
    let mut record = Record::parse(&whole().to_string()).unwrap();
    reject(&mut record, Some("no"), BY).unwrap();
    let mut record = Record::parse(&record.to_json()).unwrap();
    assert_eq!(record.schedule.approval.as_ref().unwrap().reason.as_deref(), Some("no"));
    reset(
        &mut record,
        &Cleanup::Done,
        Cause { by: "me", is_loop: false, not_before: None, asks_first: None, at: NOW },
    );
    let written: Value = serde_json::from_str(&record.to_json()).unwrap();
    let approval = &written["schedule"]["approval"];
    assert_eq!((approval.get("reason"), approval.get("decided_by")), (None, None), "{approval}");
    assert_eq!(written["schedule"].get("wait_reason"), None);
}
