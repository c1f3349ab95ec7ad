//! How attempts end: what is put on record, and what is not.

use std::fs;

use serde_json::{Value, json};

use crate::by_hand::{Desk, custom, job};
use crate::runs::flow;
use crate::world::Ran;

fn policy(fields: &str) -> String {
    format!("[[policies]]\nmatch = {{ name = \"a\" }}\n{fields}\n")
}

#[test]
fn nothing_follows_from_an_end_that_could_not_be_put_on_record_and_the_end_is_not_lost() {
    let desk = Desk::new();
    desk.pipe("gate");
    let made = "[{ custom = { type_id = \"t\", key = \"k\" } }]";
    for (code, ended) in [(0, "succeeded"), (7, "failed")] {
        let script = format!("echo >>begun; : <gate; exit {code}");
        let produces = format!("produces.succeeded = {made}\nproduces.failed = {made}");
        desk.flow(
            "f",
            &(flow(&[
                ("a", &script, &produces),
                ("b", "touch ran", "after = [\"a\"]"),
                ("c", "touch other", "after = [{ node_id = \"a\", policy = \"completion\" }]"),
            ]) + "[[artifact_contracts]]\nid = \"t\"\nversion = \"v1\"\n"),
        );
        let run = desk.enqueue(&["f"]);
        let [a, b, c] = ["a", "b", "c"].map(|node| format!("wf-{run}-{node}"));
        desk.has_begun(&a, "begun");
        let supervisor = desk.supervisor(&a);
        // What it makes has no place.
        let path = desk.in_jobs("artifacts");
        fs::remove_dir_all(&path).ok();
        fs::write(&path, "").unwrap();
        desk.let_go("gate");
        desk.is_gone(supervisor);
        let standing = || [&a, &b, &c].map(|id| desk.status(id));
        assert_eq!(standing(), ["running", "waiting_on_deps", "waiting_on_deps"], "{ended}");
        assert_eq!(desk.run(&["tick"]).code, Some(1));
        assert_eq!(standing(), ["running", "waiting_on_deps", "waiting_on_deps"], "{ended}");
        assert!(!desk.path("ran").exists() && !desk.path("other").exists(), "{ended}");
        // Once it can be written, what comes after it follows from what is on record.
        fs::remove_file(&path).unwrap();
        desk.tick();
        desk.wait(&c);
        desk.wait(&b);
        let record = desk.record(&a);
        assert_eq!((&record["status"], &record["exit_code"]), (&json!(ended), &json!(code)), "{record}");
        assert_eq!(desk.status(&c), "succeeded");
        assert_eq!(desk.path("ran").exists(), code == 0);
        assert_eq!(desk.lines("begun").len(), 1, "it ran once");
        for file in ["begun", "ran", "other"] {
            fs::remove_file(desk.path(file)).ok();
        }
    }
}

