//! Idempotency keys: who has done the work, and when that is forgotten.

use std::fs;

use crate::by_hand::{Desk, job};
use crate::runs::flow;

/// Returns a desk with a template whose only job fails while there is a file `bad`.
fn desk() -> Desk {
    let desk = Desk::new();
    let text = flow(&[("k", "echo k >>log; test ! -e bad", "")])
        + "[[policies]]\nmatch = { name = \"k\" }\nidempotency_key = \"K\"\n";
    desk.flow("f", &text);
    desk
}

/// Follows a run to its end and returns its exit code and its job.
#[track_caller]
fn followed(desk: &Desk) -> (Option<i32>, String) {
    let ran = desk.run(&["run", "f", "--follow", "--format", "json"]);
    let document = ran.json();
    (ran.code, format!("wf-{}-k", document["run_id"].as_str().unwrap_or_default()))
}

#[test]
fn a_job_that_is_retried_does_its_work_again_whoever_took_its_result() {
    let desk = desk();
    let (code, first) = followed(&desk);
    assert_eq!(code, Some(0));
    let (code, second) = followed(&desk);
    assert_eq!((code, desk.lines("log").len()), (Some(0), 1), "the second takes the result of the first");
    let retried = desk.json(&["jobs", "retry", &first]);
    assert_eq!(retried["restarted"], serde_json::json!([first]), "{retried}");
    desk.wait(&first);
    assert_eq!((desk.status(&first).as_str(), desk.lines("log").len()), ("succeeded", 2));
    assert_eq!(desk.status(&second), "succeeded");
}

#[test]
fn work_that_failed_when_it_was_done_again_is_not_done() {
    let desk = desk();
    let (code, first) = followed(&desk);
    assert_eq!(code, Some(0));
    desk.file("bad", "");
    desk.json(&["jobs", "retry", &first]);
    desk.wait(&first);
    assert_eq!(desk.status(&first), "failed");
    let (code, second) = followed(&desk);
    assert_eq!((code, desk.status(&second).as_str(), desk.lines("log").len()), (Some(1), "failed", 3));
    fs::remove_file(desk.path("bad")).unwrap();
    let (code, third) = followed(&desk);
    assert_eq!((code, desk.status(&third).as_str(), desk.lines("log").len()), (Some(0), "succeeded", 4));
}

#[test]
fn with_the_job_that_did_the_work_its_key_is_forgotten() {
    let desk = desk();
    let (code, first) = followed(&desk);
    assert_eq!(code, Some(0));
    let keys = || fs::read_dir(desk.in_jobs("keys")).unwrap().count();
    assert_eq!(keys(), 1);
    let ran = desk.run(&["jobs", "gc", "--days", "0"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!desk.in_jobs(&first).exists());
    assert_eq!(keys(), 0);
    let (code, _) = followed(&desk);
    assert_eq!((code, desk.lines("log").len()), (Some(0), 2));
}

/// Follows a template with one job, which has a key, and returns how many times jobs ran so far.
#[track_caller]
fn keyed(desk: &Desk, template: &str, node: &str, key: &str) -> usize {
    let rule = format!("[[policies]]\nmatch = {{ default = true }}\nidempotency_key = {key}\n");
    let text = flow(&[(node, "echo ran >>log", "")]) + &rule;
    desk.flow("keyed", &text.replacen("id = \"T\"", &format!("id = \"{template}\""), 1));
    let ran = desk.run(&["run", "keyed", "--follow"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    desk.lines("log").len()
}

#[test]
fn names_that_read_alike_when_put_together_share_no_key() {
    let desk = Desk::new();
    assert_eq!(keyed(&desk, "A/x", "c", "'5'"), 1);
    assert_eq!(keyed(&desk, "A", "x/c", "'5'"), 2);
    assert_eq!(keyed(&desk, "A", "c", "'1:2'"), 3);
    assert_eq!(keyed(&desk, "A", "c:1", "'2'"), 4);
    assert_eq!(keyed(&desk, "A", "c", "{ key = '7', name = 's/n:1' }"), 5);
    assert_eq!(keyed(&desk, "@s", "n", "'1:7'"), 6);
    // The same parts are the same work.
    assert_eq!(keyed(&desk, "A/x", "c", "'5'"), 6);
    assert_eq!(keyed(&desk, "@s", "n", "'1:7'"), 6);
    assert_eq!(keyed(&desk, "other", "m", "{ key = '7', name = 's/n:1' }"), 6);
}

#[test]
fn a_key_of_an_older_release_counts_for_the_node_whose_job_did_the_work() {
    let desk = Desk::new();
    let old = job("wf-old")
        .status("succeeded")
        .with("finished_at", "2026-02-01T12:30:00Z")
        .meta("workflow_template_id", "A/x")
        .meta("workflow_node_id", "c");
    desk.put(old);
    // Of template, node and key as they were, template `A` and node `x/c` made the same text.
    let name: String = b"key:A/x/c:5".iter().map(|byte| format!("{byte:02x}")).collect();
    desk.file(&format!(".tidewheel/jobs/keys/{name}.json"), r#"{"value":"wf-old"}"#);
    assert_eq!(keyed(&desk, "A", "x/c", "'5'"), 1, "another node did that");
    assert_eq!(keyed(&desk, "A/x", "c", "'5'"), 1, "the same node did it");
}
