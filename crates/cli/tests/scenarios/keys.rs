//! Idempotency keys: who has done the work, and when that is forgotten.

use std::fs;

use crate::by_hand::Desk;
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