#[test]
fn a_retry_that_cannot_reset_one_job_resets_none() {
    let desk = Desk::new();
    desk.put(job("q").status("failed").with("exit_code", 1));
    desk.put(job("d").after(&["q"]).status("blocked_by_dependency"));
    fs::create_dir(desk.in_jobs("q/events.jsonl")).unwrap();
    let before = [desk.record("q"), desk.record("d")];
    let ran = desk.run(&["jobs", "retry", "q", "--format", "json"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{ran:?}");
    assert!(ran.err.contains("no job was reset") && ran.err.contains("/q/events.jsonl"), "{ran:?}");
    assert_eq!([desk.record("q"), desk.record("d")], before);
}

#[test]
fn a_timeout_is_for_all_processes_of_an_attempt_together() {
    let desk = Desk::new();
    let text = "id = \"T\"\nversion = \"v1\"\n[[nodes]]\nid = \"a\"\nkind = \"gate\"\n\
                uses = \"control.gate.cicd\"\n\
                gates = [{ kind = \"cicd\", script = \"sleep 0.6; exit 3\", auto_resolve = true }]\n\
                args = { auto_resolve_script = \"sleep 0.6; touch mended\" }\n";
    desk.flow("f", &(text.to_owned() + &policy("timeout = \"1s\"")));
    let id = format!("wf-{}-a", desk.enqueue(&["f"]));
    desk.wait(&id);
    let record = desk.record(&id);
    assert_eq!((&record["status"], &record["exit_code"]), (&json!("failed"), &json!(124)), "{record}");
    assert!(!desk.path("mended").exists());
}

#[test]
fn what_would_fail_again_is_not_tried_again() {
    let desk = Desk::new();
    let text = flow(&[("a", "", "")]).replace("script = \"\"", "command = [\"/no/such\"]");
    desk.flow("f", &(text + &policy("max_retries = 2\nbackoff = \"fixed\"\nbase_delay = \"30s\"")));
    let id = format!("wf-{}-a", desk.enqueue(&["f"]));
    desk.wait(&id);
    let record = desk.record(&id);
    assert_eq!(
        (&record["status"], &record["metadata"]["workflow_node_attempt"]),
        (&json!("failed"), &json!(1))
    );
    let told = ["dispatched", "attempt_failed", "completed"].map(|name| (1, name.to_owned()));
    assert_eq!(desk.events(&id), told);
}

#[test]
fn events_say_what_a_job_complained_about() {
    let desk = Desk::new();
    desk.flow("f", &flow(&[("a", "echo the disk is full >&2; exit 4", "")]));
    let id = format!("wf-{}-a", desk.enqueue(&["f"]));
    desk.wait(&id);
    let text = fs::read_to_string(desk.in_jobs(&id).join("events.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let failed = lines.map(|event| event["event"]["attempt_failed"].clone()).find(|failed| !failed.is_null());
    let failed = failed.unwrap_or_else(|| panic!("{text}"));
    assert_eq!(failed["exit_code"], 4);
    assert!(failed["message"].as_str().unwrap().contains("the disk is full"), "{failed}");
}

#[test]
fn a_job_that_is_not_over_has_no_outcome() {
    for (fields, status) in [
        ("max_retries = 1\nbackoff = \"fixed\"\nbase_delay = \"30s\"", "queued"),
        ("on_failure = \"pause\"", "waiting_on_approval"),
    ] {
        let desk = Desk::new();
        desk.pipe("gate");
        desk.flow("f", &(flow(&[("a", "touch begun; : <gate; exit 5", "")]) + &policy(fields)));
        let id = format!("wf-{}-a", desk.enqueue(&["f"]));
        desk.has_begun(&id, "begun");
        let supervisor = desk.supervisor(&id);
        // Somebody else has the turn when it ends.
        let turn = desk.take_turn();
        desk.let_go("gate");
        desk.has_ended(&id);
        drop(turn);
        desk.is_gone(supervisor);
        assert_eq!(desk.status(&id), status);
        assert!(!desk.in_jobs(&id).join("outcome.json").exists(), "{status}");
    }
}

#[test]
fn an_artifact_with_an_impossible_name_does_not_keep_a_job_from_its_end() {
    let desk = Desk::new();
    desk.put(job("long").makes(&[custom(&"t".repeat(200), &"k".repeat(300))]));
    desk.put(job("next").after(&["long"])).put(job("other").status("failed"));
    desk.run(&["tick"]);
    desk.wait("long");
    desk.wait("next");
    assert_eq!(["long", "next"].map(|id| desk.status(id)), ["succeeded", "succeeded"]);
    // From now on nobody has to hear of it.
    desk.tick();
    let ran: Ran = desk.run(&["jobs", "retry", "other"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn an_end_that_was_told_counts_though_the_scheduler_died_before_it_was_on_record() {
    let desk = Desk::new();
    desk.pipe("gate");
    desk.flow("f", &flow(&[("a", "touch begun; : <gate", ""), ("b", "touch ran", "after = [\"a\"]")]));
    let run = desk.enqueue(&["f"]);
    let [a, b] = ["a", "b"].map(|node| format!("wf-{run}-{node}"));
    desk.has_begun(&a, "begun");
    let [a_then, b_then] = [&a, &b].map(|id| desk.record(id));
    desk.let_go("gate");
    desk.wait(&b);
    // The records and outcomes are as if they had never been replaced; only the events were added.
    for (id, record) in [(&a, a_then), (&b, b_then)] {
        fs::write(desk.in_jobs(id).join("job.json"), record.to_string()).unwrap();
        fs::remove_file(desk.in_jobs(id).join("outcome.json")).unwrap();
    }
    fs::remove_file(desk.path("ran")).unwrap();
    for cache in ["index.live", "index.all", "index.due"] {
        fs::remove_file(desk.in_jobs(cache)).ok();
    }
    desk.tick();
    desk.wait(&b);
    let record = desk.record(&a);
    assert_eq!((&record["status"], &record["exit_code"]), (&json!("succeeded"), &json!(0)), "{record}");
    assert!(desk.in_jobs(&a).join("outcome.json").exists());
    assert_eq!(desk.events(&a), ["dispatched", "completed"].map(|name| (1, name.to_owned())));
    assert!(desk.path("ran").exists());
}

#[test]
fn a_start_that_was_told_and_never_was_is_told_once() {
    let desk = Desk::new();
    desk.put(job("J1"));
    // Whoever wanted to start it was killed before its record said so.
    let dispatched = json!({"dispatched": {"policy_attempt": 0, "stdout_offset": 0, "stderr_offset": 0}});
    let event = json!({"at": "2026-02-01T12:00:00Z", "attempt": 1, "event": dispatched});
    fs::write(desk.in_jobs("J1/events.jsonl"), format!("{event}\n")).unwrap();
    desk.succeeds("J1");
    assert_eq!(desk.events("J1"), ["dispatched", "completed"].map(|name| (1, name.to_owned())));
}

#[test]
fn work_that_was_put_aside_is_seen() {
    let desk = Desk::new();
    desk.flow("f", &(flow(&[("a", "exit 3", "")]) + &policy("on_failure = \"dead_letter\"")));
    let id = format!("wf-{}-a", desk.enqueue(&["f"]));
    desk.wait(&id);
    assert_eq!(desk.status(&id), "failed");
    let shown = desk.json(&["jobs", "show", &id]);
    let said = shown["dead_letter"].as_str().unwrap_or_default();
    assert!(said.contains("exit"), "{shown}");
}
