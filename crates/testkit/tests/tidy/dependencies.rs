//! What core may be built from, and which features must stay off, since they would change our stored bytes.

use crate::manifest::{Dependency, Purpose, dependencies, parse, workspace_dependencies};
use crate::tree::{assert_tidy, crate_manifests, root, root_manifest};

/// Crates that compute and reach for nothing; another one is a change of the design.
const CORE_MAY_USE: [&str; 12] = [
    "blake3",
    "indexmap",
    "jiff",
    "minijinja",
    "petgraph",
    "regex",
    "schemars",
    "serde",
    "serde_json",
    "smallvec",
    "thiserror",
    "toml",
];

/// Features of `serde_json` that change the bytes of what we write, and with them every hash.
const FORBIDDEN_IN_SERDE_JSON: [&str; 2] = ["arbitrary_precision", "preserve_order"];

/// Returns a complaint for each crate that core may not use, and if core turns the clock of jiff on.
fn impure_dependencies_of_core(path: &str, manifest: &str, root_manifest: &str) -> Vec<String> {
    let parsed = parse(path, manifest).and_then(|m| Ok((m, parse("Cargo.toml", root_manifest)?)));
    let (manifest, root) = match parsed {
        Ok(tables) => tables,
        Err(complaint) => return vec![complaint],
    };
    let mut complaints = Vec::new();
    for dependency in dependencies(&manifest, &root) {
        let package = dependency.package.as_str();
        if dependency.purpose == Purpose::Dev {
            continue;
        }
        if !CORE_MAY_USE.contains(&package) {
            complaints.push(format!("{path}: core must stay pure: {package} in [{}]", dependency.table));
        }
        if package == "jiff" && dependency.default_features == Some(true) {
            complaints.push(format!("{path}: core must stay pure: jiff with its default features"));
        }
    }
    complaints
}

/// Returns a complaint if the workspace offers jiff with its default features, which read the clock.
fn jiff_with_default_features(root_manifest: &str) -> Vec<String> {
    let root = match parse("Cargo.toml", root_manifest) {
        Ok(root) => root,
        Err(complaint) => return vec![complaint],
    };
    workspace_dependencies(&root)
        .iter()
        .filter(|line| line.package == "jiff" && line.default_features != Some(false))
        .map(|line| format!("Cargo.toml: {} must have default-features = false: core has no clock", line.key))
        .collect()
}

/// Returns a complaint for each place in a manifest that turns on a forbidden feature of `serde_json`.
fn forbidden_features(path: &str, manifest: &str, root_manifest: &str) -> Vec<String> {
    let parsed = parse(path, manifest).and_then(|m| Ok((m, parse("Cargo.toml", root_manifest)?)));
    let (manifest, root) = match parsed {
        Ok(tables) => tables,
        Err(complaint) => return vec![complaint],
    };
    let mut lines: Vec<Dependency> = dependencies(&manifest, &root);
    lines.extend(workspace_dependencies(&manifest));
    lines.retain(|line| line.package == "serde_json");

    let mut complaints = Vec::new();
    for line in &lines {
        for feature in FORBIDDEN_IN_SERDE_JSON {
            if line.features.iter().any(|on| on == feature) {
                complaints.push(format!(
                    "{path}: hashes depend on serde_json without {feature}, which [{}] turns on",
                    line.table
                ));
            }
        }
    }
    let own = manifest.get("features").and_then(|features| features.as_table());
    for (name, implied) in own.into_iter().flatten() {
        for implied in implied.as_array().into_iter().flatten().filter_map(|one| one.as_str()) {
            let Some((key, feature)) = implied.split_once('/') else {
                continue;
            };
            let key = key.trim_end_matches('?');
            let is_ours = lines.iter().any(|line| line.key == key);
            if is_ours && FORBIDDEN_IN_SERDE_JSON.contains(&feature) {
                complaints.push(format!(
                    "{path}: hashes depend on serde_json without {feature}, which the feature {name} turns on"
                ));
            }
        }
    }
    complaints
}

/// Returns a complaint if the lock file shows that some crate turns on `preserve_order`, ours or another's.
///
/// The feature is what makes `serde_json` depend on `indexmap`.
fn order_preserved_by_someone(lock: &str) -> Vec<String> {
    let lock = match parse("Cargo.lock", lock) {
        Ok(lock) => lock,
        Err(complaint) => return vec![complaint],
    };
    let packages = lock.get("package").and_then(|packages| packages.as_array());
    packages
        .into_iter()
        .flatten()
        .filter(|package| package.get("name").and_then(|name| name.as_str()) == Some("serde_json"))
        .filter_map(|package| package.get("dependencies")?.as_array())
        .flatten()
        .filter_map(|dependency| dependency.as_str()?.split(' ').next())
        .filter(|dependency| *dependency == "indexmap")
        .map(|_| {
            "Cargo.lock: hashes depend on serde_json without preserve_order, and a dependency turns it on"
                .to_owned()
        })
        .collect()
}

