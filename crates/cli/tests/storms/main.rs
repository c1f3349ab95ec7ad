//! Many jobs, many schedulers, many kills. A tenth of it by default; all of it with `TIDEWHEEL_STORM=full`, which
//! is what `cargo xtask crash` sets. What is random is seeded by `TIDEWHEEL_STORM_SEED`, and says its seed.

mod random;
#[path = "../scenarios/world.rs"]
mod world;

mod approvals;
mod calls;
mod commands;
mod fan_out;
mod kills;
mod names;
mod schedulers;
mod stages;
mod stops;
mod survivors;

use world::World;

/// Returns how many of something there are.
fn size(full: usize) -> usize {
    if is_full() { full } else { full / 10 }
}

/// Tells whether everything is asked for.
fn is_full() -> bool {
    std::env::var("TIDEWHEEL_STORM").is_ok_and(|size| size == "full")
}

/// Returns a template with these nodes: id, script, and more of each.
fn flow(nodes: impl IntoIterator<Item = (String, String, String)>) -> String {
    let node = |(id, script, more): (String, String, String)| {
        format!(
            "[[nodes]]\nid = \"{id}\"\nkind = \"shell\"\nuses = \"cap.env.shell.command.run\"\n\
             args = {{ script = {script:?} }}\n{more}\n"
        )
    };
    format!("id = \"storm\"\nversion = \"v1\"\n{}", nodes.into_iter().map(node).collect::<String>())
}

/// Ticks, and fails if the tick does.
#[track_caller]
fn tick(world: &World) {
    let ran = world.run(&["tick", "--format", "json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

/// Tells whether a job with this status may still do something.
fn is_active(status: &str) -> bool {
    matches!(status, "queued" | "running") || status.starts_with("waiting_")
}

#[test]
fn no_forgotten_test_files() {
    let here = include_str!("main.rs");
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/storms");
    for entry in std::fs::read_dir(directory).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(name) = name.strip_suffix(".rs").filter(|name| *name != "main") else { continue };
        assert!(here.contains(&format!("\nmod {name};\n")), "{name}.rs is not listed in main.rs");
    }
}
