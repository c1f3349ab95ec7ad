//! The arrows between our crates: one table says who may use whom; a crate outside it must not exist.

use std::collections::BTreeSet;

use crate::manifest::{Purpose, dependencies, parse};
use crate::tree::{assert_tidy, crate_folders, crate_manifests, root_manifest};

/// One of our crates and the arrows that leave it.
struct Crate {
    folder: &'static str,
    package: &'static str,
    may_use: &'static [&'static str],
}

const CORE: &str = "tidewheel-core";
const STORE: &str = "tidewheel-store";
const RUNNER: &str = "tidewheel-runner";
const WEB: &str = "tidewheel-web";
const CLI: &str = "tidewheel-cli";
const FACADE: &str = "tidewheel";
const TESTKIT: &str = "tidewheel-testkit";
const XTASK: &str = "xtask";

/// Our crates, each to the right of those that it may use; a new arrow is a change of the design.
const CRATES: [Crate; 8] = [
    Crate { folder: "crates/core", package: CORE, may_use: &[] },
    Crate { folder: "crates/store", package: STORE, may_use: &[CORE] },
    Crate { folder: "crates/runner", package: RUNNER, may_use: &[CORE, STORE] },
    Crate { folder: "crates/web", package: WEB, may_use: &[CORE, STORE, RUNNER] },
    Crate { folder: "crates/cli", package: CLI, may_use: &[CORE, STORE, RUNNER, WEB] },
    Crate { folder: "crates/tidewheel", package: FACADE, may_use: &[CORE, STORE, RUNNER] },
    Crate { folder: "crates/testkit", package: TESTKIT, may_use: &[CORE, STORE, RUNNER] },
    Crate { folder: "xtask", package: XTASK, may_use: &[] },
];

/// Where the members of the workspace lie; the rules look nowhere else.
const MEMBERS: [&str; 2] = ["crates/*", "xtask"];

/// Returns a complaint for each dependency that is an arrow outside the table.
fn wrong_arrows(path: &str, manifest: &str, root_manifest: &str) -> Vec<String> {
    let folder = path.strip_suffix("/Cargo.toml").unwrap_or(path);
    let Some(this) = CRATES.iter().find(|known| known.folder == folder) else {
        // It is a stranger, and the rule for those complains.
        return Vec::new();
    };
    let parsed = parse(path, manifest).and_then(|m| Ok((m, parse("Cargo.toml", root_manifest)?)));
    let (manifest, root) = match parsed {
        Ok(tables) => tables,
        Err(complaint) => return vec![complaint],
    };

    let mut complaints = Vec::new();
    let name = manifest.get("package").and_then(|package| package.get("name")?.as_str());
    if name != Some(this.package) {
        complaints.push(format!("{path}: the package must be called {}", this.package));
    }
    for dependency in dependencies(&manifest, &root) {
        let package = dependency.package.as_str();
        let is_ours = CRATES.iter().any(|known| known.package == package);
        if !is_ours || dependency.purpose == Purpose::Dev || this.may_use.contains(&package) {
            continue;
        }
        complaints.push(if package == TESTKIT {
            format!("{path}: {TESTKIT} may only be a dev-dependency, not in [{}]", dependency.table)
        } else {
            format!("{path}: {} must not depend on {package} in [{}]", this.package, dependency.table)
        });
    }
    complaints
}

/// Returns a complaint for each folder with a crate that the table does not know.
fn strangers(folders: &BTreeSet<String>) -> Vec<String> {
    folders
        .iter()
        .filter(|folder| !CRATES.iter().any(|known| known.folder == **folder))
        .map(|folder| format!("{folder}: is not in the table of crates: say there what it may use"))
        .collect()
}