#[test]
fn core_is_built_from_pure_crates() {
    let root = root_manifest();
    let complaints: Vec<String> = crate_manifests()
        .iter()
        .filter(|file| file.path == "crates/core/Cargo.toml")
        .flat_map(|file| impure_dependencies_of_core(&file.path, &file.text, &root))
        .collect();
    assert_tidy(&complaints);
    assert_tidy(&jiff_with_default_features(&root));
}

#[test]
fn stored_bytes_do_not_depend_on_features() {
    let root_manifest = root_manifest();
    let mut complaints = forbidden_features("Cargo.toml", &root_manifest, &root_manifest);
    for file in crate_manifests() {
        complaints.extend(forbidden_features(&file.path, &file.text, &root_manifest));
    }
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).expect("the root has a lock file");
    complaints.extend(order_preserved_by_someone(&lock));
    assert_tidy(&complaints);
}

#[test]
fn an_impure_dependency_of_core_is_found() {
    let root = "[workspace.dependencies]\nharmless = { version = \"1\", package = \"tokio\" }\n";
    for (lines, found) in [
        ("[dependencies]\nharmless.workspace = true", "tokio in [dependencies]"),
        ("[dependencies]\nserde = { package = \"rand\", version = \"1\" }", "rand in [dependencies]"),
        ("[dependencies]\nannotate-snippets = \"1\"", "annotate-snippets in [dependencies]"),
        ("[build-dependencies]\ncc = \"1\"", "cc in [build-dependencies]"),
        ("[target.'cfg(unix)'.dependencies]\nlibc = \"1\"", "libc in [target.'cfg(unix)'.dependencies]"),
        (
            "[dependencies]\njiff = { workspace = true, default-features = true }",
            "jiff with its default features",
        ),
    ] {
        assert_eq!(
            impure_dependencies_of_core("crates/core/Cargo.toml", lines, root),
            [format!("crates/core/Cargo.toml: core must stay pure: {found}")]
        );
    }
    let pure = "[dependencies]\nserde = \"1\"\n[dev-dependencies]\nproptest = \"1\"\n";
    assert_eq!(impure_dependencies_of_core("Cargo.toml", pure, root), [""; 0]);
}

#[test]
fn jiff_with_a_clock_is_found() {
    for line in ["jiff = \"0.2\"", "jiff = { version = \"0.2\", default-features = true }"] {
        let root = format!("[workspace.dependencies]\n{line}\n");
        assert_eq!(jiff_with_default_features(&root).len(), 1, "{line}");
    }
    let root = "[workspace.dependencies]\njiff = { version = \"0.2\", default-features = false }\n";
    assert_eq!(jiff_with_default_features(root), [""; 0]);
}

#[test]
fn a_forbidden_feature_is_found_wherever_it_is_turned_on() {
    let root = "[workspace.dependencies]\njson = { version = \"1\", package = \"serde_json\" }\n";
    for manifest in [
        "[workspace.dependencies]\nserde_json = { version = \"1\", features = [\"preserve_order\"] }\n",
        "[dependencies.serde_json]\nversion = \"1\"\nfeatures = [\"raw_value\", \"arbitrary_precision\"]\n",
        "[dev-dependencies]\njson = { workspace = true, features = [\"preserve_order\"] }\n",
        "[target.'cfg(unix)'.dependencies.j]\npackage = \"serde_json\"\nfeatures = [\"preserve_order\"]\n",
        "[dependencies]\njson.workspace = true\n[features]\na = [\"json/preserve_order\"]\n",
        "[dependencies]\njson.workspace = true\n[features]\na = [\"json?/arbitrary_precision\"]\n",
    ] {
        assert_eq!(forbidden_features("a", manifest, root).len(), 1, "{manifest}");
    }
    let harmless = "[dependencies]\nserde_json = { version = \"1\", features = [\"raw_value\"] }\n\
                    [features]\na = [\"json\"]\n";
    assert_eq!(forbidden_features("a", harmless, root), [""; 0]);
}

#[test]
fn a_lock_file_with_preserved_order_is_found() {
    let lock = |dependency: &str| {
        format!("[[package]]\nname = \"serde_json\"\ndependencies = [\"{dependency}\", \"memchr\"]\n")
    };
    assert_eq!(order_preserved_by_someone(&lock("indexmap")).len(), 1);
    assert_eq!(order_preserved_by_someone(&lock("indexmap 2.0.0")).len(), 1);
    assert_eq!(order_preserved_by_someone(&lock("itoa")), [""; 0]);
}
