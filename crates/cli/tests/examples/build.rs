//! `build.toml`: this repository builds, tests and packages itself.

use std::process::Command;

use serde_json::Value;

use crate::world::World;
use crate::{nodes, place, repository, said};

/// What cargo sets for the tests that it runs. A cargo inside them must see what the outer one saw, or it builds
/// everything once more.
const OF_CARGO: [&str; 8] = [
    "CARGO_BIN_",
    "CARGO_CRATE_",
    "CARGO_MANIFEST_",
    "CARGO_PKG_",
    "CARGO_PRIMARY_",
    "CARGO_TARGET_TMPDIR",
    "LD_LIBRARY_PATH",
    "TIDEWHEEL_",
];

/// Returns the command in the environment of whoever builds this.
fn command(world: &World, arguments: &[&str]) -> Command {
    let mut command = world.command(arguments);
    let is_ours = |name: &str| !OF_CARGO.iter().any(|start| name.starts_with(start));
    let variables = std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_ours));
    command.envs(variables);
    command
}

#[test]
fn this_repository_builds_tests_and_packages_itself() {
    let world = place("build.toml");
    let source = repository();
    let target = std::path::Path::new(env!("CARGO_BIN_EXE_tidewheel")).ancestors().nth(2).unwrap();
    let source = format!("source={}", source.display());
    let target = format!("target={}", target.display());
    // The binary is what the other tests run just now, and the libraries would be built once more with fewer features;
    // the chores are small and need nothing.
    let words = ["run", "build.toml", "--set", &source, "--set", &target];
    let words = [&words[..], &["--package", "xtask", "--tested", "xtask"]].concat();
    // How long a compiler takes is for the policies of the template to judge.
    let ran = command(&world, &[&words[..], &["--follow", "--format", "json"]].concat()).output().unwrap();
    assert_eq!(ran.status.code(), Some(0), "{ran:?}\n{}", said(&world, "test", "stderr"));
    let followed: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(nodes(&followed, "succeeded"), ["build", "fetch", "format", "package", "test"]);
    assert!(said(&world, "test", "stdout").contains("test result: ok. "));
    let listed =
        Command::new("tar").arg("-tzf").arg(world.path("target/package/tidewheel.tar.gz")).output().unwrap();
    assert_eq!(String::from_utf8(listed.stdout).unwrap(), "tidewheel\n");
    let run = followed["run_id"].as_str().unwrap();
    // Cargo has a lock of its own; here it is one of the jobs', and they say so.
    for node in ["build", "test"] {
        let waited = &world.record(&format!("wf-{run}-{node}"))["schedule"]["waited_on"];
        assert_eq!(waited[0], "dependencies", "{node}");
    }
}
