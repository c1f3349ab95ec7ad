//! `fan-out.toml`: two hundred processes, and one that waits for all of them.

use crate::{nodes, place};

#[test]
fn two_hundred_processes_and_the_one_after_them_succeed() {
    let world = place("fan-out.toml");
    world.file(".tidewheel/config.toml", "");
    let followed = world.json(&["run", "fan-out.toml", "--follow"]);
    let succeeded = nodes(&followed, "succeeded");
    assert_eq!(succeeded.len(), 201);
    assert_eq!(succeeded[0], "all");
    let run = followed["run_id"].as_str().unwrap();
    let joined = world.record(&format!("wf-{run}-all"));
    assert_eq!(joined["schedule"]["after"].as_array().unwrap().len(), 200);
    let began = joined["started_at"].as_str().unwrap();
    for part in &succeeded[1..] {
        let record = world.record(&format!("wf-{run}-{part}"));
        assert!(record["finished_at"].as_str().unwrap() <= began, "{part}");
    }
}
