//! Jobs that run only while a branch stands where it stood.

use serde_json::{Value, json};

use crate::by_hand::{Desk, at, job, standing};

fn mismatch(branch: &str) -> (String, String, String) {
    standing("waiting_on_deps", "pinned_head", &format!("pinned head mismatch on {branch}"))
}

#[test]
fn d_41_and_42_a_moved_branch_is_waited_for_until_it_is_back() {
    let desk = Desk::with_git();
    let first = desk.git(&["rev-parse", "HEAD"]);
    desk.put(job("one").schedule("pinned_head", json!({"branch": "main", "oid": first})));
    desk.commit("second");
    assert_eq!(desk.ticked("one"), mismatch("main"));
    assert_eq!(desk.record("one")["schedule"]["waited_on"], json!(["pinned_head"]));

    desk.git(&["reset", "-q", "--hard", &first]);
    desk.succeeds("one");
    let record = desk.record("one");
    assert_eq!(at(&record, "/schedule/wait_reason"), &Value::Null);
    assert_eq!(record["schedule"]["waited_on"], json!(["pinned_head"]));
}

#[test]
fn d_43_a_branch_that_stands_right_is_no_wait() {
    let desk = Desk::with_git();
    let first = desk.git(&["rev-parse", "HEAD"]);
    desk.git(&["branch", "other"]);
    desk.commit("second");
    desk.put(job("one").schedule("pinned_head", json!({"branch": "other", "oid": first})));
    assert_eq!(desk.tick().started, ["one"]);
}

#[test]
fn d_44_a_deleted_branch_keeps_only_its_own_job_waiting() {
    let desk = Desk::with_git();
    let first = desk.git(&["rev-parse", "HEAD"]);
    desk.put(job("one").schedule("pinned_head", json!({"branch": "gone", "oid": first})));
    desk.put(job("two"));
    let ticked = desk.tick();
    assert_eq!(ticked.started, ["two"]);
    assert_eq!(desk.standing("one"), mismatch("gone"));
}

#[test]
fn without_a_repository_a_pinned_head_matches_nothing_and_others_go_on() {
    let desk = Desk::new();
    let oid = "0123456789012345678901234567890123456789";
    desk.put(job("one").schedule("pinned_head", json!({"branch": "main", "oid": oid}))).put(job("two"));
    assert_eq!(desk.tick().started, ["two"]);
    assert_eq!(desk.standing("one"), mismatch("main"));
}

#[test]
fn a_template_and_a_flag_pin_the_head_of_now() {
    let desk = Desk::with_git();
    let node = "kind = \"shell\"\nuses = \"cap.env.shell.command.run\"\nargs = { script = \"true\" }\n";
    let flow = format!(
        "id = \"t\"\nversion = \"v1\"\n[[nodes]]\nid = \"one\"\n{node}\
         preconditions = [{{ kind = \"pinned_head\" }}]\n[[nodes]]\nid = \"two\"\n{node}after = [\"one\"]\n"
    );
    desk.file("pins.toml", &flow);
    let head = desk.git(&["rev-parse", "HEAD"]);
    let run = desk.enqueue(&["pins.toml"]);
    let pinned = |node: &str| at(&desk.record(&format!("wf-{run}-{node}")), "/schedule/pinned_head").clone();
    assert_eq!(pinned("one"), json!({"branch": "main", "oid": head}));
    assert_eq!(pinned("two"), Value::Null);

    desk.git(&["branch", "other"]);
    desk.file("plain.toml", &flow.replace("preconditions = [{ kind = \"pinned_head\" }]\n", ""));
    let run = desk.enqueue(&["plain.toml", "--pin", "other"]);
    let pinned = |node: &str| at(&desk.record(&format!("wf-{run}-{node}")), "/schedule/pinned_head").clone();
    assert_eq!(pinned("one"), json!({"branch": "other", "oid": head}));
    assert_eq!(pinned("two"), Value::Null);
}
