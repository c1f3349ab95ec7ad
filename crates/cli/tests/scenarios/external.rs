//! Jobs whose work is done elsewhere.

use std::fs;

use serde_json::{Value, json};

use crate::by_hand::{Desk, standing};
use crate::runs::flow;

/// A flow whose node `work` is done elsewhere, with more of its policy and of its node.
fn with_worker(desk: &Desk, policy: &str, more: &str) -> (String, String) {
    desk.file(".tidewheel/config.toml", "[scheduler]\ncapacity = 1\n");
    let nodes = [("work", "touch never", more), ("next", "echo next >>log", "after = [\"work\"]")];
    let contract = "[[artifact_contracts]]\nid = \"url\"\nversion = \"v1\"\n";
    let text = flow(&nodes)
        + &format!("[[policies]]\nmatch = {{ name = \"work\" }}\nexecution_mode = \"external\"\n{policy}\n");
    desk.flow("f", &text.replacen("[[nodes]]", &format!("{contract}[[nodes]]"), 1));
    let run = desk.enqueue(&["f"]);
    (run.clone(), format!("wf-{run}-work"))
}

fn token(desk: &Desk, id: &str) -> String {
    let record = desk.record(id);
    record["schedule"]["external"]["token"].as_str().unwrap_or_else(|| panic!("{record}")).to_owned()
}

#[test]
fn a_job_done_elsewhere_waits_without_a_process_and_a_slot_until_its_token_comes() {
    let desk = Desk::new();
    let produces = "produces.succeeded = [{ custom = { type_id = \"url\", key = \"k\" } }]";
    let (run, id) = with_worker(&desk, "", produces);
    assert_eq!(desk.standing(&id), standing("waiting_on_deps", "external", "waiting on external completion"));
    assert!(desk.record(&id)["pid"].is_null());
    // The one slot is free for others.
    desk.flow("other", &crate::runs::flow_of("echo other >>log"));
    assert_eq!(desk.run(&["run", "other", "--follow"]).code, Some(0));
    let token = token(&desk, &id);
    let explained = desk.run(&["jobs", "explain", &id]);
    for says in [format!("jobs complete {id} --token {token}"), format!("jobs fail {id} --token {token}")] {
        assert!(explained.out.contains(&says), "{says}: {explained:?}");
    }
    for (wrong, says) in [("1-00", "the token is not that of job"), ("x", "the token is not that of job")] {
        let ran = desk.run(&["jobs", "complete", &id, "--token", wrong]);
        assert!(ran.code == Some(1) && ran.err.contains(says), "{ran:?}");
    }
    assert_eq!(desk.run(&["jobs", "complete", &id, "--token", &token, "--value", "{"]).code, Some(2));
    let value = r#"{"url": "https://example.org"}"#;
    let ran = desk.run(&["jobs", "complete", &id, "--token", &token, "--value", value]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(desk.status(&id), "succeeded");
    desk.wait(&format!("wf-{run}-next"));
    assert_eq!(desk.lines("log"), ["other", "next"]);
    assert!(!desk.path("never").exists());
    let folder = desk.in_jobs("artifacts/data/75726c/6b");
    let payload = fs::read_to_string(folder.join(format!("{id}.json"))).unwrap();
    let payload: Value = serde_json::from_str(&payload).unwrap();
    assert_eq!(payload["value"], json!({"url": "https://example.org"}));
    // What is over is refused by the table of commands, with its reason.
    for command in ["complete", "fail", "heartbeat"] {
        let ran = desk.run(&["jobs", command, &id, "--token", &token]);
        let says = format!("job {id} is succeeded: no work waits for it");
        assert!(ran.code == Some(1) && ran.err.contains(&says), "{command}: {ran:?}");
    }
    // What is not done elsewhere waits for no worker, whatever its status.
    let plain = desk.enqueue(&["other", "--require-approval"]);
    let ran = desk.run(&["jobs", "complete", &format!("wf-{plain}-one"), "--token", &token]);
    assert!(ran.code == Some(1) && ran.err.contains("waits for no external completion"), "{ran:?}");
}

#[test]
fn a_failure_from_elsewhere_is_retried_under_a_new_token_and_an_old_one_is_refused() {
    let desk = Desk::new();
    let (_, id) = with_worker(&desk, "max_retries = 1\nretryable_errors = [75]", "");
    let first = token(&desk, &id);
    let ran =
        desk.run(&["jobs", "fail", &id, "--token", &first, "--reason", "no quota", "--exit-code", "75"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    crate::world::eventually("the second attempt", || {
        desk.run(&["tick"]);
        desk.record(&id)["schedule"]["external"].is_object()
    });
    let second = token(&desk, &id);
    assert!(first.starts_with("1-") && second.starts_with("2-"), "{first} {second}");
    let ran = desk.run(&["jobs", "complete", &id, "--token", &first]);
    assert!(ran.code == Some(1) && ran.err.contains("the token is of attempt 1 of job"), "{ran:?}");
    assert_eq!(desk.run(&["jobs", "fail", &id, "--token", &second]).code, Some(0));
    let record = desk.record(&id);
    assert_eq!((&record["status"], &record["exit_code"]), (&json!("failed"), &json!(1)));
    // A retry of a person begins a third attempt.
    assert_eq!(desk.run(&["jobs", "retry", &id]).code, Some(0));
    assert!(token(&desk, &id).starts_with("3-"));
    assert_eq!(desk.run(&["jobs", "cancel", &id]).code, Some(0));
    assert_eq!(desk.status(&id), "cancelled");
}

#[test]
fn the_time_of_a_policy_ends_an_attempt_elsewhere_by_itself() {
    let desk = Desk::new();
    let (_, id) = with_worker(&desk, "timeout = \"50ms\"", "");
    let ran = desk.run(&["jobs", "wait", &id]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(desk.record(&id)["exit_code"], 124);
    let desk = Desk::new();
    let (_, id) = with_worker(&desk, "heartbeat = \"1h\"", "");
    let token = token(&desk, &id);
    let before = desk.record(&id)["schedule"]["external"]["heard_at"].clone();
    assert_eq!(desk.run(&["jobs", "heartbeat", &id, "--token", &token]).code, Some(0));
    assert_ne!(desk.record(&id)["schedule"]["external"]["heard_at"], before);
    let desk = Desk::new();
    let (_, id) = with_worker(&desk, "heartbeat = \"50ms\"", "");
    desk.wait(&id);
    let events = fs::read_to_string(desk.in_jobs(&id).join("events.jsonl")).unwrap();
    assert!(events.contains("gave no sign of life"), "{events}");
}

#[test]
fn locks_are_held_while_the_work_is_done_elsewhere() {
    let desk = Desk::new();
    let lock = "locks = [{ key = \"k\", mode = \"exclusive\" }]";
    let (_, id) = with_worker(&desk, "", lock);
    desk.flow("rival", &flow(&[("one", "true", lock)]));
    let rival = format!("wf-{}-one", desk.enqueue(&["rival"]));
    assert_eq!(desk.status(&rival), "waiting_on_locks");
    assert_eq!(desk.run(&["jobs", "complete", &id, "--token", &token(&desk, &id)]).code, Some(0));
    desk.wait(&rival);
    assert_eq!(desk.status(&rival), "succeeded");
}
