//! Jobs that a person has to approve.

use std::fs;

use serde_json::{Value, json};

use crate::by_hand::{Desk, at, job, standing};
use crate::world::Ran;

#[test]
fn f_53_a_pending_approval_is_waited_for() {
    let desk = Desk::new();
    desk.put(job("one").gated());
    assert_eq!(desk.ticked("one"), standing("waiting_on_approval", "approval", "awaiting human approval"));
    assert_eq!(desk.record("one")["schedule"]["waited_on"], json!(["approval"]));
}

#[test]
fn f_55_an_approved_job_starts_at_once() {
    let desk = Desk::new();
    desk.put(job("J1").gated());
    desk.tick();
    let ran = desk.run(&["jobs", "approve", "J1"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for row in ["Outcome", "Job approval granted", "Job", "Status", "Approval state", "Started", "Updated"] {
        assert!(ran.out.contains(row), "{row}: {ran:?}");
    }
    desk.wait("J1");
    let record = desk.record("J1");
    assert_eq!(record["status"], "succeeded");
    let approval = &record["schedule"]["approval"];
    assert_eq!((&approval["state"], &approval["decided_by"]), (&json!("approved"), &json!("ada")));
    assert!(approval["decided_at"].is_string(), "{approval}");
    assert_eq!(at(approval, "/reason"), &Value::Null);
    assert_eq!(approval["requested_by"], "bob");
    assert_eq!(at(&record, "/schedule/wait_reason"), &Value::Null);
}

#[test]
fn f_55_an_approval_before_the_first_tick_counts() {
    let desk = Desk::new();
    desk.put(job("J1").gated());
    assert_eq!(desk.run(&["jobs", "approve", "J1"]).code, Some(0));
    desk.wait("J1");
    assert_eq!(desk.status("J1"), "succeeded");
}

#[test]
fn f_56_a_rejected_job_ends_with_its_reason() {
    let desk = Desk::new();
    desk.put(job("J1").gated()).put(job("next").after(&["J1"]));
    let ran = desk.run(&["jobs", "reject", "J1", "--reason", "not today"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let record = desk.record("J1");
    assert_eq!((&record["status"], &record["exit_code"]), (&json!("blocked_by_approval"), &json!(10)));
    assert!(record["finished_at"].is_string());
    assert!(desk.in_jobs("J1/outcome.json").exists());
    let approval = &record["schedule"]["approval"];
    assert_eq!((&approval["state"], &approval["reason"]), (&json!("rejected"), &json!("not today")));
    assert_eq!(desk.standing("J1"), standing("blocked_by_approval", "approval", "not today"));
    // What comes after it is settled at once.
    let blocked = "dependency failed for job J1 (blocked_by_approval)";
    assert_eq!(desk.standing("next"), standing("blocked_by_dependency", "dependencies", blocked));
}

#[test]
fn f_57_a_rejection_without_a_reason_says_so() {
    let desk = Desk::new();
    desk.put(job("J1").gated());
    assert_eq!(desk.run(&["jobs", "reject", "J1"]).code, Some(0));
    assert_eq!(desk.standing("J1"), standing("blocked_by_approval", "approval", "approval rejected"));
}

#[test]
fn f_58_what_cannot_be_decided_is_refused_and_nothing_is_written() {
    let desk = Desk::new();
    desk.put(job("plain").status("waiting_on_locks").locks(&["k:exclusive"]));
    desk.put(job("busy").status("running").gated().locks(&["k:exclusive"]));
    desk.put(job("done").status("succeeded").gated());
    desk.put(job("said").gated().schedule(
        "approval",
        json!({"required": true, "state": "approved", "decided_by": "bob", "decided_at": "2026-02-01T12:00:00Z"}),
    ));
    let ids = ["plain", "busy", "done", "said"];
    let see = || ids.map(|id| fs::read_to_string(desk.in_jobs(id).join("job.json")).unwrap());
    let before = see();
    for verb in ["approve", "reject"] {
        let refused = |id: &str, says: &str| {
            let ran = desk.run(&["jobs", verb, id]);
            assert_eq!(ran.code, Some(1), "{ran:?}");
            assert!(ran.err.contains(says), "{verb} {id}: {says}: {ran:?}");
            assert_eq!(ran.out, "", "{ran:?}");
        };
        refused("plain", "job plain is not configured for approval gating");
        refused("busy", "job busy is running");
        refused("done", "job done is terminal (succeeded)");
        refused("said", "job said is already approved");
        refused("J1", "no background job J1");
    }
    assert_eq!(see(), before);
}

#[test]
fn f_59_who_decides_is_the_first_who_is_named() {
    let names = ["TIDEWHEEL_APPROVAL_ACTOR", "GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "USER", "USERNAME"];
    for first in 0..=names.len() {
        let desk = Desk::new();
        desk.put(job("J1").gated());
        let mut command = desk.command(&["jobs", "approve", "J1"]);
        for (index, name) in names.iter().enumerate() {
            // A blank name is none.
            command.env(name, if index < first { " \t" } else { name });
        }
        let ran = Ran::of(&mut command);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let expected = names.get(first).unwrap_or(&"unknown");
        assert_eq!(desk.record("J1")["schedule"]["approval"]["decided_by"], *expected);
    }
}

#[test]
fn f_60_approval_comes_before_locks() {
    let desk = Desk::new();
    desk.put(job("holder").status("running").locks(&["k:exclusive"]));
    desk.put(job("one").gated().locks(&["k:exclusive"]));
    assert_eq!(desk.ticked("one").0, "waiting_on_approval");
    assert_eq!(desk.run(&["jobs", "approve", "one"]).code, Some(0));
    assert_eq!(desk.standing("one"), standing("waiting_on_locks", "locks", "waiting on locks"));
    assert_eq!(desk.record("one")["schedule"]["waited_on"], json!(["approval", "locks"]));
}

#[test]
fn f_61_an_approval_that_is_not_required_is_no_gate() {
    for state in ["pending", "approved", "rejected"] {
        let desk = Desk::new();
        desk.put(job("one").schedule("approval", json!({"required": false, "state": state})));
        assert_eq!(desk.tick().started, ["one"], "{state}");
    }
}

#[test]
fn f_62_a_rejection_in_the_record_ends_the_job_at_the_next_tick() {
    let desk = Desk::new();
    let rejected = |reason: Value| json!({"required": true, "state": "rejected", "reason": reason});
    desk.put(job("one").schedule("approval", rejected(json!("too late"))));
    desk.put(job("two").schedule("approval", rejected(Value::Null)));
    desk.tick();
    assert_eq!(desk.standing("one"), standing("blocked_by_approval", "approval", "too late"));
    assert_eq!(desk.standing("two"), standing("blocked_by_approval", "approval", "approval rejected"));
}

#[test]
fn f_63_a_decision_as_json_says_what_it_did() {
    let desk = Desk::new();
    desk.put(job("one").gated()).put(job("two").gated());
    let approved = desk.json(&["jobs", "approve", "one"]);
    assert!(approved["version"].is_u64(), "{approved}");
    assert_eq!(approved["outcome"], "Job approval granted");
    let rejected = desk.json(&["jobs", "reject", "two"]);
    assert!(rejected["version"].is_u64(), "{rejected}");
}
