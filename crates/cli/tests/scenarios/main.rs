//! Jobs as people and their scripts meet them: the real binary, real processes, records as files.

mod by_hand;
mod signals;
mod world;

mod after;
mod approval;
mod artifacts;
mod cancel;
mod concurrency;
mod containment;
mod ends;
mod enqueue_faults;
mod exhaustion;
mod explain;
mod external;
mod fields;
mod gc;
mod git_crashes;
mod git_kept;
mod git_merges;
mod git_names;
mod git_places;
mod git_plans;
mod git_worktrees;
mod git_world;
mod graphs;
mod keys;
mod lifecycle;
mod locks;
mod logs;
mod loops;
mod no_room;
mod operations;
mod outcomes;
mod patches;
mod pinned_head;
mod preconditions;
mod prompts;
mod races;
mod retry;
mod runs;
mod scripts;
mod secrets;
mod stages;
mod terminal;
mod timelines;
mod views;
mod wakes;

#[test]
fn no_forgotten_test_files() {
    let here = include_str!("main.rs");
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    for entry in std::fs::read_dir(directory).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(name) = name.strip_suffix(".rs").filter(|name| *name != "main") else { continue };
        assert!(here.contains(&format!("\nmod {name};\n")), "{name}.rs is not listed in main.rs");
    }
}