/// Returns a complaint if the workspace has members where the rules do not look.
fn strange_members(root_manifest: &str) -> Vec<String> {
    let root = match parse("Cargo.toml", root_manifest) {
        Ok(root) => root,
        Err(complaint) => return vec![complaint],
    };
    let members = root.get("workspace").and_then(|workspace| workspace.get("members")?.as_array());
    let members: Vec<_> = members.into_iter().flatten().map(|member| member.as_str()).collect();
    if members == MEMBERS.map(Some) {
        return Vec::new();
    }
    vec![format!("Cargo.toml: the members must be {MEMBERS:?}, or the rules would not see them all")]
}

#[test]
fn arrows_point_the_right_way() {
    let root = root_manifest();
    let complaints: Vec<String> =
        crate_manifests().iter().flat_map(|file| wrong_arrows(&file.path, &file.text, &root)).collect();
    assert_tidy(&complaints);
}

#[test]
fn there_is_no_stranger() {
    assert_tidy(&strangers(&crate_folders()));
    assert_tidy(&strange_members(&root_manifest()));
}

/// A manifest of a workspace for the examples.
const ROOT: &str = "[workspace.dependencies]\n\
    tidewheel-core = { path = \"crates/core\" }\n\
    tidewheel-testkit = { path = \"crates/testkit\" }\n\
    renamed = { path = \"crates/cli\", package = \"tidewheel-cli\" }\n";

#[test]
fn a_wrong_arrow_is_found_in_every_table() {
    for (lines, found) in [
        ("[dependencies]\ntidewheel-runner = { path = \"../runner\" }", "tidewheel-runner in [dependencies]"),
        ("[dependencies.tidewheel]\npath = \"../tidewheel\"", "tidewheel in [dependencies]"),
        ("[dependencies]\nrenamed.workspace = true", "tidewheel-cli in [dependencies]"),
        (
            "[dependencies]\nx = { package = \"tidewheel-web\", path = \"../web\" }",
            "tidewheel-web in [dependencies]",
        ),
        ("[build-dependencies]\ntidewheel-runner = \"1\"", "tidewheel-runner in [build-dependencies]"),
        ("[target.'cfg(unix)'.dependencies]\nxtask = \"1\"", "xtask in [target.'cfg(unix)'.dependencies]"),
    ] {
        let manifest = format!("[package]\nname = \"tidewheel-store\"\n{lines}\n");
        assert_eq!(
            wrong_arrows("crates/store/Cargo.toml", &manifest, ROOT),
            [format!("crates/store/Cargo.toml: tidewheel-store must not depend on {found}")]
        );
    }
}

#[test]
fn testkit_as_more_than_a_dev_dependency_is_found() {
    for table in ["dependencies", "build-dependencies"] {
        let manifest =
            format!("[package]\nname = \"tidewheel-cli\"\n[{table}]\ntidewheel-testkit.workspace = true\n");
        assert_eq!(
            wrong_arrows("crates/cli/Cargo.toml", &manifest, ROOT),
            [format!(
                "crates/cli/Cargo.toml: tidewheel-testkit may only be a dev-dependency, not in [{table}]"
            )]
        );
    }
}

#[test]
fn a_package_under_a_false_name_is_found() {
    assert_eq!(
        wrong_arrows("crates/core/Cargo.toml", "[package]\nname = \"innocent\"\n", ROOT),
        ["crates/core/Cargo.toml: the package must be called tidewheel-core"]
    );
}

#[test]
fn right_arrows_are_free() {
    let manifest = "[package]\nname = \"tidewheel-store\"\n[dependencies]\nserde = \"1\"\n\
                    tidewheel-core.workspace = true\n\
                    [dev-dependencies]\ntidewheel-testkit.workspace = true\n";
    assert_eq!(wrong_arrows("crates/store/Cargo.toml", manifest, ROOT), [""; 0]);
}

#[test]
fn a_stranger_is_found() {
    let folders = ["crates/core", "crates/helpers"].map(str::to_owned).into();
    assert_eq!(
        strangers(&folders),
        ["crates/helpers: is not in the table of crates: say there what it may use"]
    );
    let root = "[workspace]\nmembers = [\"crates/*\", \"xtask\", \"tools/a\"]\n";
    assert_eq!(strange_members(root).len(), 1);
}
