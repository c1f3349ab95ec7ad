//! The files of this repository, as text with paths from its root; knows no rule.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file with text in it.
#[derive(Debug)]
pub(crate) struct TextFile {
    /// The path from the root, with forward slashes.
    pub(crate) path: String,
    /// The content.
    pub(crate) text: String,
}

/// Returns the root of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("this crate lies two folders below the root")
        .to_owned()
}

/// Returns every text file that git tracks or would track, in the order of the paths.
pub(crate) fn text_files() -> Vec<TextFile> {
    let root = root();
    let paths = listed_by_git(&root).unwrap_or_else(|| found_on_disk(&root));
    paths
        .into_iter()
        .filter_map(|path| {
            // A path may be tracked and just deleted, and what is not UTF-8 is not text.
            let text = String::from_utf8(fs::read(root.join(&path)).ok()?).ok()?;
            Some(TextFile { path, text })
        })
        .collect()
}

/// Returns the Rust files of all crates, their tests and benchmarks included.
pub(crate) fn rust_files() -> Vec<TextFile> {
    let mut files = text_files();
    files.retain(|file| file.path.ends_with(".rs"));
    assert!(
        files.iter().any(|file| file.path == "crates/core/src/lib.rs"),
        "the Rust files were not found, so the rules would hold for nothing"
    );
    files
}

/// Returns the Rust files that are shipped or run: below `crates/*/src` and `xtask/src`.
pub(crate) fn source_files() -> Vec<TextFile> {
    let mut files = rust_files();
    files.retain(|file| {
        let parts: Vec<&str> = file.path.split('/').collect();
        matches!(parts[..], ["crates", _, "src", ..] | ["xtask", "src", ..])
    });
    files
}

/// Returns the manifest of the workspace.
pub(crate) fn root_manifest() -> String {
    fs::read_to_string(root().join("Cargo.toml")).expect("the root has a manifest")
}

/// Returns the manifests of all crates.
pub(crate) fn crate_manifests() -> Vec<TextFile> {
    let mut files = text_files();
    files.retain(|file| {
        let parts: Vec<&str> = file.path.split('/').collect();
        matches!(parts[..], ["crates", _, "Cargo.toml"] | ["xtask", "Cargo.toml"])
    });
    assert!(
        files.iter().any(|file| file.path == "crates/core/Cargo.toml"),
        "the manifests were not found, so the rules would hold for nothing"
    );
    files
}

/// Returns the folders in which crates lie: those in `crates`, and `xtask`.
pub(crate) fn crate_folders() -> BTreeSet<String> {
    text_files()
        .iter()
        .filter_map(|file| {
            let parts: Vec<&str> = file.path.split('/').collect();
            match parts[..] {
                ["crates", folder, _, ..] => Some(format!("crates/{folder}")),
                ["xtask", _, ..] => Some("xtask".to_owned()),
                _ => None,
            }
        })
        .collect()
}

/// Fails the test if there is a complaint, with all of them, one on each line.
#[track_caller]
pub(crate) fn assert_tidy(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

/// Asks git; `None` if there is no git or this is no checkout, but an unpacked archive, for example.
fn listed_by_git(root: &Path) -> Option<BTreeSet<String>> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .ok()?;
    if !output.status.success() {
        return None;
    }
    let listing = String::from_utf8(output.stdout).ok()?;
    let paths: BTreeSet<String> = listing.split_terminator('\0').map(str::to_owned).collect();
    // An archive may have been unpacked inside another repository that ignores it.
    paths.contains("Cargo.toml").then_some(paths)
}

/// Walks the folders, without those that hold what was built or run.
fn found_on_disk(root: &Path) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the tree can be read") {
            let entry = entry.expect("a folder of the tree can be read");
            let path = entry.path();
            let kind = entry.file_type().expect("an entry has a type");
            if kind.is_dir() {
                // Cargo marks its target folder, whatever its name, as a cache.
                let is_cache = path.join("CACHEDIR.TAG").exists();
                let is_state = entry.file_name() == ".git" || entry.file_name() == ".tidewheel";
                if !is_cache && !is_state {
                    folders.push(path);
                }
            } else if kind.is_file() {
                let below = path.strip_prefix(root).expect("the walk started at the root");
                let parts: Vec<_> = below.iter().map(|part| part.to_string_lossy()).collect();
                paths.insert(parts.join("/"));
            }
        }
    }
    paths
}

#[test]
fn the_walk_finds_the_sources_and_not_what_was_built() {
    let found = found_on_disk(&root());
    assert!(found.contains("Cargo.toml"));
    assert!(found.contains("crates/testkit/tests/tidy/tree.rs"));
    assert!(!found.iter().any(|path| path.starts_with("target/debug/")));
    assert!(!found.iter().any(|path| path.starts_with(".git/")));
}
