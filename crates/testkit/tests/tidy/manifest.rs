//! Reads what a manifest depends on, whatever the table and the name it stands under; knows no rule.

use toml::{Table, Value};

/// What a dependency is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// It is part of what is built.
    Normal,
    /// The build script uses it.
    Build,
    /// Only tests, examples and benchmarks use it.
    Dev,
}

/// One line of a dependency table.
#[derive(Debug)]
pub(crate) struct Dependency {
    /// What it is for.
    pub(crate) purpose: Purpose,
    /// The table that holds it, as in the manifest.
    pub(crate) table: String,
    /// The name under which this manifest knows the package.
    pub(crate) key: String,
    /// The real name of the package, behind every renaming.
    pub(crate) package: String,
    /// The features that this line asks for, those of the workspace's line not included.
    pub(crate) features: Vec<String>,
    /// What this line says about default features, if anything.
    pub(crate) default_features: Option<bool>,
}

/// The tables of dependencies and what they are for.
const TABLES: [(&str, Purpose); 3] = [
    ("dependencies", Purpose::Normal),
    ("build-dependencies", Purpose::Build),
    ("dev-dependencies", Purpose::Dev),
];

/// Reads a manifest.
pub(crate) fn parse(path: &str, text: &str) -> Result<Table, String> {
    text.parse().map_err(|error| format!("{path}: cannot be read as TOML: {error}"))
}

/// Returns all dependencies of a crate, those for single targets included.
///
/// The manifest of the workspace says what an inherited dependency really is.
pub(crate) fn dependencies(manifest: &Table, root: &Table) -> Vec<Dependency> {
    let shared = workspace_dependencies(root);
    let mut found = dependencies_of_tables("", manifest, &shared);
    for (target, tables) in table(manifest, "target").into_iter().flatten() {
        if let Some(tables) = tables.as_table() {
            found.extend(dependencies_of_tables(&format!("target.'{target}'."), tables, &shared));
        }
    }
    found
}

/// Returns the dependencies that the workspace offers to its crates.
pub(crate) fn workspace_dependencies(root: &Table) -> Vec<Dependency> {
    let workspace = table(root, "workspace");
    let lines = workspace.and_then(|workspace| table(workspace, "dependencies"));
    lines
        .into_iter()
        .flatten()
        .map(|(key, value)| Dependency {
            purpose: Purpose::Normal,
            table: "workspace.dependencies".to_owned(),
            key: key.clone(),
            package: text(value, "package").unwrap_or(key).to_owned(),
            features: features(value),
            default_features: flag(value, "default-features"),
        })
        .collect()
}

fn dependencies_of_tables(prefix: &str, manifest: &Table, shared: &[Dependency]) -> Vec<Dependency> {
    let mut found = Vec::new();
    for (name, purpose) in TABLES {
        for (key, value) in table(manifest, name).into_iter().flatten() {
            let inherited = shared
                .iter()
                .find(|line| flag(value, "workspace") == Some(true) && line.key == *key)
                .map(|line| line.package.as_str());
            found.push(Dependency {
                purpose,
                table: format!("{prefix}{name}"),
                key: key.clone(),
                package: inherited.or_else(|| text(value, "package")).unwrap_or(key).to_owned(),
                features: features(value),
                default_features: flag(value, "default-features"),
            });
        }
    }
    found
}

fn table<'t>(of: &'t Table, key: &str) -> Option<&'t Table> {
    of.get(key)?.as_table()
}

fn text<'v>(of: &'v Value, key: &str) -> Option<&'v str> {
    of.get(key)?.as_str()
}

fn flag(of: &Value, key: &str) -> Option<bool> {
    of.get(key)?.as_bool()
}

fn features(of: &Value) -> Vec<String> {
    let list = of.get("features").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(|feature| feature.as_str().map(str::to_owned)).collect()
}

#[test]
fn every_table_is_read_and_every_renaming_seen_through() {
    let root = parse(
        "Cargo.toml",
        "[workspace.dependencies]\nengine = { path = \"crates/core\", package = \"tidewheel-core\" }\n",
    );
    let manifest = parse(
        "crates/a/Cargo.toml",
        "[dependencies]\nserde = \"1\"\nengine.workspace = true\n\
         [build-dependencies]\nb = { package = \"tidewheel-store\", path = \"../store\" }\n\
         [dev-dependencies.c]\nversion = \"1\"\nfeatures = [\"x\"]\n\
         [target.'cfg(unix)'.dependencies]\nd = { version = \"1\", default-features = false }\n\
         [target.'cfg(unix)'.build-dependencies]\ne = \"1\"\n",
    );
    let found: Vec<String> = dependencies(&manifest.unwrap(), &root.unwrap())
        .into_iter()
        .map(|d| {
            let Dependency { purpose, table, key, package, features, default_features } = d;
            format!("{purpose:?} {table} {key}={package} {features:?} {default_features:?}")
        })
        .collect();
    assert_eq!(
        found,
        [
            "Normal dependencies engine=tidewheel-core [] None",
            "Normal dependencies serde=serde [] None",
            "Build build-dependencies b=tidewheel-store [] None",
            "Dev dev-dependencies c=c [\"x\"] None",
            "Normal target.'cfg(unix)'.dependencies d=d [] Some(false)",
            "Build target.'cfg(unix)'.build-dependencies e=e [] None",
        ]
    );
}
