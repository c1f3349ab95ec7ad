//! The public names of `tidewheel` are those of a list, so that nobody changes one by accident.

use std::collections::BTreeSet;

use crate::facade::{Export, Modules};
use crate::items::Kind;
use crate::tree::{assert_tidy, root};

/// The file with the list.
const LIST: &str = "crates/tidewheel/surface.txt";

/// What is exported as a whole, and why.
const WHOLE: [(&str, &str); 2] = [
    ("tidewheel::telemetry::otel", "it exists only with its feature, and has one function"),
    ("tidewheel::telemetry::prometheus_client", "programs need the version that we use"),
];

/// Returns a line for each public name; members stand where a type is exported first, and never in the prelude.
fn surface(modules: &Modules) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for export in modules.exports() {
        let Export { module, name, found } = export;
        let Some(found) = found else {
            lines.insert(format!("{module}::{name} (all of it)"));
            continue;
        };
        let Kind::Defined(kind) = found.item.kind else { continue };
        lines.insert(format!("{module}::{name} ({kind})"));
        if module != "tidewheel::prelude" {
            for member in modules.members(found) {
                let separator = if member.starts_with('.') { "" } else { "::" };
                lines.insert(format!("{module}::{name}{separator}{member}"));
            }
        }
    }
    lines
}

/// Returns a complaint for each line that is missing in the list, and each that is there and nowhere else.
fn differences(list: &str, surface: &BTreeSet<String>) -> Vec<String> {
    let listed: BTreeSet<String> = list.lines().map(str::to_owned).collect();
    let new = surface.difference(&listed).map(|line| format!("{LIST}: new, add it if it is meant: {line}"));
    let gone =
        listed.difference(surface).map(|line| format!("{LIST}: gone, remove it if it is meant: {line}"));
    new.chain(gone).collect()
}

/// Returns a complaint for each glob and each module or foreign name that is exported as a whole.
fn whole_modules(modules: &Modules) -> Vec<String> {
    let whole = modules.exports().into_iter().filter(|export| export.found.is_none());
    let paths = whole.map(|export| format!("{}::{}", export.module, export.name));
    paths
        .filter(|path| !WHOLE.iter().any(|(known, _)| known == path))
        .map(|path| format!("{path}: write a module with the names that users need; all of it is too much"))
        .collect()
}

#[test]
fn the_public_names_are_those_of_the_list() {
    let list = std::fs::read_to_string(root().join(LIST)).unwrap_or_default();
    let surface = surface(&Modules::of_the_repository());
    assert!(surface.len() > 400, "only {} names were found", surface.len());
    assert_tidy(&differences(&list, &surface));
}

#[test]
fn nothing_is_exported_without_its_name() {
    assert_tidy(&whole_modules(&Modules::of_the_repository()));
}

#[test]
fn a_change_is_found() {
    let surface = BTreeSet::from(["a".to_owned(), "b".to_owned()]);
    let complaints = differences("b\nc\n", &surface);
    assert_eq!(complaints.len(), 2, "{complaints:?}");
    assert!(complaints[0].ends_with("new, add it if it is meant: a"));
    assert!(complaints[1].ends_with("gone, remove it if it is meant: c"));
    assert_eq!(differences("a\nb\n", &surface), [""; 0]);
}

#[test]
fn globs_and_whole_modules_are_found() {
    use crate::tree::TextFile;
    let file = |path: &str, text: &str| TextFile { path: path.to_owned(), text: text.to_owned() };
    let modules = Modules::new(&[
        file("crates/tidewheel/src/lib.rs", "pub use tidewheel_core::{a, b::*, C};\npub use serde;"),
        file("crates/core/src/lib.rs", "pub mod a;\npub mod b;\npub use b::C;"),
        file("crates/core/src/a.rs", "pub struct A;"),
        file("crates/core/src/b.rs", "pub struct C;"),
    ]);
    assert_eq!(whole_modules(&modules).len(), 3);
    assert!(surface(&modules).contains("tidewheel::C (struct)"));
}
