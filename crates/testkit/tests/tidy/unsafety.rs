//! Unsafe code lives in one file, the counting allocator of the tests, and must not spread.

use crate::tokens::tokens;
use crate::tree::{assert_tidy, rust_files};

/// The one file that cannot do without.
const EXCEPTION: &str = "crates/testkit/src/alloc.rs";

/// Returns a complaint for each `unsafe` outside the exception.
fn misplaced_unsafe(path: &str, text: &str) -> Vec<String> {
    if path == EXCEPTION {
        return Vec::new();
    }
    tokens(text)
        .iter()
        .filter(|token| token.text == "unsafe")
        .map(|token| format!("{path}:{}: only {EXCEPTION} may hold `unsafe`", token.line))
        .collect()
}

#[test]
fn there_is_no_misplaced_unsafe() {
    let complaints: Vec<String> =
        rust_files().iter().flat_map(|file| misplaced_unsafe(&file.path, &file.text)).collect();
    assert_tidy(&complaints);
}

#[test]
fn unsafe_elsewhere_is_found() {
    let text = "fn f() {\n    unsafe { g() }\n}\nunsafe impl A for B {}";
    assert_eq!(
        misplaced_unsafe("crates/core/src/lib.rs", text),
        [
            "crates/core/src/lib.rs:2: only crates/testkit/src/alloc.rs may hold `unsafe`",
            "crates/core/src/lib.rs:4: only crates/testkit/src/alloc.rs may hold `unsafe`"
        ]
    );
}

#[test]
fn the_exception_and_the_bare_word_are_free() {
    assert_eq!(misplaced_unsafe(EXCEPTION, "unsafe impl A for B {}"), [""; 0]);
    let text = "// unsafe\n#![deny(unsafe_code)]\nconst A: &str = \"unsafe\";";
    assert_eq!(misplaced_unsafe("a.rs", text), [""; 0]);
}
