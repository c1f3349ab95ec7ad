//! `hello.toml`: two processes, one after the other.

use crate::{nodes, place, said};

#[test]
fn two_processes_greet_whoever_is_named_one_after_the_other() {
    let world = place("hello.toml");
    let followed = world.json(&["run", "hello.toml", "Ada", "--follow"]);
    assert_eq!(nodes(&followed, "succeeded"), ["greet", "part"]);
    assert_eq!(said(&world, "greet", "stdout"), "Hello, Ada!\n");
    assert_eq!(said(&world, "part", "stdout"), "Goodbye, Ada.\n");
    let run = followed["run_id"].as_str().unwrap();
    let at = |node: &str, field: &str| {
        world.record(&format!("wf-{run}-{node}"))[field].as_str().unwrap().to_owned()
    };
    assert!(at("greet", "finished_at") <= at("part", "started_at"));
}

#[test]
fn without_a_name_the_world_is_greeted() {
    let world = place("hello.toml");
    world.json(&["run", "hello.toml", "--follow"]);
    assert_eq!(said(&world, "greet", "stdout"), "Hello, world!\n");
}
