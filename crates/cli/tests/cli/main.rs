//! The real binary, run as people run it: in an empty directory of its own, with an empty environment.

mod home;

mod asking;
mod book;
mod completions;
mod crash;
mod daemon;
mod decide;
mod demo;
mod doctor;
mod elision;
mod errors;
mod explain;
mod faults;
mod flags;
mod graph;
mod guides;
mod help;
mod init;
mod jobs;
mod man;
mod pages;
mod policy;
mod reading;
mod reference;
mod run;
mod runs;
mod schema;
mod screens;
mod shop;
mod tables;
mod tick;
mod told_live;
mod yard;

use std::path::Path;

/// Returns the names of the Rust files in a directory of this crate.
fn rust_files(directory: &str) -> Vec<String> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(directory);
    let paths = std::fs::read_dir(directory).expect("the directory can be read");
    let mut names: Vec<String> = paths
        .map(|entry| entry.expect("the directory can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .filter_map(|path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned()))
        .collect();
    names.sort();
    names
}

#[test]
fn no_forgotten_test_files() {
    let here = include_str!("main.rs");
    for name in rust_files("tests/cli").iter().filter(|name| *name != "main") {
        assert!(here.contains(&format!("\nmod {name};\n")), "{name}.rs is not listed in main.rs");
    }
}

#[test]
fn each_command_has_its_tests() {
    let tests = rust_files("tests/cli");
    for command in rust_files("src/commands").iter().filter(|name| *name != "mod") {
        assert!(tests.contains(command), "the command {command} has no tests/cli/{command}.rs");
    }
}
