//! `nightly.toml`: a flaky import that is tried again, a report that waits for it, a handler for when it fails.

use serde_json::Value;

use crate::world::World;
use crate::{nodes, place, said};

/// Returns the numbers of the starts of a job.
fn starts(world: &World, run: &str, node: &str) -> Value {
    world.record(&format!("wf-{run}-{node}"))["metadata"]["workflow_node_attempt"].clone()
}

#[test]
fn an_import_that_works_at_the_third_start_is_retried_and_reported() {
    let world = place("nightly.toml");
    let followed = world.json(&["run", "nightly.toml", "--follow"]);
    assert_eq!(nodes(&followed, "succeeded"), ["import", "report"]);
    // Nothing failed, so nobody is paged.
    assert_eq!(nodes(&followed, "skipped"), ["page"]);
    assert_eq!(starts(&world, followed["run_id"].as_str().unwrap(), "import"), 3);
    // The logs of all attempts are there, one after the other.
    assert_eq!(
        said(&world, "import", "stderr"),
        "the source does not answer (start 1)\nthe source does not answer (start 2)\n"
    );
    assert_eq!(said(&world, "import", "stdout"), "imported at start 3\n");
}

#[test]
fn an_import_that_never_works_fails_the_run_after_its_retries_and_pages() {
    let world = place("nightly.toml");
    let ran = world.run(&["run", "nightly.toml", "--set", "fails=9", "--follow", "--format", "json"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let followed = ran.json();
    assert_eq!(followed["terminal_state"], "failed");
    assert_eq!(nodes(&followed, "failed"), ["import"]);
    assert_eq!(nodes(&followed, "succeeded"), ["page"]);
    assert_eq!(nodes(&followed, "blocked"), ["report"]);
    let run = followed["run_id"].as_str().unwrap();
    // Once, and three retries.
    assert_eq!(starts(&world, run, "import"), 4);
    assert_eq!(world.record(&format!("wf-{run}-import"))["exit_code"], 75);
    assert_eq!(said(&world, "page", "stderr"), "the nightly import failed\n");
    let wait = &world.record(&format!("wf-{run}-report"))["schedule"]["wait_reason"];
    assert_eq!(wait["detail"], format!("dependency failed for job wf-{run}-import (failed)"));
}
