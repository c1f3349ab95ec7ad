//! `tidewheel tick`: one pass over all jobs.

use std::fs;

use insta::assert_snapshot;
use serde_json::json;

use crate::home::Home;
use crate::yard::Yard;

#[test]
fn a_5_a_pass_over_nothing_makes_nothing() {
    let home = Home::new();
    assert_snapshot!(home.run(&["tick"]).succeeded(), @"
    Started: none
    Updated: none
    ");
    assert_eq!(fs::read_dir(home.path()).expect("the home is there").count(), 0);
}

#[test]
fn what_starts_and_what_changes_is_told() {
    let yard = Yard::new();
    let after = json!({ "child_args": ["--version"], "schedule": { "after": [{ "job_id": "a" }] } });
    yard.job("a", "queued", 0, json!({ "child_args": ["--version"] })).job("b", "queued", 1, after);
    let ticked = yard.json(&["tick"]);
    assert_eq!(ticked["started"], json!(["a"]));
    assert_eq!(ticked["updated"], json!(["b"]));
    assert_eq!(ticked["errors"], json!([]));
    assert_eq!(yard.jobs(&["wait", "-q"]).code, Some(0));
    assert_eq!(yard.record("b")["status"], "succeeded");
}

#[test]
fn what_could_not_be_done_is_told_and_the_rest_is_done() {
    let yard = Yard::new();
    yard.job("stuck", "queued", 0, json!({ "child_args": ["--version"] }));
    yard.job("well", "queued", 1, json!({ "child_args": ["--version"] }));
    yard.home.file(".tidewheel/jobs/stuck/supervisor.log/x", "");
    let ran = yard.run(&["tick", "--format", "json"]);
    assert_eq!(ran.code, Some(1), "{ran}");
    let ticked: serde_json::Value = serde_json::from_str(&ran.out).expect("it is JSON");
    assert_eq!(ticked["started"], json!(["well"]));
    assert_eq!(ticked["errors"].as_array().map(Vec::len), Some(1));
    assert_eq!(yard.record("stuck")["status"], "queued");
    yard.jobs(&["wait", "well", "-q"]);
}
