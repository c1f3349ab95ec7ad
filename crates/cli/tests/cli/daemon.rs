//! `tidewheel daemon`: wakes up for the times of jobs.

use serde_json::json;

use crate::yard::Yard;

#[test]
fn a_daemon_that_ends_when_nothing_is_due_has_looked_once() {
    let yard = Yard::new();
    yard.job("a", "queued", 0, json!({ "child_args": ["--version"] }));
    let ran = yard.run(&["daemon", "--until-idle"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""), "{ran}");
    assert_eq!(yard.jobs(&["wait", "a", "-q"]).code, Some(0));
    assert_eq!(yard.record("a")["status"], "succeeded");
}
