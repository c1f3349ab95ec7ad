//! `release.toml`: checks at once, a person who says yes or no, and a release that is published or not.

use crate::world::World;
use crate::{nodes, place, said};

/// Lets a release come to the person who decides, and returns the id of its run.
fn awaiting() -> (World, String) {
    let world = place("release.toml");
    let run = world.enqueue(&["release.toml", "1.4.0"]);
    for node in ["unit_tests", "lints", "notes"] {
        assert_eq!(world.wait(node).code, Some(0), "{node}");
    }
    world.json(&["tick"]);
    let sign_off = format!("wf-{run}-sign_off");
    assert_eq!(world.status(&sign_off), "waiting_on_approval");
    let wait = &world.record(&sign_off)["schedule"]["wait_reason"];
    assert_eq!(
        (wait["kind"].as_str(), wait["detail"].as_str()),
        (Some("approval"), Some("awaiting human approval"))
    );
    assert_eq!(world.status(&format!("wf-{run}-publish")), "waiting_on_deps");
    (world, run)
}

#[test]
fn a_release_waits_for_a_person_and_is_published_when_it_is_approved() {
    let (world, run) = awaiting();
    let approved = world.run(&["jobs", "approve", "sign_off"]);
    assert_eq!(approved.code, Some(0), "{approved:?}");
    let ran = world.run(&["jobs", "wait", &format!("run:{run}")]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for node in ["unit_tests", "lints", "notes", "sign_off", "publish", "done"] {
        assert_eq!(world.status(&format!("wf-{run}-{node}")), "succeeded", "{node}");
    }
    assert_eq!(said(&world, "publish", "stdout"), "published 1.4.0\n");
    let approval = &world.record(&format!("wf-{run}-sign_off"))["schedule"]["approval"];
    assert_eq!(
        (approval["state"].as_str(), approval["decided_by"].as_str()),
        (Some("approved"), Some("ada"))
    );
}

#[test]
fn a_release_that_is_rejected_is_not_published() {
    let (world, run) = awaiting();
    let rejected = world.run(&["jobs", "reject", "sign_off", "--reason", "not on a Friday"]);
    assert_eq!(rejected.code, Some(0), "{rejected:?}");
    let ran = world.run(&["jobs", "wait", &format!("run:{run}")]);
    assert_eq!(ran.code, Some(10), "{ran:?}");
    let sign_off = world.record(&format!("wf-{run}-sign_off"));
    assert_eq!(sign_off["status"], "blocked_by_approval");
    assert_eq!(sign_off["exit_code"], 10);
    assert_eq!(sign_off["schedule"]["wait_reason"]["detail"], "not on a Friday");
    for node in ["publish", "done"] {
        assert_eq!(world.status(&format!("wf-{run}-{node}")), "blocked_by_dependency", "{node}");
    }
    assert_eq!(said(&world, "publish", "stdout"), "");
}

#[test]
fn a_rejected_release_can_be_tried_again_from_there() {
    let (world, run) = awaiting();
    assert_eq!(world.run(&["jobs", "reject", "sign_off"]).code, Some(0));
    let retried = world.json(&["jobs", "retry", "sign_off"]);
    assert_eq!(nodes_of(&retried["retry_set"], &run), ["done", "publish", "sign_off"]);
    assert_eq!(world.status(&format!("wf-{run}-sign_off")), "waiting_on_approval");
    assert_eq!(world.run(&["jobs", "approve", "sign_off"]).code, Some(0));
    assert_eq!(world.wait(&format!("run:{run}")).code, Some(0));
}

fn nodes_of(list: &serde_json::Value, run: &str) -> Vec<String> {
    nodes(&serde_json::json!({ "run_id": run, "list": list }), "list")
}
