//! What the crate `tidewheel` exports, found by following its `pub use` lists to the items; knows no rule.
//!
//! It reads what the files of this repository look like: modules are files, and lists of names have no globs.

use std::collections::BTreeMap;

use crate::items::{Item, Kind, Module, module};
use crate::tree::{TextFile, source_files};

/// All modules of the crates that a library user gets, by their path.
#[derive(Debug)]
pub(crate) struct Modules(BTreeMap<String, Module>);

/// A name that users can write, and the item behind it.
#[derive(Debug)]
pub(crate) struct Export<'a> {
    /// The module of the facade.
    pub(crate) module: String,
    /// The name in that module.
    pub(crate) name: String,
    /// What it is; `None` for what is not ours, or a whole module.
    pub(crate) found: Option<Found<'a>>,
}

/// An item, and where it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found<'a> {
    /// The module that defines it.
    pub(crate) module: &'a str,
    /// The item.
    pub(crate) item: &'a Item,
}

impl Modules {
    /// Reads the modules from the files of the repository.
    pub(crate) fn of_the_repository() -> Self {
        Self::new(&source_files())
    }

    /// Reads the modules from files with paths like `crates/core/src/policy/mod.rs`.
    pub(crate) fn new(files: &[TextFile]) -> Self {
        let modules = files.iter().filter_map(|file| Some((path_of(&file.path)?, module(&file.text))));
        Self(modules.collect())
    }

    /// Returns the documentation of a module: the lines that begin with `//!`.
    pub(crate) fn documentation(&self, module: &str) -> &str {
        self.0.get(module).map_or("", |module| &module.documentation)
    }

    /// Returns everything that the public modules of `tidewheel` export, module by module, in the order of names.
    pub(crate) fn exports(&self) -> Vec<Export<'_>> {
        let mut exports = Vec::new();
        let mut left = vec!["tidewheel".to_owned()];
        while let Some(path) = left.pop() {
            let Some(module) = self.0.get(&path) else { continue };
            for item in module.items.iter().filter(|item| item.is_public) {
                match item.kind {
                    Kind::Module => left.push(format!("{path}::{}", item.name)),
                    _ => exports.push(Export {
                        module: path.clone(),
                        name: item.name.clone(),
                        found: self.resolve(&path, &item.name),
                    }),
                }
            }
        }
        exports.sort_by(|one, other| (&one.module, &one.name).cmp(&(&other.module, &other.name)));
        exports
    }

    /// Returns what can be asked of a type: the members that it has, and those of all its `impl` blocks.
    pub(crate) fn members<'a>(&'a self, found: Found<'a>) -> Vec<&'a str> {
        let own = found.item.members.iter();
        let crate_name = found.module.split("::").next();
        let others = self.0.iter().filter(|(path, _)| path.split("::").next() == crate_name);
        let blocks = others.flat_map(|(path, module)| module.blocks.iter().map(move |block| (path, block)));
        let blocks = blocks.filter(|(path, block)| {
            block.of == found.item.name
                && self.resolve(path, &block.of).is_some_and(|target| std::ptr::eq(target.item, found.item))
        });
        let mut members: Vec<&str> =
            own.chain(blocks.flat_map(|(_, block)| &block.members)).map(String::as_str).collect();
        members.sort_unstable();
        members
    }

    /// Follows a name from a module to the item that it means.
    fn resolve(&self, from: &str, name: &str) -> Option<Found<'_>> {
        let mut at = from.to_owned();
        let mut wanted = vec![name.to_owned()];
        // A list of re-exports is a few names long; more steps would go in a circle.
        for _ in 0..32 {
            let next = wanted.first()?.clone();
            let child = format!("{at}::{next}");
            if next == "self" {
                wanted.remove(0);
            } else if next == "crate" {
                at = at.split("::").next()?.to_owned();
                wanted.remove(0);
            } else if next == "super" {
                at = at.rsplit_once("::")?.0.to_owned();
                wanted.remove(0);
            } else if wanted.len() > 1 && self.0.contains_key(&child) {
                at = child;
                wanted.remove(0);
            } else if wanted.len() > 1 && self.0.contains_key(&next) {
                at = next;
                wanted.remove(0);
            } else {
                let (module, here) = self.0.get_key_value(&at)?;
                let item = here.items.iter().find(|item| item.name == next && item.kind != Kind::Module)?;
                let Kind::Use(path) = &item.kind else {
                    return (wanted.len() == 1).then_some(Found { module, item });
                };
                wanted.splice(0..1, path.iter().cloned());
            }
        }
        None
    }
}

/// Returns the path of the module that a file holds, if it is one that a library user gets.
fn path_of(file: &str) -> Option<String> {
    let parts: Vec<&str> = file.strip_suffix(".rs")?.split('/').collect();
    let ["crates", folder @ ("core" | "store" | "runner" | "tidewheel"), "src", inside @ ..] = &parts[..]
    else {
        return None;
    };
    let mut path =
        if *folder == "tidewheel" { "tidewheel".to_owned() } else { format!("tidewheel_{folder}") };
    for part in inside.iter().filter(|part| !matches!(**part, "lib" | "mod")) {
        path.extend(["::", part]);
    }
    Some(path)
}

#[test]
fn names_are_followed_through_lists_and_crates() {
    let file = |path: &str, text: &str| TextFile { path: path.to_owned(), text: text.to_owned() };
    let modules = Modules::new(&[
        file("crates/tidewheel/src/lib.rs", "pub mod deep;\nmod hidden;\npub use tidewheel_core::Top;"),
        file("crates/tidewheel/src/deep.rs", "pub use tidewheel_core::a::{One as Eins, two};"),
        file("crates/tidewheel/src/hidden.rs", "pub use tidewheel_core::Top as Leak;"),
        file("crates/core/src/lib.rs", "pub mod a;\nmod b;\npub use b::Top;"),
        file("crates/core/src/a/mod.rs", "mod one;\npub use one::{One, two};"),
        file(
            "crates/core/src/a/one.rs",
            "pub struct One { pub x: u8 }\npub fn two() {}\nimpl One { pub fn new() {} }",
        ),
        file(
            "crates/core/src/b.rs",
            "use crate::a::One;\npub enum Top { A }\nimpl One { pub fn far() {} fn own() {} }",
        ),
    ]);
    let found: Vec<String> = modules
        .exports()
        .iter()
        .map(|export| {
            let found = export.found.unwrap();
            format!("{}::{} {} {:?}", export.module, export.name, found.module, modules.members(found))
        })
        .collect();
    assert_eq!(
        found,
        [
            r#"tidewheel::Top tidewheel_core::b ["A"]"#,
            r#"tidewheel::deep::Eins tidewheel_core::a::one [".x", "far()", "new()"]"#,
            "tidewheel::deep::two tidewheel_core::a::one []",
        ]
    );
}
