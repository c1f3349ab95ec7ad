//! `mod.rs` and `lib.rs` are tables of contents: they declare and re-export, and must not hold code.

use crate::tokens::{Token, attribute_length, begins_with, bracketed_length, tokens};
use crate::tree::{assert_tidy, rust_files};

/// Returns a complaint for the first item that is neither `mod name;` nor a `use`.
///
/// The first is enough: after it, one cannot tell where the next item begins without a parser.
fn code_beside_declarations(path: &str, text: &str) -> Vec<String> {
    let tokens = tokens(text);
    let mut rest = &tokens[..];
    while let Some(first) = rest.first() {
        let Some(length) = attribute_length(rest).or_else(|| declaration_length(rest)) else {
            return vec![format!(
                "{path}:{}: only `mod name;` and `use` belong here, not what begins with `{}`",
                first.line, first.text
            )];
        };
        rest = &rest[length..];
    }
    Vec::new()
}

/// Returns how many tokens the declaration at the start has.
fn declaration_length(tokens: &[Token<'_>]) -> Option<usize> {
    let visibility = if begins_with(tokens, &["pub", "("]) {
        1 + bracketed_length(&tokens[1..])?
    } else {
        usize::from(begins_with(tokens, &["pub"]))
    };
    let item = &tokens[visibility..];
    let length = match item.first()?.text {
        "use" => item.iter().position(|token| token.text == ";")? + 1,
        "mod" if item.get(2)?.text == ";" => 3,
        _ => return None,
    };
    Some(visibility + length)
}

#[test]
fn tables_of_contents_hold_no_code() {
    let complaints: Vec<String> = rust_files()
        .iter()
        .filter(|file| file.path.ends_with("/mod.rs") || file.path.ends_with("/lib.rs"))
        .flat_map(|file| code_beside_declarations(&file.path, &file.text))
        .collect();
    assert_tidy(&complaints);
}

#[test]
fn code_is_found() {
    for item in [
        "fn f() {}",
        "pub const A: u8 = 1;",
        "mod tests { }",
        "pub struct A;",
        "impl A {}",
        "macro_rules! a { () => {} }",
        "extern crate a;",
        "pub",
        "use a",
    ] {
        let text = format!("//! Doc.\nmod a;\n{item}\n");
        let complaints = code_beside_declarations("lib.rs", &text);
        assert_eq!(complaints.len(), 1, "{item}");
        assert!(complaints[0].starts_with("lib.rs:3: "), "{complaints:?}");
    }
}

#[test]
fn declarations_are_free() {
    let text = "//! Doc.\n#![expect(a, reason = \"b\")]\n\n/// Doc.\n#[macro_use]\nmod a;\npub mod b;\n\
                pub(crate) mod c;\n\
                pub(in crate::b) use c::D;\npub use a::{\n    E, F as G,\n    h::{I, J},\n};\nuse k::*;\n";
    assert_eq!(code_beside_declarations("lib.rs", text), [""; 0]);
}
