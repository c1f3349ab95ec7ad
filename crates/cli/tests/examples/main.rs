//! The examples of `examples/jobs/`, each run by the real binary in a directory of its own.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

#[expect(dead_code, reason = "others need more of it")]
#[path = "../scenarios/world.rs"]
mod world;

mod build;
mod fan_out;
mod hello;
mod nightly;
mod release;

use std::path::{Path, PathBuf};

use serde_json::Value;
use world::World;

/// Returns the root of this repository.
fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// Returns a directory with one of the examples in it.
fn place(example: &str) -> World {
    let text = std::fs::read_to_string(repository().join("examples/jobs").join(example)).unwrap();
    let world = World::new();
    world.file(example, &text);
    world
}

/// Returns the nodes of the jobs that ended in some way, in order.
fn nodes(followed: &Value, how: &str) -> Vec<String> {
    let run = followed["run_id"].as_str().unwrap();
    let node = |id: &Value| id.as_str().unwrap().strip_prefix(&format!("wf-{run}-")).unwrap().to_owned();
    let mut nodes: Vec<String> = followed[how].as_array().unwrap().iter().map(node).collect();
    nodes.sort();
    nodes
}

/// Returns what a job said on a stream.
#[track_caller]
fn said(world: &World, job: &str, stream: &str) -> String {
    let ran = world.run(&["jobs", "tail", job, "--stream", stream]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.out
}

/// Returns the names of the examples.
fn examples() -> Vec<String> {
    let entries = std::fs::read_dir(repository().join("examples/jobs")).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn every_example_is_in_order_and_checking_it_writes_nothing() {
    for example in examples() {
        let world = place(&example);
        let ran = world.run(&["run", &example, "--check"]);
        assert_eq!(ran.code, Some(0), "{example}: {ran:?}");
        assert!(
            ran.out.starts_with("Outcome: ") || ran.out.contains("Workflow validation passed"),
            "{ran:?}"
        );
        assert_eq!(ran.err, "", "{example}");
        assert_eq!(std::fs::read_dir(world.in_jobs("")).unwrap().count(), 0, "{example}");
    }
}

#[test]
fn every_example_has_its_tests() {
    let here = include_str!("main.rs");
    for example in examples() {
        let name = example.trim_end_matches(".toml").replace('-', "_");
        assert!(here.contains(&format!("\nmod {name};\n")), "{example} has no tests");
    }
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/examples");
    for entry in std::fs::read_dir(files).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(name) = name.strip_suffix(".rs").filter(|name| *name != "main") else { continue };
        assert!(here.contains(&format!("\nmod {name};\n")), "{name}.rs is not listed in main.rs");
    }
}
