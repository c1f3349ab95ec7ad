//! Every crate keeps the workspace's lints; testkit must repeat them, since it alone may hold unsafe code.

use toml::{Table, Value};

use crate::manifest::parse;
use crate::tree::{assert_tidy, crate_manifests, root_manifest};

/// The crate whose own list replaces the workspace's.
const EXCEPTION: &str = "crates/testkit/Cargo.toml";

/// Returns a complaint if the crate does not keep the workspace's lints.
fn other_lints(path: &str, manifest: &str, root_manifest: &str) -> Vec<String> {
    let parsed = parse(path, manifest).and_then(|m| Ok((m, parse("Cargo.toml", root_manifest)?)));
    let (manifest, root) = match parsed {
        Ok(tables) => tables,
        Err(complaint) => return vec![complaint],
    };
    let lints = table_at(&manifest, &["lints"]);
    if path == EXCEPTION {
        return differences(path, &lints, &table_at(&root, &["workspace", "lints"]));
    }
    if lints.get("workspace").and_then(Value::as_bool) == Some(true) {
        return Vec::new();
    }
    vec![format!("{path}: must have `[lints]` with `workspace = true`")]
}

/// Returns a complaint for each lint that differs; unsafe code must be denied where the workspace forbids it.
fn differences(path: &str, own: &Table, shared: &Table) -> Vec<String> {
    let mut wanted = levels(shared);
    for (name, level) in &mut wanted {
        if name == "rust.unsafe_code" && level == "\"forbid\"" {
            "\"deny\"".clone_into(level);
        }
    }
    let own = levels(own);
    let missing = wanted.iter().filter(|lint| !own.contains(lint));
    let strange = own.iter().filter(|lint| !wanted.contains(lint));
    missing
        .map(|(name, level)| format!("{path}: the lint {name} must be {level}, as in the workspace"))
        .chain(strange.map(|(name, level)| format!("{path}: the workspace has no lint {name} = {level}")))
        .collect()
}

/// Returns each lint as `tool.name` with its level as it stands in the manifest.
fn levels(lints: &Table) -> Vec<(String, String)> {
    let mut levels = Vec::new();
    for (tool, list) in lints {
        for (name, level) in list.as_table().into_iter().flatten() {
            levels.push((format!("{tool}.{name}"), level.to_string()));
        }
    }
    levels
}

fn table_at(of: &Table, keys: &[&str]) -> Table {
    let mut found = of;
    for key in keys {
        match found.get(*key).and_then(Value::as_table) {
            Some(inner) => found = inner,
            None => return Table::new(),
        }
    }
    found.clone()
}

#[test]
fn every_crate_keeps_the_lints() {
    let root = root_manifest();
    let complaints: Vec<String> =
        crate_manifests().iter().flat_map(|file| other_lints(&file.path, &file.text, &root)).collect();
    assert_tidy(&complaints);
}

#[test]
fn a_crate_without_the_lints_is_found() {
    for manifest in
        ["", "[lints]\n", "[lints]\nworkspace = false\n", "[lints.rust]\nmissing_docs = \"warn\"\n"]
    {
        assert_eq!(
            other_lints("crates/a/Cargo.toml", manifest, ""),
            ["crates/a/Cargo.toml: must have `[lints]` with `workspace = true`"]
        );
    }
    assert_eq!(other_lints("crates/a/Cargo.toml", "lints.workspace = true\n", ""), [""; 0]);
}

#[test]
fn a_list_of_testkit_that_differs_is_found() {
    let root = "[workspace.lints.rust]\nunsafe_code = \"forbid\"\nmissing_docs = \"warn\"\n\
                [workspace.lints.clippy]\nall = { level = \"warn\", priority = -1 }\n";
    let same = "[lints.rust]\nmissing_docs = \"warn\"\nunsafe_code = \"deny\"\n\
                [lints.clippy]\nall = { level = \"warn\", priority = -1 }\n";
    assert_eq!(other_lints(EXCEPTION, same, root), [""; 0]);

    let weaker = same.replace("priority = -1", "priority = 0");
    assert_eq!(other_lints(EXCEPTION, &weaker, root).len(), 2);
    let unsafe_allowed = same.replace("deny", "allow");
    assert_eq!(other_lints(EXCEPTION, &unsafe_allowed, root).len(), 2);
    let shorter = same.replace("missing_docs = \"warn\"\n", "");
    assert_eq!(
        other_lints(EXCEPTION, &shorter, root),
        ["crates/testkit/Cargo.toml: the lint rust.missing_docs must be \"warn\", as in the workspace"]
    );
    let longer = same.replace("[lints.clippy]\n", "[lints.clippy]\ntodo = \"warn\"\n");
    assert_eq!(
        other_lints(EXCEPTION, &longer, root),
        ["crates/testkit/Cargo.toml: the workspace has no lint clippy.todo = \"warn\""]
    );
}
