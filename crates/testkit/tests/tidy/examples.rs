//! Whoever reads about a public name of `tidewheel` finds code that uses it.

use crate::facade::{Export, Modules};
use crate::items::{Kind, module};
use crate::tree::assert_tidy;

/// Names without an example of their own, and why.
const EXCEPTIONS: [(&str, &str); 7] = [
    ("tidewheel::event::ActIx", "a number in events, which nobody has to make"),
    ("tidewheel::event::Arrival", "a part of two events of joins and reduces"),
    ("tidewheel::event::FactIx", "a number in events, which nobody has to make"),
    ("tidewheel::event::LineageIx", "a number in events, which nobody has to make"),
    ("tidewheel::event::Undo", "a part of one event of compensations"),
    ("tidewheel::policy::CompensationFn", "a signature, as `FallbackFn` is, which has one"),
    ("tidewheel::policy::KeyFn", "a signature, as `FallbackFn` is, which has one"),
];

/// Returns a complaint for each exported item that has no code in its documentation and is used in none of the
/// examples of its module or of the crate.
fn items_without_example(modules: &Modules, exceptions: &[(&str, &str)]) -> Vec<String> {
    let mut complaints = Vec::new();
    for Export { module, name, found } in modules.exports() {
        let Some(found) = found.filter(|_| module != "tidewheel::prelude") else { continue };
        let Kind::Defined(kind) = found.item.kind else { continue };
        let path = format!("{module}::{name}");
        let pages = [&module, "tidewheel", found.module].map(|module| modules.documentation(module));
        let is_shown = code(&found.item.documentation).next().is_some()
            || pages.iter().any(|page| code(page).any(|code| has_word(code, &name)));
        let is_excepted = exceptions.iter().any(|(known, _)| *known == path);
        if is_shown == is_excepted {
            let what = if is_shown { "needs no exception any more" } else { "has no example" };
            complaints.push(format!("{path}: the {kind} of {} {what}", found.module));
        }
    }
    complaints
}

/// Returns a complaint for each name that the example of an exported item takes from `tidewheel`, and that is not there.
///
/// Examples stand in the crates below, which cannot ask the facade: they call themselves `tidewheel` in a hidden line.
fn names_that_users_do_not_have(modules: &Modules) -> Vec<String> {
    let exports = modules.exports();
    let is_there = |path: &str| {
        let is_it = |export: &Export<'_>| format!("{}::{}", export.module, export.name) == path;
        let module = path.strip_suffix("::self");
        exports.iter().any(|export| is_it(export) || module == Some(&export.module))
    };
    let mut complaints = Vec::new();
    for export in &exports {
        let Some(found) = export.found.filter(|_| export.module != "tidewheel::prelude") else { continue };
        for code in code(&found.item.documentation) {
            let shown: Vec<&str> = code.lines().filter(|line| !line.trim_start().starts_with("# ")).collect();
            for item in module(&shown.join("\n")).items {
                let Kind::Use(path) = item.kind else { continue };
                let path = path.join("::");
                let is_ours = path.starts_with("tidewheel");
                if is_ours && !is_there(&path) && path != "tidewheel::prelude::*" {
                    complaints.push(format!("{}::{}: its example uses {path}", export.module, export.name));
                }
            }
        }
    }
    complaints
}

/// Returns the blocks of code in a documentation.
fn code(documentation: &str) -> impl Iterator<Item = &str> {
    documentation.split("```").skip(1).step_by(2).filter(|block| !block.starts_with("text"))
}

/// Returns whether a name stands in a text, not as a part of another name.
fn has_word(text: &str, name: &str) -> bool {
    text.split(|c: char| c != '_' && !c.is_alphanumeric()).any(|word| word == name)
}

#[test]
fn every_public_item_has_an_example() {
    assert_tidy(&items_without_example(&Modules::of_the_repository(), &EXCEPTIONS));
}

#[test]
fn examples_use_what_users_have() {
    assert_tidy(&names_that_users_do_not_have(&Modules::of_the_repository()));
}

#[test]
fn an_example_with_names_from_below_is_found() {
    use crate::tree::TextFile;
    let file = |path: &str, text: &str| TextFile { path: path.to_owned(), text: text.to_owned() };
    let modules = Modules::new(&[
        file("crates/tidewheel/src/lib.rs", "pub use tidewheel_core::A;"),
        file("crates/core/src/lib.rs", "mod a;\npub use a::{A, B};"),
        file(
            "crates/core/src/a.rs",
            "/// ```\n/// # use tidewheel_core as tidewheel;\n/// use tidewheel::{A, B};\n/// use tidewheel_core::A as C;\n\
             /// ```\npub struct A;\npub struct B;",
        ),
    ]);
    assert_eq!(
        names_that_users_do_not_have(&modules),
        ["tidewheel::A: its example uses tidewheel::B", "tidewheel::A: its example uses tidewheel_core::A"]
    );
}

#[test]
fn an_item_without_an_example_is_found() {
    use crate::tree::TextFile;
    let file = |path: &str, text: &str| TextFile { path: path.to_owned(), text: text.to_owned() };
    let modules = Modules::new(&[
        file(
            "crates/tidewheel/src/lib.rs",
            "//! ```\n//! shown();\n//! ```\npub use tidewheel_core::a::{A, B, C, D, shown};",
        ),
        file("crates/core/src/lib.rs", "pub mod a;"),
        file(
            "crates/core/src/a.rs",
            "/// A.\n///\n/// ```\n/// A;\n/// ```\npub struct A;\n/// B.\npub struct B;\n\
             /// ```text\n/// C\n/// ```\npub struct C;\npub struct D;\npub fn shown() {}",
        ),
    ]);
    assert_eq!(
        items_without_example(&modules, &[("tidewheel::D", "so"), ("tidewheel::A", "why")]),
        [
            "tidewheel::A: the struct of tidewheel_core::a needs no exception any more",
            "tidewheel::B: the struct of tidewheel_core::a has no example",
            "tidewheel::C: the struct of tidewheel_core::a has no example",
        ]
    );
}
