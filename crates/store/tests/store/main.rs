//! The stores against what every store promises, and against what only the disk and other processes can do to them.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod bit_rot;
mod clocks;
mod closing;
mod crash;
mod damage;
mod fixture;
mod job_crash;
mod job_files;
mod job_index;
mod job_power;
mod jobs;
mod memory;
mod migrations;
mod moved;
mod process;
mod processes;
mod readable;
mod sqlite;
mod trouble;
mod twins;

/// A file that nobody declares would never run.
#[test]
fn no_test_file_is_forgotten() {
    let declared = include_str!("main.rs");
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/store");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert!(name == "main" || declared.contains(&format!("\nmod {name};\n")), "{name} is not declared");
    }
}
